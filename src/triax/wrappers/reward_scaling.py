"""RewardScalingWrapper: rewards of JAX environments times a number."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from triax.core.keys import Key
from triax.env_protocol import EnvWrapper, restart


class RewardScalingWrapper(EnvWrapper):
    """Multiplies the reward, or each leaf of a pytree of rewards, by ``reward_scale``, in float32.

    States stay of the kind that ``env`` has. Raises ``ValueError`` unless the scale is a finite number.
    """

    def __init__(self, env: Any, reward_scale: int | float):
        super().__init__(env)
        if not math.isfinite(reward_scale):
            raise ValueError(f"RewardScalingWrapper: reward_scale must be finite; got {reward_scale!r}.")
        self.reward_scale = float(reward_scale)

    def reset(self, rng: Key) -> Any:
        """The first state of an episode, its reward scaled."""
        return self._scaled(self.env.reset(rng))

    def restart(self, rng: Key) -> Any:
        """The first state of an episode that is not a training's first."""
        return self._scaled(restart(self.env, rng))

    def step(self, state: Any, action: Any) -> Any:
        """The state after ``action``, its reward scaled."""
        return self._scaled(self.env.step(state, action))

    def _scaled(self, state: Any) -> Any:
        scale = self.reward_scale
        return state.replace(reward=jax.tree.map(lambda r: jnp.asarray(r, jnp.float32) * scale, state.reward))
