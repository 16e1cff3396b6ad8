"""The q-networks that agents take when the user brings none: plain or dueling, of values, bins or quantiles."""

import itertools
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PyTree

from triax.agents.off_policy import Factory
from triax.networks.randomness import own_stream
from triax.proba_dists import quantile_cos_embedding, quantiles_uniform
from triax.spaces import flatten, num_features


class Perceptron(nnx.Module):
    """Linear layers with ReLU between them, and none after the last."""

    def __init__(self, sizes: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(sizes)])

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        """The outputs of the last layer."""
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


class ActionValueNetwork(nnx.Module):
    """One value for each action, ``[batch, actions]``.

    Args:
        num_inputs: features of an observation.
        hidden: widths of the hidden layers; a dueling network has two heads on all of them.
        num_actions: how many.
        atoms: numbers per action, for the subclasses.
        dueling: a value and advantages that average 0 (Wang et al. 2016, arXiv:1511.06581, eq. 9).
        rngs: draws the weights.
    """

    def __init__(
        self,
        num_inputs: int,
        hidden: tuple[int, ...],
        num_actions: int,
        *,
        atoms: int = 1,
        dueling: bool = False,
        rngs: nnx.Rngs,
    ) -> None:
        self.num_actions, self.num_atoms = num_actions, atoms
        self.advantage = Perceptron((num_inputs, *hidden, num_actions * atoms), rngs=rngs)
        self.value = Perceptron((num_inputs, *hidden, atoms), rngs=rngs) if dueling else None

    def numbers(self, S: PyTree) -> Float[Array, "batch actions atoms"]:
        """All outputs."""
        x = flatten(S)
        out = self.advantage(x).reshape(-1, self.num_actions, self.num_atoms)
        if self.value is None:
            return out
        return self.value(x)[:, None] + out - jnp.mean(out, axis=1, keepdims=True)

    def __call__(self, S: PyTree, is_training: bool) -> Any:
        """The values of preprocessed observations."""
        return self.numbers(S)[..., 0]


class ActionBinsNetwork(ActionValueNetwork):
    """``{"logits": [batch, actions, atoms]}`` for each action, as a ``StochasticQ`` with a range takes them."""

    def __call__(self, S: PyTree, is_training: bool) -> dict[str, Array]:
        """The logits of preprocessed observations."""
        return {"logits": self.numbers(S)}


class ActionQuantilesNetwork(ActionValueNetwork):
    """Quantile values for each action at the midpoints of as many equal parts (QR-DQN)."""

    def __call__(self, S: PyTree, is_training: bool) -> dict[str, Array]:
        """Values and fractions of preprocessed observations."""
        values = self.numbers(S)
        midpoints = (jnp.arange(self.num_atoms) + 0.5) / self.num_atoms
        return {"values": values, "quantile_fractions": jnp.broadcast_to(midpoints, values.shape)}


class ActionImplicitQuantilesNetwork(nnx.Module):
    """Quantile values for each action at ``atoms`` fractions drawn anew in each call (IQN).

    Arguments as of ``ActionValueNetwork``, with at least one hidden layer; no weight depends on ``atoms``.

    Source: Dabney et al. 2018, arXiv:1806.06923, eq. 4 and section 3.
    """

    def __init__(
        self,
        num_inputs: int,
        hidden: tuple[int, ...],
        num_actions: int,
        *,
        atoms: int = 64,
        dueling: bool = False,
        rngs: nnx.Rngs,
    ) -> None:
        if not hidden:
            raise ValueError("ActionImplicitQuantilesNetwork: hidden must have at least one layer; got none.")
        self.num_atoms = atoms
        width = hidden[-1]
        self.features = Perceptron((num_inputs, *hidden), rngs=rngs)
        self.embedding = nnx.Linear(NUM_COSINES, width, rngs=rngs)
        self.advantage = Perceptron((width, width, num_actions), rngs=rngs)
        self.value = Perceptron((width, width, 1), rngs=rngs) if dueling else None
        self.stream = own_stream(type(self).__name__, rngs, "fractions")

    def __call__(self, S: PyTree, is_training: bool) -> dict[str, Array]:
        """Values and fractions of preprocessed observations; all actions of a row share its fractions."""
        features = nnx.relu(self.features(flatten(S)))
        fractions = quantiles_uniform(self.stream(), len(features), self.num_atoms)
        embedded = nnx.relu(self.embedding(quantile_cos_embedding(fractions, NUM_COSINES)))
        x = features[:, None] * embedded
        out = self.advantage(x)
        if self.value is not None:
            out = self.value(x) + out - jnp.mean(out, axis=-1, keepdims=True)
        values = jnp.swapaxes(out, 1, 2)
        return {"values": values, "quantile_fractions": jnp.broadcast_to(fractions[:, None], values.shape)}


NUM_COSINES = 64
"""Features of a fraction (Dabney et al. 2018, section 3)."""


def action_network(
    env: Any, network: Any, hidden: tuple[int, ...], *, atoms: int = 1, dueling: bool = False
) -> Factory:
    """A function that makes the network for the spaces of ``env``."""
    inputs, actions = num_features(env.observation_space), int(env.action_space.n)
    return lambda rngs: network(inputs, hidden, actions, atoms=atoms, dueling=dueling, rngs=rngs)
