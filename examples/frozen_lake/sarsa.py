"""SARSA on a frozen lake that is not slippery: the q-function of the policy that acts, from each transition at once.

Reaches the goal, a return of 1. Sutton & Barto 2018, section 6.4.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Dense


def table(rngs):
    """One number for each state and action: a linear layer on a one-hot state is a table."""
    return Dense(16, 4, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)


def main(steps: int = 10_000, seed: int = 0) -> None:
    """SARSA on a frozen lake.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    q = triax.Q(table, env, random_seed=seed)
    pi = triax.EpsilonGreedy(q, epsilon=1.0)
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.9)
    sarsa = triax.td_learning.Sarsa(q, optimizer=optax.sgd(0.3))

    while env.T < steps:
        pi.epsilon = max(0.1, 1 - 2 * env.T / steps)
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            # Without s_next the tracer waits for the next step, whose action is what SARSA bootstraps from. A time
            # limit ends the tracing too: nothing is known of what would have been done next.
            tracer.add(s, a, r, terminated or truncated)
            while tracer:
                env.record_metrics(sarsa.update(tracer.pop()))
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
