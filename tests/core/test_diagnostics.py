import jax
import jax.numpy as jnp
import numpy as np
import optax

from triax.core.diagnostics import get_grads_diagnostics, get_magnitude_quantiles

GRADS = {"a": jnp.array([3.0, -4.0]), "b": (jnp.array([[0.5]]),)}


def test_largest_entry_and_norm_of_all_gradients():
    found = jax.jit(lambda g: get_grads_diagnostics(g, "Q/grads_"))(GRADS)
    assert set(found) == {"Q/grads_max", "Q/grads_norm"}
    assert found["Q/grads_max"] == 4.0
    np.testing.assert_allclose(found["Q/grads_norm"], optax.tree.norm(GRADS), rtol=1e-6)


def test_or_of_each_leaf():
    found = get_grads_diagnostics(GRADS, keep_tree_structure=True)
    assert found["a"] == {"max": 4.0, "norm": 5.0}
    assert found["b"][0] == {"max": 0.5, "norm": 0.5}


def test_quartiles_of_magnitudes():
    values = np.random.default_rng(0).normal(size=(6, 7)).astype(np.float32)
    found = get_magnitude_quantiles({"x": values[:2], "y": values[2:]}, "p/")
    assert list(found) == ["p/min", "p/p25", "p/p50", "p/p75", "p/max"]
    expected = np.percentile(np.abs(values), [0, 25, 50, 75, 100])
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-5)
