"""Evaluation: one episode in each of many environments, and what they were like."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.logging_level import LoggingLevel, summarize
from triax.agents.ppo_network import Networks, PPONetwork
from triax.core import random
from triax.core.keys import Key, fold_name
from triax.core.numbers import check_count
from triax.env_protocol import restart
from triax.envs import adapt
from triax.envs.adapt import declared_action_space
from triax.loops.action_checks import check_actions


class Watched(NamedTuple):
    """Episodes that are watched until they end; leaves ``[n_envs, ...]`` but for the steps."""

    steps: Int[Array, ""]
    envs: Any
    carry: PyTree
    running: Bool[Array, " envs"]
    rewards: PyTree
    """Sums of each reward."""
    lengths: Int[Array, " envs"]
    sums: dict[str, PyTree]
    """Of what is measured besides, by family."""


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation is compiled for: equal ones are compiled once, for any length of episodes."""

    network: PPONetwork
    env: Any
    n_envs: int
    level: LoggingLevel = LoggingLevel.NONE
    percentiles: tuple[float, ...] = ()
    deterministic: bool = True

    def run(self, networks: Networks, longest: Int[Array, ""], key: Key) -> tuple[dict[str, Array], Int[Array, ""]]:
        """Metrics, and the steps until the last episode was over."""

        def is_on(watched: Watched) -> Bool[Array, ""]:
            return (watched.steps < longest) & jnp.any(watched.running)

        watched = jax.lax.while_loop(is_on, lambda w: self._step(networks, w, key), self._begin(networks, key))
        return self._report(watched), watched.steps

    def _begin(self, networks: Networks, key: Key) -> Watched:
        envs, carry = self._first(networks, self.n_envs, key)
        zeros = jax.tree.map(lambda r: jnp.zeros(r.shape, jnp.float32), envs.reward)
        sums = jax.eval_shape(lambda: self._act(networks, envs, carry, key)[2])
        return Watched(
            jnp.zeros((), jnp.int32),
            envs,
            carry,
            jnp.ones(self.n_envs, bool),
            zeros,
            jnp.zeros(self.n_envs, jnp.int32),
            jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), sums),
        )

    def _first(self, networks: Networks, n_envs: int, key: Key) -> tuple[Any, PyTree]:
        envs = jax.vmap(partial(restart, self.env))(random.split(fold_name(key, "envs"), n_envs))
        return envs, self.network.initial_carry(networks, n_envs, fold_name(key, "carry"))

    def _step(self, networks: Networks, watched: Watched, key: Key) -> Watched:
        key = random.fold_in(fold_name(key, "act"), watched.steps)
        envs, carry, measured = self._act(networks, watched.envs, watched.carry, key)

        def add(total: Array, new: Array) -> Array:
            still = watched.running.reshape(-1, *(1,) * (new.ndim - 1))
            return total + jnp.where(still, new, 0.0)

        return Watched(
            watched.steps + 1,
            envs,
            carry,
            watched.running & ~envs.done,
            jax.tree.map(add, watched.rewards, envs.reward),
            watched.lengths + watched.running,
            jax.tree.map(add, watched.sums, measured),
        )

    def _act(self, networks: Networks, envs: Any, carry: PyTree, key: Key) -> tuple[Any, PyTree, dict[str, PyTree]]:
        """Environments and memories after a step, and what it measured, float32 ``[n_envs, ...]``."""
        out = self.network.step(networks, carry, envs.obs, key, is_training=not self.deterministic)
        check_actions("evaluation", out.output.actions, declared_action_space(self.env))
        envs = jax.vmap(self.env.step)(envs, out.output.actions)
        measured = {}
        if LoggingLevel.NETWORK_METRICS in self.level:
            measured["net"] = jax.tree.map(self._row_each, out.metrics, self._has_rows(networks, key))
        if LoggingLevel.ENV_METRICS in self.level:
            measured["env"] = envs.metrics
        return envs, out.next_state, jax.tree.map(lambda leaf: leaf.astype(jnp.float32), measured)

    def _row_each(self, leaf: Any, has_rows: bool) -> Array:
        leaf = jnp.asarray(leaf)
        return leaf if has_rows else jnp.broadcast_to(leaf, (self.n_envs, *leaf.shape))

    def _has_rows(self, networks: Networks, key: Key) -> PyTree:
        """Which of the network's metrics have a batch axis: those that one environment more makes longer."""

        def shapes(n_envs: int) -> PyTree:
            envs, carry = self._first(networks, n_envs, key)
            return self.network.step(networks, carry, envs.obs, key).metrics

        fewer, more = (jax.eval_shape(partial(shapes, n)) for n in (self.n_envs, self.n_envs + 1))
        return jax.tree.map(lambda a, b: a.shape[:1] != b.shape[:1], fewer, more)

    def _report(self, watched: Watched) -> dict[str, Float[Array, ""]]:
        rewards = watched.rewards
        total = sum(jax.tree.leaves(rewards), jnp.zeros(self.n_envs))
        found = summarize("eval/episode_reward", total, self.percentiles)
        if jax.tree.structure(rewards) != jax.tree.structure(0):
            found |= summarize("eval/episode_reward", rewards, self.percentiles)
        found |= summarize("eval/lifespan", watched.lengths, self.percentiles)
        for family, sums in watched.sums.items():
            found |= summarize(f"eval/{family}", jax.tree.map(partial(_over, watched.lengths), sums), self.percentiles)
        return found


@partial(jax.jit, static_argnums=0)
def evaluate(
    evaluation: Evaluation, networks: Networks, longest: Int[Array, ""], key: Key
) -> tuple[dict[str, Array], Int[Array, ""]]:
    """``evaluation.run``, compiled."""
    return evaluation.run(networks, longest, key)


def eval_rollout(
    env: Any,
    networks: Any,
    n_envs: int,
    max_episode_length: int,
    key: Key,
    logging_percentiles: Sequence[float] | None = None,
    logging_level: LoggingLevel = LoggingLevel.NONE,
    *,
    deterministic: bool = True,
) -> dict[str, Float[Array, ""]]:
    """What episodes are like, one in each of ``n_envs`` environments, until all have ended.

    Args:
        env: a JAX environment.
        networks: a module or a function that gives a ``PPONetworkOutput``; its variables and its mode are not touched.
        n_envs: episodes, side by side.
        max_episode_length: steps after which an episode counts as it is.
        key: draws the episodes.
        logging_percentiles: ``.../p2.5`` and so on, besides mean and standard deviation.
        logging_level: ``NETWORK_METRICS`` and ``ENV_METRICS`` add ``eval/net/...`` and ``eval/env/...``, of the means
            over each episode.
        deterministic: take modes and means for actions, in evaluation mode; otherwise samples, in training mode.

    Metrics, over the episodes: ``eval/episode_reward/mean`` and ``/std`` of the sum of all rewards, and
    ``eval/episode_reward/NAME/...`` of each if there are several; ``eval/lifespan/mean`` and ``/std`` of the number
    of steps, the last one included.
    """
    check_count("eval_rollout", "n_envs", n_envs)
    check_count("eval_rollout", "max_episode_length", max_episode_length)
    network, numbers = PPONetwork.of(networks)
    percentiles = tuple(logging_percentiles or ())
    evaluation = Evaluation(network, as_evaluated(env), n_envs, logging_level, percentiles, deterministic)
    return evaluate(evaluation, numbers, jnp.asarray(max_episode_length, jnp.int32), key)[0]


def as_evaluated(env: Any) -> Any:
    """The environment with settled states; one that resets itself is taken as it is."""
    return env if getattr(env, "resets_itself", False) else adapt(env)


def _over(lengths: Int[Array, " envs"], sums: Float[Array, "envs ..."]) -> Array:
    """Means over the steps of each episode."""
    return sums / lengths.reshape(-1, *(1,) * (sums.ndim - 1))
