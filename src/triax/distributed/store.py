"""How a :class:`Worker` talks to the parameter store: an object here, or a Ray actor elsewhere."""

from collections import deque
from typing import Any, Protocol, runtime_checkable

from triax.distributed.extra import import_ray

_TOLD = 32
"""Calls without an answer that may be under way before the next one waits."""


@runtime_checkable
class Store(Protocol):
    """The parameter store, as its workers see it."""

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the store and wait for the answer."""
        ...

    def tell(self, method: str, *arguments: Any) -> None:
        """Call a method without waiting. Its error is raised by a later call, at the latest by :meth:`settle`."""
        ...

    def newer_state(self, version: int, author: str) -> tuple[int, Any]:
        """See :meth:`Worker.newer_state`."""
        ...

    def is_settled(self, method: str) -> bool:
        """Whether the last call of this method that was told has been done."""
        ...

    def settle(self) -> None:
        """Wait until all that was told has been done."""
        ...


class LocalStore:
    """A worker of this process, which threads may share."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call it; one caller at a time."""
        with self._store.lock:
            return getattr(self._store, method)(*arguments)

    def tell(self, method: str, *arguments: Any) -> None:
        """The same."""
        self.ask(method, *arguments)

    def newer_state(self, version: int, author: str) -> tuple[int, Any]:
        """The state itself."""
        return self.ask("newer_state", version, author)

    def is_settled(self, method: str) -> bool:
        """Always."""
        return True

    def settle(self) -> None:
        """Nothing is under way."""


class RayStore:
    """A Ray actor of a :class:`Worker` class. It does what it is told in the order of the calls of each worker."""

    def __init__(self, handle: Any) -> None:
        self._ray = import_ray("Worker: a param_store that is no Worker")
        if not isinstance(handle, self._ray.actor.ActorHandle):
            raise TypeError(
                "Worker: param_store must be a Worker, or the handle of a Ray actor of one; got"
                f" {type(handle).__name__}."
            )
        self._handle = handle
        self._told: deque[tuple[str, Any]] = deque()

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call it."""
        return self._ray.get(getattr(self._handle, method).remote(*arguments))

    def tell(self, method: str, *arguments: Any) -> None:
        """Call it, and then look at how earlier calls went: their errors do not keep it from being told."""
        self._told.append((method, getattr(self._handle, method).remote(*arguments)))
        while self._told and (len(self._told) > _TOLD or self._is_done(self._told[0][1])):
            self._ray.get(self._told.popleft()[1])

    def newer_state(self, version: int, author: str) -> tuple[int, Any]:
        """From the object store, where it is once for each version."""
        version, reference = self.ask("newer_state_reference", version, author)
        return version, reference and self._ray.get(reference[0])

    def is_settled(self, method: str) -> bool:
        """Whether the last such call has ended."""
        references = [reference for told, reference in self._told if told == method]
        return not references or self._is_done(references[-1])

    def settle(self) -> None:
        """Wait for all."""
        while self._told:
            self._ray.get(self._told.popleft()[1])

    def _is_done(self, reference: Any) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])
