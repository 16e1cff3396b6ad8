"""How a network prints: a line for each module, with its parameters and whether it remembers."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

_SHOWN = 6


def describe_module(module: nnx.Module) -> str:
    """A line for the module and, indented, one for each module inside; leaves tell the shapes of their parameters.

    For example::

        Sequential(434 parameters, with memory)
          lstm_0: LSTM(416 parameters, with memory): cell.dense_h.bias (32,), cell.dense_h.kernel (8, 32), ...
          dense_1: Dense(18 parameters): linear.bias (2,), linear.kernel (8, 2)
    """
    return "\n".join(_lines(module, "", ""))


def _lines(module: Any, name: str, indent: str) -> Iterator[str]:
    facts = [f"{_size(module, nnx.Param):,} parameters"]
    statistics = _size(module, nnx.Not(nnx.Any(nnx.Param, nnx.RngState)))
    facts += [f"{statistics:,} numbers of statistics"] if statistics else []
    memory = _memory(module)
    facts += [memory] if memory else []
    head = f"{indent}{name}{': ' if name else ''}{type(module).__name__}({', '.join(facts)})"
    children = list(_parts(module))
    shapes = "" if children else _shapes(module)
    yield f"{head}: {shapes}" if shapes else head
    for key, child in children:
        yield from _lines(child, key, indent + "  ")


def _parts(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules inside that take part in a step, by name; dicts and lists of modules are looked through."""
    found = dict(_below(module))
    names = getattr(module, "names", None) or [edge.name for edge in getattr(module, "edges", ())]
    order = [name for name in names if name in found]  # flax gives them sorted by name
    yield from ((name, found[name]) for name in dict.fromkeys([*order, *found]))


def _below(module: Any) -> Iterator[tuple[str, Any]]:
    for key, child in nnx.iter_children(module):
        if isinstance(child, nnx.Dict | nnx.List):
            yield from _below(child)
        elif callable(getattr(child, "initialize_state", None)):
            yield str(key), child


def _memory(module: Any) -> str:
    """Has it a carry? A copy is asked, whose streams may be drawn from: the module itself stays as it is."""
    is_built = getattr(module, "is_final", True)  # a graph that is being built has no carry yet
    if not is_built or not callable(getattr(module, "initialize_state", None)):
        return ""
    graphdef, variables = nnx.split(module)
    members = max((jnp.ndim(leaf) for leaf in jax.tree.leaves(nnx.state(module, nnx.RngState))), default=0)

    def initialize(variables: Any) -> Any:
        return nnx.merge(graphdef, variables, copy=True).initialize_state(1)

    for _ in range(members):  # an ensemble made by ``vmap``: each member has a carry of its own
        initialize = jax.vmap(initialize)
    try:
        carry = jax.eval_shape(lambda: initialize(variables))
    except Exception as error:  # what cannot be used should still be printed
        return f"initialize_state raises {type(error).__name__}"
    return "with memory" if jax.tree.leaves(carry) else ""


def _size(module: Any, kind: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(module, kind)))


def _shapes(module: Any) -> str:
    leaves = jax.tree_util.tree_leaves_with_path(nnx.to_pure_dict(nnx.state(module, nnx.Param)))
    named = [f"{jax.tree_util.keystr(path, simple=True, separator='.')} {leaf.shape}" for path, leaf in leaves]
    more = [f"... and {len(named) - _SHOWN} more"] if len(named) > _SHOWN else []
    return ", ".join(named[:_SHOWN] + more)
