"""PPO on gymnax beside programs written by hand for it, everything in one run; run it in .venv-extras.

    python benchmarks/device_ppo.py [--cases CartPole-v1:mlp:16 ...] [--seconds 1.0]

The hand-written programs use JAX and optax alone: networks, rollout, advantages and loss are spelled out below, and do
the same arithmetic: whole trajectories in minibatches, truncated episodes bootstrapped from their last observation.
"scanned" is the scheme of old, for orientation: the whole network stepped over time in the loss, targets anew for each
minibatch. Compilation is left out. What counts are ratios, since the speed of a machine drifts.
"""

import argparse
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from rich.console import Console
from rich.table import Table
from timing import iterations_per_second

import triax
from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.networks import LSTM, Dense, DistributionSampler, NormalTanhSampler, PPOAdapter, Sequential

WIDTH, EPOCHS, MINIBATCHES, LENGTH = 64, 4, 4, 128
GAMMA, LAMBDA, CLIP, RATE, MAX_NORM = 0.99, 0.95, 0.2, 3e-4, 0.5
CASES = [f"{env}:mlp:{n}" for env in ("CartPole-v1", "Pendulum-v1") for n in (16, 256, 2048)]
CASES += ["CartPole-v1:lstm:256", "CartPole-v1:lstm:16"]
BUDGET, BUDGET_OVER_SCANNED = 1.05, 2.5


class Case(NamedTuple):
    """What is measured."""

    env: str
    network: str
    num_envs: int

    @property
    def discrete(self) -> bool:
        """Whether actions are."""
        return self.env.startswith("CartPole")


# ------------------------------------------------------------------ by hand: networks


def orthogonal(key: Any, shape: tuple, scale: float) -> Any:
    """A kernel and a bias."""
    return jax.nn.initializers.orthogonal(scale)(key, shape), jnp.zeros(shape[1])


def dense(layer: Any, x: Any) -> Any:
    """A linear layer."""
    return x @ layer[0] + layer[1]


class Perceptrons:
    """An actor and a critic without anything in common and without memory."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.sizes = {"actor": (inputs, WIDTH, WIDTH, outputs), "critic": (inputs, WIDTH, WIDTH, 1)}

    def init(self, key: Any) -> Any:
        """Weights."""
        return {
            name: [
                orthogonal(jax.random.fold_in(key, 10 * i + j), shape, 0.01 if name == "actor" and j == 2 else 1.4)
                for j, shape in enumerate(itertools.pairwise(sizes))
            ]
            for i, (name, sizes) in enumerate(self.sizes.items())
        }

    def memory(self, num_envs: int) -> Any:
        """None."""
        return ()

    def step(self, params: Any, memory: Any, obs: Any) -> tuple:
        """``(memory, outputs of the actor, value)``."""

        def tower(layers: Any) -> Any:
            x = obs
            for layer in layers[:-1]:
                x = jnp.tanh(dense(layer, x))
            return dense(layers[-1], x)

        return memory, tower(params["actor"]), tower(params["critic"])[..., 0]

    def sequence(self, params: Any, memory: Any, obs: Any, starts: Any) -> tuple:
        """The same for ``[time, batch, ...]``."""
        flat = self.step(params, memory, obs.reshape(-1, obs.shape[-1]))[1:]
        return jax.tree.map(lambda x: x.reshape(*obs.shape[:2], *x.shape[1:]), flat)


class Recurrent:
    """A linear layer, an LSTM and two heads."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.inputs, self.outputs = inputs, outputs

    def init(self, key: Any) -> Any:
        """Weights."""
        keys = jax.random.split(key, 5)
        return {
            "first": orthogonal(keys[0], (self.inputs, WIDTH), 1.4),
            "input": orthogonal(keys[1], (WIDTH, 4 * WIDTH), 1.0),
            "hidden": orthogonal(keys[2], (WIDTH, 4 * WIDTH), 1.0)[0],
            "actor": orthogonal(keys[3], (WIDTH, self.outputs), 0.01),
            "critic": orthogonal(keys[4], (WIDTH, 1), 1.0),
        }

    def memory(self, num_envs: int) -> Any:
        """Zeros."""
        return jnp.zeros((num_envs, WIDTH)), jnp.zeros((num_envs, WIDTH))

    def cell(self, params: Any, memory: Any, x: Any) -> tuple:
        """One step of the LSTM on what the first layer gives."""
        c, h = memory
        i, f, g, o = jnp.split(dense(params["input"], x) + h @ params["hidden"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (c, h), h

    def first(self, params: Any, obs: Any) -> Any:
        """What the LSTM sees."""
        return jnp.tanh(dense(params["first"], obs))

    def heads(self, params: Any, h: Any) -> tuple:
        """Outputs of the actor, and values."""
        return dense(params["actor"], h), dense(params["critic"], h)[..., 0]

    def step(self, params: Any, memory: Any, obs: Any) -> tuple:
        """``(memory, outputs of the actor, value)``."""
        memory, h = self.cell(params, memory, self.first(params, obs))
        return memory, *self.heads(params, h)

    def sequence(self, params: Any, memory: Any, obs: Any, starts: Any) -> tuple:
        """The same for ``[time, batch, ...]``: only the LSTM is stepped."""

        def one(memory: Any, inputs: tuple) -> tuple:
            x, start = inputs
            return self.cell(params, reset(memory, start), x)

        _, h = jax.lax.scan(one, memory, (self.first(params, obs), starts))
        return self.heads(params, h)


def reset(memory: Any, start: Any) -> Any:
    """Zeros where an episode starts."""
    return jax.tree.map(lambda m: jnp.where(start[:, None], 0.0, m), memory)


# ------------------------------------------------------------------ by hand: actions


def categorical(outputs: Any, key: Any) -> tuple:
    """``(what is stored, what the environment gets)``."""
    action = jax.random.categorical(key, outputs)
    return action, action


def categorical_log_prob(outputs: Any, action: Any) -> Any:
    """In nats."""
    return jnp.take_along_axis(jax.nn.log_softmax(outputs), action[..., None], axis=-1)[..., 0]


def gaussian(outputs: Any, key: Any) -> tuple:
    """A squashed normal; the environment gets torques in [-2, 2]."""
    mean, raw = jnp.split(outputs, 2, axis=-1)
    u = mean + (jax.nn.softplus(raw) + 0.1) * jax.random.normal(key, mean.shape)
    return u, jnp.tanh(u)


def gaussian_log_prob(outputs: Any, u: Any) -> Any:
    """In nats."""
    mean, raw = jnp.split(outputs, 2, axis=-1)
    std = jax.nn.softplus(raw) + 0.1
    log_p = -0.5 * jnp.square((u - mean) / std) - 0.5 * np.log(2 * np.pi) - jnp.log(std)
    return jnp.sum(log_p - 2 * (np.log(2) - u - jax.nn.softplus(-2 * u)), axis=-1)


# ------------------------------------------------------------------ by hand: the program


class Run(NamedTuple):
    """All that the hand-written program carries."""

    params: Any
    moments: Any
    env: Any
    obs: Any
    memory: Any
    starts: Any
    key: Any


class Told(NamedTuple):
    """A rollout, ``[time, batch, ...]``."""

    obs: Any
    starts: Any
    action: Any
    log_prob: Any
    value: Any
    reward: Any
    terminated: Any
    truncated: Any
    final_obs: Any


def by_hand(case: Case, *, scanned: bool = False) -> tuple[Callable, Callable]:
    """``(init, run)``, jitted."""
    env, params_of_env = gymnax.make(case.env)
    inputs = env.observation_space(params_of_env).shape[0]
    network: Any = {"mlp": Perceptrons, "lstm": Recurrent}[case.network](inputs, 2)
    sample, log_prob = (categorical, categorical_log_prob) if case.discrete else (gaussian, gaussian_log_prob)
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(RATE))

    def sequence(params: Any, memory: Any, obs: Any, starts: Any) -> tuple:
        if not scanned:
            return network.sequence(params, memory, obs, starts)

        def one(memory: Any, inputs: tuple) -> tuple:
            obs, start = inputs
            memory, *out = network.step(params, reset(memory, start) if memory else memory, obs)
            return memory, tuple(out)

        return jax.lax.scan(one, memory, (obs, starts))[1]

    def env_step(key: Any, state: Any, action: Any) -> tuple:
        rng_step, rng_reset = jax.random.split(key)
        obs, after, reward, terminated, _ = env.step_env(rng_step, state, action, params_of_env)
        truncated = env.is_truncated(after, params_of_env) & ~terminated
        done = terminated | truncated
        fresh_obs, fresh = env.reset(rng_reset, params_of_env)
        state = jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, after)
        return jnp.where(done, fresh_obs, obs), state, reward, terminated, truncated, obs

    def act(run: Run, _: Any) -> tuple[Run, Told]:
        key, rng_act, rng_env = jax.random.split(run.key, 3)
        memory = reset(run.memory, run.starts) if run.memory else run.memory
        memory, outputs, value = network.step(run.params, memory, run.obs)
        stored, action = sample(outputs, rng_act)
        keys = jax.random.split(rng_env, case.num_envs)
        obs, state, reward, terminated, truncated, final_obs = jax.vmap(env_step)(keys, run.env, action)
        told = Told(
            run.obs,
            run.starts,
            stored,
            log_prob(outputs, stored),
            value,
            reward,
            terminated,
            truncated,
            final_obs,
        )
        return Run(run.params, run.moments, state, obs, memory, terminated | truncated, key), told

    def final_values(params: Any, memory: Any, told: Told) -> Any:
        """With memory: after each step, of what it led to."""

        def one(memory: Any, inputs: tuple) -> tuple:
            obs, final, start = inputs
            memory, _, _ = network.step(params, reset(memory, start) if memory else memory, obs)
            return memory, network.step(params, memory, final)[2]

        return jax.lax.scan(one, memory, (told.obs, told.final_obs, told.starts))[1]

    def targets(params: Any, memory: Any, last_memory: Any, told: Told, value: Any) -> tuple:
        last = network.step(params, last_memory, told.final_obs[-1])[2]
        following = jnp.concatenate([value[1:], last[None]])
        cut = told.truncated.at[-1].set(False)
        if memory:
            final = lambda: jnp.where(cut, final_values(params, memory, told), following)  # noqa: E731
        else:
            final = lambda: jnp.where(  # noqa: E731
                cut, network.sequence(params, (), told.final_obs, told.starts)[1], following
            )
        following = jax.lax.cond(jnp.any(cut), final, lambda: following)
        errors = told.reward + GAMMA * jnp.where(told.terminated, 0.0, following) - value
        goes_on = 1.0 - (told.terminated | told.truncated)

        def back(later: Any, now: tuple) -> tuple:
            later = now[0] + GAMMA * LAMBDA * now[1] * later
            return later, later

        _, advantage = jax.lax.scan(back, jnp.zeros(value.shape[1]), (errors, goes_on), reverse=True)
        return jax.lax.stop_gradient((advantage, advantage + value))

    def loss(params: Any, memory: Any, last_memory: Any, told: Told, goals: Any) -> Any:
        outputs, value = sequence(params, memory, told.obs, told.starts)
        advantage, wanted = targets(params, memory, last_memory, told, value) if scanned else goals
        advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
        ratio = jnp.exp(log_prob(outputs, told.action) - told.log_prob)
        clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
        return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage)) + 0.5 * jnp.mean((value - wanted) ** 2)

    def iterate(run: Run) -> tuple[Run, Any]:
        memory = run.memory
        run, told = jax.lax.scan(act, run, length=LENGTH)
        goals = () if scanned else targets(run.params, memory, run.memory, told, told.value)
        key, rng = jax.random.split(run.key)
        shuffles = jax.vmap(lambda k: jax.random.permutation(k, case.num_envs))(jax.random.split(rng, EPOCHS))

        def update(carry: tuple, rows: Any) -> tuple:
            params, moments = carry
            some, goal = jax.tree.map(lambda x: x[:, rows], (told._replace(final_obs=told.final_obs), goals))
            memories = jax.tree.map(lambda m: m[rows], (memory, run.memory))
            value, grads = jax.value_and_grad(loss)(params, *memories, some, goal)
            changes, moments = optimizer.update(grads, moments)
            return (optax.apply_updates(params, changes), moments), value

        rows = shuffles.reshape(EPOCHS * MINIBATCHES, -1)
        (params, moments), losses = jax.lax.scan(update, (run.params, run.moments), rows)
        return run._replace(params=params, moments=moments, key=key), jnp.mean(losses)

    def init(key: Any) -> Run:
        rng_params, rng_env, key = jax.random.split(key, 3)
        params = network.init(rng_params)
        obs, state = jax.vmap(env.reset, (0, None))(jax.random.split(rng_env, case.num_envs), params_of_env)
        memory = network.memory(case.num_envs)
        return Run(params, optimizer.init(params), state, obs, memory, jnp.ones(case.num_envs, bool), key)

    def several(run: Run, iterations: int) -> tuple[Run, Any]:
        run, losses = jax.lax.scan(lambda run, _: iterate(run), run, length=iterations)
        return run, jnp.mean(losses)

    return jax.jit(init), jax.jit(several, static_argnums=1, donate_argnums=0)


# ------------------------------------------------------------------ with triax


def with_triax(case: Case) -> tuple[Callable, Callable]:
    """``(init, run)``."""
    env = triax.envs.make(f"gymnax:{case.env}")
    config = PPOAgentConfig(
        gae_lambda=LAMBDA,
        discounting_factor=GAMMA,
        clip_range=CLIP,
        learning_rate=RATE,
        n_epochs=EPOCHS,
        n_minibatches=MINIBATCHES,
        gradient_clipping=MAX_NORM,
    )
    agent = PPOAgent(partial(triax_network, case, env.observation_size), config)
    loop = DeviceOnPolicy(env, agent, OnPolicyConfig(case.num_envs, LENGTH))
    return loop.init, loop.run


def triax_network(case: Case, inputs: int, rngs: nnx.Rngs) -> Any:
    """The network of ``case``."""
    sampler: Any = NormalTanhSampler(rngs, 0.0, min_std=0.1)
    if case.discrete:
        sampler = DistributionSampler(triax.envs.make(f"gymnax:{case.env}").action_space, rngs)

    def tower(sizes: tuple) -> list:
        layers = [Dense(a, b, rngs, jnp.tanh) for a, b in itertools.pairwise(sizes[:-1])]
        return [*layers, Dense(sizes[-2], sizes[-1], rngs)]

    if case.network == "mlp":
        actor = Sequential([*tower((inputs, WIDTH, WIDTH, 2)), sampler])
        return PPOAdapter(actor, Sequential(tower((inputs, WIDTH, WIDTH, 1))))
    heads = PPOAdapter(Sequential([Dense(WIDTH, 2, rngs), sampler]), Dense(WIDTH, 1, rngs))
    return Sequential([Dense(inputs, WIDTH, rngs, jnp.tanh), LSTM(WIDTH, WIDTH, rngs), heads])


# ------------------------------------------------------------------ the measurement


def measure(cases: list[str], seconds: float) -> bool:
    """Print a table; whether a budget is missed."""
    title = f"PPO, rollouts of {LENGTH} steps, {EPOCHS} epochs of {MINIBATCHES} minibatches; steps/s"
    table = Table(
        "environment", "network", "envs", "by hand", "scanned", "triax", "time ratio", "over scanned", title=title
    )
    missed = False
    for text in cases:
        env, network, num_envs = text.split(":")
        case = Case(env, network, int(num_envs))
        programs = {"by hand": by_hand(case), "scanned": by_hand(case, scanned=True), "triax": with_triax(case)}
        per_iteration = case.num_envs * LENGTH
        speeds = iterations_per_second(programs, max(1, round(seconds * 150_000 / per_iteration)))
        ratio, over_scanned = speeds["by hand"] / speeds["triax"], speeds["triax"] / speeds["scanned"]
        kept = ratio <= BUDGET and (over_scanned >= BUDGET_OVER_SCANNED or case != Case("CartPole-v1", "lstm", 16))
        missed |= not kept
        speed = [f"{per_iteration * speeds[name]:,.0f}" for name in programs]
        table.add_row(
            *case[:2], str(case.num_envs), *speed, f"{ratio:.2f} {'ok' if kept else 'MISSED'}", f"{over_scanned:.2f}"
        )
    Console(width=110).print(table)
    return missed


def main(arguments: list[str] | None = None) -> bool:
    """Measure and tell; whether a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args(arguments)
    return measure(options.cases, options.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
