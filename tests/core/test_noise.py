import numpy as np
import pytest

from triax.core.noise import OrnsteinUhlenbeckNoise


def test_without_shocks_the_noise_decays_to_mu():
    noise = OrnsteinUhlenbeckNoise(mu=0.0, sigma=0.0, theta=0.25)
    noise.mu = 8.0
    np.testing.assert_allclose(noise(np.zeros(2)), [8.0, 8.0])  # starts at mu
    noise.mu = 0.0
    values = [noise(np.zeros(2))[0] for _ in range(5)]
    np.testing.assert_allclose(values, 8 * 0.75 ** np.arange(1, 6))
    noise.reset()
    np.testing.assert_allclose(noise(np.zeros(2)), 0.0)


def test_the_stationary_moments_are_those_of_an_autoregression():
    noise = OrnsteinUhlenbeckNoise(mu=1.5, sigma=0.2, theta=0.3, random_seed=1)
    x = np.array([noise(np.zeros(500)) for _ in range(200)])[50:]
    # X is AR(1) with coefficient 1 - theta
    assert x.mean() == pytest.approx(1.5, abs=0.02)
    assert x.var() == pytest.approx(0.2**2 / (1 - 0.7**2), rel=0.03)
    assert np.corrcoef(x[:-1].ravel(), x[1:].ravel())[0, 1] == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (np.array([-1.0, -0.2]), np.array([0.1, 1.0]))])
def test_the_action_is_clipped_not_the_noise(bounds):  # F85
    noise = OrnsteinUhlenbeckNoise(sigma=3.0, min_value=bounds[0], max_value=bounds[1], random_seed=0)
    actions = np.array([noise(np.full(2, 0.9, np.float32)) for _ in range(200)])
    assert np.all(actions >= np.float32(bounds[0])) and np.all(actions <= np.float32(bounds[1]))
    assert np.all(actions.min(0) == np.float32(bounds[0])) and np.all(actions.max(0) == np.float32(bounds[1]))


def test_one_sided_bounds():
    noise = OrnsteinUhlenbeckNoise(sigma=5.0, min_value=0.0, random_seed=0)
    actions = np.array([noise(0.5) for _ in range(100)])
    assert actions.min() == 0.0 and actions.max() > 5.0


def test_integer_actions_do_not_truncate_the_noise():  # F85
    noise = OrnsteinUhlenbeckNoise(sigma=0.1, random_seed=0)
    out = noise(np.array([3, 4]))
    assert out.dtype == np.float32
    assert np.all(out != np.round(out))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_keeps_the_dtype_and_leaves_the_action_alone(dtype):
    action = np.zeros((2, 3), dtype)
    out = OrnsteinUhlenbeckNoise(min_value=-1.0, max_value=1.0)(action)
    assert out.dtype == dtype and out.shape == (2, 3)
    assert not action.any()


def test_is_reproducible_without_touching_the_global_generator():
    before = np.random.get_state()[1].copy()
    draws = [OrnsteinUhlenbeckNoise(random_seed=5)(np.zeros(4)) for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="min_value"):
        OrnsteinUhlenbeckNoise(min_value=1.0, max_value=0.0)
    noise = OrnsteinUhlenbeckNoise()
    noise(np.zeros(2))
    with pytest.raises(ValueError, match=r"noise.reset\(\)"):
        noise(np.zeros(3))


def test_noise_prints_its_numbers_and_its_bounds_if_it_has_some():
    assert str(OrnsteinUhlenbeckNoise(sigma=0.2)) == "OrnsteinUhlenbeckNoise(mu=0.0, sigma=0.2, theta=0.15)"
    assert str(OrnsteinUhlenbeckNoise(min_value=-1, max_value=2)).endswith("theta=0.15, in [-1, 2])")
