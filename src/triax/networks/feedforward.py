"""Layers without memory: dense and convolutional."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from triax.core.numbers import check_count, check_number
from triax.networks.arguments import Activation, as_activation, check_layer
from triax.networks.convolution import conv_general_dilated
from triax.networks.inputs import as_float, check_array, check_features
from triax.networks.module import StatefulModule
from triax.networks.plain import plain
from triax.networks.types import ModuleState, StatefulModuleOutput


class Dense(StatefulModule):
    """``activation(x W + b)``, ``[batch, in_features] -> [batch, out_features]``.

    Default initialisers are those of ``nnx.Linear`` (LeCun normal kernel, zero bias); further keyword
    arguments go to it. ``activation`` is a function or the name of one in :mod:`jax.nn`. Raises
    :class:`SizeError` for an input of another width.

    A layer can be pickled if its activation can: ``None`` and functions of your own modules, but not JAX's compiled
    ones (``nnx.relu``, ``"relu"``) and lambdas, for which cloudpickle is needed. Checkpoints need no pickle.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        rngs: nnx.Rngs,
        activation: Activation | None = None,
        **linear_kwargs: Any,
    ):
        sizes = check_layer("Dense", rngs, in_features=in_features, out_features=out_features)
        self.activation = as_activation("Dense", "activation", activation)
        self.in_features, self.out_features = sizes
        self.linear = nnx.Linear(*sizes, rngs=rngs, **linear_kwargs)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        y = self.linear(jnp.asarray(x))
        return plain(y if self.activation is None else self.activation(y))


class LearnedConstant(StatefulModule):
    """``[batch, ...] -> [batch, size]``: the same trained numbers for every input, ``initial_value`` at first.

    For a spread that does not depend on the observation:
    ``[Parallel(mean=Dense(64, n, rngs), std=LearnedConstant(n)), Flattener(), NormalTanhSampler(rngs, 0.01)]``;
    a :class:`DistributionSampler` of a box takes ``Parallel(mu=..., logvar=LearnedConstant(n))``. Raises ``ValueError``
    for inputs without batch axis.
    """

    def __init__(self, size: int, initial_value: float | int = 0.0):
        self.out_features = check_count("LearnedConstant", "size", size)
        initial_value = check_number("LearnedConstant", "initial_value", initial_value)
        self.value = nnx.Param(jnp.full(self.out_features, initial_value, jnp.float32))

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        leaves = jax.tree.leaves(x)
        if not leaves or not np.shape(leaves[0]):
            raise ValueError(f"LearnedConstant: takes arrays [batch, ...]; got {x!r}, without a batch axis.")
        return plain(jnp.broadcast_to(self.value[...], (np.shape(leaves[0])[0], self.out_features)))


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
        sizes = check_layer("Conv", rngs, in_features=in_features, out_features=out_features)
        self.activation = as_activation("Conv", "activation", activation)
        self.in_features, self.out_features = sizes
        size = tuple(kernel_size) if isinstance(kernel_size, Sequence | np.ndarray) else (kernel_size,) * 2
        size = tuple(check_count("Conv", "kernel_size", side) for side in size)
        conv_kwargs = {"conv_general_dilated": conv_general_dilated} | conv_kwargs
        self.conv = nnx.Conv(self.in_features, self.out_features, size, rngs=rngs, **conv_kwargs)

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        axes = len(self.conv.kernel_size)
        check_array(self, x, wanted := f"[batch, {'size, ' * axes}{self.in_features}]")
        if jnp.ndim(x) <= axes:
            raise ValueError(f"Conv: takes images {wanted}, channels last; got shape {list(jnp.shape(x))}.")
        check_features(self, x, self.in_features)
        y = self.conv(as_float(x))
        return plain(y if self.activation is None else self.activation(y))
