"""Implicit quantile networks on CartPole: quantiles of the return, at fractions that are drawn anew in each call.

Balances the pole for all of the 500 steps, or nearly. Dabney et al. 2018, arXiv:1806.06923.
"""

import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.utils import quantile_cos_embedding, quantiles_uniform

NUM_QUANTILES = 32


class Network(nnx.Module):
    """What an observation says and what a fraction says, multiplied; then one value for each action."""

    def __init__(self, rngs: nnx.Rngs):
        self.observation = nnx.Linear(4, 128, rngs=rngs)
        self.fraction = nnx.Linear(64, 128, rngs=rngs)
        self.hidden = nnx.Linear(128, 128, rngs=rngs)
        self.output = nnx.Linear(128, 2, rngs=rngs)
        self.rngs = rngs

    def __call__(self, S, is_training):
        fractions = quantiles_uniform(self.rngs.fractions(), len(S), NUM_QUANTILES)  # [batch, quantiles]
        embedded = nnx.relu(self.fraction(quantile_cos_embedding(fractions, n=64)))
        x = nnx.relu(self.observation(S))[:, None] * embedded  # [batch, quantiles, features]
        values = jnp.swapaxes(self.output(nnx.relu(self.hidden(x))), 1, 2)  # [batch, actions, quantiles]
        return {"values": values, "quantile_fractions": jnp.broadcast_to(fractions[:, None], values.shape)}


def main(steps: int = 25_000, seed: int = 0) -> None:
    """IQN on CartPole.

    Args:
        steps: of the environment, at most: it stops earlier when ten episodes were good.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("CartPole-v1"))
    q = triax.StochasticQ(Network, env, value_range=None, num_bins=NUM_QUANTILES, random_seed=seed)
    q_targ = q.copy()
    pi = triax.EpsilonGreedy(q)
    tracer = triax.reward_tracing.NStep(n=3, gamma=0.99)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=50_000, random_seed=seed)
    qlearning = triax.td_learning.QLearning(q, q_targ=q_targ, optimizer=optax.adam(1e-3))

    while env.T < steps and env.avg_G < env.spec.reward_threshold:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            pi.epsilon = max(0.05, 1 - env.T / 5_000)
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= 64 and env.T % 2 == 0:
                env.record_metrics(qlearning.update(buffer.sample(batch_size=64)))
                q_targ.soft_update(q, tau=0.01)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("CartPole-v1"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.1f} after {env.T} steps")


if __name__ == "__main__":
    tyro.cli(main)
