"""Invertible transforms of values, which squash large returns for a network to learn.

All are element-wise, strictly increasing and odd, differentiable everywhere, and take arrays of any shape.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

ValueFunction = Callable[[Any], Any]


class ValueTransform:
    """A function of values and its inverse; iterates as that pair.

    Transforms of equal functions are equal and hash alike, as static arguments of jitted functions must.
    """

    def __init__(self, transform_func: ValueFunction, inverse_func: ValueFunction):
        for name, func in (("transform_func", transform_func), ("inverse_func", inverse_func)):
            if not callable(func):
                raise TypeError(f"ValueTransform: {name} must be callable; got {func!r}")
        self._pair = (transform_func, inverse_func)

    @property
    def transform_func(self) -> ValueFunction:
        """From original to transformed units."""
        return self._pair[0]

    @property
    def inverse_func(self) -> ValueFunction:
        """From transformed to original units."""
        return self._pair[1]

    def __iter__(self) -> Iterator[ValueFunction]:
        return iter(self._pair)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueTransform) and self._pair == other._pair

    def __hash__(self) -> int:
        return hash(self._pair)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._pair[0]!r}, {self._pair[1]!r})"


class LogTransform(ValueTransform):
    r"""Linear near zero and logarithmic beyond ``scale``.

    .. math:: f(x) = \lambda\, \mathrm{sign}(x) \log(1 + |x| / \lambda), \quad
        f^{-1}(y) = \lambda\, \mathrm{sign}(y) (e^{|y| / \lambda} - 1)

    Raises ``ValueError`` unless ``scale`` is positive and finite.
    """

    scale: float

    def __init__(self, scale: float | int = 1.0):
        self.scale = float(scale)
        if not 0 < self.scale < math.inf:
            raise ValueError(f"LogTransform: scale must be positive and finite; got {scale}")
        super().__init__(_SignedLog(self.scale), _SignedExp(self.scale))


class SignedHyperbolicTransform(ValueTransform):
    r"""A square root that stays invertible, :math:`h(x) = \mathrm{sign}(x)(\sqrt{|x| + 1} - 1) + \epsilon x`.

    Raises ``ValueError`` unless ``epsilon`` is finite and not negative.
    Source: Pohlen et al. 2018, arXiv:1805.11593, section 3.2.
    """

    epsilon: float

    def __init__(self, epsilon: float | int = 1e-3):
        self.epsilon = float(epsilon)
        if not 0 <= self.epsilon < math.inf:
            raise ValueError(f"SignedHyperbolicTransform: epsilon must be finite and not negative; got {epsilon}")
        super().__init__(_SignedSqrt(self.epsilon), _SignedSquare(self.epsilon))


def value_transform_of(obj: Any) -> ValueTransform:
    """The transform that a user means: ``None`` is the identity; a pair of functions is one.

    Raises ``TypeError`` for anything else.
    """
    if obj is None:
        return ValueTransform(_identity, _identity)
    if isinstance(obj, ValueTransform):
        return obj
    if isinstance(obj, tuple | list) and len(obj) == 2 and all(map(callable, obj)):
        return ValueTransform(*obj)
    raise TypeError(
        f"value_transform must be a ValueTransform, a pair of functions (f, f_inverse) or None; got {obj!r}"
    )


def _identity(x: Any) -> Any:
    return x


# Sign and magnitude meet at zero, where the derivatives of abs and sign would give zero instead of the slope.


@dataclass(frozen=True)
class _SignedLog:
    scale: float

    def __call__(self, x: ArrayLike) -> Float[Array, "..."]:
        ratio = jnp.asarray(x) / self.scale
        return self.scale * (jnp.log1p(jnp.maximum(ratio, 0)) - jnp.log1p(jnp.maximum(-ratio, 0)))


@dataclass(frozen=True)
class _SignedExp:
    scale: float

    def __call__(self, y: ArrayLike) -> Float[Array, "..."]:
        ratio = jnp.asarray(y) / self.scale
        return self.scale * (jnp.expm1(jnp.maximum(ratio, 0)) - jnp.expm1(jnp.maximum(-ratio, 0)))


@dataclass(frozen=True)
class _SignedSqrt:
    epsilon: float

    def __call__(self, x: ArrayLike) -> Float[Array, "..."]:
        x = jnp.asarray(x)
        # sqrt(a + 1) - 1 = a / (sqrt(a + 1) + 1), without the cancellation
        return x / (jnp.sqrt(jnp.abs(x) + 1) + 1) + self.epsilon * x


@dataclass(frozen=True)
class _SignedSquare:
    epsilon: float

    def __call__(self, y: ArrayLike) -> Float[Array, "..."]:
        y = jnp.asarray(y)
        size = jnp.abs(y)
        # u = sqrt(|x| + 1) - 1 solves epsilon u^2 + (1 + 2 epsilon) u = |y|, and |x| = u (u + 2)
        slope = 1 + 2 * self.epsilon
        per_y = 2 / (slope + jnp.sqrt(slope**2 + 4 * self.epsilon * size))
        return y * per_y * (size * per_y + 2)
