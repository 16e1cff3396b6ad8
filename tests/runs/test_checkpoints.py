import json
import logging
import math
import os
import pickle
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from triax.runs import (
    CorruptCheckpointError,
    checkpoints,
    load_arrays,
    load_checkpoint,
    load_metadata,
    save_checkpoint,
)


class State(NamedTuple):
    step: int
    params: dict
    rest: tuple


def state(value, width=4):
    return State(
        step=int(value),
        params={"dense/~/a": {"kernel": jnp.full((3, width), value), "bias": jnp.zeros(width, jnp.bfloat16)}},
        rest=(np.float32(value), np.full(2, value, np.float64), value / 3, value > 1, None, jnp.uint8(value)),
    )


def assert_same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert type(a) is type(b)
        if isinstance(b, jax.Array | np.ndarray | np.generic):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if hasattr(b, "dtype") and jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_every_kind_of_leaf_comes_back_as_it_was(tmp_path):
    save_checkpoint(tmp_path / "c", state(2.0))
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(2.0))


def test_arrays_are_read_without_knowing_their_shapes(tmp_path):
    arrays = {"rows/S": np.arange(6.0).reshape(3, 2), "key": jax.random.key(7), "none": np.zeros((0, 4), np.int8)}
    save_checkpoint(tmp_path / "c", arrays, {"step": 3})
    found, metadata = load_arrays(tmp_path / "c")
    assert set(found) == set(arrays)
    np.testing.assert_array_equal(found["rows/S"], arrays["rows/S"])
    np.testing.assert_array_equal(found["key"], jax.random.key_data(arrays["key"]))
    assert (found["none"].shape, found["none"].dtype) == ((0, 4), np.int8)
    assert metadata == {"step": 3}


def test_metadata_comes_back(tmp_path):
    metadata = {"name": "a", "best": -math.inf, "steps": [1, 2], "nested": {"seed": None, "big": 2**127}}
    save_checkpoint(tmp_path / "c", {}, metadata | {"mean": jnp.float32(0.5)})
    assert load_checkpoint(tmp_path / "c", like={}).metadata == metadata | {"mean": 0.5}
    assert load_metadata(tmp_path / "c") == metadata | {"mean": 0.5}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_survive(tmp_path, impl):  # pitfall 33
    def keys(seed):
        single = jax.random.key(seed, impl=impl)
        return {
            "single": single,
            "several": jax.random.split(single, (2, 3)),
            "raw": jax.random.PRNGKey(seed),
        }

    save_checkpoint(tmp_path / "c", keys(1))
    tree = load_checkpoint(tmp_path / "c", like=keys(2)).tree
    assert_same(tree, keys(1))
    np.testing.assert_array_equal(jax.random.normal(tree["single"]), jax.random.normal(keys(1)["single"]))


def test_keys_of_another_implementation_are_another_structure(tmp_path):
    save_checkpoint(tmp_path / "c", {"key": jax.random.key(0, impl="rbg")})
    with pytest.raises(ValueError, match=r"tree\['key'\]: expected key<fry>\[\], got key<rbg>\[\]"):
        load_checkpoint(tmp_path / "c", like={"key": jax.random.key(0)})


def test_optimizer_and_module_states_survive(tmp_path):  # pitfall 33
    class Network(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(3, 2, rngs=rngs)
            self.norm = nnx.BatchNorm(2, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def training_state(seed):
        params, variables = nnx.split(Network(nnx.Rngs(seed)), nnx.Param, ...)[1:]
        optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))
        gradient = jax.tree.map(lambda leaf: leaf + seed, params)
        return params, variables, optimizer.update(gradient, optimizer.init(params))[1]

    save_checkpoint(tmp_path / "c", training_state(1))
    assert_same(load_checkpoint(tmp_path / "c", like=training_state(5)).tree, training_state(1))


def test_empty_arrays_and_empty_trees_survive(tmp_path):
    for name, tree in {
        "a": {"none": np.zeros((0, 3), np.int16), "one": np.ones(1)},
        "b": {},
        "c": (None, ()),
    }.items():
        save_checkpoint(tmp_path / name, tree)
        assert_same(load_checkpoint(tmp_path / name, like=tree).tree, tree)


def test_structs_serve_as_the_structure(tmp_path):
    tree = {"a": jnp.arange(3), "key": jax.random.key(3)}
    save_checkpoint(tmp_path / "c", tree)
    assert_same(load_checkpoint(tmp_path / "c", like=jax.eval_shape(lambda: tree)).tree, tree)


def test_donated_arrays_serve_as_the_structure_and_loaded_ones_can_be_donated(tmp_path):
    tree = {"a": jnp.arange(3.0)}
    save_checkpoint(tmp_path / "c", tree)
    double = jax.jit(lambda tree: jax.tree.map(lambda leaf: 2 * leaf, tree), donate_argnums=0)
    double(tree)
    assert tree["a"].is_deleted()
    loaded = load_checkpoint(tmp_path / "c", like=tree).tree
    np.testing.assert_array_equal(double(loaded)["a"], [0.0, 2.0, 4.0])
    assert loaded["a"].is_deleted()


def test_loaded_numpy_arrays_can_be_written(tmp_path):
    save_checkpoint(tmp_path / "c", np.zeros(3))
    tree = load_checkpoint(tmp_path / "c", like=np.zeros(3)).tree
    tree[0] = 1.0
    assert tree.sum() == 1.0


def test_another_architecture_is_refused_leaf_by_leaf(tmp_path):
    save_checkpoint(tmp_path / "c", {"a": {"w": jnp.zeros((3, 4)), "b": jnp.zeros(4)}, "n": 1})
    other = {"a": {"w": jnp.zeros((3, 5)), "b": jnp.zeros(4, jnp.int32)}, "m": np.zeros(2)}
    with pytest.raises(ValueError) as error:
        load_checkpoint(tmp_path / "c", like=other)
    lines = str(error.value).splitlines()
    assert str(tmp_path / "c") in lines[0]
    assert set(lines[1:]) == {
        "tree['a/w']: expected float32[3,5], got float32[3,4]",
        "tree['a/b']: expected int32[4], got float32[4]",
        "tree['m']: missing, expected float64[2]",
        "tree['n']: not expected, got int64[]",
    }


@pytest.mark.parametrize("leaf", ["text", object(), np.array(["a"]), 2**100])
def test_leaves_that_are_no_numbers_are_refused_by_name_and_leave_nothing(tmp_path, leaf):
    with pytest.raises(TypeError, match=r"the leaf 'a/1' must be an array, a PRNG key or a number, got"):
        save_checkpoint(tmp_path / "c", {"a": [1, leaf]})
    with pytest.raises(TypeError, match=r"metadata\['x'\]"):
        save_checkpoint(tmp_path / "c", {}, {"x": object()})
    assert list(tmp_path.iterdir()) == []


def test_leaves_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two leaves have the name 'a/b'"):
        save_checkpoint(tmp_path / "c", {"a": {"b": 1}, "a/b": 2})


def test_what_is_there_is_replaced_only_when_told(tmp_path):
    path = tmp_path / "new" / "c"
    save_checkpoint(path, state(1.0))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save_checkpoint(path, state(2.0))
    assert_same(load_checkpoint(path, like=state(0.0)).tree, state(1.0))
    save_checkpoint(path, state(3.0), overwrite=True)
    assert_same(load_checkpoint(path, like=state(0.0)).tree, state(3.0))
    assert [entry.name for entry in path.parent.iterdir()] == ["c"]


@pytest.mark.parametrize("function", ["write_arrays", "write_json"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_what_was_there(tmp_path, monkeypatch, function, error):
    save_checkpoint(tmp_path / "c", state(1.0))

    def fail(*arguments):
        raise error

    monkeypatch.setattr(checkpoints, function, fail)
    with pytest.raises(type(error)):
        save_checkpoint(tmp_path / "c", state(2.0), overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(1.0))


def test_a_failed_rename_leaves_what_was_there(tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "c", state(1.0))
    rename = os.rename

    def fail_into_place(source, target):
        if str(source).endswith(".tmp") and target == tmp_path / "c":
            raise OSError("failed")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_into_place)
    with pytest.raises(OSError, match="failed"):
        save_checkpoint(tmp_path / "c", state(2.0), overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(1.0))


def test_a_checkpoint_whose_replacement_was_killed_is_still_found(tmp_path):
    save_checkpoint(tmp_path / "c", state(1.0))
    (tmp_path / "c").rename(tmp_path / ".c.old")
    (tmp_path / ".c.tmp").mkdir()
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(1.0))
    save_checkpoint(tmp_path / "c", state(2.0))
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(2.0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere: there is no checkpoint"):
        load_checkpoint(tmp_path / "nowhere", like={})


def empty(file):
    file.write_bytes(b"")


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [empty, cut, flip, lambda file: file.unlink()])
def test_a_damaged_file_is_an_error_that_names_the_checkpoint(tmp_path, damage):
    tree = {"a": jnp.arange(100.0), "b": np.random.default_rng(0).normal(size=1000)}
    save_checkpoint(tmp_path / "c", tree)
    files = [file for file in (tmp_path / "c").rglob("*") if file.is_file()]
    damage(max(files, key=lambda file: file.stat().st_size))  # the one with the values
    with pytest.raises(CorruptCheckpointError, match=str(tmp_path / "c")):
        load_checkpoint(tmp_path / "c", like=tree)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 9, "metadata": {}, "leaves": {}}',
        '{"schema": 1, "metadata": {}}',
        '{"schema": 1, "metadata": {}, "leaves": {"a": {}}}',
        '{"schema": 1, "metadata": {}, "leaves": {"a": {"shape": [3], "dtype": "nothing"}}}',
    ],
)
def test_a_damaged_description_is_an_error_that_names_the_checkpoint(tmp_path, text):
    save_checkpoint(tmp_path / "c", {"a": np.zeros(3)})
    (tmp_path / "c" / "checkpoint.json").write_text(text)
    with pytest.raises(CorruptCheckpointError, match=str(tmp_path / "c")):
        load_checkpoint(tmp_path / "c", like={"a": np.zeros(3)})


def test_arrays_of_another_checkpoint_are_noticed(tmp_path):
    save_checkpoint(tmp_path / "c", {"a": np.zeros(3)})
    description = json.loads((tmp_path / "c" / "checkpoint.json").read_text())
    description["leaves"]["a"]["shape"] = [4]
    (tmp_path / "c" / "checkpoint.json").write_text(json.dumps(description))
    with pytest.raises(CorruptCheckpointError, match=str(tmp_path / "c")):
        load_checkpoint(tmp_path / "c", like={"a": np.zeros(4)})


def test_nothing_is_pickled(tmp_path, monkeypatch):  # F79
    def fail(*arguments, **options):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    save_checkpoint(tmp_path / "c", state(1.0), {"a": 1})
    assert_same(load_checkpoint(tmp_path / "c", like=state(0.0)).tree, state(1.0))


def test_logging_is_left_as_it_was_and_nothing_is_logged(tmp_path, caplog):  # F78
    root, absl = logging.getLogger(), logging.getLogger("absl")
    before = [(logger.level, list(logger.handlers)) for logger in (root, absl)]
    with caplog.at_level(logging.DEBUG):
        save_checkpoint(tmp_path / "c", state(1.0))
        load_checkpoint(tmp_path / "c", like=state(0.0))
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []
    assert [(logger.level, list(logger.handlers)) for logger in (root, absl)] == before


def test_saving_a_small_tree_is_quick(tmp_path):
    save_checkpoint(tmp_path / "warm", state(1.0))
    began = time.perf_counter()
    save_checkpoint(tmp_path / "c", state(1.0))
    assert time.perf_counter() - began < 1.0


def test_a_part_is_loaded_alone_and_described_alone(tmp_path):
    tree = {"agent": {"params": {"w": jnp.arange(3.0)}, "params_of_target": jnp.ones(2)}, "buffer": np.zeros(5)}
    save_checkpoint(tmp_path / "c", tree, {"step": 3})
    weights, metadata = load_checkpoint(tmp_path / "c", like={"w": jnp.zeros(3)}, part="agent/params")
    np.testing.assert_array_equal(weights["w"], [0.0, 1.0, 2.0])
    assert metadata == {"step": 3}
    assert load_checkpoint(tmp_path / "c", like=np.ones(5), part="buffer").tree.tolist() == [0.0] * 5
    with pytest.raises(ValueError, match=r"agent/params\['w'\]: expected float32\[4\], got float32\[3\]"):
        load_checkpoint(tmp_path / "c", like={"w": jnp.zeros(4)}, part="agent/params")
    with pytest.raises(ValueError, match=r"nothing\['w'\]: missing"):
        load_checkpoint(tmp_path / "c", like={"w": jnp.zeros(3)}, part="nothing")
