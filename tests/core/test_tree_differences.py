from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.tree_differences import describe_difference, describe_structure, named_leaves

PARAMS = {"dense": {"kernel": jnp.zeros((3, 4)), "bias": jnp.zeros(4)}, "scale": (jnp.zeros(()),)}


def test_leaves_are_named_as_one_would_index_them():
    names = named_leaves(PARAMS, "params")
    assert list(names) == ["params['dense']['bias']", "params['dense']['kernel']", "params['scale'][0]"]
    for name, leaf in names.items():
        assert eval(name, {"params": PARAMS}) is leaf


@pytest.mark.parametrize(
    "found",
    [
        PARAMS,
        jax.tree.map(np.asarray, PARAMS),
        jax.eval_shape(lambda: PARAMS),
        jax.tree.map(lambda x: x + 1, PARAMS),
    ],
)
def test_alike_trees_have_no_difference(found):
    assert describe_difference(PARAMS, found) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dense": {"kernel": jnp.zeros((3, 4))}}, "params['dense']['bias']: missing, expected float32[4]"),
        ({"extra": jnp.zeros(1)}, "params['extra']: not expected, got float32[1]"),
        (
            {"dense": {"kernel": jnp.zeros((4, 3)), "bias": jnp.zeros(4)}},
            "params['dense']['kernel']: expected float32[3,4], got float32[4,3]",
        ),
        ({"scale": (jnp.zeros((), int),)}, "params['scale'][0]: expected float32[], got int32[]"),
        ({"scale": [jnp.zeros(())]}, "expected the structure"),
        ({"scale": None}, "params['scale'][0]: missing"),
    ],
)
def test_says_which_leaf_differs_and_how(change, says):  # F47
    text = describe_difference(PARAMS, {**PARAMS, **change})
    assert text is not None and says in text
    assert "kernel" in says or "kernel" not in text or "structure" in says


def test_many_differences_are_counted_rather_than_listed():
    text = describe_difference({}, {f"k{i}": 0 for i in range(50)}, "state")
    assert text is not None and "and 42 more" in text and len(text.splitlines()) == 10


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ((), "()"),
        (None, "None"),
        (jnp.zeros(3), "array"),
        ((1.0,), "(array,)"),
        ([1, (2, ())], "[array, (array, ())]"),
        ({"a": Pair(1, {"b": 2})}, "{'a': Pair(left=array, right={'b': array})}"),
    ],
)
def test_a_structure_is_written_as_one_would_write_it(tree, text):
    assert describe_structure(tree) == describe_structure(jax.tree.structure(tree)) == text
