import jax
import jax.numpy as jnp
import numpy as np
import pytest

from triax.core.leaves import named_leaves, restore_tree, to_numpy


def tree(value):
    return {"a": {"w": jnp.full((2, 3), value)}, "n": int(value), "key": jax.random.key(int(value)), "none": None}


def test_a_tree_comes_back_from_its_values_by_path():
    values = to_numpy(named_leaves(tree(2.0)))
    assert set(values) == {"a/w", "n", "key"}
    found = restore_tree(tree(0.0), values)
    np.testing.assert_array_equal(found["a"]["w"], np.full((2, 3), 2.0))
    assert found["n"] == 2
    assert found["none"] is None
    assert jax.random.uniform(found["key"]) == jax.random.uniform(jax.random.key(2))


def test_values_that_do_not_fit_are_refused_by_leaf():
    values = to_numpy(named_leaves(tree(2.0)))
    values["a/w"] = np.zeros((2, 4), np.float32)
    with pytest.raises(ValueError, match=r"agent\['a/w'\]: expected float32\[2,3\], got float32\[2,4\]"):
        restore_tree(tree(0.0), values, "agent")
    del values["n"]
    with pytest.raises(ValueError, match=r"agent\['n'\]: missing"):
        restore_tree(tree(0.0), values, "agent")
