"""Modules and functions on arrays as layers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from triax.networks import LSTM, Sequential, StatefulModule, StatefulModuleOutput, Stochastic, reseed
from triax.networks.unrolling import map_steps

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals


def dropout_net():
    return Sequential([nnx.Linear(3, 8, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(1)), nnx.relu])


def test_any_module_or_callable_can_stand_in_a_sequence():
    net = Sequential(
        [nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.LayerNorm(4, rngs=nnx.Rngs(0)), jnp.tanh, nnx.relu]
        + [functools.partial(jnp.mean, axis=-1, keepdims=True), lambda x: x.squeeze(-1)]
    )
    out = net(net.initialize_state(BATCH), normals(0, BATCH, 3))
    assert out.output.shape == (BATCH,)
    assert_unroll_equals_stepping(Pure(net), normals(0, TIME, BATCH, 3), jnp.zeros((TIME, BATCH), bool))


def test_a_function_may_ask_for_the_mode():
    net = Sequential([lambda x, is_training: x * (2 if is_training else 3)])
    assert net([()], jnp.ones((1, 1))).output == 2
    net.eval()
    assert net([()], jnp.ones((1, 1))).output == 3


def test_dropout_is_the_same_in_a_replay_and_for_a_part_of_the_batch():  # F21
    net = dropout_net()
    assert isinstance(net[1], Stochastic)
    xs = normals(0, TIME, BATCH, 3)
    assert_unroll_equals_stepping(Pure(net), xs, jnp.zeros((TIME, BATCH), bool))
    state = net.initialize_state(BATCH)
    whole, x = net(state, xs[0]).output, xs[0]
    part = net(jax.tree.map(lambda leaf: leaf[:1], state), x[:1]).output
    np.testing.assert_allclose(part, whole[:1], rtol=1e-6)
    assert np.any(whole != net(net.initialize_state(BATCH), x).output)


def test_dropout_is_off_in_eval_mode():
    net, x = dropout_net(), normals(0, BATCH, 3)
    net.eval()
    first, second = (net(net.initialize_state(BATCH), x).output for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("memory", [[], [LSTM(3, 3, nnx.Rngs(1))]], ids=["alone", "behind memory"])
def test_batch_statistics_of_a_sequence_are_those_of_all_its_steps(batch, memory):
    def net():
        return Sequential([*memory, nnx.BatchNorm(3, momentum=0.5, rngs=nnx.Rngs(0)), nnx.relu])

    stepped, xs, resets = net(), normals(0, TIME, batch, 3), jnp.zeros((TIME, batch), bool)
    state = stepped.initialize_state(batch)
    inputs = memory[0].unroll(state[0], xs, resets).output if memory else xs
    norm = nnx.BatchNorm(3, momentum=0.5, rngs=nnx.Rngs(0))
    want = nnx.relu(norm(inputs.reshape(-1, 3))).reshape(inputs.shape)  # one flat call
    unrolled = net()
    np.testing.assert_allclose(unrolled.unroll(state, xs, resets).output, want, rtol=1e-5, atol=1e-6)
    got = unrolled[len(memory)].layer
    np.testing.assert_allclose(got.mean[...], norm.mean[...], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.var[...], norm.var[...], rtol=1e-5, atol=1e-6)
    unrolled.eval()
    assert_unroll_equals_stepping(Pure(unrolled), xs, resets)


def test_noise_of_a_module_that_is_not_wrapped_is_drawn_step_by_step():
    class Noisy(StatefulModule):
        def __init__(self):
            self.dropout, self.norm = nnx.Dropout(0.5, rngs=nnx.Rngs(1)), nnx.BatchNorm(3, rngs=nnx.Rngs(0))

        def __call__(self, state, x, rollout_extras=None):
            return StatefulModuleOutput((), self.dropout(self.norm(x)), 0.0, {})

    assert_unroll_equals_stepping(Pure(Noisy()), normals(0, TIME, BATCH, 3), jnp.zeros((TIME, BATCH), bool))


def test_noise_and_batch_statistics_in_one_module_are_refused():
    class Both(nnx.Module):
        def __init__(self, rngs):
            self.norm, self.dropout = nnx.BatchNorm(3, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.dropout(self.norm(x))

    net = Sequential([Both(nnx.Rngs(0))])
    with pytest.raises(ValueError, match="Both draws noise and writes other variables"):
        net(net.initialize_state(BATCH), normals(0, BATCH, 3))


class Unbatched(StatefulModule):
    """Puts out a metric without batch axis, and a loss that is one number."""

    def __call__(self, state, x, rollout_extras=None):
        return StatefulModuleOutput((), x * 2, jnp.asarray(3.0), {"mean": x.mean(), "three": jnp.ones(3)})


def test_metrics_of_any_shape_are_stacked_over_time():  # F33
    xs, resets = normals(0, TIME, BATCH, 2), jnp.zeros((TIME, BATCH), bool)
    pure = Pure(Unbatched())
    assert_unroll_equals_stepping(pure, xs, resets)
    out = pure.unroll((), xs, resets)
    assert out.metrics["three"].shape == (TIME, 3) and out.metrics["mean"].shape == (TIME,)
    assert out.regularization_loss.shape == (TIME, BATCH)


def test_metrics_as_long_as_the_batch_are_not_mistaken_for_batched_ones():  # F12: no guesses from lengths
    class Coincidence(StatefulModule):
        def __call__(self, state, x, rollout_extras=None):
            return StatefulModuleOutput((), x, 0.0, {"fixed": jnp.arange(6)})

    resets = jnp.zeros((2, 3), bool)
    out = map_steps(Coincidence(), (), jnp.ones((2, 3, 1)), resets, None)
    assert out is not None and out.metrics["fixed"].shape == (2, 6)


def test_a_module_that_counts_calls_counts_steps():
    class Counts(StatefulModule):
        def __init__(self):
            self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

        def __call__(self, state, x, rollout_extras=None):
            self.calls[...] += 1
            return StatefulModuleOutput((), x + self.calls[...], 0.0, {})

    net = Counts()
    out = net.unroll((), jnp.zeros((4, 2)), jnp.zeros((4, 2), bool))
    np.testing.assert_array_equal(out.output[:, 0], [1, 2, 3, 4])
    assert net.calls[...] == 4


def test_a_carry_that_changes_its_shape_is_refused():
    class Grows(StatefulModule):
        def __call__(self, state, x, rollout_extras=None):
            return StatefulModuleOutput(jnp.concatenate([state, state]), x, 0.0, {})

    with pytest.raises(ValueError, match="Grows: next_state must have the tree, shapes and dtypes"):
        Grows().unroll(jnp.zeros(2), jnp.zeros((3, 2)), jnp.zeros((3, 2), bool))


def test_a_call_that_returns_something_else_is_refused():
    class Bare(StatefulModule):
        def __call__(self, state, x, rollout_extras=None):
            return x

    with pytest.raises(TypeError, match="Bare: a call must return a StatefulModuleOutput; got"):
        Bare().unroll((), jnp.zeros((3, 2)), jnp.zeros((3, 2), bool))


def test_reseeding_decides_all_noise_and_tells_streams_apart():  # F16, F17
    def drawn(seed):
        net = Sequential([dropout_net(), nnx.Linear(8, 3, rngs=nnx.Rngs(0)), dropout_net()])
        net.initialize_state(2)  # a draw before must not matter
        reseed(net, jax.random.key(seed))
        return [jax.random.key_data(net.initialize_state(1)[i][1]) for i in (0, 2)]

    first, again, other = drawn(0), drawn(0), drawn(1)
    np.testing.assert_array_equal(first, again)
    assert np.any(first[0] != other[0]) and np.any(first[0] != first[1])
