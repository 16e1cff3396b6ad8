"""TD3, and DDPG as the agent that it came from: deterministic policies for ``Box`` actions, with memory too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.action_kinds import UnitBox, box_critic
from triax.agents.actor_critic import ActorCritic, Memory, reset_rows
from triax.agents.actor_critic_config import ActorCriticConfig
from triax.agents.actor_critic_networks import DeterministicActor, actor_network
from triax.agents.critics import CRITIC_METRICS, Critics, squared_error_loss
from triax.agents.descent import Descended, Descent
from triax.agents.description import describe_agent
from triax.agents.off_policy import (
    PRIORITIES,
    Factory,
    Hyperparams,
    ReplayNeeds,
    Weights,
    priorities_of,
    replay_needs,
)
from triax.core import random
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key
from triax.core.numbers import check_count, check_number
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.functions.interpolation import interpolate
from triax.functions.outputs import TreeOutput
from triax.functions.state_function import StateFunction
from triax.learning import LossOutput
from triax.reward_tracing import TransitionBatch

Noise = Literal["gaussian", "ou"]

OU_THETA = 0.15
"""How fast drifting noise falls back to 0 (Lillicrap et al. 2016, section 7)."""


@dataclass(frozen=True)
class TD3Config(ActorCriticConfig):
    """How the agent learns (Fujimoto et al. 2018, arXiv:1802.09477, and as said below).

    Of the critics, the smallest value counts in the target, the first critic in the policy's gradient. Target networks
    move each time that the actor learns. Noise is told in units of half the width of each component's bounds.
    """

    policy_delay: int = 2
    """Updates of the critics for each one of the actor and the target networks."""
    target_noise: float = 0.2
    """Standard deviation of the noise on the target's action; 0 for none."""
    noise_clip: float = 0.5
    """Largest size of that noise."""
    noise: Noise = "gaussian"
    """Exploration: independent noise, or an Ornstein-Uhlenbeck process that starts at 0 with each episode."""
    exploration_noise: float = 0.1
    """Its standard deviation, of an Ornstein-Uhlenbeck process that of each push."""

    def __post_init__(self) -> None:
        super().__post_init__()
        who = "TD3Config"
        check_count(who, "policy_delay", self.policy_delay)
        for name in ("target_noise", "noise_clip", "exploration_noise"):
            check_number(who, name, getattr(self, name), low=0)
        if self.noise not in ("gaussian", "ou"):
            raise ValueError(f"{who}: noise must be 'gaussian' or 'ou'; got {self.noise!r}.")

    @classmethod
    def ddpg(cls, **options: Any) -> "TD3Config":
        """Of DDPG: one critic, no smoothing, no delay, drifting noise, and the numbers of its paper.

        Left out are its weight decay and its batch normalization. ``options`` replace single fields.
        Source: Lillicrap et al. 2016, arXiv:1509.02971, section 7.
        """
        preset: dict[str, Any] = {
            "hidden": (400, 300),
            "num_critics": 1,
            "batch_size": 64,
            "learning_rate": 1e-3,
            "actor_learning_rate": 1e-4,
            "tau": 1e-3,
            "policy_delay": 1,
            "target_noise": 0.0,
            "noise": "ou",
            "exploration_noise": 0.2,
        }
        return cls(**(preset | options))


class Networks(NamedTuple):
    """Weights of an actor and its critics, leaves of those ``[num_critics, ...]``."""

    actor: Weights
    critics: Weights


class TD3State(NamedTuple):
    """Everything that changes, and the numbers that may be swept (see ``with_hyperparams``)."""

    online: Networks
    targets: Networks
    moments: tuple[PyTree, PyTree]
    """Of the gradients of actor and critics, as Adam keeps them."""
    updates: Int[Array, ""]
    latest: dict[str, Float[Array, ""]]
    """Metrics of the latest step of the actor."""
    hyperparams: Hyperparams


class DeterministicPolicy(StateFunction):
    """An action before its squashing, ``func(S, is_training) -> [batch, *shape]``."""

    def __init__(self, func: Factory, env: Any) -> None:
        self.action_space = env.action_space
        shape = self.action_space.shape
        output = TreeOutput(lambda rng, n: random.normal(rng, (n, *shape)), "an action before its squashing")
        self._set_up_state(func, env, output, observation_preprocessor=None, random_seed=0)


class TD3Agent(Sealed):
    """An off-policy agent for a bounded ``Box`` whose policy gives one action for each observation.

    Actions are uniform until the first update. Networks with memory learn from sequences that start with the memory
    that was stored, after a burn-in.

    Args:
        env: anything with ``observation_space`` and ``action_space``.
        config: how it learns; ``TD3Config.ddpg()`` for DDPG.
        actor: makes the policy's network from ``nnx.Rngs``: ``func(S, is_training)`` gives real numbers
            ``[batch, *shape]``, which tanh takes to [-1, 1]; or a ``StatefulModule`` of ``S``. By default a
            multi-layer perceptron.
        critic: makes a critic: ``func(S, A, is_training)`` of actions in [-1, 1], or a ``StatefulModule`` of
            ``{"S", "A"}``; as ``Q`` takes it.

    Raises:
        TypeError: the action space is another one, or a network takes or gives something else.
        ValueError: options that exclude each other.
    """

    made_of = frozenset({"config", "replay"})

    def __init__(
        self,
        env: Any,
        config: TD3Config | None = None,
        *,
        actor: Factory | None = None,
        critic: Factory | None = None,
    ) -> None:
        self.config = config = config or TD3Config()
        refuse_unmade_env("TD3Agent", env)
        self._box = UnitBox(env.action_space, "TD3Agent")
        actor = actor or actor_network(env, DeterministicActor, config.hidden, env.action_space.shape)
        critics = Critics(*box_critic(env, self._box, critic, config.hidden), config.num_critics)
        self._nets = ActorCritic(actor, DeterministicPolicy(actor, env), critics)
        self.replay: ReplayNeeds = replay_needs("TD3Agent", config, has_memory=self._nets.has_memory)
        self._critic_descent = Descent(self._critic_loss, config.max_grad_norm)
        self._actor_descent = Descent(self._actor_loss, config.max_grad_norm)

    def __repr__(self) -> str:
        return describe_agent(self)

    def init(self, key: Key) -> TD3State:
        """New weights; the target networks have those of the online ones."""
        rng_actor, rng_critics = random.split(key)
        online = Networks(self._nets.init_actor(rng_actor), self._nets.critics.init(rng_critics))
        names = ("learning_rate", "actor_learning_rate", "tau", "exploration_noise")
        names += ("target_noise", "noise_clip") if self.config.target_noise else ()
        return TD3State(
            online,
            copy_arrays(online),
            (self._actor_descent.init(online.actor.params), self._critic_descent.init(online.critics.params)),
            jnp.zeros((), jnp.int32),
            {name: jnp.zeros((), jnp.float32) for name in ("actor_loss", "actor_grads_norm", "actor_skipped")},
            {name: jnp.asarray(getattr(self.config, name), jnp.float32) for name in names},
        )

    # ------------------------------------------------------------------ acting

    def initial_carry(self, state: TD3State, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode."""
        return self._fresh(state, batch_size, key).carry

    def reset_carry(self, state: TD3State, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with fresh rows where ``done``."""
        return reset_rows(done, self._fresh(state, len(done), key), carry)

    def _fresh(self, state: TD3State, batch_size: int, key: Key) -> Memory:
        memory = self._nets.initial_memory(*state.online, batch_size, key)
        if self.config.noise == "gaussian":
            return memory
        return memory._replace(noise=jnp.zeros((batch_size, *self._box.space.shape), jnp.float32))

    def act(self, state: TD3State, observation: PyTree, carry: PyTree, key: Key, explore: bool = True) -> tuple:
        """``(action [batch, ...], carry, ())``."""
        rng_actor, rng_noise, rng_random, rng_critics = random.split(key, 4)
        memory = Memory.of(carry)
        output, remembered = self._nets.respond(state.online.actor, observation, memory, rng_actor)
        unit, noise = jnp.tanh(output), memory.noise
        if explore:
            added, noise = self._noise(state, noise, unit.shape, rng_noise)
            noisy = jnp.clip(unit + added, -1.0, 1.0)
            unit = jax.lax.cond(state.updates == 0, lambda: self._box.random(rng_random, len(noisy)), lambda: noisy)
        action = self._box.from_unit(unit)
        critics = self._nets.critics.remember(state.online.critics, memory.critics, rng_critics, observation, action)
        return action, Memory(remembered, critics, noise).carry, ()

    def _noise(self, state: TD3State, drift: PyTree, shape: tuple[int, ...], key: Key) -> tuple[Array, PyTree]:
        """What to add to actions, and how far the noise has drifted."""
        push = state.hyperparams["exploration_noise"] * random.normal(key, shape)
        if self.config.noise == "gaussian":
            return push, ()
        drift = drift - OU_THETA * drift + push
        return drift, drift

    # ------------------------------------------------------------------ learning

    def learn(self, state: TD3State, experience: Any, key: Key) -> tuple[TD3State, dict[str, Any]]:
        """One update from a ``TransitionBatch``, with memory from a ``Trajectory``.

        Metrics: ``loss``, of the critics, summed; ``td_error``, the mean; ``q``, the mean of the critics;
        ``grads_norm`` of the critics; ``actor_loss``, ``actor_grads_norm``, of the latest step of the actor, 0 before
        the first; ``skipped``, 1 where a step was left out because it was not finite; and priorities if replay is
        prioritized.
        """
        rng_rows, *keys = random.split(key, 6)
        batch = self._nets.rows(
            experience,
            rng_rows,
            actors={"actor": state.online.actor, "actor_targets": state.targets.actor},
            critics={"critics": state.online.critics, "targets": state.targets.critics},
        )
        critics = self._critic_step(state, batch, keys[:3])
        updates = state.updates + 1
        new = state._replace(
            online=state.online._replace(critics=critics.weights),
            moments=(state.moments[0], critics.moments),
            updates=updates,
        )
        is_due = updates % self.config.policy_delay == 0
        follow = lambda new: self._policy_step(new, batch, keys[3:])  # noqa: E731
        new = follow(new) if self.config.policy_delay == 1 else jax.lax.cond(is_due, follow, lambda new: new, new)
        actor_skipped = jnp.where(is_due, new.latest["actor_skipped"], 0.0)
        metrics = {name: critics.metrics[name] for name in CRITIC_METRICS}
        metrics |= {name: new.latest[name] for name in ("actor_loss", "actor_grads_norm")}
        metrics["skipped"] = jnp.maximum(1.0 - critics.finite.astype(jnp.float32), actor_skipped)
        if self.config.alpha is not None:
            metrics[PRIORITIES] = priorities_of(critics.per_sample)
        return new, metrics

    def _critic_step(self, state: TD3State, batch: TransitionBatch, keys: Sequence[Key]) -> Descended:
        context, rate = (state.targets, state.hyperparams), state.hyperparams["learning_rate"]
        return self._critic_descent.step(state.online.critics, state.moments[1], rate, keys, context, batch)

    def _critic_loss(self, params: PyTree, function_state: PyTree, keys: Any, context: Any, batch: Any) -> tuple:
        """Half the squared error; the target is that of algorithm 1."""
        rng_actor, rng_noise, rng_critics = keys
        nets, (targets, numbers) = self._nets, context
        output = nets.evaluate_actor(batch, targets.actor, rng_actor, at="S_next", role="actor_targets").output
        A_next = self._smoothed(jnp.tanh(output), numbers, rng_noise)
        following = nets.critics.evaluate(
            batch, targets.critics, rng_critics, role="targets", at="S_next", actions=A_next
        )
        G = jax.lax.stop_gradient(batch.Rn + batch.In * jnp.min(following.output, axis=0))
        online = nets.critics.of_taken(batch, Weights(params, function_state), rng_critics, role="critics")
        return squared_error_loss(batch, online, G)

    def _smoothed(self, unit: Float[Array, "batch ..."], numbers: Hyperparams, key: Key) -> Float[Array, "batch ..."]:
        """Scaled actions with clipped noise, within the bounds (section 5.3)."""
        if not self.config.target_noise:
            return unit
        noise = numbers["target_noise"] * random.normal(key, unit.shape)
        limit = numbers["noise_clip"]
        return jnp.clip(unit + jnp.clip(noise, -limit, limit), -1.0, 1.0)

    def _policy_step(self, state: TD3State, batch: TransitionBatch, keys: Sequence[Key]) -> TD3State:
        """One step of the actor, then of all target networks."""
        online, numbers = state.online, state.hyperparams
        rate = numbers["actor_learning_rate"]
        actor = self._actor_descent.step(online.actor, state.moments[0], rate, keys, online.critics, batch)
        online = online._replace(actor=actor.weights)
        latest = {
            "actor_loss": actor.metrics["loss"],
            "actor_grads_norm": actor.metrics["grads_norm"],
            "actor_skipped": 1.0 - actor.finite.astype(jnp.float32),
        }
        moved = (interpolate(tuple(a), tuple(b), numbers["tau"]) for a, b in zip(state.targets, online, strict=True))
        targets = Networks(*(Weights(*weights) for weights in moved))
        moments = (actor.moments, state.moments[1])
        return state._replace(online=online, targets=targets, moments=moments, latest=latest)

    def _actor_loss(self, params: PyTree, function_state: PyTree, keys: Any, critics: Any, batch: Any) -> tuple:
        """Minus what the first critic says of the actor's actions."""
        rng_actor, rng_critics = keys
        weights, first = Weights(params, function_state), jax.tree.map(lambda leaf: leaf[:1], critics)
        actor = self._nets.evaluate_actor(batch, weights, rng_actor, is_training=True)
        actions = jnp.tanh(actor.output)
        (value,) = self._nets.critics.of_others(batch, first, rng_critics, role="critics", actions=actions)
        loss = -jnp.mean(batch.W * value) + actor.loss
        return loss, LossOutput(actor.function_state, {"loss": loss})
