"""What a value function's output means: a number, bins, or quantiles. The rules are the same for all three."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from triax.functions import is_stochastic
from triax.functions.decoding import BinnedValueDecoding
from triax.functions.evaluate import flatten_actions
from triax.losses.value_losses import quantile_huber
from triax.losses.value_transforms import ValueTransform

Column = Float[Array, " batch"] | Float[np.ndarray, " batch"]


@runtime_checkable
class Estimate(Protocol):
    """Operations on outputs of a value function.

    ``Next`` is an estimate at the next state, ready for a backup: for one action, or for all with an axis after the
    batch axis.
    """

    transform: ValueTransform

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """Expected values of all actions in original units, from a type-2 output."""
        ...

    def mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The expectation of each row in original units."""
        ...

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The expectation of each row, transformed, for errors and metrics."""
        ...

    def following(self, output: PyTree) -> PyTree:
        """``Next`` from an output."""
        ...

    def mix(self, following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The mixture over actions."""
        ...

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """Of several ``Next`` for one action, row by row the one with the smallest expectation."""
        ...

    def backup(self, following: PyTree, shift: Column, scale: Column) -> PyTree:
        """The target: ``shift + scale * Next`` in original units, in the form of an output."""
        ...

    def certain(self, value: Column) -> PyTree:
        """The target that is ``value`` for sure, in original units, in the form of an output."""
        ...

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Column) -> Float[Array, ""]:
        """The weighted loss of an output."""
        ...


class ScalarEstimate:
    """Outputs are values in transformed space; ``Next`` is a value in original units."""

    def __init__(self, f: Any) -> None:
        self.transform: ValueTransform = f.value_transform

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """Untransformed."""
        return self.transform.inverse_func(output)

    def mean(self, output: PyTree) -> Float[Array, " batch"]:
        """Untransformed."""
        return self.transform.inverse_func(output)

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The output itself."""
        return output

    def following(self, output: PyTree) -> PyTree:
        """Untransformed."""
        return self.transform.inverse_func(output)

    def mix(self, following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The expectation in original units."""
        return jnp.sum(probabilities * following, axis=-1)

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """The minimum."""
        return jnp.min(jnp.stack(candidates), axis=0)

    def backup(self, following: PyTree, shift: Column, scale: Column) -> PyTree:
        """Transformed."""
        return self.transform.transform_func(shift + scale * following)

    def certain(self, value: Column) -> PyTree:
        """Transformed."""
        return self.transform.transform_func(value)

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Column) -> Float[Array, ""]:
        """The rule's loss function."""
        return loss_function(target, output, weights)


class _DistributionEstimate:
    """Outputs and ``Next`` are distribution parameters in transformed space."""

    def __init__(self, f: Any) -> None:
        self.decoding, self.dist = f.decoding, f.proba_dist
        self.transform: ValueTransform = f.value_transform

    def values(self, output: PyTree) -> Float[Array, "batch n"]:
        """The means."""
        return flatten_actions(self.mean)(output)

    def mean(self, output: PyTree) -> Float[Array, " batch"]:
        """In original units."""
        return self.decoding.mean(None, output)

    def transformed_mean(self, output: PyTree) -> Float[Array, " batch"]:
        """The transformed mean."""
        return self.decoding.transformed_mean(output)

    def following(self, output: PyTree) -> PyTree:
        """As it is."""
        return output

    def smallest(self, candidates: list[PyTree]) -> PyTree:
        """The whole distribution with the smallest mean."""
        means = jnp.stack([self.mean(candidate) for candidate in candidates], axis=1)
        choice = jnp.argmin(means, axis=1)
        pick_rows = jax.vmap(lambda leaf, index: leaf[index])
        return jax.tree.map(lambda *leaves: pick_rows(jnp.stack(leaves, axis=1), choice), *candidates)

    def backup(self, following: PyTree, shift: Column, scale: Column) -> PyTree:
        """The distribution of the transformed sum."""
        return self.dist.affine_transform(following, scale, shift, self.transform)

    def certain(self, value: Column) -> PyTree:
        """All mass at the transformed value."""
        anything = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (len(value), *leaf.shape[1:])), self.dist.default_priors
        )
        return self.backup(anything, value, jnp.zeros_like(value))


class BinnedEstimate(_DistributionEstimate):
    """Logits over bins (C51, Bellemare et al. 2017)."""

    def mix(self, following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The mixture of the distributions (not of their logits)."""
        log_p = jax.nn.log_softmax(following["logits"], axis=-1)
        return {"logits": jax.scipy.special.logsumexp(log_p, axis=1, b=probabilities[..., None])}

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Column) -> Float[Array, ""]:
        """Cross-entropy."""
        return jnp.mean(weights * self.dist.cross_entropy(target, output))


class QuantileEstimate(_DistributionEstimate):
    """Quantile values and their fractions (QR-DQN, IQN; Dabney et al. 2017, 2018)."""

    def mix(self, following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
        """The mixture's own quantiles, at the midpoints of as many equal parts; of one certain action those it has."""
        certain = jnp.all(jnp.max(probabilities, axis=-1) == 1)  # as greedy ones are but for ties: spares a slow sort
        return jax.lax.cond(certain, _most_probable, _quantile_mixture, following, probabilities)

    def loss(self, loss_function: Callable, target: PyTree, output: PyTree, weights: Column) -> Float[Array, ""]:
        """Quantile Huber loss."""
        return quantile_huber(target["values"], output["values"], output["quantile_fractions"], weights)


def _most_probable(following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
    index = jnp.argmax(probabilities, axis=-1)
    return jax.tree.map(lambda leaf: jnp.take_along_axis(leaf, index[:, None, None], axis=1)[:, 0], following)


def _quantile_mixture(following: PyTree, probabilities: Float[Array, "batch n"]) -> PyTree:
    values = following["values"]
    batch, num = values.shape[0], values.shape[-1]
    values = values.reshape(batch, -1)
    order = jnp.argsort(values, axis=-1)
    mass = jnp.repeat(probabilities / num, num, axis=-1)
    cumulated = jnp.cumsum(jnp.take_along_axis(mass, order, axis=-1), axis=-1)
    midpoints = (jnp.arange(num) + 0.5) / num
    # Levels that are equal but for rounding count as equal: the quantile is the first value that reaches the level.
    index = jax.vmap(lambda row: jnp.searchsorted(row, midpoints - 1e-5))(cumulated)
    index = jnp.minimum(index, cumulated.shape[-1] - 1)
    mixed = jnp.take_along_axis(values, jnp.take_along_axis(order, index, axis=-1), axis=-1)
    fractions = jnp.broadcast_to(midpoints, mixed.shape).astype(following["quantile_fractions"].dtype)
    return {"values": mixed, "quantile_fractions": fractions}


def estimate_of(f: Any) -> Estimate:
    """How to read the outputs of the value function ``f``."""
    if not is_stochastic(f):
        return ScalarEstimate(f)
    return BinnedEstimate(f) if isinstance(f.decoding, BinnedValueDecoding) else QuantileEstimate(f)


def greedy(values: Float[Array, "batch n"]) -> Float[Array, "batch n"]:
    """Weights of the maximal actions; ties share equally."""
    is_max = values >= jnp.max(values, axis=-1, keepdims=True)
    return is_max / jnp.sum(is_max, axis=-1, keepdims=True)
