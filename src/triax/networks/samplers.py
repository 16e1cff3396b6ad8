"""Action samplers: from the parameters of a distribution to an action and its log-likelihood."""

import abc
import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from triax.core import random
from triax.core.keys import Key
from triax.core.tree_differences import named_leaves
from triax.networks.arguments import check_coefficient
from triax.networks.inputs import as_float, check_array, check_features
from triax.networks.module import StatefulModule
from triax.networks.randomness import own_stream
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence

Coefficient = float | int | nnx.Variable
"""A weight of a loss; an ``nnx.Variable`` may change without compiling anew (schedules)."""


class ActionSampler(StatefulModule):
    """Base of modules that end an action port: their output is ``{"action", "log_likelihood"}``.

    The sample goes into ``rollout_extras``; given back in the replay, it is judged rather than drawn.
    ``eval()`` and ``train()`` of any network around it set ``deterministic``: the mode instead of a draw.
    """

    deterministic = False

    @abc.abstractmethod
    def __call__(self, state: ModuleState, mean_and_std: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""


class DrawingSampler(ActionSampler):
    """A sampler with a key for each step, from a stream of its own; a subclass implements :meth:`act`."""

    stream: nnx.RngStream

    @abc.abstractmethod
    def act(self, params: Any, sample: Any, rng: Key) -> StatefulModuleOutput:
        """One step with its key; ``sample`` is what the rollout drew, or ``None`` there."""

    def __call__(self, state: ModuleState, mean_and_std: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step; draws a key unless deterministic."""
        return self.act(mean_and_std, rollout_extras, self._keys(1)[0])

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence at once, with the keys that stepping would draw."""
        check_sequence(self, state, xs, resets)
        for leaf in jax.tree.leaves(rollout_extras):
            if jnp.shape(leaf)[:2] != resets.shape:
                raise ValueError(
                    f"{type(self).__name__}.unroll: rollout_extras must start with [time, batch] = "
                    f"{list(resets.shape)}, as resets; got shape {list(jnp.shape(leaf))}. Are they those of another "
                    "rollout?"
                )
        return jax.vmap(self.act)(xs, rollout_extras, self._keys(resets.shape[0]))

    def _keys(self, steps: int) -> Array:
        """The next keys of the stream; in ``eval()`` mode nothing is drawn, so that evaluation leaves no
        trace.
        """
        counts = self.stream.count[...] + jnp.arange(steps, dtype=jnp.uint32)
        keys = jax.vmap(random.fold_in, (None, 0))(self.stream.key[...], counts)
        if not self.deterministic:
            self.stream.count[...] += steps
        return keys


class NormalTanhSampler(DrawingSampler):
    r"""Normal distribution squashed by tanh: ``[batch, 2 * size]`` to actions ``[batch, size]`` in (-1, 1).

    The input is :math:`\mu` and :math:`r` side by side, :math:`\sigma = (\mathrm{softplus}(r) +
    \text{min\_std}) \cdot \text{std\_scale}`. The action is :math:`\tanh u`, :math:`u \sim N(\mu, \sigma)`;
    ``log_likelihood`` ``[batch]`` is its density in nats, right for any :math:`u`. Extras are :math:`u`, a
    constant for gradients. Actions are not scaled to an environment's bounds: :class:`DistributionSampler`
    does that.

    The loss ``[batch]`` is ``-entropy_weight`` times a one-sample estimate of the entropy of the action, with
    reparametrised gradient (the entropy has no closed form); with weight 0 nothing is drawn for it, and in
    ``eval()`` mode it is taken at the mean. ``rng``: an ``nnx.Rngs`` (its stream ``action_sampling``, or the
    default one) or a stream; drawn from once, here. Metrics: ``mu``, ``sigma`` ``[batch, size]``. Source:
    Haarnoja et al. 2018, arXiv:1812.05905, appendix C.
    """

    def __init__(
        self,
        rng: nnx.Rngs | nnx.RngStream,
        entropy_weight: Coefficient,
        min_std: float = 1e-3,
        std_scale: float = 1.0,
    ):
        self.stream = own_stream("NormalTanhSampler", rng, "action_sampling")
        self.entropy_weight = check_coefficient("NormalTanhSampler", "entropy_weight", entropy_weight)
        self.min_std = check_coefficient("NormalTanhSampler", "min_std", min_std, low=0)
        self.std_scale = check_coefficient("NormalTanhSampler", "std_scale", std_scale, positive=True)

    def act(self, params: Any, sample: Any, rng: Key) -> StatefulModuleOutput:
        """One step with its key."""
        check_array(self, params, "[batch, 2 * size]")
        width = jnp.shape(params)[-1]
        check_features(self, params, width + width % 2)
        action_key, entropy_key = random.split(rng)
        mu, r = jnp.split(as_float(params), 2, axis=-1)
        sigma = (jax.nn.softplus(r) + self.min_std) * self.std_scale
        if sample is None:
            sample = mu if self.deterministic else mu + sigma * random.normal(action_key, mu.shape, mu.dtype)
        else:
            check_sample(self, sample, mu)
        u = jax.lax.stop_gradient(sample)
        log_p = jnp.sum(_log_normal(u, mu, sigma) - _log_slope(u), axis=-1)
        return StatefulModuleOutput(
            next_state=(),
            output={"action": jnp.tanh(u), "log_likelihood": log_p},
            regularization_loss=self._entropy_loss(mu, sigma, entropy_key),
            metrics={"mu": mu, "sigma": sigma},
            rollout_extras=u,
        )

    def _entropy_loss(self, mu: Array, sigma: Array, rng: Key) -> Float[Array, " batch"]:
        if is_off(self.entropy_weight):
            return jnp.zeros(mu.shape[:-1])
        z = mu if self.deterministic else mu + sigma * random.normal(rng, mu.shape, mu.dtype)
        entropy = 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(sigma) + _log_slope(z)
        return -value_of(self.entropy_weight) * jnp.sum(entropy, axis=-1)


def check_sample(sampler: ActionSampler, sample: Any, drawn: Any) -> None:
    """Refuse a sample to judge that has not the tree and the shapes of one that is drawn."""
    wanted, got = (jax.tree.map(lambda leaf: list(jnp.shape(leaf)), tree) for tree in (drawn, sample))
    if named_leaves(wanted) != named_leaves(got):
        raise ValueError(
            f"{type(sampler).__name__}: rollout_extras are the sample of this step in the rollout, {wanted}; got "
            f"{got}. Are they those of another batch or network?"
        )


def _log_normal(x: Array, mu: Array, sigma: Array) -> Array:
    return -0.5 * jnp.square((x - mu) / sigma) - 0.5 * math.log(2 * math.pi) - jnp.log(sigma)


def _log_slope(u: Array) -> Array:
    """``log(1 - tanh(u)^2)``, finite for any ``u``."""
    return 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))


def is_off(coefficient: Coefficient) -> bool:
    """Is it the number 0, for good?"""
    return not isinstance(coefficient, nnx.Variable) and coefficient == 0


def value_of(coefficient: Coefficient) -> Any:
    """The number, traced if it is a variable."""
    return coefficient[...] if isinstance(coefficient, nnx.Variable) else coefficient
