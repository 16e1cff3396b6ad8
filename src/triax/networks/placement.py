"""Each layer of a network has one place: its carry, its statistics and its noise belong to that."""

from collections.abc import Iterator, Mapping
from typing import Any

from flax import nnx

from triax.networks.module import StatefulModule
from triax.networks.plain import Stateless


def check_places(root: StatefulModule, children: Mapping[str, Any]) -> None:
    """Refuse a tree in which a layer stands twice, or in itself, with a ``ValueError`` that names the places.

    ``children`` are those of ``root``, by name. Layers are what containers have as children and every
    ``StatefulModule``, also inside plain modules. Other modules inside plain ones may be shared: what such places have
    in common is weights, not memory.
    """
    who, places = type(root).__name__, {}

    def visit(module: Any, place: str, above: tuple[int, ...]) -> None:
        layer = isinstance(module, StatefulModule)
        if isinstance(module, Stateless) and isinstance(module.layer, nnx.Module):
            module = module.layer
        if id(module) in above:
            if layer:
                raise ValueError(
                    f"{who}: {place!r} is the {type(module).__name__} that it is inside of; a network cannot contain "
                    "itself. Put another module there."
                )
            return
        first = places.setdefault(id(module), place) if layer else place
        if first != place:
            raise ValueError(
                f"{who}: {first!r} and {place!r} are the same module; a child cannot be used twice. "
                f"Make a second {type(module).__name__}, or compute its output once and share that."
            )
        for name, part in _parts(module):
            visit(part, f"{place}/{name}", (*above, id(module)))

    for name, child in children.items():
        visit(child, name, (id(root),))


def _parts(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules directly inside, by name; of a container its children, not what else refers to them."""
    components = getattr(module, "components", None)
    entries = {"": components} if isinstance(components, nnx.Dict) else vars(module)
    for name, value in entries.items():
        yield from _modules(name, value)


def _modules(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules that ``value`` is or, if it is a list, a tuple or a dict, has."""
    if isinstance(value, list | tuple | nnx.List):
        value = dict(enumerate(value))
    if isinstance(value, dict | nnx.Dict):
        for key, part in value.items():
            yield from _modules(f"{name}/{key}" if name else str(key), part)
    elif isinstance(value, nnx.Module):
        yield name, value
