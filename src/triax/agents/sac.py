"""Soft actor-critic for ``Box`` and ``Discrete`` actions, with memory too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.action_kinds import stochastic_actions
from triax.agents.actor_critic import ActorCritic, Memory, reset_rows
from triax.agents.actor_critic_config import ActorCriticConfig
from triax.agents.critics import CRITIC_METRICS, Critics, squared_error_loss
from triax.agents.descent import Descended, Descent
from triax.agents.description import describe_agent
from triax.agents.off_policy import (
    PRIORITIES,
    Factory,
    Hyperparams,
    ReplayNeeds,
    Weights,
    moved_target,
    priorities_of,
    replay_needs,
)
from triax.core import random
from triax.core.keys import Key
from triax.core.numbers import check_count, check_number
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.learning import LossOutput
from triax.reward_tracing import TransitionBatch


@dataclass(frozen=True)
class SACConfig(ActorCriticConfig):
    """How the agent learns (Haarnoja et al. 2018, arXiv:1812.05905, and as said below).

    The returns of ``n_step`` leave out the entropies of the steps between.
    """

    temperature_learning_rate: float = 3e-4
    """Step size of Adam for the logarithm of the temperature; 0 keeps the initial one."""
    target_every: int = 1
    """The target critics move each time that so many updates are done."""
    temperature: float = 1.0
    """Worth of one nat of entropy in units of reward: the first one, or the one if it is not learned."""
    target_entropy: float | None = None
    """What the learned temperature aims at, in nats, for actions scaled to [-1, 1]; ``None`` is minus the number of
    components, of ``Discrete`` actions 98 % of the largest entropy (Christodoulou 2019, arXiv:1910.07207)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        who = "SACConfig"
        check_count(who, "target_every", self.target_every)
        check_number(who, "temperature", self.temperature, positive=True)
        check_number(who, "temperature_learning_rate", self.temperature_learning_rate, low=0)
        if self.target_entropy is not None:
            check_number(who, "target_entropy", self.target_entropy)


class Moments(NamedTuple):
    """Of gradients, and their squares, as Adam keeps them."""

    actor: PyTree
    critics: PyTree
    temperature: PyTree


class SACState(NamedTuple):
    """Everything that changes, and the numbers that may be swept (see ``with_hyperparams``)."""

    actor: Weights
    critics: Weights
    """Leaves ``[num_critics, ...]``."""
    targets: Weights
    log_temperature: Float[Array, ""]
    moments: Moments
    updates: Int[Array, ""]
    hyperparams: Hyperparams


class SACAgent(Sealed):
    """An off-policy agent for a bounded ``Box`` or ``Discrete`` actions that likes to stay random.

    An update is one step of the critics towards the soft value of the next state, one of the actor up the smallest of
    the updated critics, one of the temperature, one of the target critics. Actions are uniform until the first update.
    ``Discrete`` actions are summed over; of others one sample stands for all.

    Networks with memory learn from sequences that start with the memory that was stored, after a burn-in.

    Args:
        env: anything with ``observation_space`` and ``action_space``.
        config: how it learns.
        actor: makes the policy's network from ``nnx.Rngs``: ``func(S, is_training)`` gives ``{"mu", "logvar"}``, each
            ``[batch, *shape]``, of actions before their squashing to [-1, 1], or ``{"logits": [batch, n]}``; or a
            ``StatefulModule`` of ``S``. By default a multi-layer perceptron.
        critic: makes a critic: ``func(S, A, is_training)`` of actions in [-1, 1], with ``Discrete`` ones
            ``func(S, is_training)``, or a ``StatefulModule`` of ``{"S", "A"}`` or ``S``; as ``Q`` takes it.

    Raises:
        TypeError: the action space is another one, or a network takes or gives something else.
        ValueError: options that exclude each other.
    """

    made_of = frozenset({"config", "replay"})

    def __init__(
        self,
        env: Any,
        config: SACConfig | None = None,
        *,
        actor: Factory | None = None,
        critic: Factory | None = None,
    ) -> None:
        self.config = config = config or SACConfig()
        self._actions = actions = stochastic_actions(env, "SACAgent")
        critics = Critics(*actions.critic(critic, config.hidden), config.num_critics)
        self._nets = ActorCritic(*actions.actor(actor, config.hidden), critics)
        self.replay: ReplayNeeds = replay_needs("SACAgent", config, has_memory=self._nets.has_memory)
        self._critic_descent = Descent(self._critic_loss, config.max_grad_norm)
        self._actor_descent = Descent(self._actor_loss, config.max_grad_norm)
        self._temperature_descent = Descent(_temperature_loss)

    def __repr__(self) -> str:
        return describe_agent(self)

    def init(self, key: Key) -> SACState:
        """New weights; the target critics have those of the online ones."""
        config = self.config
        rng_actor, rng_critics = random.split(key)
        actor, critics = self._nets.init_actor(rng_actor), self._nets.critics.init(rng_critics)
        log_temperature = jnp.asarray(math.log(config.temperature), jnp.float32)
        moments = Moments(
            self._actor_descent.init(actor.params),
            self._critic_descent.init(critics.params),
            self._temperature_descent.init(log_temperature),
        )
        aim = self._actions.target_entropy if config.target_entropy is None else config.target_entropy
        numbers = {
            "learning_rate": config.learning_rate,
            "actor_learning_rate": config.actor_learning_rate,
            "temperature_learning_rate": config.temperature_learning_rate,
            "tau": config.tau,
            "target_entropy": aim,
        }
        return SACState(
            actor,
            critics,
            copy_arrays(critics),
            log_temperature,
            moments,
            jnp.zeros((), jnp.int32),
            {name: jnp.asarray(number, jnp.float32) for name, number in numbers.items()},
        )

    # ------------------------------------------------------------------ acting

    def initial_carry(self, state: SACState, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode."""
        return self._nets.initial_memory(state.actor, state.critics, batch_size, key).carry

    def reset_carry(self, state: SACState, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with fresh rows where ``done``."""
        return reset_rows(done, self._nets.initial_memory(state.actor, state.critics, len(done), key), carry)

    def act(self, state: SACState, observation: PyTree, carry: PyTree, key: Key, explore: bool = True) -> tuple:
        """``(action [batch, ...], carry, ())``; the greedy action is the median one, or the most probable."""
        rng_actor, rng_sample, rng_random, rng_critics = random.split(key, 4)
        memory = Memory.of(carry)
        dist_params, remembered = self._nets.respond(state.actor, observation, memory, rng_actor)
        if explore:
            num_envs = len(jax.tree.leaves(observation)[0])
            action = jax.lax.cond(
                state.updates == 0,
                lambda: self._actions.random(rng_random, num_envs),
                lambda: self._actions.sample(dist_params, rng_sample),
            )
        else:
            action = self._actions.mode(dist_params)
        critics = self._nets.critics.remember(state.critics, memory.critics, rng_critics, observation, action)
        return action, Memory(remembered, critics).carry, ()

    # ------------------------------------------------------------------ learning

    def learn(self, state: SACState, experience: Any, key: Key) -> tuple[SACState, dict[str, Any]]:
        """One update from a ``TransitionBatch``, with memory from a ``Trajectory``.

        Metrics: ``loss``, of the critics, summed; ``td_error``, the mean; ``q``, the mean of the critics;
        ``grads_norm`` of the critics; ``actor_loss``, ``actor_grads_norm``; ``entropy``, in nats, of actions scaled to
        [-1, 1]; ``temperature``, before the update; ``skipped``, 1 where a step was left out because it was not finite;
        and priorities if replay is prioritized.
        """
        # All keys at once: each split costs a step of a small network a percent of its time.
        rng_rows, *keys = random.split(key, 6)
        roles = {"critics": state.critics, "targets": state.targets}
        batch = self._nets.rows(experience, rng_rows, actors={"actor": state.actor}, critics=roles)
        temperature = jnp.exp(state.log_temperature)
        critics = self._critic_step(state, temperature, batch, keys[:3])
        actor = self._actor_step(state, critics.weights, temperature, batch, keys[3:])
        warmth = self._temperature_step(state, actor.metrics["entropy"])
        numbers, updates = state.hyperparams, state.updates + 1
        new = SACState(
            actor.weights,
            critics.weights,
            moved_target(state.targets, critics.weights, updates, numbers["tau"], self.config.target_every),
            warmth.weights.params,
            Moments(actor.moments, critics.moments, warmth.moments),
            updates,
            numbers,
        )
        return new, self._metrics(critics, actor, warmth, temperature)

    def _metrics(
        self, critics: Descended, actor: Descended, warmth: Descended, temperature: Float[Array, ""]
    ) -> dict[str, Any]:
        finite = critics.finite & actor.finite & warmth.finite
        metrics = {name: critics.metrics[name] for name in CRITIC_METRICS}
        metrics |= {
            "actor_loss": actor.metrics["loss"],
            "actor_grads_norm": actor.metrics["grads_norm"],
            "entropy": actor.metrics["entropy"],
            "temperature": temperature,
            "skipped": 1.0 - finite.astype(jnp.float32),
        }
        if self.config.alpha is not None:
            metrics[PRIORITIES] = priorities_of(critics.per_sample)
        return metrics

    def _critic_step(
        self, state: SACState, temperature: Array, batch: TransitionBatch, keys: Sequence[Key]
    ) -> Descended:
        context = state.actor, state.targets, temperature
        rate = state.hyperparams["learning_rate"]
        return self._critic_descent.step(state.critics, state.moments.critics, rate, keys, context, batch)

    def _critic_loss(self, params: PyTree, function_state: PyTree, keys: Any, context: Any, batch: Any) -> tuple:
        """Equations 5 and 6."""
        actor, targets, temperature = context
        rng_actor, rng_value, rng_online = keys
        value, entropy = self._value_and_entropy(batch, actor, targets, (rng_actor, rng_value))
        G = jax.lax.stop_gradient(batch.Rn + batch.In * (value + temperature * entropy))
        online = self._nets.critics.of_taken(batch, Weights(params, function_state), rng_online, role="critics")
        return squared_error_loss(batch, online, G)

    def _value_and_entropy(self, batch: TransitionBatch, actor: Weights, targets: Weights, keys: tuple) -> tuple:
        """Of the next states, by the target critics."""
        rng_actor, rng_value = keys
        nets = self._nets
        dist_params = nets.evaluate_actor(batch, actor, rng_actor, at="S_next").output

        def values(actions: PyTree) -> Array:
            evaluated = nets.critics.evaluate(batch, targets, rng_value, role="targets", at="S_next", actions=actions)
            return evaluated.output

        return self._actions.value_and_entropy(dist_params, values, rng_value)

    def _actor_step(
        self, state: SACState, critics: Weights, temperature: Array, batch: TransitionBatch, keys: Sequence[Key]
    ) -> Descended:
        rate, context = state.hyperparams["actor_learning_rate"], (critics, temperature)
        return self._actor_descent.step(state.actor, state.moments.actor, rate, keys, context, batch)

    def _actor_loss(self, params: PyTree, function_state: PyTree, keys: Any, context: Any, batch: Any) -> tuple:
        """Equation 9; gradients flow through the critics, whose weights are constants."""
        critics, temperature = context
        rng_actor, rng_value = keys
        weights = Weights(params, function_state)
        actor = self._nets.evaluate_actor(batch, weights, rng_actor, is_training=True)

        def values(actions: PyTree) -> Array:
            return self._nets.critics.of_others(batch, critics, rng_value, role="critics", actions=actions)

        value, entropy = self._actions.value_and_entropy(actor.output, values, rng_value)
        loss = -jnp.mean(batch.W * (value + temperature * entropy)) + actor.loss
        return loss, LossOutput(actor.function_state, {"loss": loss, "entropy": jnp.mean(batch.W * entropy)})

    def _temperature_step(self, state: SACState, entropy: Float[Array, ""]) -> Descended:
        numbers = state.hyperparams
        rate, excess = numbers["temperature_learning_rate"], entropy - numbers["target_entropy"]
        weights = Weights(state.log_temperature, ())
        return self._temperature_descent.step(weights, state.moments.temperature, rate, None, excess, None)


def _temperature_loss(params: Array, function_state: PyTree, keys: Any, context: Any, batch: Any) -> tuple:
    """Equation 18: the temperature times the mean excess of entropy over the target, as a function of its logarithm."""
    return jnp.exp(params) * context, LossOutput(function_state, {})
