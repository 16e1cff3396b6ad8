"""``triax video``: what a run has learned, to look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from triax.cli.commands import MakeVideo
from triax.cli.device_video import NotRenderableError, film_on_device
from triax.cli.environments import is_on_device, make_any_env, make_env
from triax.cli.trained import config_of, load_trained
from triax.loops.gymnasium import episode_seed
from triax.runs import Run, check_video_path, write_video

_MODE, _DEFAULT_FPS = "rgb_array", 30


def film_run(command: MakeVideo) -> int:
    """Write the video, and print return and length of each episode; the exit code."""
    config = config_of(command.run)
    _require_one(command.run)
    path = command.out or command.run / "video.mp4"
    check_video_path(path)
    if config.algorithm != "dqn" and is_on_device(env := make_any_env(config.env)):
        film_on_device(command, config, env, path)
        print(f"Video: {path}")
        return 0
    env = _renderable(config.env)
    trained = load_trained(command.run, env, last=command.last)
    fps = float(env.metadata.get("render_fps") or _DEFAULT_FPS)
    print(f"{config.env}, {config.algorithm}, weights of step {trained.step:,}")
    write_video(path, _episodes(env, trained.agent, command), fps)
    env.close()
    print(f"Video: {path}")
    return 0


def _require_one(path: Path) -> None:
    parts = Run.open(path).parts()
    if parts != [path]:
        raise NotRenderableError(f"{path} holds the runs of {len(parts)} seeds. Film one: triax video {parts[0]}")


def _renderable(name: str) -> gymnasium.Env:
    env = make_env(name)
    modes = list(env.metadata.get("render_modes") or [])
    env.close()
    if _MODE not in modes:
        raise NotRenderableError(f"{name} makes no pictures: a video needs the render mode {_MODE!r}, it has {modes}.")
    return make_env(name, render_mode=_MODE)


def _episodes(env: gymnasium.Env, agent: Any, command: MakeVideo) -> Iterator[np.ndarray]:
    """The pictures of all episodes, one after another."""
    for episode in range(command.episodes):
        s, _ = env.reset(seed=episode_seed(command.seed, episode))
        yield _picture(env)
        total, steps, ended = 0.0, 0, False
        while not ended and steps < command.max_steps:
            s, r, terminated, truncated, _ = env.step(agent.act_greedily(s))
            total, steps, ended = total + float(r), steps + 1, bool(terminated or truncated)
            yield _picture(env)
        print(f"Episode {episode + 1}: return {total:.1f}, {steps:,} steps{'' if ended else ', cut off'}", flush=True)


def _picture(env: gymnasium.Env) -> np.ndarray:
    picture: Any = env.render()
    if isinstance(picture, np.ndarray) and picture.ndim == 3 and picture.dtype == np.uint8:
        return picture
    shown = f"{picture.dtype}{list(picture.shape)}" if isinstance(picture, np.ndarray) else type(picture).__name__
    raise NotRenderableError(f"{env} must render uint8 pictures [height, width, 3] for a video; got {shown}.")
