"""The Q-learning family as one agent: DQN and what its successors changed, each an option."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from gymnasium.spaces import Discrete
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.descent import Descent
from triax.agents.description import describe_agent
from triax.agents.off_policy import (
    PRIORITIES,
    Factory,
    Hyperparams,
    ReplayNeeds,
    Weights,
    check_replay_options,
    fresh_weights,
    moved_target,
    priorities_of,
    replay_needs,
)
from triax.agents.value_networks import (
    ActionBinsNetwork,
    ActionImplicitQuantilesNetwork,
    ActionQuantilesNetwork,
    ActionValueNetwork,
    action_network,
)
from triax.core import random
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key
from triax.core.numbers import check_count, check_number
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.functions import BoltzmannPolicy, EpsilonGreedy, Q, StochasticQ
from triax.learning.trajectories import rows_of
from triax.networks.unrolling import select
from triax.td_learning import DoubleQLearning, ExpectedSarsa, QLearning, Sarsa, SoftQLearning

Rule = Literal["q", "double", "sarsa", "expected_sarsa", "soft"]
Values = Literal["expected", "quantiles", "implicit_quantiles", "bins"]


@dataclass(frozen=True)
class QLearningConfig:
    """How the agent learns (Mnih et al. 2015, and as said below)."""

    rule: Rule = "double"
    """What follows a step: the best action by the target network, by the online one (van Hasselt et al. 2015), the
    action that was taken (Rummery & Niranjan 1994), the exploring policy's expectation (van Seijen et al. 2009), or a
    log-sum-exp (Haarnoja et al. 2017). ``sarsa`` learns the values of the policies that filled the replay: keep that
    short."""
    values: Values = "expected"
    """Learn expectations, quantiles (Dabney et al. 2017), quantiles at fractions drawn in each call (IQN, Dabney et al.
    2018), or bins over ``value_range`` (Bellemare et al. 2017)."""
    dueling: bool = False
    """Value and advantage apart (Wang et al. 2016), in the network that is made here."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of that network."""
    num_atoms: int = 51
    """Quantiles or bins; with implicit quantiles the fractions of both networks in an update."""
    acting_atoms: int = 32
    """Fractions by which a default network of implicit quantiles acts."""
    value_range: tuple[float, float] = (-10.0, 10.0)
    """Outer edges of the bins."""
    gamma: float = 0.99
    """Discount factor."""
    n_step: int = 1
    """Steps of each return before it bootstraps; 1 with memory."""
    batch_size: int = 64
    """Transitions, or sequences, per update."""
    alpha: float | None = None
    """Exponent of priorities (Schaul et al. 2015); ``None`` samples uniformly."""
    beta: float = 0.4
    """Exponent of importance weights."""
    sequence_length: int = 40
    """Steps of a sequence with burn-in, for networks with memory (R2D2, Kapturowski et al. 2019)."""
    burn_in: int = 20
    """Steps of it that only bring memory up to date."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    max_grad_norm: float = 10.0
    """Gradients are scaled down to this norm."""
    tau: float = 0.005
    """How far the target network moves to the online one, 1 for a copy, ..."""
    target_every: int = 1
    """... each time that so many updates are done."""
    epsilon_start: float = 1.0
    """Exploration at first; in a loop it stays so until the first update."""
    epsilon_final: float = 0.05
    """Exploration at last."""
    epsilon_updates: int = 10_000
    """Updates over which exploration falls linearly."""
    temperature: float = 0.1
    """Of ``rule="soft"``, which explores by a Boltzmann policy instead."""

    def __post_init__(self) -> None:
        check_replay_options(self)
        for name in ("num_atoms", "acting_atoms", "target_every", "epsilon_updates"):
            check_count("QLearningConfig", name, getattr(self, name))
        for name in ("learning_rate", "max_grad_norm", "temperature"):
            check_number("QLearningConfig", name, getattr(self, name), positive=True)
        for name in ("tau", "epsilon_start", "epsilon_final"):
            check_number("QLearningConfig", name, getattr(self, name), low=0, high=1)
        for name, known in (("rule", _RULES), ("values", _NETWORKS)):
            if getattr(self, name) not in known:
                raise ValueError(f"QLearningConfig: {name} must be one of {list(known)}; got {getattr(self, name)!r}.")


_RULES = {
    "q": QLearning,
    "double": DoubleQLearning,
    "sarsa": Sarsa,
    "expected_sarsa": ExpectedSarsa,
    "soft": SoftQLearning,
}
_NETWORKS = {
    "expected": ActionValueNetwork,
    "quantiles": ActionQuantilesNetwork,
    "implicit_quantiles": ActionImplicitQuantilesNetwork,
    "bins": ActionBinsNetwork,
}


class QLearningState(NamedTuple):
    """Everything that changes, and the numbers that may be swept (see ``with_hyperparams``)."""

    online: Weights
    target: Weights
    moments: PyTree
    """Of the gradients, as Adam keeps them."""
    updates: Int[Array, ""]
    hyperparams: Hyperparams


class QLearningAgent(Sealed):
    """An off-policy agent for ``Discrete`` actions, made of a q-function, a policy on it and a TD rule.

    A network with memory learns from sequences that start with the memory that was stored, after a burn-in.

    Args:
        env: anything with ``observation_space`` and ``action_space``.
        config: how it learns.
        network: makes a q-network of type 2, ``func(S, is_training)``, or a ``StatefulModule``, from ``nnx.Rngs``;
            by default a multi-layer perceptron.

    Raises:
        TypeError: the action space is not ``Discrete``, or the network gives something else than ``config.values``.
        ValueError: options that exclude each other.
    """

    made_of = frozenset({"config", "replay"})

    def __init__(self, env: Any, config: QLearningConfig | None = None, network: Factory | None = None) -> None:
        refuse_unmade_env("QLearningAgent", env)
        if not isinstance(env.action_space, Discrete):
            raise TypeError(f"QLearningAgent: needs a Discrete action space; got {env.action_space}.")
        self.config = config = config or QLearningConfig()
        default = _NETWORKS[config.values]
        atoms = 1 if config.values == "expected" else config.num_atoms
        self._network = network or action_network(env, default, config.hidden, atoms=atoms, dueling=config.dueling)
        self._q = _q_function(self._network, env, config)
        acting = self._q
        if network is None and config.values == "implicit_quantiles":  # no weight depends on the number of fractions
            few = config.acting_atoms
            small = action_network(env, default, config.hidden, atoms=few, dueling=config.dueling)
            acting = StochasticQ(small, env, num_bins=few, random_seed=0)
        is_soft = config.rule == "soft"
        self._pi = BoltzmannPolicy(acting, config.temperature) if is_soft else EpsilonGreedy(acting, 0.0)
        self._rule = _rule(self._q, config)
        self._descent = Descent(self._rule.learner.loss, config.max_grad_norm)
        self._first_action = int(env.action_space.start)
        needs = replay_needs("QLearningAgent", config, has_memory=self._q.has_memory)
        self.replay: ReplayNeeds = replace(needs, next_actions=config.rule == "sarsa")

    def __repr__(self) -> str:
        return describe_agent(self)

    def init(self, key: Key) -> QLearningState:
        """New weights; the target network has those of the online one."""
        online = fresh_weights(self._network, key)
        moments = self._descent.init(online.params)
        names = ("learning_rate", "tau", "epsilon_start", "epsilon_final", "epsilon_updates")
        numbers = {name: jnp.asarray(getattr(self.config, name), jnp.float32) for name in names}
        return QLearningState(online, copy_arrays(online), moments, jnp.zeros((), jnp.int32), numbers)

    def initial_carry(self, state: QLearningState, batch_size: int, key: Key) -> PyTree:
        """The memory at the start of an episode."""
        return self._q._lifted.initial_carry(*state.online, key, batch_size)

    def reset_carry(self, state: QLearningState, carry: PyTree, done: Bool[Array, " batch"], key: Key) -> PyTree:
        """The memory with fresh rows where ``done``."""
        return select(done, self.initial_carry(state, len(done), key), carry)

    def act(self, state: QLearningState, observation: PyTree, carry: PyTree, key: Key, explore: bool = True) -> tuple:
        """``(action [batch], carry, ())``."""
        rng_observe, rng_forward, rng_sample = random.split(key, 3)
        S = self._q.observation_preprocessor(rng_observe, observation)
        resets = jnp.zeros((1, jax.tree.leaves(S)[0].shape[0]), bool)
        # The logits of an epsilon of 1 do not tell which action is greedy; those of 0 do.
        number = self._exploration(state) if explore or self.config.rule == "soft" else jnp.float32(0)
        params = {self._pi._number_name: number, "q": state.online.params}
        unrolled = self._pi.sequence()(
            params, state.online.function_state, rng_forward, carry, resets, jax.tree.map(lambda x: x[None], S), False
        )
        logits = unrolled.output["logits"][0]
        index = random.categorical(rng_sample, logits) if explore else jnp.argmax(logits, axis=-1)
        return index.astype(jnp.int32) + self._first_action, unrolled.carry, ()

    def _exploration(self, state: QLearningState) -> Float[Array, ""]:
        """Epsilon or the temperature."""
        if self.config.rule == "soft":
            return jnp.asarray(self.config.temperature, jnp.float32)
        numbers = state.hyperparams
        part = jnp.minimum(state.updates / numbers["epsilon_updates"], 1.0)
        return numbers["epsilon_start"] + part * (numbers["epsilon_final"] - numbers["epsilon_start"])

    def learn(self, state: QLearningState, experience: Any, key: Key) -> tuple[QLearningState, dict[str, Any]]:
        """One update from a ``TransitionBatch``, with memory from a ``Trajectory``.

        Metrics: ``loss``; ``td_error``, the mean, clipped as the loss clips it; ``grads_norm``; ``skipped``, 1 where
        an update was left out because it was not finite; and priorities if replay is prioritized.
        """
        config = self.config
        batch = rows_of(experience, who="QLearningAgent") if self.replay.sequences else experience
        numbers, updates = state.hyperparams, state.updates + 1
        context, rate = self._context(state), numbers["learning_rate"]
        step = self._descent.step(state.online, state.moments, rate, key, context, batch)
        target = moved_target(state.target, step.weights, updates, numbers["tau"], config.target_every)
        name = type(self._rule).__name__
        metrics = {short: step.metrics[f"{name}/{short}"] for short in ("loss", "td_error")}
        metrics |= {"grads_norm": step.metrics["grads_norm"], "skipped": 1.0 - step.finite.astype(jnp.float32)}
        if config.alpha is not None:
            metrics[PRIORITIES] = priorities_of(step.per_sample)
        return QLearningState(step.weights, target, step.moments, updates, numbers), metrics

    def _context(self, state: QLearningState) -> PyTree:
        target = tuple(state.target)
        if self.config.rule != "expected_sarsa":
            return self._rule.context_with(q_targ=target)
        return self._rule.context_with(q_targ=target, pi_targ=(self._exploration(state), target))


def _q_function(network: Factory, env: Any, config: QLearningConfig) -> Any:
    if config.values == "expected":
        return Q(network, env, random_seed=0)
    bounds = config.value_range if config.values == "bins" else None
    return StochasticQ(network, env, value_range=bounds, num_bins=config.num_atoms, random_seed=0)


def _rule(q: Any, config: QLearningConfig) -> Any:
    q_targ = q.copy()
    options: dict[str, Any] = {"q_targ": q_targ, "optimizer": optax.identity()}  # the agent has its own
    if config.rule == "expected_sarsa":
        options["pi_targ"] = EpsilonGreedy(q_targ)
    if config.rule == "soft":
        options["temperature"] = config.temperature
    return _RULES[config.rule](q, **options)
