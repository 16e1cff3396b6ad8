"""The processes of a distributed run: started, called, started again where they died, and ended."""

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from triax.distributed.config import DistributedError

logger = logging.getLogger("triax.distributed")

_TELL_EVERY = 15.0
"""Seconds between two words on who has not started yet."""
_SILENT = 60.0
"""Seconds without an answer after which that is said."""


class Member:
    """One process, and those that took its place. ``make`` starts one, told how many there were before."""

    def __init__(self, name: str, make: Callable[[int], Any]) -> None:
        self.name = name
        self.make = make
        self.life = -1
        self.failures = 0
        """Deaths since a call was last answered."""
        self.pid: int | None = None
        self.handle: Any = None
        self.is_silent = False
        """Whether it has been said that it does not answer."""

    def start(self) -> None:
        """The first process, or the next."""
        self.life += 1
        self.pid, self.is_silent = None, False
        self.handle = self.make(self.life)


class Call:
    """A call that is under way; ``then`` gets the answer."""

    def __init__(self, member: Member, method: str, size: int, then: Callable[[Any], None]) -> None:
        self.member, self.method, self.size, self.then = member, method, size, then
        self.life = member.life
        self.began = time.monotonic()

    @property
    def is_current(self) -> bool:
        """Whether the process that was called has not been replaced."""
        return self.life == self.member.life


class Crew:
    """Members and the calls to them that are under way. Answers are taken in by :meth:`pump`.

    Args:
        max_restarts: how often a member may die in a row.
        revived: told of a member whose process has been replaced, and of the calls that went with the old one.
    """

    def __init__(self, max_restarts: int, revived: Callable[[Member, list[Call]], None]) -> None:
        self.members: list[Member] = []
        self.restarts = 0
        self._max_restarts, self._revived = max_restarts, revived
        self._calls: dict[Any, Call] = {}
        self._counts: Counter[tuple[str, Member | None]] = Counter()
        self._sizes: Counter[str] = Counter()
        self._began, self._told = time.monotonic(), 0.0
        self._left: str | None = None
        self._looked = 0.0

    def add(self, name: str, make: Callable[[int], Any]) -> Member:
        """Starts a member."""
        member = Member(name, make)
        self.members.append(member)
        self._start(member)
        return member

    def call(
        self,
        member: Member,
        method: str,
        *arguments: Any,
        then: Callable[..., None],
        size: int = 0,
        num_returns: int = 1,
    ) -> None:
        """Call a method; ``then`` gets what it returns, of several values references to all but the last.

        ``size`` is how much the call is worth in the sums of :meth:`size_under_way`.
        """
        references = getattr(member.handle, method).options(num_returns=num_returns).remote(*arguments)
        *others, last = references if num_returns > 1 else [references]
        call = Call(member, method, size, lambda answer: then(*others, answer))
        self._calls[last] = call
        self._count(call, 1)

    def under_way(self, method: str, member: Member | None = None) -> int:
        """Calls of a method that are under way, to processes that live as far as is known."""
        return self._counts[method, member]

    def size_under_way(self, method: str) -> int:
        """The sum of their sizes."""
        return self._sizes[method]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, but for what is left alone."""
        return not self._awaited()

    @contextlib.contextmanager
    def leaving(self, method: str) -> Iterator[None]:
        """Meanwhile answers of this method are not taken in, nor waited for."""
        self._left = method
        try:
            yield
        finally:
            self._left = None

    def pump(self, timeout: float = 0.05) -> None:
        """Take in the answers that have come; waits for one if there are none.

        Raises ``DistributedError`` when a call failed with an exception, or a member died once too often.
        """
        awaited = self._awaited()
        if not awaited:
            return
        come, _ = ray.wait(awaited, num_returns=1, timeout=timeout, fetch_local=False)
        if come:
            come, _ = ray.wait(awaited, num_returns=len(awaited), timeout=0, fetch_local=False)
        for reference in come:
            self._take(reference, self._calls.pop(reference))
        self._tell_of_silence()

    @property
    def missing(self) -> list[str]:
        """Names of those that have not started yet."""
        return [member.name for member in self.members if member.pid is None]

    def pump_while_starting(self, timeout: float) -> None:
        """:meth:`pump`; says now and then who is missing.

        Raises ``DistributedError`` where that lasts longer than so many seconds.
        """
        self.pump()
        waited, missing = time.monotonic() - self._began, ", ".join(self.missing)
        if waited > timeout:
            raise DistributedError(
                f"ApeX: not started within {timeout:g} s: {missing}. Each process asks Ray for a CPU; it has"
                f" {ray.cluster_resources().get('CPU', 0):g}. Try fewer workers."
            )
        if missing and waited > self._told + _TELL_EVERY:
            logger.warning("waiting for processes to start, for %.0f s so far: %s.", waited, missing)
            self._told = waited

    def ask(self, questions: list[tuple[Member, str, tuple]]) -> list[Any]:
        """Answers to calls, each repeated should its member die meanwhile."""
        answers: dict[int, Any] = {}
        asked: dict[int, int] = {}
        while len(answers) < len(questions):
            for i, (member, method, arguments) in enumerate(questions):
                if i not in answers and asked.get(i) != member.life:
                    asked[i] = member.life
                    self.call(member, method, *arguments, then=lambda answer, i=i: answers.__setitem__(i, answer))
            self.pump()
        return [answers[i] for i in range(len(questions))]

    def close(self) -> None:
        """End all processes; nothing is waited for."""
        self._calls.clear()
        for member in self.members:
            _kill(member)
        self.members.clear()

    def _start(self, member: Member) -> None:
        member.start()
        self.call(member, "ready", then=lambda pid: setattr(member, "pid", pid))

    def _take(self, reference: Any, call: Call) -> None:
        is_current = call.is_current
        if is_current:
            self._count(call, -1)
        try:
            answer = ray.get(reference)
        except RayActorError as error:
            if is_current:
                self._replace(call.member, error)
            return
        except RayError as error:
            raise DistributedError(f"{call.member.name} failed in {call.method}: {_reason(error)}") from error
        if is_current:
            call.member.is_silent = False
            call.member.failures = 0 if call.method != "ready" else call.member.failures
            call.then(answer)

    def _awaited(self) -> list[Any]:
        return [reference for reference, call in self._calls.items() if call.method != self._left]

    def _tell_of_silence(self) -> None:
        """Once for each process. Nobody is killed for it: the next step may be one that takes so long."""
        now = time.monotonic()
        if now < self._looked + 1.0:
            return
        self._looked = now
        for call in self._calls.values():
            member, waited = call.member, now - call.began
            is_new = call.is_current and not member.is_silent and member.pid is not None
            if is_new and waited > _SILENT:
                member.is_silent = True
                logger.warning(
                    "%s (process %d) has not answered %s for %.0f s; the run waits for it. Should it be stuck: kill %d,"
                    " and another one takes its place.",
                    member.name,
                    member.pid,
                    call.method,
                    waited,
                    member.pid,
                )

    def _count(self, call: Call, sign: int) -> None:
        for member in (None, call.member):
            self._counts[call.method, member] += sign
        self._sizes[call.method] += sign * call.size

    def _replace(self, member: Member, error: RayActorError) -> None:
        if error.actor_init_failed:
            raise DistributedError(f"{member.name} could not start: {_last_line(str(error))}") from error
        member.failures += 1
        if member.failures > self._max_restarts:
            raise DistributedError(
                f"{member.name} died {member.failures} times in a row without any work between; is there memory enough?"
                f" The last time: {_last_line(str(error))}"
            ) from error
        gone = [call for call in self._calls.values() if call.member is member and call.is_current]
        for call in gone:
            self._count(call, -1)
        _kill(member)
        logger.warning("%s (process %s) died; another one takes its place.", member.name, member.pid or "not started")
        self.restarts += 1
        self._start(member)
        self._revived(member, gone)


def _kill(member: Member) -> None:
    """A process that is dead already is none."""
    ray.kill(member.handle)


def _reason(error: RayError) -> str:
    cause = getattr(error, "cause", None)
    return f"{type(cause).__name__}: {cause}" if cause is not None else _last_line(str(error))


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]
