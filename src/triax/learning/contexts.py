"""Contexts, what losses read besides the weights they train, with parts replaced by name."""

from typing import Any

from triax.core.tree_differences import describe_difference

Places = dict[str, tuple[Any, Any]]
"""Where each part of a context is: a container and a key."""


def replace_parts(who: str, places: Places, parts: dict[str, Any]) -> None:
    """Put ``parts`` in their places; ``TypeError`` for one that is not there, or does not fit."""
    for name, part in parts.items():
        place, key = places.get(name, (None, None))
        if place is None or place[key] is None:
            known = sorted(name for name, (place, key) in places.items() if place[key] is not None)
            raise TypeError(f"{who}.context_with: must name parts among {known}; got {name!r}.")
        difference = describe_difference(place[key], part, name)
        if difference is not None:
            raise TypeError(f"{who}.context_with: {name} does not fit: {difference}")
        place[key] = part
