"""A network of populations: what is connected with what, how late, and with loops, trained by PPO to balance a pole.

A `PopulationGraph` has inputs, populations and outputs; a connection may have a delay, and loops are allowed where they
have one. It is a layer like any other, and its memory (the activity under way) is carried like any other's.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import nnx
from gymnasium.spaces import Box, Discrete

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, train_ppo
from triax.envs import State
from triax.networks import Dense, DistributionSampler, PopulationGraph, PPOAdapter, Sequential


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


def make_networks(space, rngs):
    """Eye to cortex to hand, a reflex beside it, and a cortex that hears itself a step later."""
    sampler = DistributionSampler(space, rngs)
    brain = PopulationGraph(rngs)
    brain.add_input("eye", 4)
    brain.add_population("cortex", 32, activation=nnx.tanh)
    brain.add_population("reflex", 8, activation=nnx.tanh)
    brain.add_output("hand", sampler.num_params)
    brain.connect("eye", "cortex")
    brain.connect("cortex", "cortex", delay=1)
    brain.connect("cortex", "hand", delay=1)
    brain.connect("eye", "reflex")
    brain.connect("reflex", "hand")
    brain.finalize()
    critic = Sequential([Dense(4, 64, rngs, nnx.tanh), Dense(64, 1, rngs)])
    return PPOAdapter(Sequential([brain, lambda out: out["hand"], sampler]), critic)


def main(steps: int = 150_000, seed: int = 1) -> None:
    """Train a graph of populations.

    Args:
        steps: of all environments together.
        seed: decides everything that is drawn.
    """
    env = CartPole()
    networks = make_networks(env.action_space, nnx.Rngs(seed))
    config = TrainConfig(
        ppo=PPOConfig(
            n_envs=16,
            rollout_length=32,
            total_steps=steps,
            gae_lambda=0.9,
            discounting_factor=0.98,
            learning_rate=1e-3,
            n_epochs=10,
            n_minibatches=2,
            gradient_clipping=0.5,
        ),
        eval=EvalConfig(every_steps=max(steps // 5, 1), n_envs=32),
        seed=seed,
    )
    result = train_ppo(env, networks, config)
    for evaluation in result.eval_history:
        print(f"{evaluation['step']:7d} steps: {evaluation['eval/episode_reward/mean']:.1f}")
    print(f"return: {result.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
