import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from triax.core.schedules import StepwiseLinearFunction


def test_is_linear_between_steps_and_flat_outside():
    f = StepwiseLinearFunction((0, 1.0), (100, 0.1), (np.int64(200), 0))
    assert [f(t) for t in (-5, 0, 50, 100, 150, 200, 10**9)] == pytest.approx([1, 1, 0.55, 0.1, 0.05, 0, 0])
    assert type(f(np.int64(50))) is float


def test_agrees_with_optax_and_is_an_optax_schedule():
    f = StepwiseLinearFunction((10, 2.0), (30, 0.5))
    g = optax.linear_schedule(2.0, 0.5, transition_steps=20, transition_begin=10)
    t = jnp.arange(50)
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(t), jax.vmap(g)(t), rtol=1e-6)
    np.testing.assert_allclose([f(int(k)) for k in t], jax.vmap(g)(t), rtol=1e-6)
    optimizer = optax.sgd(f)
    updates, _ = optimizer.update(jnp.ones(1), optimizer.init(jnp.ones(1)))
    np.testing.assert_allclose(updates, [-2.0])


@pytest.mark.parametrize("steps", [(), ((0, 1),), ((0, 1), (2, 3, 4)), ((0.5, 1), (2, 1)), ((0, "a"), (1, 2)), (0, 1)])
def test_what_is_no_step_is_refused(steps):
    with pytest.raises(TypeError):
        StepwiseLinearFunction(*steps)


@pytest.mark.parametrize("timesteps", [(1, 0), (0, 0), (0, 2, 1)])
def test_timesteps_must_ascend(timesteps):
    with pytest.raises(ValueError, match="ascend"):
        StepwiseLinearFunction(*((t, 1.0) for t in timesteps))
