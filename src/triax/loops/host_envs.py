"""Gymnasium environments as agents see them: clean arrays of fixed dtypes in, members of the action space out."""

from typing import NamedTuple

import gymnasium
import jax
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Bool, Float, PyTree

from triax.core import random
from triax.core.env_arguments import refuse_unmade_env
from triax.core.keys import Key
from triax.loops.vector_env import VectorStepper, vectorize
from triax.spaces import batch_decoder, batch_encoder


class Outcome(NamedTuple):
    """What acting led to; leaves ``[num_envs, ...]``, NumPy. Where ``weight`` is 0 nobody took the step: it has no
    reward and is truncated.
    """

    reward: Float[np.ndarray, " envs"]
    terminated: Bool[np.ndarray, " envs"]
    truncated: Bool[np.ndarray, " envs"]
    next_observation: PyTree
    weight: Float[np.ndarray, " envs"] | None

    @property
    def done(self) -> Bool[np.ndarray, " envs"]:
        """Where memory is reset."""
        return self.terminated | self.truncated

    @property
    def taken(self) -> int:
        """In how many environments the step was taken."""
        return len(self.reward) if self.weight is None else int(self.weight.sum())

    @property
    def ended(self) -> int:
        """In how many of them an episode ended."""
        done = self.done if self.weight is None else self.done & (self.weight > 0)
        return int(np.count_nonzero(done))


class HostEnvs:
    """A Gymnasium vector environment in any autoreset mode, or one environment, which becomes a vector of one.

    ``observation_space`` and ``action_space`` are those of one environment, so that agents can be made from it.

    Raises:
        TypeError: it is neither, or its spaces are not supported.
    """

    def __init__(self, env: gymnasium.Env | VectorEnv, *, who: str) -> None:
        refuse_unmade_env(who, env)
        self._stepper = VectorStepper(vectorized := vectorize(env))
        self.num_envs: int = vectorized.num_envs
        self.observation_space = vectorized.single_observation_space
        self.action_space = vectorized.single_action_space
        self._encode = batch_encoder(self.observation_space, who=who, argument="observation")
        self._decode = batch_decoder(self.action_space)

    @property
    def weighted(self) -> bool:
        """Whether outcomes have a weight: there are steps that nobody takes."""
        return self._stepper.skips

    def reset(self, key: Key) -> PyTree:
        """The first observations of all environments, which are seeded with what ``key`` draws."""
        seed = int(_bits(key)) >> 1  # 31 bits: seeds are signed in many an environment
        return self._encode(self._stepper.reset(seed=seed))

    def step(self, action: PyTree) -> tuple[PyTree, Outcome]:
        """``(observation, outcome)``: what to act on next, and what the clean arrays ``action`` led to."""
        step = self._stepper.step(self._decode(action))
        observation = self._encode(step.observation)
        goes_on = step.next_observation is step.observation
        following = observation if goes_on else self._encode(step.next_observation)
        if not self.weighted:
            return observation, Outcome(step.reward, step.terminated, step.truncated, following, None)
        valid = step.valid
        reward = np.where(valid, step.reward, np.float32(0))
        outcome = Outcome(reward, step.terminated & valid, step.truncated | ~valid, following, valid.astype(np.float32))
        return observation, outcome


_bits = jax.jit(random.bits)
