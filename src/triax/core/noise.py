"""Noise added to actions for exploration."""

import numpy as np
from jaxtyping import ArrayLike, Float

from triax.core.keys import make_generator


class OrnsteinUhlenbeckNoise:
    """Noise that drifts: ``X <- X + theta (mu - X) + sigma eps`` per call, from ``X = mu`` after a reset.

    ``noise(a)`` advances ``X`` and returns ``a + X`` within ``[min_value, max_value]`` (numbers or arrays).
    ``mu``, ``sigma`` and ``theta`` may be assigned at any time, by a schedule for example. The generator is
    the object's own; ``random_seed=None`` draws fresh entropy. Source: Lillicrap et al. 2016,
    arXiv:1509.02971, section 7.
    """

    def __init__(
        self,
        mu: float | int = 0.0,
        sigma: float | int = 1.0,
        theta: float | int = 0.15,
        min_value: ArrayLike | None = None,
        max_value: ArrayLike | None = None,
        random_seed: int | None = None,
    ):
        if min_value is not None and max_value is not None and np.any(np.asarray(min_value) > max_value):
            raise ValueError(
                f"OrnsteinUhlenbeckNoise: min_value must not exceed max_value; got {min_value} and {max_value}"
            )
        self.mu, self.sigma, self.theta = mu, sigma, theta
        self.min_value, self.max_value = min_value, max_value
        self.random_seed = random_seed
        self._generator = make_generator(random_seed)
        self._noise: np.ndarray | None = None

    def __repr__(self) -> str:
        bounded = self.min_value is not None or self.max_value is not None
        bounds = f", in [{self.min_value}, {self.max_value}]" if bounded else ""
        return f"OrnsteinUhlenbeckNoise(mu={self.mu}, sigma={self.sigma}, theta={self.theta}{bounds})"

    def reset(self) -> None:
        """Restart the process at ``mu``, as for a new episode; the generator goes on."""
        self._noise = None

    def __call__(self, a: ArrayLike) -> Float[np.ndarray, "*shape"]:
        """The action with noise, of the action's float dtype; float32 for an integer action.

        Raises ``ValueError`` when the shape changes without a ``reset``.
        """
        action = np.asarray(a)
        dtype = action.dtype if np.issubdtype(action.dtype, np.floating) else np.dtype(np.float32)
        if self._noise is None:
            self._noise = np.full(action.shape, self.mu, np.float64)
        if self._noise.shape != action.shape:
            raise ValueError(
                f"OrnsteinUhlenbeckNoise: expected an action of shape {self._noise.shape}, as before; "
                f"got {action.shape}. Did you forget noise.reset()?"
            )
        shock = self._generator.standard_normal(action.shape)
        self._noise = self._noise + self.theta * (self.mu - self._noise) + self.sigma * shock
        noisy = action + self._noise
        if self.min_value is not None or self.max_value is not None:
            noisy = np.clip(noisy, self.min_value, self.max_value)
        return np.asarray(noisy, dtype)
