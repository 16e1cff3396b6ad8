"""Observations that come late: PPO on a pole that is seen as it was some steps ago, with memory and without.

`Delay` is a layer of the network like any other; the memory that it needs is carried through acting, learning and the
ends of episodes. What the LSTM behind it remembers makes up for the delay; without it (`--no-memory`) the pole falls.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import nnx
from gymnasium.spaces import Box, Discrete

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, train_ppo
from triax.envs import State
from triax.networks import LSTM, Delay, Dense, DistributionSampler, PPOAdapter, Sequential


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


def make_networks(space, delay, memory, rngs):
    """An actor that sees late, and a critic that does not: it is there in training only."""
    sampler = DistributionSampler(space, rngs)
    second = LSTM(64, 64, rngs) if memory else Dense(64, 64, rngs, nnx.tanh)
    undecided = nnx.initializers.variance_scaling(1e-4, "fan_in", "uniform")
    late = [Delay(jnp.zeros(4), k_steps=delay)] if delay else []
    actor = [*late, Dense(4, 64, rngs, nnx.tanh), second, Dense(64, sampler.num_params, rngs, kernel_init=undecided)]
    critic = [Dense(4, 64, rngs, nnx.tanh), Dense(64, 64, rngs, nnx.tanh), Dense(64, 1, rngs)]
    return PPOAdapter(Sequential([*actor, sampler]), Sequential(critic))


def main(steps: int = 200_000, delay: int = 5, memory: bool = True, seed: int = 1) -> None:
    """Balance a pole that is seen late.

    Args:
        steps: of all environments together.
        delay: how many steps late.
        memory: whether the actor remembers.
        seed: decides everything that is drawn.
    """
    env = CartPole()
    networks = make_networks(env.action_space, delay, memory, nnx.Rngs(seed))
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
