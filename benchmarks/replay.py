"""Tracing and host replay beside bare NumPy that moves the same data, in one run.

    .venv/bin/python benchmarks/replay.py

The floors check nothing, keep no insertion numbers and build no batch. Timings drift: only ratios within a run
count. Budgets are those of DESIGN section 10.
"""

import itertools

import numpy as np
from timing import microseconds

from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.reward_tracing import MonteCarlo, NStep, TransitionBatch

BATCH = 256
OBSERVATION = np.linspace(-1, 1, 4, dtype=np.float32)
ACTION = np.int64(1)


def transitions(size: int) -> TransitionBatch:
    rng = np.random.default_rng(0)
    return TransitionBatch(
        S=rng.normal(size=(size, 4)).astype(np.float32),
        A=rng.integers(2, size=size),
        logP=np.zeros(size),
        Rn=rng.normal(size=size),
        In=np.full(size, 0.9),
        S_next=rng.normal(size=(size, 4)).astype(np.float32),
    )


def columns_of(batch: TransitionBatch) -> list[np.ndarray]:
    return [batch.S, batch.A, batch.logP, batch.Rn, batch.In, batch.S_next, batch.W]


def row(name: str, call, floor, budget: float | None = None) -> None:
    times = microseconds({"call": call, "floor": floor})
    ratio = times["call"] / times["floor"]
    verdict = "" if budget is None else f"budget {budget:g}: {'ok' if times['call'] < budget else 'MISSED'}"
    print(f"{name:48} {times['call']:8.1f} us  floor {times['floor']:7.1f} us  ratio {ratio:5.2f}  {verdict}")


def tracing() -> None:
    def floor():
        numbers = np.array((0.0, 1.0, 0.9, 1.0), np.float32)
        copies = OBSERVATION.copy()[None], np.array(ACTION)[None], OBSERVATION.copy()[None]
        return copies, [numbers[k : k + 1] for k in range(4)]

    def trace(tracer, **options):
        def call():
            tracer.add(OBSERVATION, ACTION, 1.0, False, **options)
            if tracer:
                tracer.pop()

        return call

    monte_carlo = MonteCarlo(0.9)

    def trace_monte_carlo():
        monte_carlo.add(OBSERVATION, ACTION, 1.0, True)
        monte_carlo.pop()

    row("NStep(1): add, pop", trace(NStep(1, 0.9)), floor, 10)
    row("NStep(1): add with s_next, pop", trace(NStep(1, 0.9), s_next=OBSERVATION), floor, 10)
    row("NStep(5): add, pop", trace(NStep(5, 0.9)), floor, 10)
    row("NStep(5, record_extra_info=True): add, pop", trace(NStep(5, 0.9, record_extra_info=True)), floor)
    row("MonteCarlo: add, pop", trace_monte_carlo, floor, 10)


def uniform(capacity: int) -> None:
    stored, single = transitions(capacity), transitions(1)
    buffer = SimpleReplayBuffer(capacity, random_seed=0)
    buffer.add(stored)
    arrays, values = [column.copy() for column in columns_of(stored)], columns_of(single)
    slots, rng = itertools.cycle(range(capacity)), np.random.default_rng(0)

    def floor_add():
        slot = next(slots)
        for array, value in zip(arrays, values, strict=True):
            array[slot] = value[0]

    def floor_sample():
        chosen = rng.integers(capacity, size=BATCH)
        return [array.take(chosen, axis=0) for array in arrays]

    row(f"SimpleReplayBuffer({capacity}).add", lambda: buffer.add(single), floor_add, 5)
    row(f"SimpleReplayBuffer({capacity}).sample({BATCH})", lambda: buffer.sample(BATCH), floor_sample, 40)


def prioritized(capacity: int) -> None:
    stored, single = transitions(capacity), transitions(1)
    rng = np.random.default_rng(0)
    errors = rng.normal(size=capacity)
    buffer = PrioritizedReplayBuffer(capacity, alpha=0.6, beta=0.4, random_seed=0)
    buffer.add(stored, errors)
    arrays, values = [column.copy() for column in columns_of(stored)], columns_of(single)
    priorities = np.abs(errors) ** 0.6
    slots, error = itertools.cycle(range(capacity)), np.array([0.5], np.float32)

    def floor_add():
        slot = next(slots)
        for array, value in zip(arrays, values, strict=True):
            array[slot] = value[0]
        priorities[slot] = 1.0

    def floor_sample():
        """What one would write without a tree: a cumulative sum over all priorities."""
        cumulated = np.cumsum(priorities)
        chosen = cumulated.searchsorted(rng.random(BATCH) * cumulated[-1], side="right")
        weights = (priorities[chosen] / priorities[chosen].min()) ** -0.4
        return [array.take(chosen, axis=0) for array in arrays], weights

    def floor_step():
        batch, _ = floor_sample()
        priorities[rng.integers(capacity, size=BATCH)] = np.abs(batch[3]) ** 0.6

    def step():
        batch = buffer.sample(BATCH)
        buffer.update(batch.idx, batch.Rn)

    name = f"PrioritizedReplayBuffer({capacity})"
    row(f"{name}.add", lambda: buffer.add(single), floor_add, 5)
    row(f"{name}.add with Adv", lambda: buffer.add(single, error), floor_add)
    row(f"{name}.sample({BATCH})", lambda: buffer.sample(BATCH), floor_sample)
    row(f"{name}.sample({BATCH}), update", step, floor_step)


def images(capacity: int = 2000) -> None:
    """Four stacked 84x84 frames, which eight places of four transitions show: each is stored once."""
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(capacity + 5, 84, 84)).astype(np.uint8)
    tracer = NStep(1, 0.99)

    def single(t: int) -> TransitionBatch:
        tracer.add(tuple(frames[t : t + 4]), ACTION, 1.0, False, s_next=tuple(frames[t + 1 : t + 5]))
        return tracer.pop()

    buffer, singles = SimpleReplayBuffer(capacity, random_seed=0), [single(t) for t in range(capacity)]
    for batch in singles:
        buffer.add(batch)
    arrays = [np.zeros((capacity, 84, 84), np.uint8) for _ in range(8)]
    turns, slots = itertools.cycle(singles), itertools.cycle(range(capacity))

    def floor_add():
        slot = next(slots)
        batch = singles[slot]
        for array, value in zip(arrays, (*batch.S, *batch.S_next), strict=True):
            array[slot] = value[0]

    def floor_sample():
        chosen = rng.integers(capacity, size=32)
        return [array.take(chosen, axis=0) for array in arrays]

    row("SimpleReplayBuffer, 4 stacked 84x84 frames: add", lambda: buffer.add(next(turns)), floor_add)
    row("SimpleReplayBuffer, 4 stacked frames: sample(32)", lambda: buffer.sample(32), floor_sample)
    stored = sum(array.nbytes for array in buffer.state_dict()["arrays"].values())
    plain = sum(array.nbytes for array in arrays)
    print(f"memory: {stored / capacity:.0f} bytes a transition, {plain / capacity:.0f} without sharing")


if __name__ == "__main__":
    tracing()
    for size in (10_000, 1_000_000):
        uniform(size)
        prioritized(size)
    images()
