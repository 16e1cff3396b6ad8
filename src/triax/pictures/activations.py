"""What the units of a network do over time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Bool, Num, PyTree

from triax.core.leaves import named_leaves
from triax.pictures.style import GREY, INK, new_figure, title_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_activations(
    axes: "Axes",
    activations: Num[Any, "time *units"],
    *,
    resets: Bool[Any, " time"] | None = None,
    title: str = "",
) -> None:
    """Draws units as rows and steps as columns; blue is negative, red positive, white 0.

    ``resets`` tells where a step begins an episode: a line is drawn before it.
    """
    from matplotlib.ticker import MaxNLocator

    rows = np.asarray(activations, np.float64)
    rows = rows.reshape(len(rows), -1).T
    most = float(np.nanmax(np.abs(rows), initial=0.0)) or 1.0
    image = axes.imshow(
        rows, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest", origin="upper"
    )
    axes.figure.colorbar(image, ax=axes)
    for step in [] if resets is None else np.flatnonzero(np.asarray(resets)):
        axes.axvline(step - 0.5, color=INK, linewidth=1)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("unit", color=INK)
    axes.tick_params(colors=GREY, labelcolor=INK)
    title_axes(axes, title)


def plot_activations(
    activations: PyTree[Num[Any, "time batch ..."]],
    *,
    row: int = 0,
    resets: Bool[Any, "time batch"] | None = None,
) -> "Figure":
    """A figure with a picture of each layer, one below another, of one row of the batch.

    ``activations`` are what :func:`~triax.networks.extract_activations` gives of an ``unroll``. Leaves of other arrays
    than numbers over time and batch are an error of theirs; ``None`` and ``{}`` are a ``ValueError``.
    """
    layers = _layers(activations)
    if not layers:
        raise ValueError("plot_activations: there are no activations. Record them: triax.networks.with_recording.")
    figure = new_figure(8.0, 0.6 + 1.6 * len(layers))
    all_axes = figure.subplots(len(layers), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, layer) in zip(all_axes, layers.items(), strict=True):
        mine = None if resets is None else np.asarray(resets)[:, row]
        draw_activations(axes, layer[:, row], resets=mine, title=name)
        axes.label_outer()
    return figure


def _layers(activations: Any) -> Mapping[str, np.ndarray]:
    """By their names; keys of mappings stay in their order, which is that of the computation."""
    if isinstance(activations, Mapping):
        return {
            "/".join(filter(None, [str(key), inner])): layer
            for key, value in activations.items()
            for inner, layer in _layers(value).items()
        }
    leaves = named_leaves(activations) if activations is not None else {}
    return {str(name): np.asarray(jax.device_get(leaf)) for name, leaf in dict(leaves).items()}
