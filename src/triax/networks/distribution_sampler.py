"""A sampler for any action space that has a distribution."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array

from triax.core.keys import Key
from triax.core.tree_differences import describe_structure, named_leaves
from triax.networks.arguments import check_coefficient
from triax.networks.inputs import as_float, check_features
from triax.networks.randomness import own_stream
from triax.networks.samplers import Coefficient, DrawingSampler, check_sample, is_off, value_of
from triax.networks.types import StatefulModuleOutput
from triax.proba_dists import BaseProbaDist, ProbaDist, SquashedNormalDist, mask_logits


class DistributionSampler(DrawingSampler):
    """Actions of a Gymnasium space: discrete, multi-discrete, binary, boxes (scaled to their bounds), or
    nested ones.

    ``space`` is a space, for its default distribution ``ProbaDist(space)``, or a distribution of
    :mod:`triax.proba_dists` other than ``SquashedNormalDist``. The input is the tree of parameters that this
    takes, or all of them side by side, ``[batch, in_features]``, in the order of
    ``jax.tree.leaves(dist.default_priors)``. With ``masked=True`` it is ``{"params": ..., "mask": ...}``, the
    mask a tree of booleans ``[batch, n]`` (true: allowed), one for each ``logits``, nested as the space is,
    ``None`` for parts without; a row that allows nothing is an error, or NaN inside jit.

    ``action`` are clean arrays of the space (integers for ``Discrete``), ``log_likelihood`` ``[batch]`` is in
    nats, of the raw sample for boxes (see the distribution). Extras are the raw sample, one-hots exactly. The
    loss ``[batch]`` is ``-entropy_weight`` times the entropy that the distribution computes. ``eval()``: the
    mode. Metrics: ``entropy`` ``[batch]`` and ``dist_params``, for divergences. ``rng`` as for
    :class:`NormalTanhSampler`.
    """

    def __init__(
        self,
        space: gym.Space | BaseProbaDist,
        rng: nnx.Rngs | nnx.RngStream,
        entropy_weight: Coefficient = 0.0,
        *,
        masked: bool = False,
    ):
        if isinstance(space, SquashedNormalDist):
            raise TypeError(
                "DistributionSampler: near the bounds, the density under a SquashedNormalDist cannot be told "
                "from a "
                "stored action, so a replay would not reproduce it. Pass the space itself, or use "
                "NormalTanhSampler."
            )
        self.dist: Any = space if isinstance(space, BaseProbaDist) else ProbaDist(space)
        self.stream = own_stream("DistributionSampler", rng, "action_sampling")
        self.entropy_weight = check_coefficient("DistributionSampler", "entropy_weight", entropy_weight)
        self.masked = masked
        leaves, self.treedef = jax.tree.flatten(jax.eval_shape(lambda: self.dist.default_priors))
        self.shapes = tuple(leaf.shape[1:] for leaf in leaves)
        self.in_features = None if masked else self.num_params

    @property
    def num_params(self) -> int:
        """How many numbers the distribution of one action has."""
        return sum(map(math.prod, self.shapes))

    def act(self, params: Any, sample: Any, rng: Key) -> StatefulModuleOutput:
        """One step with its key."""
        params = self._dist_params(params)
        if sample is None:
            sample = self._draw(params, rng)
        else:
            check_sample(self, sample, jax.eval_shape(self._draw, params, rng))
        sample = jax.lax.stop_gradient(sample)
        entropy = self.dist.entropy(params)
        off = is_off(self.entropy_weight)
        return StatefulModuleOutput(
            next_state=(),
            output={
                "action": self.dist.decode(rng, sample),
                "log_likelihood": self.dist.log_proba(params, sample),
            },
            regularization_loss=jnp.zeros_like(entropy) if off else -value_of(self.entropy_weight) * entropy,
            metrics={"entropy": entropy, "dist_params": params},
            rollout_extras=sample,
        )

    def _draw(self, params: Any, rng: Key) -> Any:
        raw = self.dist.mode(params) if self.deterministic else self.dist.sample(params, rng)
        return harden(self.dist.space, raw)

    def _dist_params(self, x: Any) -> Any:
        if not self.masked:
            return self._tree(x)
        if not isinstance(x, Mapping) or set(x) != {"params", "mask"}:
            got = sorted(x) if isinstance(x, Mapping) else type(x).__name__
            raise ValueError(
                "DistributionSampler: with masked=True the input must be a dict of 'params' and 'mask'; got "
                f"{got}. "
                "Make one with Parallel(params=..., mask=...)."
            )
        return apply_mask(self._tree(x["params"]), x["mask"])

    def _tree(self, x: Any) -> Any:
        """Side by side to a tree of parameters; trees pass."""
        if not jax.tree_util.all_leaves([x]):
            self._check_tree(x)
            return jax.tree.map(as_float, x)
        check_features(self, x, self.num_params)
        x = as_float(x)
        leaves, start = [], 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            leaves.append(x[..., start:stop].reshape(*x.shape[:-1], *shape))
            start = stop
        return jax.tree.unflatten(self.treedef, leaves)

    def _check_tree(self, x: Any) -> None:
        """Refuse parameters of another tree, or whose batches differ; the distribution checks their features."""
        places, got = named_leaves(self.treedef.unflatten(range(len(self.shapes)))), named_leaves(x)
        if set(places) != set(got):
            wanted, came = describe_structure(self.treedef), describe_structure(x)
            raise ValueError(f"DistributionSampler: takes the parameters {wanted}, or one array; got {came}.")
        axes = {path: max(0, np.ndim(leaf) - len(self.shapes[places[path]])) for path, leaf in got.items()}
        if len({np.shape(leaf)[: axes[path]] for path, leaf in got.items()}) > 1:
            shapes = jax.tree.map(lambda leaf: list(np.shape(leaf)), x)
            raise ValueError(f"DistributionSampler: all parameters must be of one batch; got the shapes {shapes}.")


def apply_mask(params: Any, mask: Any) -> Any:
    """Parameters with the logits of what is not allowed at the lowest number; ``mask`` is nested as they are."""
    if mask is None:
        return params
    if isinstance(params, Mapping) and set(params) == {"logits"} and not isinstance(mask, Mapping):
        logits = params["logits"]
        if np.shape(mask) != logits.shape:  # would be broadcast
            raise ValueError(
                f"DistributionSampler: the mask must have the shape of the logits, {list(logits.shape)}; got "
                f"{list(np.shape(mask))}."
            )
        return {"logits": mask_logits(logits, mask)}
    if isinstance(params, Mapping):
        _check_entries(mask, params)
        return {key: apply_mask(value, mask.get(key)) for key, value in params.items()}
    if not isinstance(mask, tuple | list) or len(mask) != len(params):
        raise ValueError(
            f"DistributionSampler: the mask must be a tuple of {len(params)} here, with None where all is allowed; got"
            f" {jax.tree.map(np.shape, mask)}."
        )
    return tuple(apply_mask(value, part) for value, part in zip(params, mask, strict=True))


def _check_entries(mask: Any, params: Mapping) -> None:
    """A misspelt entry would allow everything."""
    if not isinstance(mask, Mapping):
        raise TypeError(
            f"DistributionSampler: the mask must be a dict here, as the space is; got {type(mask).__name__}."
        )
    if unknown := [key for key in mask if key not in params]:
        raise ValueError(f"DistributionSampler: the mask has entries {unknown}, expected some of {list(params)}.")


@functools.singledispatch
def harden(space: Any, raw: Any) -> Any:
    """A raw variate with exact one-hots in place of relaxed ones; real numbers stay."""
    return raw


@harden.register(gym.spaces.Discrete)
def _(space: Any, raw: Any) -> Array:
    return jax.nn.one_hot(jnp.argmax(raw, axis=-1), raw.shape[-1], dtype=raw.dtype)


@harden.register(gym.spaces.MultiDiscrete)
@harden.register(gym.spaces.MultiBinary)
def _(space: Any, raw: Any) -> list[Array]:
    return [jax.nn.one_hot(jnp.argmax(part, axis=-1), part.shape[-1], dtype=part.dtype) for part in raw]


@harden.register(gym.spaces.Tuple)
def _(space: Any, raw: Any) -> list[Any]:
    return [harden(part, value) for part, value in zip(space.spaces, raw, strict=True)]


@harden.register(gym.spaces.Dict)
def _(space: Any, raw: Any) -> dict[str, Any]:
    return {key: harden(part, raw[key]) for key, part in space.spaces.items()}
