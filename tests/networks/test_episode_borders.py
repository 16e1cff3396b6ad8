"""Nothing crosses the border of an episode, not even what is no number; and sequences at the edges of what there is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import (
    GRU,
    LRU,
    LSTM,
    AR1VariationalBottleneck,
    Delay,
    Dense,
    Flattener,
    FrameStack,
    Map,
    MinGRU,
    Normalizer,
    NormalTanhSampler,
    Parallel,
    PopulationGraph,
    Sequential,
    SlidingWindowAttention,
    StatefulModule,
    StatefulModuleOutput,
    VariationalBottleneck,
    linear_recurrence,
)
from triax.networks.linear_recurrence import associative, step_by_step
from triax.networks.unrolling import fold, unfold

from .laws import BATCH, TIME, Pure, assert_trees_close, normals, quick_jit

SIZE = 4
RNGS = nnx.Rngs(0)


class Scanned(StatefulModule):
    """Has no ``unroll`` of its own."""

    def __call__(self, state, x, rollout_extras=None):
        return StatefulModuleOutput(state * 0.5 + x, state + x, 0.0, {})

    def initialize_state(self, batch_size):
        return jnp.zeros((batch_size, SIZE))

    def reset_state(self, prev_state):
        return jnp.zeros_like(prev_state)


def graph():
    g = PopulationGraph(nnx.Rngs(3))
    g.add_output("z", SIZE, input_from="x")
    g.connect("z", "z", delay=2)
    g.finalize()
    return Sequential([lambda x: {"x": x}, g, lambda d: d["z"]])


MEMORIES = {
    "lstm": LSTM(SIZE, 3, RNGS),
    "trained lstm": LSTM(SIZE, 3, RNGS, trainable_initial_state=True, activation_fn=nnx.softplus),
    "gru": GRU(SIZE, 3, RNGS),
    "lru": LRU(SIZE, 3, RNGS),
    "mingru": MinGRU(SIZE, 3, RNGS),
    "attention": SlidingWindowAttention(SIZE, RNGS, window=3, num_heads=2),
    "attention to itself": SlidingWindowAttention(SIZE, RNGS, window=1, num_heads=2),
    "delay": Delay(jnp.zeros(SIZE), 2),
    "frames": FrameStack(jnp.zeros(SIZE), 3),
    "zero frames": FrameStack(jnp.zeros(SIZE), 2, padding="zero"),
    "one frame": FrameStack(jnp.zeros(SIZE), 1),
    "graph": graph(),
    "scanned": Scanned(),
}
MODULES = MEMORIES | {
    "dense": Dense(SIZE, 3, RNGS, nnx.tanh),
    "bottleneck": VariationalBottleneck(SIZE // 2, RNGS),
    "jumps": AR1VariationalBottleneck(SIZE // 2, RNGS),
    "dropout": Sequential([nnx.Dropout(0.5, rngs=RNGS)]),
    "sampler": NormalTanhSampler(RNGS, 0.1),
    "normalizer": Normalizer(SIZE),
    "many": Sequential([Parallel(a=LRU(SIZE, 2, RNGS), b=Delay(jnp.zeros(SIZE), 1)), Flattener()]),
}
PURE = {name: Pure(net) for name, net in MODULES.items()}
BAD = (jnp.nan, jnp.inf, -jnp.inf)


def episode_of(resets, t, b):
    """The steps of the episode to which step ``t`` of environment ``b`` belongs."""
    number = np.cumsum(np.asarray(resets)[:, b])
    return number == number[t]


@given(
    name=st.sampled_from(sorted(MODULES)),
    t=st.integers(0, TIME - 1),
    cuts=st.sets(st.integers(0, TIME - 1), min_size=1, max_size=3),
    bad=st.sampled_from(BAD),
)
@settings(max_examples=60, deadline=None)
def test_what_is_no_number_stays_in_its_episode_from_its_step_on(name, t, cuts, bad):
    pure, xs = PURE[name], normals(0, TIME, BATCH, SIZE)
    resets = jnp.zeros((TIME, BATCH), bool).at[jnp.array(sorted(cuts)), 1].set(True)
    state = pure.initialize_state(BATCH)
    well, ill = (pure.unroll(state, x, resets) for x in (xs, xs.at[t, 1, 2].set(bad)))
    touched = np.zeros((TIME, BATCH), bool)
    touched[:, 1] = episode_of(resets, t, 1) & (np.arange(TIME) >= t)
    for a, b in zip(jax.tree.leaves(well.output), jax.tree.leaves(ill.output), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[~touched], np.asarray(b)[~touched])
    kept = np.arange(BATCH) != 1 if touched[-1, 1] else slice(None)
    assert_same_numbers(jax.tree.map(lambda leaf: leaf[kept], (well.next_state, ill.next_state)))
    stepped = pure.steps(state, xs.at[t, 1, 2].set(bad), resets)
    finite = jax.tree.map(np.isfinite, (ill.output, stepped.output))
    assert_same_numbers(finite)


def assert_same_numbers(pair):
    for a, b in zip(*map(jax.tree.leaves, pair), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_a_carry_that_is_no_number_vanishes_when_it_is_reset_at_the_first_step(name):
    pure, xs = PURE[name], normals(0, TIME, BATCH, SIZE)
    fresh = pure.initialize_state(BATCH)
    spoiled = jax.tree.map(lambda s: s * jnp.nan if jnp.issubdtype(s.dtype, jnp.inexact) else s, fresh)
    resets = jnp.zeros((TIME, BATCH), bool).at[0].set(True)
    got, want = (pure.unroll(state, xs, resets) for state in (spoiled, fresh))
    assert_same_numbers(((got.output, got.next_state), (want.output, want.next_state)))


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf])
@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_gradients_of_steps_after_a_reset_are_zero_before_it_whatever_is_there(name, bad):
    net, cut = MEMORIES[name], 4
    resets = jnp.zeros((TIME, 1), bool).at[cut].set(True)
    state = net.initialize_state(1)

    def after(xs):
        return jnp.sum(net.unroll(state, xs, resets).output[cut:] ** 2)

    xs = normals(0, TIME, 1, SIZE)
    well, ill = (np.asarray(quick_jit(jax.grad(after))(x)) for x in (xs, xs.at[2, 0, 1].set(bad)))
    assert np.all(ill[:cut] == 0) and np.any(ill[cut:] != 0)
    np.testing.assert_array_equal(ill, well)


@pytest.mark.parametrize("form", [associative, step_by_step])
def test_a_decay_of_zero_cuts_what_was_before_it_and_an_underflow_does_not(form):
    decay = jnp.full((9, 1, 1), 1e-30).at[6].set(0.0)
    states = form(decay, jnp.ones((9, 1, 1)).at[1].set(jnp.nan))[:, 0, 0]
    np.testing.assert_array_equal(np.isnan(states), [False] + [True] * 5 + [False] * 3)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_sequence_of_no_steps_gives_nothing_and_keeps_the_carry(name):
    pure = PURE[name]
    state = pure.initialize_state(BATCH)
    some = pure.unroll(state, normals(0, 2, BATCH, SIZE), jnp.zeros((2, BATCH), bool))
    out = pure.unroll(some.next_state, jnp.zeros((0, BATCH, SIZE)), jnp.zeros((0, BATCH), bool))
    assert_trees_close(out.next_state, some.next_state)
    want = jax.tree.map(lambda leaf: (0, *leaf.shape[1:]), some.replace(next_state=()))
    assert jax.tree.map(lambda leaf: leaf.shape, out.replace(next_state=())) == want


def test_a_linear_recurrence_over_no_steps_is_empty():
    assert linear_recurrence(jnp.ones((0, 2, 3)), jnp.ones((0, 2, 3)), jnp.ones((2, 3))).shape == (0, 2, 3)


def test_leaves_without_features_are_folded_and_unfolded():
    leaf = jnp.ones((3, 2, 0))
    assert fold(leaf).shape == (6, 0)
    assert unfold(fold(leaf), jnp.zeros((3, 2), bool)).shape == (3, 2, 0)


@pytest.mark.parametrize("name", ["attention to itself", "one frame"])
def test_memories_of_nothing_take_carries_as_a_batch(name):  # as learning from stored sequences does
    carry = MODULES[name].initialize_state(BATCH)
    stored = jax.tree.map(lambda leaf: jnp.stack([leaf] * TIME), carry)
    assert [leaf.shape[0] for leaf in jax.tree.leaves(fold(stored))] == [TIME * BATCH] * len(jax.tree.leaves(carry))
    net = Map(a=MODULES[name], b=lambda x: x)
    xs = {"a": normals(0, TIME, BATCH, SIZE), "b": jnp.zeros((TIME, BATCH, 0))}
    out = net.unroll(net.initialize_state(BATCH), xs, jnp.zeros((TIME, BATCH), bool)).output
    assert out["b"].shape == (TIME, BATCH, 0)


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_a_carry_of_another_batch_is_refused_with_both_sizes(name):
    net = MEMORIES[name]
    with pytest.raises(ValueError, match=rf"the carry.* must start with the batch of the sequence, {BATCH}; leaves of"):
        net.unroll(net.initialize_state(1), normals(0, TIME, BATCH, SIZE), jnp.zeros((TIME, BATCH), bool))


def test_memory_that_would_never_be_reset_is_refused_when_its_class_is_made():
    with pytest.raises(TypeError, match="Forgetful has initialize_state but no reset_state"):

        class Forgetful(StatefulModule):
            def initialize_state(self, batch_size):
                return jnp.zeros(batch_size)

            def reset_sate(self, prev_state):
                return jnp.zeros_like(prev_state)

    class Longer(LSTM):  # its parent resets
        def initialize_state(self, batch_size):
            return super().initialize_state(batch_size)

    assert Longer(1, 1, nnx.Rngs(0)).initialize_state(2).h.shape == (2, 1)
