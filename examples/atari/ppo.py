"""PPO on Pong, from pixels: three frames, their differences, two convolutions. Needs `pip install 'triax[examples]'`.

The games come with ale-py. A full run takes hours: a good player takes some million steps (Schulman et al. 2017,
arXiv:1707.06347).
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
from triax.utils import diff_transform

gymnasium.register_envs(ale_py)


class Vision(nnx.Module):
    """Features of a tuple of frames, the oldest first."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(3, 16, (8, 8), strides=4, padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(16, 32, (4, 4), strides=2, padding="VALID", rngs=rngs)
        self.hidden = nnx.Linear(8 * 8 * 32, 256, rngs=rngs)

    def __call__(self, frames):
        x = diff_transform(jnp.stack(frames, axis=-1) / 255)  # acceleration, velocity, position
        x = nnx.relu(self.conv2(nnx.relu(self.conv1(x))))
        return nnx.relu(self.hidden(x.reshape(len(x), -1)))


class Actor(nnx.Module):
    """Logits, nearly the same for all actions at first."""

    def __init__(self, rngs: nnx.Rngs):
        undecided = nnx.initializers.variance_scaling(1e-4, "fan_in", "uniform")
        self.vision, self.output = Vision(rngs), nnx.Linear(256, 6, rngs=rngs, kernel_init=undecided)

    def __call__(self, S, is_training):
        return {"logits": self.output(self.vision(S))}


class Critic(nnx.Module):
    """One value."""

    def __init__(self, rngs: nnx.Rngs):
        self.vision, self.output = Vision(rngs), nnx.Linear(256, 1, rngs=rngs)

    def __call__(self, S, is_training):
        return self.output(self.vision(S))[..., 0]


def make_pong(num_frames=3):
    """80 x 80 grey pixels of the field, every fourth frame of the game."""
    env = gymnasium.make("ALE/Pong-v5", obs_type="grayscale", frameskip=4, repeat_action_probability=0.0)
    env = TransformObservation(env, lambda frame: frame[34:194:2, ::2].copy(), Box(0, 255, (80, 80), "uint8"))
    return triax.wrappers.FrameStacking(env, num_frames)


def main(steps: int = 5_000_000, rollout: int = 1_024, seed: int = 0) -> None:
    """PPO on Pong.

    Args:
        steps: of the environment.
        rollout: steps between two rounds of learning.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(make_pong())
    pi, v = triax.Policy(Actor, env, random_seed=seed), triax.V(Critic, env, random_seed=seed)
    tracer = triax.reward_tracing.NStep(n=20, gamma=0.99)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=rollout, random_seed=seed)
    entropy = triax.regularizers.EntropyRegularizer(pi, beta=0.01)
    ppo_clip = triax.policy_objectives.PPOClip(pi, optimizer=optax.adam(3e-4), regularizer=entropy, epsilon=0.1)
    simple_td = triax.td_learning.SimpleTD(v, optimizer=optax.adam(3e-4))
    start = time.perf_counter()

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done and env.T < steps:
            a, logp = pi(s, return_logp=True)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, logp, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= buffer.capacity:
                for _ in range(3 * buffer.capacity // 128):
                    batch = buffer.sample(batch_size=128)
                    Adv = simple_td.plain_td_error(batch)
                    env.record_metrics(ppo_clip.update(batch, (Adv - Adv.mean()) / (Adv.std() + 1e-6)))
                    env.record_metrics(simple_td.update(batch))
                buffer.clear()
            done, s = terminated or truncated, s_next
        print(f"{env.T:8d} steps, {env.T / (time.perf_counter() - start):4.0f}/s: {env.G:.0f}, average {env.avg_G:.1f}")

    print(f"return: {env.avg_G:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
