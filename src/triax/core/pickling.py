"""What pickle is told by objects that hold compiled functions."""

import traceback
from typing import Any


def refuse_pickle(owner: Any, protocol: Any, instead: str) -> Any:
    """What ``__reduce_ex__`` gives: a ``TypeError`` with advice.

    Pickle stores functions by their names, and those inside a closure have none. The cloudpickle of Ray and others
    stores them whole, so that it is let through.
    """
    if any("cloudpickle" in frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_stack(None)):
        return object.__reduce_ex__(owner, protocol)
    raise TypeError(f"{type(owner).__name__} cannot be pickled: it holds compiled functions. {instead}")
