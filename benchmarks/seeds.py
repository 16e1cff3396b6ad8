"""Sixteen seeds in one vmapped program beside sixteen runs one after another, compilation included.

    python benchmarks/seeds.py [--seeds 16] [--dqn-steps 20000] [--ppo-steps 200000]

DQN at batch 32 pays by operation, which seeds side by side share; PPO is bound by floating-point work on one core.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
from device_dqn import CAPACITY, WARM_UP, CartPole
from flax import nnx
from rich.console import Console
from rich.table import Table

from triax.agents.ppo import PPOAgent
from triax.agents.ppo_config import PPOAgentConfig
from triax.agents.q_learning import QLearningAgent, QLearningConfig
from triax.loops.device_off_policy import DeviceOffPolicy, OffPolicyConfig
from triax.loops.device_on_policy import DeviceOnPolicy, OnPolicyConfig
from triax.networks import Dense, DistributionSampler, PPOAdapter, Sequential

BUDGET = 1.5
NUM_ENVS, LENGTH = 16, 128


def dqn(num_seeds: int | None, batch_size: int) -> Any:
    """The loop of double DQN on CartPole."""
    env = CartPole()
    agent = QLearningAgent(env, QLearningConfig(batch_size=batch_size))
    return DeviceOffPolicy(env, agent, OffPolicyConfig(capacity=CAPACITY, warm_up=WARM_UP), num_seeds=num_seeds)


def network(rngs: nnx.Rngs) -> Any:
    """Two towers of two layers."""

    def tower(out: int) -> list:
        return [Dense(4, 64, rngs, nnx.tanh), Dense(64, 64, rngs, nnx.tanh), Dense(64, out, rngs)]

    actor = Sequential([*tower(2), DistributionSampler(CartPole.action_space, rngs)])
    return PPOAdapter(actor, Sequential(tower(1)))


def ppo(num_seeds: int | None) -> Any:
    """The loop of PPO on CartPole."""
    agent = PPOAgent(network, PPOAgentConfig(gradient_clipping=0.5))
    return DeviceOnPolicy(CartPole(), agent, OnPolicyConfig(NUM_ENVS, LENGTH), num_seeds=num_seeds)


def together(make: Callable[[int | None], Any], num_seeds: int, iterations: int) -> float:
    """Seconds of all seeds in one program."""
    jax.clear_caches()
    began = time.perf_counter()
    loop = make(num_seeds)
    jax.block_until_ready(loop.run(loop.init(jax.random.split(jax.random.key(0), num_seeds)), iterations))
    return time.perf_counter() - began


def in_turn(make: Callable[[int | None], Any], num_seeds: int, iterations: int) -> float:
    """Seconds of one seed after another, compiled once."""
    jax.clear_caches()
    began = time.perf_counter()
    loop = make(None)
    for key in jax.random.split(jax.random.key(0), num_seeds):
        jax.block_until_ready(loop.run(loop.init(key), iterations))
    return time.perf_counter() - began


def main(arguments: list[str] | None = None) -> bool:
    """Measure and tell; whether the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--dqn-steps", type=int, default=20_000)
    parser.add_argument("--ppo-steps", type=int, default=200_000)
    options = parser.parse_args(arguments)
    cases = {
        "DQN, batch 32": (lambda n: dqn(n, 32), options.dqn_steps, BUDGET),
        "DQN, batch 256": (lambda n: dqn(n, 256), options.dqn_steps // 4, None),
        "PPO, 16 environments": (ppo, options.ppo_steps // (NUM_ENVS * LENGTH), None),
    }
    table = Table("agent", "in turn (s)", "together (s)", "times faster", "budget", title=f"{options.seeds} seeds")
    missed = False
    for name, (make, iterations, budget) in cases.items():
        apart, vmapped = (measure(make, options.seeds, iterations) for measure in (in_turn, together))
        ratio = apart / vmapped
        kept = budget is None or ratio >= budget
        missed |= not kept
        verdict = "" if budget is None else f">= {budget} {'ok' if kept else 'MISSED'}"
        table.add_row(name, f"{apart:.1f}", f"{vmapped:.1f}", f"{ratio:.2f}", verdict)
    Console(width=100).print(table)
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
