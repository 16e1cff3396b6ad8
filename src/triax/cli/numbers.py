"""Numbers of commands that make no sense are wrong usage."""

import math


def check_positive(name: str, value: int) -> None:
    """``ValueError`` unless it is at least 1."""
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}.")


def check_seed(seed: int) -> None:
    """``ValueError`` unless it is in [0, 2^31)."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be in [0, 2^31); got {seed}.")


def check_stop_at(stop_at: float | None) -> None:
    """``ValueError`` for a return that is no number."""
    if stop_at is not None and math.isnan(stop_at):
        raise ValueError("stop_at must be a number; got nan.")
