"""Double DQN on CartPole on the device beside a program written by hand for it, one update a step, in one run.

    python benchmarks/device_dqn.py [--batches 32 256] [--iterations 5000]

The hand-written program uses JAX and optax alone: networks, environment, replay and loss are spelled out below, and do
the same arithmetic. Compilation is left out. What counts is the ratio, since the speed of a machine drifts.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.table import Table
from timing import iterations_per_second

from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.envs import State
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig

CAPACITY, WARM_UP, HIDDEN = 131_072, 1_000, (64, 64)
GAMMA, TAU, LEARNING_RATE, MAX_NORM = 0.99, 0.005, 1e-3, 10.0
EPSILON_UPDATES, EPSILON_FINAL = 10_000, 0.05
BUDGET = 1.1

# ------------------------------------------------------------------ the environment, shared


def physics(obs: Any, action: Any) -> tuple[Any, Any]:
    """CartPole's next observation and whether it fell (Barto, Sutton & Anderson 1983)."""
    x, speed, angle, spin = obs
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    angular = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    linear = push - 0.05 * angular * cos / 1.1
    obs = jnp.stack([x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * spin, spin + 0.02 * angular])
    return obs, (jnp.abs(obs[0]) > 2.4) | (jnp.abs(obs[2]) > 12 * np.pi / 180)


def start(key: Any) -> Any:
    """A first observation."""
    return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)


class CartPole:
    """The environment as triax takes it."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, rng: Any) -> State:
        """The first state."""
        return State.first(start(rng), {"steps": 0})

    def step(self, state: State, action: Any) -> State:
        """The next state."""
        obs, fell = physics(state.obs, action)
        steps = state.inner["steps"] + 1
        return state.next(obs, 1.0, fell, {"steps": steps}, truncated=steps >= 500)


# ------------------------------------------------------------------ by hand


class Run(NamedTuple):
    """All that the hand-written program carries."""

    online: Any
    target: Any
    moments: Any
    updates: Any
    obs: Any
    steps: Any
    buffer: Any
    position: Any
    size: Any
    key: Any


def by_hand(batch_size: int) -> tuple[Callable, Callable]:
    """``(init, run)``, jitted."""
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(LEARNING_RATE))
    sizes = (4, *HIDDEN, 2)

    def network(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def act_and_store(run: Run) -> Run:
        key, rng_act, rng_explore, rng_reset = jax.random.split(run.key, 4)
        epsilon = jnp.maximum(1 - (1 - EPSILON_FINAL) * run.updates / EPSILON_UPDATES, EPSILON_FINAL)
        greedy = jnp.argmax(network(run.online, run.obs[None])[0])
        explore = jax.random.uniform(rng_explore) < epsilon
        action = jnp.where(explore, jax.random.randint(rng_act, (), 0, 2), greedy).astype(jnp.int32)
        following, fell = physics(run.obs, action)
        steps = run.steps + 1
        done = fell | (steps >= 500)
        # One table: of a column of scalars beside it XLA would copy the whole at each step.
        scalars = jnp.stack([action.astype(jnp.float32), jnp.float32(1), fell.astype(jnp.float32)])
        row = jnp.concatenate([run.obs, following, scalars])
        buffer = jax.lax.dynamic_update_index_in_dim(run.buffer, row, run.position, 0)
        return run._replace(
            obs=jnp.where(done, start(rng_reset), following),
            steps=jnp.where(done, 0, steps),
            buffer=buffer,
            position=(run.position + 1) % CAPACITY,
            size=jnp.minimum(run.size + 1, CAPACITY),
            key=key,
        )

    def loss(params: Any, target: Any, rows: Any) -> Any:
        obs, next_obs, action, reward, fell = rows[:, :4], rows[:, 4:8], rows[:, 8], rows[:, 9], rows[:, 10]
        best = jnp.argmax(network(params, next_obs), axis=-1)
        following = jnp.take_along_axis(network(target, next_obs), best[:, None], axis=1)[:, 0]
        wanted = jax.lax.stop_gradient(reward + GAMMA * (1 - fell) * following)
        taken = jax.nn.one_hot(action.astype(jnp.int32), 2)
        q = jnp.sum(network(params, obs) * taken, axis=-1)
        return jnp.mean(optax.losses.huber_loss(q, wanted))

    def learn(run: Run) -> tuple[Run, Any]:
        key, rng = jax.random.split(run.key)
        index = jax.random.randint(rng, (batch_size,), 0, run.size)
        value, grads = jax.value_and_grad(loss)(run.online, run.target, run.buffer[index])
        changes, moments = optimizer.update(grads, run.moments, run.online)
        online = optax.apply_updates(run.online, changes)
        target = jax.tree.map(lambda t, o: (1 - TAU) * t + TAU * o, run.target, online)
        return run._replace(online=online, target=target, moments=moments, updates=run.updates + 1, key=key), value

    def init(key: Any) -> Run:
        keys = jax.random.split(key, len(sizes))
        params = [
            (jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b))
            for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)
        ]
        buffer = jnp.zeros((CAPACITY, 11))
        zeros = (jnp.zeros((), jnp.int32) for _ in range(4))
        updates, steps, position, size = zeros
        target = jax.tree.map(jnp.copy, params)
        run = Run(
            params, target, optimizer.init(params), updates, start(keys[-1]), steps, buffer, position, size, keys[-1]
        )
        return jax.lax.scan(lambda run, _: (act_and_store(run), None), run, length=WARM_UP)[0]

    def several(run: Run, iterations: int) -> tuple[Run, Any]:
        run, losses = jax.lax.scan(lambda run, _: learn(act_and_store(run)), run, length=iterations)
        return run, jnp.mean(losses)

    return jax.jit(init), jax.jit(several, static_argnums=1, donate_argnums=0)


# ------------------------------------------------------------------ with triax


def with_triax(batch_size: int) -> tuple[Callable, Callable]:
    """``(init, run)``."""
    config = QLearningConfig(
        hidden=HIDDEN,
        gamma=GAMMA,
        batch_size=batch_size,
        learning_rate=LEARNING_RATE,
        max_grad_norm=MAX_NORM,
        tau=TAU,
        epsilon_final=EPSILON_FINAL,
        epsilon_updates=EPSILON_UPDATES,
    )
    env = CartPole()
    loop = DeviceOffPolicy(env, QLearningAgent(env, config), OffPolicyConfig(capacity=CAPACITY, warm_up=WARM_UP))
    return loop.init, loop.run


# ------------------------------------------------------------------ the measurement


def measure(batches: list[int], iterations: int) -> bool:
    """Print a table; whether the budget is missed."""
    table = Table("batch", "by hand (steps/s)", "triax (steps/s)", "time ratio", "budget", title="double DQN, CartPole")
    missed = False
    for batch_size in batches:
        programs = {"by hand": by_hand(batch_size), "triax": with_triax(batch_size)}
        speeds = iterations_per_second(programs, iterations)
        ratio = speeds["by hand"] / speeds["triax"]
        missed |= ratio > BUDGET
        table.add_row(
            str(batch_size),
            f"{speeds['by hand']:,.0f}",
            f"{speeds['triax']:,.0f}",
            f"{ratio:.2f}",
            f"<= {BUDGET} {'ok' if ratio <= BUDGET else 'MISSED'}",
        )
    Console(width=100).print(table)
    return missed


def main(arguments: list[str] | None = None) -> bool:
    """Measure and tell; whether the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--iterations", type=int, default=5_000)
    options = parser.parse_args(arguments)
    return measure(options.batches, options.iterations)


if __name__ == "__main__":
    raise SystemExit(main())
