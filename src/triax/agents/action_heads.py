"""The distributions at the ends of a network's action ports, wherever they are in it, and how far apart two are."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PyTree

from triax.networks import ActionSampler, DistributionSampler, ModuleState, NormalTanhSampler, StatefulModuleOutput
from triax.networks.module import StatefulModule


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Head:
    """What one action sampler was given and what it made of it; leaves ``[*batch, ...]``."""

    inputs: PyTree
    """What the sampler was given."""
    params: PyTree
    """The distribution, as the sampler's metrics tell it."""
    raw: PyTree
    """The sample, as its extras tell it."""
    action: PyTree
    """What the environment gets."""
    place: int = dataclasses.field(metadata={"static": True})
    """Which of the network's samplers it is."""


def is_head(node: Any) -> bool:
    """For ``jax.tree.map(..., is_leaf=is_head)``."""
    return isinstance(node, Head)


class _Exposed(StatefulModule):
    """A sampler whose ``log_likelihood`` is its :class:`Head`."""

    def __init__(self, sampler: ActionSampler, place: int) -> None:
        self.sampler, self.place = sampler, place

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        return self._exposed(x, self.sampler(state, x, rollout_extras))

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        return self._exposed(xs, self.sampler.unroll(state, xs, resets, rollout_extras))

    def initialize_state(self, batch_size: int) -> ModuleState:
        return self.sampler.initialize_state(batch_size)

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        return self.sampler.reset_state(prev_state)

    def update_statistics(self, rollout_extras: Any) -> None:
        self.sampler.update_statistics(rollout_extras)

    def _exposed(self, x: Any, out: StatefulModuleOutput) -> StatefulModuleOutput:
        action = out.output["action"]
        head = Head(x, out.metrics, out.rollout_extras, action, self.place)
        return out.replace(output={"action": action, "log_likelihood": head})


def expose_heads(network: nnx.Module) -> list[ActionSampler]:
    """Put heads in place of the log-likelihoods of ``network``, which is changed; its samplers, by place."""
    samplers: list[ActionSampler] = []
    _expose_inside(network, samplers)
    return samplers


def _expose_inside(node: Any, samplers: list[ActionSampler]) -> None:
    for key, child in list(nnx.iter_children(node)):
        if isinstance(child, ActionSampler):
            exposed = _Exposed(child, len(samplers))
            samplers.append(child)
            if isinstance(node, nnx.Dict | nnx.List):
                node[key] = exposed  # pyright: ignore[reportArgumentType]
            else:
                setattr(node, str(key), exposed)
        elif isinstance(child, nnx.Pytree):
            _expose_inside(child, samplers)


# ------------------------------------------------------------------ how far apart


@functools.singledispatch
def kl_divergence(sampler: Any, teacher: Any, p: PyTree, q: PyTree) -> Float[Array, " batch"]:
    """``KL(p || q)`` in nats, ``q`` the student's distribution and ``sampler`` its sampler, ``p`` the teacher's.

    Raises ``TypeError`` where the two are not of one family.
    """
    raise TypeError(_no_divergence(sampler, teacher))


@kl_divergence.register
def _(sampler: NormalTanhSampler, teacher: Any, p: PyTree, q: PyTree) -> Float[Array, " batch"]:
    if not isinstance(teacher, NormalTanhSampler):
        raise TypeError(_no_divergence(sampler, teacher))
    # The squashing is the same for both, so it does not change the divergence.
    ratio = p["sigma"] / q["sigma"]
    distance = (p["mu"] - q["mu"]) / q["sigma"]
    return jnp.sum(0.5 * (jnp.square(ratio) + jnp.square(distance) - 1.0) - jnp.log(ratio), axis=-1)


@kl_divergence.register
def _(sampler: DistributionSampler, teacher: Any, p: PyTree, q: PyTree) -> Float[Array, " batch"]:
    if not _is_of_one_family(sampler, teacher):
        raise TypeError(_no_divergence(sampler, teacher))
    return sampler.dist.kl_divergence(p["dist_params"], q["dist_params"])


@functools.singledispatch
def raw_action(sampler: Any, action: PyTree) -> PyTree:
    """The raw sample that gives this action, ``[batch, ...]``; ``TypeError`` where that is not known."""
    raise TypeError(
        f"distillation: the student's {type(sampler).__name__} cannot judge actions that another kind of policy took. "
        "Try a NormalTanhSampler or a DistributionSampler."
    )


@raw_action.register
def _(sampler: NormalTanhSampler, action: Any) -> Float[Array, "batch size"]:
    if not hasattr(action, "shape"):
        raise ValueError(
            "distillation: teacher and student must give the same tree of actions; the student's is one array, "
            f"the teacher's {jax.tree.structure(action)}."
        )
    limit = 1.0 - 1e-6  # float32 holds no more between here and the bound that tanh could give
    return jnp.arctanh(jnp.clip(action, -limit, limit))


@raw_action.register
def _(sampler: DistributionSampler, action: PyTree) -> PyTree:
    return sampler.dist.preprocess_variate(jax.random.key(0), action)


def negative_log_likelihood(sampler: ActionSampler, head: Head, teacher: Any, target: PyTree) -> Float[Array, " batch"]:
    """Of the teacher's choice under the student's distribution, in nats.

    ``target`` is the teacher's :class:`Head` with ``teacher`` its sampler, or an action with ``teacher=None``.
    """
    if isinstance(target, Head):
        raw = target.raw if _is_of_one_family(sampler, teacher) else raw_action(sampler, target.action)
    else:
        raw = raw_action(sampler, target)
    return -sampler((), head.inputs, raw).output["log_likelihood"]


def _is_of_one_family(sampler: Any, teacher: Any) -> bool:
    """Whether a raw sample of one is a raw sample of the other."""
    if isinstance(sampler, DistributionSampler) and isinstance(teacher, DistributionSampler):
        return type(sampler.dist) is type(teacher.dist) and bool(sampler.dist.space == teacher.dist.space)
    return type(sampler) is type(teacher)


def _no_divergence(sampler: Any, teacher: Any) -> str:
    def name(owner: Any) -> str:
        dist = getattr(owner, "dist", None)
        return f"{type(owner).__name__}({dist if dist is not None else ''})"

    return (
        "distillation: the divergence needs distributions of one family; got "
        f"{name(teacher)} in the teacher and {name(sampler)} in the student. "
        "Try loss='sample', which only needs the teacher's actions."
    )
