import sys
import types

import numpy as np
import pytest

from triax.algorithms import VideoData, wandb_video_fn
from triax.core.errors import MissingExtraError


def test_videos_go_to_wandb_with_channels_before_pixels(monkeypatch):
    logged = []
    fake = types.ModuleType("wandb")
    fake.Video = lambda pictures, **options: (pictures, options)  # pyright: ignore[reportAttributeAccessIssue]
    fake.log = lambda entry, step: logged.append((entry, step))  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    frames = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    wandb_video_fn(key="walk", fps=7)(VideoData(frames, 40, 1.5, 2))
    ((entry, step),) = logged
    pictures, options = entry["walk"]
    assert step == 40 and options == {"fps": 7, "format": "mp4"}
    assert pictures.shape == (2, 3, 4, 5)
    np.testing.assert_array_equal(pictures[1, :, 2, 3], frames[1, 2, 3])


def test_without_wandb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"wandb_video_fn needs the package 'wandb'.*triax\[wandb\]"):
        wandb_video_fn()
