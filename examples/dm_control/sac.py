"""SAC on a task of the DeepMind Control Suite, through shimmy. Needs `pip install 'triax[examples]'`.

Swings the cart's pole up and learns to hold it: a return of about 600 of 1000 after 30 000 steps. The agent, its replay
and its learning are one compiled call a step. Tassa et al. 2018, arXiv:1801.00690.
"""

import time

import gymnasium
import jax
import shimmy
import tyro
from gymnasium.wrappers import FlattenObservation, RescaleAction

from triax.agents import SACAgent, SACConfig
from triax.loops import OffPolicyConfig, VectorOffPolicy, evaluate_agent

gymnasium.register_envs(shimmy)


def make_task(task):
    """Observations in one vector; the suite's episodes end by their time limit alone, and are truncated then."""
    return RescaleAction(FlattenObservation(gymnasium.make(f"dm_control/{task}-v0")), -1.0, 1.0)


def main(steps: int = 30_000, task: str = "cartpole-swingup", seed: int = 0) -> None:
    """SAC on DeepMind Control.

    Args:
        steps: of the environment.
        task: domain and task.
        seed: decides everything that is drawn.
    """
    env = make_task(task)
    config = SACConfig(hidden=(128, 128), batch_size=128, learning_rate=1e-3, actor_learning_rate=1e-3, temperature=0.1)
    agent = SACAgent(env, config)
    loop = VectorOffPolicy(env, agent, OffPolicyConfig(capacity=100_000, warm_up=min(1_000, steps // 2)))
    loop.init(jax.random.key(seed))
    start = time.perf_counter()

    def report(progressed):
        if progressed.episode_ended:
            told, speed = loop.report(), progressed.step / (time.perf_counter() - start)
            print(f"{progressed.step:7d} steps, {speed:4.0f}/s: {float(told['return']):.1f}")

    loop.run(steps, hooks=[report])
    results = evaluate_agent(
        agent, loop.state.learner.agent, make_task(task), num_episodes=5, key=jax.random.key(seed + 1)
    )
    print(f"return: {results.returns.mean():.1f}")


if __name__ == "__main__":
    tyro.cli(main)
