"""Frame stacks against a list of frames, attention against a loop over steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.networks import FrameStack, SizeError, SlidingWindowAttention

from .laws import BATCH, TIME, Pure, assert_unroll_equals_stepping, normals, quick_jit, reset_patterns


def listed_frames(xs, resets, n, padding):
    """Frames of the episode so far, from a Python list an environment; channels side by side."""
    out = np.zeros((*xs.shape[:-1], n * xs.shape[-1]), xs.dtype)
    for b in range(xs.shape[1]):
        frames = []
        for t in range(xs.shape[0]):
            frames = [] if resets[t, b] else frames
            frames.append(xs[t, b])
            first = frames[0] if padding == "reset" else np.zeros_like(frames[0])
            shown = ([first] * n + frames)[-n:]
            out[t, b] = np.concatenate(shown, axis=-1)
    return out


@given(n=st.sampled_from([1, 2, 4, 9]), padding=st.sampled_from(["reset", "zero"]), resets=reset_patterns())
@settings(max_examples=15, deadline=None)
def test_frame_stack_equals_a_list_of_frames(n, padding, resets):  # pitfall 23
    xs = np.random.default_rng(0).integers(0, 255, (TIME, BATCH, 2, 2, 1)).astype(np.uint8)
    stack = FrameStack(xs[0, 0], n, padding=padding)
    out = stack.unroll(stack.initialize_state(BATCH), jnp.asarray(xs), resets)
    assert out.output.dtype == np.uint8
    np.testing.assert_array_equal(out.output, listed_frames(xs, np.asarray(resets), n, padding))


SAMPLE = {"x": np.zeros(2, np.float32), "n": 0}
STACKS = {p: Pure(FrameStack(SAMPLE, 3, padding=p)) for p in ("reset", "zero")}


@given(padding=st.sampled_from(["reset", "zero"]), resets=reset_patterns(), warm=st.integers(0, 2))
@settings(max_examples=20, deadline=None)
def test_frame_stack_unroll_equals_stepping_from_any_carry(padding, resets, warm):
    pure = STACKS[padding]
    xs = {"x": normals(0, TIME, BATCH, 2), "n": jnp.arange(TIME * BATCH).reshape(TIME, BATCH)}
    state = pure.initialize_state(BATCH)
    for t in range(warm):
        x = jax.tree.map(lambda leaf, t=t: leaf[t] + 100, xs)
        state = pure.step(pure.variables, state, x, resets[0] & False, None)[0].next_state
    assert_unroll_equals_stepping(pure, xs, resets, state)


def test_frame_stack_refuses_bad_arguments():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        FrameStack(0.0, 0)
    with pytest.raises(ValueError, match="'reset' or 'zero'; got 'first'"):
        FrameStack(0.0, 2, padding="first")


def attention(window, **kwargs):
    net = SlidingWindowAttention(4, nnx.Rngs(int(window)), window=window, num_heads=2, **kwargs)
    net.age_bias[...] = normals(3, *net.age_bias.shape)
    return net


NETS = {window: attention(window, qkv_features=6, out_features=5) for window in (1, 3, 9)}
PURE = {window: Pure(net) for window, net in NETS.items()}


def looped_attention(net, xs, resets):
    """One query at a time over a Python list of the episode's keys and values."""
    heads, size, bias = net.num_heads, net.head_features, np.asarray(net.age_bias[...])
    qkv = np.asarray(net.qkv(xs)).reshape(*xs.shape[:2], 3, heads, size)
    mixed = np.zeros((*xs.shape[:2], heads, size))
    for b in range(xs.shape[1]):
        past = []
        for t in range(xs.shape[0]):
            past = [] if resets[t, b] else past
            past.append(qkv[t, b])
            seen = past[-net.window :]
            for h in range(heads):
                scores = [
                    qkv[t, b, 0, h] @ kv[1, h] / np.sqrt(size) + bias[h, len(seen) - 1 - i] for i, kv in enumerate(seen)
                ]
                weights = np.exp(scores - np.max(scores))
                mixed[t, b, h] = sum(w * kv[2, h] for w, kv in zip(weights / weights.sum(), seen, strict=True))
    return np.asarray(net.out(jnp.asarray(mixed.reshape(*xs.shape[:2], -1), jnp.float32)))


@given(window=st.sampled_from([1, 3, 9]), resets=reset_patterns(), seed=st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_attention_equals_a_loop_over_steps(window, resets, seed):
    xs = normals(seed, TIME, BATCH, 4)
    out = PURE[window].unroll(NETS[window].initialize_state(BATCH), xs, resets)
    np.testing.assert_allclose(out.output, looped_attention(NETS[window], xs, np.asarray(resets)), rtol=1e-4, atol=1e-5)


@given(window=st.sampled_from([1, 3, 9]), resets=reset_patterns(), warm=reset_patterns())
@settings(max_examples=25, deadline=None)
def test_attention_unroll_equals_stepping_from_any_carry(window, resets, warm):
    pure = PURE[window]
    state = pure.unroll(pure.initialize_state(BATCH), normals(7, TIME, BATCH, 4), warm).next_state
    assert_unroll_equals_stepping(pure, normals(0, TIME, BATCH, 4), resets, state)


@pytest.mark.parametrize("net", [NETS[3], FrameStack(jnp.zeros(4), 3)], ids=["attention", "frame stack"])
def test_nothing_of_the_old_episode_is_visible_after_a_reset(net):
    resets = jnp.zeros((TIME, 1), bool).at[3].set(True)
    xs = normals(0, TIME, 1, 4)
    state = net.unroll(net.initialize_state(1), xs, resets & False).next_state

    def after(xs):
        return jnp.sum(net.unroll(state, xs, resets).output[3:] ** 2)

    gradient = np.asarray(quick_jit(jax.grad(after))(xs))
    assert np.all(gradient[:3] == 0) and np.any(gradient[3:] != 0)


def test_attention_refuses_bad_arguments():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        attention(0)
    with pytest.raises(ValueError, match="num_heads=2 must divide qkv_features=5"):
        attention(2, qkv_features=5)
    with pytest.raises(SizeError, match="takes 4 features on the last axis; got 3"):
        NETS[3](NETS[3].initialize_state(1), jnp.ones((1, 3)))


def test_memories_refuse_lengths_that_are_no_ints_and_samples_of_nothing():
    with pytest.raises(TypeError, match="num_frames must be an int; got True"):
        FrameStack(0.0, True)
    with pytest.raises(TypeError, match="window must be an int; got True"):
        attention(True)
    with pytest.raises(ValueError, match="FrameStack: sample_input must have at least one array"):
        FrameStack((), 2)


def test_a_stack_of_one_frame_keeps_the_shape_of_its_carry_when_stepped():
    stack = FrameStack(jnp.zeros(3), 1)
    state = stack.initialize_state(2)
    out = stack(state, jnp.ones((2, 3)))
    assert out.next_state["buffer"].shape == state["buffer"].shape == (2, 0, 3)
    np.testing.assert_array_equal(out.output, np.ones((2, 3)))
