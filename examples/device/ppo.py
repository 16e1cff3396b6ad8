"""PPO on an environment that is written in JAX: environments, acting and learning are one compiled program.

Balances the pole for all of the 500 steps. An environment is two pure functions for one episode, `reset` and `step`;
the library vectorizes it and resets it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import nnx
from gymnasium.spaces import Box, Discrete

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, train_ppo
from triax.envs import State
from triax.networks import make_mlp_actor_critic


class CartPole:
    """Push a cart so that the pole on it does not fall, within 500 steps (Barto, Sutton & Anderson 1983)."""

    observation_space = Box(-np.inf, np.inf, (4,))
    action_space = Discrete(2)

    def reset(self, rng):
        return State.first(jax.random.uniform(rng, (4,), minval=-0.05, maxval=0.05), inner={"steps": 0})

    def step(self, state, action):
        _, speed, angle, spin = state.obs
        sin, cos, steps = jnp.sin(angle), jnp.cos(angle), state.inner["steps"] + 1
        push = (jnp.where(action == 1, 10.0, -10.0) + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (2 / 3 - 0.05 * cos**2 / 1.1)
        change = jnp.stack([speed, push - 0.05 * turn * cos / 1.1, spin, turn])
        obs = state.obs + 0.02 * change
        fell = (jnp.abs(obs[0]) > 2.4) | (jnp.abs(obs[2]) > 0.2095)
        return state.next(obs, 1.0, fell, inner={"steps": steps}, truncated=steps >= 500)


def main(steps: int = 100_000, seed: int = 1) -> None:
    """PPO on the device.

    Args:
        steps: of all environments together.
        seed: decides everything that is drawn.
    """
    env = CartPole()
    networks = make_mlp_actor_critic(
        4, env.action_space, (64, 64), (64, 64), nnx.Rngs(seed), activation="tanh", normalize_obs=False
    )
    config = TrainConfig(
        ppo=PPOConfig(
            n_envs=8,
            rollout_length=32,
            total_steps=steps,
            gae_lambda=0.8,
            discounting_factor=0.98,
            learning_rate=1e-3,
            n_epochs=20,
            n_minibatches=1,
            gradient_clipping=0.5,
        ),
        eval=EvalConfig(every_steps=max(steps // 5, 1), n_envs=32),
        seed=seed,
    )

    def log(metrics, steps):
        if "eval/episode_reward/mean" in metrics:
            print(f"{steps:7d} steps: {metrics['eval/episode_reward/mean']:.1f}")

    result = train_ppo(env, networks, config, log_fn=log)  # the networks are trained in place
    print(f"return: {result.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
