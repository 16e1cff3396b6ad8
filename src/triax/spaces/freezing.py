"""Gymnasium spaces as values that can be hashed; their own equality is only approximate, and has no hash."""

from collections.abc import Hashable

from gymnasium import Space

from triax.core.freezing import frozen


@frozen.register(Space)
def _(space: Space) -> Hashable:
    return type(space), frozen({name: value for name, value in vars(space).items() if name != "_np_random"})


__all__ = ["frozen"]
