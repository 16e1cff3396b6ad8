"""Several devices learn what one learns; each keeps its environments, and they share gradients and statistics."""

import functools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from triax.core.sharding import mesh_of

TESTS = Path(__file__).parents[1]


def environment_of(devices):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    return {**os.environ, "PYTHONPATH": str(TESTS), "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


@functools.lru_cache
def found(*parts):
    """What tests/loops/four_devices.py says of these parts, in a process of its own, where devices are decided."""
    command = [sys.executable, str(TESTS / "loops" / "four_devices.py"), *parts]
    ended = subprocess.run(command, env=environment_of(4), capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def quick():
    return found("ppo", "prioritized", "refused")


def assert_close(distance, atol):
    assert distance["same"] and distance["floats"] <= atol


def test_ppo_on_four_devices_is_ppo_on_one_and_its_statistics_too(quick):
    """Shuffled minibatches, a normalizer, episodes that end and are cut."""
    ppo = quick["ppo"]
    assert_close(ppo["agent"], 1e-5)
    assert_close(ppo["environments"], 1e-6)
    assert_close(ppo["metrics"], 1e-5)
    assert ppo["seen"] == 3 * 8 * 6


def test_the_state_is_split_by_environments_donated_and_compiled_for_once(quick):
    ppo = quick["ppo"]
    assert ppo["observations"] == ppo["keys"] == [["environments"], 4]
    assert all(place == [[], 4] for place in ppo["weights"])
    assert ppo["compilations"] == 0 and ppo["donated"]


def test_devices_exchange_nothing_of_a_rollouts_steps_and_share_gradients_in_one_go(quick):
    """On a CPU they ask whether any episode ended, since resets are computed only then."""
    exchanged = [(kind, place) for kind, places in quick["ppo"]["collectives"].items() for place in places]
    rollout = [place for _, place in exchanged if place.count("while/body") == 2]
    assert [place.split()[-1] for place in rollout] == ["pred[]"]
    gradients = [place for _, place in exchanged if "transpose(jvp())/dot_general" in place]
    assert len(gradients) == 1 and all(shape in gradients[0] for shape in ("f32[8,4]", "f32[2,8]", "f32[1,4]"))
    assert "all-to-all" not in quick["ppo"]["collectives"]


@pytest.mark.slow
def test_a_training_goes_on_with_another_number_of_devices_as_if_never_interrupted():
    """PPO with a memory and statistics: four devices, then two from a checkpoint; against one all the way."""
    resumed = found("resumed")["resumed"]
    assert_close(resumed["networks"], 1e-5)
    assert_close(resumed["evaluations"], 1e-6)
    assert resumed["counted"] == 4 * 8 * 6
    assert resumed["state"] == [["environments"], 2]
    assert resumed["on one device"] == resumed["network lies on"] == 1


def assert_alike_off_policy(off):
    assert_close(off["agent"], 1e-5)
    assert_close(off["environments"], 1e-6)
    assert_close(off["replay"], 1e-5)
    assert_close(off["metrics"], 1e-5)
    assert off["compilations"] == 0
    assert off["observations"] == [["environments"], 4]


def test_prioritized_n_step_q_learning_on_four_devices_is_that_on_one(quick):
    assert_alike_off_policy(quick["prioritized"])


def test_each_device_keeps_the_replay_of_its_environments_and_tells_the_drawn_rows_only(quick):
    off = quick["prioritized"]
    assert off["tables"] == [[["None", "environments"], 4]]
    assert off["table"] == [[32, 2, 12]]
    places = [place for kind in off["collectives"].values() for place in kind]
    assert not any("32," in place.split(" ", 1)[1] for place in places)
    assert any("shard_map/psum" in place and "[8," in place for place in places)


def test_what_cannot_be_split_evenly_is_refused_with_what_to_try(quick):
    refused = quick["refused"]
    assert (
        "num_envs must be a multiple of the number of devices, 4; got 6. Try num_envs=4 or 8" in refused["environments"]
    )
    assert "n_minibatches * devices = 8; got 4. Try 8 environments" in refused["minibatches"]
    assert "devices must be at most 4" in refused["too many"] and "Try devices=4" in refused["too many"]
    assert "must be on 2 devices; got one on 4. Try DeviceOnPolicy(...).place(state)" in refused["elsewhere"]
    assert "must be different ones, at least one; got []" in refused["none"]
    assert "batch_size must be a multiple of the number of devices, 4; got 6" in refused["batch"]


@pytest.mark.parametrize("devices", ["4", True])
def test_a_number_of_devices_that_is_none_is_refused(devices):
    with pytest.raises(TypeError, match=f"a loop: devices must be an int.*; got {devices!r}"):
        mesh_of("a loop", devices)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["sac", "recurrent"])
def test_so_it_is_with_sac_and_with_recurrent_replay(part):
    assert_alike_off_policy(found("sac", "recurrent")[part])


@pytest.mark.slow
def test_two_processes_of_two_devices_are_one_device():
    """As on two machines: each has half of the environments, and both have all that is learned."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    program = [sys.executable, str(TESTS / "loops" / "two_processes.py")]
    processes = [
        subprocess.Popen([*program, str(i), address], env=environment_of(2), stdout=subprocess.PIPE, text=True)
        for i in (0, 1)
    ]
    try:
        said = [process.communicate(timeout=600)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, output in zip(processes, said, strict=True):
        assert process.returncode == 0
        told = json.loads(output.splitlines()[-1])
        assert_close(told["agent"], 1e-5)
        assert told["environments here"] == [2, 2]
