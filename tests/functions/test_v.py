"""The value of a state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import triax
from triax.losses.value_transforms import LogTransform

from .networks import DISCRETE, SOME_SPACES, SPACES, assert_number, env_of, func_of, s


def v_function(env=DISCRETE, kind="module", seed=0, **kwargs):
    return triax.V(func_of(triax.V.example_data(env, **kwargs), kind), env, random_seed=seed, **kwargs)


@pytest.mark.parametrize("name", SOME_SPACES)
def test_the_value_of_a_member_of_any_space_is_a_number(name):
    space = SPACES[name]
    v = v_function(env_of(observation_space=space))
    x = triax.safe_sample(space, seed=0)
    assert_number(v(x))
    S = v.observation_preprocessor(None, x)
    assert v(x) == pytest.approx(v.function(v.params, v.function_state, v.rng, S, False)[0].item(), rel=1e-4)


@pytest.mark.parametrize("transform", [LogTransform(2.0), (jnp.arcsinh, jnp.sinh)])
def test_values_are_in_original_units(transform):  # F31
    func = func_of(triax.V.example_data(DISCRETE))
    plain, transformed = triax.V(func, DISCRETE), triax.V(func, DISCRETE, value_transform=transform)
    _, inverse = transform
    assert transformed(s) == pytest.approx(float(inverse(plain(s))), rel=1e-5)


def test_the_given_preprocessor_is_used_everywhere():  # F22
    def double(rng, x):
        return jnp.concatenate([x, x], axis=-1)[None] if x.ndim == 1 else jnp.concatenate([x, x], axis=-1)

    v = v_function(observation_preprocessor=double)
    bias, kernel = jax.tree.leaves(v.params)
    assert kernel.shape == (6, 1)
    assert v(s) == pytest.approx((np.concatenate([s, s]) @ kernel + bias).item(), rel=1e-5)


def test_a_preprocessor_need_not_know_batches():  # F46, for observations
    v = v_function(observation_preprocessor=lambda rng, x: (x * 2)[None])
    bias, kernel = jax.tree.leaves(v.params)
    assert v(s) == pytest.approx((2 * s @ kernel + bias).item(), rel=1e-5)


def test_a_preprocessor_without_batch_axis_is_refused():
    func = func_of(triax.V.example_data(DISCRETE))
    with pytest.raises(TypeError, match=r"V: observation_preprocessor must turn one .*got leaves of the shapes \[\(3,"):
        triax.V(func, DISCRETE, observation_preprocessor=lambda rng, x: x)


@pytest.mark.parametrize(
    "output, said",
    [
        (lambda S: S[:, :1], r"one value per state, shape \(8,\); got \(8, 1\)\. Did you forget jnp.squeeze"),
        (lambda S: S, r".*shape \(8,\); got \(8, 3\)\. Reduce the last axis"),
        (lambda S: S[0, 0], r".*shape \(8,\); got \(\)"),
        (lambda S: S[:1, 0], r".*shape \(8,\); got \(1,\)"),
        (lambda S: S[:, 0].astype(int), "floating-point values; got dtype int32"),
        (lambda S: {"v": S[:, 0]}, "a JAX array; got dict"),
        (lambda S: np.zeros(len(S), np.float32), "a JAX array; got ndarray"),
        (lambda S: None, "a JAX array; got NoneType"),
    ],
)
def test_a_wrong_output_is_refused(output, said):
    with pytest.raises(TypeError, match=f"V: func must return {said}"):
        triax.V(lambda S, is_training: output(S), DISCRETE)


def test_a_bad_transform_is_refused():
    with pytest.raises(TypeError, match="value_transform must be"):
        triax.V(lambda S, is_training: S[:, 0], DISCRETE, value_transform=jnp.arcsinh)


def test_an_environment_without_spaces_is_refused():
    with pytest.raises(TypeError, match=r"V: env.observation_space must be a gymnasium.spaces.Space; got NoneType"):
        triax.V(lambda S, is_training: S[:, 0], None)


def test_a_delay_shifts_the_values_by_a_step():
    v = v_function(kind="memory")
    bias, kernel = jax.tree.leaves(v.params)
    carry, values = v.initial_carry(), []
    for k in range(3):
        value, carry = v(s + k, carry)
        assert_number(value)
        values.append(value)
    expected = [0 * s @ kernel + bias, s @ kernel + bias, (s + 1) @ kernel + bias]
    np.testing.assert_allclose(values, np.ravel(expected), rtol=1e-5)
