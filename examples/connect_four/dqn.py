"""Connect Four against an opponent that plays at random: DQN that never tries a full column.

The observation tells which columns take another token; the network gives the others a value that is never the largest.
Wins nearly all games; with `--self-play` the opponent becomes, every 200 games, a copy of the player as it is then.
"""

import jax.numpy as jnp
import numpy as np
import optax
import tyro
from flax import nnx

import triax
from triax.loops import evaluate


class Network(nnx.Module):
    """One value for each column, far below all returns where it is full."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(2, 64, (4, 4), rngs=rngs)
        self.hidden, self.output = nnx.Linear(6 * 7 * 64, 128, rngs=rngs), nnx.Linear(128, 7, rngs=rngs)

    def __call__(self, S, is_training):
        is_free, board = S[:, 0, :, 0], S[:, 1:]
        x = nnx.relu(self.conv(board)).reshape(len(S), -1)
        return jnp.where(is_free > 0, self.output(nnx.relu(self.hidden(x))), -10.0)


def as_floats(rng, s):
    """The board as it is, instead of a one-hot of each cell."""
    S = jnp.asarray(s, jnp.float32)
    return S[None] if S.ndim == 3 else S


def main(steps: int = 12_000, self_play: bool = False, seed: int = 0) -> None:
    """DQN on Connect Four.

    Args:
        steps: moves of the player.
        self_play: against what the player was some games ago, instead of at random.
        seed: decides everything that is drawn.
    """
    env = triax.wrappers.TrainMonitor(triax.envs.ConnectFourEnv(opponent="random"), smoothing=100)
    q = triax.Q(Network, env, observation_preprocessor=as_floats, random_seed=seed)
    q_targ, q_opponent = q.copy(), q.copy()
    greedy, opponent = triax.EpsilonGreedy(q, epsilon=0.0), triax.EpsilonGreedy(q_opponent, epsilon=0.0)
    rng = np.random.default_rng(seed)
    tracer = triax.reward_tracing.NStep(n=3, gamma=0.95)
    buffer = triax.experience_replay.SimpleReplayBuffer(capacity=20_000, random_seed=seed)
    qlearning = triax.td_learning.DoubleQLearning(q, q_targ=q_targ, optimizer=optax.adam(1e-3))

    def exploring(pi):
        """Sometimes any column that is not full: epsilon-greedy policies would try full ones, too."""
        return lambda s, epsilon: int(rng.choice(np.flatnonzero(s[0, :, 0])) if rng.random() < epsilon else pi.mode(s))

    act, answer = exploring(greedy), exploring(opponent)
    if self_play:
        env.unwrapped.opponent = lambda s: answer(s, 0.1)

    while env.T < steps:
        s, _ = env.reset(seed=seed if env.ep == 0 else None)
        if self_play and env.period("opponent", ep_period=200):
            q_opponent.soft_update(q, tau=1.0)
        done = False
        while not done:
            a = act(s, max(0.1, 1 - 2 * env.T / steps))
            s_next, r, terminated, truncated, _ = env.step(a)
            tracer.add(s, a, r, terminated, truncated=truncated, s_next=s_next)
            while tracer:
                buffer.add(tracer.pop())
            if len(buffer) >= 64 and env.T % 2 == 0:
                env.record_metrics(qlearning.update(buffer.sample(batch_size=64)))
                q_targ.soft_update(q, tau=0.01)
            done, s = terminated or truncated, s_next

    test_env = triax.envs.ConnectFourEnv(opponent="random")
    returns = evaluate(greedy.mode, test_env, num_episodes=100, seed=seed)
    print(f"won {np.mean(returns == 1):.0%} of 100 games against the random opponent")
    print(f"return: {returns.mean():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
