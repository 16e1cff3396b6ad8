"""Ray, imported when it is needed: this is the only package that does."""

from types import ModuleType

from triax.core.errors import MissingExtraError


def import_ray(who: str) -> ModuleType:
    """The module ``ray``; ``MissingExtraError`` that says what to install."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(who, error.name or "ray", "ray") from error
    return ray
