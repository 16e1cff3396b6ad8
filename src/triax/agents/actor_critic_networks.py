"""The actors and critics that agents take when the user brings none: multi-layer perceptrons."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.agents.off_policy import Factory
from triax.agents.value_networks import Perceptron
from triax.spaces import flatten, num_features


class GaussianActor(nnx.Module):
    """``{"mu": [batch, *shape], "logvar": [batch, *shape]}`` of actions before their squashing.

    Args:
        num_inputs: features of an observation.
        hidden: widths of the hidden layers.
        shape: of an action.
        rngs: draws the weights.
    """

    def __init__(self, num_inputs: int, hidden: tuple[int, ...], shape: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.shape = tuple(shape)
        self.layers = Perceptron((num_inputs, *hidden, 2 * math.prod(shape)), rngs=rngs)

    def __call__(self, S: PyTree, is_training: bool) -> dict[str, Array]:
        """The parameters at preprocessed observations."""
        mu, logvar = jnp.split(self.layers(flatten(S)), 2, axis=-1)
        return {"mu": mu.reshape(-1, *self.shape), "logvar": logvar.reshape(-1, *self.shape)}


class CategoricalActor(nnx.Module):
    """``{"logits": [batch, actions]}``; ``shape`` is ``(actions,)``, the others as for :class:`GaussianActor`."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...], shape: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.layers = Perceptron((num_inputs, *hidden, *shape), rngs=rngs)

    def __call__(self, S: PyTree, is_training: bool) -> dict[str, Array]:
        """The logits at preprocessed observations."""
        return {"logits": self.layers(flatten(S))}


class DeterministicActor(nnx.Module):
    """Actions before their squashing, ``[batch, *shape]``; arguments as for :class:`GaussianActor`."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...], shape: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.shape = tuple(shape)
        self.layers = Perceptron((num_inputs, *hidden, math.prod(shape)), rngs=rngs)

    def __call__(self, S: PyTree, is_training: bool) -> Float[Array, "batch ..."]:
        """The real numbers at preprocessed observations."""
        return self.layers(flatten(S)).reshape(-1, *self.shape)


class ActionValueCritic(nnx.Module):
    """The value ``[batch]`` of an action in a state; both are flattened and go in side by side."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.layers = Perceptron((num_inputs, *hidden, 1), rngs=rngs)

    def __call__(self, S: PyTree, A: PyTree, is_training: bool) -> Float[Array, " batch"]:
        """The values of preprocessed actions."""
        return self.layers(flatten((S, A)))[:, 0]


def actor_network(
    env: Any, network: Callable[..., nnx.Module], hidden: tuple[int, ...], shape: tuple[int, ...]
) -> Factory:
    """A function that makes an actor for the observations of ``env`` and actions of this shape."""
    inputs = num_features(env.observation_space)
    return lambda rngs: network(inputs, hidden, shape, rngs=rngs)


def action_value_critic(env: Any, hidden: tuple[int, ...]) -> Factory:
    """A function that makes a critic for the spaces of ``env``, whose actions are arrays."""
    inputs = num_features(env.observation_space) + math.prod(env.action_space.shape)
    return lambda rngs: ActionValueCritic(inputs, hidden, rngs=rngs)
