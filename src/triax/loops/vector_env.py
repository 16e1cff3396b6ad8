"""Gymnasium vector environments, whichever way they begin the next episode, as one kind of step."""

import copy
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from jaxtyping import Bool, Float, PyTree


class VectorStep(NamedTuple):
    """What one step of ``n`` environments led to; leaves ``[n, ...]``, NumPy."""

    observation: PyTree
    """What to act on next."""
    reward: Float[np.ndarray, " n"]
    terminated: Bool[np.ndarray, " n"]
    truncated: Bool[np.ndarray, " n"]
    """Never both: an episode that is both is terminated."""
    next_observation: PyTree
    """What the action led to: of an episode that ended, its own final observation."""
    valid: Bool[np.ndarray, " n"]
    """False where the environment began an episode and ignored the action: nothing to learn from."""
    starts: Bool[np.ndarray, " n"]
    """Whether ``observation`` begins an episode: memory is reset there."""


def vectorize(env: gymnasium.Env | VectorEnv) -> VectorEnv:
    """A vector environment as it is; one environment as a vector of one, which resets in the same step."""
    if isinstance(env, gymnasium.Env):
        return SyncVectorEnv([lambda: env], copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    return env


class VectorStepper:
    """Steps a Gymnasium vector environment in any of the three modes of ``metadata["autoreset_mode"]``.

    Args:
        env: a ``gymnasium.vector.VectorEnv``; without the key it is taken to reset in the next step.

    Raises:
        TypeError: no vector environment, or an unknown mode.
    """

    def __init__(self, env: Any) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(
                f"VectorStepper: env must be a gymnasium.vector.VectorEnv; got {type(env).__name__}."
                " Try gymnasium.make_vec(...) or gymnasium.vector.SyncVectorEnv([...])."
            )
        mode = (env.metadata or {}).get("autoreset_mode", AutoresetMode.NEXT_STEP)
        try:
            self._mode = AutoresetMode(mode)
        except ValueError as error:
            known = [known.value for known in AutoresetMode]
            raise TypeError(f"VectorStepper: unknown autoreset_mode {mode!r}; known are {known}.") from error
        self._env = env
        self._ended = np.zeros(env.num_envs, bool)

    @property
    def skips(self) -> bool:
        """Whether there are steps that nobody takes: ``valid`` may then be false."""
        return self._mode is AutoresetMode.NEXT_STEP

    def reset(self, seed: int | None = None) -> PyTree:
        """The first observations of all environments, ``[n, ...]``."""
        observation, _ = self._env.reset(seed=seed)
        self._ended = np.zeros(self._env.num_envs, bool)
        return _own(observation)

    def step(self, action: Any) -> VectorStep:
        """One step of all environments.

        Raises:
            ValueError: an environment that resets in the same step was truncated and does not show its final
                observation, without which there is no bootstrap.
        """
        observation, reward, terminated, truncated, info = self._env.step(action)
        # Environments may hand out their own buffers, which the next step overwrites.
        observation, terminated = _own(observation), np.array(terminated, bool)
        truncated = np.array(truncated, bool) & ~terminated
        valid = np.ones_like(terminated)
        if self._mode is AutoresetMode.NEXT_STEP:
            valid = ~self._ended
        self._ended = terminated | truncated
        following, next_observation, starts = self._split(observation, truncated, info, valid)
        reward = np.array(reward, np.float32)
        return VectorStep(following, reward, terminated, truncated, next_observation, valid, starts)

    def _split(self, observation: PyTree, truncated: np.ndarray, info: dict, valid: np.ndarray) -> tuple:
        """``(what to act on, what the action led to, which of the former begin an episode)``."""
        ended = self._ended
        if self._mode is AutoresetMode.NEXT_STEP:
            return observation, observation, ~valid
        if not ended.any():
            return observation, observation, ended
        if self._mode is AutoresetMode.DISABLED:
            following, _ = self._env.reset(options={"reset_mask": ended.copy()})
            return _own(following), observation, ended
        return observation, _with_final(observation, ended, truncated, info), ended


def _own(observation: PyTree) -> PyTree:
    """A copy, NumPy."""
    return jax.tree.map(np.array, observation)


def _with_final(observation: PyTree, ended: np.ndarray, truncated: np.ndarray, info: dict) -> PyTree:
    """The observations with those of ended episodes in place of the ones that begin the next."""
    rows, shown = info.get("final_obs"), info.get("_final_obs", ended)
    next_observation = copy.deepcopy(observation)
    for row in np.flatnonzero(ended):
        if rows is not None and shown[row] and rows[row] is not None:
            jax.tree.map(lambda batch, final, row=row: batch.__setitem__(row, final), next_observation, rows[row])
        elif truncated[row]:
            raise ValueError(
                f"VectorStepper: environment {row} was truncated and reset in the same step, but info has no"
                " 'final_obs' for it, so there is nothing to bootstrap from. Use AutoresetMode.NEXT_STEP."
            )
    return next_observation
