"""Distributed runs on one machine: faults, a slow learner, what is left behind."""

import dataclasses
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest
import ray

from triax.agents import QLearningConfig
from triax.distributed import ApeX, ApeXConfig, DistributedError, Recipe, crew

from .agents import CARTPOLE, FAILING, make_small

CONFIG = ApeXConfig(num_workers=2, warm_up=64, chunk_length=8, capacity=4_096)
FOR_EVER = 10**9


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def all_gone(pids, seconds=10.0):
    until = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(lives, pids))


@pytest.fixture(scope="module")
def run(cluster):
    """A run that goes on, whatever happens to it."""
    with ApeX(CARTPOLE, CONFIG, seed=1) as started:
        started.start()
        started.advance(200, FOR_EVER)
        yield started


def kill(run, name):
    pid = run.pids[name]
    os.kill(pid, signal.SIGKILL)
    assert all_gone([pid])


def stored(run):
    """What replay holds; waits until nothing is under way."""
    state = run.state_dict()
    return {name: leaf for name, leaf in state["arrays"].items() if name.startswith("replay/")}


def test_a_killed_rollout_worker_costs_only_steps_that_were_not_counted(run, caplog):
    before = run.pids["rollout worker 1"]
    kill(run, "rollout worker 1")
    steps = run.steps
    with caplog.at_level(logging.WARNING, "triax.distributed"):
        run.advance(steps + 300, FOR_EVER)
    assert f"rollout worker 1 (process {before}) died" in caplog.text
    assert "taken anew" in caplog.text
    assert len(stored(run)["replay/errors"]) == run.steps  # a transition for each step
    run.evaluate(2, seed=0)  # by both workers: the new one is there
    assert run.pids["rollout worker 1"] not in (None, before)


def test_a_killed_replay_is_filled_again_with_all_that_it_held(run, caplog):
    before = stored(run)
    kill(run, "the replay")
    with caplog.at_level(logging.WARNING, "triax.distributed"):
        after = stored(run)
    assert f"filled again with the {run.steps} transitions" in caplog.text
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_allclose(before[name], after[name], rtol=1e-6, err_msg=name)
    assert np.unique(before["replay/errors"]).size > 100  # errors were learned, not only given
    steps, updates = run.steps, run.updates
    run.advance(steps + 100, FOR_EVER)
    assert run.updates > updates
    assert len(stored(run)["replay/errors"]) == run.steps


def test_a_killed_learner_goes_on_from_what_it_published_last(run, caplog):
    updates = run.updates
    assert updates == int(run.agent_state().updates) > 0
    kill(run, "the learner")
    with caplog.at_level(logging.WARNING, "triax.distributed"):
        run.advance(run.steps + 200, FOR_EVER)
    assert "the learner goes on from update" in caplog.text
    assert run.updates == int(run.agent_state().updates) > updates


def late(until):
    return time.monotonic() > until


def go_on_for(run, seconds):
    until = time.monotonic() + seconds
    run.advance(FOR_EVER, FOR_EVER, lambda step: late(until))


def bound(run):
    return CONFIG.warm_up + run.updates + CONFIG.slack(window=1)


def test_a_learner_that_stands_still_makes_the_workers_wait_and_nothing_piles_up(run):
    run.advance(run.steps + 50, FOR_EVER)
    os.kill(run.pids["the learner"], signal.SIGSTOP)
    try:
        go_on_for(run, 0.5)  # what it had answered before has come by then
        until = time.monotonic() + 60.0
        run.advance(FOR_EVER, FOR_EVER, lambda step: step > bound(run) - CONFIG.steps_per_call or late(until))
        steps, updates = run.steps, run.updates
        assert bound(run) - CONFIG.steps_per_call < steps <= bound(run)
        go_on_for(run, 0.5)
        assert (run.steps, run.updates) == (steps, updates)
        assert run.report()["distributed/steps_under_way"] == 0
    finally:
        os.kill(run.pids["the learner"], signal.SIGCONT)
    run.advance(steps + 100, FOR_EVER)
    assert run.updates > updates


def test_a_worker_that_is_stuck_is_named_and_keeps_no_state_from_being_saved(run, monkeypatch, caplog):
    monkeypatch.setattr(crew, "_SILENT", 0.5)
    run.advance(run.steps + 50, FOR_EVER)
    pid = run.pids["rollout worker 1"]
    os.kill(pid, signal.SIGSTOP)
    try:
        until = time.monotonic() + 60.0
        with caplog.at_level(logging.WARNING, "triax.distributed"):
            run.advance(FOR_EVER, FOR_EVER, lambda step: "has not answered" in caplog.text or late(until))
        assert f"rollout worker 1 (process {pid}) has not answered gather" in caplog.text
        state = run.state_dict()
        assert len(state["arrays"]["replay/errors"]) == state["scalars"]["steps"] == run.steps
        assert int(run.agent_state().updates) == state["scalars"]["updates"] == run.updates
    finally:
        os.kill(pid, signal.SIGCONT)
    steps = run.steps
    run.advance(steps + 100, FOR_EVER)
    assert len(stored(run)["replay/errors"]) == run.steps


def test_weights_are_put_into_the_object_store_once_for_each_version_and_workers_take_turns(run, monkeypatch):
    puts, gathers, put, call = [], [], ray.put, run._crew.call

    def counted(member, method, *arguments, **options):
        gathers.extend([member.name] if method == "gather" else [])
        return call(member, method, *arguments, **options)

    monkeypatch.setattr(ray, "put", lambda value: puts.append(1) or put(value))
    monkeypatch.setattr(run._crew, "call", counted)
    versions = run.report()["distributed/versions"]
    run.advance(run.steps + 320, FOR_EVER)
    assert len(puts) == run.report()["distributed/versions"] - versions
    assert len(gathers) > 1.5 * len(puts) > 0
    shares = [gathers.count(f"rollout worker {i}") / len(gathers) for i in range(2)]
    assert min(shares) > 0.2  # 0.5 on an idle machine; a busy one delays some worker, but starves none


def test_a_run_ends_with_the_steps_it_was_given_and_all_their_updates(run):
    total = run.steps + 203
    run.advance(total, total)
    assert run.steps == total
    due = total - CONFIG.warm_up
    assert due - CONFIG.updates_per_call < run.updates <= due


@pytest.mark.slow
def test_a_state_goes_on_in_another_run_and_no_process_is_left_of_one_that_ended(run):
    state = run.state_dict()
    with ApeX(CARTPOLE, dataclasses.replace(CONFIG, num_workers=1), seed=1) as resumed:
        resumed.start(state)
        pids = list(resumed.pids.values())
        assert (resumed.steps, resumed.updates) == (run.steps, run.updates)
        kill(resumed, "the replay")
        found = stored(resumed)
        for name, leaf in stored(run).items():
            np.testing.assert_allclose(leaf, found[name], rtol=1e-6, err_msg=name)
        resumed.advance(resumed.steps + 20, FOR_EVER)
        pids += list(resumed.pids.values())
    assert all_gone(pids)


@pytest.mark.usefixtures("cluster")
def test_an_error_in_an_environment_says_where_and_leaves_no_process():
    run = ApeX(FAILING, ApeXConfig(num_workers=1))
    with pytest.raises(DistributedError, match="rollout worker 0 failed in gather: OSError: the robot fell over"), run:
        run.start()
        pids = list(run.pids.values())
        run.advance(1_000, 1_000)
    assert len(pids) == 3
    assert all_gone(pids)


def test_a_recipe_that_no_other_process_can_follow_is_refused_before_anything_is_started():
    with pytest.raises(TypeError, match="make_env"):
        Recipe("CartPole-v1", make_small)
    with pytest.raises(TypeError, match=r"make_env must return a gymnasium\.Env; got 3"):
        ApeX(Recipe(lambda: 3, make_small))
    held = CARTPOLE.make_env()
    held.lock = threading.Lock()
    run = ApeX(Recipe(lambda: held, make_small))
    with pytest.raises(TypeError, match=r"Recipe cannot be sent to other processes: .*lock.* must make what"), run:
        run.start()
    with pytest.raises(RuntimeError, match=r"no process runs. Call start\(\) first"):
        run.advance(1, 1)


@pytest.mark.usefixtures("cluster")
def test_it_starts_once(run):
    with pytest.raises(RuntimeError, match="started before"):
        run.start()


def test_agents_that_ape_x_cannot_train_are_refused_before_anything_is_started():
    uniform = Recipe(CARTPOLE.make_env, lambda env: make_small(env, QLearningConfig(hidden=(8,))))
    with pytest.raises(ValueError, match=r"Try alpha=0\.6"):
        ApeX(uniform)
