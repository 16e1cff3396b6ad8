"""Samplers: densities by numeric integration, counts of draws, replay, masks."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from triax.networks import DistributionSampler, NormalTanhSampler, Parallel, Sequential, SizeError
from triax.proba_dists import DiscretizedIntervalDist, SquashedNormalDist

from .laws import BATCH, TIME, Pure, assert_trees_close, assert_unroll_equals_stepping, normals

NO_RESETS = jnp.zeros((TIME, BATCH), bool)
SPACES = {
    "discrete": gym.spaces.Discrete(3, start=5),
    "multi-discrete": gym.spaces.MultiDiscrete([2, 4]),
    "binary": gym.spaces.MultiBinary(3),
    "box": gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 9.0], np.float32)),
    "nested": gym.spaces.Dict(
        gear=gym.spaces.Discrete(2), arms=gym.spaces.Tuple([gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(3)])
    ),
}


def squashed(u, mu, sigma):
    """Density of tanh(u), from SciPy's normal."""
    return stats.norm.pdf(u, mu, sigma) / (1 - np.tanh(u) ** 2)


def test_log_likelihood_is_a_density_on_the_interval():
    sampler = NormalTanhSampler(nnx.Rngs(0), 0.0, min_std=0.1, std_scale=0.5)
    mu, r = 0.4, 0.3
    sigma = (np.log1p(np.exp(r)) + 0.1) * 0.5
    us = np.array([-1.0, 0.2, 3.0])
    out = sampler((), jnp.tile(jnp.array([[mu, r]]), (3, 1)), jnp.asarray(us[:, None], jnp.float32))
    np.testing.assert_allclose(out.output["log_likelihood"], np.log(squashed(us, mu, sigma)), rtol=1e-4)
    np.testing.assert_allclose(out.metrics["sigma"][:, 0], sigma, rtol=1e-6)
    total, _ = integrate.quad(lambda a: squashed(np.arctanh(a), mu, sigma), -1 + 1e-9, 1 - 1e-9)
    assert abs(total - 1) < 1e-6


def test_log_likelihood_is_finite_for_its_own_samples_at_any_scale():  # pitfall 16
    sampler = NormalTanhSampler(nnx.Rngs(0), 0.1)
    out = sampler((), jnp.array([[0.0, 500.0], [300.0, 5.0], [-40.0, -40.0]]))
    assert np.all(np.isfinite(out.output["log_likelihood"])) and np.all(np.isfinite(out.regularization_loss))
    assert np.all(np.abs(out.output["action"]) <= 1)


def test_the_loss_estimates_the_entropy_of_the_action_without_bias():
    sampler, n = NormalTanhSampler(nnx.Rngs(0), entropy_weight=2.0), 20_000
    out = sampler((), jnp.tile(jnp.array([[0.5, 0.2]]), (n, 1)))
    sigma = np.log1p(np.exp(0.2)) + 1e-3
    entropy, _ = integrate.quad(lambda u: -stats.norm.pdf(u, 0.5, sigma) * np.log(squashed(u, 0.5, sigma)), -9, 9)
    assert abs(out.regularization_loss.mean() / -2 - entropy) < 0.03
    assert abs(-out.output["log_likelihood"].mean() - entropy) < 0.03


def test_a_weight_of_zero_draws_nothing_for_the_entropy():  # F26
    def draws(weight):
        graphdef, variables = nnx.split(NormalTanhSampler(nnx.Rngs(0), weight))

        def replay(x):
            return nnx.merge(graphdef, variables, copy=True)((), x, x[:, :2]).regularization_loss

        assert replay(jnp.ones((2, 4))).any() == (weight > 0)
        return str(jax.make_jaxpr(replay)(jnp.ones((2, 4)))).count("erf_inv")

    assert (draws(0.0), draws(1.0)) == (0, 1)


def test_a_weight_that_is_a_variable_changes_without_compiling():  # F28
    graphdef, variables = nnx.split(NormalTanhSampler(nnx.Rngs(0), nnx.Variable(jnp.array(1.0))))
    traces = []

    @jax.jit
    def loss(variables):
        traces.append(1)
        return nnx.merge(graphdef, variables, copy=True)((), jnp.ones((2, 4))).regularization_loss

    first = loss(variables)
    variables["entropy_weight"][...] = jnp.array(3.0)
    np.testing.assert_allclose(loss(variables), 3 * first, rtol=1e-6)
    assert len(traces) == 1


def test_eval_mode_takes_the_mode_and_leaves_no_trace():  # F17
    sampler = NormalTanhSampler(nnx.Rngs(0), 0.1)
    net = Sequential([sampler])
    x = normals(0, BATCH, 4)
    before = int(sampler.stream.count[...])
    net.eval()
    out = net([()], x)
    np.testing.assert_allclose(out.output["action"], np.tanh(x[:, :2]), rtol=1e-5)
    assert int(sampler.stream.count[...]) == before
    net.train()
    first, second = (net([()], x).output["action"] for _ in range(2))
    assert np.any(first != second) and int(sampler.stream.count[...]) == before + 2
    net.eval()
    given = net([()], x, [normals(1, BATCH, 2)])
    np.testing.assert_allclose(given.output["action"], np.tanh(normals(1, BATCH, 2)), rtol=1e-5)


def test_draws_from_the_stream_that_is_named_for_it():  # F20
    a, b, c = (
        NormalTanhSampler(nnx.Rngs(0, action_sampling=seed), 0.0)((), jnp.zeros((1, 2))).output["action"]
        for seed in (1, 1, 2)
    )
    assert a == b != c


def test_the_sample_is_a_constant_for_gradients():
    sampler = NormalTanhSampler(nnx.Rngs(0), 0.0)
    graphdef, variables = nnx.split(sampler)

    def action(x):
        return nnx.merge(graphdef, variables, copy=True)((), x).output["action"].sum()

    assert not jax.grad(action)(jnp.ones((2, 4))).any()


def test_refuses_an_odd_number_of_features():
    with pytest.raises(SizeError, match="NormalTanhSampler: takes 4 features on the last axis; got 3"):
        NormalTanhSampler(nnx.Rngs(0), 0.0)((), jnp.ones((1, 3)))


SAMPLERS = {name: DistributionSampler(space, nnx.Rngs(0), 0.1) for name, space in SPACES.items()}
ALL = {**SAMPLERS, "tanh": NormalTanhSampler(nnx.Rngs(0), 0.1)}
PURE = {name: Pure(sampler) for name, sampler in ALL.items()}


def width(name):
    return 4 if name == "tanh" else ALL[name].num_params


@given(name=st.sampled_from(["nested", "binary", "tanh"]), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_unroll_equals_stepping_and_the_replay_the_rollout(name, seed):
    pure, xs = PURE[name], 2 * normals(seed, TIME, BATCH, width(name))
    assert_unroll_equals_stepping(pure, xs, NO_RESETS)
    rollout = pure.unroll((), xs, NO_RESETS)
    replay = pure.unroll((), xs, NO_RESETS, rollout.rollout_extras)
    np.testing.assert_array_equal(replay.output["log_likelihood"], rollout.output["log_likelihood"])


@pytest.mark.parametrize("name", list(SPACES))
def test_actions_are_members_of_the_space(name):
    space, xs = SPACES[name], 3 * normals(1, TIME, BATCH, width(name))
    actions = jax.device_get(PURE[name].unroll((), xs, NO_RESETS).output["action"])
    for t in range(TIME):
        for b in range(BATCH):
            row = jax.tree.map(lambda leaf, t=t, b=b: leaf[t, b], actions)
            member = int(row) if isinstance(space, gym.spaces.Discrete) else row
            cast = {"multi-discrete": np.int64, "binary": np.int8}.get(name)
            assert space.contains(member if cast is None else np.asarray(member, cast)), member


def test_categorical_samples_follow_the_probabilities_and_their_likelihoods():
    sampler, n = SAMPLERS["discrete"], 6000
    logits = jnp.log(jnp.array([0.2, 0.5, 0.3]))
    out = PURE["discrete"].unroll((), jnp.tile(logits, (1, n, 1)), jnp.zeros((1, n), bool))
    values, counts = np.unique(out.output["action"], return_counts=True)
    np.testing.assert_array_equal(values, [5, 6, 7])
    np.testing.assert_allclose(counts / n, [0.2, 0.5, 0.3], atol=0.03)
    np.testing.assert_allclose(
        np.exp(out.output["log_likelihood"]), np.array([0.2, 0.5, 0.3])[out.output["action"] - 5], rtol=1e-4
    )
    entropy = stats.entropy([0.2, 0.5, 0.3])
    np.testing.assert_allclose(out.metrics["entropy"], np.full((1, n), entropy), rtol=1e-4)
    np.testing.assert_allclose(out.regularization_loss, -0.1 * np.full((1, n), entropy), rtol=1e-4)
    assert sampler.in_features == 3


def test_factors_of_an_action_are_drawn_independently():  # pitfall 18
    actions = PURE["binary"].unroll((), jnp.zeros((1, 4000, 6)), jnp.zeros((1, 4000), bool)).output["action"]
    assert np.max(np.abs(np.corrcoef(np.asarray(actions[0]).T) - np.eye(3))) < 0.06


def test_takes_trees_of_parameters_as_well_as_numbers_side_by_side():
    sampler, x = SAMPLERS["nested"], normals(0, BATCH, width("nested"))
    sampler.eval()
    flat = sampler((), x)
    tree = sampler((), flat.metrics["dist_params"])
    sampler.train()
    assert_trees_close(tree.output, flat.output)
    sizes = jax.tree.map(lambda leaf: leaf.shape[1:], flat.metrics["dist_params"])
    assert sizes == jax.tree.map(lambda leaf: leaf.shape[1:], sampler.dist.default_priors)


def test_masked_actions_are_never_taken_and_the_rest_is_normalized():  # pitfall 17
    net = Parallel(params=lambda x: x[:, :3], mask=lambda x: x[:, 3:] > 0)
    net = Sequential([net, DistributionSampler(SPACES["discrete"], nnx.Rngs(0), masked=True)])
    xs = jnp.tile(jnp.array([2.0, 0.0, 1.0, 0, 1, 1]), (1, 500, 1))
    resets = jnp.zeros((1, 500), bool)
    rollout = net.unroll(net.initialize_state(500), xs, resets)
    assert set(np.unique(rollout.output["action"])) == {6, 7}
    want = np.log(stats.logistic.cdf(np.where(np.asarray(rollout.output["action"]) == 6, -1.0, 1.0)))
    np.testing.assert_allclose(rollout.output["log_likelihood"], want, rtol=1e-5)
    assert np.all(np.isfinite(rollout.regularization_loss))


def test_masks_are_nested_as_the_space_is():
    sampler = DistributionSampler(SPACES["nested"], nnx.Rngs(0), masked=True)
    mask = {"gear": jnp.array([[True, False]] * 50), "arms": (None, jnp.array([[False, False, True]] * 50))}
    action = sampler((), {"params": normals(0, 50, sampler.num_params), "mask": mask}).output["action"]
    assert not action["gear"].any() and np.all(action["arms"][1] == 2)


def test_a_mask_that_allows_nothing_is_an_error():  # pitfall 17
    sampler = DistributionSampler(SPACES["discrete"], nnx.Rngs(0), masked=True)
    with pytest.raises(ValueError, match="at least one action must be allowed"):
        sampler((), {"params": jnp.ones((1, 3)), "mask": jnp.zeros((1, 3), bool)})
    with pytest.raises(ValueError, match="a dict of 'params' and 'mask'; got"):
        sampler((), jnp.ones((1, 3)))


def test_refuses_a_distribution_whose_stored_samples_do_not_give_back_their_density():  # pitfall 29
    with pytest.raises(TypeError, match=r"SquashedNormalDist.*Pass the space itself"):
        DistributionSampler(SquashedNormalDist(SPACES["box"]), nnx.Rngs(0))


def test_takes_distributions_of_other_kinds():
    dist = DiscretizedIntervalDist(gym.spaces.Box(-1, 1, (1,)), num_bins=4)
    sampler = DistributionSampler(dist, nnx.Rngs(0))
    action = sampler((), normals(0, 9, 4)).output["action"]
    assert np.all(np.isclose(np.asarray(action).reshape(-1, 1), [-0.75, -0.25, 0.25, 0.75]).any(axis=-1))


def test_refuses_another_number_of_parameters():
    with pytest.raises(SizeError, match="DistributionSampler: takes 4 features on the last axis; got 3"):
        SAMPLERS["box"]((), jnp.ones((1, 3)))


GEAR = gym.spaces.Dict(gear=gym.spaces.Discrete(3))


@pytest.mark.parametrize(
    ("space", "params", "mask", "error", "message"),
    [
        (
            GEAR,
            3,
            {"gears": np.ones((2, 3))},
            ValueError,
            r"\['gears'\], .* \['gear'\]",
        ),
        (GEAR, 3, np.ones((2, 3)), TypeError, "must be a dict here"),
        (gym.spaces.Tuple([gym.spaces.Discrete(3)] * 2), 6, (np.ones((2, 3)),), ValueError, "must be a tuple of 2"),
    ],
)
def test_a_mask_that_is_not_nested_as_the_space_is_is_refused(space, params, mask, error, message):
    sampler = DistributionSampler(space, nnx.Rngs(0), masked=True)
    with pytest.raises(error, match=message):
        sampler((), {"params": jnp.zeros((2, params)), "mask": mask})
