"""Distillation: a small network learns to act as a large one does, wherever the small one goes.

The teacher is trained by PPO; the student, an eighth as wide and of another architecture, reaches nearly its return.
"""

import jax
import jax.numpy as jnp
import tyro
from flax import nnx
from gymnasium.spaces import Box

from triax.algorithms import (
    DistillationConfig,
    DistillationTrainConfig,
    EvalConfig,
    PPOConfig,
    TrainConfig,
    eval_rollout,
    train_distillation,
    train_ppo,
)
from triax.envs import State
from triax.networks import Dense, NormalTanhSampler, PPOAdapter, Sequential, make_mlp_actor_critic


class Reach:
    """Move a point in the plane to the origin, within 50 steps; the price of a step is the distance."""

    observation_space = Box(-2.0, 2.0, (2,))
    action_space = Box(-1.0, 1.0, (2,))

    def reset(self, rng):
        return State.first(jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0), inner={"steps": 0})

    def step(self, state, action):
        place = jnp.clip(state.obs + 0.2 * action, -2.0, 2.0)
        distance, steps = jnp.linalg.norm(place), state.inner["steps"] + 1
        return state.next(place, -distance, distance < 0.1, inner={"steps": steps}, truncated=steps >= 50)


def make_student(rngs):
    """Actor and critic share all but their last layers."""
    actor = Sequential([Dense(8, 4, rngs), NormalTanhSampler(rngs, entropy_weight=0.0, min_std=0.1)])
    return Sequential([Dense(2, 8, rngs, nnx.tanh), PPOAdapter(actor, Dense(8, 1, rngs))])


def main(steps: int = 80_000, seed: int = 0) -> None:
    """Train a teacher, then distil it.

    Args:
        steps: of all environments together, for the teacher and again for the student.
        seed: decides everything that is drawn.
    """
    env, no_evaluations = Reach(), EvalConfig(enabled=False)

    def mean_return(networks):
        metrics = eval_rollout(env, networks, n_envs=128, max_episode_length=50, key=jax.random.key(seed))
        return metrics["eval/episode_reward/mean"]

    teacher = make_mlp_actor_critic(2, 2, (64, 64), (64, 64), nnx.Rngs(seed))
    ppo = PPOConfig(n_envs=32, rollout_length=16, learning_rate=1e-3, total_steps=steps)
    train_ppo(env, teacher, TrainConfig(ppo=ppo, eval=no_evaluations, seed=seed))
    print(f"the teacher: {mean_return(teacher):.2f}")

    student = make_student(nnx.Rngs(seed + 1))
    print(f"the student, before: {mean_return(student):.2f}")
    distillation = DistillationConfig(n_envs=32, rollout_length=16, learning_rate=3e-3, total_steps=steps)
    config = DistillationTrainConfig(distillation=distillation, eval=no_evaluations, seed=seed)
    train_distillation(env, teacher, student, config)
    print(f"return: {mean_return(student):.2f}")


if __name__ == "__main__":
    tyro.cli(main)
