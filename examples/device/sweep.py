"""A sweep: many seeds of SAC, each with several learning rates, side by side in one compiled program.

Nothing but the axis is new: states, keys and metrics have one more, and what may be swept is in the agent's state.
Moves a point to the origin: prints the mean return of each learning rate and its spread over seeds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from gymnasium.spaces import Box

from triax.agents import SACAgent, SACConfig, with_hyperparams
from triax.envs import State
from triax.loops import DeviceOffPolicy, OffPolicyConfig


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


def main(
    steps: int = 8_000, seeds: int = 4, learning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3), seed: int = 0
) -> None:
    """Sweep learning rates over seeds.

    Args:
        steps: of the environments of one run.
        seeds: runs for each learning rate.
        learning_rates: step sizes of actor and critics.
        seed: decides everything that is drawn.
    """
    env, num_envs = Reach(), 4
    agent = SACAgent(env, SACConfig(hidden=(32, 32), batch_size=64))
    config = OffPolicyConfig(num_envs=num_envs, warm_up=min(500, steps // 2), capacity=16_384)
    runs = seeds * len(learning_rates)
    loop = DeviceOffPolicy(env, agent, config, num_seeds=runs)

    keys = jnp.tile(jax.random.split(jax.random.key(seed), seeds), len(learning_rates))  # the same seeds for each rate
    rates = jnp.repeat(jnp.asarray(learning_rates), seeds)
    state = loop.init(keys)
    state = state._replace(agent=with_hyperparams(state.agent, learning_rate=rates, actor_learning_rate=rates))
    for _ in range(4):
        state, metrics = loop.run(state, -(-steps // num_envs // 4))  # of the episodes that ended in a quarter

    last = np.asarray(metrics["return"]).reshape(len(learning_rates), seeds)
    for rate, returns in zip(learning_rates, last, strict=True):
        print(f"learning rate {rate:.0e}: {returns.mean():6.2f} +- {returns.std():.2f}")
    print(f"return: {last.mean(axis=1).max():.2f}")


if __name__ == "__main__":
    tyro.cli(main)
