"""A container of your own: a residual block and a gate, in a network that PPO trains.

A container says in `wire` how data flows between its modules; memory, losses, metrics and statistics are routed for it.
Any module may be inside: here one that remembers. Moves a point to the origin: a return above -4.
"""

import jax
import jax.numpy as jnp
import tyro
from flax import nnx
from gymnasium.spaces import Box

from triax.algorithms import EvalConfig, PPOConfig, TrainConfig, train_ppo
from triax.envs import State
from triax.networks import GRU, Container, Dense, NormalTanhSampler, PPOAdapter, Sequential


class Residual(Container):
    """x plus what the module inside makes of it."""

    def wire(self, run, x):
        return x + run("inner", x)


class Gated(Container):
    """One module decides how much of the other to let through."""

    def wire(self, run, x):
        return nnx.sigmoid(run("gate", x)) * run("body", x)


class Reach:
    """Move a point in the plane to the origin, within 50 steps; the price of a step is the distance."""

    observation_space = Box(-2.0, 2.0, (2,))
    action_space = Box(-1.0, 1.0, (2,))

    def reset(self, rng):
        return State.first(jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0), inner={"steps": 0})

    def step(self, state, action):
        place = jnp.clip(state.obs + 0.2 * action, -2.0, 2.0)
        distance, steps = jnp.linalg.norm(place), state.inner["steps"] + 1
        return state.next(place, -distance, distance < 0.1, inner={"steps": steps}, truncated=steps >= 50)


def make_networks(rngs):
    """A trunk of both containers, shared by actor and critic."""
    return Sequential(
        [
            Dense(2, 32, rngs, nnx.tanh),
            Residual(inner=GRU(32, 32, rngs)),
            Gated(gate=Dense(32, 32, rngs), body=Dense(32, 32, rngs, nnx.tanh)),
            PPOAdapter(
                Sequential([Dense(32, 4, rngs), NormalTanhSampler(rngs, entropy_weight=1e-3, min_std=0.1)]),
                Dense(32, 1, rngs),
            ),
        ]
    )


def main(steps: int = 80_000, seed: int = 0) -> None:
    """Train a network with containers of its own.

    Args:
        steps: of all environments together.
        seed: decides everything that is drawn.
    """
    networks = make_networks(nnx.Rngs(seed))
    config = TrainConfig(
        ppo=PPOConfig(n_envs=32, rollout_length=16, learning_rate=2e-3, total_steps=steps),
        eval=EvalConfig(every_steps=max(steps // 4, 1), n_envs=64, max_episode_length=50),
        seed=seed,
    )
    result = train_ppo(Reach(), networks, config)
    for evaluation in result.eval_history:
        print(f"{evaluation['step']:7d} steps: {evaluation['eval/episode_reward/mean']:.1f}")
    print(f"return: {result.eval_history[-1]['eval/episode_reward/mean']:.1f}")


if __name__ == "__main__":
    tyro.cli(main)
