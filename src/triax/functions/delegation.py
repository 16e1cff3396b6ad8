"""Attributes that live in a part: a policy made of ``q`` has the key, seed and state of ``q``."""

from typing import Any


def held_by(part: str, name: str) -> Any:
    """A property that reads and writes ``self.<part>.<name>``."""

    def read(self: Any) -> Any:
        return getattr(getattr(self, part), name)

    def write(self: Any, value: Any) -> None:
        setattr(getattr(self, part), name, value)

    return property(read, write)
