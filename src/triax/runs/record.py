"""How far a run came, and each time that it was trained: ``record.json`` beside its config."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from triax.core.errors import TriaxError
from triax.core.json_files import read_json, write_json
from triax.runs.config_file import decode_config, encode_config, installed_versions

SCHEMA = 1
"""Version of the layout of ``record.json``; other versions are refused."""

State = Literal["unfinished", "stopped", "finished"]
"""``finished``: the last step or the goal was reached; ``stopped``: on request; else running, killed or failed."""


class RunRecordError(TriaxError, ValueError):
    """A ``record.json`` that cannot be read; the message names it."""


@dataclass(frozen=True)
class Session:
    """One time that a run was trained: at its beginning, or resumed."""

    from_step: int
    """The steps done before."""
    total_steps: int
    """The step at which it was to end."""
    stop_at: float | None
    """The mean return that was to end it; ``None`` for the environment's own threshold."""
    began: float
    """Seconds since 1970."""
    versions: dict[str, str]
    """Of triax, Python and the packages that decide numbers."""


@dataclass(frozen=True)
class RunRecord:
    """How far a run came."""

    state: State = "unfinished"
    step: int = 0
    """Steps done when this was written: at the end, or when a state to resume from was saved."""
    seconds: float = 0.0
    """Time spent on training, of all sessions."""
    sessions: tuple[Session, ...] = ()

    @property
    def total_steps(self) -> int | None:
        """The step at which the last session was to end."""
        return self.sessions[-1].total_steps if self.sessions else None

    @property
    def reached_goal(self) -> bool:
        """Whether it ended before its last step, at the goal."""
        return self.state == "finished" and self.step < (self.total_steps or 0)

    def with_session(self, from_step: int, total_steps: int, stop_at: float | None) -> "RunRecord":
        """The record at the beginning of another session, now."""
        session = Session(from_step, total_steps, stop_at, time.time(), installed_versions())
        return replace(self, state="unfinished", step=from_step, sessions=(*self.sessions, session))


def write_record(path: Path, record: RunRecord) -> None:
    """Replaces the file as a whole."""
    write_json(path, {"schema": SCHEMA, "record": encode_config(record)})


def read_record(path: Path) -> RunRecord:
    """That of the file; of a run that has not begun where there is none. Raises ``RunRecordError``."""
    if not path.exists():
        return RunRecord()
    try:
        content = read_json(path)
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise ValueError(f"{path}: expected a record of schema {SCHEMA}.")
        return decode_config(RunRecord, content["record"])
    except (ValueError, KeyError) as error:
        raise RunRecordError(f"{path} is no record of a run: {error}") from error
