"""PPO on a frozen lake: several passes over what was just done, as far as the policy has not moved away from it.

Reaches the goal, a return of 1. Schulman et al. 2017, arXiv:1707.06347.
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
    """PPO on a frozen lake.

    Args:
        steps: of the environment.
        seed: decides everything that is drawn.
    """
    triax.envs.register_environments()
    env = triax.wrappers.TrainMonitor(gymnasium.make("FrozenLakeNonSlippery-v0"))
    pi, v = triax.Policy(logits, env, random_seed=seed), triax.V(values, env, random_seed=seed)
    tracer = triax.reward_tracing.NStep(n=5, gamma=0.9)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=256, random_seed=seed)
    simple_td = triax.td_learning.SimpleTD(v, optimizer=optax.adam(0.02))
    entropy = triax.regularizers.EntropyRegularizer(pi, beta=0.001)
    ppo_clip = triax.policy_objectives.PPOClip(pi, optimizer=optax.adam(0.02), regularizer=entropy)

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a, logp = pi(s, return_logp=True)  # the policy that acted is known by its log-probabilities
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, logp, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= buffer.capacity:
                for _ in range(4 * buffer.capacity // 32):
                    batch = buffer.sample(batch_size=32)
                    metrics, td_error = simple_td.update(batch, return_td_error=True)
                    env.record_metrics(metrics)
                    env.record_metrics(ppo_clip.update(batch, Adv=td_error))
                buffer.clear()
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("FrozenLakeNonSlippery-v0"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
