"""SAC on Pendulum on the device beside a program written by hand for it, one update a step, in one run.

    python benchmarks/device_sac.py [--sizes 64x32 256x256] [--iterations 1000]

The hand-written program uses JAX and optax alone: networks, environment, replay and losses are spelled out below, and
do the same arithmetic. Compilation is left out. What counts is the ratio, since the speed of a machine drifts.
"""

import argparse
import itertools
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

from triax.agents.sac import SACAgent, SACConfig
from triax.envs import State
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig

CAPACITY, WARM_UP = 131_072, 1_000
GAMMA, TAU, LEARNING_RATE = 0.99, 0.005, 3e-4
TARGET_ENTROPY, HALF_WIDTH, LIMIT = -1.0, 2.0, 200
BUDGET = 1.1

# ------------------------------------------------------------------ the environment, shared


def physics(obs: Any, action: Any) -> tuple[Any, Any]:
    """Pendulum's next observation and the reward (Gymnasium's Pendulum-v1)."""
    angle, speed = jnp.arctan2(obs[1], obs[0]), obs[2]
    torque = jnp.clip(action[0], -2.0, 2.0)
    cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
    return show(angle + speed * 0.05, speed), -cost


def show(angle: Any, speed: Any) -> Any:
    """The observation."""
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])


def start(key: Any) -> Any:
    """A first observation."""
    angle, speed = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0) * jnp.array([np.pi, 1.0])
    return show(angle, speed)


class Pendulum:
    """The environment as triax takes it."""

    observation_space = gymnasium.spaces.Box(np.array([-1, -1, -8], np.float32), np.array([1, 1, 8], np.float32))
    action_space = gymnasium.spaces.Box(-HALF_WIDTH, HALF_WIDTH, (1,), np.float32)

    def reset(self, rng: Any) -> State:
        """The first state."""
        return State.first(start(rng), {"steps": 0})

    def step(self, state: State, action: Any) -> State:
        """The next state."""
        obs, reward = physics(state.obs, action)
        steps = state.inner["steps"] + 1
        return state.next(obs, reward, False, {"steps": steps}, truncated=steps >= LIMIT)


# ------------------------------------------------------------------ by hand


class Run(NamedTuple):
    """All that the hand-written program carries."""

    actor: Any
    critics: Any
    targets: Any
    log_temperature: Any
    moments: Any
    updates: Any
    obs: Any
    steps: Any
    buffer: Any
    position: Any
    size: Any
    key: Any


def perceptron(params: Any, x: Any) -> Any:
    """Linear layers with ReLU between them."""
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def initial(key: Any, sizes: tuple[int, ...]) -> Any:
    """Weights and biases."""
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, itertools.pairwise(sizes), strict=True)
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, (a, b) in pairs]


def policy(actor: Any, obs: Any, key: Any) -> tuple[Any, Any]:
    """An action in [-1, 1] and its log-density."""
    mu, logvar = jnp.split(perceptron(actor, obs), 2, axis=-1)
    logvar = jnp.clip(logvar, -40, 4)
    noise = jax.random.normal(key, mu.shape)
    u = mu + jnp.exp(0.5 * logvar) * noise
    slope = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
    log_prob = jnp.sum(-0.5 * (jnp.log(2 * jnp.pi) + logvar + noise**2) - slope, axis=-1)
    return jnp.tanh(u), log_prob


def values(critics: Any, obs: Any, action: Any) -> Any:
    """Of both critics, ``[2, batch]``."""
    x = jnp.concatenate([obs, action], axis=-1)
    return jax.vmap(perceptron, in_axes=(0, None))(critics, x)[..., 0]


def by_hand(hidden: tuple[int, ...], batch_size: int) -> tuple[Callable, Callable]:
    """``(init, run)``, jitted."""
    optimizer = optax.adam(LEARNING_RATE)

    def act_and_store(run: Run) -> Run:
        key, rng_act, rng_random, rng_reset = jax.random.split(run.key, 4)
        unit = policy(run.actor, run.obs[None], rng_act)[0][0]
        unit = jnp.where(run.updates == 0, jax.random.uniform(rng_random, (1,), minval=-1, maxval=1), unit)
        following, reward = physics(run.obs, HALF_WIDTH * unit)
        steps = run.steps + 1
        done = steps >= LIMIT
        row = jnp.concatenate([run.obs, following, unit, reward[None]])
        buffer = jax.lax.dynamic_update_index_in_dim(run.buffer, row, run.position, 0)
        return run._replace(
            obs=jnp.where(done, start(rng_reset), following),
            steps=jnp.where(done, 0, steps),
            buffer=buffer,
            position=(run.position + 1) % CAPACITY,
            size=jnp.minimum(run.size + 1, CAPACITY),
            key=key,
        )

    def critic_loss(critics: Any, run: Run, rows: Any, key: Any) -> Any:
        obs, next_obs, action, reward = rows[:, :3], rows[:, 3:6], rows[:, 6:7], rows[:, 7]
        following, log_prob = policy(run.actor, next_obs, key)
        soft = jnp.min(values(run.targets, next_obs, following), axis=0) - jnp.exp(run.log_temperature) * log_prob
        wanted = jax.lax.stop_gradient(reward + GAMMA * soft)
        return 0.5 * jnp.sum(jnp.mean((values(critics, obs, action) - wanted) ** 2, axis=-1))

    def actor_loss(actor: Any, critics: Any, temperature: Any, obs: Any, key: Any) -> tuple[Any, Any]:
        action, log_prob = policy(actor, obs, key)
        loss = jnp.mean(temperature * log_prob - jnp.min(values(critics, obs, action), axis=0))
        return loss, jnp.mean(log_prob)

    def learn(run: Run) -> tuple[Run, Any]:
        key, rng, rng_critics, rng_actor = jax.random.split(run.key, 4)
        rows = run.buffer[jax.random.randint(rng, (batch_size,), 0, run.size)]
        of_actor, of_critics, of_temperature = run.moments
        loss, grads = jax.value_and_grad(critic_loss)(run.critics, run, rows, rng_critics)
        changes, of_critics = optimizer.update(grads, of_critics)
        critics = optax.apply_updates(run.critics, changes)
        temperature = jnp.exp(run.log_temperature)
        differentiate = jax.grad(actor_loss, has_aux=True)
        grads, log_prob = differentiate(run.actor, critics, temperature, rows[:, :3], rng_actor)
        changes, of_actor = optimizer.update(grads, of_actor)
        actor = optax.apply_updates(run.actor, changes)
        grads = -temperature * (log_prob + TARGET_ENTROPY)
        change, of_temperature = optimizer.update(grads, of_temperature)
        new = run._replace(
            actor=actor,
            critics=critics,
            targets=jax.tree.map(lambda t, o: (1 - TAU) * t + TAU * o, run.targets, critics),
            log_temperature=optax.apply_updates(run.log_temperature, change),
            moments=(of_actor, of_critics, of_temperature),
            updates=run.updates + 1,
            key=key,
        )
        return new, loss

    def init(key: Any) -> Run:
        actor = initial(jax.random.fold_in(key, 0), (3, *hidden, 2))
        twins = jax.random.split(jax.random.fold_in(key, 1), 2)
        critics = jax.vmap(lambda k: initial(k, (4, *hidden, 1)))(twins)
        log_temperature = jnp.zeros(())
        updates, steps, position, size = (jnp.zeros((), jnp.int32) for _ in range(4))
        run = Run(
            actor,
            critics,
            jax.tree.map(jnp.copy, critics),
            log_temperature,
            tuple(optimizer.init(part) for part in (actor, critics, log_temperature)),
            updates,
            start(key),
            steps,
            jnp.zeros((CAPACITY, 8)),
            position,
            size,
            key,
        )
        return jax.lax.scan(lambda run, _: (act_and_store(run), None), run, length=WARM_UP)[0]

    def several(run: Run, iterations: int) -> tuple[Run, Any]:
        run, losses = jax.lax.scan(lambda run, _: learn(act_and_store(run)), run, length=iterations)
        return run, jnp.mean(losses)

    return jax.jit(init), jax.jit(several, static_argnums=1, donate_argnums=0)


# ------------------------------------------------------------------ with triax


def with_triax(hidden: tuple[int, ...], batch_size: int) -> tuple[Callable, Callable]:
    """``(init, run)``."""
    config = SACConfig(
        hidden=hidden,
        gamma=GAMMA,
        tau=TAU,
        batch_size=batch_size,
        learning_rate=LEARNING_RATE,
        actor_learning_rate=LEARNING_RATE,
        temperature_learning_rate=LEARNING_RATE,
        target_entropy=TARGET_ENTROPY,
    )
    env = Pendulum()
    loop = DeviceOffPolicy(env, SACAgent(env, config), OffPolicyConfig(capacity=CAPACITY, warm_up=WARM_UP))
    return loop.init, loop.run


# ------------------------------------------------------------------ the measurement


def measure(sizes: list[str], iterations: int) -> bool:
    """Print a table; whether the budget is missed."""
    table = Table("size", "by hand (steps/s)", "triax (steps/s)", "time ratio", "budget", title="SAC, Pendulum")
    missed = False
    for size in sizes:
        width, batch_size = map(int, size.split("x"))
        hidden = (width, width)
        programs = {"by hand": by_hand(hidden, batch_size), "triax": with_triax(hidden, batch_size)}
        speeds = iterations_per_second(programs, iterations)
        ratio = speeds["by hand"] / speeds["triax"]
        missed |= ratio > BUDGET
        table.add_row(
            f"2x{width}, batch {batch_size}",
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
    parser.add_argument("--sizes", nargs="+", default=["64x32", "256x256"], help="width of two hidden layers x batch")
    parser.add_argument("--iterations", type=int, default=500)
    options = parser.parse_args(arguments)
    return measure(options.sizes, options.iterations)


if __name__ == "__main__":
    raise SystemExit(main())
