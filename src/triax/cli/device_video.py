"""Episodes of a pure agent in a JAX environment that draws its states."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from triax.cli.commands import MakeVideo
from triax.cli.trained import PureTrained, load_pure
from triax.core import random
from triax.core.errors import TriaxError
from triax.core.keys import fold_name
from triax.env_protocol import restart
from triax.envs import adapt
from triax.runs import write_video

_DEFAULT_FPS = 30


class NotRenderableError(TriaxError, ValueError):
    """An environment that makes no pictures."""


def film_on_device(command: MakeVideo, config: Any, env: Any, path: Path) -> None:
    """Write the video, and print return and length of each episode."""
    if not callable(getattr(env, "render", None)):
        raise NotRenderableError(f"{config.env} makes no pictures: a video needs an environment with render(states).")
    pure = load_pure(command.run, env, last=command.last)
    print(f"{config.env}, {config.algorithm}, weights of step {pure.step:,}")
    seconds = getattr(env, "dt", None)
    write_video(path, _pictures(pure, adapt(env), command), 1 / float(seconds) if seconds else _DEFAULT_FPS)


def _pictures(pure: PureTrained, env: Any, command: MakeVideo) -> Iterator[np.ndarray]:
    """The pictures of all episodes, one after another."""

    def step(state: Any, envs: Any, carry: Any, key: Any) -> tuple:
        observation = jax.tree.map(lambda leaf: leaf[None], envs.obs)
        action, carry, _ = pure.agent.act(state, observation, carry, key, explore=False)
        return env.step(envs, jax.tree.map(lambda leaf: leaf[0], action)), carry

    begin, step = jax.jit(partial(restart, env)), jax.jit(step)
    for episode in range(command.episodes):
        key = random.fold_in(jax.random.key(command.seed), episode)
        envs, carry = begin(fold_name(key, "envs")), pure.agent.initial_carry(pure.state, 1, fold_name(key, "carry"))
        states, total, ended = [envs], 0.0, False
        while not ended and len(states) <= command.max_steps:
            envs, carry = step(pure.state, envs, carry, random.fold_in(key, len(states)))
            states.append(envs)
            total += sum(float(reward) for reward in jax.tree.leaves(envs.reward))
            ended = bool(envs.terminated | envs.truncated)
        yield from np.asarray(env.render(states)).astype(np.uint8)
        cut = "" if ended else ", cut off"
        print(f"Episode {episode + 1}: return {total:.1f}, {len(states) - 1:,} steps{cut}", flush=True)
