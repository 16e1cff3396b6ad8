from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.core.moments import (
    init_moments,
    merge_moments,
    moments_std,
    moments_variance,
    update_moments,
)

update = jax.jit(update_moments)
merge = jax.jit(merge_moments)


def mean_of(moments):
    """The mean in float64, rest included."""
    return jax.tree.map(lambda m, r: np.float64(m) + np.float64(r), moments.mean, moments.mean_rest)


def count_of(moments):
    return int(moments.counter) + int(moments.counter_rest)


def test_three_large_neighbours_have_the_right_deviation():  # pitfall 32
    moments = update(init_moments(np.float32(0)), jnp.array([10000.0, 10001.0, 10002.0]))
    assert moments_std(moments) == pytest.approx(np.sqrt(2 / 3), rel=1e-6)
    assert moments.mean == 10001.0


@given(
    seed=st.integers(0, 2**31),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    offset=st.sampled_from([0.0, -3.0, 1e4, 1e6]),
    scale=st.sampled_from([0.3, 1.0, 100.0]),
)
@settings(max_examples=30, deadline=None)
def test_any_batching_gives_the_moments_of_all_samples(seed, sizes, offset, scale):
    rng = np.random.default_rng(seed)
    batches = [(offset + scale * rng.normal(size=(4 * n, 2, 3))).astype(np.float32) for n in sizes]
    moments = init_moments(jnp.zeros(3))
    for batch in batches:
        moments = update(moments, batch)
    everything = np.concatenate(batches).reshape(-1, 3).astype(np.float64)
    assert count_of(moments) == len(everything)
    np.testing.assert_allclose(mean_of(moments), everything.mean(0), rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(moments_variance(moments), everything.var(0), rtol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1000003.7, -3.3e7, 1e-30])
def test_a_constant_has_its_own_mean_and_no_variance(value):
    moments = init_moments(jnp.zeros(2))
    for n in (7, 256, 1, 1000):
        moments = update(moments, jnp.full((n, 2), value, jnp.float32))
    np.testing.assert_array_equal(moments.mean, np.full(2, value, np.float32))
    np.testing.assert_array_equal(moments.m2, np.zeros(2))


def test_a_thousand_million_samples_later_each_still_counts():
    rng = np.random.default_rng(0)
    first = (1e6 + rng.normal(size=(1000, 2))).astype(np.float32)
    moments = update(init_moments(jnp.zeros(2)), first)
    for _ in range(20):
        moments = merge(moments, moments)
    assert count_of(moments) == 1000 * 2**20
    exact = [[Fraction(float(x)) for x in column] for column in first.T]
    mean = [sum(column) / 1000 for column in exact]
    m2 = [sum((x - m) ** 2 for x in column) * 2**20 for column, m in zip(exact, mean, strict=True)]
    np.testing.assert_allclose(moments_variance(moments), [float(s) / 1000 / 2**20 for s in m2], rtol=1e-5)

    extra = (1e6 + 100 + 50 * rng.normal(size=(3000, 2))).astype(np.float32)
    before = mean_of(moments)
    for sample in extra:  # one by one: each alone is below the rounding step of a float32 count
        moments = update(moments, sample[None])
    n = 1000 * 2**20
    assert count_of(moments) == n + 3000
    shift = [float(sum(Fraction(float(x)) - m for x in extra[:, k]) / (n + 3000)) for k, m in enumerate(mean)]
    np.testing.assert_allclose(mean_of(moments) - before, shift, rtol=1e-2)
    grown = np.float64(moments.m2) + np.float64(moments.m2_rest) - [float(s) for s in m2]
    expected = [sum((float(x) - float(m)) ** 2 for x in extra[:, k]) for k, m in enumerate(mean)]
    np.testing.assert_allclose(grown, expected, rtol=0.01, atol=1e-6 * float(max(m2)))


def test_no_sample_is_no_phantom():  # pitfall 31
    moments = init_moments({"a": np.zeros(3, np.float32), "b": np.int32(0)})
    assert moments.counter == 0
    assert moments_std(moments, empty=10.0)["a"].tolist() == [10.0] * 3
    moments = update(moments, {"a": jnp.zeros((0, 3)), "b": jnp.zeros(0)})
    moments = merge(moments, moments)
    assert moments.counter == 0 and jax.tree.all(jax.tree.map(lambda x: not x.any(), moments))
    moments = update(moments, {"a": jnp.full((1, 3), 5.0), "b": jnp.array([7])})
    np.testing.assert_array_equal(moments.mean["a"], np.full(3, 5.0))
    assert moments.mean["b"] == 7 and moments.counter == 1
    np.testing.assert_array_equal(moments_std(moments, epsilon=1e-6)["a"], np.full(3, np.float32(1e-3)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_a_sample_that_is_not_finite_is_left_out_whole(bad):
    rng = np.random.default_rng(1)
    batch = {
        "a": rng.normal(size=(5, 4, 3)).astype(np.float32),
        "b": rng.normal(size=(5, 4)).astype(np.float32),
    }
    batch["a"][0, 0, 1] = bad
    batch["b"][3, 2] = bad
    keep = np.ones((5, 4), bool)
    keep[0, 0] = keep[3, 2] = False
    moments = update(init_moments({"a": np.zeros(3, np.float32), "b": np.float32(0)}), batch)
    assert moments.counter == 18
    for name in batch:
        np.testing.assert_allclose(mean_of(moments)[name], batch[name][keep].mean(0), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(moments_variance(moments)[name], batch[name][keep].var(0), rtol=1e-5)


def test_masks_and_weights_are_frequencies():
    rng = np.random.default_rng(2)
    batch = rng.normal(size=(6, 5, 2)).astype(np.float32)
    repeats = rng.integers(0, 4, (6, 5))
    batch[repeats == 0] = np.nan
    empty = init_moments(jnp.zeros(2))
    weighted = update(empty, batch, repeats.astype(np.float32))
    repeated = np.repeat(batch.reshape(-1, 2), repeats.ravel(), axis=0)
    assert weighted.counter == len(repeated)
    np.testing.assert_allclose(mean_of(weighted), repeated.mean(0), rtol=1e-5)
    np.testing.assert_allclose(moments_variance(weighted), repeated.var(0), rtol=1e-5)
    masked = update(empty, batch, repeats > 1)
    np.testing.assert_allclose(moments_variance(masked), batch[repeats > 1].var(0), rtol=1e-5)


def test_merging_is_taking_the_samples_together():
    rng = np.random.default_rng(3)
    x, y = rng.normal(3, 2, (50, 2)).astype(np.float32), rng.normal(-1, 1, (7, 2)).astype(np.float32)
    empty = init_moments(jnp.zeros(2))
    together = merge(update(empty, x), update(empty, y))
    everything = np.concatenate([x, y]).astype(np.float64)
    np.testing.assert_allclose(mean_of(together), everything.mean(0), rtol=1e-6)
    np.testing.assert_allclose(moments_variance(together), everything.var(0), rtol=1e-5)
    alone = merge(empty, update(empty, x))
    jax.tree.map(np.testing.assert_array_equal, alone, update(empty, x))


def test_leaves_of_another_shape_or_structure_are_refused():
    moments = init_moments({"a": np.zeros(3, np.float32), "b": np.float32(0)})
    with pytest.raises(ValueError, match="structure"):
        update_moments(moments, {"a": jnp.zeros((4, 3))})
    with pytest.raises(ValueError, match=r"leading axes.*\(4, 2\)"):
        update_moments(moments, {"a": jnp.zeros((4, 2)), "b": jnp.zeros(4)})
    with pytest.raises(ValueError, match="leading axes"):
        update_moments(moments, {"a": jnp.zeros((4, 3)), "b": jnp.zeros(5)})
    with pytest.raises(ValueError, match="weights must have shape"):
        update_moments(moments, {"a": jnp.zeros((4, 3)), "b": jnp.zeros(4)}, weights=jnp.ones((4, 1)))


@pytest.mark.filterwarnings("error")
def test_a_float64_example_of_a_gymnasium_space_does_not_warn():
    moments = init_moments({"a": np.zeros(3), "b": 0.0, "c": jax.ShapeDtypeStruct((2,), jnp.int32)})
    assert {x.dtype for x in jax.tree.leaves(moments)} == {jnp.dtype("float32")}
    assert moments.mean["c"].shape == (2,)


def test_integer_and_half_precision_samples_accumulate_in_float32():
    moments = init_moments({"i": np.uint8(0), "h": jnp.zeros((), jnp.bfloat16)})
    batch = {"i": jnp.array([250, 255], jnp.uint8), "h": jnp.array([1.0, 3.0], jnp.bfloat16)}
    moments = update(moments, batch)
    assert {x.dtype for x in jax.tree.leaves(moments)} == {jnp.dtype("float32")}
    assert moments.mean == {"i": 252.5, "h": 2.0}
    assert moments_variance(moments) == {"i": 6.25, "h": 1.0}
