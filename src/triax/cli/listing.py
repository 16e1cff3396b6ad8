"""``triax list``: the algorithms, and the runs below a directory."""

import os
from collections.abc import Iterator, Set
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triax.cli.algorithms import ALGORITHMS
from triax.cli.commands import ListRuns
from triax.cli.environments import KINDS
from triax.runs import Run, is_in_use

if TYPE_CHECKING:
    from rich.table import Table

_PARTS = {"config.json", "metrics.jsonl", "record.json", "checkpoints", "states"}
_PLAIN = 80
"""Columns of texts where there is no terminal."""
_ENDLESS = 100_000
"""Of runs there: each has one line, for programs that read it."""


def list_runs(command: ListRuns) -> int:
    """Print the tables, and below them what is no whole run; the exit code."""
    directory = command.directory
    if not directory.is_dir() and directory != Path("runs"):
        raise FileNotFoundError(f"{directory} is no directory.")
    algorithms = [[name, a.summary, a.needs] for name, a in ALGORITHMS.items()]
    _show(_table("Algorithms", ["name", "what it is", "needs"], algorithms))
    environments = [[name, *texts] for name, texts in KINDS.items()]
    _show(_table("Environments", ["name", "what it is", "extra"], environments))
    rows, broken = [], []
    for path in _find(directory):
        try:
            rows.append(_row(path, directory))
        except (ValueError, TypeError, KeyError, OSError) as error:
            broken.append(f"{path}: {' '.join(str(error).split())}")
    if rows:
        columns = ["run", "algorithm", "environment", "seed", "steps", "last return", "state", "time"]
        _show(_table(f"Runs in {directory}", columns, rows, right={"seed", "steps", "last return", "time"}), whole=True)
    else:
        print(f"No runs in {directory}.")
    for line in broken:
        print(f"Not readable: {line}")
    return 0


def _find(directory: Path) -> Iterator[Path]:
    """Folders that hold a part of a run, by name; nothing is sought inside of them."""
    for folder, folders, files in os.walk(directory):
        folders.sort()
        if _PARTS & {*folders, *files}:
            folders.clear()
            yield Path(folder)


def _row(path: Path, directory: Path) -> list[str]:
    run = Run.open(path)
    config, record = run.read_config(), run.record
    fields: dict[str, Any] = config if isinstance(config, dict) else {}
    metrics = run.read_metrics() if (path / "metrics.jsonl").exists() else None
    rows = metrics.rows if metrics else []
    returns = metrics.series("eval/episode_reward/mean")[1] if metrics else []
    done = max(record.step, rows[-1]["step"] if rows else 0)
    total = record.total_steps or fields.get("total_steps")
    return [
        str(path.relative_to(directory)) if path != directory else path.name,
        *(str(fields.get(name, "-")) for name in ("algorithm", "env")),
        _seeds(fields),
        f"{done:,} / {total:,}" if isinstance(total, int) else f"{done:,}",
        f"{returns[-1]:.1f}" if len(returns) else "-",
        _state(run),
        str(timedelta(seconds=round(record.seconds))),
    ]


def _seeds(fields: dict[str, Any]) -> str:
    """One, or the first and the last of those that were trained together."""
    seed, count = fields.get("seed", "-"), fields.get("seeds", 1)
    return f"{seed} to {seed + count - 1}" if count > 1 else str(seed)


def _state(run: Run) -> str:
    record = run.record
    if record.state == "unfinished" and is_in_use(run.path):
        return "running"
    resumed = f", resumed {len(record.sessions) - 1}x" if len(record.sessions) > 1 else ""
    return f"{'finished at its goal' if record.reached_goal else record.state}{resumed}"


def _table(title: str, columns: list[str], rows: list[list[str]], right: Set[str] = frozenset()) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _show(table: "Table", *, whole: bool = False) -> None:
    """In a terminal as wide as that is, elsewhere in plain lines; ``whole``: no row is wrapped there."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        table.box = None
        console = Console(width=_ENDLESS if whole else _PLAIN)
    console.print(table)
    console.print()
