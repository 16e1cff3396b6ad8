"""Steps of burn-in only bring memories up to date: as if the sequence began after them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import triax
from triax.policy_objectives import PPOClip, VanillaPG
from triax.td_learning import DoubleQLearning, ExpectedSarsa, QLearning, Sarsa, SimpleTD, SoftQLearning

from .trajectories import ENV, RNG, B, T, make_trajectory, recurrent_policy, recurrent_q, recurrent_v

BURN_IN = 4
"""One episode ends within them, one right after."""


def carry_after(f, carry, trajectory):
    """The memory after the burn-in, by calls of one environment and one step."""
    rows = []
    for b in range(B):
        row = jax.tree.map(lambda leaf, b=b: leaf[b : b + 1], carry)
        for t in range(BURN_IN):
            _, row = f(trajectory.S[t, b], carry=row)
            if trajectory.done[t, b]:
                row = f.initial_carry()
        rows.append(row)
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows)


def used(f):
    """A memory in the middle of an episode."""
    return jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape), leaf.dtype), f.initial_carry(B))


def with_and_without(trained, roles):
    """A trajectory with a burn-in, and what is left of it with the memories that stepping gives."""
    carry, carries = used(trained), {role: used(f) for role, f in roles.items()}
    whole = make_trajectory(carry=carry, carries=carries, burn_in=BURN_IN)
    assert whole.done[: BURN_IN - 1].any()
    later = {
        name: getattr(whole, name)[BURN_IN:] for name in ("S", "A", "logP", "R", "terminated", "truncated", "S_next")
    }
    carries = {role: carry_after(f, carries[role], whole) for role, f in roles.items()}
    cut = dataclasses.replace(whole, **later, carry=carry_after(trained, carry, whole), carries=carries, burn_in=0)
    return whole, cut


def assert_same_gradients(rule, whole, cut, *args):
    (grads, _, metrics, *_), (expected, _, wanted, *_) = (rule.grads_and_metrics(x, *args) for x in (whole, cut))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), grads, expected)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected)) > 1e-3
    assert metrics.keys() == wanted.keys()
    for name in metrics:
        np.testing.assert_allclose(metrics[name], wanted[name], rtol=1e-4, atol=1e-5, err_msg=name)


def rules():
    q, q_targ = (triax.Q(recurrent_q, ENV, random_seed=seed) for seed in range(2))
    v, v_targ = (triax.V(recurrent_v, ENV, random_seed=seed) for seed in range(2))
    pi = triax.Policy(recurrent_policy, ENV, random_seed=0)
    return {
        "SimpleTD": (lambda: SimpleTD(v, v_targ), v, {"v_targ": v_targ}),
        "Sarsa": (lambda: Sarsa(q, q_targ), q, {"q_targ": q_targ}),
        "ExpectedSarsa": (lambda: ExpectedSarsa(q, pi, q_targ), q, {"q_targ": q_targ, "pi_targ": pi}),
        "QLearning": (lambda: QLearning(q, q_targ=q_targ), q, {"q_targ": q_targ}),
        "DoubleQLearning": (lambda: DoubleQLearning(q, q_targ=q_targ), q, {"q_targ": q_targ}),
        "SoftQLearning": (lambda: SoftQLearning(q, q_targ=q_targ, temperature=0.3), q, {"q_targ": q_targ}),
    }


@pytest.mark.parametrize(
    "name", ["SimpleTD", "Sarsa", "ExpectedSarsa", "QLearning", "DoubleQLearning", "SoftQLearning"]
)
def test_a_rule_learns_as_if_the_sequence_began_after_it(name):
    make, trained, roles = rules()[name]
    whole, cut = with_and_without(trained, roles)
    rule = make()
    np.testing.assert_allclose(rule.td_error(whole), rule.td_error(cut), atol=1e-5)
    assert_same_gradients(rule, whole, cut)


@pytest.mark.parametrize("objective", [VanillaPG, PPOClip])
def test_a_policy_learns_as_if_the_sequence_began_after_it(objective):
    pi = triax.Policy(recurrent_policy, ENV, random_seed=0)
    whole, cut = with_and_without(pi, {})
    advantages = RNG.normal(size=(T - BURN_IN, B)).astype(np.float32)
    assert_same_gradients(objective(pi), whole, cut, advantages)
