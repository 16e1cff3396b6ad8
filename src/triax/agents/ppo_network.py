"""A network with an action and a value port as pure functions of its weights, memory included."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Int, PyTree

from triax.agents.interface import Rollout
from triax.core.env_arguments import is_like_env
from triax.core.keys import Key
from triax.core.modules import SplitModule
from triax.core.sharding import per_device
from triax.networks import PPONetworkOutput, StatefulModuleOutput, as_module, reset_where
from triax.networks.unrolling import fold


class Networks(NamedTuple):
    """Numbers of a network, apart from its structure."""

    params: dict[str, Any]
    variables: dict[str, Any]


def check_network(who: str, name: str, network: Any) -> None:
    """``TypeError`` for an environment, or what is neither a network nor what makes one."""
    if isinstance(network, nnx.Module) or (callable(network) and not is_like_env(network)):
        return
    found = "an environment" if is_like_env(network) else f"{type(network).__name__}, {network!r}"
    raise TypeError(
        f"{who}: {name} must be a StatefulModule, such as make_mlp_actor_critic(...), or a function that makes one from"
        f" nnx.Rngs; got {found}. Try {who}(make_mlp_actor_critic(...), config); the loop takes the environment."
    )


class PPONetwork(NamedTuple):
    """The structure of a network that gives a ``PPONetworkOutput``; equal for networks of one structure."""

    split: SplitModule

    @classmethod
    def of(cls, network: Any) -> tuple["PPONetwork", Networks]:
        """The structure of a ``StatefulModule`` and copies of its numbers."""
        # A copy in training mode, since the mode is part of the structure.
        copied: Any = nnx.merge(*nnx.split(as_module(network)), copy=True)
        copied.train()
        split, params, variables = SplitModule.of(copied)
        return cls(split), Networks(params, variables)

    def merge(self, networks: Networks, key: Key, *, is_training: bool = True) -> Any:
        """The network; its samplers draw if it is in training."""
        return self.split.merge(networks.params, networks.variables, key, is_training=is_training)

    def initial_carry(self, networks: Networks, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode."""
        return self.merge(networks, key).initialize_state(batch_size)

    def reset_carry(self, networks: Networks, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with fresh rows where ``done``."""
        if not jax.tree.leaves(carry):
            return carry
        return reset_where(self.merge(networks, key), carry, done)

    def step(
        self, networks: Networks, carry: PyTree, observation: PyTree, key: Key, *, is_training: bool = True
    ) -> StatefulModuleOutput:
        """One step. Raises ``TypeError`` unless the network gives a ``PPONetworkOutput``."""
        out = self.merge(networks, key, is_training=is_training)(carry, observation)
        if not isinstance(out.output, PPONetworkOutput):
            raise TypeError(
                "the network must give a PPONetworkOutput, with actions, loglikelihoods and value_estimates; got "
                f"{type(out.output).__name__}. Try PPOAdapter(action, value) as its last layer."
            )
        return out

    def replay(self, networks: Networks, rollout: Rollout, extras: PyTree, key: Key) -> StatefulModuleOutput:
        """The steps of a rollout again, with today's weights and the samples of then."""
        network = self.merge(networks, key)
        return network.unroll(rollout.carry, rollout.observation, rollout.resets, extras)

    def next_values(self, networks: Networks, rollout: Rollout, values: PyTree, extras: PyTree, key: Key) -> PyTree:
        """The value of what each step led to, leaves ``[time, batch]``: that of the next step within an episode, of its
        own final observation where it was truncated or the rollout ends; anything where it terminated.
        """
        ends = jax.tree.map(lambda leaf: leaf[-1], rollout.next_observation)
        last = self.step(networks, rollout.last_carry, ends, key).output.value_estimates
        following = jax.tree.map(lambda v, end: jnp.concatenate([v[1:], end[None]]), values, last)
        cut = jnp.asarray(rollout.truncated & ~rollout.terminated).at[-1].set(False)
        if rollout.weight is not None:
            cut &= rollout.weight > 0
        if jax.tree.leaves(rollout.carry):
            final = lambda: self._final_values(networks, rollout, extras, key)  # noqa: E731
            chosen = lambda: jax.tree.map(lambda f, v: jnp.where(cut, f, v), final(), following)  # noqa: E731
            return jax.lax.cond(jnp.any(cut), chosen, lambda: following)
        replaced = per_device(self._with_final_values, (None, None, 1, 1, 1, None), 1)
        return replaced(networks, rollout.carry, rollout.next_observation, following, cut, key)

    def _final_values(self, networks: Networks, rollout: Rollout, extras: PyTree, key: Key) -> PyTree:
        """With memory: the value of the observation that each step led to, after that step."""

        def one(carry: PyTree, inputs: tuple) -> tuple[PyTree, PyTree]:
            observation, following, reset, extra = inputs
            network = self.merge(networks, key)
            out = network(reset_where(network, carry, reset), observation, extra)
            return out.next_state, network(out.next_state, following).output.value_estimates

        steps = (rollout.observation, rollout.next_observation, rollout.resets, extras)
        return jax.lax.scan(one, rollout.carry, steps)[1]

    def _with_final_values(
        self,
        networks: Networks,
        carry: PyTree,
        observations: PyTree,
        following: PyTree,
        cut: Bool[Array, "time batch"],
        key: Key,
    ) -> PyTree:
        """Without memory: only the observations that are asked for, as many at a time as there are environments."""
        size, total = cut.shape[1], cut.size
        rows = jnp.flatnonzero(cut, size=total, fill_value=total)
        count, flat = jnp.sum(cut, dtype=jnp.int32), fold((observations, following))

        def more(state: tuple) -> Bool[Array, ""]:
            return state[0] * size < count

        def some(state: tuple) -> tuple:
            done, values = state
            index: Int[Array, " some"] = jax.lax.dynamic_slice(rows, (done * size,), (size,))
            observation = jax.tree.map(lambda leaf: jnp.take(leaf, index, axis=0, mode="clip"), flat[0])
            found = self.step(networks, carry, observation, key).output.value_estimates
            return done + 1, jax.tree.map(lambda v, new: v.at[index].set(new, mode="drop"), values, found)

        _, values = jax.lax.while_loop(more, some, (jnp.zeros((), jnp.int32), flat[1]))
        return jax.tree.map(lambda v: v.reshape(cut.shape), values)

    def learn_statistics(self, networks: Networks, extras: PyTree, key: Key) -> Networks:
        """The statistics after a rollout's extras, each sample once."""
        network = self.merge(networks, key)
        network.update_statistics(extras)
        return networks._replace(variables=self.split.variables_of(network))
