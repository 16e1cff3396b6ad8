"""Ape-X: many processes act, one learns, one keeps their experience (Horgan et al. 2018, arXiv:1803.00933)."""

import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, PyTree

from triax.agents.off_policy import OffPolicyAgent
from triax.core.leaves import restore_tree
from triax.distributed.config import ApeXConfig
from triax.distributed.exploration import epsilon_ladder
from triax.distributed.extra import import_ray
from triax.distributed.journal import ReplayJournal
from triax.distributed.learner_role import Arrays, Learned, Version
from triax.distributed.measured import Measured
from triax.distributed.rate_limiter import RateLimiter
from triax.distributed.recipe import Recipe, pickled
from triax.distributed.replay_example import example_batch
from triax.distributed.rollout_role import Gathered

_CALLS_AHEAD = 2
"""Calls under way to each worker, so that it need not wait for the next; and batches that wait for the learner."""
_BASE = "base"
"""Stands in the journal for what replay held when a run was resumed."""


class ApeX:
    """An off-policy agent that acts in many processes and learns in one. This object is the driver of all.

    The driver only counts, and passes references on: workers' transitions go to the replay, batches to the learner, TD
    errors back, weights into Ray's object store, once for each version. Nobody waits for an answer, and little is under
    way at a time, which bounds the memory; :class:`RateLimiter` holds acting and learning together.

    A process that dies is replaced. A worker's steps are counted when they arrive, so those under way are taken anew;
    the learner goes on from the version that it published last; replay is filled again from what the driver knows.
    What happened is logged by ``triax.distributed``.

    Runs are not reproducible number for number: what is learned depends on who comes first.

    Args:
        recipe: how a process makes its environments and its agent.
        config: how the run is laid out.
        seed: of weights, environments and draws.
        address: of a Ray cluster, such as ``"auto"`` or ``"10.0.0.1:6379"``; ``None`` is the one that this process
            is connected to, or a new one on this machine.

    Raises:
        MissingExtraError: Ray is not installed.
        ValueError: the agent learns from sequences, or its replay is not prioritized.
    """

    def __init__(
        self, recipe: Recipe, config: ApeXConfig | None = None, *, seed: int = 0, address: str | None = None
    ) -> None:
        self._ray = import_ray("ApeX: a distributed run")
        self.config = config = config or ApeXConfig()
        self.agent: OffPolicyAgent = recipe.agent()
        _check_agent(self.agent)
        self._recipe, self._seed, self._address = recipe, seed, address
        self._limiter = RateLimiter(config.updates_per_step, config.warm_up, config.slack(self.agent.replay.window))
        self._journal = ReplayJournal(config.capacity)
        self._base: list[Any] = []
        self._arrays: Arrays | None = None
        self._version: Version | None = None
        self.steps = self.updates = 0
        self._measured = Measured(0, 0)
        self._session: Any = None
        self._members: Any = None
        self._started = False

    # ------------------------------------------------------------------ its life

    def start(self, state: Mapping[str, Any] | None = None, should_stop: Callable[[], bool] | None = None) -> None:
        """Start all processes, with new weights or with a state of :meth:`state_dict`.

        Raises ``DistributedError`` if they do not start within ``config.start_timeout``, ``KeyboardInterrupt`` when
        ``should_stop()``, which is asked many times a second, ``TypeError`` if the recipe cannot be pickled, and
        ``RuntimeError`` the second time.
        """
        from triax.distributed.crew import Crew
        from triax.distributed.session import Session

        if self._started:
            raise RuntimeError("ApeX.start: it was started before. Make another one, and start it with a state_dict().")
        sent = pickled(self._recipe)
        self._started = True
        self._session = Session(self._address, self.config.num_workers + 2)
        self._members = Crew(self.config.max_restarts, self._revived)
        if state is not None:
            self._load(state)
        self._start_members(sent)
        if self._base:
            self._restore_replay()
        if self._version is None:
            self._crew.call(self._learner, "arrays", then=self._publish)
        while self._version is None or self._crew.missing:
            if should_stop is not None and should_stop():
                raise KeyboardInterrupt
            self._crew.pump_while_starting(self.config.start_timeout)
        self._measured = Measured(self.steps, self.updates)

    def close(self) -> None:
        """End all processes that were started, and the cluster if it was."""
        if self._session is None:
            return
        if self._members is not None:
            self._members.close()
        self._session.close()
        self._session = self._members = None

    def __enter__(self) -> "ApeX":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def pids(self) -> dict[str, int | None]:
        """The processes by name; ``None`` for those that are starting."""
        return {member.name: member.pid for member in self._crew.members}

    # ------------------------------------------------------------------ running

    def advance(self, until: int, total_steps: int, tick: Callable[[int], bool] | None = None) -> None:
        """Go on until ``steps`` is at least ``until``; at ``total_steps`` all updates that are due are done too.

        Environments step ``num_envs`` at a time, so the last call may take it beyond ``total_steps`` by less than that.
        ``tick`` is told the steps many times a second; ``True`` stops.
        """
        until = min(until, total_steps)
        while self.steps < until or (self.steps >= total_steps and not self._has_learned()):
            if tick is not None and tick(self.steps):
                return
            self._feed_learner()
            self._feed_workers(total_steps)
            self._pump()

    def settle(self) -> None:
        """Wait until nothing is under way."""
        while not self._crew.is_idle:
            self._pump()

    def _pump(self) -> None:
        self._session.check()
        self._crew.pump()

    def evaluate(self, num_episodes: int, seed: int) -> Float[np.ndarray, " episodes"]:
        """Returns of greedy episodes, shared out to the workers. Nothing else goes on meanwhile."""
        self.settle()
        version = self._version
        shares = [len(part) for part in np.array_split(np.arange(num_episodes), len(self._workers))]
        played = self._crew.ask(
            [
                (worker, "evaluate", (share, seed + i, version))
                for i, (worker, share) in enumerate(zip(self._workers, shares, strict=True))
                if share
            ]
        )
        return np.concatenate(played)

    def agent_state(self) -> PyTree:
        """The state of the agent that was published last, on the device."""
        assert self._arrays is not None
        return restore_tree(jax.eval_shape(self.agent.init, jax.random.key(0)), self._arrays, "ApeX")

    def state_dict(self) -> dict[str, Any]:
        """All that a run goes on from, in new episodes; waits for learner and replay, but for no worker's steps.

        ``{"scalars": <what JSON can hold>, "arrays": {path: array}}``, for :meth:`start`.
        """
        with self._crew.leaving("gather"):
            self.settle()
            assert self._arrays is not None
            replay = self._crew.ask([(self._replay, "state_dict", ())])[0]
        arrays = {f"agent/{name}": leaf for name, leaf in self._arrays.items()}
        arrays |= {f"replay/{name}": array for name, array in replay["arrays"].items()}
        scalars = {"steps": self.steps, "updates": self.updates, "replay": replay["scalars"]}
        return {"scalars": scalars, "arrays": arrays}

    def report(self) -> dict[str, float]:
        """Means over what came since the last report, and how far it is."""
        now = {
            "distributed/updates": self.updates,
            "distributed/versions": 0 if self._version is None else self._version[0],
            "distributed/restarts": self._crew.restarts,
            "distributed/steps_under_way": self._crew.size_under_way("gather"),
            "distributed/replayed_transitions": min(self._journal.total, self.config.capacity),
        }
        return self._measured.report(self.steps, self.updates) | {name: float(value) for name, value in now.items()}

    # ------------------------------------------------------------------ what is asked of whom

    @property
    def _crew(self) -> Any:
        if self._members is None:
            raise RuntimeError("ApeX: no process runs. Call start() first; after close() none does.")
        return self._members

    def _feed_workers(self, total_steps: int) -> None:
        if self._version is None:
            return
        config, crew = self.config, self._crew
        allowed = min(total_steps, self._limiter.steps_allowed(self.updates))
        most = _CALLS_AHEAD * len(self._turns)
        for _ in range(most):
            room = allowed - self.steps - crew.size_under_way("gather")
            is_full = crew.under_way("add") >= most or crew.under_way("gather") >= most
            if is_full or room <= 0 or room < min(config.steps_per_call, total_steps - self.steps):
                return
            worker = self._turns[0]
            self._turns.rotate(-1)  # where the learner sets the pace, each worker acts as often as the others
            if crew.under_way("gather", worker) >= _CALLS_AHEAD:
                continue
            length = min(config.chunk_length, -(-room // config.num_envs))
            size = length * config.num_envs
            crew.call(worker, "gather", length, self._version, then=self._gathered, size=size, num_returns=2)

    def _gathered(self, chunk: Any, gathered: Gathered) -> None:
        self.steps += gathered.steps
        self._measured.gathered(gathered)
        if gathered.rows:
            self._journal.add(chunk, gathered.rows)
            self._crew.call(self._replay, "add", chunk, then=lambda answer: None)

    def _feed_learner(self) -> None:
        crew, calls = self._crew, self.config.updates_per_call
        while self._journal.total and crew.under_way("sample") + crew.under_way("learn") <= _CALLS_AHEAD:
            claimed = self.updates + crew.size_under_way("sample") + crew.size_under_way("learn")
            if claimed + calls > self._limiter.updates_due(self.steps):
                return
            crew.call(self._replay, "sample", calls, then=self._sampled, size=calls, num_returns=2)

    def _sampled(self, batches: Any, ids: np.ndarray) -> None:
        size = len(ids)
        self._crew.call(self._learner, "learn", batches, then=partial(self._learned, ids), size=size, num_returns=2)

    def _learned(self, ids: np.ndarray, arrays: Any, learned: Learned) -> None:
        self.updates = learned.updates
        self._publish(self._ray.get(arrays))
        self._measured.learned(learned)
        ids, errors = ids.reshape(-1), learned.errors.reshape(-1)
        self._journal.set_errors(ids, errors)
        self._crew.call(self._replay, "set_errors", ids, errors, then=lambda answer: None)

    def _publish(self, arrays: Arrays) -> None:
        """A new version: in the object store once, and the driver's, so that it outlives the learner's process."""
        number = 0 if self._version is None else self._version[0] + 1
        self._arrays, self._version = arrays, (number, [self._ray.put(arrays)])

    def _has_learned(self) -> bool:
        """Whether nothing is under way that a state should have, and no more updates are due."""
        due = self._limiter.updates_due(self.steps) - self.updates >= self.config.updates_per_call
        return not due and self._crew.is_idle

    # ------------------------------------------------------------------ processes

    def _start_members(self, recipe: bytes) -> None:
        from triax.distributed.actors import LearnerActor, ReplayActor, RolloutActor

        config, remote = self.config, partial(self._ray.remote, num_cpus=1, max_restarts=0)
        common = list(sys.path), recipe

        def seed(index: int, life: int) -> int:
            """Other ones after a restart or a resumption, so that nothing is done twice."""
            return int(np.random.SeedSequence([self._seed, self.steps, index, life]).generate_state(1)[0] >> 1)

        worker, replay = remote()(RolloutActor), remote()(ReplayActor)
        learner = remote(num_gpus=config.learner_gpus)(LearnerActor)
        self._learner = self._crew.add(
            "the learner", lambda life: learner.remote(*common, self._seed, self._version, self.updates)
        )
        self._replay = self._crew.add(
            "the replay",
            lambda life: replay.remote(*common, config.capacity, seed(0, life), self._journal.first_id),
        )
        epsilons = epsilon_ladder(config.num_workers, base=config.epsilon, alpha=config.epsilon_alpha)
        self._workers = [
            self._crew.add(
                f"rollout worker {i}",
                lambda life, i=i, epsilon=epsilon: worker.remote(
                    *common, config.num_envs, seed(i + 1, life), float(epsilon)
                ),
            )
            for i, epsilon in enumerate(epsilons)
        ]
        self._turns = deque(self._workers)

    def _revived(self, member: Any, gone: list[Any]) -> None:
        from triax.distributed.crew import logger

        lost = sum(call.size for call in gone)
        if member is self._replay:
            self._restore_replay()
            count = min(self._journal.total, self.config.capacity)
            logger.warning("the replay is filled again with the %d transitions that it held.", count)
        elif member is self._learner:
            if self._version is None:
                self._crew.call(self._learner, "arrays", then=self._publish)
            logger.warning("the learner goes on from update %d; what was under way is done anew.", self.updates)
        else:
            logger.warning("%s: about %d steps that were under way are taken anew.", member.name, lost)

    def _restore_replay(self) -> None:
        entries = self._journal.entries
        has_base = bool(entries) and entries[0].rows == _BASE
        base, rest = (self._base, entries[1:]) if has_base else ([], entries)
        self._crew.call(self._replay, "restore", base, rest, self._journal.known_errors(), then=lambda answer: None)

    def _load(self, state: Mapping[str, Any]) -> None:
        scalars = state["scalars"]
        self.steps, self.updates = scalars["steps"], scalars["updates"]
        self._publish(_part("agent/", state["arrays"]))
        replay = {"scalars": scalars["replay"], "arrays": _part("replay/", state["arrays"])}
        size = len(replay["arrays"]["errors"])
        if size:
            self._base = [self._ray.put((replay, example_batch(self._recipe, self.agent, replay["arrays"])))]
            self._journal.add(_BASE, size)


def _check_agent(agent: OffPolicyAgent) -> None:
    if agent.replay.sequences:
        raise ValueError("ApeX: the agent learns from sequences; expected one without memory.")
    if agent.replay.alpha is None:
        raise ValueError("ApeX: the agent's replay must be prioritized; got alpha=None. Try alpha=0.6 in its config.")


def _part(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {path.removeprefix(prefix): array for path, array in arrays.items() if path.startswith(prefix)}
