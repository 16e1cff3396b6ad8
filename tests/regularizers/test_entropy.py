"""Entropy over n steps, against a loop over episodes; defaults and checks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Tuple

import triax
from linear_functions import (
    ACTIONS,
    BINS,
    OBSERVATIONS,
    STATE,
    OfState,
    Tree,
    as_normal,
    batch,
    entropy_of,
    make_binned_q,
    make_policy,
    normal,
)
from triax.regularizers import EntropyRegularizer, NStepEntropyRegularizer
from triax.reward_tracing import NStep

KEY = jax.random.PRNGKey(0)
LENGTHS = (5, 1, 3, 4)
N, GAMMA, BETA = 3, 0.8, 0.7
LOG_2PI = np.log(2 * np.pi)


def env_of(action_space):
    return type("Env", (), {"observation_space": OBSERVATIONS, "action_space": action_space})


POLICIES = {
    "discrete": (
        Discrete(ACTIONS),
        ACTIONS,
        lambda x: {"logits": x},
        entropy_of,
    ),
    "continuous": (
        Box(-np.inf, np.inf, (2,), np.float32),
        4,
        lambda x: {"mu": x[:, :2], "logvar": x[:, 2:]},
        lambda x: 0.5 * np.sum(1 + LOG_2PI + x[..., 2:], axis=-1),
    ),
    "composite": (
        Tuple((Discrete(3), Box(-np.inf, np.inf, (1,), np.float32))),
        5,
        lambda x: ({"logits": x[:, :3]}, {"mu": x[:, 3:4], "logvar": x[:, 4:]}),
        lambda x: entropy_of(x[..., :3]) + 0.5 * (1 + LOG_2PI + x[..., 4]),
    ),
}


def traced_episodes(action_space):
    """Episodes that terminate or are truncated, in turn; the batch, and the states of each episode with its end."""
    rng, tracer, rows, episodes = np.random.default_rng(0), NStep(n=N, gamma=GAMMA, record_extra_info=True), [], []
    action_space.seed(0)
    for number, length in enumerate(LENGTHS):
        terminates = number % 2 == 0
        states = rng.normal(size=(length + 1, STATE)).astype(np.float32)
        episodes.append((states, terminates))
        for t in range(length):
            last = t == length - 1
            tracer.add(
                states[t],
                action_space.sample(),
                1.0,
                last and terminates,
                truncated=last and not terminates,
                s_next=states[t + 1],
            )
            while tracer:
                rows.append(tracer.pop())
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *rows), episodes


def loop(episodes, offsets, entropy):
    """Step by step: states that the policy saw or will see in this episode count, in no other."""
    terms = []
    for states, terminates in episodes:
        last_seen = len(states) - 2 if terminates else len(states) - 1  # a truncated one bootstraps from its end
        for t in range(len(states) - 1):
            reached = [k for k in offsets if t + k <= last_seen]
            terms.append(-BETA * sum(GAMMA**k * entropy(states[t + k]) for k in reached))
    return np.array(terms)


@pytest.mark.parametrize("offsets", [(0, 1, 2, 3), (3,), (3, 0, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("kind", POLICIES)
def test_the_sum_over_offsets_is_masked_by_every_step_before(kind, offsets):  # F57
    space, size, make, entropy = POLICIES[kind]
    w = normal(STATE, size, seed=3)
    pi = triax.Policy(Tree(OfState(w), make), env_of(space), random_seed=0)
    made, episodes = traced_episodes(space)
    regularizer = NStepEntropyRegularizer(pi, offsets, BETA, GAMMA)
    term, metrics = regularizer.batch_eval(pi.params, regularizer.hyperparams, {}, KEY, made)
    expected = loop(episodes, offsets, lambda state: entropy((state @ w)[None])[0])
    np.testing.assert_allclose(term, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(metrics["EntropyRegularizer/beta"], BETA, rtol=1e-6)
    counted = [
        entropy((states[t + k] @ w)[None])[0]
        for states, terminates in episodes
        for t in range(len(states) - 1)
        for k in offsets
        if t + k <= len(states) - 1 - terminates
    ]
    np.testing.assert_allclose(metrics["EntropyRegularizer/entropy"], np.mean(counted), rtol=1e-3)


def test_the_target_term_is_that_of_the_batch():
    space, size, make, _ = POLICIES["discrete"]
    pi = triax.Policy(Tree(OfState(normal(STATE, size)), make), env_of(space), random_seed=0)
    made, _ = traced_episodes(space)
    regularizer = NStepEntropyRegularizer(pi, [N], BETA, GAMMA)
    args = pi.params, regularizer.hyperparams, {}, KEY, made
    np.testing.assert_array_equal(regularizer.target_term(*args)[0], regularizer.batch_eval(*args)[0])


def test_states_after_the_end_do_not_count_even_if_they_are_infinite():
    space, size, make, _ = POLICIES["continuous"]
    pi = triax.Policy(Tree(OfState(normal(STATE, size)), make), env_of(space), random_seed=0)
    made, _ = traced_episodes(space)
    regularizer = NStepEntropyRegularizer(pi, [0, N], BETA, GAMMA)

    def evaluate(made):
        return regularizer.batch_eval(pi.params, regularizer.hyperparams, {}, KEY, made)

    before = np.array(evaluate(made)[0])
    ended = np.any(np.stack(made.extra_info["dones"][:N]), axis=0)
    made.extra_info["states"][N][ended] = np.inf
    after, metrics = evaluate(made)
    np.testing.assert_array_equal(after, before)
    assert np.isfinite(metrics["EntropyRegularizer/entropy"])


def test_steps_are_valid_up_to_and_including_the_first_end():
    dones = np.array([[False, True, False], [True, False, False], [False, True, False], [True, False, False]])
    expected = [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]]
    valid = NStepEntropyRegularizer.valid_from_done
    np.testing.assert_array_equal(valid(dones), expected)
    np.testing.assert_array_equal(jax.jit(valid)(jnp.asarray(dones)), expected)
    np.testing.assert_array_equal(valid(dones[:, 0]), [1, 1, 0, 0])


def test_offsets_may_be_any_sequence_of_integers_and_are_fixed():
    pi = make_policy(normal(STATE, ACTIONS))
    for n in ((1, 2), [1, 2], np.array([1, 2]), jnp.array([1, 2])):
        regularizer = NStepEntropyRegularizer(pi, n)
        assert regularizer.n == regularizer.recorded_steps == (1, 2)
    with pytest.raises(AttributeError):
        regularizer.n = (3,)
    assert EntropyRegularizer(pi).recorded_steps == ()


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (3, TypeError, "n must be a tuple, list or array of offsets; got int"),
        (range(3), TypeError, "n must be a tuple, list or array of offsets; got range"),
        ([0.5], TypeError, "n must hold integers"),
        ([], ValueError, "n must be a non-empty list of non-negative offsets"),
        ([0, -1], ValueError, "n must be a non-empty list of non-negative offsets"),
    ],
)
def test_other_offsets_are_refused(n, error, message):
    with pytest.raises(error, match=f"NStepEntropyRegularizer: {message}"):
        NStepEntropyRegularizer(make_policy(normal(STATE, ACTIONS)), n)


def test_functions_of_state_and_action_have_no_entropy_of_later_states():
    with pytest.raises(TypeError, match="NStepEntropyRegularizer: f must be a function of the state; got StochasticQ"):
        NStepEntropyRegularizer(make_binned_q(normal(STATE, ACTIONS * BINS)), [0])


def test_batches_must_be_recorded_and_reach_far_enough():
    pi = make_policy(normal(STATE, ACTIONS))
    regularizer = NStepEntropyRegularizer(pi, [N + 1])
    args = pi.params, regularizer.hyperparams, {}, KEY
    with pytest.raises(TypeError, match=r"NStepEntropyRegularizer: batch\.extra_info is missing.*record_extra_info"):
        regularizer.batch_eval(*args, batch())
    with pytest.raises(ValueError, match=f"NStepEntropyRegularizer: n reaches {N + 1} steps ahead.*n={N}"):
        regularizer.batch_eval(*args, traced_episodes(Discrete(ACTIONS))[0])


def test_numbers_are_attributes_with_the_defaults_of_the_contract():
    pi = triax.Policy(Tree(OfState(normal(STATE, 2)), as_normal), env_of(Box(-np.inf, np.inf, (2,), np.float32)))
    assert EntropyRegularizer(pi).beta == 0.001
    regularizer = NStepEntropyRegularizer(pi, [0])
    assert (regularizer.beta, regularizer.gamma) == (0.001, 0.99)
    regularizer.beta, regularizer.gamma = 0.5, 0.9
    assert {name: float(value) for name, value in regularizer.hyperparams.items()} == pytest.approx(
        {"beta": 0.5, "gamma": 0.9}
    )
