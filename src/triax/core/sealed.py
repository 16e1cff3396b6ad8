"""Objects that take no new public attributes once they are made, so that a mistyped name does not go unnoticed."""

import inspect
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, ClassVar


class _SealedMeta(ABCMeta):
    if not TYPE_CHECKING:  # type checkers then go by ``__init__``

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """The made and sealed object."""
            made = super().__call__(*args, **kwargs)
            object.__setattr__(made, "_is_sealed", True)
            return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of ``__init__``, which ``__call__`` would hide from ``help`` and editors."""
        signature = inspect.signature(cls.__init__)
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters, return_annotation=signature.empty)


class Sealed(metaclass=_SealedMeta):
    """The base of such objects; ``abc.abstractmethod`` works in it.

    ``__init__`` may set any attribute, that of subclasses too. Afterwards a public attribute that neither the object
    nor its class has is refused with an ``AttributeError`` that lists those which may be assigned, and so is a new
    value for what is ``made_of``.
    """

    made_of: ClassVar[frozenset[str]] = frozenset()
    """Attributes that compiled functions hold, so that another value would have no effect, or half of one."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and "_is_sealed" in self.__dict__:
            _refuse(self, name)
        object.__setattr__(self, name, value)


def _refuse(owner: Any, name: str) -> None:
    """An ``AttributeError`` for what may not be assigned."""
    cls, own = type(owner), owner.__dict__.keys()
    is_fixed = name in own and name in cls.made_of
    if not is_fixed and (name in own or hasattr(cls, name)):
        return
    settable = {key for base in cls.__mro__ for key, value in vars(base).items() if _is_settable(value)}
    known = sorted(key for key in (settable | own) - cls.made_of if not key.startswith("_"))
    may = f"What may be assigned: {', '.join(known)}." if known else "Nothing may be assigned."
    if is_fixed:
        raise AttributeError(f"{cls.__name__}.{name} stays as it was made: make another one with it. {may}")
    raise AttributeError(f"{cls.__name__} has no attribute {name!r}. {may}")


def _is_settable(attribute: Any) -> bool:
    """Whether it is a descriptor that takes values; a property without a setter is none."""
    return hasattr(attribute, "__set__") and getattr(attribute, "fset", attribute) is not None
