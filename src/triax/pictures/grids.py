"""Maps of grid worlds: what each cell is worth, and what is done there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Discrete
from jaxtyping import Bool, Float, Num, Shaped

from triax.functions.predicates import is_policy, is_qfunction, is_stochastic, is_vfunction
from triax.pictures.style import INK, title_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Moves = Sequence[tuple[int, int]]
"""Rows down and columns to the right that each action moves by; (0, 0) for one that stays."""

LEFT_DOWN_RIGHT_UP: Moves = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""The actions of Gymnasium's FrozenLake."""

_LONGEST = 0.42
_FAINTEST = 0.02


def tabulate(f: Any, shape: tuple[int, int]) -> Float[np.ndarray, "rows columns ..."]:
    """What ``f`` says in every state of a grid whose states are numbered row by row.

    ``[rows, columns]`` values of a ``V``, ``[rows, columns, actions]`` values of a ``Q``, or probabilities of a policy;
    expected ones where ``f`` is of distributions.

    Raises:
        TypeError: ``f`` is none of these, has memory, or observations or actions are not ``Discrete``.
        ValueError: there are not as many states as cells.
    """
    name, space = type(f).__name__, getattr(f, "observation_space", None)
    if not (is_vfunction(f) or is_qfunction(f) or is_policy(f)):
        raise TypeError(f"tabulate: expected a V, a Q or a policy; got {name}.")
    if not isinstance(space, Discrete) or f.has_memory:
        memory = " and no memory" if f.has_memory else ""
        raise TypeError(f"tabulate: {name} needs a Discrete observation space{memory}; it has {space}.")
    if not is_vfunction(f) and not isinstance(f.action_space, Discrete):
        raise TypeError(f"tabulate: {name} needs a Discrete action space; it has {f.action_space}.")
    if space.n != np.prod(shape):
        raise ValueError(f"tabulate: {shape[0]} x {shape[1]} cells need as many states; {name} has {space.n}.")
    rows = [np.asarray(_ask(f, int(space.start) + i), np.float64) for i in range(int(space.n))]
    return np.stack(rows).reshape(*shape, *rows[0].shape)


def _ask(f: Any, s: int) -> Any:
    if is_policy(f):
        logits = np.asarray(f.dist_params(s)["logits"], np.float64)
        odds = np.exp(logits - logits.max())
        return odds / odds.sum()
    return f.mean(s) if is_stochastic(f) else f(s)


def draw_values(
    axes: "Axes",
    values: Num[Any, "rows columns"],
    *,
    labels: Shaped[Any, "rows columns"] | None = None,
    title: str = "",
    form: str = "{:.2f}",
) -> None:
    """Draws a number in each cell, on a colour that goes from the least to the greatest; NaN stays white and empty.

    ``labels`` are written in the corners of cells, such as the letters of a FrozenLake (``env.unwrapped.desc``).
    """
    values = np.asarray(values, np.float64)
    image = axes.imshow(values, cmap="viridis", origin="upper")
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    finite = np.isfinite(values)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 0.0)
    colours = np.where(finite & (values <= low + 0.55 * (high - low)), "white", INK)
    for (row, column), value in np.ndenumerate(values):
        if finite[row, column]:
            axes.text(
                column + 0.45, row + 0.42, form.format(value), ha="right", va="bottom", fontsize=8,
                color=str(colours[row, column]),
            )  # fmt: skip
    _dress(axes, labels, title, colours)


def draw_policy(
    axes: "Axes",
    probabilities: Num[Any, "rows columns actions"],
    *,
    moves: Moves = LEFT_DOWN_RIGHT_UP,
    blank: Bool[Any, "rows columns"] | None = None,
    labels: Shaped[Any, "rows columns"] | None = None,
    title: str = "",
) -> None:
    """Draws an arrow for each action, as long as the action is likely; for one that stays, a dot as large.

    Args:
        axes: where to; over :func:`draw_values`, or empty.
        probabilities: of the actions in each cell.
        moves: where each action goes.
        blank: cells without arrows, such as holes and goals.
        labels: in the corners of cells.
        title: above the picture.

    Raises:
        ValueError: there are not as many moves as actions.
    """
    probabilities = np.asarray(probabilities, np.float64)
    rows, columns, actions = probabilities.shape
    if len(moves) != actions:
        raise ValueError(f"draw_policy: moves must be as many as the {actions} actions; got {len(moves)}.")
    shown = np.ones((rows, columns), bool) if blank is None else ~np.asarray(blank, bool)
    empty = not axes.images
    for action, (down, right) in enumerate(moves):
        likely = probabilities[..., action]
        row, column = np.nonzero(shown & (likely > _FAINTEST))
        size = _LONGEST * likely[row, column]
        name = f"action {action}"
        if (down, right) == (0, 0):
            axes.scatter(column, row, s=150 * likely[row, column], color=INK, label=name)
            continue
        norm = float(np.hypot(down, right))
        axes.quiver(
            column, row, right / norm * size, down / norm * size, angles="xy", scale_units="xy", scale=1,
            color=INK if empty else "white", edgecolor=INK, linewidth=0.4, width=0.009, label=name,
        )  # fmt: skip
    if empty:
        axes.set_xlim(-0.5, columns - 0.5)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.set_aspect("equal")
    _dress(axes, labels, title, np.full((rows, columns), INK if empty else "white"))


def _dress(axes: "Axes", labels: Any, title: str, colours: Shaped[np.ndarray, "rows columns"]) -> None:
    """Lines between cells, and labels in them in these colours."""
    rows, columns = colours.shape
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white" if axes.images else INK, linewidth=1)
    axes.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    axes.set_xticks(range(columns))
    axes.set_yticks(range(rows))
    axes.grid(which="major", visible=False)
    for (row, column), label in np.ndenumerate(np.empty((0, 0)) if labels is None else np.asarray(labels)):
        text = label.decode() if isinstance(label, bytes) else str(label)
        axes.text(
            column - 0.45, row - 0.45, text, ha="left", va="top", fontsize=7, fontweight="bold",
            color=str(colours[row, column]),
        )  # fmt: skip
    if title:
        title_axes(axes, title)
