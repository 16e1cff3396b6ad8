"""Objects that take no new public attributes once they are made, so that a mistyped name does not go unnoticed."""

from abc import ABCMeta
from typing import Any


class Sealed(ABCMeta):
    """The metaclass of such objects: ``__init__`` may set any attribute, of subclasses too.

    Afterwards a public attribute that neither the object nor its class has is refused with an ``AttributeError`` that
    lists those which may be assigned.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """The made and sealed object."""
        made = super().__call__(*args, **kwargs)
        object.__setattr__(made, "_is_sealed", True)
        return made


def refuse_new_attribute(owner: Any, name: str) -> None:
    """``AttributeError`` if ``name`` would be a new public attribute of a sealed object."""
    own = owner.__dict__
    if name.startswith("_") or "_is_sealed" not in own or name in own or hasattr(type(owner), name):
        return
    cls = type(owner)
    settable = {key for base in cls.__mro__ for key, value in vars(base).items() if getattr(value, "fset", None)}
    known = sorted(key for key in settable | own.keys() if not key.startswith("_"))
    raise AttributeError(f"{cls.__name__} has no attribute {name!r}. What may be assigned: {', '.join(known)}.")
