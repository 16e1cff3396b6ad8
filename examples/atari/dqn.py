"""DQN on Pong, from pixels: three frames, their differences, two convolutions. Needs `pip install 'triax[examples]'`.

The games come with ale-py. Frames are kept once in replay and stacked by the network. A full run takes hours: the first
points are won after some hundred thousand steps, and a good player takes a million or two (Mnih et al. 2015).
"""

import time

import ale_py
import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx
from gymnasium.spaces import Box
from gymnasium.wrappers import TransformObservation

import triax
from triax.core import StepwiseLinearFunction
from triax.utils import diff_transform

gymnasium.register_envs(ale_py)


class Network(nnx.Module):
    """One value for each action, from a tuple of frames, the oldest first."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(3, 16, (8, 8), strides=4, padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (4, 4), strides=2, padding="VALID", rngs=rngs)
        self.hidden, self.output = nnx.Linear(8 * 8 * 32, 256, rngs=rngs), nnx.Linear(256, 6, rngs=rngs)

    def __call__(self, S, is_training):
        x = diff_transform(jnp.stack(S, axis=-1) / 255)  # acceleration, velocity, position
        x = nnx.relu(self.conv2(nnx.relu(self.conv1(x))))
        return self.output(nnx.relu(self.hidden(x.reshape(len(x), -1))))


def make_pong(num_frames=3):
    """80 x 80 grey pixels of the field, every fourth frame of the game."""
    env = gymnasium.make("ALE/Pong-v5", obs_type="grayscale", frameskip=4, repeat_action_probability=0.0)
    env = TransformObservation(env, lambda frame: frame[34:194:2, ::2].copy(), Box(0, 255, (80, 80), "uint8"))
    return triax.wrappers.FrameStacking(env, num_frames)


def main(steps: int = 2_000_000, warm_up: int = 50_000, capacity: int = 500_000, seed: int = 0) -> None:
    """DQN on Pong.

    Args:
        steps: of the environment.
        warm_up: steps before the first update.
        capacity: transitions that replay keeps, 6.4 kB each.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(make_pong())
    q = triax.Q(Network, env, random_seed=seed)
    q_targ = q.copy()
    pi = triax.EpsilonGreedy(q)
    epsilon = StepwiseLinearFunction((0, 1.0), (warm_up, 1.0), (warm_up + 250_000, 0.1), (warm_up + 1_000_000, 0.01))
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.99)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=capacity, random_seed=seed)
    qlearning = triax.td_learning.QLearning(q, q_targ=q_targ, optimizer=optax.adam(3e-4))
    start = time.perf_counter()

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done and env.T < steps:
            pi.epsilon = epsilon(env.T)
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if env.T > warm_up and env.T % 4 == 0:
                env.record_metrics(qlearning.update(buffer.sample(batch_size=32)))
            if env.period("target", T_period=10_000):
                q_targ.soft_update(q, tau=1)
            done, s = terminated or truncated, s_next
        print(f"{env.T:8d} steps, {env.T / (time.perf_counter() - start):4.0f}/s: {env.G:.0f}, average {env.avg_G:.1f}")

    print(f"return: {env.avg_G:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
