"""Variational bottlenecks: a noisy latent code that costs information."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from triax.core import random
from triax.core.numbers import check_count
from triax.networks.arguments import check_coefficient
from triax.networks.inputs import as_float, check_carry, check_features, check_old_carry
from triax.networks.module import StatefulModule
from triax.networks.randomness import key_chain, own_stream, split_keys
from triax.networks.types import ModuleState, StatefulModuleOutput
from triax.networks.unrolling import check_sequence

AR1State = dict[str, Array]
"""The carry of an ``AR1VariationalBottleneck``."""


class VariationalBottleneck(StatefulModule):
    r"""A Gaussian code :math:`z = \mu + \sigma \epsilon`, ``[batch, 2 * latent_size] -> [batch,
    latent_size]``.

    The input is :math:`\mu` and :math:`r` side by side, :math:`\sigma = \mathrm{softplus}(r) +
    \text{min\_std}`. The loss ``[batch]`` is ``kl_weight`` times the divergence from the standard normal,
    summed over latents, in nats. In ``eval()`` mode the code is :math:`\mu`.

    The carry is one typed key an environment, which resets keep: noise is the same in a replay, and for any
    part of the batch. ``rng``: an ``nnx.Rngs`` (its stream ``latent``, or the default one) or a stream; drawn
    from once, here. Metrics: ``mu``, ``sigma`` ``[batch, latent_size]``, ``kl_divergence`` ``[batch]``,
    unweighted. Source: Alemi et al. 2017, arXiv:1612.00410.
    """

    deterministic = False

    def __init__(self, latent_size: int, rng: nnx.Rngs | nnx.RngStream, kl_weight: float = 1.0, min_std: float = 1e-6):
        who = type(self).__name__
        latent_size = check_count(who, "latent_size", latent_size)
        self.latent_size, self.in_features, self.out_features = latent_size, 2 * latent_size, latent_size
        self.kl_weight = check_coefficient(who, "kl_weight", kl_weight, low=0)
        self.min_std = check_coefficient(who, "min_std", min_std, low=0)
        self.stream = own_stream(who, rng, "latent")

    def __call__(self, key: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        check_carry(self, key, [()], jnp.shape(x)[:-1])
        keys, noise_keys = split_keys(key)
        z, loss, metrics = self.encode(x, noise_keys)
        return StatefulModuleOutput(keys, z, loss, metrics)

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Keys ``[batch]``, drawn from the module's own stream."""
        return random.split(self.stream(), batch_size)

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """The same keys: noise does not repeat from episode to episode."""
        check_old_carry(self, prev_state, [()])
        return prev_state

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence: only the keys are chained."""
        check_sequence(self, state, xs, resets)
        check_features(self, xs, self.in_features)
        check_carry(self, state, [()], jnp.shape(xs)[1:-1])
        keys, noise_keys = key_chain(state, resets.shape[0])
        z, loss, metrics = self.encode(xs, noise_keys)
        return StatefulModuleOutput(keys, z, loss, metrics)

    def encode(
        self, x: Any, keys: Array
    ) -> tuple[Float[Array, "*batch latent"], Float[Array, "*batch"], dict[str, Array]]:
        """Code, loss and metrics, with a key for each row."""
        mu, r = jnp.split(as_float(x), 2, axis=-1)
        sigma = jax.nn.softplus(r) + self.min_std
        kl = 0.5 * jnp.sum(mu**2 + sigma**2 - 2 * jnp.log(sigma) - 1, axis=-1)
        metrics = {"mu": mu, "sigma": sigma, "kl_divergence": kl}
        if self.deterministic:
            return mu, self.kl_weight * kl, metrics
        noise = jax.vmap(lambda key: random.normal(key, (self.latent_size,), mu.dtype))(keys.reshape(-1))
        return mu + sigma * noise.reshape(mu.shape), self.kl_weight * kl, metrics


class AR1VariationalBottleneck(VariationalBottleneck):
    r"""As :class:`VariationalBottleneck`, plus a loss for jumps of the code between steps.

    The loss is ``kl_weight * kl + ar1_weight * l2_diff``, with ``l2_diff`` the squared difference to the last
    step's code, *averaged* over latents (the divergence is summed), and zero in the first step of an episode.
    With ``backprop_through_time=False`` the last code gets no gradient. Extra metric: ``l2_diff``
    ``[batch]``.

    The carry is ``{"keys": [batch], "last_z": [batch, latent_size], "has_last": [batch] bool}``.
    """

    def __init__(
        self,
        latent_size: int,
        rng: nnx.Rngs | nnx.RngStream,
        kl_weight: float = 1.0,
        min_std: float = 1e-6,
        ar1_weight: float = 1.0,
        backprop_through_time: bool = True,
    ):
        super().__init__(latent_size, rng, kl_weight, min_std)
        self.ar1_weight = check_coefficient(type(self).__name__, "ar1_weight", ar1_weight, low=0)
        self.backprop_through_time = backprop_through_time

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        check_features(self, x, self.in_features)
        check_carry(self, state, [(), (), (self.latent_size,)], jnp.shape(x)[:-1])
        keys, noise_keys = split_keys(state["keys"])
        z, loss, metrics = self.encode(x, noise_keys)
        last_z = state["last_z"]
        out = StatefulModuleOutput(_carry(keys, z.astype(last_z.dtype)), z, loss, metrics)
        return self._add_jumps(out, last_z, state["has_last"])

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """A sequence: only the keys are chained."""
        check_sequence(self, state, xs, resets)
        if not resets.shape[0]:
            return StatefulModule.unroll(self, state, xs, resets)
        check_features(self, xs, self.in_features)
        check_carry(self, state, [(), (), (self.latent_size,)], jnp.shape(xs)[1:-1])
        out = super().unroll(state["keys"], xs, resets)
        z = out.output.astype(state["last_z"].dtype)
        last_z = jnp.concatenate([state["last_z"][None], z[:-1]])
        in_episode = jnp.concatenate([state["has_last"][None], jnp.ones_like(resets[1:])]) & ~resets
        return self._add_jumps(out.replace(next_state=_carry(out.next_state, z[-1])), last_z, in_episode)

    def _add_jumps(self, out: StatefulModuleOutput, last_z: Array, has_last: Array) -> StatefulModuleOutput:
        last_z = last_z if self.backprop_through_time else jax.lax.stop_gradient(last_z)
        jump = jnp.where(has_last[..., None], out.output - last_z, 0.0)
        l2_diff = jnp.mean(jump**2, axis=-1)
        return out.replace(
            regularization_loss=out.regularization_loss + self.ar1_weight * l2_diff,
            metrics={**out.metrics, "l2_diff": l2_diff},
        )

    def initialize_state(self, batch_size: int) -> ModuleState:
        """Fresh keys, no last code."""
        return {
            "keys": super().initialize_state(batch_size),
            "last_z": jnp.zeros((batch_size, self.latent_size)),
            "has_last": jnp.zeros(batch_size, bool),
        }

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """The same keys, no last code."""
        check_old_carry(self, prev_state, [(), (), (self.latent_size,)])
        last_z, has_last = prev_state["last_z"], prev_state["has_last"]
        return {
            "keys": prev_state["keys"],
            "last_z": jnp.zeros_like(last_z),
            "has_last": jnp.zeros_like(has_last),
        }


def _carry(keys: Array, z: Float[Array, "batch latent"]) -> dict[str, Array]:
    return {"keys": keys, "last_z": z, "has_last": jnp.ones(z.shape[0], bool)}
