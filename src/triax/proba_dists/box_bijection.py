"""Between a ``Box`` and the real numbers, component by component."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Bool, Float, Shaped

from triax.spaces import BoxBounds, canonical_dtype

EDGE = float(np.finfo(np.float32).eps) / 2
"""The smallest distance from a bound that is told apart, relative to the width: the sigmoid saturates there."""

Component = Float[np.ndarray, "..."]
Map = Callable[[Array], Array]


@dataclass(frozen=True)
class BoxBijection:
    r"""An increasing map from real numbers :math:`u` to a ``Box``, by which bounds the component has.

    ===================  =======================================================
    two bounds           low + (high - low) sigmoid(u), with u cut to ``clip_reals``
    only ``low``         low + softplus(u), about low + u for large u
    only ``high``        high - softplus(-u)
    none                 u
    ===================  =======================================================

    Integer boxes are rounded, from half a unit beyond the bounds, so that each integer has an equal share of
    the sigmoid. The inverse is exact to rounding in the interior; values within ``EDGE`` (6e-8 of the width)
    of a bound, which float32 can hardly tell apart, have one finite image, ±16.6 for two bounds. A component
    whose bounds are equal has the image 0.
    """

    bounds: BoxBounds
    dtype: np.dtype
    low: Component
    high: Component
    has_low: Bool[np.ndarray, "..."]
    has_high: Bool[np.ndarray, "..."]
    clip_reals: tuple[float, float]

    @classmethod
    def of(
        cls, space: spaces.Box, clip_box: tuple[float, float] | None, clip_reals: tuple[float, float]
    ) -> "BoxBijection":
        """For the bounds of ``space``, made narrower by ``clip_box``, if given, in every component."""
        bounds, dtype = BoxBounds.of(space), canonical_dtype(space)
        margin = 0.0 if dtype.kind == "f" else 0.5
        low = np.where(bounds.has_low, bounds.low.astype(np.float64) - margin, -np.inf)
        high = np.where(bounds.has_high, bounds.high.astype(np.float64) + margin, np.inf)
        if clip_box is not None:
            low, high = np.maximum(low, clip_box[0]), np.minimum(high, clip_box[1])
            if np.any(low >= high):
                raise ValueError(
                    f"NormalDist: clip_box={clip_box} leaves nothing of some component of {space}."
                    " Pass a pair that overlaps with the bounds of every component."
                )
        real = np.float64 if dtype == np.float64 else np.float32
        low, high = low.astype(real), high.astype(real)
        has_low, has_high = np.asarray(np.isfinite(low)), np.asarray(np.isfinite(high))
        return cls(bounds, dtype, low, high, has_low, has_high, clip_reals)

    def to_reals(self, x: Shaped[Array, "batch ..."]) -> Float[Array, "batch ..."]:
        """Of box values, those beyond the bounds included (they count as the bounds)."""
        x = jnp.clip(x.astype(self.low.dtype), self.low, self.high)
        return self._by_bounds(x, self._logit, self._inverse_softplus)

    def from_reals(self, u: Float[Array, "batch ..."]) -> Shaped[Array, "batch ..."]:
        """Box values in the dtype that JAX uses for the space."""
        x = self._by_bounds(u, self._sigmoid, self._softplus)
        if self.dtype.kind != "f":
            return self._round(x)
        x = x.astype(self.dtype)
        is_bounded = bool((np.isfinite(self.bounds.low) | np.isfinite(self.bounds.high)).any())
        return jnp.clip(x, self.bounds.low, self.bounds.high) if is_bounded else x

    def _by_bounds(self, x: Array, two_sided: Map, one_sided: Map) -> Array:
        both, either = self.has_low & self.has_high, self.has_low | self.has_high
        result = x
        if (either & ~both).any():
            result = jnp.where(either & ~both, one_sided(x), result)
        if both.any():
            result = two_sided(x) if both.all() else jnp.where(both, two_sided(x), result)
        return result

    def _interval(self) -> tuple[Component, Component]:
        """Low and width; any interval for components that lack a bound, whose result is not used."""
        both = self.has_low & self.has_high
        low, high = np.where(both, self.low, 0), np.where(both, self.high, 1)
        return low, np.asarray(high - low)

    def _sigmoid(self, u: Array) -> Array:
        low, width = self._interval()
        return jax.nn.sigmoid(jnp.clip(u, *self.clip_reals)) * width + low

    def _logit(self, x: Array) -> Array:
        # Differences from the bounds keep their digits near them, which logit((x - low) / width) does not.
        low, width = self._interval()
        floor = np.maximum(EDGE * width, np.finfo(width.dtype).tiny)
        u = jnp.log(jnp.maximum(x - low, floor)) - jnp.log(jnp.maximum((low + width) - x, floor))
        return jnp.clip(u, *self.clip_reals)

    def _edge(self) -> tuple[Component, Component]:
        """The only bound and the direction away from it."""
        one = self.has_low ^ self.has_high
        edge = np.where(one, np.where(self.has_low, self.low, self.high), 0)
        return edge, np.where(self.has_low, 1, -1).astype(edge.dtype)

    def _softplus(self, u: Array) -> Array:
        edge, sign = self._edge()
        return jax.nn.softplus(u * sign) * sign + edge

    def _inverse_softplus(self, x: Array) -> Array:
        edge, sign = self._edge()
        distance = jnp.maximum((x - edge) * sign, EDGE * np.maximum(np.abs(edge), 1))
        return (distance + jnp.log(-jnp.expm1(-distance))) * sign

    def _round(self, x: Array) -> Array:
        bounds = self.bounds
        if self.dtype.kind == "b":
            low, high = bounds.low.astype(np.float32), bounds.high.astype(np.float32)
            return (jnp.clip(jnp.round(x), low, high)).astype(bool)
        # Casting back what lies beyond the integers is undefined, and the largest ones are no float32.
        low = _last_float_inside(bounds.low, x.dtype, 1)
        high = _last_float_inside(bounds.high, x.dtype, -1)
        return jnp.clip(jnp.round(x), low, high).astype(self.dtype)


def _last_float_inside(bound: np.ndarray, dtype: np.dtype, direction: int) -> np.ndarray:
    """The float nearest to ``bound`` and not beyond it; ``direction`` is 1 for lower bounds, else -1."""
    nearest = bound.astype(dtype)
    is_beyond = direction * (bound.astype(object) - nearest.astype(object)) > 0
    return np.where(is_beyond, np.nextafter(nearest, np.asarray(direction * np.inf, dtype)), nearest)
