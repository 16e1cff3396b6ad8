"""Videos: pictures one after another, as MP4 or as an animated GIF."""

import importlib.util
import itertools
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from triax.core.errors import MissingExtraError, TriaxError

Frame = UInt8[np.ndarray, "height width 3"]


class VideoError(TriaxError, RuntimeError):
    """A video could not be written."""


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
    from imageio_ffmpeg import get_ffmpeg_exe

    # Its own write_frames forks, of which JAX warns; the program alone is all that is needed of it.
    first = next(frames)
    height, width = first.shape[:2]
    # The colours of most players come in squares of two by two pixels: sides are made even.
    command = f"-y -loglevel error -f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {fps} -i - -an"
    command += f" -c:v libx264 -pix_fmt yuv420p -vf scale={width + width % 2}:{height + height % 2}"
    arguments = [get_ffmpeg_exe(), *command.split(), str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        try:
            for frame in itertools.chain([first], frames):
                process.stdin.write(frame.tobytes())
        except BrokenPipeError:
            pass  # it says why below
        except BaseException:
            process.kill()
            raise
        errors = process.communicate()[1].decode(errors="replace")
    if process.returncode:
        raise VideoError(f"{path}: ffmpeg failed: {errors.strip() or process.returncode}")


def _write_gif(path: Path, frames: Iterator[Frame], fps: float) -> None:
    from PIL import Image

    images = map(Image.fromarray, frames)
    first = next(images)
    first.save(path, format="GIF", save_all=True, append_images=images, duration=1000 / fps, loop=0)


_WRITERS: dict[str, Callable[[Path, Iterator[Frame], float], None]] = {".mp4": _write_mp4, ".gif": _write_gif}
