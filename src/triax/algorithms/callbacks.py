"""Ready-made callbacks of trainings."""

from collections.abc import Callable

import numpy as np

from triax.algorithms.results import VideoData
from triax.core.errors import MissingExtraError


def wandb_video_fn(key: str = "eval_video", fps: int = 30) -> Callable[[VideoData], None]:
    """A ``video_fn`` that logs an mp4 under ``key``, at the step of the training, to Weights & Biases.

    Raises ``MissingExtraError`` when wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise MissingExtraError.of("wandb_video_fn", "wandb", "wandb") from error

    def log(video: VideoData) -> None:
        pictures = np.moveaxis(video.frames, -1, 1)  # wandb wants (time, channels, height, width)
        wandb.log({key: wandb.Video(pictures, fps=fps, format="mp4")}, step=video.step)

    return log
