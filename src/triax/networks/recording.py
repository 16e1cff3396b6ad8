"""What every layer of a network puts out, for analysis."""

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from flax import nnx
from jaxtyping import Array, Bool

from triax.networks.graph import PopulationGraph
from triax.networks.module import StatefulModule
from triax.networks.types import ACTIVATION_KEY, ModuleState, StatefulModuleOutput

N = TypeVar("N", bound=StatefulModule)


class Recorder(StatefulModule):
    """A module that works as the one inside and adds its output to ``metrics[ACTIVATION_KEY]``."""

    def __init__(self, wrapped: StatefulModule):
        self.wrapped = wrapped

    def __call__(self, module_state: ModuleState, obs: Any, rollout_extras: Any = None) -> StatefulModuleOutput:
        """One step."""
        return _recorded(self.wrapped(module_state, obs, rollout_extras))

    def initialize_state(self, batch_size: int) -> ModuleState:
        """That of the module inside."""
        return self.wrapped.initialize_state(batch_size)

    def reset_state(self, prev_state: ModuleState) -> ModuleState:
        """That of the module inside."""
        return self.wrapped.reset_state(prev_state)

    def update_statistics(self, rollout_extras: Any) -> None:
        """That of the module inside."""
        self.wrapped.update_statistics(rollout_extras)

    def unroll(
        self, state: ModuleState, xs: Any, resets: Bool[Array, "time batch"], rollout_extras: Any = None
    ) -> StatefulModuleOutput:
        """That of the module inside, recorded."""
        return _recorded(self.wrapped.unroll(state, xs, resets, rollout_extras))


def _recorded(out: StatefulModuleOutput) -> StatefulModuleOutput:
    return out.replace(metrics={**out.metrics, ACTIVATION_KEY: out.output})


def with_recording(net: N) -> N | Recorder:
    """A copy of ``net`` that records the output of each module without modules inside, and of each graph's
    populations.

    Parameters and statistics are shared with the original, random streams are not: to run the copy leaves no
    trace. For a network that records already, a ``UserWarning`` and the same object.
    """
    if any(_records(module) for _, module in nnx.iter_modules(net)):
        warnings.warn("with_recording: this network records already.", UserWarning, stacklevel=2)
        return net
    copy = nnx.clone(net, variables=False)
    return _record_inside(copy)


def extract_activations(metrics: Any) -> Any:
    """The recorded outputs, nested as the containers are, without anything else; ``None`` if there are none."""
    if not isinstance(metrics, Mapping):
        return None
    if ACTIVATION_KEY in metrics:
        return metrics[ACTIVATION_KEY]
    found = {key: extract_activations(value) for key, value in metrics.items()}
    return {key: value for key, value in found.items() if value is not None} or None


def _records(module: Any) -> bool:
    return isinstance(module, Recorder) or getattr(module, "record_activations", False)


def _record_inside(node: Any) -> Any:
    """``node`` with recorders put in; streams are replaced by copies on the way."""
    if isinstance(node, nnx.RngStream):
        return nnx.clone(node)
    for key, child in list(nnx.iter_children(node)):
        replaced = _record_inside(child) if isinstance(child, nnx.Pytree) else child
        if replaced is not child:
            _put(node, key, replaced)
    if isinstance(node, PopulationGraph):
        node.record_activations = True
        return node
    inside = [m for _, m in nnx.iter_modules(node) if isinstance(m, StatefulModule) and m is not node]
    return Recorder(node) if isinstance(node, StatefulModule) and not inside else node


def _put(node: Any, key: Any, child: Any) -> None:
    if isinstance(node, nnx.Dict | nnx.List):
        node[key] = child
    else:
        setattr(node, key, child)
