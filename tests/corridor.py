"""A corridor with a goal at its end and a time limit: both ends of an episode, in a JAX environment."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from triax.envs import State


class Corridor:
    """Cells ``0..length-1``, one-hot; action 1 goes right, 0 left; reward 1 and the end in the last cell.

    An episode starts in one of the first two cells and is cut after ``limit`` steps.
    """

    def __init__(self, length=5, limit=9):
        self.length, self.limit = length, limit
        self.observation_space = gymnasium.spaces.Box(0, 1, (length,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, rng):
        cell = jax.random.randint(rng, (), 0, 2)
        return State.first(self._see(cell), {"cell": cell, "steps": 0})

    def step(self, state, action):
        cell = jnp.clip(state.inner["cell"] + 2 * action - 1, 0, self.length - 1)
        steps = state.inner["steps"] + 1
        at_goal = cell == self.length - 1
        return state.next(
            self._see(cell),
            at_goal.astype(jnp.float32),
            at_goal,
            {"cell": cell, "steps": steps},
            truncated=steps >= self.limit,
        )

    def _see(self, cell):
        return jax.nn.one_hot(cell, self.length)


class Recall:
    """The first observation says which action the last step rewards; between them nothing is seen."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length=3):
        self.length = length

    def reset(self, rng):
        cue = jax.random.bernoulli(rng).astype(jnp.int32)
        return State.first(jnp.stack([2.0 * cue - 1, 0.0]), {"cue": cue, "steps": 0})

    def step(self, state, action):
        steps, cue = state.inner["steps"] + 1, state.inner["cue"]
        over = steps >= self.length
        reward = jnp.where(over, 2.0 * (action == cue) - 1, 0.0)
        last = (steps == self.length - 1).astype(jnp.float32)
        return state.next(jnp.stack([0.0, last]), reward, over, {"cue": cue, "steps": steps})
