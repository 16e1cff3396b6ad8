"""Distillation: a student with a network of its own learns to act as a teacher does, where the student goes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, PyTree

from triax.agents.action_heads import Head, expose_heads, is_head, kl_divergence, negative_log_likelihood
from triax.agents.interface import Rollout
from triax.agents.ppo_network import Networks
from triax.core.keys import Key, fold_name
from triax.core.modules import SplitModule, write_into
from triax.core.trees import copy_arrays
from triax.learning.learner import LossOutput, make_learner
from triax.networks import ActionSampler, PPONetworkOutput, StatefulModule, as_module, reset_where
from triax.networks.unrolling import fold

LOSSES = ("kl", "sample", "mode")
"""How far the student is from the teacher; see :class:`Distillation`."""


class DistillationState(NamedTuple):
    """What distillation learns, and the teacher."""

    networks: Networks
    """The student."""
    optimizer_state: PyTree
    teacher: Networks
    """Never changed."""


class Distillation:
    """Minimizes ``KL(teacher || student)`` over the states that the student visits, with memory in both.

    The teacher sees the same observations with a carry of its own, reset at the same times. Networks match by
    their actions, so that architectures may differ in everything else.

    Args:
        teacher: a ``StatefulModule``, an ``nnx.Module`` or a function of observations; it gives what the
            student gives, or actions only (a scripted one).
        student: a ``StatefulModule`` that gives a ``PPONetworkOutput`` and ends in action samplers.
        optimizer: of the student.
        n_epochs, n_minibatches: passes over each rollout, and parts of its environments.
        loss: ``"kl"``, the divergence of the two distributions (of actions: minus their log-likelihood);
            ``"sample"``, minus the log-likelihood of a sample of the teacher, which also works where the two
            have other kinds of distributions; ``"mode"``, that of the teacher's mean or mode, which knows
            nothing of the teacher's spread and makes the student's collapse.

    An agent as :class:`triax.agents.interface.Agent` has it. It copies both networks when it is made.
    Source: Czarnecki et al. 2019, arXiv:1902.02186 (on-policy distillation).
    """

    def __init__(
        self,
        teacher: Any,
        student: StatefulModule,
        optimizer: optax.GradientTransformation,
        *,
        n_epochs: int = 4,
        n_minibatches: int = 4,
        loss: str = "kl",
    ) -> None:
        if loss not in LOSSES:
            raise ValueError(f"Distillation: loss must be 'kl', 'sample' or 'mode'; got {loss!r}.")
        self._teacher, teacher_params, teacher_variables = SplitModule.of(as_module(teacher))
        self._student, params, variables = SplitModule.of(student)
        self._initial = Networks(params, variables), Networks(teacher_params, teacher_variables)
        self._loss_kind = loss
        self._learner = make_learner(self._learner_loss, optimizer, prefix="distillation")
        self._n_epochs, self._n_minibatches = n_epochs, n_minibatches
        # Structure only: which sampler a head belongs to.
        self._teacher_samplers = _samplers(self._teacher, self._initial[1])
        if not _samplers(self._student, self._initial[0]):
            raise TypeError(
                "Distillation: the student must end in an action sampler; got "
                f"{type(student).__name__} without one. Try make_mlp_actor_critic(...)."
            )

    def init(self, key: Key) -> DistillationState:
        """The networks as they were given, copied; ``key`` draws nothing."""
        student, teacher = copy_arrays(self._initial)
        return DistillationState(student, self._learner.init(student.params), teacher)

    def initial_carry(self, state: DistillationState, batch_size: int, key: Key) -> dict[str, PyTree]:
        """``{"student", "teacher"}``."""
        student, teacher = self._merged(state, key)
        return {"student": student.initialize_state(batch_size), "teacher": teacher.initialize_state(batch_size)}

    def reset_carry(
        self, state: DistillationState, carry: dict[str, PyTree], done: Bool[Array, " batch"], key: Key
    ) -> dict[str, PyTree]:
        """Both at once."""
        student, teacher = self._merged(state, key)
        return {
            "student": reset_where(student, carry["student"], done),
            "teacher": reset_where(teacher, carry["teacher"], done),
        }

    def act(
        self, state: DistillationState, observation: PyTree, carry: dict[str, PyTree], key: Key, explore: bool = True
    ) -> tuple[PyTree, dict[str, PyTree], dict[str, PyTree]]:
        """The student's action; ``extras`` are its own and what the teacher would have done.

        Without ``explore`` the teacher is not asked, and its carry stays.
        """
        student = self._merge_student(state.networks, key, is_training=explore)
        out = student(carry["student"], observation)
        if not explore:
            return out.output.actions, {**carry, "student": out.next_state}, {}
        teacher, _ = self._merge_teacher(state.teacher, key)
        told = teacher(carry["teacher"], observation)
        extras = {"student": out.rollout_extras, "teacher": _targets(told.output)}
        return out.output.actions, {"student": out.next_state, "teacher": told.next_state}, extras

    def learn(
        self, state: DistillationState, experience: Rollout, key: Key
    ) -> tuple[DistillationState, dict[str, Any]]:
        """Epochs over minibatches of environments, replayed from the carry at the start; then the statistics.

        Metrics: ``losses/distillation`` (``losses/distillation_nll`` where it is a log-likelihood),
        ``losses/regularization``, ``distillation/grads_norm`` and ``distillation/grads_max``, and ``finite``,
        false where an update was left out; of each minibatch, ``[n_epochs * n_minibatches]``.
        """
        batch = experience.terminated.shape[1]
        if batch % self._n_minibatches:
            raise ValueError(
                "Distillation: the number of environments must be a multiple of n_minibatches; got "
                f"{batch} and {self._n_minibatches}."
            )
        rows, keys = self._schedule(batch, fold_name(key, "minibatches"))

        def update(carry: tuple, inputs: tuple) -> tuple:
            networks, optimizer_state = carry
            return self._update(networks, optimizer_state, experience.environments(inputs[0]), inputs[1])

        start = (state.networks, state.optimizer_state)
        (networks, optimizer_state), metrics = jax.lax.scan(update, start, (rows, keys))
        networks = self._learn_statistics(networks, experience.extras["student"], fold_name(key, "statistics"))
        return DistillationState(networks, optimizer_state, state.teacher), metrics

    def student(self, state: DistillationState, network: nnx.Module) -> None:
        """Writes what was learned into a network of the student's structure, in place."""
        write_into(network, state.networks.params, state.networks.variables)

    # ------------------------------------------------------------------ one minibatch

    def _schedule(self, batch: int, key: Key) -> tuple[Array, Array]:
        """Which environments each update sees, ``[updates, batch / n_minibatches]``, and its key."""
        shuffles = jax.random.split(fold_name(key, "shuffle"), self._n_epochs)
        rows = jax.vmap(lambda k: jax.random.permutation(k, batch))(shuffles)
        updates = self._n_epochs * self._n_minibatches
        return rows.reshape(updates, -1), jax.random.split(fold_name(key, "noise"), updates)

    def _update(self, networks: Networks, optimizer_state: PyTree, rollout: Rollout, key: Key) -> tuple:
        step = self._learner.step(networks.params, networks.variables, optimizer_state, key, (), rollout)
        metrics = {**step.metrics, "finite": jnp.all(step.finite)}
        return (Networks(step.params, step.function_state), step.optimizer_state), metrics

    def _learner_loss(self, params: dict, variables: dict, rng: Key, context: Any, batch: Rollout) -> tuple:
        loss, metrics = self.loss(Networks(params, variables), batch, rng)
        return loss, LossOutput(variables, metrics)

    def loss(self, networks: Networks, rollout: Rollout, key: Key) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The loss of a student on a rollout that :meth:`act` made, and what it consists of."""
        student: Any = self._student.merge(networks.params, networks.variables, key, is_training=True)
        samplers = expose_heads(student)
        carry, told = rollout.carry["student"], rollout.extras["student"]
        out = student.unroll(carry, rollout.observation, rollout.resets, told)
        heads, targets = fold((out.output.loglikelihoods, rollout.extras["teacher"]))
        distances = jax.tree.leaves(self._distances(samplers, heads, targets))
        distance = sum((jnp.mean(d) for d in distances), jnp.zeros(()))
        regularization = jnp.mean(out.regularization_loss)
        name = "losses/distillation" if self._loss_kind == "kl" else "losses/distillation_nll"
        return distance + regularization, {name: distance, "losses/regularization": regularization}

    def _distances(self, samplers: list[ActionSampler], heads: PyTree, targets: PyTree) -> PyTree:
        """One ``[time * batch]`` array for each head."""

        def one(head: Head, target: Any) -> Array:
            sampler = samplers[head.place]
            teacher = self._teacher_samplers[target.place] if is_head(target) else None
            if self._loss_kind == "kl" and is_head(target):
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

    def _learn_statistics(self, networks: Networks, extras: PyTree, key: Key) -> Networks:
        student: Any = self._student.merge(networks.params, networks.variables, key, is_training=True)
        student.update_statistics(extras)
        return networks._replace(variables=self._student.variables_of(student))

    # ------------------------------------------------------------------ networks

    def _merge_student(self, networks: Networks, key: Key, *, is_training: bool) -> Any:
        return self._student.merge(
            networks.params, networks.variables, fold_name(key, "student"), is_training=is_training
        )

    def _merge_teacher(self, networks: Networks, key: Key) -> tuple[Any, list[ActionSampler]]:
        """In evaluation mode; its samplers draw where samples are what the loss is about."""
        teacher = self._teacher.merge(networks.params, networks.variables, fold_name(key, "teacher"), is_training=False)
        samplers = expose_heads(teacher)
        for sampler in samplers:
            sampler.deterministic = self._loss_kind != "sample"
        return teacher, samplers

    def _merged(self, state: DistillationState, key: Key) -> tuple[Any, Any]:
        return self._merge_student(state.networks, key, is_training=True), self._merge_teacher(state.teacher, key)[0]


def _samplers(split: SplitModule, networks: Networks) -> list[ActionSampler]:
    return expose_heads(split.merge(networks.params, networks.variables, jax.random.key(0), is_training=False))


def _targets(output: Any) -> PyTree:
    """What the teacher tells: its heads, or its actions if it has none."""
    if not isinstance(output, PPONetworkOutput):
        return output
    heads = jax.tree.leaves(output.loglikelihoods, is_leaf=is_head)
    return output.loglikelihoods if heads and all(map(is_head, heads)) else output.actions
