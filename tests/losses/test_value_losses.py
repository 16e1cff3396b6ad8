import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from triax.losses import huber, logloss, logloss_sign, mse, quantile_huber

RNG = np.random.default_rng(0)
Y, P = RNG.normal(size=(2, 6)).astype(np.float32) * 3
Y2, P2 = RNG.normal(size=(2, 6, 4)).astype(np.float32)
W = RNG.uniform(size=6).astype(np.float32)


def weighted(per_element, w):
    """mean_i(w_i L_i), entry by entry."""
    return np.mean([w[i] * np.asarray(per_element)[i].mean() for i in range(len(w))])


@pytest.mark.parametrize(("y", "p"), [(Y, P), (Y2, P2)])
@pytest.mark.parametrize("w", [None, W])
def test_mse_is_half_the_squared_error(y, p, w):
    expected = weighted(optax.l2_loss(p, y), np.ones(6) if w is None else w)
    np.testing.assert_allclose(mse(y, p, w), expected, rtol=1e-5)


@pytest.mark.parametrize(("y", "p"), [(Y, P), (Y2, P2)])
@pytest.mark.parametrize("w", [None, W])
@pytest.mark.parametrize("delta", [0.3, 1.0, 5.0])
def test_huber_agrees_with_optax(y, p, w, delta):  # F75
    expected = weighted(optax.huber_loss(p, y, delta=delta), np.ones(6) if w is None else w)
    np.testing.assert_allclose(huber(y, p, w, delta=delta), expected, rtol=1e-5)


def test_huber_has_the_gradient_of_the_clipped_error():
    gradient = jax.grad(lambda p: huber(jnp.zeros(4), p).sum())(jnp.array([-3.0, -0.5, 0.0, 2.0]))
    np.testing.assert_allclose(4 * gradient, [-1, -0.5, 0, 1])


@pytest.mark.parametrize("w", [None, W])
def test_logloss_is_the_cross_entropy(w):
    p, y = scipy.special.expit(P.astype(float)), np.array([0, 1, 1, 0, 1, 0.3])
    expected = -scipy.special.xlogy(y, p) - scipy.special.xlogy(1 - y, 1 - p)
    expected = weighted(expected, np.ones(6) if w is None else w)
    np.testing.assert_allclose(logloss(y, p, w), expected, rtol=1e-5)


@pytest.mark.parametrize("y", [0.0, 1.0])
def test_logloss_is_finite_at_zero_and_one(y):  # F74
    p = jnp.array([0.0, 1.0, 1e-30, 1 - 1e-7])
    value, gradient = jax.value_and_grad(lambda p: logloss(jnp.full(4, y), p))(p)
    assert np.isfinite(value) and np.isfinite(gradient).all()
    worst, best = logloss(jnp.full(1, y), jnp.full(1, 1 - y)), logloss(jnp.full(1, y), jnp.full(1, y))
    assert worst > 15 and 0 <= best < 1e-6


@pytest.mark.parametrize("w", [None, W])
def test_logloss_sign_is_the_cross_entropy_of_logits(w):
    signs = np.array([-1, 1, 1, -1, -1, 1])
    expected = optax.sigmoid_binary_cross_entropy(P, (signs + 1) / 2)
    expected = weighted(expected, np.ones(6) if w is None else w)
    np.testing.assert_allclose(logloss_sign(signs, P, w), expected, rtol=1e-5)


def test_logloss_sign_does_not_overflow():  # F74
    z = jnp.array([-1e30, -200.0, 0.0, 200.0])
    value, gradient = jax.value_and_grad(lambda z: logloss_sign(jnp.ones(4), z))(z)
    np.testing.assert_allclose(value, (1e30 + 200 + np.log(2)) / 4, rtol=1e-6)
    np.testing.assert_allclose(4 * gradient, [-1, -1, -0.5, 0], atol=1e-6)


def quantile_huber_oracle(y, p, tau, w, delta):
    total = 0.0
    for b in range(len(y)):
        for i in range(p.shape[1]):
            for target in y[b]:
                d = target - p[b, i]
                size = 0.5 * d**2 if abs(d) <= delta else delta * (abs(d) - delta / 2)
                total += w[b] * abs(tau[b, i] - (d < 0)) * size / delta / p.shape[1]
    return total / len(y)


@pytest.mark.parametrize("w", [None, W[:3]])
@pytest.mark.parametrize("delta", [0.5, 1.0])
def test_quantile_huber_is_the_papers_double_sum(w, delta):
    y, p = RNG.normal(size=(3, 5)), RNG.normal(size=(3, 4))
    tau = np.sort(RNG.uniform(size=(3, 4)), axis=1)
    expected = quantile_huber_oracle(y, p, tau, np.ones(3) if w is None else w, delta)
    np.testing.assert_allclose(quantile_huber(y, p, tau, w, delta=delta), expected, rtol=1e-5)


def test_quantile_huber_is_least_at_the_quantiles():
    samples = np.random.default_rng(1).exponential(size=2000).astype(np.float32)
    tau = jnp.array([[0.1, 0.5, 0.9]])
    step = jax.jit(jax.grad(lambda p: quantile_huber(samples[None], p, tau, delta=0.01)))
    predicted = jnp.zeros((1, 3))
    for _ in range(500):
        predicted = predicted - 2e-3 * step(predicted)
    np.testing.assert_allclose(predicted[0], np.quantile(samples, tau[0]), atol=0.03)


@pytest.mark.parametrize("loss", [mse, huber, logloss, logloss_sign])
def test_shapes_that_differ_do_not_broadcast(loss):
    with pytest.raises(ValueError, match=rf"{loss.__name__}: .*\(4,\) and \(4, 1\).*squeeze"):
        loss(np.ones(4), np.ones((4, 1)))


@pytest.mark.parametrize("loss", [mse, huber, logloss, logloss_sign])
@pytest.mark.parametrize("w", [np.ones(3), np.ones((4, 1)), np.ones(())])
def test_weights_of_another_shape_are_refused(loss, w):
    with pytest.raises(ValueError, match=rf"{loss.__name__}: w must hold one weight per sample, shape \(4,\)"):
        loss(np.ones((4, 2)), np.ones((4, 2)), w)


def test_quantile_huber_refuses_other_shapes():
    y, p = np.ones((3, 5)), np.ones((3, 4))
    for args in ((y[:2], p, p), (y, p, y), (y[0], p[0], p[0]), (y, p[0], p[0])):
        with pytest.raises(ValueError, match=r"shapes \(B, M\), \(B, N\) and \(B, N\)"):
            quantile_huber(*args)
    with pytest.raises(ValueError, match="one weight per sample"):
        quantile_huber(y, p, p, np.ones(4))


@pytest.mark.parametrize("loss", [mse, huber, logloss_sign])
def test_results_are_float_scalars(loss):
    assert loss(np.array([1, -1]), np.array([2, 3])).dtype == jnp.float32
    assert loss(1.0, jnp.ones((2, 3), jnp.bfloat16)).shape == ()


@pytest.mark.parametrize("delta", [0, -1.0, np.nan])
def test_delta_is_positive(delta):
    with pytest.raises(ValueError, match="huber: delta must be positive"):
        huber(Y, P, delta=delta)
    with pytest.raises(ValueError, match="quantile_huber: delta must be positive"):
        quantile_huber(Y2, P2, P2, delta=delta)
    assert np.isfinite(jax.jit(huber)(Y, P, delta=1))
