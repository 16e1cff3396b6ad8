import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triax.losses import LogTransform, SignedHyperbolicTransform, ValueTransform, value_transform_of

TRANSFORMS = [
    LogTransform(),
    LogTransform(scale=7.5),
    SignedHyperbolicTransform(),
    SignedHyperbolicTransform(epsilon=0.0),
    value_transform_of(None),
]
FORMULAS = [  # in float64
    (TRANSFORMS[0], lambda x: np.sign(x) * np.log(1 + np.abs(x))),
    (TRANSFORMS[1], lambda x: 7.5 * np.sign(x) * np.log(1 + np.abs(x) / 7.5)),
    (TRANSFORMS[2], lambda x: np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x),
    (TRANSFORMS[3], lambda x: np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1)),
]
magnitudes = st.floats(-6, 5).map(lambda k: 10.0**k)


@pytest.mark.parametrize(("transform", "formula"), FORMULAS)
def test_is_the_formula(transform, formula):
    x = np.concatenate([-np.logspace(5, -2, 50), [0], np.logspace(-2, 5, 50)]).reshape(-1, 1)
    np.testing.assert_allclose(transform.transform_func(x), formula(x), rtol=1e-5)


def test_the_hyperbolic_inverse_is_the_papers_formula():
    eps, y = 1e-3, np.linspace(-300, 300, 101)
    paper = np.sign(y) * (((np.sqrt(1 + 4 * eps * (np.abs(y) + 1 + eps)) - 1) / (2 * eps)) ** 2 - 1)
    np.testing.assert_allclose(SignedHyperbolicTransform(eps).inverse_func(y), paper, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
@given(size=magnitudes, sign=st.sampled_from([-1, 1]))
@settings(max_examples=30, deadline=None)
def test_the_inverse_undoes_it_to_float_precision(transform, size, sign):
    f, f_inverse = transform
    x = jnp.float32(sign * size)
    # relative precision, also where the original's log(1 + x) has none left: F74
    np.testing.assert_allclose(f_inverse(f(x)), x, rtol=3e-5)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_slope_at_zero_is_right(transform):
    f, f_inverse = transform
    slope = (f(jnp.float32(1e-3)) - f(jnp.float32(-1e-3))) / 2e-3
    np.testing.assert_allclose(jax.grad(f)(0.0), slope, rtol=1e-3)
    np.testing.assert_allclose(jax.grad(f_inverse)(0.0), 1 / slope, rtol=1e-3)
    assert f(0.0) == f_inverse(0.0) == 0


def test_a_transform_is_its_pair_of_functions():
    transform = ValueTransform(jnp.sinh, jnp.arcsinh)
    f, f_inverse = transform
    assert f is transform.transform_func is jnp.sinh and f_inverse is transform.inverse_func is jnp.arcsinh
    assert LogTransform(3).scale == 3


def test_equal_transforms_compile_once():
    compiled = []

    @functools.partial(jax.jit, static_argnums=0)
    def apply(transform, x):
        compiled.append(transform)
        return transform.transform_func(x)

    for transform in (LogTransform(2.0), LogTransform(2.0), LogTransform(3.0), SignedHyperbolicTransform()):
        apply(transform, 1.0)
    assert len(compiled) == 3
    assert ValueTransform(np.exp, np.log) == ValueTransform(np.exp, np.log) != (np.exp, np.log)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_the_scale_is_positive(scale):
    with pytest.raises(ValueError, match="positive"):
        LogTransform(scale)


@pytest.mark.parametrize("epsilon", [-1e-3, np.inf, np.nan])
def test_epsilon_is_not_negative(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        SignedHyperbolicTransform(epsilon)


def test_what_serves_as_a_transform():
    transform = LogTransform()
    assert value_transform_of(transform) is transform
    assert value_transform_of([np.exp, np.log]) == ValueTransform(np.exp, np.log)
    assert value_transform_of(None) == value_transform_of(None)
    for other in (np.exp, (np.exp,), (np.exp, 3), "log", 1.0):
        with pytest.raises(TypeError, match="pair of functions"):
            value_transform_of(other)
    with pytest.raises(TypeError):
        ValueTransform(np.exp, None)
