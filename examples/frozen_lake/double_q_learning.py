"""Double Q-learning on a frozen lake: one table picks the next action, another one, which follows it, tells its value.

Reaches the goal, a return of 1. Van Hasselt et al. 2015, arXiv:1509.06461.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Dense


def table(rngs):
    """One number for each state and action."""
    return Dense(16, 4, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)


def main(steps: int = 10_000, seed: int = 0) -> None:
    """Double Q-learning on a frozen lake.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    q = triax.Q(table, env, random_seed=seed)
    q_targ = q.copy()
    pi = triax.BoltzmannPolicy(q, temperature=0.1)
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.9)
    qlearning = triax.td_learning.DoubleQLearning(q, q_targ=q_targ, optimizer=optax.adam(0.02))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            if s_next == s:
                r = -0.01  # a small price for walking against a wall
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                env.record_metrics(qlearning.update(tracer.pop()))
                q_targ.soft_update(q, tau=0.1)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
