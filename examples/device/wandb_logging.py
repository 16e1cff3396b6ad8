"""Weights & Biases: every iteration and every evaluation of a training, offline unless you say so.

Needs `pip install 'triax[wandb]'`. `log_fn` is any function of metrics and steps; videos go there by `wandb_video_fn`.
What was logged offline is sent later by `wandb sync`. From the command line, `triax train ppo ENV --wandb` does this.
"""

import jax
import jax.numpy as jnp
import tyro
import wandb
from flax import nnx
from gymnasium.spaces import Box

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, train_ppo
from triax.envs import State
from triax.networks import make_mlp_actor_critic


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


def main(steps: int = 80_000, mode: str = "offline", directory: str = "runs", seed: int = 0) -> None:
    """PPO, logged to Weights & Biases.

    Args:
        steps: of all environments together.
        mode: "offline", "online" or "disabled".
        directory: where the run is written.
        seed: decides everything that is drawn.
    """
    ppo = PPOConfig(n_envs=32, rollout_length=16, learning_rate=1e-3, total_steps=steps)
    evaluating = EvalConfig(every_steps=max(steps // 5, 1), n_envs=64, max_episode_length=50)
    config = TrainConfig(ppo=ppo, eval=evaluating, seed=seed)
    networks = make_mlp_actor_critic(2, 2, (32, 32), (32, 32), nnx.Rngs(seed))

    with wandb.init(project="triax", mode=mode, dir=directory, config={"ppo": vars(ppo), "seed": seed}) as run:
        result = train_ppo(Reach(), networks, config, log_fn=lambda metrics, steps: run.log(metrics, step=steps))
    print(f"return: {result.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
