"""Tests of losses whose gradient is that of a policy's return."""

import jax
import jax.numpy as jnp
import numpy as np

from triax.losses import ppo_clip


def test_is_the_policy_gradient_at_the_old_policy():
    advantage = jnp.array([1.0, -2.0])
    gradient = jax.grad(lambda lp: ppo_clip(lp, jnp.zeros(2), advantage).sum())(jnp.zeros(2))
    np.testing.assert_allclose(gradient, -advantage)


def test_equals_a_numpy_loop_over_ratios_and_signs():
    rng = np.random.default_rng(0)
    new, old, advantage = rng.normal(size=(3, 50))
    expected = [
        -min(np.exp(n - o) * a, min(max(np.exp(n - o), 0.7), 1.3) * a)
        for n, o, a in zip(new, old, advantage, strict=True)
    ]
    given = (jnp.asarray(x, jnp.float32) for x in (new, old, advantage))
    np.testing.assert_allclose(ppo_clip(*given, epsilon=0.3), expected, rtol=1e-5)


def test_a_clipped_ratio_has_no_gradient_however_large_it_is():
    gradient = jax.grad(lambda lp: ppo_clip(lp, jnp.zeros(3), jnp.ones(3)).sum())(jnp.array([0.5, 90.0, 1e30]))
    np.testing.assert_array_equal(gradient, 0.0)
