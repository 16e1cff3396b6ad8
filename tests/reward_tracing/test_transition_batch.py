import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.reward_tracing import TransitionBatch, chunks_pow2

NAMES = ["S", "A", "logP", "Rn", "In", "S_next", "A_next", "logP_next", "W", "idx", "extra_info"]


def make_batch(size=4, **changes):
    rng = np.random.default_rng(0)
    fields = {
        "S": {
            "pos": rng.normal(size=(size, 2)),
            "image": rng.integers(256, size=(size, 3, 3)).astype(np.uint8),
        },
        "A": rng.integers(5, size=size),
        "logP": rng.normal(size=size),
        "Rn": rng.normal(size=size),
        "In": np.full(size, 0.9),
        "S_next": {"pos": rng.normal(size=(size, 2)), "image": np.zeros((size, 3, 3), np.uint8)},
        "A_next": rng.integers(5, size=size),
        "logP_next": rng.normal(size=size),
    }
    return TransitionBatch(**(fields | changes))


def singles():
    return {"s": np.zeros(3, np.float32), "a": 1, "logp": -0.5, "r": 2.0, "done": False, "gamma": 0.9}


def test_iterates_and_indexes_in_the_order_of_the_signature():
    batch = make_batch(extra_info="x")
    values = [getattr(batch, name) for name in NAMES]
    assert all(a is b for a, b in zip(batch, values, strict=True))
    assert all(batch[k] is values[k] for k in range(11))
    assert batch[-1] == "x"
    assert [name for name, _ in batch.items()] == NAMES
    assert list(batch._asdict()) == NAMES
    assert batch._asdict()["Rn"] is batch.Rn


def test_fields_are_assignable_and_there_are_no_others():
    batch = make_batch()
    batch.W = np.full(4, 2.0, np.float32)
    assert batch.W[0] == 2
    with pytest.raises(AttributeError):
        batch.weights = 1


def test_floats_are_float32_and_observations_keep_their_dtypes():  # F6
    batch = make_batch(W=[1, 2, 3, 4])
    for name in ("logP", "Rn", "In", "logP_next", "W"):
        assert getattr(batch, name).dtype == np.float32, name
    assert batch.S["pos"].dtype == np.float64
    assert batch.S["image"].dtype == np.uint8
    assert batch.A.dtype == np.int64


def test_weights_are_one_and_identifiers_count_by_default():
    batch = make_batch()
    np.testing.assert_array_equal(batch.W, np.ones(4))
    np.testing.assert_array_equal(batch.idx, [0, 1, 2, 3])
    assert batch.batch_size == 4


def test_is_built_from_device_arrays_and_traced_ones():
    @jax.jit
    def double(batch):
        return TransitionBatch(batch.S, batch.A, batch.logP, 2 * batch.Rn, batch.In, batch.S_next)

    batch = make_batch()
    doubled = double(batch)
    assert isinstance(doubled.Rn, jax.Array)
    np.testing.assert_allclose(doubled.Rn, 2 * batch.Rn)
    assert TransitionBatch(*jax.tree.map(jnp.asarray, batch)) == batch


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"Rn": 1.0}, ValueError, "Rn must have a batch axis"),
        ({"Rn": np.array(["a"] * 4)}, TypeError, "Rn must hold numbers"),
        ({"logP": np.zeros(3)}, ValueError, "logP must have the length of Rn, 4; got 3"),
        ({"logP_next": np.zeros(5)}, ValueError, "logP_next must have the length of Rn, 4; got 5"),
        ({"W": np.zeros(1)}, ValueError, "W must have the length of Rn"),
        ({"idx": np.zeros(4)}, TypeError, "idx must hold ints"),
        (
            {"S": {"pos": np.zeros((3, 2))}},
            ValueError,
            r"S\.pos must .* batch, 4, on axis 0; got shape \(3, 2\)",
        ),
        ({"A": np.int64(3)}, ValueError, r"A must .* got shape \(\)"),
    ],
)
def test_refuses_a_field_that_does_not_fit_and_names_it(changes, error, message):
    with pytest.raises(error, match=message):
        make_batch(**changes)


def test_from_single_is_a_batch_of_one_of_numpy_arrays():
    batch = TransitionBatch.from_single(**singles(), s_next=np.ones(3, np.float32), a_next=2, w=3, idx=7)
    assert all(isinstance(leaf, np.ndarray) and leaf.shape[0] == 1 for leaf in jax.tree.leaves(batch))
    assert batch.In[0] == np.float32(0.9)
    assert (batch.Rn[0], batch.W[0], batch.idx[0], batch.A_next[0]) == (2, 3, 7, 2)
    assert batch.logP_next is None
    np.testing.assert_array_equal(batch.S_next, np.ones((1, 3)))


def test_from_single_does_not_bootstrap_when_done():
    batch = TransitionBatch.from_single(**(singles() | {"done": True}))
    assert batch.In[0] == 0
    assert batch.S_next is None


def test_from_single_copies_what_it_is_given():
    s = np.zeros(3)
    batch = TransitionBatch.from_single(**(singles() | {"s": s}))
    s[:] = 5
    np.testing.assert_array_equal(batch.S, np.zeros((1, 3)))
    batch.S[0] = 1


@pytest.mark.parametrize("logp", [7.0, 0.0, -100.0, np.float32(3)])
def test_from_single_takes_any_finite_log_propensity(logp):  # F4
    assert TransitionBatch.from_single(**(singles() | {"logp": logp, "logp_next": logp})).logP[0] == logp


@pytest.mark.parametrize("number", [np.float32, np.array, jnp.asarray, lambda x: np.array([x])])
def test_from_single_takes_numbers_of_any_kind(number):  # F5
    given = {"r": number(2.0), "logp": number(-0.5), "w": number(2.0), "gamma": number(0.5)}
    batch = TransitionBatch.from_single(**(singles() | given))
    assert (batch.Rn[0], batch.logP[0], batch.W[0], batch.In[0]) == (2.0, -0.5, 2.0, 0.5)


@pytest.mark.parametrize("truth", [bool, np.bool_, np.array, jnp.asarray, int, np.float32])
def test_from_single_takes_truth_values_of_any_kind(truth):  # F5
    for done in (True, False):
        batch = TransitionBatch.from_single(**(singles() | {"done": truth(done)}))
        assert batch.In[0] == (0 if done else np.float32(0.9))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("r", "1", TypeError),
        ("r", np.zeros(2), TypeError),
        ("r", None, TypeError),
        ("r", np.nan, ValueError),
        ("logp", np.inf, ValueError),
        ("done", 2, TypeError),
        ("done", "no", TypeError),
        ("gamma", 1.5, TypeError),
        ("gamma", -0.1, TypeError),
        ("w", 0, TypeError),
        ("w", -1.0, TypeError),
        ("s", None, None),
    ],
)
def test_from_single_names_the_argument_that_it_refuses(name, value, error):
    if error is None:
        assert TransitionBatch.from_single(**(singles() | {name: value})).S is None
        return
    with pytest.raises(error, match=rf"\b{name}\b"):
        TransitionBatch.from_single(**(singles() | {name: value}))


def test_equality_wants_the_same_structure():  # F8
    batch = make_batch()
    assert batch == make_batch()
    assert batch != make_batch(A_next=None)
    assert make_batch(A_next=None) != batch
    assert batch != make_batch(extra_info=np.zeros(4))
    assert batch != make_batch(S={"pos": batch.S["pos"]})
    assert batch != make_batch(A=batch.A[:, None])


def test_equality_wants_close_values_and_equal_integers():
    batch = make_batch()
    assert batch == make_batch(Rn=batch.Rn * (1 + 1e-7))
    assert batch != make_batch(Rn=batch.Rn + 1e-2)
    assert make_batch(idx=np.arange(4) + 10**8) != make_batch(idx=np.arange(4) + 10**8 + 1)
    assert make_batch(A_next=None) == jax.tree.map(jnp.asarray, make_batch(A_next=None))


def test_nan_equals_nan():
    nans = np.full(4, np.nan)
    assert make_batch(logP_next=nans) == make_batch(logP_next=nans)
    assert make_batch(logP_next=nans) != make_batch()


def test_never_equals_another_class():
    class EqualsAll:
        def __eq__(self, other):
            return True

    batch = make_batch()
    assert batch != tuple(batch)
    assert not batch.__eq__(EqualsAll())


def test_to_singles_goes_from_first_to_last():  # F7
    batch = make_batch()
    parts = list(batch.to_singles())
    assert [part.idx[0] for part in parts] == [0, 1, 2, 3]
    assert all(part.batch_size == 1 for part in parts)
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    assert joined == batch


@pytest.mark.parametrize("size", [1, 3])
def test_singles_are_independent_of_their_batch(size):  # F7
    batch = make_batch(size)
    for single in batch.to_singles():
        single.Rn[:] = 100
        single.S["pos"][:] = 100
        single.W = None
    assert batch == make_batch(size)


def test_unflatten_restores_exactly_what_it_got():  # F11
    batch = make_batch(W=None)
    nothing = jax.tree.map(lambda leaf: None, batch)
    assert list(nothing)[2:5] == [None, None, None]
    assert nothing.W is None
    assert nothing.idx is None
    leaves, treedef = jax.tree.flatten(batch)
    objects = [object() for _ in leaves]
    assert all(a is b for a, b in zip(objects, jax.tree.leaves(treedef.unflatten(objects)), strict=True))
    without = batch.copy()
    without.W, without.idx = None, None
    again = jax.tree.map(lambda leaf: leaf, without)
    assert again.W is None
    assert again.idx is None


def test_is_a_pytree_with_named_leaves():
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(make_batch())]
    assert paths[:3] == [".S['image']", ".S['pos']", ".A"]
    assert jax.tree.map(lambda leaf: leaf[1:3], make_batch()).batch_size == 2


def test_a_shallow_copy_shares_its_values_and_a_deep_one_does_not():
    batch = make_batch()
    shallow, deep = batch.copy(), batch.copy(deep=True)
    shallow.A = None
    assert batch.A is not None
    assert shallow.Rn is batch.Rn
    deep.Rn[:] = 0
    deep.S["pos"][:] = 0
    assert batch == make_batch()


def test_survives_copying_and_pickling():
    batch = make_batch(extra_info={"x": np.arange(4)})
    assert copy.copy(batch) == batch
    assert pickle.loads(pickle.dumps(batch)) == batch


def test_prints_names_shapes_and_dtypes():
    text = repr(make_batch())
    assert text.startswith("TransitionBatch(")
    assert "array(shape=(4, 3, 3), dtype=uint8" in text
    assert all(f"{name}=" in text for name in NAMES)


@pytest.mark.parametrize(("size", "sizes"), [(11, [8, 2, 1]), (8, [8]), (1, [1])])
def test_chunks_have_distinct_powers_of_two(size, sizes):
    batch = make_batch(size, extra_info=(np.arange(size),))
    chunks = list(chunks_pow2(batch))
    assert [chunk.batch_size for chunk in chunks] == sizes
    assert jax.tree.map(lambda *leaves: np.concatenate(leaves), *chunks) == batch
