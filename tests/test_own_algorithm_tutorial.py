"""The agent of docs/tutorials/own_algorithm.md has the loss that the page states, and learns what it says."""

import jax
import numpy as np
import pytest

from pages import promised_lines, run
from triax.reward_tracing import TransitionBatch

PAGE = "docs/tutorials/own_algorithm.md"


def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def munchausen_targets(values, next_values, actions, rewards, discounts, tau=0.03, alpha=0.9, lowest=-1.0):
    """Equation 1 of Vieillard et al. 2020, one transition after the other."""
    targets = []
    for q, q_next, a, r, discount in zip(values, next_values, actions, rewards, discounts, strict=True):
        bonus = max(lowest, min(0.0, tau * np.log(softmax(q / tau)[a] + 1e-30)))
        pi = softmax(q_next / tau)
        soft = sum(p * (x - tau * np.log(p)) for p, x in zip(pi, q_next, strict=True) if p > 0)
        targets.append(r + alpha * bonus + discount * soft)
    return np.array(targets)


@pytest.mark.slow
def test_the_page_runs_and_its_agent_learns_by_the_loss_that_it_states(capsys):
    names = run(PAGE)
    printed, promised = capsys.readouterr().out.splitlines(), promised_lines(PAGE)
    assert promised == ["(2,)", "(3,)"] and [line for line in printed if line in promised] == promised
    assert (names["metrics"]["return"] > 0.85).all(), "at random the corridor's return is below 0.5"

    agent, state = names["agent"], names["loop"].state.learner.agent
    rng = np.random.default_rng(0)
    S, S_next = rng.normal(size=(2, 6, 4)).astype(np.float32)
    A, Rn, In = rng.integers(2, size=6), rng.normal(size=6).astype(np.float32), np.float32([0.99, 0, 0.99, 0, 0.9, 1])
    zeros, ones, index = np.zeros(6, np.float32), np.ones(6, np.float32), np.arange(6)
    batch = TransitionBatch.from_values((S, A, zeros, Rn, In, S_next, None, None, ones, index, None))
    key = jax.random.key(0)
    values, next_values = (np.asarray(agent.values(state.target, key, x)) for x in (S, S_next))
    td_error = agent.loss(state.params, (), key, state.target, batch)[1].per_sample
    predicted = np.asarray(agent.values(state.params, key, S))[np.arange(6), A]
    expected = munchausen_targets(values, next_values, A, Rn, In) - predicted
    np.testing.assert_allclose(td_error, expected, rtol=1e-3, atol=1e-3)
