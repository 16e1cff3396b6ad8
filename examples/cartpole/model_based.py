"""A one-step look-ahead on CartPole: a learned model says where an action leads, a value function how good it is there.

The policy is greedy with respect to r(s, a) + gamma v(s'(s, a)): no q-function is learned. Balances the pole for all
of the 500 steps, or nearly. Values are those of the policy that acts, so replay is short. Sutton & Barto 2018, section
8.1.
"""

import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Sequential, make_mlp


class Transition(nnx.Module):
    """The next observation: this one and a change, linear in observation and action."""

    def __init__(self, rngs: nnx.Rngs):
        self.change = nnx.Linear(4 + 2, 4, rngs=rngs, kernel_init=nnx.initializers.zeros)

    def __call__(self, S, A, is_training):
        return S + self.change(jnp.concatenate([S, A], axis=-1))


class Reward(nnx.Module):
    """The reward of an action."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden, self.output = nnx.Linear(4 + 2, 32, rngs=rngs), nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, S, A, is_training):
        return self.output(nnx.tanh(self.hidden(jnp.concatenate([S, A], axis=-1))))[..., 0]


def value(rngs):
    """The value of an observation."""
    return Sequential([make_mlp([4, 64, 64, 1], rngs, nnx.tanh, activation_last_layer=False), lambda x: x[..., 0]])


def main(steps: int = 25_000, seed: int = 0) -> None:
    """Learn a model of CartPole and act by looking ahead.

    Args:
        steps: of the environment, at most: it stops earlier when ten episodes were good.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("CartPole-v1"))
    p = triax.TransitionModel(Transition, env, random_seed=seed)
    v = triax.V(value, env, observation_preprocessor=p.observation_preprocessor, random_seed=seed)
    r = triax.RewardFunction(Reward, env, observation_preprocessor=p.observation_preprocessor, random_seed=seed)
    q = triax.SuccessorStateQ(v, p, r, gamma=0.98)
    pi = triax.EpsilonGreedy(q, epsilon=0.02)
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.98)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=2_000, random_seed=seed)
    v_targ = v.copy()
    rules = [
        triax.td_learning.SimpleTD(v, v_targ, optimizer=optax.adam(1e-3)),
        triax.model_updaters.ModelUpdater(p, optimizer=optax.adam(3e-3)),
        triax.model_updaters.ModelUpdater(r, optimizer=optax.adam(1e-3)),
    ]

    while env.T < steps and env.avg_G < env.spec.reward_threshold:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = pi(s)
            s_next, reward, terminated, truncated, _ = env.step(a)
            # Nothing but the reward tells the look-ahead that an episode ends.
            tracer.add(s, a, 0.0 if terminated else reward, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= 64:
                batch = buffer.sample(batch_size=64)
                for rule in rules:
                    env.record_metrics(rule.update(batch))
                v_targ.soft_update(v, tau=0.05)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("CartPole-v1"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.1f} after {env.T} steps")


if __name__ == "__main__":
    tyro.cli(main)
