"""PPOAdapter and the factories."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings

from triax.networks import (
    LSTM,
    Dense,
    DistributionSampler,
    LearnedConstant,
    Map,
    NormalTanhSampler,
    Parallel,
    PPOAdapter,
    PPONetworkOutput,
    Sequential,
    make_mlp,
    make_mlp_actor_critic,
    make_mlp_layers,
)

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, reset_patterns

RNGS = nnx.Rngs(0)


def sampler():
    return NormalTanhSampler(RNGS, 0.01)


def actor_critic(memory=True):
    layers = [Dense(3, 4, RNGS, nnx.tanh)] + ([LSTM(4, 4, RNGS)] if memory else [])
    actor = Sequential([Dense(4, 4, RNGS), sampler()])
    return Sequential([*layers, PPOAdapter(actor, Dense(4, 1, RNGS))])


PURE = Pure(actor_critic())


@given(resets=reset_patterns())
@settings(max_examples=8, deadline=None)
def test_replay_reproduces_log_likelihoods_and_values(resets):  # pitfall 29
    xs = normals(0, TIME, BATCH, 3)
    assert_unroll_equals_stepping(PURE, xs, resets)
    state = PURE.initialize_state(BATCH)
    rollout = PURE.steps(state, xs, resets)
    replay = PURE.unroll(state, xs, resets, rollout.rollout_extras)
    ratio = np.exp(np.asarray(replay.output.loglikelihoods) - np.asarray(rollout.output.loglikelihoods))
    np.testing.assert_allclose(ratio, 1, atol=1e-5)
    np.testing.assert_allclose(replay.output.value_estimates, rollout.output.value_estimates, atol=1e-6)


def test_output_layouts_of_one_sampler():
    net = actor_critic(memory=False)
    out = net(net.initialize_state(BATCH), normals(0, BATCH, 3))
    assert isinstance(out.output, PPONetworkOutput)
    assert out.output.actions.shape == (BATCH, 2)
    assert out.output.loglikelihoods.shape == (BATCH,) == out.output.value_estimates.shape
    assert out.next_state == [(), {"action": [(), ()], "value": ()}]
    assert out.rollout_extras[1]["action"][1].shape == (BATCH, 2) and out.rollout_extras[1]["value"] is None


def test_trees_of_samplers_and_values():
    action = Map(left=Sequential([Dense(2, 4, RNGS), sampler()]), right=Sequential([sampler()]))
    value = Map({"left": lambda x: x[..., :1], "right": lambda x: x[..., 0]})
    net = PPOAdapter(action, value)
    out = net(net.initialize_state(2), {"left": jnp.ones((2, 2)), "right": jnp.ones((2, 4))}).output
    assert {k: v.shape for k, v in out.actions.items()} == {"left": (2, 2), "right": (2, 2)}
    assert {k: v.shape for k, v in out.loglikelihoods.items()} == {"left": (2,), "right": (2,)}
    assert {k: v.shape for k, v in out.value_estimates.items()} == {"left": (2,), "right": (2,)}


@pytest.mark.parametrize("batch", [1, 2])
def test_only_a_feature_axis_is_dropped_from_values(batch):  # F9
    for value in (lambda x: x[:, :1], lambda x: x[:, 0]):
        net = PPOAdapter(sampler(), value)
        out = net(net.initialize_state(batch), jnp.ones((batch, 2)))
        assert out.output.value_estimates.shape == (batch,)


def test_an_action_port_without_sampler_is_named():  # F37
    for port, message in (
        (Dense(2, 3, RNGS), r"got float32\[4, 3\]\. End it with an ActionSampler"),
        (Map(arm=Dense(2, 3, RNGS)), r"got float32\[4, 3\] at \['arm'\]"),
    ):
        net = PPOAdapter(port, lambda x: jnp.zeros(4))
        x = {"arm": jnp.ones((4, 2))} if isinstance(port, Map) else jnp.ones((4, 2))
        with pytest.raises(TypeError, match=message):
            net(net.initialize_state(4), x)


def test_mlp_layers_have_the_sizes_and_activations_asked_for():
    layers = make_mlp_layers((3, 5, 2), RNGS, nnx.tanh, activation_last_layer=False, use_bias=False)
    assert [(d.in_features, d.out_features) for d in layers] == [(3, 5), (5, 2)]
    assert layers[0].activation is nnx.tanh and layers[1].activation is None and layers[0].linear.bias is None
    net = make_mlp([3, 5, 2], RNGS)
    assert len(net) == 2 and np.all(np.asarray(net([(), ()], normals(0, 4, 3)).output) >= 0)


def test_actor_critic_has_the_layout_of_the_contract():
    net = make_mlp_actor_critic(3, 2, [8], [8], nnx.Rngs(0))
    out = net(net.initialize_state(4), normals(0, 4, 3))
    assert out.next_state == [(), {"action": [(), (), ()], "value": [(), ()]}]
    shapes = jax.tree.map(jnp.shape, out.rollout_extras)
    assert shapes == [(4, 3), {"action": [None, None, (4, 2)], "value": [None, None]}]
    assert out.output.value_estimates.shape == (4,)
    assert isinstance(make_mlp_actor_critic(3, 2, [8], [8], nnx.Rngs(0), normalize_obs=False), PPOAdapter)


@pytest.mark.parametrize("normalize_obs", [True, False])
def test_discrete_parts_of_observations_are_one_hots_to_actor_and_critic(normalize_obs):
    space = gym.spaces.Dict({"kind": gym.spaces.Discrete(3, start=1), "place": gym.spaces.Box(0, 1, (2,))})
    net = make_mlp_actor_critic(space, 2, [8], [8], nnx.Rngs(0), normalize_obs=normalize_obs)
    flat = make_mlp_actor_critic(5, 2, [8], [8], nnx.Rngs(0), normalize_obs=normalize_obs)
    kind, place = np.array([1, 3, 2, 3]), np.asarray(jax.random.uniform(jax.random.PRNGKey(0), (4, 2)))
    out = net(net.initialize_state(4), {"kind": kind, "place": place}).output
    expected = flat(flat.initialize_state(4), np.concatenate([np.eye(3)[kind - 1], place], 1).astype(np.float32)).output
    np.testing.assert_allclose(out.value_estimates, expected.value_estimates, rtol=1e-5)


def test_kernels_are_uniform_of_the_asked_variance_and_the_policy_head_is_small():  # F29
    net = make_mlp_actor_critic(50, 20, [200], [200], nnx.Rngs(0), "swish", initializer_scale=2.0)
    layers = nnx.to_pure_dict(nnx.state(net, nnx.Param))["components"]["ppo_adapter_1"]["components"]
    kernels = {
        (port, i): np.asarray(layers[port]["components"][f"dense_{i}"]["linear"]["kernel"])
        for port in ("action", "value")
        for i in (0, 1)
    }
    np.testing.assert_allclose(kernels["action", 0].std(), np.sqrt(2 / 50), rtol=0.03)
    np.testing.assert_allclose(kernels["action", 0].max(), np.sqrt(3 * 2 / 50), rtol=0.01)
    np.testing.assert_allclose(kernels["value", 1].std(), np.sqrt(2 / 200), rtol=0.1)
    np.testing.assert_allclose(kernels["action", 1].std(), 0.01 * np.sqrt(2 / 200), rtol=0.05)
    assert np.any(kernels["action", 0] != kernels["value", 0])


def test_sizes_may_be_tuples_spaces_and_trees():  # F59, F26
    space = gym.spaces.Dict(image=gym.spaces.Box(0, 255, (2, 2, 1), np.uint8), speed=gym.spaces.Box(-1, 1, (3,)))
    net = make_mlp_actor_critic(space, gym.spaces.Discrete(4), (8,), (8, 8), nnx.Rngs(0), "tanh")
    obs = {"image": jnp.ones((2, 2, 2, 1), jnp.uint8), "speed": jnp.ones((2, 3))}
    out = net(net.initialize_state(2), obs)
    assert out.output.actions.shape == (2,) and out.output.actions.dtype == jnp.int32
    assert isinstance(net, Sequential) and len(net) == 3
    with pytest.raises(KeyError, match=r"such as .*'gelu'"):
        make_mlp_actor_critic(3, 2, [8], [8], nnx.Rngs(0), "gellu")
    plain = make_mlp_actor_critic(3, gym.spaces.Discrete(4), [8], [8], nnx.Rngs(0), normalize_obs=False)
    assert isinstance(plain.children["action"].layers[-1], DistributionSampler)  # pyright: ignore


@pytest.mark.parametrize("action", [2, gym.spaces.Box(np.float32([[-1, 0]]), np.float32([[1, 5]]))], ids=["int", "box"])
def test_a_spread_that_depends_on_no_observation_is_trained_with_the_rest(action):  # F30
    net = make_mlp_actor_critic(3, action, [8], [8], nnx.Rngs(0), head_scale=1.0, independent_std=True)
    graphdef, params, rest = nnx.split(net, nnx.Param, ...)
    state, obs = net.initialize_state(4), normals(0, 4, 3)

    def step(params):
        out = nnx.merge(graphdef, params, rest, copy=True)(state, obs)
        leaves = {path[-1].key: leaf for path, leaf in jax.tree.leaves_with_path(out.metrics)}
        found = [leaves[key].reshape(4, 2) for key in ("mu", "sigma", "logvar") if key in leaves]
        return out.output.loglikelihoods.sum(), found

    (_, (means, spread)), gradient = jax.value_and_grad(step, has_aux=True)(params)
    assert np.all(spread == spread[:1]) and np.all(means[0] != means[1])
    (path,) = [path for path, _ in nnx.to_flat_state(params) if path[-1] == "value"]  # of the constant
    assert np.all(dict(nnx.to_flat_state(gradient))[path][...] != 0)
    (constant,) = [module for _, module in nnx.iter_modules(net) if isinstance(module, LearnedConstant)]
    constant.value[...] = jnp.array([0.0, 1.0])
    _, (same_means, changed) = step(nnx.state(net, nnx.Param))
    np.testing.assert_array_equal(changed != spread, [[False, True]] * 4)
    np.testing.assert_array_equal(same_means, means)


def test_a_constant_spread_needs_actions_with_a_spread_and_a_constant_a_batch():
    with pytest.raises(ValueError, match=r"independent_std is for actions of an int or a box.*Discrete\(3\)"):
        make_mlp_actor_critic(3, gym.spaces.Discrete(3), [8], [8], nnx.Rngs(0), independent_std=True)
    with pytest.raises(ValueError, match=r"LearnedConstant: takes arrays \[batch, ...\]; got 1.0"):
        LearnedConstant(2)((), 1.0)
    np.testing.assert_array_equal(LearnedConstant(2, -1.5)((), {"a": jnp.ones((3, 4))}).output, jnp.full((3, 2), -1.5))


def test_a_box_sampler_takes_a_constant_as_its_variance():  # F30
    head = Parallel(mu=Dense(3, 2, RNGS), logvar=LearnedConstant(2, -2.0))
    net = Sequential([head, DistributionSampler(gym.spaces.Box(-1, 1, (2,)), RNGS)])
    out = net(net.initialize_state(4), normals(0, 4, 3))
    np.testing.assert_array_equal(
        out.metrics["distribution_sampler_1"]["dist_params"]["logvar"], jnp.full((4, 2), -2.0)
    )
