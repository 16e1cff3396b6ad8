"""Metrics of a run at Weights & Biases, which is imported when it is asked for."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triax.core.errors import MissingExtraError
from triax.core.json_files import read_json, write_json

ID_FILE, FOLDER = "wandb.json", "wandb"
_PROJECT = "triax"


def require_wandb(who: str) -> None:
    """``MissingExtraError`` for ``who`` unless wandb is installed."""
    if importlib.util.find_spec("wandb") is None:
        raise MissingExtraError.of(who, "wandb", "wandb")


class WandbLog:
    """Sends what is logged of a run to a run of W&B, over the metric ``step``.

    The project is that of the variable ``WANDB_PROJECT``, else ``triax``; ``WANDB_MODE=offline`` and wandb's other
    variables are heeded. The id is kept in ``wandb.json``, so that a run that is resumed goes on in the same one.

    Args:
        folder: of the run; wandb keeps its own files in ``wandb/`` there.
        config: in terms of JSON.
        name: of the run.
        group: of the runs that it belongs to.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], name: str, group: str | None = None) -> None:
        require_wandb("--wandb")
        import wandb

        known = folder / ID_FILE
        found = read_json(known)["id"] if known.is_file() else None
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            dir=str(folder),
            config=dict(config),
            name=name,
            group=group,
            id=found,
            resume="allow" if found and os.environ.get("WANDB_MODE") != "offline" else None,
            reinit="create_new",  # several seeds are several runs of one process
        )
        if found is None:
            write_json(known, {"id": self._run.id})
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Sends metrics of a step; of one that was sent before, too, since a resumed run does it again."""
        self._run.log({**numbers, "step": step})

    def close(self) -> None:
        """Waits until everything is sent."""
        self._run.finish()
