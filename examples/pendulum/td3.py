"""TD3 on Pendulum: DDPG that believes the smaller of two critics, and moves its policy less often.

Swings the pendulum up: a return of about -180, where a random policy has -1200. Fujimoto et al. 2018, arXiv:1802.09477.
With `--distributional` the critics learn quantiles of the return instead of its mean.
"""

import gymnasium
import jax.numpy as jnp
import numpy as np
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
        return {"mu": mu, "logvar": jnp.full_like(mu, jnp.log(0.05))}


class Critic(nnx.Module):
    """The value of a raw action."""

    num_outputs = 1

    def __init__(self, rngs: nnx.Rngs):
        self.first, self.second = nnx.Linear(3 + 1, 64, rngs=rngs), nnx.Linear(64, 64, rngs=rngs)
        self.last = nnx.Linear(64, self.num_outputs, rngs=rngs)

    def outputs(self, S, A):
        x = nnx.relu(self.first(jnp.concatenate([S, jnp.tanh(A)], axis=-1)))
        return self.last(nnx.relu(self.second(x)))

    def __call__(self, S, A, is_training):
        return self.outputs(S, A)[..., 0]


class QuantileCritic(Critic):
    """Quantiles of the return of a raw action, at the midpoints of equal parts."""

    num_outputs = 32

    def __call__(self, S, A, is_training):
        values = self.outputs(S, A)
        return {"values": values, "quantile_fractions": triax.utils.quantiles(len(values), self.num_outputs)}


def main(steps: int = 15_000, distributional: bool = False, seed: int = 0) -> None:
    """TD3 on Pendulum.

    Args:
        steps: of the environment.
        distributional: learn quantiles of the return.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("Pendulum-v1"))
    pi = triax.Policy(Actor, env, random_seed=seed)
    options = {"action_preprocessor": pi.proba_dist.preprocess_variate}
    if distributional:
        options["num_bins"] = QuantileCritic.num_outputs
    make_q, critic = (triax.StochasticQ, QuantileCritic) if distributional else (triax.Q, Critic)
    q1, q2 = (make_q(critic, env, random_seed=seed + i, **options) for i in range(2))
    q1_targ, q2_targ, pi_targ = q1.copy(), q2.copy(), pi.copy()
    noise = np.random.default_rng(seed)
    tracer = triax.reward_tracing.NStep(n=3, gamma=0.97)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=25_000, random_seed=seed)
    qlearnings = [
        triax.td_learning.ClippedDoubleQLearning(
            q,
            pi_targ_list=[pi_targ],
            q_targ_list=[q1_targ, q2_targ],
            optimizer=optax.adam(1e-3),
            loss_function=None if distributional else triax.value_losses.mse,
        )
        for q in (q1, q2)
    ]
    determ_pg = triax.policy_objectives.DeterministicPG(pi, q1_targ, optimizer=optax.adam(1e-3))

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a = (pi.mode(s) + 0.2 * noise.standard_normal(1)).clip(-2, 2).astype(np.float32)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r / 10, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= min(1_000, steps // 2):
                batch = buffer.sample(batch_size=128)
                for qlearning in qlearnings:
                    env.record_metrics(qlearning.update(batch))
                if env.T % 2 == 0:
                    env.record_metrics(determ_pg.update(batch))
                    for targ, f in ((q1_targ, q1), (q2_targ, q2), (pi_targ, pi)):
                        targ.soft_update(f, tau=0.01)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("Pendulum-v1"), num_episodes=10, seed=seed)
    print(f"return: {returns.mean():.0f}")


if __name__ == "__main__":
    tyro.cli(main)
