"""A JAX environment as a Gymnasium vector environment, which draws what the loops on the device draw."""

from functools import partial

import jax
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from triax.core.keys import fold_name
from triax.envs import AutoReset


class JaxVectorEnv(VectorEnv):
    """Resets in the same step; ``key`` is the one that the loop is given."""

    def __init__(self, env, num_envs, key):
        self._env, self.num_envs = AutoReset(env), num_envs
        self._keys = jax.random.split(fold_name(key, "envs"), num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        self._state = _reset(self._env, self._keys)
        return jax.device_get(self._state.obs), {}

    def step(self, actions):
        self._state = _step(self._env, self._state, jax.tree.map(partial(np.asarray, dtype=_dtype(actions)), actions))
        told = jax.device_get(self._state)
        finals, done = np.empty(self.num_envs, object), told.terminated | told.truncated
        for row in np.flatnonzero(done):
            finals[row] = jax.tree.map(lambda leaf, row=row: leaf[row], told.final_obs)
        info = {"final_obs": finals, "_final_obs": done} if done.any() else {}
        return told.obs, told.reward, told.terminated, told.truncated, info


def _dtype(actions):
    return np.int32 if np.issubdtype(jax.tree.leaves(actions)[0].dtype, np.integer) else np.float32


@partial(jax.jit, static_argnums=0)
def _reset(env, keys):
    return jax.vmap(env.reset)(keys)


@partial(jax.jit, static_argnums=0)
def _step(env, state, action):
    return jax.vmap(env.step)(state, action)
