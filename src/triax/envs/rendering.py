"""Episodes to look at: played on the screen, or written as an animated picture."""

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from triax.core.env_arguments import check_gymnasium_env

_MAX_EPISODE_STEPS = 10_000


def generate_gif(
    env: gymnasium.Env,
    filepath: str | os.PathLike,
    policy: Callable[[Any], Any] | None = None,
    resize_to: tuple[int, int] | None = None,
    duration: int | float = 50,
    max_episode_steps: int | None = None,
) -> None:
    """Plays one episode and writes every frame of it once, the first and the last included.

    Args:
        env: made with ``render_mode="rgb_array"`` (or ``"rgb_array_list"``); it is reset, and left open.
        filepath: the ``.gif`` to write; its folders are made.
        policy: ``a = policy(s)``; ``None`` samples the action space.
        resize_to: ``(width, height)`` in pixels.
        duration: milliseconds per frame.
        max_episode_steps: the longest episode; ``None`` takes it from ``env.spec``, or else 10000.

    A wrapper with an attribute ``counting`` (``TrainMonitor``) has it set to ``False`` meanwhile, so that the
    episode does not count. Raises ``RuntimeError`` when the environment renders no arrays.
    """
    from PIL import Image

    size = _check_size(resize_to)
    _check_render_mode("generate_gif", env, "rgb_array")
    if max_episode_steps is None:
        max_episode_steps = (env.spec and env.spec.max_episode_steps) or _MAX_EPISODE_STEPS
    frames = []
    with uncounted(env):
        for _ in _play(env, policy, max_episode_steps):
            images = [Image.fromarray(frame) for frame in _rendered(env)]
            frames += [image.resize(size) if size else image for image in images]
    path = Path(filepath)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    frames[0].save(temporary, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)
    os.replace(temporary, path)


def render_episode(
    env: gymnasium.Env, policy: Callable[[Any], Any] | None = None, step_delay_ms: int | float = 0
) -> None:
    """Plays one episode to its end, rendering each state once, and pausing after each step.

    Args:
        env: made with a ``render_mode``: in mode ``"human"`` it renders by itself; in others ``render`` is
            called, and text is written to the standard output.
        policy: ``a = policy(s)``; ``None`` samples the action space.
        step_delay_ms: the pause in milliseconds; there are five at the end.

    Wrappers with an attribute ``counting`` do not count, as in :func:`generate_gif`. Raises ``RuntimeError``
    when the environment has no ``render_mode``.
    """
    _check_render_mode("render_episode", env, "human")
    pause = step_delay_ms / 1000
    with uncounted(env):
        for _ in _play(env, policy, None):
            if env.render_mode != "human":
                picture = env.render()
                if isinstance(picture, str):
                    sys.stdout.write(picture + "\n")
            time.sleep(pause)
    time.sleep(4 * pause)


@contextlib.contextmanager
def uncounted(env: gymnasium.Env) -> Iterator[None]:
    """Within it, no wrapper of ``env`` counts: where there is an attribute ``counting``, it is ``False``."""
    layers: list[Any] = [env]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    before = [(layer, layer.counting) for layer in layers if hasattr(layer, "counting")]
    for layer, _ in before:
        layer.counting = False
    try:
        yield
    finally:
        for layer, counting in before:
            layer.counting = counting


def _play(env: gymnasium.Env, policy: Callable[[Any], Any] | None, max_steps: int | None) -> Iterator[None]:
    """One episode; yields at each of its states, the first and the last included."""
    s, _ = env.reset()
    yield
    for _ in itertools.count() if max_steps is None else range(max_steps):
        a = env.action_space.sample() if policy is None else policy(s)
        s, _, terminated, truncated, _ = env.step(a)
        yield
        if terminated or truncated:
            return


def _rendered(env: gymnasium.Env) -> list[np.ndarray]:
    """The frames rendered since the last call: one, or several in mode ``rgb_array_list``."""
    picture: Any = env.render()
    frames = picture if isinstance(picture, list) else [picture]
    for frame in frames:
        if not isinstance(frame, np.ndarray):
            raise RuntimeError(
                f"generate_gif: {env} must render arrays; in mode {env.render_mode!r} it rendered "
                f"{type(frame).__name__}. Try gymnasium.make(..., render_mode='rgb_array')."
            )
    return frames


def _check_render_mode(who: str, env: gymnasium.Env, wanted: str) -> None:
    check_gymnasium_env(who, env)
    if env.render_mode is None:
        raise RuntimeError(
            f"{who}: {env} has render_mode None and renders nothing. Try gymnasium.make(..., render_mode={wanted!r})."
        )


def _check_size(resize_to: Any) -> tuple[int, int] | None:
    if resize_to is None:
        return None
    sizes = tuple(resize_to) if isinstance(resize_to, (tuple, list)) else ()
    if len(sizes) != 2 or not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise TypeError(f"generate_gif: resize_to must be (width, height), two positive ints; got {resize_to!r}.")
    return int(sizes[0]), int(sizes[1])
