"""Advantage actor-critic on CartPole: the critic's surprise over five steps is the actor's advantage.

Balances the pole for all of the 500 steps, or nearly. Mnih et al. 2016, arXiv:1602.01783.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate
from triax.networks import Sequential, make_mlp


def actor(rngs):
    """The logits of the actions."""
    return Sequential([make_mlp([4, 64, 2], rngs, nnx.tanh, activation_last_layer=False), lambda x: {"logits": x}])


def critic(rngs):
    """One value."""
    return Sequential([make_mlp([4, 64, 1], rngs, nnx.tanh, activation_last_layer=False), lambda x: x[..., 0]])


def main(steps: int = 60_000, seed: int = 0) -> None:
    """A2C on CartPole.

    Args:
        steps: of the environment, at most: it stops earlier when ten episodes were good.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("CartPole-v1"))
    pi, v = triax.Policy(actor, env, random_seed=seed), triax.V(critic, env, random_seed=seed)
    tracer = triax.reward_tracing.NStep(n=5, gamma=0.95)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=64, random_seed=seed)
    entropy = triax.regularizers.EntropyRegularizer(pi, beta=0.01)
    vanilla_pg = triax.policy_objectives.VanillaPG(pi, optimizer=optax.adam(1e-3), regularizer=entropy)
    simple_td = triax.td_learning.SimpleTD(v, optimizer=optax.adam(2e-3))

    while env.T < steps and env.avg_G < env.spec.reward_threshold:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            a, logp = pi(s, return_logp=True)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, logp, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= buffer.capacity:
                for _ in range(4 * buffer.capacity // 32):
                    batch = buffer.sample(batch_size=32)
                    Adv = simple_td.plain_td_error(batch)  # not clipped as the loss clips it
                    env.record_metrics(vanilla_pg.update(batch, Adv))
                    env.record_metrics(simple_td.update(batch))
                buffer.clear()
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("CartPole-v1"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.1f} after {env.T} steps")


if __name__ == "__main__":
    tyro.cli(main)
