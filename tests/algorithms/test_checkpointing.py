import json
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from algorithms.killable_training import start, train, train_step
from triax.algorithms import CheckpointCallback, load_checkpoint, make_checkpoint_fn
from triax.core.modules import SplitModule
from triax.networks import make_mlp_actor_critic
from triax.runs import CheckpointStore

SCRIPT = Path(__file__).with_name("killable_training.py")


@dataclass(frozen=True)
class Config:
    seed: int = 3
    hidden: tuple[int, ...] = (4, 5)


def assert_identical(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.fixture(scope="module")
def unbroken():
    return train(lambda state, step: None, 14)


def killed_in_a_step(directory):
    """A training that is killed from outside, some time after its second checkpoint."""
    command = [sys.executable, str(SCRIPT), str(directory), "1000000", "in-step"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    return process.wait()


def killed_in_a_checkpoint(directory, where):
    command = [sys.executable, str(SCRIPT), str(directory), "14", where]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


@pytest.mark.slow
def test_a_training_killed_in_a_step_goes_on_bit_for_bit(tmp_path):
    assert killed_in_a_step(tmp_path) == -signal.SIGKILL
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint["step"] >= 6
    total = checkpoint["step"] + 4
    resumed = train(make_checkpoint_fn(tmp_path, keep=2), total, checkpoint["training_state"])
    assert_identical(resumed, train(lambda state, step: None, total))


@pytest.mark.parametrize("where", ["write_arrays", "write_json", "rename"])
def test_a_training_killed_in_a_checkpoint_goes_on_bit_for_bit(tmp_path, unbroken, where):  # F50
    assert killed_in_a_checkpoint(tmp_path, where) == -signal.SIGKILL
    assert [entry.name for entry in tmp_path.glob(".step*")] == [".step_0000000006.tmp"]
    checkpoint = load_checkpoint(tmp_path)  # the last that is whole
    assert checkpoint["step"] == 3
    resumed = train(make_checkpoint_fn(tmp_path, keep=2), 14, checkpoint["training_state"])
    assert_identical(resumed, unbroken)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step_0000000009", "step_0000000012"]


def test_the_callback_is_one_and_takes_its_arguments_by_name(tmp_path):
    save = make_checkpoint_fn(tmp_path / "new" / "folder")
    assert isinstance(save, CheckpointCallback)
    save(training_state=start(), step=0)
    assert_identical(load_checkpoint(tmp_path / "new" / "folder")["training_state"].restore(start(1)), start())


def test_the_last_checkpoint_is_found_by_its_directory(tmp_path):  # F50
    save = make_checkpoint_fn(tmp_path)
    states = [start()]
    for step in range(3):
        save(states[-1], 10 * step)
        states.append(train_step(states[-1]))
    assert load_checkpoint(tmp_path)["step"] == 20
    checkpoint = load_checkpoint(tmp_path / "step_0000000010")
    assert checkpoint["step"] == checkpoint["training_state"].step == 10
    assert_identical(checkpoint["training_state"].restore(start(3)), states[1])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_checkpoint(tmp_path / "nowhere")


def test_all_are_kept_unless_told(tmp_path):  # F50
    for keep, expected in ((None, [0, 1, 2, 3]), (2, [2, 3])):
        save = make_checkpoint_fn(tmp_path / str(keep), keep=keep)
        for step in range(4):
            save({"a": np.full(2, step)}, step)
        assert CheckpointStore(tmp_path / str(keep)).steps() == expected


def test_what_was_just_loaded_may_be_saved_again_and_is_left_as_it_is(tmp_path):  # F49
    make_checkpoint_fn(tmp_path)(start(), 5)
    content = tmp_path / "step_0000000005" / "checkpoint.json"
    written = content.stat().st_mtime_ns
    make_checkpoint_fn(tmp_path)(load_checkpoint(tmp_path)["training_state"].restore(start(1)), 5)
    assert content.stat().st_mtime_ns == written


@pytest.mark.parametrize("step", [3, 5, 8])
def test_another_training_does_not_replace_checkpoints_unless_told(tmp_path, step):  # F49
    save = make_checkpoint_fn(tmp_path)
    save(start(), 5)
    save(start(1), 8)
    with pytest.raises(FileExistsError, match=rf"steps \[.*8\] already.*by step {step}.*overwrite=True"):
        make_checkpoint_fn(tmp_path)(start(2), step)
    assert CheckpointStore(tmp_path).steps() == [5, 8]
    make_checkpoint_fn(tmp_path, overwrite=True)(start(2), step)
    assert CheckpointStore(tmp_path).steps() == sorted({5, step} if step >= 5 else {step})
    assert_identical(load_checkpoint(tmp_path)["training_state"].restore(start()), start(2))


def test_another_architecture_is_told_leaf_by_leaf(tmp_path):
    make_checkpoint_fn(tmp_path)(start(width=4), 0)
    with pytest.raises(ValueError) as error:
        load_checkpoint(tmp_path)["training_state"].restore(start(width=5))
    lines = str(error.value).splitlines()
    assert "tree['params/w']: expected float32[5,5], got float32[4,4]" in lines
    assert "tree['moments/0/mu/b']: expected bfloat16[5], got bfloat16[4]" in lines
    assert not any("key" in line for line in lines)


def test_a_config_comes_back_as_what_it_was(tmp_path):
    make_checkpoint_fn(tmp_path / "a", Config(seed=8))({"x": 1}, 0)
    assert load_checkpoint(tmp_path / "a", config_class=Config)["config"] == Config(seed=8)
    assert load_checkpoint(tmp_path / "a")["config"] == {"class": "Config", "seed": 8, "hidden": [4, 5]}
    make_checkpoint_fn(tmp_path / "b")({"x": 1}, 0)
    assert load_checkpoint(tmp_path / "b")["config"] is None
    with pytest.raises(TypeError, match="dataclass"):
        make_checkpoint_fn(tmp_path / "c", {"seed": 8})


def test_nothing_is_pickled(tmp_path, monkeypatch):  # F48
    def fail(*arguments, **options):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    make_checkpoint_fn(tmp_path, Config())(start(), 0)
    assert_identical(load_checkpoint(tmp_path)["training_state"].restore(start(1)), start())
    assert json.loads((tmp_path / "step_0000000000" / "checkpoint.json").read_text())["metadata"]["step"] == 0


def networks(seed, hidden=4):
    net = make_mlp_actor_critic(3, 2, [hidden], [4], nnx.Rngs(seed))
    x = jax.random.normal(jax.random.key(seed), (2, 3, 3))
    net.update_statistics(net.unroll(net.initialize_state(3), x, jnp.zeros((2, 3), bool)).rollout_extras)
    return net


def outputs(net):
    net.eval()
    x = jnp.arange(6.0).reshape(2, 3)
    return net(net.initialize_state(2), x).output


def saved_networks(directory, net):
    _, params, variables = SplitModule.of(net)
    make_checkpoint_fn(directory)({"networks": {"params": params, "variables": variables}, "n": 3}, 0)


def test_networks_are_overwritten_in_place_statistics_included(tmp_path):
    saved_networks(tmp_path, networks(0))
    other = networks(1)
    load_checkpoint(tmp_path, other)
    assert_identical(outputs(other), outputs(networks(0)))


def test_networks_of_another_architecture_are_refused_and_left_as_they_were(tmp_path):
    saved_networks(tmp_path, networks(0))
    other = networks(1, hidden=6)
    with pytest.raises(ValueError, match=r"networks\['params/.*kernel'\]: expected float32\[3,6\], got float32\[3,4\]"):
        load_checkpoint(tmp_path, other)
    assert_identical(outputs(other), outputs(networks(1, hidden=6)))
