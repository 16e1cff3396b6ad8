"""The check of the carry that a call of a function gets."""

from typing import Any

import jax

from triax.core.tree_differences import describe_structure


def checked_carry(owner: str, carry: Any, structure: Any, *, has_memory: bool, has_logp: bool) -> Any:
    """What to run with when the caller passed ``carry``; ``TypeError`` if it is none of this function."""
    if carry is None and not has_memory:
        return ()
    if jax.tree.structure(carry) == structure:
        return carry
    hint = " return_logp is keyword-only: f(s, return_logp=True)." if isinstance(carry, bool) and has_logp else ""
    if not has_memory:
        raise TypeError(f"{owner}: func has no memory, so carry must be () or left out; got {_shown(carry)}.{hint}")
    raise TypeError(
        f"{owner}: func has memory, so a call needs its carry, {describe_structure(structure)};"
        f" got {_shown(carry)}."
        f"{hint} Start an episode with carry = f.initial_carry() and thread it: result, carry = f(..., carry)."
    )


def _shown(carry: Any) -> str:
    """A number as it is, of a tree its structure."""
    if carry is None:
        return "none"
    return describe_structure(carry) if isinstance(carry, tuple | list | dict) else repr(carry)[:80]
