"""FrameStacking: the last few observations in one."""

import collections
import copy
from typing import Any

import gymnasium
import numpy as np

from triax.core.env_arguments import check_gymnasium_env


class FrameStacking(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """Observations are tuples of the last ``num_frames`` ones, the oldest first.

    The space is ``Tuple((space,) * num_frames)``; ``reset`` repeats its observation, so no stack holds two
    episodes. No two stacks share an array. Networks stack the frames, ``jnp.stack(S, axis=-1)``, and replay
    stores each once. Raises ``TypeError`` unless ``num_frames`` is a positive int.
    """

    def __init__(self, env: gymnasium.Env, num_frames: int):
        check_gymnasium_env("FrameStacking", env)
        gymnasium.utils.RecordConstructorArgs.__init__(self, num_frames=num_frames)  # for gymnasium.make(env.spec)
        gymnasium.Wrapper.__init__(self, env)
        if not isinstance(num_frames, (int, np.integer)) or isinstance(num_frames, bool) or num_frames < 1:
            raise TypeError(f"FrameStacking: num_frames must be a positive int; got {num_frames!r}.")
        self.num_frames = int(num_frames)
        self.observation_space = gymnasium.spaces.Tuple((env.observation_space,) * self.num_frames)
        self._frames: collections.deque[Any] = collections.deque(maxlen=self.num_frames)

    def reset(self, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Resets the environment, with its ``seed`` and ``options``, and repeats the first frame."""
        frame, info = self.env.reset(**kwargs)
        self._frames.extend([frame] * self.num_frames)
        return self._stack(), info

    def step(self, action: Any) -> tuple[tuple[Any, ...], Any, bool, bool, dict[str, Any]]:
        """Steps, and drops the oldest frame for the new one."""
        if not self._frames:
            raise gymnasium.error.ResetNeeded("FrameStacking: step before the first reset. Try reset() first.")
        frame, r, terminated, truncated, info = self.env.step(action)
        self._frames.append(frame)
        return self._stack(), r, bool(terminated), bool(truncated), info

    def _stack(self) -> tuple[Any, ...]:
        """Copies, so that what a user does to one stack is not seen in the next."""
        return tuple(copy.deepcopy(frame) for frame in self._frames)
