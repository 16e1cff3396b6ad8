"""Distributional SAC on Pendulum: the critics learn quantiles of the return, the policy climbs their mean.

Swings the pendulum up: a return of about -150, where a random policy has -1200. Haarnoja et al. 2018, arXiv:1812.05905;
Dabney et al. 2017, arXiv:1710.10044.
"""

import gymnasium
import jax.numpy as jnp
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.proba_dists import SquashedNormalDist

NUM_QUANTILES = 32


class Actor(nnx.Module):
    """Mean and spread of the action before it is squashed into its bounds."""

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = nnx.Linear(3, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
        self.mu, self.logvar = nnx.Linear(64, 1, rngs=rngs), nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, S, is_training):
        x = nnx.relu(self.second(nnx.relu(self.first(S))))
        return {"mu": self.mu(x), "logvar": 3 * jnp.tanh(self.logvar(x)) - 3}  # a spread within [0.05, 1]


class Critic(nnx.Module):
    """Quantiles of the return of an action, at the midpoints of equal parts."""

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = nnx.Linear(3 + 1, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
        self.last = nnx.Linear(64, NUM_QUANTILES, rngs=rngs)

    def __call__(self, S, A, is_training):
        x = nnx.relu(self.first(jnp.concatenate([S, A], axis=-1)))
        values = self.last(nnx.relu(self.second(x)))
        return {"values": values, "quantile_fractions": triax.utils.quantiles(len(values), NUM_QUANTILES)}


def main(steps: int = 15_000, alpha: float = 0.02, seed: int = 0) -> None:
    """Distributional SAC on Pendulum.

    Args:
        steps: of the environment.
        alpha: the worth of a nat of entropy, in units of the scaled reward.
        seed: decides everything that is drawn.
    """
    n, gamma = 3, 0.97
    env = triax.wrappers.TrainMonitor(gymnasium.make("Pendulum-v1"))
    pi = triax.Policy(Actor, env, proba_dist=SquashedNormalDist(env.action_space), random_seed=seed)
    share = {"action_preprocessor": pi.proba_dist.preprocess_variate}
    q1, q2 = (triax.StochasticQ(Critic, env, num_bins=NUM_QUANTILES, random_seed=seed + i, **share) for i in range(2))
    q1_targ, q2_targ = q1.copy(), q2.copy()
    tracer = triax.reward_tracing.NStep(n=n, gamma=gamma, record_extra_info=True)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=25_000, random_seed=seed)
    # The target counts the entropy of the state that it bootstraps from, the policy that of all states on the way.
    Entropy = triax.regularizers.NStepEntropyRegularizer
    qlearnings = [
        triax.td_learning.SoftClippedDoubleQLearning(
            q,
            pi_targ_list=[pi],
            q_targ_list=[q1_targ, q2_targ],
            optimizer=optax.adam(1e-3),
            policy_regularizer=Entropy(pi, n=[n], beta=alpha, gamma=gamma),
        )
        for q in (q1, q2)
    ]
    soft_pg = triax.policy_objectives.SoftPG(
        pi,
        [q1_targ, q2_targ],
        optimizer=optax.adam(1e-3),
        regularizer=Entropy(pi, n=list(range(n)), beta=alpha / n, gamma=gamma),
    )

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r / 10, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= min(1_000, steps // 2):
                batch = buffer.sample(batch_size=128)
                for qlearning in qlearnings:
                    env.record_metrics(qlearning.update(batch))
                env.record_metrics(soft_pg.update(batch))
                q1_targ.soft_update(q1, tau=0.005)
                q2_targ.soft_update(q2, tau=0.005)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("Pendulum-v1"), num_episodes=10, seed=seed)
    print(f"return: {returns.mean():.0f}")


if __name__ == "__main__":
    tyro.cli(main)
