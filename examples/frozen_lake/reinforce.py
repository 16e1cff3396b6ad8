"""REINFORCE on a frozen lake: after each episode, what was done becomes more likely in proportion to what followed.

Reaches the goal, a return of 1. Williams 1992; Sutton & Barto 2018, section 13.3.
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


def main(steps: int = 15_000, seed: int = 0) -> None:
    """REINFORCE on a frozen lake.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    pi = triax.Policy(logits, env, random_seed=seed)
    tracer = triax.reward_tracing.MonteCarlo(gamma=0.9)
    vanilla_pg = triax.policy_objectives.VanillaPG(pi, optimizer=optax.sgd(0.5))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a, logp = pi(s, return_logp=True)
            s_next, r, terminated, truncated, _ = env.step(a)
            done = terminated or truncated  # without a critic, nothing stands for what a time limit cuts off
            tracer.add(s, a, r, done, logp)
            while tracer:
                transition = tracer.pop()
                env.record_metrics(vanilla_pg.update(transition, Adv=transition.Rn))
            s = s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
