"""Stop and resume: a training is saved on the way, loaded into new networks, and goes on bit for bit.

A checkpoint holds weights, moments, environments, memories and keys, without pickle. Trains PPO to balance a pole for
half of the steps, throws all away, goes on from the checkpoint, and compares with an unbroken run.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import nnx
from gymnasium.spaces import Box, Discrete

from triax.algorithms import (
    EvalConfig,
    PPOConfig,
    TrainConfig,
    load_checkpoint,
    make_checkpoint_fn,
    train_ppo,
)
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
    """PPO that is interrupted.

    Args:
        steps: of all environments together.
        seed: decides everything that is drawn.
    """
    ppo = PPOConfig(
        n_envs=8,
        rollout_length=32,
        gae_lambda=0.8,
        discounting_factor=0.98,
        learning_rate=1e-3,
        n_epochs=20,
        n_minibatches=1,
        gradient_clipping=0.5,
    )
    config = TrainConfig(
        ppo, EvalConfig(every_steps=steps // 2, n_envs=32), seed=seed, checkpoint_every_steps=steps // 2
    )

    def fresh_networks(seed):
        hidden, options = (64, 64), {"activation": "tanh", "normalize_obs": False}
        return make_mlp_actor_critic(4, CartPole.action_space, hidden, hidden, nnx.Rngs(seed), **options)

    env = CartPole()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "checkpoints"
        save = make_checkpoint_fn(directory, config)
        train_ppo(env, fresh_networks(seed), config, total_steps=steps // 2, checkpoint_fn=save)
        saved = load_checkpoint(directory)  # the last one
        print(f"saved after {saved['step']} steps")
        resumed = train_ppo(
            env, fresh_networks(99), saved["config"], total_steps=steps, initial_state=saved["training_state"]
        )
    unbroken = train_ppo(env, fresh_networks(seed), config, total_steps=steps)

    ends = [jax.tree.leaves(nnx.state(result.training_state.networks, nnx.Param)) for result in (resumed, unbroken)]
    same = all(np.array_equal(a, b) for a, b in zip(*ends, strict=True))
    print(f"the weights of both runs are {'the same, bit for bit' if same else 'different'}")
    print(f"return: {resumed.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
