"""How a function prints: what it is, what goes in, which weights it has, in a few lines."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from gymnasium.spaces import Space
from jaxtyping import PyTree

from triax.spaces import describe

_SHOWN = 6


def describe_function(name: str, facts: Sequence[str], parts: Mapping[str, Any]) -> str:
    """``name(facts)``, and below it one entry a part, indented."""
    lines = [f"{name}({', '.join(facts)})"]
    lines += [f"{label}: {_text(part)}" for label, part in parts.items()]
    return "\n".join(lines).replace("\n", "\n  ")


def count_parameters(params: PyTree) -> str:
    """For example ``1,234 parameters``."""
    return f"{sum(np.size(leaf) for leaf in jax.tree.leaves(params)):,} parameters"


def describe_leaves(tree: PyTree) -> str:
    """Names and shapes of the first leaves, for example ``linear.w (4, 3), linear.b (3,)``; parts of containers are
    called by their own names.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves[:_SHOWN]]
    shown = [
        f"{name.replace('components.', '')} {np.shape(leaf)}" for name, (_, leaf) in zip(names, leaves, strict=False)
    ]
    more = [f"... and {len(leaves) - _SHOWN} more"] if len(leaves) > _SHOWN else []
    return ", ".join(shown + more)


def _text(part: Any) -> str:
    return describe(part) if isinstance(part, Space) else str(part)
