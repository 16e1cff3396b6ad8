"""Epsilon-greedy and Boltzmann policies: their probabilities, and the one number that may change at any time."""

import copy
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy import special, stats

import triax
from triax.losses.value_transforms import LogTransform

from .networks import DISCRETE, REALS, assert_member, assert_number, env_of, func_of, s

START = env_of(spaces.Discrete(4, start=-1))
VALUES = np.array([0.3, 0.8, 0.8, -0.5], np.float32)


def constant(S, is_training):
    return jnp.broadcast_to(VALUES, (len(S), 4))


@functools.cache
def tied_q(value_transform=None):
    return triax.Q(constant, START, value_transform=value_transform, random_seed=0)


@functools.cache
def linear_q(cls=triax.Q, kind="module", **kwargs):
    return cls(func_of(cls.example_data(DISCRETE, **kwargs).type2, kind), DISCRETE, random_seed=0, **kwargs)


@pytest.fixture(scope="module")
def epsilon_greedy():
    return triax.EpsilonGreedy(tied_q())


@pytest.fixture(scope="module")
def boltzmann():
    return triax.BoltzmannPolicy(tied_q())


def probabilities(pi):
    return special.softmax(pi.dist_params(s)["logits"].astype(np.float64))


def expected_epsilon_greedy(epsilon):
    return (1 - epsilon) * np.array([0, 0.5, 0.5, 0]) + epsilon / 4


@pytest.mark.parametrize("epsilon", [0, 0.1, 0.5, 1, np.float32(0.25), np.float64(0.75), jnp.float32(0.5)])
def test_epsilon_is_shared_by_all_and_the_rest_by_the_tied_best(epsilon_greedy, epsilon):
    epsilon_greedy.epsilon = epsilon
    np.testing.assert_allclose(probabilities(epsilon_greedy), expected_epsilon_greedy(float(epsilon)), atol=1e-6)


@pytest.mark.parametrize("temperature", [0.02, 1, np.float32(0.5), 100.0])
def test_boltzmann_probabilities_are_a_softmax_of_values(boltzmann, temperature):
    boltzmann.temperature = temperature
    np.testing.assert_allclose(probabilities(boltzmann), special.softmax(VALUES / temperature), atol=1e-5)
    np.testing.assert_allclose(boltzmann.dist_params(s)["logits"], VALUES / temperature, rtol=1e-6)


def test_boltzmann_takes_the_networks_own_values():  # section 4: transformed ones
    pi = triax.BoltzmannPolicy(tied_q(LogTransform(0.1)), temperature=0.5)
    np.testing.assert_allclose(probabilities(pi), special.softmax(VALUES / 0.5), atol=1e-5)


def test_actions_come_as_often_as_their_probabilities_say(epsilon_greedy, boltzmann):
    epsilon_greedy.epsilon, boltzmann.temperature = 0.4, 0.6
    for pi in (epsilon_greedy, boltzmann):
        counts = np.bincount([pi(s) + 1 for _ in range(800)], minlength=4)
        assert stats.chisquare(counts, 800 * probabilities(pi)).pvalue > 1e-3


def test_actions_are_members_with_their_own_log_probability(epsilon_greedy):  # F23, F29
    epsilon_greedy.epsilon = 0.7
    for _ in range(10):
        a, logp = epsilon_greedy(s, return_logp=True)
        assert_member(a, START.action_space)
        assert_number(logp)
        assert logp == pytest.approx(np.log(expected_epsilon_greedy(0.7)[a + 1]), abs=1e-5)


def test_tied_greedy_actions_are_picked_at_random(epsilon_greedy):
    epsilon_greedy.epsilon = 0.0
    assert {epsilon_greedy(s) for _ in range(40)} == {epsilon_greedy.mode(s) for _ in range(40)} == {0, 1}


def test_the_number_is_kept_as_it_was_given(epsilon_greedy):
    epsilon_greedy.epsilon = 0.1
    assert epsilon_greedy.epsilon == 0.1
    assert triax.EpsilonGreedy(tied_q()).epsilon == 0.1
    assert triax.BoltzmannPolicy(tied_q()).temperature == 0.02


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, np.nan, np.inf])
def test_an_epsilon_that_is_no_probability_is_refused(epsilon_greedy, epsilon):
    epsilon_greedy.epsilon = 0.3
    with pytest.raises(ValueError, match=r"EpsilonGreedy: epsilon must be in \[0, 1\]; got"):
        epsilon_greedy.epsilon = epsilon
    with pytest.raises(ValueError, match="EpsilonGreedy: epsilon"):
        triax.EpsilonGreedy(tied_q(), epsilon)
    assert epsilon_greedy.epsilon == 0.3


@pytest.mark.parametrize("temperature", [0, -1.0, np.nan, np.inf])
def test_a_temperature_that_is_not_positive_is_refused(boltzmann, temperature):
    with pytest.raises(ValueError, match="BoltzmannPolicy: temperature must be positive and finite; got"):
        boltzmann.temperature = temperature


@pytest.mark.parametrize("number", ["0.1", np.zeros(2), [0.1]])
def test_something_else_than_a_number_is_refused(epsilon_greedy, number):
    with pytest.raises(TypeError, match="EpsilonGreedy: epsilon must be a number; got"):
        epsilon_greedy.epsilon = number


@pytest.mark.parametrize("value_range", [(-2.0, 2.0), None])
def test_a_distributional_q_enters_through_its_mean(value_range):
    q = linear_q(triax.StochasticQ, value_range=value_range, num_bins=5)
    pi = triax.BoltzmannPolicy(q, temperature=0.5)
    np.testing.assert_allclose(probabilities(pi), special.softmax(np.array(q.mean(s)) / 0.5), atol=1e-4)
    assert triax.EpsilonGreedy(q, 0.0).mode(s) == np.argmax(q.mean(s))


def test_a_q_function_of_type_1_serves_too():
    q = triax.Q(func_of(triax.Q.example_data(DISCRETE).type1), DISCRETE, random_seed=0)
    assert triax.EpsilonGreedy(q, 0.0)(s) == q(s).argmax()


@pytest.mark.parametrize("cls", [triax.EpsilonGreedy, triax.BoltzmannPolicy])
def test_other_functions_and_spaces_are_refused(cls):
    v = triax.V(lambda S, is_training: S.sum(-1), DISCRETE)
    with pytest.raises(TypeError, match=f"{cls.__name__}: q must be a q-function .*; got V"):
        cls(v)
    q = triax.Q(lambda S, A, is_training: S.sum(-1), REALS)
    with pytest.raises(TypeError, match=f"{cls.__name__}: q must have a Discrete action space; got Box"):
        cls(q)


def test_a_bad_observation_names_the_policy(epsilon_greedy):
    with pytest.raises(ValueError, match="EpsilonGreedy: s must be an element of Box"):
        epsilon_greedy(np.zeros(5))


# ------------------------------------------------------------------ weights


def test_params_are_the_number_and_those_of_q():
    q = linear_q().copy()
    pi = triax.EpsilonGreedy(q, epsilon=0.3)
    assert set(pi.params) == {"epsilon", "q"} and pi.params["epsilon"] == np.float32(0.3)
    jax.tree.map(np.testing.assert_array_equal, pi.params["q"], q.params)
    assert pi.function_state == q.function_state


@pytest.mark.parametrize("number", [0.75, np.float32(0.75), jnp.float32(0.75)])
def test_assigned_params_are_written_through_to_q(number):
    q = linear_q().copy()
    pi = triax.EpsilonGreedy(q)
    pi.params = {"epsilon": number, "q": jax.tree.map(lambda p: p * 0, q.params)}
    assert pi.epsilon == 0.75
    np.testing.assert_array_equal(q(s), 0)


@pytest.mark.parametrize(
    "change, error, said",
    [
        (lambda p: {"q": p["q"]}, TypeError, "epsilon"),
        (lambda p: {**p, "q": {}}, TypeError, "missing"),
        (lambda p: {**p, "epsilon": 2.0}, ValueError, "epsilon must be in"),
        (lambda p: {**p, "epsilon": np.zeros(3)}, TypeError, "epsilon must be a number"),
        (lambda p: 3, TypeError, "params"),
    ],
)
def test_params_that_do_not_fit_are_refused_and_change_nothing(change, error, said):
    q = linear_q().copy()
    pi, before = triax.EpsilonGreedy(q, 0.3), q(s)
    params = {**pi.params, "q": jax.tree.map(lambda p: p + 1, pi.params["q"])}
    with pytest.raises(error, match=f"(?s)EpsilonGreedy.*{said}"):
        pi.params = change(params)
    assert pi.epsilon == 0.3
    np.testing.assert_array_equal(q(s), before)


def test_seed_and_key_are_those_of_q():
    q = linear_q().copy()
    pi = triax.EpsilonGreedy(q, 1.0)
    pi.random_seed = 5
    assert q.random_seed == pi.random_seed == 5
    draws = [pi(s) for _ in range(12)]
    q.random_seed = 5
    assert draws == [pi(s) for _ in range(12)]


@pytest.mark.parametrize("how", [lambda f: f.copy(), copy.copy, copy.deepcopy])
def test_a_copy_has_a_q_and_a_number_of_its_own(how):
    pi = triax.EpsilonGreedy(linear_q().copy(), 1.0)
    twin = how(pi)
    draws = [[f(s) for _ in range(16)] for f in (pi, twin)]
    assert draws[0] != draws[1]  # F39
    twin.epsilon = 0.0
    twin.q.params = jax.tree.map(lambda p: -p, twin.q.params)
    assert pi.epsilon == 1.0
    np.testing.assert_array_equal(twin.q(s), -pi.q(s))


def test_a_soft_update_moves_q_and_the_number():
    pi = triax.EpsilonGreedy(linear_q().copy(), 0.0)
    other = triax.EpsilonGreedy(linear_q().copy(), 1.0)
    other.q.params = jax.tree.map(lambda p: p + 4, other.q.params)
    expected = jax.tree.map(lambda p: np.asarray(p) + 1, pi.q.params)
    pi.soft_update(other, 0.25)
    assert pi.epsilon == 0.25
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), pi.q.params, expected)
    with pytest.raises(TypeError, match=r"EpsilonGreedy.soft_update: other must be a EpsilonGreedy; got Boltz"):
        pi.soft_update(triax.BoltzmannPolicy(linear_q()), 0.5)


# ------------------------------------------------------------------ pure functions and the carry


def test_pure_functions_take_the_number_from_params():
    pi = triax.EpsilonGreedy(linear_q(), 0.5)
    best = pi.q(s).argmax()
    params = {**pi.params, "epsilon": jnp.float32(0.0)}
    rng, state = jax.random.key(0), pi.function_state
    output, _ = pi.function(params, state, rng, s[None], False)
    assert output["logits"].shape == (1, 4) and output["logits"].argmax() == best
    X, logp = pi.sample_func(params, state, rng, s[None])
    assert X.argmax() == best and logp[0] == pytest.approx(0, abs=1e-5)
    assert pi.mode_func(params, state, rng, s[None]).argmax() == best
    np.testing.assert_allclose(pi.mean_func(pi.params, state, rng, s[None]).max(), 0.5 + 0.5 / 4, rtol=1e-5)


def test_the_carry_is_that_of_q():
    q = linear_q(kind="memory")
    pi = triax.EpsilonGreedy(q, epsilon=0.0)
    bias, kernel = jax.tree.leaves(q.params)
    assert pi.has_memory
    a, logp, carry = pi(s, pi.initial_carry(), return_logp=True)
    assert_member(a, DISCRETE.action_space), assert_number(logp)
    a, carry = pi(-s, carry)
    assert a == (s @ kernel + bias).argmax()  # a step late
    mode, _ = pi.mode(s, carry)
    assert mode == (-s @ kernel + bias).argmax()
    with pytest.raises(TypeError, match=r"EpsilonGreedy: func has memory, so a call needs its carry, .*; got none"):
        pi(s)


def test_a_positional_return_logp_is_refused(epsilon_greedy):
    with pytest.raises(TypeError, match=r"EpsilonGreedy: .*return_logp is keyword-only"):
        epsilon_greedy(s, True)
