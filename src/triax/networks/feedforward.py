"""Layers without memory: dense and convolutional."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from flax import nnx

from triax.networks.convolution import conv_general_dilated
from triax.networks.inputs import as_float, check_array, check_features
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput

Activation = Callable[..., Any]


class Dense(StatefulModule):
    """``activation(x W + b)``, ``[batch, in_features] -> [batch, out_features]``.

    Default initialisers are those of ``nnx.Linear`` (LeCun normal kernel, zero bias); further keyword
    arguments go to it. Raises :class:`SizeError` for an input of another width.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        rngs: nnx.Rngs,
        activation: Activation | None = None,
        **linear_kwargs: Any,
    ):
        self.in_features = in_features
        self.out_features = out_features
        self.linear = nnx.Linear(in_features, out_features, rngs=rngs, **linear_kwargs)
        self.activation = activation

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        y = self.linear(jnp.asarray(x))
        return plain(y if self.activation is None else self.activation(y))


class Conv(StatefulModule):
    """Convolution of images, channels last: ``[batch, height, width, in_features] -> [..., out_features]``.

    ``activation(conv(x))``, a wrapped ``nnx.Conv`` (kernels ``kernel_size``, an int for a square); further
    keyword arguments (``strides``, ``padding``, ...) go to it. Integer pixels are converted, not scaled: put
    ``Scale(1 / 255)`` before. Raises :class:`SizeError` for another number of channels.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        rngs: nnx.Rngs,
        activation: Activation | None = None,
        **conv_kwargs: Any,
    ):
        self.in_features, self.out_features = in_features, out_features
        size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        conv_kwargs = {"conv_general_dilated": conv_general_dilated} | conv_kwargs
        self.conv = nnx.Conv(in_features, out_features, size, rngs=rngs, **conv_kwargs)
        self.activation = activation

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        axes = len(self.conv.kernel_size)
        check_array(self, x, wanted := f"[batch, {'size, ' * axes}{self.in_features}]")
        if jnp.ndim(x) <= axes:
            raise ValueError(f"Conv: takes images {wanted}, channels last; got shape {list(jnp.shape(x))}.")
        check_features(self, x, self.in_features)
        y = self.conv(as_float(x))
        return plain(y if self.activation is None else self.activation(y))
