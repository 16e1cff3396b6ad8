"""Advantage actor-critic on a frozen lake: a critic's surprise tells the actor which actions were better than usual.

Reaches the goal, a return of 1. Mnih et al. 2016, arXiv:1602.01783.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Dense, Sequential


def logits(rngs):
    """One number for each state and action."""
    table = Dense(16, 4, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)
    return Sequential([table, lambda x: {"logits": x}])


def values(rngs):
    """One number for each state."""
    table = Dense(16, 1, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)
    return Sequential([table, lambda x: x[..., 0]])


def main(steps: int = 15_000, seed: int = 0) -> None:
    """A2C on a frozen lake.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    pi, v = triax.Policy(logits, env, random_seed=seed), triax.V(values, env, random_seed=seed)
    tracer = triax.reward_tracing.NStep(n=5, gamma=0.9)
    simple_td = triax.td_learning.SimpleTD(v, optimizer=optax.sgd(0.2))
    vanilla_pg = triax.policy_objectives.VanillaPG(pi, optimizer=optax.sgd(1.0))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a, logp = pi(s, return_logp=True)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, logp, truncated=truncated, s_next=s_next)
            while tracer:
                transition = tracer.pop()
                metrics, td_error = simple_td.update(transition, return_td_error=True)
                env.record_metrics(metrics)
                env.record_metrics(vanilla_pg.update(transition, Adv=td_error))
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
