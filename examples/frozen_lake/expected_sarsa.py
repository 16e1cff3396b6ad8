"""Expected SARSA on a frozen lake: the expectation over the next action, instead of the one that was drawn.

Reaches the goal, a return of 1, also with a whole distribution of returns for each action (`--distributional`).
Van Seijen et al. 2009; the distribution is that of C51, Bellemare et al. 2017.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Dense, Sequential

NUM_BINS = 20


def table(rngs):
    """One number for each state and action."""
    return Dense(16, 4, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)


def histograms(rngs):
    """The logits of a histogram of returns for each state and action."""
    dense = Dense(16, 4 * NUM_BINS, rngs, use_bias=False, kernel_init=nnx.initializers.zeros)
    return Sequential([dense, lambda x: {"logits": x.reshape(-1, 4, NUM_BINS)}])


def main(steps: int = 10_000, distributional: bool = False, seed: int = 0) -> None:
    """Expected SARSA on a frozen lake.

    Args:
        steps: of the environment.
        distributional: learn distributions of returns.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    if distributional:
        q = triax.StochasticQ(histograms, env, value_range=(-1, 2), num_bins=NUM_BINS, random_seed=seed)
    else:
        q = triax.Q(table, env, random_seed=seed)
    pi = triax.BoltzmannPolicy(q, temperature=0.1)
    tracer = triax.reward_tracing.NStep(n=1, gamma=0.9)
    rule = triax.td_learning.ExpectedSarsa(q, pi_targ=pi, optimizer=optax.adam(0.02))

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
                env.record_metrics(rule.update(tracer.pop()))
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
