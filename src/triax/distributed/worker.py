"""A base class for agents of your own in many processes: parameter store, rollout workers, learner."""

import contextlib
import functools
import inspect
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from triax.core.numbers import check_count
from triax.distributed.store import LocalStore, RayStore, Store
from triax.distributed.worker_env import monitored, threshold, time_limit
from triax.wrappers.episode_metrics import check_scalars

_SHORTEST, _LONGEST = 1 / 1024, 1 / 8
"""Pauses, in seconds, between looks at whether there is enough to learn from. A look costs a millisecond; a pause of
half a minute, as coax has it, would leave the learner idle, and a stop unheard, for as long."""


class Worker(ABC):
    """One class for all roles: the parameter store, which owns weights, replay and counters, and who acts or learns.

    A subclass says what the weights are, what is done with a step and what with a batch::

        Remote = ray.remote(MyWorker)  # or, without Ray, MyWorker itself, in threads
        store = Remote.remote(env_id)
        learner = Remote.remote(env_id, store)
        actors = [Remote.remote(env_id, store) for _ in range(4)]
        ray.get([learner.learn_loop.remote(100_000), *(actor.rollout_loop.remote(100_000) for actor in actors)])

    Weights have versions: who has the newest is not sent them again, and with Ray each is put into the object store
    once. What needs no answer is not waited for; at most a few such calls are under way.

    Args:
        env: an environment, its id, or a callable that makes it; wrapped in a ``TrainMonitor`` unless it is one.
        param_store: the store, a ``Worker`` or the handle of a Ray actor of one; ``None`` makes this the store itself.
        pi: acts, ``pi(s, return_logp=True) -> (a, logp)``. Rollout workers need it.
        tracer: for ``trace``.
        buffer: of the store.
        buffer_warmup: transitions in it before any are sampled.
        name: of the monitor.

    Raises:
        TypeError: ``env`` or ``param_store`` is none of these.
        ValueError: the environment has no time limit, ``spec.max_episode_steps``.
    """

    pi: Any
    tracer: Any
    buffer: Any
    buffer_warmup: int | None

    def __init__(
        self,
        env: Any,
        param_store: Any = None,
        pi: Any = None,
        tracer: Any = None,
        buffer: Any = None,
        buffer_warmup: int | None = None,
        name: str | None = None,
    ):
        self.env = monitored(env, name)
        self.param_store = param_store
        self.pi, self.tracer, self.buffer, self.buffer_warmup, self.name = pi, tracer, buffer, buffer_warmup, name
        self.lock = threading.RLock()
        self._own = LocalStore(self)
        self._remote: Store | None = None
        if param_store is not None:
            self._remote = LocalStore(param_store) if isinstance(param_store, Worker) else RayStore(param_store)
        self._author, self._last_author = uuid.uuid4().hex, ""
        self._version, self._stopped = 0 if param_store is None else -1, False
        self._reference: tuple[int, list[Any]] | None = None
        self._metrics: dict[str, Any] = {}
        self._extra = _accepted(self.trace, ("truncated", "s_next"))

    # ------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def get_state(self) -> Any:
        """What others need to act and to learn as this one does: weights, a pytree of arrays."""

    @abstractmethod
    def set_state(self, state: Any) -> None:
        """Undo ``get_state``."""

    @abstractmethod
    def trace(self, s: Any, a: Any, r: float, done: bool, logp: float = 0.0, w: float = 1.0) -> None:
        """Take in one step.

        A subclass that takes ``truncated`` by name gets it, and ``done`` is then termination alone; one that takes
        ``s_next`` gets the observation that the step led to. Tracers want both:
        ``self.tracer.add(s, a, r, done, logp, w, truncated=truncated, s_next=s_next)``. To others a time limit is
        ``done`` too, and looks like a termination.
        """

    @abstractmethod
    def learn(self, transition_batch: Any) -> Mapping[str, Any]:
        """Learn from a batch; metrics."""

    # ------------------------------------------------------------------ loops

    def rollout(self) -> None:
        """One episode: up to the time limit, each step of it traced. ``ValueError`` without a ``pi``."""
        if self.pi is None:
            raise ValueError("Worker.rollout: there is no pi to act with; pass pi=... to Worker.__init__.")
        s, _ = self.env.reset()
        for left in reversed(range(time_limit(self.env))):
            a, logp = self.pi(s, return_logp=True)
            s_next, r, terminated, truncated, _ = self.env.step(a)
            truncated = not terminated and bool(truncated or left == 0)
            self._trace(s, a, float(r), bool(terminated), truncated, logp, s_next)
            if terminated or truncated:
                return
            s = s_next

    def rollout_loop(self, max_total_steps: int, reward_threshold: float | None = None) -> None:
        """Episodes, until all workers together made so many steps, or the smoothed return here reaches the threshold.

        ``reward_threshold`` is by default that of the environment. Ends too where the store was stopped; an error stops
        it, and with it all other loops, which might wait for steps that nobody makes.
        """
        goal = threshold(self.env) if reward_threshold is None else reward_threshold
        with self._stopping_all_on_error():
            total, stopped = self._store.ask("progress", 0)
            has_reached = False
            while not (stopped or has_reached or total >= max_total_steps):
                self.pull_state()
                began = time.perf_counter()
                self.rollout()
                speed = self.env.t / max(time.perf_counter() - began, 1e-9)
                total, stopped = self._store.ask("progress", self.env.t)
                metrics = {"throughput/rollout_loop": speed, "episode/T_global": total}
                self.env.record_metrics({**self.pull_metrics(), **metrics})
                has_reached = self.env.avg_G >= goal
            self._store.settle()

    def learn_loop(self, max_total_steps: int, batch_size: int = 32) -> None:
        """Learn, until all workers together made so many steps, or the store was stopped.

        Weights are pushed after each update unless those before are still on their way; the last ones always are. An
        error stops the store, and with it the workers: nobody would learn any more.
        """
        has_learned = False
        with self._stopping_all_on_error():
            while (batch := self._wait_for_batch(batch_size, max_total_steps)) is not None:
                self.pull_state()
                began = time.perf_counter()
                metrics, has_learned = self.learn(batch), True
                check_scalars("Worker.learn", metrics)
                if self._store.is_settled("accept_state"):
                    self.push_state()
                speed = batch_size / max(time.perf_counter() - began, 1e-9)
                self.push_metrics({**metrics, "throughput/learn_loop": speed})
            if has_learned:
                self.push_state()
            self._store.settle()

    # ------------------------------------------------------------------ the store's replay

    def buffer_len(self) -> int:
        """Transitions in the store's buffer."""
        return len(self._buffer) if self._remote is None else self._remote.ask("buffer_len")

    def buffer_add(self, transition_batch: Any, Adv: Any = None) -> None:
        """Add to the store's buffer; ``Adv`` is passed on if its ``add`` takes it."""
        if self._remote is not None:
            self._remote.tell("buffer_add", transition_batch, _as_numpy(Adv))
        elif "Adv" in _accepted(self._buffer.add, ("Adv",)):
            self.buffer.add(transition_batch, Adv=Adv)
        else:
            self.buffer.add(transition_batch)

    def buffer_update(self, transition_batch_idx: Any, Adv: Any) -> None:
        """Update priorities in the store's buffer."""
        if self._remote is None:
            self._buffer.update(transition_batch_idx, Adv)
        else:
            self._remote.tell("buffer_update", _as_numpy(transition_batch_idx), _as_numpy(Adv))

    def buffer_sample(self, batch_size: int = 32) -> Any:
        """A batch of the store's buffer; waits until it holds ``max(buffer_warmup, batch_size)`` transitions.

        Raises ``RuntimeError`` when the store is stopped meanwhile.
        """
        batch = self._wait_for_batch(batch_size, np.inf)
        if batch is None:
            raise RuntimeError("Worker.buffer_sample: the store was stopped before its buffer held enough.")
        return batch

    # ------------------------------------------------------------------ the store's state, metrics and attributes

    def pull_state(self) -> None:
        """Take over the state of the store, unless it is what this worker has, or pushed."""
        assert self._remote is not None, "Worker.pull_state: the parameter store has nobody to pull from."
        self._version, state = self._remote.newer_state(self._version, self._author)
        if state is not None:
            self.set_state(state)

    def push_state(self) -> None:
        """Hand the state to the store, as its next version."""
        assert self._remote is not None, "Worker.push_state: the parameter store has nobody to push to."
        if not self._remote.is_settled("accept_state"):
            self._remote.settle()
        self._remote.tell("accept_state", self.get_state(), self._author)

    def pull_metrics(self) -> dict[str, Any]:
        """The metrics that were recorded on the store last."""
        return dict(self._metrics) if self._remote is None else self._remote.ask("pull_metrics")

    def push_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Record metrics, scalars by name, on the store's monitor."""
        check_scalars("Worker.push_metrics", metrics)
        if self._remote is not None:
            self._remote.tell("push_metrics", {name: float(value) for name, value in metrics.items()})
            return
        self._metrics.update(metrics)
        self.env.record_metrics(metrics)

    def pull_getattr(self, name: str, default_value: Any = ...) -> Any:
        """An attribute of the store, such as ``"env.T"`` or ``"buffer.beta"``; ``AttributeError`` without a default."""
        if self._remote is not None:
            return self._remote.ask("pull_getattr", name, default_value)
        try:
            return functools.reduce(getattr, name.split("."), self)
        except AttributeError:
            if default_value is ...:
                raise
            return default_value

    def push_setattr(self, name: str, value: Any) -> None:
        """Assign to an attribute of the store."""
        if self._remote is not None:
            self._remote.tell("push_setattr", name, value)
            return
        *path, last = name.split(".")
        setattr(functools.reduce(getattr, path, self), last, value)

    # ------------------------------------------------------------------ of the store, for its workers

    def stop(self) -> None:
        """End all loops of this store's workers, each after the episode or the update that it is at."""
        if self._remote is not None:
            self._remote.tell("stop")
        self._stopped = True

    def progress(self, more_steps: int) -> tuple[int, bool]:
        """Count steps that a worker made: all steps so far, and whether the loops are to end. Nobody's are lost."""
        self.env.T += more_steps
        return self.env.T, self._stopped

    def batch_if_ready(self, batch_size: int) -> tuple[Any, int, bool]:
        """A batch or ``None``, and what ``progress`` says."""
        is_ready = len(self._buffer) >= max(self.buffer_warmup or 0, batch_size)
        return (self.buffer.sample(batch_size=batch_size) if is_ready else None), *self.progress(0)

    def accept_state(self, state: Any, author: str) -> None:
        """Become the next version."""
        self.set_state(state)
        self._version, self._last_author = self._version + 1, author

    def newer_state(self, version: int, author: str) -> tuple[int, Any]:
        """The newest version, and its state unless that is ``version``, or ``author`` made it."""
        has_it = self._version == version or (version >= 0 and self._last_author == author)
        return self._version, None if has_it else self.get_state()

    def newer_state_reference(self, version: int, author: str) -> tuple[int, list[Any] | None]:
        """The same; the state as a reference in a list, put into Ray's object store once."""
        import ray

        if self._version == version or (version >= 0 and self._last_author == author):
            return self._version, None
        if self._reference is None or self._reference[0] != self._version:
            self._reference = self._version, [ray.put(self.get_state())]
        return self._reference

    # ------------------------------------------------------------------

    @property
    def _store(self) -> Store:
        return self._own if self._remote is None else self._remote

    @property
    def _buffer(self) -> Any:
        if self.buffer is None:
            raise ValueError(
                "Worker: the parameter store has no buffer. Pass buffer=..., such as SimpleReplayBuffer(10_000), to the"
                " Worker.__init__ of the one whose param_store is None."
            )
        return self.buffer

    @contextlib.contextmanager
    def _stopping_all_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._store.tell("stop")
            raise

    def _trace(self, s: Any, a: Any, r: float, terminated: bool, truncated: bool, logp: Any, s_next: Any) -> None:
        known = {"truncated": truncated, "s_next": s_next}
        done = terminated if "truncated" in self._extra else terminated or truncated
        self.trace(s, a, r, done, logp, **{name: known[name] for name in self._extra})

    def _wait_for_batch(self, batch_size: int, max_total_steps: float) -> Any:
        """``None`` once the steps are made, or the store is stopped."""
        check_count("Worker", "batch_size", batch_size)
        pause = _SHORTEST
        while True:
            batch, total, stopped = self._store.ask("batch_if_ready", batch_size)
            if stopped or total >= max_total_steps:
                return None
            if batch is not None:
                return batch
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)


def _accepted(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the names it takes as arguments."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return tuple(name for name in names if takes_any or name in parameters)


def _as_numpy(values: Any) -> Any:
    """For another process."""
    return None if values is None else np.asarray(values)
