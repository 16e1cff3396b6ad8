"""Random actions: members of the space from a generator of the policy's own, with their log-probabilities."""

import copy

import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

import triax

from .networks import DISCRETE, REALS, SPACES, assert_member, assert_number, assert_trees_equal, env_of, s


def policy(space, seed=0):
    return triax.RandomPolicy(env_of(space), random_seed=seed)


@pytest.mark.parametrize("name", SPACES)
def test_actions_are_members_of_the_space_with_a_finite_log_probability(name):  # F38
    pi = policy(SPACES[name])
    a, logp = pi(s, return_logp=True)
    assert_number(logp)
    assert np.isfinite(logp)
    for action in (a, pi(s), pi.mode(s), pi.mean(s)):
        assert_member(action, SPACES[name])


LOG_PROBABILITIES = {
    "Discrete": (spaces.Discrete(5, start=2), lambda a: -np.log(5)),
    "MultiDiscrete": (spaces.MultiDiscrete([[2, 3], [4, 5]]), lambda a: -np.log(120)),
    "MultiBinary": (spaces.MultiBinary((2, 3)), lambda a: -np.log(64)),
    "bounded Box": (spaces.Box(-1.0, 3.0, (2,), np.float32), lambda a: stats.uniform(-1, 4).logpdf(a).sum()),
    "unbounded Box": (spaces.Box(-np.inf, np.inf, (3,), np.float64), lambda a: stats.norm().logpdf(a).sum()),
    "box above": (spaces.Box(1.0, np.inf, (), np.float64), lambda a: stats.expon(1).logpdf(a).sum()),
    "box below": (spaces.Box(-np.inf, 1.0, (2,), np.float64), lambda a: stats.expon().logpdf(1 - a).sum()),
    "integer Box": (spaces.Box(0, 255, (2,), np.uint8), lambda a: -2 * np.log(256)),
    "bool Box": (spaces.Box(0, 1, (3,), bool), lambda a: -3 * np.log(2)),
    "nested": (
        spaces.Dict(x=spaces.Tuple([spaces.Discrete(3), spaces.Box(0.0, 4.0, (1,))]), y=spaces.MultiBinary(2)),
        lambda a: -np.log(3 * 4 * 4),
    ),
}


@pytest.mark.parametrize("name", LOG_PROBABILITIES)
def test_the_log_probability_is_that_of_the_distribution_sampled_from(name):  # F38
    space, log_probability = LOG_PROBABILITIES[name]
    pi = policy(space)
    for _ in range(5):
        a, logp = pi(s, return_logp=True)
        assert logp == pytest.approx(log_probability(a), rel=1e-5)


INTEGERS = {
    "bounded": (0, 4),
    "bounded below": (3, np.inf),
    "bounded above": (-np.inf, -2),
    "unbounded": (-np.inf, np.inf),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_the_log_probability_of_integers_is_their_frequency(name):
    low, high = INTEGERS[name]
    pi = policy(spaces.Box(low, high, (), np.int64))
    draws = [pi(s, return_logp=True) for _ in range(2000)]
    claimed = {int(a): float(np.exp(logp)) for a, logp in draws}
    assert sum(claimed.values()) == pytest.approx(1, abs=0.01)
    frequent = [a for a, p in claimed.items() if 2000 * p > 10]
    counts = np.array([sum(int(b) == a for b, _ in draws) for a in frequent])
    p = np.array([claimed[a] for a in frequent])
    observed, expected = [*counts, 2000 - counts.sum()], [*(2000 * p), 2000 * max(1 - p.sum(), 1e-9)]
    keep = np.array(expected) > 5
    observed, expected = np.array(observed)[keep], np.array(expected)[keep]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_actions_are_uniform():
    counts = np.bincount(draws_of(policy(spaces.Discrete(4)), 1000), minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-3


def draws_of(pi, count):
    return [pi(s) for _ in range(count)]


def test_the_seed_decides_the_actions():
    first, same, other = (draws_of(policy(spaces.Discrete(9), seed), 12) for seed in (3, 3, 4))
    assert first == same != other
    pi = policy(spaces.Discrete(9), 4)
    pi.random_seed = 3
    assert draws_of(pi, 12) == first and pi.random_seed == 3


def test_the_environments_own_space_is_not_touched():  # F38
    space = spaces.Discrete(100)
    space.seed(0)
    expected = copy.deepcopy(space).sample()
    pi = policy(space, seed=1)
    draws_of(pi, 3)
    assert space.sample() == expected


@pytest.mark.parametrize("how", [lambda f: f.copy(), copy.copy, copy.deepcopy])
def test_a_copy_draws_other_actions_reproducibly(how):  # F39
    pi = policy(spaces.Discrete(50))
    draws = [draws_of(f, 10) for f in (how(pi), pi)]
    pi = policy(spaces.Discrete(50))
    assert draws == [draws_of(f, 10) for f in (how(pi), pi)]
    assert draws[0] != draws[1]


def test_its_parameters_are_those_of_its_samples():  # F38
    pi = policy(spaces.Dict(a=spaces.Discrete(3), b=spaces.MultiBinary(2)))
    zeros = {"a": {"logits": np.zeros(3)}, "b": ({"logits": np.zeros(2)}, {"logits": np.zeros(2)})}
    assert_trees_equal(pi.dist_params(s), zeros)


def test_a_box_has_no_parameters_and_says_so():  # F38
    with pytest.raises(NotImplementedError, match=r"RandomPolicy: samples of Box.* no dist_params"):
        policy(REALS.action_space).dist_params(s)


def test_it_is_a_policy_like_the_others():  # F38
    pi = triax.RandomPolicy(DISCRETE, random_seed=0)
    assert triax.functions.is_policy(pi)
    assert pi.params == {} and pi.function_state == {} and not pi.has_memory
    X, logp = pi.sample_func(pi.params, pi.function_state, pi.rng, np.stack([s, s]))
    assert X.shape == (2, 4)
    np.testing.assert_allclose(logp, -np.log(4), rtol=1e-5)
    a, logp, carry = pi(s, (), return_logp=True)
    assert a in DISCRETE.action_space and carry == ()
    pi.soft_update(pi.copy(), 0.5)
    assert str(pi) == "RandomPolicy(0 parameters)\n  S: Box(-inf, inf, (3,), float32)\n  A: Discrete(4)"


def test_spaces_that_are_not_those_of_gymnasium_are_refused():
    with pytest.raises(TypeError, match=r"RandomPolicy: env.action_space must be a gymnasium.*got NoneType"):
        triax.RandomPolicy(env_of(None))
    with pytest.raises(TypeError, match=r"RandomPolicy: env.observation_space"):
        triax.RandomPolicy(env_of(spaces.Discrete(2), int))


def test_a_positional_return_logp_is_refused():
    with pytest.raises(TypeError, match=r"RandomPolicy: .*return_logp is keyword-only"):
        policy(spaces.Discrete(2))(s, True)


def test_a_constant_component_of_a_box_is_certain():
    box = spaces.Box(np.float32([1, 0]), np.float32([1, 2]), dtype=np.float32)
    env = env_of(spaces.Discrete(2), box)
    _, logp = triax.RandomPolicy(env, random_seed=0)(0, return_logp=True)
    np.testing.assert_allclose(logp, -np.log(2), rtol=1e-6)
