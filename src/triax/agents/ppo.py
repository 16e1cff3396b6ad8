"""PPO for networks with memory: rollouts replayed from the memory they began with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.description import describe_agent
from triax.agents.interface import Rollout
from triax.agents.logging_level import LoggingLevel, summarize
from triax.agents.off_policy import Weights
from triax.agents.ppo_config import PPOAgentConfig, PPONumbers
from triax.agents.ppo_loss import PPOLosses, Targets, make_targets, normalize, ppo_losses
from triax.agents.ppo_network import Networks, PPONetwork, check_network
from triax.agents.rollout_updates import check_minibatches, descent_of, read_by_updates
from triax.core import random
from triax.core.keys import Key, as_typed_key, fold_name
from triax.core.modules import write_into
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.learning.learner import LossOutput
from triax.networks import PPONetworkOutput


class PPOState(NamedTuple):
    """Everything that changes."""

    networks: Networks
    optimizer_state: PyTree
    numbers: PPONumbers
    """Coefficients, which may differ between the agents of a ``vmap``."""


class PPOExtras(NamedTuple):
    """What acting tells learning, leaves ``[batch, ...]``."""

    output: PPONetworkOutput
    """Log-likelihoods and values; no actions."""
    network: PyTree
    """The network's ``rollout_extras``."""
    metrics: PyTree = ()
    """The network's, if they are logged."""


class Minibatch(NamedTuple):
    """Some environments of a rollout."""

    rollout: Rollout
    targets: Targets


class PPOAgent(Sealed):
    """An on-policy agent: a network that gives a ``PPONetworkOutput``, for any actions and rewards that it handles.

    A rollout's advantages are estimated once, with the values of the acting network. Minibatches are whole
    trajectories, replayed from the memory at the start of the rollout, or from a fresh one where an episode starts
    there. Statistics of normalizers are learned once, after all updates.

    Agents of one structure are equal, whatever their weights and numbers, so that compiled loops are shared.

    Args:
        network: a ``StatefulModule`` to begin with, which is copied; or what makes one from ``nnx.Rngs``, for agents
            that draw their weights from the key of ``init``.
        config: how it learns.
        optimizer: instead of Adam by ``config``.

    Raises:
        TypeError: ``network`` is neither, for example an environment, which the loop takes; or ``config`` is another.
    """

    made_of = frozenset({"config"})

    def __init__(
        self,
        network: nnx.Module | Callable[[nnx.Rngs], nnx.Module],
        config: PPOAgentConfig | None = None,
        *,
        optimizer: optax.GradientTransformation | None = None,
    ) -> None:
        check_network("PPOAgent", "network", network)
        if not isinstance(config, PPOAgentConfig | None):
            raise TypeError(f"PPOAgent: config must be a PPOAgentConfig; got {type(config).__name__}.")
        self.config = config = config or PPOAgentConfig()
        self._factory = None if isinstance(network, nnx.Module) else network
        first = network if self._factory is None else self._factory(nnx.Rngs(0))
        self._network, networks = PPONetwork.of(first)
        self._given = networks if self._factory is None else None
        self._optimizer = optimizer
        self._descent = descent_of(self._loss, config, optimizer)

    def __eq__(self, other: object) -> bool:
        return self._structure == other._structure if isinstance(other, PPOAgent) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._structure)

    def __repr__(self) -> str:
        return describe_agent(self)

    @property
    def _structure(self) -> tuple:
        return self._network, self.config.structure, self._optimizer

    # ------------------------------------------------------------------ the interface

    def init(self, key: Key) -> PPOState:
        """The given network's weights, copied; or those of a new one, drawn with ``key``."""
        if self._factory is None:
            networks: Networks = copy_arrays(self._given)
        else:
            rngs = nnx.Rngs(as_typed_key(key))
            networks = PPONetwork.of(self._factory(rngs))[1]
        numbers = PPONumbers.of(self.config)
        if self._optimizer is not None:
            numbers = numbers._replace(learning_rate=jnp.ones((), jnp.float32))
        return PPOState(networks, self._descent.init(networks.params), numbers)

    def initial_carry(self, state: PPOState, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode."""
        return self._network.initial_carry(state.networks, batch_size, key)

    def reset_carry(self, state: PPOState, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with fresh rows where ``done``."""
        return self._network.reset_carry(state.networks, carry, done, key)

    def act(self, state: PPOState, observation: PyTree, carry: PyTree, key: Key, explore: bool = True) -> tuple:
        """``(actions, carry, PPOExtras)``; without ``explore`` the network is in evaluation mode, extras ``()``."""
        out = self._network.step(state.networks, carry, observation, key, is_training=explore)
        if not explore:
            return out.output.actions, out.next_state, ()
        metrics = out.metrics if LoggingLevel.NETWORK_METRICS in self.config.logging_level else ()
        extras = PPOExtras(out.output.replace(actions=()), out.rollout_extras, metrics)
        return out.output.actions, out.next_state, extras

    def learn(self, state: PPOState, experience: Rollout, key: Key) -> tuple[PPOState, dict[str, Any]]:
        """The updates of one rollout, then the statistics of normalizers.

        Metrics by ``config.logging_level``, of all updates: ``losses/total``, ``losses/actor``, ``losses/critic``,
        ``losses/regularization`` and so on, each with ``/mean`` and ``/std``; besides ``approx_kl`` in nats;
        ``skipped``, the share of updates that were not finite and changed nothing; ``stopped``, the share that
        ``target_kl`` left out. Raises ``ValueError`` unless ``n_minibatches`` divides the environments.
        """
        check_minibatches("PPO", experience, self.config.n_minibatches)
        targets = self._targets(state, experience, experience.extras.output.value_estimates, key)

        def epoch(carry: tuple, key: Key) -> tuple:
            return self._epoch(carry, experience, targets, key)

        start = state, jnp.zeros((), bool)
        keys = random.split(fold_name(key, "epochs"), self.config.n_epochs)
        (state, _), (losses, norms, counts) = jax.lax.scan(epoch, start, keys)
        extras = experience.extras.network
        networks = self._network.learn_statistics(state.networks, extras, fold_name(key, "statistics"))
        metrics = self._metrics(experience, targets, losses, norms)
        return state._replace(networks=networks), metrics | {name: jnp.mean(c) for name, c in counts.items()}

    # ------------------------------------------------------------------ beside the interface

    def with_numbers(self, state: PPOState, **numbers: Any) -> PPOState:
        """The state with other ``learning_rate``, ``clip_range``, ``gae_lambda`` and so on, also those of a ``vmap``.

        With an optimizer of your own ``learning_rate`` multiplies its updates, and is 1 at first. Raises ``ValueError``
        for a name that the config leaves ``None``, or that is none of ``PPONumbers``.
        """
        known = [name for name, value in state.numbers._asdict().items() if value is not None]
        if unknown := set(numbers) - set(known):
            raise ValueError(f"PPO: numbers must be of {known}; got {sorted(unknown)}.")
        # Copies: loops donate the state, but not what the caller holds, nor one array twice.
        changed = {name: jnp.array(value, jnp.float32) for name, value in numbers.items()}
        return state._replace(numbers=state.numbers._replace(**changed))

    def write_into(self, network: nnx.Module, state: PPOState) -> None:
        """Give a network of this structure, in place, what was learned."""
        write_into(network, state.networks.params, state.networks.variables)

    # ------------------------------------------------------------------ updates

    def _targets(self, state: PPOState, rollout: Rollout, values: PyTree, key: Key) -> Targets:
        extras, rng = rollout.extras, fold_name(key, "next_values")
        next_values = self._network.next_values(state.networks, rollout, values, extras.network, rng)
        logs, combine = extras.output.loglikelihoods, self.config.combine_advantages
        return make_targets(rollout, values, next_values, logs, numbers=state.numbers, combine=combine)

    def _epoch(self, carry: tuple, rollout: Rollout, targets: Targets, key: Key) -> tuple:
        """One update for each minibatch."""
        if self.config.recompute_advantages:
            again = self._network.replay(carry[0].networks, rollout, rollout.extras.network, key)
            targets = self._targets(carry[0], rollout, again.output.value_estimates, key)

        def update(carry: tuple, inputs: tuple) -> tuple:
            return self._update_unless_stopped(carry, self._take(rollout, targets, inputs[0]), inputs[1])

        n_minibatches = self.config.n_minibatches
        rows = None
        if n_minibatches > 1:
            order = random.permutation(fold_name(key, "shuffle"), rollout.starts.shape[0])
            rows = order.reshape(n_minibatches, -1)
        return jax.lax.scan(update, carry, (rows, random.split(fold_name(key, "noise"), n_minibatches)))

    def _take(self, rollout: Rollout, targets: Targets, rows: Int[Array, " some"] | None) -> Minibatch:
        """Some environments, all for ``None``."""
        whole = read_by_updates(rollout)
        if rows is None:
            return Minibatch(whole, targets)
        together = whole._replace(extras=(whole.extras, targets)).environments(rows)
        extras, targets = together.extras
        return Minibatch(together._replace(extras=extras), targets)

    def _update_unless_stopped(self, carry: tuple, batch: Minibatch, key: Key) -> tuple:
        if self.config.target_kl is None:
            state, losses, norm, finite = self._update(carry[0], batch, key)
            return (state, carry[1]), (losses, norm, {"skipped": 1.0 - finite})
        state, stopped = carry
        told = jax.eval_shape(self._update, state, batch, key)[1:]
        unknown = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan, leaf.dtype), told)
        after, losses, norm, finite = jax.lax.cond(
            stopped, lambda: (state, *unknown), lambda: self._update(state, batch, key)
        )
        counts = {"skipped": jnp.where(stopped, 0.0, 1.0 - finite), "stopped": stopped.astype(jnp.float32)}
        return (after, stopped | (losses.kl > state.numbers.target_kl)), (losses, norm, counts)

    def _update(self, state: PPOState, batch: Minibatch, key: Key) -> tuple[PPOState, PPOLosses, Array, Array]:
        """``(state, losses, norm of the gradients, 1 if they were finite)``."""
        weights, numbers = Weights(*state.networks), state.numbers
        step = self._descent.step(weights, state.optimizer_state, numbers.learning_rate, key, numbers, batch)
        after = PPOState(Networks(*step.weights), step.moments, numbers)
        return after, step.metrics["losses"], step.metrics["grads_norm"], step.finite.astype(jnp.float32)

    def _loss(self, params: dict, variables: dict, rng: Key, numbers: PPONumbers, batch: Minibatch) -> tuple:
        rollout, targets = batch
        out = self._network.replay(Networks(params, variables), rollout, rollout.extras.network, rng)
        if self.config.normalize_advantages:
            targets = targets._replace(advantages=normalize(targets.advantages, rollout.weight))
        losses = ppo_losses(
            out.output, out.regularization_loss, rollout.extras.output, targets, numbers, rollout.weight
        )
        return losses.total, LossOutput(variables, {"losses": losses})

    def _metrics(
        self, rollout: Rollout, targets: Targets, losses: PPOLosses, norms: Float[Array, "epochs minibatches"]
    ) -> dict[str, Any]:
        level, old = self.config.logging_level, rollout.extras.output
        may_stop = self.config.target_kl is not None  # updates that are left out have NaN for losses
        families = {
            LoggingLevel.LOSSES: {
                "losses": {name: getattr(losses, name) for name in ("total", "actor", "critic", "regularization")}
            },
            LoggingLevel.ACTOR_EXTRA: {
                "losses": {"clipping_fraction": losses.clipping_fraction},
                "loglikelihood": old.loglikelihoods,
            },
            LoggingLevel.GRAD_NORM: {"grad_norm": norms},
            LoggingLevel.CRITIC_EXTRA: {
                "losses": {
                    "advantages": targets.advantages,
                    "critic_R^2": losses.r2,
                    "predicted_value": old.value_estimates,
                }
            },
        }
        metrics: dict[str, Any] = {"approx_kl": jnp.nanmean(losses.kl)}
        for family, values in families.items():
            if family in level:
                for name, tree in values.items():
                    metrics |= summarize(name, tree, self.config.logging_percentiles, skip_nan=may_stop)
        return metrics
