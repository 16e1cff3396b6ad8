"""What the parts of a distributed run cost here, and what they say of 10, 100 and 1000 workers.

    .venv/bin/python benchmarks/distributed.py

Parts are timed one at a time in this process, then whole runs in processes of their own. docs/scaling.md reads a run
of this.
"""

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import jax
import numpy as np

from triax.agents import QLearningAgent, QLearningConfig
from triax.core.leaves import named_leaves, to_numpy
from triax.distributed import ApeX, ApeXConfig, Recipe
from triax.distributed.learner_role import Learner
from triax.distributed.replay_role import Replay
from triax.distributed.rollout_role import Rollouts

CHUNK, PER_CALL, BATCH = 32, 16, 64
AGENT = QLearningConfig(alpha=0.6, hidden=(128, 128), batch_size=BATCH)


def make_agent(env: Any) -> QLearningAgent:
    return QLearningAgent(env, AGENT)


CARTPOLE = Recipe(functools.partial(gymnasium.make, "CartPole-v1"), make_agent)


@dataclass
class Costs:
    """Seconds, and bytes."""

    step: float
    """Of a rollout worker: act, environment, tracing, TD error."""
    insert: float
    """Of replay, a transition."""
    sample: float
    """Of replay, a batch drawn, stacked and given new errors."""
    update: float
    """Of the learner."""
    chunk_call: float = 0.0
    """Of the driver: a chunk from a worker to the replay."""
    learner_call: float = 0.0
    """Of the driver: batches to the learner, errors back, weights out."""
    transition: int = 0
    """Bytes of one, as it travels."""
    state: int = 0
    """Bytes of a version."""


def seconds(call: Callable[[], Any], budget: float = 1.0) -> float:
    """The median of a call."""
    call()
    times, until = [], time.perf_counter() + budget
    while time.perf_counter() < until:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def size(tree: Any) -> int:
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(tree))


def parts() -> Costs:
    """The roles without Ray."""
    agent = CARTPOLE.agent()
    rollouts = Rollouts(agent, CARTPOLE.envs(1), seed=0, epsilon=0.1)
    arrays = to_numpy(named_leaves(agent.init(jax.random.key(0))))
    rollouts.load(arrays)
    batch, errors, _ = rollouts.gather(CHUNK)
    replay = Replay(agent.replay, 100_000, seed=0)
    for _ in range(500):
        replay.add(batch, errors)
    drawn, _ = replay.sample(PER_CALL)
    learner = Learner(agent, seed=0)

    def sampled() -> None:
        replay.set_errors(replay.sample(PER_CALL)[1].reshape(-1), np.ones(PER_CALL * BATCH))

    return Costs(
        step=seconds(lambda: rollouts.gather(CHUNK)) / CHUNK,
        insert=seconds(lambda: replay.add(batch, errors)) / CHUNK,
        sample=seconds(sampled) / PER_CALL,
        update=seconds(lambda: (learner.learn(drawn), learner.arrays())) / PER_CALL,
        transition=(size(batch) + errors.nbytes) // batch.batch_size,
        state=size(arrays),
    )


def store() -> None:
    """Ray's calls and its object store."""
    import ray

    class Echo:
        def __init__(self) -> None:
            self.kept = None

        def answer(self, value: Any) -> None:
            return None

        def fetch(self, references: list) -> float:
            began = time.perf_counter()
            self.kept = ray.get(references[0])
            return time.perf_counter() - began

    echo = ray.remote(num_cpus=1)(Echo).remote()
    print(f"{'a call and its answer':44} {1e6 * seconds(lambda: ray.get(echo.answer.remote(None))):10.0f} us")
    flood = 200
    at_once = seconds(lambda: ray.get([echo.answer.remote(None) for _ in range(flood)])) / flood
    print(f"{f'one of {flood} calls at once':44} {1e6 * at_once:10.0f} us")
    for name, count in (("20 KB", 5_000), ("1 MB", 250_000), ("26 MB", 6_500_000)):
        array = {"weights": np.ones(count, np.float32)}
        put = seconds(lambda array=array: ray.put(array))
        fetch = np.median([ray.get(echo.fetch.remote([ray.put(array)])) for _ in range(20)])
        print(f"{f'put {name}; get it in another process':44} {1e6 * put:10.0f} us {1e6 * fetch:10.0f} us")
    ray.kill(echo)


def whole(num_workers: int, *, updates_per_step: float, steps: int) -> tuple[float, float, float]:
    """Steps and updates in a second, and the CPU time of the driver for each step."""
    config = ApeXConfig(num_workers, warm_up=200, chunk_length=CHUNK, updates_per_step=updates_per_step)
    with ApeX(CARTPOLE, config) as run:
        run.start()
        run.advance(1_500, 10**9)
        run.report()
        cpu, before = time.process_time(), run.steps
        run.advance(before + steps, 10**9)
        cpu, counted = time.process_time() - cpu, run.steps - before
        report = run.report()
    return report["distributed/steps_per_second"], report["distributed/updates_per_second"], cpu / counted


def limits(costs: Costs, ratio: float, workers: int, *, chunk: int, per_call: int) -> dict[str, float]:
    """Steps in a second that each part allows, if it has a core of its own."""
    return {
        "workers": workers / costs.step,
        "driver": 1 / (costs.chunk_call / chunk + ratio * costs.learner_call / per_call),
        "replay": 1 / (costs.insert + ratio * costs.sample),
        "learner": 1 / (ratio * costs.update),
    }


def table(costs: Costs) -> None:
    """The model: each part has a core, and the slowest one holds up the others."""
    for chunk, per_call in ((CHUNK, PER_CALL), (8 * CHUNK, 4 * PER_CALL)):
        print(f"\nsteps/s that each part allows, with chunks of {chunk} steps and {per_call} updates a call")
        print(f"{'updates a step':>14}{'workers':>9}{'(they)':>12}{'driver':>10}{'replay':>10}{'learner':>11}  binds")
        for ratio in (1.0, 1 / 4, 1 / 64):
            for workers in (10, 100, 1000):
                allowed = limits(costs, ratio, workers, chunk=chunk, per_call=per_call)
                binds = min(allowed, key=allowed.__getitem__)
                moved = allowed[binds] * costs.transition / 1e6
                sent = allowed[binds] * ratio / per_call * costs.state / 1e6
                they, driver, replay, learner = (f"{value:,.0f}" for value in allowed.values())
                print(
                    f"{ratio:14.3f}{workers:9}{they:>12}{driver:>10}{replay:>10}{learner:>11}  {binds}:"
                    f" {moved:.1f} MB/s come in, {sent:.1f} MB/s go to each machine"
                )


def driver_costs(costs: Costs) -> Costs:
    """From two runs that differ in how much is learned."""
    rows = {}
    for workers, ratio in ((1, 1.0), (2, 1.0), (2, 1 / 64)):
        steps, updates, cpu = whole(workers, updates_per_step=ratio, steps=6_000)
        rows[workers, ratio] = cpu
        print(
            f"{f'{workers} workers, {ratio:.3f} updates a step':44} {steps:10,.0f} steps/s {updates:8,.0f} updates/s"
            f" {1e6 * cpu:6.0f} us of the driver a step"
        )
    learning = (rows[2, 1.0] - rows[2, 1 / 64]) / (1 - 1 / 64)
    return replace(costs, learner_call=learning * PER_CALL, chunk_call=(rows[2, 1.0] - learning) * CHUNK)


def main() -> None:
    import ray

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} (costs are too high where it is above 1)")
    costs = parts()
    print(f"{'a step of a worker':44} {1e6 * costs.step:10.0f} us")
    print(f"{'a transition into replay':44} {1e6 * costs.insert:10.2f} us {costs.transition:10} bytes")
    print(f"{f'a batch of {BATCH} out of it, and its errors':44} {1e6 * costs.sample:10.0f} us")
    print(f"{'an update, 128x128':44} {1e6 * costs.update:10.0f} us {costs.state:10} bytes of a version")
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    store()
    costs = driver_costs(costs)
    chunk, learning = 1e6 * costs.chunk_call, 1e6 * costs.learner_call
    print(f"{'driver: a chunk; a call of the learner':44} {chunk:10.0f} us {learning:10.0f} us")
    ray.shutdown()
    table(costs)


if __name__ == "__main__":
    main()
