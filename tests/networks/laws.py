"""What every module must obey, as functions of a module and of sequences."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import strategies as st

from triax.networks import StatefulModule, StatefulModuleOutput, reset_where

quick_jit = partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)
"""A jit that compiles fast and runs slowly, for tests of tiny shapes."""


class Pure:
    """A module as pure jitted functions of its variables: stepping in a Python loop, and ``unroll``."""

    def __init__(self, module: StatefulModule):
        self.graphdef, self.variables = nnx.split(module)

        def merge(variables):
            return nnx.merge(self.graphdef, variables, copy=True)

        def step(variables, state, x, reset, extras):
            net = merge(variables)
            out = net(reset_where(net, state, reset), x, extras)
            loss = jnp.broadcast_to(out.regularization_loss, reset.shape)
            return out.replace(regularization_loss=loss), nnx.state(net)

        def unroll(variables, state, xs, resets, extras):
            net = merge(variables)
            return net.unroll(state, xs, resets, extras), nnx.state(net)

        def start(variables, batch_size):
            net = merge(variables)
            return net.initialize_state(batch_size)

        self.step = quick_jit(step)
        self.unroll_fn = quick_jit(unroll)
        self.start = quick_jit(start, static_argnums=1)

    def initialize_state(self, batch_size: int) -> Any:
        return self.start(self.variables, batch_size)

    def steps(self, state, xs, resets, extras=None) -> StatefulModuleOutput:
        """The sequence, one call a step."""
        variables, outs = self.variables, []
        xs, resets, extras = jax.device_get((xs, resets, extras))  # NumPy slices compile nothing
        for t in range(resets.shape[0]):
            x, extra = jax.tree.map(lambda leaf, t=t: leaf[t], (xs, extras))
            out, variables = self.step(variables, state, x, resets[t], extra)
            state = out.next_state
            outs.append(jax.device_get(out.replace(next_state=())))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *outs)
        return stacked.replace(next_state=state)

    def unroll(self, state, xs, resets, extras=None) -> StatefulModuleOutput:
        """The sequence in one call."""
        return self.unroll_fn(self.variables, state, xs, resets, extras)[0]


def assert_trees_close(got: Any, want: Any, *, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Same tree, dtypes and shapes, and the same numbers to float tolerance."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    pairs = zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True)
    for (path, a), b in pairs:
        assert (a.shape, a.dtype) == (b.shape, b.dtype), jax.tree_util.keystr(path)
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=jax.tree_util.keystr(path))


def assert_unroll_equals_stepping(pure: Pure, xs: Any, resets: Any, state: Any = None) -> None:
    """Outputs, carry, losses, metrics and extras; in the rollout and in its replay."""
    state = pure.initialize_state(resets.shape[1]) if state is None else state
    stepped = pure.steps(state, xs, resets)
    assert_trees_close(pure.unroll(state, xs, resets), stepped)
    extras = stepped.rollout_extras
    replayed = pure.steps(state, xs, resets, extras)
    assert_trees_close(pure.unroll(state, xs, resets, extras), replayed)
    assert_trees_close(replayed.output, stepped.output)
    assert_trees_close(replayed.next_state, stepped.next_state)


def normals(seed: int, *shape: int) -> jax.Array:
    """Standard normal numbers."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def random_resets(seed: int, share: float = 0.3) -> jax.Array:
    """Boolean ``[TIME, BATCH]``."""
    return jnp.asarray(np.random.default_rng(seed).random((TIME, BATCH)) < share)


TIME, BATCH = 7, 3


@st.composite
def reset_patterns(draw: Any, time: int = TIME, batch: int = BATCH) -> jax.Array:
    """Boolean ``[time, batch]``; resets at the first and last step and two in a row come up often."""
    kind = draw(st.sampled_from(["random", "first", "last", "twice", "all", "none"]))
    resets = np.zeros((time, batch), bool)
    if kind in ("random", "twice"):
        resets[:] = draw(
            st.lists(st.booleans(), min_size=time * batch, max_size=time * batch).map(
                lambda flags: np.reshape(flags, (time, batch))
            )
        )
    if kind == "twice":
        resets[2:4] = True
    if kind in ("first", "last"):
        resets[0 if kind == "first" else -1] = True
    if kind == "all":
        resets[:] = True
    return jnp.asarray(resets)
