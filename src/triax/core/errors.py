"""Errors that triax raises: each message says who, what was expected, what came, and what to try."""


class TriaxError(Exception):
    """Base of all errors that are triax's own."""


class EpisodeDoneError(TriaxError, ValueError):
    """Something was added to, or asked of, an episode that is over."""


class InsufficientCacheError(TriaxError, ValueError):
    """More was asked of a tracer or a replay buffer than it holds."""


class UnavailableActionError(TriaxError, ValueError):
    """An action that the present state does not allow."""


class OutOfRangeError(TriaxError, ValueError, TypeError):
    """A number or a count that is out of its range, where coax raises ``TypeError`` and other parts ``ValueError``."""


class NonFiniteError(TriaxError, ValueError, RuntimeError):
    """NaN or infinity where a finite number is needed; nothing was changed by it."""


class LostWeightsError(TriaxError, RuntimeError):
    """A compiled step failed while it held the weights in training, which are gone."""


class MissingExtraError(TriaxError, ImportError, ValueError):
    """An argument needs an optional dependency: the message names the extra to install."""

    @classmethod
    def of(cls, who: str, package: str, extra: str) -> "MissingExtraError":
        """The error for ``who`` needing ``package``, which ``pip install triax[extra]`` brings."""
        return cls(f"{who} needs the package {package!r}. Try: pip install 'triax[{extra}]'")
