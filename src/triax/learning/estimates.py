"""What a value function's output means: a number, bins, or quantiles. The rules are the same for all three."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from triax.functions import is_stochastic
from triax.functions.decoding import BinnedValueDecoding
from triax.functions.evaluate import flatten_actions
from triax.functions.model_types import pick_action
from triax.losses.value_losses import quantile_huber

Weights = Float[Array, " batch"]


@runtime_checkable
class Estimate(Protocol):
    """Operations on outputs of a value function. ``Next`` is an estimate at the next state, ready for a backup."""

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """Expected values of all actions in original units, from a type-2 output."""
        ...

    def mix(self, output: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """``Next``: the mixture over actions, from a type-2 output."""
        ...

    def single(self, output: PyTree) -> PyTree:
        """``Next`` from an output with one estimate per row."""
        ...

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """Of several ``Next``, row by row the one with the smallest expectation."""
        ...

    def backup(self, following: PyTree, shift: Weights, scale: Weights) -> PyTree:
        """The target: ``shift + scale * Next`` in original units, in the form of an output."""
        ...

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Weights) -> Float[Array, ""]:
        """The weighted loss of an output."""
        ...

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The expectation of each row in transformed space, for errors and metrics."""
        ...


class ScalarEstimate:
    """Outputs are values in transformed space; ``Next`` is a value in original units."""

    def __init__(self, f: Any) -> None:
        self.transform = f.value_transform

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """Untransformed."""
        return self.transform.inverse_func(output)

    def mix(self, output: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The expectation in original units."""
        return jnp.sum(probabilities * self.values(output), axis=-1)

    def single(self, output: PyTree) -> PyTree:
        """Untransformed."""
        return self.transform.inverse_func(output)

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """The minimum."""
        return jnp.min(jnp.stack(candidates), axis=0)

    def backup(self, following: PyTree, shift: Weights, scale: Weights) -> PyTree:
        """Transformed."""
        return self.transform.transform_func(shift + scale * following)

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Weights) -> Float[Array, ""]:
        """The rule's loss function."""
        return loss_function(target, output, weights)

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The output itself."""
        return output


class _DistributionEstimate:
    """Outputs and ``Next`` are distribution parameters in transformed space."""

    def __init__(self, f: Any) -> None:
        self.decoding, self.dist, self.transform = f.decoding, f.proba_dist, f.value_transform

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """The means."""
        return flatten_actions(self._mean)(output)

    def _mean(self, dist_params: PyTree) -> Float[Array, " batch"]:
        return self.decoding.mean(None, dist_params)

    def single(self, output: PyTree) -> PyTree:
        """As it is."""
        return output

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """The whole distribution with the smallest mean."""
        means = jnp.stack([self._mean(candidate) for candidate in candidates], axis=1)
        choice = jax.nn.one_hot(jnp.argmin(means, axis=1), len(candidates))
        return pick_action(jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *candidates), choice)

    def backup(self, following: PyTree, shift: Weights, scale: Weights) -> PyTree:
        """The distribution of the transformed sum."""
        return self.dist.affine_transform(following, scale, shift, self.transform)

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The transformed mean."""
        return self.decoding.transformed_mean(output)


class BinnedEstimate(_DistributionEstimate):
    """Logits over bins (C51, Bellemare et al. 2017)."""

    def mix(self, output: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The mixture of the distributions (not of their logits)."""
        log_p = jax.nn.log_softmax(output["logits"], axis=-1)
        return {"logits": jax.scipy.special.logsumexp(log_p, axis=1, b=probabilities[..., None])}

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Weights) -> Float[Array, ""]:
        """Cross-entropy."""
        return jnp.mean(weights * self.dist.cross_entropy(target, output))


class QuantileEstimate(_DistributionEstimate):
    """Quantile values and their fractions (QR-DQN, IQN; Dabney et al. 2017, 2018)."""

    def mix(self, output: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The mixture's own quantiles, at the midpoints of as many equal parts."""
        values, num = output["values"], output["values"].shape[-1]
        batch = values.shape[0]
        order = jnp.argsort(values.reshape(batch, -1), axis=-1)
        mass = jnp.repeat(probabilities / num, num, axis=-1)
        cumulated = jnp.cumsum(jnp.take_along_axis(mass, order, axis=-1), axis=-1)
        midpoints = (jnp.arange(num) + 0.5) / num
        index = jax.vmap(lambda row: jnp.searchsorted(row, midpoints))(cumulated)
        index = jnp.minimum(index, cumulated.shape[-1] - 1)
        picked = jnp.take_along_axis(order, index, axis=-1)
        mixed = jnp.take_along_axis(values.reshape(batch, -1), picked, axis=-1)
        return {"values": mixed, "quantile_fractions": jnp.broadcast_to(midpoints, mixed.shape)}

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Weights) -> Float[Array, ""]:
        """Quantile Huber loss."""
        return quantile_huber(target["values"], output["values"], output["quantile_fractions"], weights)


def estimate_of(f: Any) -> ScalarEstimate | BinnedEstimate | QuantileEstimate:
    """How to read the outputs of the value function ``f``."""
    if not is_stochastic(f):
        return ScalarEstimate(f)
    return BinnedEstimate(f) if isinstance(f.decoding, BinnedValueDecoding) else QuantileEstimate(f)


def greedy(values: Float[Array, "batch n"]) -> Float[Array, "batch n"]:
    """Weights of the maximal actions; ties share equally."""
    is_max = values >= jnp.max(values, axis=-1, keepdims=True)
    return is_max / jnp.sum(is_max, axis=-1, keepdims=True)
