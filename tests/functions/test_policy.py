"""Policies: actions are members of the space, and their log-probabilities those that a learner computes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

import triax
from triax.proba_dists import CategoricalDist, DiscretizedIntervalDist, NormalDist, SquashedNormalDist
from triax.spaces import batch_encoder

from .networks import (
    DISCRETE,
    KINDS,
    REALS,
    SPACES,
    assert_member,
    assert_number,
    assert_trees_close,
    env_of,
    func_of,
    s,
    stacked,
    without_batch,
)


def fresh_policy(env, kind="module", seed=0, **kwargs):
    return triax.Policy(func_of(triax.Policy.example_data(env, **kwargs), kind), env, random_seed=seed, **kwargs)


policy = functools.cache(fresh_policy)


def constant(dist_params):
    """A func that returns these parameters for every state."""
    dist_params = jax.tree.map(np.float32, dist_params, is_leaf=lambda x: isinstance(x, list))

    def func(S, is_training):
        return jax.tree.map(lambda p: jnp.broadcast_to(p, (len(S), *p.shape)), dist_params)

    return func


def relearned_logp(pi, a, dist_params):
    """What a learner computes from clean actions, as it gets them from a batch."""
    A = batch_encoder(pi.action_space, who="test", argument="A")(stacked(a, pi.action_space))
    X = pi.proba_dist.preprocess_variate(jax.random.key(0), A)
    params = jax.tree.map(lambda p: jnp.broadcast_to(p, (len(a), *p.shape)), dist_params)
    return np.asarray(pi.proba_dist.log_proba(params, X))


@pytest.fixture(scope="module", params=SPACES)
def any_policy(request):
    return policy(env_of(SPACES[request.param]))


def test_samples_and_modes_are_members_of_the_space(any_policy):
    for a in (any_policy(s), any_policy(s, return_logp=True)[0], any_policy.mode(s)):
        assert_member(a, any_policy.action_space)


def test_the_log_probability_is_the_one_that_a_learner_computes(any_policy):  # F28, F29, pitfall 29
    draws = [any_policy(s, return_logp=True) for _ in range(8)]
    assert_number(draws[0][1])
    logp = np.array([logp for _, logp in draws])
    relearned = relearned_logp(any_policy, [a for a, _ in draws], any_policy.dist_params(s))
    np.testing.assert_allclose(np.exp(logp - relearned), 1, atol=1e-5)


@pytest.mark.parametrize("mu", [-40.0, 40.0])
@pytest.mark.parametrize("dist", [NormalDist, SquashedNormalDist])
def test_the_ratio_is_one_where_the_squashing_saturates(mu, dist):  # F28, pitfall 16
    params = {"mu": [mu, 0.0], "logvar": [4.0, 12.0]}
    pi = triax.Policy(constant(params), REALS, proba_dist=dist(REALS.action_space), random_seed=0)
    draws = [pi(s, return_logp=True) for _ in range(10)]
    logp = np.array([logp for _, logp in draws])
    relearned = relearned_logp(pi, [a for a, _ in draws], pi.dist_params(s))
    assert np.isfinite(logp).all()
    np.testing.assert_allclose(np.exp(logp - relearned), 1, atol=1e-5)


def test_the_log_probability_of_a_discrete_action_is_its_own():  # F29: not that of a relaxed sample
    logits = np.array([0.3, -1.0, 2.0, 0.0])
    pi = triax.Policy(constant({"logits": logits}), DISCRETE, random_seed=0)
    for _ in range(20):
        a, logp = pi(s, return_logp=True)
        assert logp == pytest.approx(logits[a] - np.log(np.exp(logits).sum()), abs=1e-5)


def test_discrete_actions_come_as_often_as_their_probabilities_say():
    probabilities = np.array([0.1, 0.2, 0.3, 0.4])
    env = env_of(spaces.Discrete(4, start=10))
    pi = triax.Policy(constant({"logits": np.log(probabilities)}), env, random_seed=0)
    counts = np.bincount([pi(s) - 10 for _ in range(1500)], minlength=4)
    assert stats.chisquare(counts, 1500 * probabilities).pvalue > 1e-3


def test_box_actions_are_the_image_of_a_normal_variable():
    low, high = REALS.action_space.low, REALS.action_space.high
    pi = triax.Policy(constant({"mu": [0.5, -1.0], "logvar": np.log([0.25, 4.0])}), REALS, random_seed=0)
    a = np.array([pi(s) for _ in range(400)], np.float64)
    u = np.log((a - low) / (high - a))
    for column, mu, sigma in zip(u.T, (0.5, -1.0), (0.5, 2.0), strict=True):
        assert stats.kstest(column, stats.norm(mu, sigma).cdf).pvalue > 1e-3


def test_the_mode_of_a_policy_is_its_most_probable_action():
    pi = triax.Policy(constant({"logits": [0.0, 3.0, 1.0, 2.9]}), DISCRETE, random_seed=0)
    assert pi.mode(s) == pi.mean(s) == 1


def test_the_mean_of_a_box_policy_is_the_squashed_mu():  # F30, as documented
    pi = triax.Policy(constant({"mu": [1.0, -2.0], "logvar": [0.0, 0.0]}), REALS, random_seed=0)
    expected = -2 + 5 / (1 + np.exp([-1.0, 2.0]))
    np.testing.assert_allclose(pi.mean(s), expected, rtol=1e-5)
    np.testing.assert_allclose(pi.mode(s), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_func_gives_the_dist_params_that_it_returns(kind):
    pi = policy(DISCRETE, kind)
    S = pi.observation_preprocessor(None, s)
    output, _ = pi.function(pi.params, pi.function_state, jax.random.key(0), S, False)
    assert_trees_close(pi.dist_params(s), without_batch(output))
    assert_member(pi(s), DISCRETE.action_space)


def test_results_are_host_values():  # F43
    pi = policy(env_of(SPACES["Tuple"]))
    _, logp = pi(s, return_logp=True)
    leaves = jax.tree.leaves((logp, pi.dist_params(s)))
    assert all(type(leaf) is np.ndarray for leaf in leaves)


def test_pure_functions_give_raw_variates_and_their_log_probability():
    pi = policy(DISCRETE)
    S = np.stack([s, -s, 0 * s])
    args = pi.params, pi.function_state, jax.random.key(1), S
    X, logp = pi.sample_func(*args)
    logits = pi.function(*args, False)[0]["logits"]
    expected = jax.nn.log_softmax(logits)[np.arange(3), X.argmax(-1)]
    np.testing.assert_allclose(logp, expected, rtol=1e-5)
    np.testing.assert_allclose(pi.mean_func(*args), jax.nn.softmax(logits), rtol=1e-5)
    np.testing.assert_array_equal(pi.mode_func(*args).argmax(-1), logits.argmax(-1))


def test_pure_samples_are_differentiable_in_the_weights():
    pi = policy(REALS)
    gradient = jax.grad(lambda params: pi.sample_func(params, {}, jax.random.key(0), s[None])[0].sum())(pi.params)
    assert all(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient))


def test_a_binned_distribution_gives_actions_of_the_box_that_it_is_over():
    space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    dist = DiscretizedIntervalDist(space, num_bins=4)
    pi = policy(env_of(space), proba_dist=dist)
    for _ in range(5):
        a, logp = pi(s, return_logp=True)
        assert_member(a, space)
        assert np.isclose(a, dist.atoms).any()
        assert np.exp(logp - relearned_logp(pi, [a], pi.dist_params(s))) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "dist, said",
    [
        (CategoricalDist(spaces.Discrete(5)), r"proba_dist must be over Discrete\(4\); got one over Discrete\(5\)"),
        (CategoricalDist, "proba_dist must be a distribution"),
    ],
)
def test_a_distribution_over_another_space_is_refused(dist, said):
    with pytest.raises(TypeError, match=f"Policy: {said}"):
        triax.Policy(constant({"logits": np.zeros(4)}), DISCRETE, proba_dist=dist)


@pytest.mark.parametrize(
    "env, argument, found",
    [
        (env_of(None), "env.action_space", "NoneType"),
        (env_of(spaces.Discrete(2), (3,)), "env.observation_space", "tuple"),
        (None, "env.action_space", "NoneType"),
        (env_of(spaces.Text(5)), "env.action_space", "Text"),
    ],
)
def test_spaces_that_are_not_those_of_gymnasium_are_refused(env, argument, found):
    with pytest.raises(TypeError, match=f"Policy: {argument}.*{found}"):
        triax.Policy(constant({"logits": np.zeros(2)}), env)


@pytest.mark.parametrize(
    "dist_params, said",
    [
        ({"mu": np.zeros(4)}, "structure"),
        (np.zeros(4), "structure"),
        ({"logits": np.zeros(5)}, r"\['logits'\]: \(8, 5\) float32 \(expected \(8, 4\) float32\)"),
    ],
)
def test_a_wrong_tree_or_shape_of_func_is_refused(dist_params, said):
    with pytest.raises(TypeError, match=f"(?s)Policy: func must return distribution parameters.*{said}"):
        triax.Policy(constant(dist_params), DISCRETE)


def test_a_tuple_is_not_a_list():
    env = env_of(spaces.MultiDiscrete([2, 3]))
    with pytest.raises(TypeError, match="Tuples, lists and dicts are told apart"):
        triax.Policy(lambda S, is_training: [{"logits": jnp.zeros((len(S), n))} for n in (2, 3)], env)


def test_integer_outputs_are_refused():
    with pytest.raises(TypeError, match=r"\['logits'\]: \(8, 4\) int32 \(expected \(8, 4\) float32\)"):
        triax.Policy(lambda S, is_training: {"logits": jnp.zeros((len(S), 4), jnp.int32)}, DISCRETE)


def test_numpy_outputs_are_refused():
    with pytest.raises(TypeError, match=r"must be JAX arrays; got \['ndarray'\]"):
        triax.Policy(lambda S, is_training: {"logits": np.zeros((len(S), 4), np.float32)}, DISCRETE)


@pytest.mark.parametrize("bad", [np.zeros(4), np.array([0, np.nan, 0]), "abc", {"a": 1}])
def test_a_bad_observation_is_refused_and_changes_nothing(bad):
    pi, twin = policy(DISCRETE), policy(DISCRETE).copy()
    twin.random_seed = pi.random_seed = 1
    with pytest.raises(ValueError, match="Policy: s"):
        pi(bad)
    assert [pi(s) for _ in range(10)] == [twin(s) for _ in range(10)]


def test_a_carry_comes_back_after_the_result_and_the_log_probability():
    pi = policy(DISCRETE, "memory")
    carry = pi.initial_carry()
    a, logp, carry = pi(s, carry, return_logp=True)
    a2, carry = pi(s, carry)
    mode, _ = pi.mode(s, carry)
    for action in (a, a2, mode):
        assert_member(action, DISCRETE.action_space)
    assert logp == pytest.approx(-np.log(4), abs=1e-5)  # the first input that the network sees is zero, so is its bias


def test_a_delayed_policy_answers_to_the_observation_before():
    pi = policy(DISCRETE, "memory")
    kernel = jax.tree.leaves(pi.params)[1]
    assert kernel.shape == (3, 4)
    _, carry = pi(s, pi.initial_carry())
    params, _ = pi.dist_params(-s, carry)
    np.testing.assert_allclose(params["logits"], s @ kernel, rtol=1e-5)


def test_a_positional_return_logp_is_refused():
    with pytest.raises(TypeError, match=r"Policy: .*got True. return_logp is keyword-only"):
        policy(DISCRETE)(s, True)
