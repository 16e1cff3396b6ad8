"""The networks that agents take when the user brings none."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.spaces import default_preprocessor, sample_batch


class ActionValues(nnx.Module):
    """A multi-layer perceptron on the flattened observation: one value per action."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...], num_actions: int, *, rngs: nnx.Rngs) -> None:
        sizes = (num_inputs, *hidden)
        self.hidden = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(sizes)])
        self.output = nnx.Linear(sizes[-1], num_actions, rngs=rngs)

    def __call__(self, S: PyTree, is_training: bool) -> Float[Array, "batch actions"]:
        """The values ``[batch, actions]`` of preprocessed observations."""
        x = flatten(S)
        for layer in self.hidden:
            x = nnx.relu(layer(x))
        return self.output(x)

    @classmethod
    def factory(cls, env: Any, hidden: tuple[int, ...]) -> Callable[[nnx.Rngs], "ActionValues"]:
        """A function that makes the network for the spaces of ``env``."""
        inputs, actions = num_features(env.observation_space), int(env.action_space.n)
        return lambda rngs: cls(inputs, hidden, actions, rngs=rngs)


def num_features(space: Any) -> int:
    """Features of a flattened observation or action, as the default preprocessor gives it."""
    prepare = default_preprocessor(space)
    return jax.eval_shape(lambda: flatten(prepare(None, sample_batch(space, 1, 0)))).shape[-1]


def flatten(S: PyTree) -> Float[Array, "batch features"]:
    """All leaves of a batch side by side; integers such as pixels in [0, 1]."""
    leaves = [_as_float(leaf).reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(S)]
    return jnp.concatenate(leaves, axis=-1)


def _as_float(leaf: Array) -> Array:
    return leaf / 255.0 if leaf.dtype == jnp.uint8 else leaf.astype(jnp.float32)
