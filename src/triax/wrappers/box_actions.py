"""Wrappers that take other actions for a Gymnasium environment with a bounded Box of them."""

import math
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from triax.core.env_arguments import check_gymnasium_env
from triax.core.keys import make_generator

_SEED_OF_THE_WRAPPER = 0xB0C5
"""Sets the wrapper's stream apart from the environment's, which has the same seed."""


class BoxActionsToReals(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Actions are any real numbers, a flat ``float32[n]``: the executed one is ``low + (high - low) sigmoid(a)``.

    ``info["a_orig"]`` lists the executed action, after those of wrappers inside. Raises
    ``NotImplementedError`` unless the action space is a Box of floats, ``ValueError`` unless it is bounded, and
    ``ValueError`` from ``step`` for an action with another number of entries or with NaN.
    """

    def __init__(self, env: gymnasium.Env):
        check_gymnasium_env("BoxActionsToReals", env)
        gymnasium.utils.RecordConstructorArgs.__init__(self)  # for gymnasium.make(env.spec)
        gymnasium.Wrapper.__init__(self, env)
        self._box = _bounded_box("BoxActionsToReals", env)
        self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (math.prod(self._box.shape),), np.float32)

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]: `a` is the name of an action in triax
        self, a: Any
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps with the executed action."""
        reals = np.asarray(a, np.float64)
        if reals.shape != self.action_space.shape or np.isnan(reals).any():
            raise ValueError(
                f"BoxActionsToReals: an action must be {self._box.shape} flat, {self.action_space.shape} real "
                f"numbers; got {a!r}."
            )
        share = 0.5 * (1 + np.tanh(0.5 * reals))  # the sigmoid, without overflow
        return _execute(self.env, self._box, share)


class BoxActionsToDiscrete(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Actions are bins of equal width; the executed one is drawn uniformly inside the chosen bins.

    Args:
        env: has a bounded Box of floats as action space, of any shape with ``n`` entries.
        num_bins: bins per entry: an int for all, or ``n`` ints in the order of a flattened action.
        random_seed: of the draws; ``None``: fresh entropy. ``reset(seed=...)`` seeds them anew.

    The action space is ``Discrete`` for one entry, else ``MultiDiscrete``. ``info["a_orig"]`` lists the
    executed action, after those of wrappers inside. Raises ``NotImplementedError`` unless the action space is
    a Box of floats, ``ValueError`` unless it is bounded, for ``num_bins`` ``TypeError`` unless these are
    positive ints and ``ValueError`` unless there are ``n``, and ``ValueError`` from ``step`` for an action
    outside the space.
    """

    def __init__(self, env: gymnasium.Env, num_bins: int | tuple[int, ...], random_seed: int | None = None):
        check_gymnasium_env("BoxActionsToDiscrete", env)
        gymnasium.utils.RecordConstructorArgs.__init__(self, num_bins=num_bins, random_seed=random_seed)
        gymnasium.Wrapper.__init__(self, env)
        self._box = _bounded_box("BoxActionsToDiscrete", env)
        self._num_bins = np.array(_check_num_bins(num_bins, math.prod(self._box.shape)))
        self._rng = make_generator(random_seed)
        if self._num_bins.size == 1:
            self.action_space = gymnasium.spaces.Discrete(int(self._num_bins[0]))
        else:
            self.action_space = gymnasium.spaces.MultiDiscrete(self._num_bins)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment; a seed also seeds the draws inside the bins."""
        if seed is not None:
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SEED_OF_THE_WRAPPER,)))
        return self.env.reset(seed=seed, options=options)

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]: `a` is the name of an action in triax
        self, a: Any
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps with an action drawn from the chosen bins."""
        bins = np.asarray(a)
        if not self.action_space.contains(int(bins) if _is_one_int(bins) else bins):
            raise ValueError(f"BoxActionsToDiscrete: an action must be in {self.action_space}; got {a!r}.")
        bins = bins.reshape(-1)
        return _execute(self.env, self._box, (bins + self._rng.random(bins.shape)) / self._num_bins)


def _execute(
    env: gymnasium.Env, box: gymnasium.spaces.Box, share: Float[np.ndarray, " n"]
) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
    """Steps with the action that lies at ``share``, between 0 and 1, of the way from ``low`` to ``high``."""
    low, high = box.low.astype(np.float64), box.high.astype(np.float64)
    share = share.reshape(box.shape)
    between = low * (1 - share) + high * share  # high - low may overflow
    # Rounding may leave the box; NumPy makes a number of an array without axes.
    action = np.asarray(np.clip(between, low, high).astype(box.dtype))
    s_next, r, terminated, truncated, info = env.step(action)
    return s_next, r, bool(terminated), bool(truncated), {**info, "a_orig": [*info.get("a_orig", ()), action]}


def _bounded_box(who: str, env: gymnasium.Env) -> gymnasium.spaces.Box:
    box = env.action_space
    if not isinstance(box, gymnasium.spaces.Box) or not np.issubdtype(box.dtype, np.floating):
        raise NotImplementedError(f"{who}: the action space must be a Box of floats; got {box}.")
    if not box.is_bounded("both"):
        raise ValueError(
            f"{who}: the action space must be bounded; got low {box.low.tolist()}, high {box.high.tolist()}. "
            "Try gymnasium.wrappers.RescaleAction or a bounded Box of your own."
        )
    return box


def _check_num_bins(num_bins: Any, size: int) -> list[int]:
    numbers = [num_bins] * size if isinstance(num_bins, (int, np.integer)) else num_bins
    if not isinstance(numbers, (tuple, list)) or not all(_is_positive_int(number) for number in numbers):
        raise TypeError(
            f"BoxActionsToDiscrete: num_bins must be a positive int, or a tuple of {size} such; got {num_bins!r}."
        )
    if len(numbers) != size:
        raise ValueError(
            f"BoxActionsToDiscrete: num_bins must have one entry per dimension of the action, {size}; "
            f"got {len(numbers)}: {num_bins!r}."
        )
    return [int(number) for number in numbers]


def _is_positive_int(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool) and int(number) > 0


def _is_one_int(bins: np.ndarray) -> bool:
    return bins.shape == () and np.issubdtype(bins.dtype, np.integer)
