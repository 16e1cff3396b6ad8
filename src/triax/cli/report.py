"""``triax report``: all of a run on one page."""

from triax.cli.commands import MakeReport
from triax.runs import Run, write_report


def report_run(command: MakeReport) -> int:
    """Write the page and print where; the exit code."""
    run = Run.open(command.run)
    path = write_report(run, command.out)
    if run.video is None:
        print(f"Without a video: for one, triax video {command.run} first.")
    print(f"Report: {path}")
    return 0
