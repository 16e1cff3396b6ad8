import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from triax.core.errors import MissingExtraError
from triax.runs import check_video_path, write_video
from triax.runs.video_file import VideoError


def frames(count, height=30, width=42):
    for k in range(count):
        frame = np.zeros((height, width, 3), np.uint8)
        frame[:, : 6 * (k + 1)] = (250, 20, 20)
        yield frame


def red_columns(frame):
    frame = np.asarray(frame).astype(int)
    return ((frame[15, :, 0] > 150) & (frame[15, :, 1] < 100)).sum()


def test_a_gif_holds_every_frame_in_order(tmp_path):
    write_video(tmp_path / "new" / "a.gif", frames(5), fps=20)
    with Image.open(tmp_path / "new" / "a.gif") as image:
        found = [(red_columns(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(image)]
    assert found == [(6, 50), (12, 50), (18, 50), (24, 50), (30, 50)]
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.gif"]


@pytest.mark.parametrize(("height", "width", "size"), [(30, 42, (42, 30)), (31, 43, (44, 32))])
def test_an_mp4_holds_every_frame_in_order_and_odd_sides_are_made_even(height, width, size, tmp_path):
    import imageio_ffmpeg

    write_video(tmp_path / "a.mp4", frames(5, height, width), fps=12.5)
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    about = next(reader)
    assert about["size"] == size
    assert about["fps"] == 12.5
    read = [np.frombuffer(frame, np.uint8).reshape(size[1], size[0], 3) for frame in reader]
    np.testing.assert_allclose([red_columns(frame) for frame in read], [6, 12, 18, 24, 30], atol=2)
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize("name", ["a.gif", "a.mp4"])
def test_what_fails_leaves_no_file(name, tmp_path):
    def failing():
        yield from frames(2)
        raise RuntimeError("no more")

    def growing():
        yield from frames(1)
        yield from frames(1, height=32)

    for made, error, message in (
        (failing, RuntimeError, "no more"),
        (growing, ValueError, "pictures of one size"),
        (lambda: iter(()), ValueError, "got none"),
    ):
        with pytest.raises(error, match=message):
            write_video(tmp_path / name, made(), fps=10)
    assert not list(tmp_path.iterdir())


def test_what_ffmpeg_says_is_told_when_it_fails(tmp_path, monkeypatch):
    import imageio_ffmpeg

    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho no such codec >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(program))
    with pytest.raises(VideoError, match="ffmpeg failed: no such codec"):
        write_video(tmp_path / "a.mp4", frames(50, 200, 300), fps=10)
    assert [file.name for file in tmp_path.iterdir()] == ["ffmpeg"]


def test_another_suffix_is_refused():
    with pytest.raises(ValueError, match=r"a\.avi: a video ends in \.mp4 or \.gif; got '\.avi'"):
        check_video_path(Path("a.avi"))


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "imageio_ffmpeg" else find(name))
    with pytest.raises(MissingExtraError, match=r"imageio-ffmpeg.*pip install 'triax\[video\]', or a file.*\.gif"):
        write_video(tmp_path / "a.mp4", frames(1), fps=10)
    write_video(tmp_path / "a.gif", frames(1), fps=10)
