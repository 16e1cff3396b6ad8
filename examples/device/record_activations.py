"""What a trained network does inside: the activity of each layer in whole episodes, and a picture of its memory.

A signal of +1 or -1 is shown in the first step, and being near it pays in all eight: the LSTM must keep it, and its
activity stays apart until the end. Reaches a return above 6.5 of the 8 that there are.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import tyro
from flax import nnx
from gymnasium.spaces import Box

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, record_activations_rollout, train_ppo
from triax.envs import State
from triax.networks import LSTM, Dense, NormalTanhSampler, PPOAdapter, Sequential


class Recall:
    """A signal of +1 or -1 is shown in the first step; being near it pays, for 8 steps."""

    observation_space = Box(-1.0, 1.0, (2,))
    action_space = Box(-1.0, 1.0, (1,))

    def reset(self, rng):
        signal = jax.random.rademacher(rng, (), jnp.float32)
        return State.first(jnp.array([signal, 0.0]), inner={"signal": signal, "steps": 0})

    def step(self, state, action):
        signal, steps = state.inner["signal"], state.inner["steps"] + 1
        obs = jnp.array([0.0, steps / 8])
        inner = {"signal": signal, "steps": steps}
        return state.next(obs, 1.0 - jnp.abs(action[0] - signal), False, inner=inner, truncated=steps >= 8)


def make_networks(rngs):
    """Actor and critic on one layer that remembers."""
    actor = Sequential([Dense(16, 2, rngs), NormalTanhSampler(rngs, entropy_weight=1e-3, min_std=0.1)])
    return Sequential([Dense(2, 16, rngs, nnx.tanh), LSTM(16, 16, rngs), PPOAdapter(actor, Dense(16, 1, rngs))])


def main(steps: int = 40_000, picture: str | None = None, seed: int = 0) -> None:
    """Train, record, look.

    Args:
        steps: of all environments together.
        picture: where to save the activity of the LSTM, a PNG.
        seed: decides everything that is drawn.
    """
    env, networks = Recall(), make_networks(nnx.Rngs(seed))
    ppo = PPOConfig(n_envs=64, rollout_length=16, learning_rate=3e-3, discounting_factor=0.95, total_steps=steps)
    config = TrainConfig(ppo=ppo, eval=EvalConfig(every_steps=max(steps // 2, 1), n_envs=64), seed=seed)
    result = train_ppo(env, networks, config)

    activations, _ = record_activations_rollout(
        env, networks, n_envs=64, max_episode_length=8, key=jax.random.key(seed)
    )
    memory = np.asarray(activations["lstm_1"])  # [time, episodes, features]
    signal = memory[0, :, 0] > memory[0, :, 0].mean()  # there are two first observations, hence two groups of episodes
    apart = np.linalg.norm(memory[:, signal].mean(axis=1) - memory[:, ~signal].mean(axis=1), axis=-1)
    print("how far apart the memories of the two signals are:", *(f"{distance:.2f}" for distance in apart))
    if picture is not None:
        figure, axes = plt.subplots(1, 2, sharey=True, figsize=(8, 3))
        for axis, of, title in zip(axes, (signal, ~signal), ("one signal", "the other"), strict=True):
            axis.plot(memory[:, of].mean(axis=1))
            axis.set(title=title, xlabel="step", ylabel="activity of the LSTM")
        figure.savefig(picture, bbox_inches="tight")
    print(f"return: {result.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
