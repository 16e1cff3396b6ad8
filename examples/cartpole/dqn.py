"""DQN on CartPole: Q-learning with a neural network, from replay, towards a second network that follows slowly.

Balances the pole for all of the 500 steps, or nearly. Mnih et al. 2015; with `--prioritized`, replay prefers what was
learned least: Schaul et al. 2015, arXiv:1511.05952.
"""

import gymnasium
import optax
import tyro
from flax import nnx

import triax
from triax.core import StepwiseLinearFunction
from triax.experience_replay import PrioritizedReplayBuffer, SimpleReplayBuffer
from triax.loops import evaluate
from triax.networks import make_mlp


def network(rngs):
    """One value for each action."""
    return make_mlp([4, 128, 128, 2], rngs, nnx.relu, activation_last_layer=False)


def main(steps: int = 25_000, prioritized: bool = False, seed: int = 0) -> None:
    """DQN on CartPole.

    Args:
        steps: of the environment, at most: it stops earlier when ten episodes were good.
        prioritized: replay in proportion to the TD error.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(gymnasium.make("CartPole-v1"))
    q = triax.Q(network, env, random_seed=seed)
    q_targ = q.copy()
    pi = triax.EpsilonGreedy(q)
    epsilon = StepwiseLinearFunction((0, 1.0), (5_000, 0.05))
    beta = StepwiseLinearFunction((0, 0.4), (steps, 1.0))
    tracer = triax.reward_tracing.NStep(n=3, gamma=0.99)
    Buffer = PrioritizedReplayBuffer if prioritized else SimpleReplayBuffer
    buffer = Buffer(capacity=50_000, random_seed=seed)
    qlearning = triax.td_learning.QLearning(q, q_targ=q_targ, optimizer=optax.adam(1e-3))

    while env.T < steps and env.avg_G < env.spec.reward_threshold:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        done = False
        while not done:
            pi.epsilon = epsilon(env.T)
            a = pi(s)
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())  # of prioritized replay: with the largest priority so far
            if len(buffer) >= 64:
                batch = buffer.sample(batch_size=64)
                metrics, td_error = qlearning.update(batch, return_td_error=True)
                if prioritized:
                    buffer.update(batch.idx, td_error)
                    buffer.beta = beta(env.T)
                env.record_metrics(metrics)
                q_targ.soft_update(q, tau=0.005)
            done, s = terminated or truncated, s_next

    returns = evaluate(pi.mode, gymnasium.make("CartPole-v1"), num_episodes=20, seed=seed)
    print(f"return: {returns.mean():.1f} after {env.T} steps")


if __name__ == "__main__":
    tyro.cli(main)
