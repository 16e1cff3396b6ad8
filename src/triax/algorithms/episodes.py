"""Episodes to look into: what each layer put out, and the states to render."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.ppo_network import Networks, PPONetwork
from triax.algorithms.evaluation import as_evaluated
from triax.core import random
from triax.core.key_types import is_typed_key
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count
from triax.env_protocol import restart
from triax.envs import AdaptedEnv, resetting
from triax.loops.rollouts import total_reward
from triax.networks import StatefulModule, extract_activations, with_recording


@dataclass(frozen=True)
class Playing:
    """What playing is compiled for."""

    network: PPONetwork
    env: Any
    length: int
    n_envs: int = 1
    deterministic: bool = True


class Played(NamedTuple):
    """Steps of one environment that resets itself."""

    states: Any
    """Before each step, leaves ``[time, ...]``."""
    final: Any
    """The state after the last step."""
    reward: Float[Array, ""]
    """Of the first episode, all rewards together."""
    length: Int[Array, ""]
    """Steps of the first episode."""


@partial(jax.jit, static_argnums=0)
def play(playing: Playing, networks: Networks, key: Key) -> Played:
    """One environment, episode after episode; the memory is reset with it."""
    network, env = playing.network, playing.env

    def step(before: tuple, t: Int[Array, ""]) -> tuple:
        state, carry, starts, first = before
        now = random.fold_in(fold_name(key, "act"), t)
        carry = network.reset_carry(networks, carry, starts, fold_name(now, "carry"))
        obs = jax.tree.map(lambda leaf: leaf[None], state.obs)
        out = network.step(networks, carry, obs, now, is_training=not playing.deterministic)
        after = env.step(state, jax.tree.map(lambda leaf: leaf[0], out.output.actions))
        told = state, jnp.where(first, total_reward(after.reward), 0.0), first
        return (after, out.next_state, after.done[None], first & ~after.done), told

    state = restart(env, fold_name(key, "env"))
    carry = network.initial_carry(networks, 1, fold_name(key, "carry"))
    start = state, carry, jnp.zeros(1, bool), jnp.ones((), bool)
    (final, *_), (states, rewards, first) = jax.lax.scan(step, start, jnp.arange(playing.length))
    return Played(states, final, jnp.sum(rewards), jnp.sum(first, dtype=jnp.int32))


def eval_rollout_for_render_scan(
    env: Any, networks: nnx.Module, max_episode_length: int, key: Key, *, deterministic: bool = True
) -> tuple[Any, Any, Float[Array, ""]]:
    """``(stacked, final, total_reward)`` of one environment that plays for ``max_episode_length`` steps.

    Where an episode ends, the environment and the network's memory begin anew together. ``stacked`` are the states of
    ``env`` before each step, leaves ``[time, ...]``, ``final`` the one after the last: what :func:`unstack_trajectory`
    makes the argument of ``env.render``. ``total_reward`` is that of the first episode, all rewards together.
    """
    check_count("eval_rollout_for_render_scan", "max_episode_length", max_episode_length)
    network, numbers = PPONetwork.of(networks)
    own = resetting(env)
    played = play(Playing(network, own, max_episode_length, deterministic=deterministic), numbers, key)
    if own is env:
        return played.states, played.final, played.reward
    adapted = own.env
    states, final = (state.replace(inner=state.inner.env) for state in (played.states, played.final))
    if adapted is not env and isinstance(adapted, AdaptedEnv):
        states, final = states.inner, final.inner
    return states, final, played.reward


def unstack_trajectory(stacked_states: Any, final_state: Any, max_episode_length: int) -> list[Any]:
    """The ``max_episode_length + 1`` states as a list, leaves as NumPy arrays; not to be called under ``jit``."""
    on_host = jax.tree.map(_to_host, stacked_states)
    return [jax.tree.map(lambda leaf, t=t: leaf[t], on_host) for t in range(max_episode_length)] + [
        jax.tree.map(_to_host, final_state)
    ]


def _to_host(leaf: Any) -> Any:
    return leaf if is_typed_key(leaf) else np.asarray(leaf)


def record_activations_rollout(
    env: Any, networks: StatefulModule, n_envs: int, max_episode_length: int, key: Key
) -> tuple[PyTree, Float[Array, "time envs"]]:
    """``(activations, dones)`` of one episode in each environment, with the network in evaluation mode.

    Activations are nested as the network's containers are, leaves ``[time, n_envs, ...]``, as
    :func:`triax.networks.extract_activations` gives them. ``dones`` is 1 where the episode had ended before that
    step; nothing is reset. The networks are not touched.
    """
    check_count("record_activations_rollout", "n_envs", n_envs)
    check_count("record_activations_rollout", "max_episode_length", max_episode_length)
    network, numbers = PPONetwork.of(with_recording(networks))
    return _record(Playing(network, as_evaluated(env), max_episode_length, n_envs), numbers, key)


@partial(jax.jit, static_argnums=0)
def _record(playing: Playing, networks: Networks, key: Key) -> tuple[PyTree, Float[Array, "time envs"]]:
    network, env = playing.network, playing.env

    def step(before: tuple, t: Int[Array, ""]) -> tuple:
        envs, carry, ended = before
        now = random.fold_in(fold_name(key, "act"), t)
        out = network.step(networks, carry, envs.obs, now, is_training=False)
        envs = jax.vmap(env.step)(envs, out.output.actions)
        after: Bool[Array, " envs"] = ended | envs.done
        return (envs, out.next_state, after), (extract_activations(out.metrics), ended.astype(jnp.float32))

    envs = jax.vmap(partial(restart, env))(random.split(fold_name(key, "envs"), playing.n_envs))
    carry = network.initial_carry(networks, playing.n_envs, fold_name(key, "carry"))
    start = envs, carry, jnp.zeros(playing.n_envs, bool)
    return jax.lax.scan(step, start, jnp.arange(playing.length))[1]
