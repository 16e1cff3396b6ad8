"""DDPG on Pendulum: a deterministic policy climbs a critic, and explores with noise that drifts.

Swings the pendulum up: a return of about -160, where a random policy has -1200. Lillicrap et al. 2016,
arXiv:1509.02971.
"""

import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate


class Actor(nnx.Module):
    """The raw action; its spread is only there because a policy has one."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden, self.mu = nnx.Linear(3, 64, rngs=rngs), nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, S, is_training):
        mu = self.mu(nnx.relu(self.hidden(S)))
        return {"mu": mu, "logvar": jnp.full_like(mu, -10.0)}


class Critic(nnx.Module):
    """The value of a raw action."""

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = nnx.Linear(3 + 1, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
        self.output = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, S, A, is_training):
        x = nnx.relu(self.first(jnp.concatenate([S, jnp.tanh(A)], axis=-1)))
        return self.output(nnx.relu(self.second(x)))[..., 0]


def main(steps: int = 15_000, seed: int = 0) -> None:
    """DDPG on Pendulum.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("Pendulum-v1"))
    pi = triax.Policy(Actor, env, random_seed=seed)
    q = triax.Q(Critic, env, action_preprocessor=pi.proba_dist.preprocess_variate, random_seed=seed)
    q_targ, pi_targ = q.copy(), pi.copy()
    noise = triax.utils.OrnsteinUhlenbeckNoise(sigma=0.4, theta=0.15, min_value=-2.0, max_value=2.0, random_seed=seed)
    tracer = triax.reward_tracing.NStep(n=3, gamma=0.97)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=25_000, random_seed=seed)
    mse = triax.value_losses.mse
    qlearning = triax.td_learning.QLearning(q, pi_targ, q_targ, optimizer=optax.adam(1e-3), loss_function=mse)
    determ_pg = triax.policy_objectives.DeterministicPG(pi, q_targ, optimizer=optax.adam(1e-3))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        noise.reset()
        noise.sigma *= 0.99
        done = False
        while not done:
            a = noise(pi.mode(s))
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r / 10, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= min(1_000, steps // 2):
                batch = buffer.sample(batch_size=128)
                env.record_metrics(qlearning.update(batch))
                env.record_metrics(determ_pg.update(batch))
                q_targ.soft_update(q, tau=0.005)
                pi_targ.soft_update(pi, tau=0.005)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("Pendulum-v1"), num_episodes=10, seed=seed)
    print(f"return: {returns.mean():.0f}")


if __name__ == "__main__":
    tyro.cli(main)
