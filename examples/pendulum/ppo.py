"""PPO on Pendulum, by its concepts: a copy of the policy acts, several passes over what it did move the policy.

Swings the pendulum up: a return of about -200, where a random policy has -1200. Schulman et al. 2017, arXiv:1707.06347.
"""

import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Sequential, make_mlp


class Actor(nnx.Module):
    """The mean of the raw action, and a spread that does not depend on the observation."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden, self.mu = nnx.Linear(3, 64, rngs=rngs), nnx.Linear(64, 1, rngs=rngs)
        self.logvar = nnx.Param(jnp.zeros(1))

    def __call__(self, S, is_training):
        mu = self.mu(nnx.tanh(self.hidden(S)))
        return {"mu": mu, "logvar": jnp.broadcast_to(self.logvar[...], mu.shape)}


def critic(rngs):
    """One value."""
    return Sequential([make_mlp([3, 64, 1], rngs, nnx.tanh, activation_last_layer=False), lambda x: x[..., 0]])


def main(steps: int = 100_000, rollout: int = 1_024, seed: int = 0) -> None:
    """PPO on Pendulum.

    Args:
        steps: of the environment.
        rollout: steps between two rounds of learning.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("Pendulum-v1"))
    pi, v = triax.Policy(Actor, env, random_seed=seed), triax.V(critic, env, random_seed=seed)
    pi_behavior = pi.copy()
    tracer = triax.reward_tracing.NStep(n=10, gamma=0.95)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=rollout, random_seed=seed)
    simple_td = triax.td_learning.SimpleTD(v, optimizer=optax.adam(2e-3), loss_function=triax.value_losses.mse)
    ppo_clip = triax.policy_objectives.PPOClip(pi, optimizer=optax.adam(1e-3))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a, logp = pi_behavior(s, return_logp=True)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r / 10, terminated, logp, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= buffer.capacity:
                for _ in range(10 * rollout // 128):
                    batch = buffer.sample(batch_size=128)
                    Adv = simple_td.plain_td_error(batch)
                    Adv = (Adv - Adv.mean()) / (Adv.std() + 1e-6)
                    env.record_metrics(ppo_clip.update(batch, Adv))
                    env.record_metrics(simple_td.update(batch))
                buffer.clear()
                pi_behavior.soft_update(pi, tau=1.0)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("Pendulum-v1"), num_episodes=10, seed=seed)
    print(f"return: {returns.mean():.0f}")


if __name__ == "__main__":
    tyro.cli(main)
