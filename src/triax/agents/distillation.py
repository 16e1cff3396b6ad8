"""Distillation: a student with a network of its own learns to act as a teacher does, where the student goes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PyTree

from triax.agents.action_heads import Head, expose_heads, is_head, kl_divergence, negative_log_likelihood
from triax.agents.description import describe_agent
from triax.agents.distillation_config import DistillationAgentConfig
from triax.agents.interface import Rollout
from triax.agents.logging_level import LoggingLevel, summarize
from triax.agents.off_policy import Weights
from triax.agents.ppo_loss import weighted_mean
from triax.agents.ppo_network import Networks, PPONetwork
from triax.agents.rollout_updates import check_minibatches, descent_of, read_by_updates
from triax.core import random
from triax.core.env_arguments import is_like_env
from triax.core.keys import Key, fold_name
from triax.core.modules import write_into
from triax.core.sealed import Sealed
from triax.core.trees import copy_arrays
from triax.learning.learner import LossOutput
from triax.networks import ActionSampler, PPONetworkOutput, StatefulModule, StatefulModuleOutput
from triax.networks.unrolling import fold, unfold


class DistillationState(NamedTuple):
    """What distillation learns, and the teacher."""

    networks: Networks
    """The student."""
    optimizer_state: PyTree
    teacher: Networks
    """Never changed."""
    learning_rate: Float[Array, ""]
    """The step size; with an optimizer of one's own what multiplies its updates, 1 at first."""


class DistillationExtras(NamedTuple):
    """What acting tells learning, leaves ``[batch, ...]``."""

    network: PyTree
    """The student's ``rollout_extras``."""
    teacher: PyTree
    """What the teacher would have done: its distributions, or its actions if it has none."""
    metrics: PyTree = ()
    """The student's, if they are logged."""


class Distillation(Sealed):
    """Minimizes ``KL(teacher || student)`` over the states that the student visits, with memory in both.

    The teacher sees the same observations with a carry of its own, reset at the same times. Networks match by
    their actions, so that architectures may differ in everything else.

    An agent as :class:`triax.agents.interface.Agent` has it. Agents of one structure and config are equal, so that
    compiled loops are shared; the teacher's weights are part of the state.

    Args:
        teacher: a ``StatefulModule``, an ``nnx.Module`` or a function of observations; it gives what the
            student gives, or actions only (a scripted one). It is copied.
        student: a ``StatefulModule`` that gives a ``PPONetworkOutput`` and ends in action samplers. It is copied.
        config: how the student learns.
        optimizer: instead of Adam by ``config``.

    Source: Czarnecki et al. 2019, arXiv:1902.02186 (on-policy distillation).
    """

    made_of = frozenset({"config"})

    def __init__(
        self,
        teacher: Any,
        student: StatefulModule,
        config: DistillationAgentConfig | None = None,
        *,
        optimizer: optax.GradientTransformation | None = None,
    ) -> None:
        for name, network in (("teacher", teacher), ("student", student)):
            if is_like_env(network):
                raise TypeError(
                    f"Distillation: {name} must be a network; got an environment. Try Distillation(teacher, student, "
                    "config); the loop takes the environment."
                )
        if not any(isinstance(module, ActionSampler) for _, module in nnx.iter_modules(student)):
            raise TypeError(
                "Distillation: the student must end in an action sampler; got "
                f"{type(student).__name__} without one. Try make_mlp_actor_critic(...)."
            )
        self.config = config = config or DistillationAgentConfig()
        self._teacher, teacher_networks = PPONetwork.of(teacher)
        self._student, networks = PPONetwork.of(student)
        self._given = networks, teacher_networks
        self._optimizer = optimizer
        self._descent = descent_of(self._learner_loss, config, optimizer)

    def __eq__(self, other: object) -> bool:
        return self._structure == other._structure if isinstance(other, Distillation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._structure)

    def __repr__(self) -> str:
        return describe_agent(self)

    @property
    def _structure(self) -> tuple:
        return self._teacher, self._student, self.config.structure, self._optimizer

    # ------------------------------------------------------------------ the interface

    def init(self, key: Key) -> DistillationState:
        """The networks as they were given, copied; ``key`` draws nothing."""
        student, teacher = copy_arrays(self._given)
        rate = 1.0 if self._optimizer is not None else self.config.learning_rate
        moments = self._descent.init(student.params)
        return DistillationState(student, moments, teacher, jnp.asarray(rate, jnp.float32))

    def initial_carry(self, state: DistillationState, batch_size: int, key: Key) -> dict[str, PyTree]:
        """``{"student", "teacher"}``."""
        return {
            "student": self._student.initial_carry(state.networks, batch_size, fold_name(key, "student")),
            "teacher": self._teacher.initial_carry(state.teacher, batch_size, fold_name(key, "teacher")),
        }

    def reset_carry(
        self, state: DistillationState, carry: dict[str, PyTree], done: Bool[Array, " batch"], key: Key
    ) -> dict[str, PyTree]:
        """Both at once."""
        student, teacher = carry["student"], carry["teacher"]
        return {
            "student": self._student.reset_carry(state.networks, student, done, fold_name(key, "student")),
            "teacher": self._teacher.reset_carry(state.teacher, teacher, done, fold_name(key, "teacher")),
        }

    def act(
        self, state: DistillationState, observation: PyTree, carry: dict[str, PyTree], key: Key, explore: bool = True
    ) -> tuple[PyTree, dict[str, PyTree], DistillationExtras | tuple]:
        """The student's action; ``extras`` are its own and what the teacher would have done.

        Without ``explore`` the teacher is not asked, its carry stays, and ``extras`` are ``()``.
        """
        rng = fold_name(key, "student")
        out = self._student.step(state.networks, carry["student"], observation, rng, is_training=explore)
        if not explore:
            return out.output.actions, {**carry, "student": out.next_state}, ()
        told = self._ask_teacher(state.teacher, carry["teacher"], observation, fold_name(key, "teacher"))
        metrics = out.metrics if LoggingLevel.NETWORK_METRICS in self.config.logging_level else ()
        extras = DistillationExtras(out.rollout_extras, _targets(told.output), metrics)
        return out.output.actions, {"student": out.next_state, "teacher": told.next_state}, extras

    def learn(
        self, state: DistillationState, experience: Rollout, key: Key
    ) -> tuple[DistillationState, dict[str, Any]]:
        """Epochs over minibatches of environments, replayed from the carry at the start; then the statistics.

        Metrics by ``config.logging_level``, of all updates: ``losses/distillation`` (``losses/distillation_nll`` where
        it is a log-likelihood) and ``losses/regularization``, ``grad_norm``, each with ``/mean`` and ``/std``; and
        ``skipped``, the share of updates that were not finite and changed nothing. Raises ``ValueError`` unless
        ``n_minibatches`` divides the environments.
        """
        check_minibatches("Distillation", experience, self.config.n_minibatches)
        replayed = read_by_updates(experience._replace(carry={"student": experience.carry["student"]}))

        def update(carry: dict[str, PyTree], inputs: tuple) -> tuple:
            rows, rng = inputs
            return self._update(state._replace(**carry), replayed.environments(rows), rng)

        start = {"networks": state.networks, "optimizer_state": state.optimizer_state}
        schedule = self._schedule(experience.starts.shape[0], fold_name(key, "minibatches"))
        learned, (metrics, finite) = jax.lax.scan(update, start, schedule)
        state = state._replace(**learned)
        extras = experience.extras.network
        networks = self._student.learn_statistics(state.networks, extras, fold_name(key, "statistics"))
        return state._replace(networks=networks), self._metrics(metrics, finite)

    # ------------------------------------------------------------------ beside the interface

    def write_into(self, network: nnx.Module, state: DistillationState) -> None:
        """Give a network of the student's structure, in place, what was learned."""
        write_into(network, state.networks.params, state.networks.variables)

    def loss(
        self, networks: Networks, teacher: Networks, rollout: Rollout, key: Key
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The loss of a student on a rollout that :meth:`act` made, and what it consists of.

        Of ``teacher`` only the structure matters: what it would do is in the rollout.
        """
        student = self._student.merge(networks, key)
        samplers = expose_heads(student)
        teacher_samplers = self._merge_teacher(teacher, key)[1]
        out = student.unroll(rollout.carry["student"], rollout.observation, rollout.resets, rollout.extras.network)
        heads, targets = fold((out.output.loglikelihoods, rollout.extras.teacher))
        distances = self._distances(samplers, teacher_samplers, heads, targets)
        unfolded = unfold(distances, rollout.resets)
        distance = sum((weighted_mean(d, rollout.weight) for d in unfolded), jnp.zeros(()))
        regularization = weighted_mean(out.regularization_loss, rollout.weight)
        name = "distillation" if self.config.loss == "kl" else "distillation_nll"
        return distance + regularization, {name: distance, "regularization": regularization}

    # ------------------------------------------------------------------ one minibatch

    def _schedule(self, batch: int, key: Key) -> tuple[Int[Array, "updates some"], Array]:
        """Which environments each update sees, and its key."""
        n_epochs, updates = self.config.n_epochs, self.config.n_epochs * self.config.n_minibatches
        shuffles = random.split(fold_name(key, "shuffle"), n_epochs)
        rows = jax.vmap(lambda k: random.permutation(k, batch))(shuffles)
        return rows.reshape(updates, -1), random.split(fold_name(key, "noise"), updates)

    def _update(self, state: DistillationState, rollout: Rollout, key: Key) -> tuple[dict[str, PyTree], tuple]:
        weights, rate = Weights(*state.networks), state.learning_rate
        step = self._descent.step(weights, state.optimizer_state, rate, key, state.teacher, rollout)
        learned = {"networks": Networks(*step.weights), "optimizer_state": step.moments}
        metrics = {"losses": step.metrics["losses"], "grad_norm": step.metrics["grads_norm"]}
        return learned, (metrics, step.finite)

    def _learner_loss(self, params: dict, variables: dict, rng: Key, teacher: Networks, batch: Rollout) -> tuple:
        loss, parts = self.loss(Networks(params, variables), teacher, batch, rng)
        return loss, LossOutput(variables, {"losses": parts})

    def _distances(
        self, samplers: list[ActionSampler], teacher_samplers: list[ActionSampler], heads: PyTree, targets: PyTree
    ) -> list[Array]:
        """``[time * batch]`` of each head."""

        def one(head: Head, target: Any) -> Array:
            sampler = samplers[head.place]
            teacher = teacher_samplers[target.place] if is_head(target) else None
            if self.config.loss == "kl" and is_head(target):
                return kl_divergence(sampler, teacher, target.params, head.params)
            return negative_log_likelihood(sampler, head, teacher, target)

        found, structure = jax.tree.flatten(heads, is_leaf=is_head)
        try:
            wanted = structure.flatten_up_to(targets)
        except ValueError as error:
            raise ValueError(
                f"Distillation: teacher and student must give the same tree of actions; the student's is {structure}, "
                f"and the teacher's another: {error}"
            ) from error
        return [one(head, target) for head, target in zip(found, wanted, strict=True)]

    def _metrics(self, metrics: dict[str, PyTree], finite: Bool[Array, " updates"]) -> dict[str, Array]:
        level, percentiles = self.config.logging_level, self.config.logging_percentiles
        found = {"skipped": jnp.mean(1.0 - finite)}
        for family, name in ((LoggingLevel.LOSSES, "losses"), (LoggingLevel.GRAD_NORM, "grad_norm")):
            if family in level:
                found |= summarize(name, metrics[name], percentiles)
        return found

    # ------------------------------------------------------------------ the teacher

    def _ask_teacher(self, networks: Networks, carry: PyTree, observation: PyTree, key: Key) -> StatefulModuleOutput:
        return self._merge_teacher(networks, key)[0](carry, observation)

    def _merge_teacher(self, networks: Networks, key: Key) -> tuple[Any, list[ActionSampler]]:
        """In evaluation mode; its samplers draw where samples are what the loss is about."""
        teacher = self._teacher.merge(networks, key, is_training=False)
        samplers = expose_heads(teacher)
        for sampler in samplers:
            sampler.deterministic = self.config.loss != "sample"
        return teacher, samplers


def _targets(output: Any) -> PyTree:
    """What the teacher tells: its heads, or its actions if it has none."""
    if not isinstance(output, PPONetworkOutput):
        return output
    heads = jax.tree.leaves(output.loglikelihoods, is_leaf=is_head)
    return output.loglikelihoods if heads and all(map(is_head, heads)) else output.actions
