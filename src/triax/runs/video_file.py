"""Videos: pictures one after another, as MP4 or as an animated GIF."""

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from triax.core.errors import MissingExtraError

Frame = UInt8[np.ndarray, "height width 3"]


def check_video_path(path: Path) -> None:
    """``ValueError`` for a suffix that is none of a video, ``MissingExtraError`` if a package is missing for it."""
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(f"{path}: a video ends in {' or '.join(_WRITERS)}; got {path.suffix!r}.")
    if path.suffix.lower() == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        error = MissingExtraError.of("An .mp4 video", "imageio-ffmpeg", "video")
        raise MissingExtraError(f"{error}, or a file that ends in .gif.")


def write_video(path: Path, frames: Iterable[Frame], fps: float) -> None:
    """Writes the pictures, of one size, as they come, at ``fps`` pictures a second; its folders are made.

    The file appears when it is complete. Raises as :func:`check_video_path`, and ``ValueError`` for pictures of
    different sizes or none at all.
    """
    check_video_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.tmp{path.suffix}")
    try:
        _WRITERS[path.suffix.lower()](temporary, _of_one_size(frames), fps)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _of_one_size(frames: Iterable[Frame]) -> Iterator[Frame]:
    shape = None
    for frame in frames:
        shape = shape or frame.shape
        if frame.shape != shape:
            raise ValueError(f"A video needs pictures of one size; got {frame.shape} after {shape}.")
        yield np.ascontiguousarray(frame)
    if shape is None:
        raise ValueError("A video needs pictures; got none.")


def _write_mp4(path: Path, frames: Iterator[Frame], fps: float) -> None:
    import imageio_ffmpeg

    first = next(frames)
    size = first.shape[1], first.shape[0]
    # The colours of most players come in squares of two by two pixels: sides are scaled to even numbers.
    options: dict[str, Any] = {"fps": fps, "macro_block_size": 2, "ffmpeg_log_level": "error"}
    writer = imageio_ffmpeg.write_frames(str(path), size, **options)
    writer.send(None)  # starts it
    try:
        for frame in itertools.chain([first], frames):
            writer.send(frame)
    finally:
        writer.close()


def _write_gif(path: Path, frames: Iterator[Frame], fps: float) -> None:
    from PIL import Image

    images = map(Image.fromarray, frames)
    first = next(images)
    first.save(path, format="GIF", save_all=True, append_images=images, duration=1000 / fps, loop=0)


_WRITERS: dict[str, Callable[[Path, Iterator[Frame], float], None]] = {".mp4": _write_mp4, ".gif": _write_gif}
