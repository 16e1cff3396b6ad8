"""The network that the host's DQN takes when the user brings none."""

import itertools
from collections.abc import Callable
from typing import Any

from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.spaces import flatten, num_features


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
