"""What trainings give: their state, which callbacks and checkpoints get too, results and videos."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from flax import nnx
from jaxtyping import PyTree, UInt8

from triax.algorithms.checkpointing import NETWORKS, SavedState, pack, unpack
from triax.core.keys import Key
from triax.core.tree_differences import describe_difference
from triax.core.trees import copy_arrays
from triax.functions.description import count_parameters, describe_function
from triax.loops.device_on_policy import OnPolicyState

S = TypeVar("S", bound="TrainingState")

RETURN = "eval/episode_reward/mean"
"""What evaluations call their mean return."""


@dataclass(frozen=True, repr=False)
class TrainingState:
    """Where a training is: all that it takes to go on bit for bit, beside the config, the environment and, in
    distillation, the teacher.
    """

    networks: nnx.Module
    """The user's own, which is trained in place; in distillation the student."""
    loop: OnPolicyState
    """Weights, optimizer, environments and memories, on the device."""
    rng_key: Key
    """What all that is drawn derives from."""
    steps_taken: int = 0
    """Of all environments together."""
    iterations: int = 0
    """Rounds of learning."""
    eval_history: tuple[dict[str, Any], ...] = ()
    """``{"step", **metrics}`` of each evaluation."""

    def __repr__(self) -> str:
        facts = [f"{self.steps_taken:,} steps", f"{self.iterations:,} iterations", f"{self.n_envs} environments"]
        count = count_parameters(self.loop.agent.networks.params)
        return describe_function(type(self).__name__, facts, {"networks": f"{type(self.networks).__name__}, {count}"})

    @property
    def n_envs(self) -> int:
        """How many environments there are."""
        return self.loop.acting.starts.shape[0]

    @property
    def network_states(self) -> PyTree:
        """The memories, leaves ``[n_envs, ...]``; in distillation ``{"student", "teacher"}``."""
        return self.loop.acting.carry

    @property
    def env_states(self) -> Any:
        """The states of the environments, leaves ``[n_envs, ...]``."""
        return self.loop.acting.envs

    @property
    def optimizer(self) -> PyTree:
        """The optimizer's state."""
        return self.loop.agent.optimizer_state

    def kept(self) -> "TrainingState":
        """With arrays that the training does not take back, for as long as one likes."""
        return replace(self, loop=copy_arrays(self.loop))


@pack.register
def _(training_state: TrainingState) -> tuple[PyTree, dict[str, Any]]:
    loop = training_state.loop
    networks = loop.agent.networks
    tree = {
        NETWORKS: {"params": networks.params, "variables": networks.variables},
        "optimizer": training_state.optimizer,
        "acting": loop.acting,
        "iteration": loop.iteration,
        "loop_key": loop.key,
        "rng_key": training_state.rng_key,
    }
    counts = {"steps_taken": training_state.steps_taken, "iterations": training_state.iterations}
    return tree, {**counts, "n_envs": training_state.n_envs, "eval_history": list(training_state.eval_history)}


@unpack.register
def _(like: TrainingState, tree: PyTree, facts: Mapping[str, Any]) -> TrainingState:
    networks = type(like.loop.agent.networks)(**tree[NETWORKS])
    # Coefficients, the learning rate too, are those of today's config.
    agent = like.loop.agent._replace(networks=networks, optimizer_state=tree["optimizer"])
    loop = like.loop._replace(agent=agent, acting=tree["acting"], iteration=tree["iteration"], key=tree["loop_key"])
    return TrainingState(
        like.networks,
        loop,
        tree["rng_key"],
        facts["steps_taken"],
        facts["iterations"],
        tuple(map(dict, facts["eval_history"])),
    )


def resume(who: str, initial_state: TrainingState | SavedState, like: TrainingState) -> TrainingState:
    """A state in memory or in a checkpoint, with the networks and the coefficients of ``like``.

    Its arrays are copies. Raises ``ValueError`` where it does not fit: with both numbers of environments, or with
    the leaves that differ.
    """
    is_saved = isinstance(initial_state, SavedState)
    if is_saved and "n_envs" not in initial_state.facts:
        raise ValueError(f"{who}: {initial_state} is no checkpoint of train_ppo or train_distillation.")
    had = initial_state.facts["n_envs"] if is_saved else initial_state.n_envs
    if had != like.n_envs:
        raise ValueError(
            f"{who}: initial_state has {had} environments and the config n_envs={like.n_envs}. Try n_envs={had} to "
            "continue; to go on with another number, begin anew with networks that load_checkpoint has filled."
        )
    if is_saved:
        return initial_state.restore(like)
    tree, facts = pack(initial_state)
    difference = describe_difference(pack(like)[0], tree, "initial_state")
    if difference is not None:
        raise ValueError(f"{who}: initial_state is of another structure. {difference}")
    return unpack(like, copy_arrays(tree), facts)


class VideoData(NamedTuple):
    """What ``video_fn`` gets."""

    frames: UInt8[np.ndarray, "time height width channels"]
    """The pictures."""
    step: int
    """Of the training."""
    episode_reward: float
    """Of the first episode that is seen, all rewards together."""
    episode_length: int
    """Its steps, at most those that were filmed."""


@dataclass(frozen=True, repr=False)
class TrainResult:
    """What a training gives."""

    training_state: TrainingState
    """Where it ended: an ``initial_state`` to go on with."""
    final_metrics: dict[str, Any]
    """What ``log_fn`` got last, or would have got."""
    eval_history: list[dict[str, Any]]
    """``{"step", **metrics}`` of each evaluation, those before ``initial_state`` included."""
    total_steps: int
    """Steps of all environments together."""
    total_iterations: int
    """Rounds of learning."""

    def __repr__(self) -> str:
        parts: dict[str, Any] = {}
        if "return" in self.final_metrics:
            parts["last return in training"] = f"{self.final_metrics['return']:.4g}"
        parts["evaluations"] = len(self.eval_history)
        if self.eval_history:
            last = self.eval_history[-1]
            parts["last evaluation"] = f"return {last[RETURN]:.4g} at step {last['step']:,}"
        parts["training_state"] = self.training_state
        facts = [f"{self.total_steps:,} steps", f"{self.total_iterations:,} iterations"]
        return describe_function(type(self).__name__, facts, parts)


class DistillationTrainResult(TrainResult):
    """What a distillation gives; the state is the student's."""
