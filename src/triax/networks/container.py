"""The one base class of modules made of modules: it routes everything, so that a container only says how data
flows.
"""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool

from triax.networks.arguments import check_names
from triax.networks.module import StatefulModule
from triax.networks.placement import check_places
from triax.networks.plain import as_module
from triax.networks.types import ModuleState, SizeError, StatefulModuleOutput
from triax.networks.unrolling import fold, unfold

Call = Callable[[StatefulModule, ModuleState, Any, Any], StatefulModuleOutput]


class Run:
    """One pass through the children of a container: ``run(name, x)`` is the output of child ``name`` on
    ``x``.
    """

    def __init__(self, who: str, call: Call, children: dict[str, StatefulModule], states: dict, extras: dict):
        self.who = who
        self.outs: dict[str, StatefulModuleOutput] = {}
        self._call, self._children, self._states, self._extras = call, children, states, extras

    def __call__(self, name: str, x: Any) -> Any:
        """Run a child; each exactly once."""
        if name not in self._children:
            raise KeyError(f"{self.who}: no child {name!r}; the children are {list(self._children)}.")
        if name in self.outs:
            raise ValueError(f"{self.who}: child {name!r} was run twice in one step; a carry is for one run.")
        try:
            out = self._call(self._children[name], self._states[name], x, self._extras[name])
        except SizeError as error:
            raise error.located(name, self._giver(x)) from None
        except Exception as error:
            giver = self._giver(x)
            got = f", which got {jax.tree.map(lambda leaf: list(jnp.shape(leaf)), x)} from {giver!r}" if giver else ""
            error.add_note(f"In {name!r} of {self.who}{got}.")
            raise
        self.outs[name] = out
        return out.output

    def _giver(self, x: Any) -> str | None:
        """The child whose output ``x`` is."""
        return next((name for name, done in self.outs.items() if done.output is x), None)

    def check_complete(self) -> None:
        """Refuse a pass that left a child out."""
        idle = [name for name in self._children if name not in self.outs]
        if idle:
            raise ValueError(f"{self.who}: wire never ran {idle}. Run every child once, or leave it out.")


class Container(StatefulModule):
    """A module made of named modules; a subclass implements :meth:`wire` and nothing else.

    Built from one dict or from keyword arguments; anything that :func:`as_module` takes may be a child.
    ``children`` has them in the declared order, always. Carry and extras are dicts by name, metrics too;
    losses are summed. Raises ``ValueError`` for no children, for a dict together with keywords, and for a module
    that has two places in the tree of children or contains itself; ``TypeError`` for names that are no strings.
    """

    has_parts = True

    def __init__(self, modules: Mapping[str, Any] | None = None, /, **kwargs: Any):
        who = type(self).__name__
        if modules is not None and kwargs:
            raise ValueError(f"{who}: give the children as one dict or as keywords, not both.")
        try:
            children = dict(kwargs if modules is None else modules)
        except (TypeError, ValueError):
            got = type(modules).__name__
            raise TypeError(f"{who}: give the children as a dict by name, or as keywords; got a {got}.") from None
        if not children:
            raise ValueError(f"{who}: at least one child is needed.")
        self._adopt(children)

    def _adopt(self, children: Mapping[str, Any]) -> None:
        who = type(self).__name__
        check_names(who, children)
        modules = {name: _as_child(who, name, child) for name, child in children.items()}
        check_places(self, modules)
        self.names = tuple(modules)
        self.components = nnx.Dict(modules)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Only asked for what is missing: the children of a subclass that did not hand them over."""
            if name in ("names", "components"):
                raise AttributeError(
                    f"{type(self).__name__}: no children yet; a container's __init__ must call "
                    "super().__init__(name=child, ...) before the container is used."
                )
            return super().__getattribute__(name)

    @property
    def children(self) -> dict[str, StatefulModule]:
        """The children by name, in declared order (``components`` has them in alphabetical order after a
        merge).
        """
        return {name: self.components[name] for name in self.names}

    @abc.abstractmethod
    def wire(self, run: Run, x: Any) -> Any:
        """The output for the input ``x``, leaves ``[batch, ...]``; ``run(name, x)`` calls a child, each
        exactly once.

        Sequences come with time folded into the batch, so what is done between children must treat each row
        alone.
        """

    def __call__(self, state: ModuleState, x: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        return self._pass(lambda child, s, x, e: child(s, x, e), state, x, rollout_extras, ())

    def _unroll_in_order(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], extras: Any
    ) -> StatefulModuleOutput:
        """A sequence, child by child, so that only what recurs is scanned."""

        def call(child: StatefulModule, state: ModuleState, x: Any, extras: Any) -> StatefulModuleOutput:
            out = child.unroll(state, _unfold_rows(who, x, resets), resets, extras)
            return out.replace(output=fold(out.output))

        who = type(self).__name__
        out = self._pass(call, state, fold(xs), extras, resets.shape)
        return out.replace(output=_unfold_rows(who, out.output, resets))

    def _pass(self, call: Call, state: ModuleState, x: Any, extras: Any, axes: tuple[int, ...]) -> StatefulModuleOutput:
        states = self.unpack(state, "carry")
        by_child = dict.fromkeys(self.names) if extras is None else self.unpack(extras, "rollout_extras")
        run = Run(type(self).__name__, call, self.children, states, by_child)
        output = self.wire(run, x)
        run.check_complete()
        if output is None:
            raise TypeError(f"{run.who}: wire gave None. Is its return missing? Where nothing comes out, return ().")
        outs = {name: run.outs[name] for name in self.names}
        return StatefulModuleOutput(
            next_state=self.pack({name: out.next_state for name, out in outs.items()}),
            output=output,
            regularization_loss=sum((out.regularization_loss for out in outs.values()), jnp.zeros(axes)),
            metrics={name: out.metrics for name, out in outs.items()},
            rollout_extras=self.pack({name: out.rollout_extras for name, out in outs.items()}),
        )

    def initialize_state(self, batch_size: int) -> ModuleState:
        """The carries of the children."""
        try:
            return self.pack({name: child.initialize_state(batch_size) for name, child in self.children.items()})
        except RecursionError:
            check_places(self, self.children)  # a child put in later may be this container
            raise

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """The carries of the children, each reset."""
        states = self.unpack(prev_state, "carry")
        return self.pack({name: child.reset_state(states[name]) for name, child in self.children.items()})

    def update_statistics(self, rollout_extras: Any) -> None:
        """Each child learns from its own extras."""
        extras = self.unpack(rollout_extras, "rollout_extras")
        for name, child in self.children.items():
            child.update_statistics(extras[name])

    def pack(self, by_name: dict[str, Any]) -> Any:
        """What children gave, in the layout of this container's carry and extras."""
        return by_name

    def unpack(self, packed: Any, what: str) -> dict[str, Any]:
        """The inverse of :meth:`pack`; raises ``ValueError`` for entries of other children."""
        if not isinstance(packed, Mapping) or set(packed) != set(self.names):
            got = sorted(packed) if isinstance(packed, Mapping) else type(packed).__name__
            raise ValueError(
                f"{type(self).__name__}: the {what} must be a dict with an entry for each of "
                f"{list(self.names)}; "
                f"got {got}. Is it that of another network?"
            )
        return {name: packed[name] for name in self.names}


def _as_child(who: str, name: str, child: Any) -> StatefulModule:
    try:
        return as_module(child)
    except Exception as error:
        error.add_note(f"At {name!r} of {who}.")
        raise


def _unfold_rows(who: str, tree: Any, resets: Bool[Array, "time batch"]) -> Any:
    for leaf in jax.tree.leaves(tree):
        if jnp.shape(leaf)[:1] != (resets.size,):
            raise ValueError(
                f"{who}: in wire, each leaf between children must be [batch, ...] with batch = {resets.size} here "
                f"(time times batch); got shape {list(jnp.shape(leaf))}. What wire computes must keep the first axis."
            )
    return unfold(tree, resets)
