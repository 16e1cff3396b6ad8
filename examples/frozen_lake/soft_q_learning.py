"""Soft Q-learning on a frozen lake: values that count randomness as worth something, and the policy that is best then.

Policy and rule share one temperature. At 0.02 a random step is worth 0.02 log(4): too little to prefer a long life to
the goal. Reaches it, a return of 1. Haarnoja et al. 2017, arXiv:1702.08165.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Dense


def table(rngs):
    """One number for each state and action, large at first: what was not tried is thought to be good."""
    return Dense(16, 4, rngs, use_bias=False, kernel_init=nnx.initializers.ones)


def main(steps: int = 10_000, temperature: float = 0.02, seed: int = 0) -> None:
    """Soft Q-learning on a frozen lake.

    Args:
        steps: of the environment.
        temperature: the worth of a nat of entropy, in units of reward.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    q = triax.Q(table, env, random_seed=seed)
    pi = triax.BoltzmannPolicy(q, temperature=temperature)
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.9)
    qlearning = triax.td_learning.SoftQLearning(q, optimizer=optax.sgd(0.3), temperature=temperature)

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                env.record_metrics(qlearning.update(tracer.pop()))
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
