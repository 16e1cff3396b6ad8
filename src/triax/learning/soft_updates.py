"""Target networks that follow the trained function in the same compiled call as its step."""

from typing import Any

from triax.functions import Approximator


def weights_to_move(who: str, soft_update: Any, trained: Any) -> tuple[tuple[Any, Any], float] | None:
    """``(weights of the target, tau)``, to be moved towards the trained function, of ``(target network, tau)``.

    Raises:
        TypeError: no such pair, or the target is no function like the trained one, or is that one.
        ValueError: ``tau`` is outside [0, 1].
    """
    if soft_update is None:
        return None
    if not isinstance(soft_update, tuple) or len(soft_update) != 2 or not isinstance(soft_update[0], Approximator):
        found = type(soft_update).__name__
        if isinstance(soft_update, tuple):
            found = f"a tuple of {', '.join(type(part).__name__ for part in soft_update)}"
        raise TypeError(f"{who}.update: soft_update must be (target network, tau); got {found}.")
    target, tau = soft_update
    if target is trained:
        raise TypeError(f"{who}.update: soft_update must name a target network; got the function in training itself.")
    target.check_soft_update(trained, tau)
    target.raise_if_lost()
    return (target._params, target._function_state), float(tau)
