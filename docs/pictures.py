"""The pictures of docs/learn and docs/architecture.md: ``python docs/pictures.py`` draws them into docs/_static.

Where a picture shows a formula of triax, triax computes it.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from triax.losses import ppo_clip

FOLDER = Path(__file__).parent / "_static"
BLUE, RED, GREY, LIGHT, INK = "#2c5f8a", "#b3432b", "#8a8f98", "#e9eef3", "#22262b"
STYLE = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "text.color": INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "triax",
    "figure.facecolor": "white",
}


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure in inches, and axes in the same units without frame."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return figure, axes


def box(axes: Axes, x: float, y: float, w: float, h: float, text: str, *, fill: str = LIGHT, size: float = 9) -> None:
    """A rounded box with a centred text; ``x, y`` is its lower left corner."""
    shape = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=shape, facecolor=fill, edgecolor=GREY, linewidth=0.8))
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=size, linespacing=1.35)


def arrow(axes: Axes, start: tuple, end: tuple, *, color: str = INK, bend: float = 0.0, style: str = "-") -> None:
    """An arrow between two points."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            color=color,
            linewidth=1,
            linestyle=style,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=0,
            shrinkB=0,
        )
    )


# ------------------------------------------------------------------ values


def values() -> Figure:
    """A grid world: the values of states, and the greedy policy."""
    size, gamma, goal, walls = 5, 0.9, (0, 4), {(1, 3), (1, 2), (3, 1), (3, 2)}
    moves = {(-1, 0): (0, 0.3), (1, 0): (0, -0.3), (0, -1): (-0.3, 0), (0, 1): (0.3, 0)}
    cells = [(i, j) for i in range(size) for j in range(size) if (i, j) not in walls]

    def after(cell: tuple, move: tuple) -> tuple:
        there = cell[0] + move[0], cell[1] + move[1]
        return there if there in cells else cell

    v = dict.fromkeys(cells, 0.0)
    for _ in range(100):
        best = {cell: max(float(after(cell, m) == goal) + gamma * v[after(cell, m)] for m in moves) for cell in cells}
        v = {cell: 0.0 if cell == goal else best[cell] for cell in cells}
    figure = Figure(figsize=(6.4, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, title in ((left, "$v(s)$"), (right, "$\\pi(s) = \\arg\\max_a q(s, a)$")):
        shown = np.full((size, size), np.nan)
        for cell in cells:
            shown[cell] = v[cell]
        colours = mpl.colormaps["Blues"].copy()
        colours.set_bad(GREY)
        axes.imshow(shown, cmap=colours, vmin=0, vmax=1.6)
        axes.set(xticks=[], yticks=[], title=title)
        axes.spines[:].set_visible(False)
        axes.text(goal[1], goal[0], "goal", ha="center", va="center")
    for cell in cells:
        if cell == goal:
            continue
        left.text(cell[1], cell[0], f"{v[cell]:.2f}", ha="center", va="center")
        dx, dy = moves[max(moves, key=lambda m, c=cell: float(after(c, m) == goal) + gamma * v[after(c, m)])]
        tail, head = (cell[1] - dx, cell[0] + dy), (cell[1] + dx, cell[0] - dy)
        right.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": INK})
    return figure


# ------------------------------------------------------------------ rules


def td_rules() -> Figure:
    """Backup diagrams: which part of the tree below (s, a) a target looks at."""
    figure, axes = canvas(6.6, 2.35)
    rules = [
        ("SimpleTD", "$v(s')$", None),
        ("Sarsa", "$q(s', a')$", (1,)),
        ("ExpectedSarsa", r"$\sum_a \pi(a|s')\, q(s', a)$", (0, 1, 2)),
        ("QLearning", r"$\max_a q(s', a)$", (2,)),
        ("SoftQLearning", r"$\tau \log\sum_a e^{q(s', a)/\tau}$", (0, 1, 2)),
    ]
    for column, (name, target, taken) in enumerate(rules):
        x = 0.7 + 1.3 * column
        axes.text(x, 2.15, name, ha="center", va="center", fontweight="bold", fontsize=8.5)
        top = (x, 1.75)
        if taken is None:
            axes.add_patch(Circle(top, 0.09, facecolor="white", edgecolor=INK))
            axes.text(x + 0.17, 1.75, "$s$", va="center")
        else:
            axes.add_patch(Circle(top, 0.055, color=INK))
            axes.text(x + 0.17, 1.75, "$s, a$", va="center")
        axes.plot([x, x], [1.66, 1.24], color=INK, linewidth=1)
        axes.text(x + 0.08, 1.45, "$r$", va="center")
        axes.add_patch(Circle((x, 1.15), 0.09, facecolor=LIGHT if taken is not None else BLUE, edgecolor=INK))
        axes.text(x + 0.17, 1.15, "$s'$", va="center")
        for place, end in enumerate((x - 0.38, x, x + 0.38) if taken is not None else ()):
            used = place in (taken or ())
            axes.plot([x, end], [1.06, 0.66], color=BLUE if used else GREY, linewidth=1.4 if used else 0.7)
            axes.add_patch(Circle((end, 0.62), 0.055, color=BLUE if used else GREY))
        axes.text(x, 0.25, target, ha="center", va="center", fontsize=8.5)
    return figure


def policy_objectives() -> Figure:
    """The clipped surrogate of PPO beside the unclipped one."""
    figure = Figure(figsize=(6.4, 2.5), layout="constrained")
    ratio = np.linspace(0.4, 1.8, 281)
    for axes, advantage in zip(figure.subplots(1, 2, sharey=False), (1.0, -1.0), strict=True):
        clipped = -ppo_clip(jnp.log(ratio), jnp.zeros_like(ratio), jnp.full_like(ratio, advantage), epsilon=0.2)
        axes.plot(ratio, ratio * advantage, color=GREY, linestyle="--", label=r"$\rho A$")
        axes.plot(ratio, clipped, color=BLUE, label=r"PPOClip, $\epsilon = 0.2$")
        for edge in (0.8, 1.2):
            axes.axvline(edge, color=LIGHT, linewidth=1.2, zorder=0)
        axes.plot(1, advantage, "o", color=INK, markersize=4)
        axes.set(title=f"$A = {advantage:+.0f}$", xlabel=r"$\rho = \pi(a|s) / \pi_\mathrm{old}(a|s)$")
        axes.legend(frameon=False)
    return figure


# ------------------------------------------------------------------ experience


def returns() -> Figure:
    """What the return of a step is made of, where an episode ends and where it is cut."""
    figure, axes = canvas(6.6, 2.7)
    rows = [
        (2.2, "terminated", "$G_1 = r_1 + \\gamma r_2 + \\gamma^2 r_3$", False),
        (1.0, "truncated", "$G_1 = r_1 + \\gamma r_2 + \\gamma^2 r_3 + \\gamma^3 v(s_4)$", True),
    ]
    for y, how, formula, bootstraps in rows:
        for step in range(5):
            x = 0.55 + 0.95 * step
            last = step == 4
            axes.add_patch(
                Circle((x, y), 0.17, facecolor=(BLUE if bootstraps else GREY) if last else LIGHT, edgecolor=INK)
            )
            axes.text(x, y, f"$s_{step}$", ha="center", va="center", color="white" if last else INK)
            if not last:
                arrow(axes, (x + 0.17, y), (x + 0.78, y), color=INK if step else GREY)
                axes.text(x + 0.46, y + 0.12, f"$r_{step}$", ha="center", color=BLUE if step else GREY)
        axes.text(4.65, y, how, va="center", color=RED, fontweight="bold")
        axes.text(1.5, y - 0.5, formula, va="center")
    axes.text(5.55, 2.2, "$I_1 = 0$", va="center")
    axes.text(5.55, 1.0, "$I_1 = \\gamma^3$", va="center")
    return figure


def replay() -> Figure:
    """Ring buffer with a window and its burn-in; and how often a transition is drawn."""
    figure = Figure(figsize=(6.6, 2.5))
    left, right = figure.add_axes((0.02, 0.05, 0.5, 0.9)), figure.add_axes((0.62, 0.2, 0.36, 0.66))
    left.set(xlim=(0, 3.3), ylim=(0, 2.25))
    left.set_axis_off()
    ends = (5, 12)
    for place in range(14):
        x = 0.2 + 0.21 * place
        burn_in, window = 6 <= place < 8, 6 <= place < 12
        colour = "#9dbbd6" if burn_in else BLUE if window else LIGHT
        left.add_patch(Rectangle((x, 1.2), 0.19, 0.32, facecolor=colour, edgecolor="white"))
        if place in ends:
            left.plot([x + 0.2] * 2, [1.1, 1.62], color=RED, linewidth=1.4)
    left.text(1.65, 1.68, "burn-in", ha="center", fontsize=8)
    left.text(2.3, 1.68, "learned from", ha="center", fontsize=8)
    left.text(1.62, 0.85, "carry stored here", ha="center", fontsize=8)
    arrow(left, (1.48, 0.95), (1.48, 1.17))
    left.text(0.2, 1.95, "a sequence of replay; red: an episode ends", fontsize=8.5)
    left.text(
        0.2, 0.4, "SequenceReplayBuffer(sequence_length=6),\nbatch with burn_in=2", fontsize=8, color=GREY, va="center"
    )
    error = np.linspace(0.02, 2, 100)
    for alpha, colour in ((0.0, GREY), (0.6, BLUE), (1.0, RED)):
        priority = error**alpha
        right.plot(error, priority / priority.mean(), color=colour, label=rf"$\alpha = {alpha:g}$")
    right.set(xlabel=r"$|\delta|$", title="how often drawn, relative to the mean")
    right.title.set_fontsize(8.5)
    right.legend(frameon=False)
    return figure


# ------------------------------------------------------------------ networks, distributions


def memory() -> Figure:
    """A network along a sequence: the carry is threaded, and cut where an episode begins."""
    figure, axes = canvas(6.6, 2.3)
    for t in range(5):
        x = 0.75 + 1.15 * t
        box(axes, x, 0.95, 0.72, 0.5, "network")
        arrow(axes, (x + 0.36, 0.5), (x + 0.36, 0.93))
        axes.text(x + 0.36, 0.37, f"$s_{t}$", ha="center", va="center")
        arrow(axes, (x + 0.36, 1.47), (x + 0.36, 1.85))
        axes.text(x + 0.36, 2.0, f"output$_{t}$", ha="center", va="center")
        start = (x - 0.43, 1.2)
        if t == 3:
            axes.text(x - 0.17, 1.42, "$c_0$", ha="center", color=RED)
            arrow(axes, (x - 0.3, 1.2), (x - 0.02, 1.2), color=RED)
            axes.plot([x - 0.38] * 2, [0.3, 1.75], color=RED, linestyle=":", linewidth=1.2)
            axes.text(x - 0.38, 0.15, "resets[3]", ha="center", color=RED, fontsize=8)
        else:
            arrow(axes, start, (x - 0.02, 1.2), color=BLUE)
            axes.text(x - 0.22, 1.28, "$c_0$" if t == 0 else f"$c_{t}$", ha="center", color=BLUE)
    arrow(axes, (6.07, 1.2), (6.45, 1.2), color=BLUE)
    axes.text(6.27, 1.28, "$c_5$", ha="center", color=BLUE)
    return figure


def distributions() -> Figure:
    """A squashed normal distribution; a return by bins; a return by quantiles."""
    figure = Figure(figsize=(6.6, 2.3), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    a = np.linspace(-0.999, 0.999, 400)
    for mean, scale, colour in ((0.0, 0.5, BLUE), (1.0, 1.0, RED), (0.0, 1.5, GREY)):
        x = np.arctanh(a)
        density = np.exp(-0.5 * ((x - mean) / scale) ** 2) / (scale * np.sqrt(2 * np.pi)) / (1 - a**2)
        first.plot(a, density, color=colour, label=rf"$\mu={mean:g}, \sigma={scale:g}$")
    first.set(title="squashed normal", xlabel="$a$", yticks=[], ylim=(0, 2.5))
    first.legend(frameon=False, fontsize=7)
    draws = np.sort(np.random.default_rng(0).gamma(3.0, 1.5, 100_000))
    edges = np.linspace(0, 14, 15)
    weights = np.histogram(draws, edges)[0] / len(draws)
    second.bar((edges[1:] + edges[:-1]) / 2, weights, width=0.85, color=BLUE)
    second.set(title="a return by bins", xlabel="return $G$", ylabel="probability")
    fractions = (np.arange(8) + 0.5) / 8
    third.plot(draws[::500], np.linspace(0, 1, len(draws[::500])), color=GREY)
    third.plot(np.quantile(draws, fractions), fractions, "o", color=BLUE, markersize=4)
    third.set(title="a return by quantiles", xlabel="return $G$", ylabel="fraction", xlim=(0, 14))
    for axes in (first, second, third):
        axes.title.set_fontsize(9)
    return figure


# ------------------------------------------------------------------ loops, architecture


def agents_and_loops() -> Figure:
    """Who calls whom: a loop calls the agent and the environment, which do not know each other."""
    figure, axes = canvas(6.6, 2.5)
    box(axes, 0.2, 0.35, 1.75, 1.8, "environment\n\nGymnasium\nor two pure functions\nreset, step")
    box(axes, 2.65, 0.35, 1.3, 1.8, "loop\n\nreplay\nor rollouts,\nkeys,\nhooks", fill="white")
    box(axes, 4.65, 0.35, 1.75, 1.8, "agent\n\npure functions\nof its state:\ninit, act, learn")
    arrow(axes, (1.95, 1.75), (2.63, 1.75))
    axes.text(2.29, 1.83, "$s, r$", ha="center")
    arrow(axes, (2.65, 0.8), (1.97, 0.8))
    axes.text(2.31, 0.88, "$a$", ha="center")
    arrow(axes, (3.95, 1.85), (4.63, 1.85))
    axes.text(4.29, 1.93, "$s$", ha="center")
    arrow(axes, (4.65, 1.4), (3.97, 1.4))
    axes.text(4.31, 1.48, "$a$", ha="center")
    arrow(axes, (3.95, 0.8), (4.63, 0.8))
    axes.text(4.29, 0.88, "batch", ha="center", fontsize=8)
    return figure


def device_loop() -> Figure:
    """Where time goes: a call for each step, or one call for many."""
    figure, axes = canvas(6.6, 2.5)
    axes.text(0.1, 2.3, "VectorOnPolicy, VectorOffPolicy: one compiled call a step", fontsize=8.5)
    axes.text(0.1, 1.05, "DeviceOnPolicy, DeviceOffPolicy: one compiled call for many iterations", fontsize=8.5)
    for y, name in ((1.95, "host"), (1.55, "device"), (0.7, "host"), (0.3, "device")):
        axes.text(0.1, y, name, va="center", fontsize=8, color=GREY)
        axes.plot([0.7, 6.5], [y, y], color=LIGHT, linewidth=1, zorder=0)
    for step in range(8):
        x = 0.75 + 0.72 * step
        axes.add_patch(Rectangle((x, 1.85), 0.38, 0.2, facecolor="#9dbbd6"))
        axes.add_patch(Rectangle((x + 0.4, 1.45), 0.28, 0.2, facecolor=BLUE))
        if step == 0:
            axes.text(x + 0.19, 1.95, "step", ha="center", va="center", fontsize=7)
    axes.add_patch(Rectangle((0.75, 0.6), 0.08, 0.2, facecolor="#9dbbd6"))
    axes.add_patch(Rectangle((0.85, 0.2), 5.5, 0.2, facecolor=BLUE))
    axes.text(
        3.6,
        0.3,
        "act, step, store, learn; act, step, store, learn; ...",
        ha="center",
        va="center",
        fontsize=8,
        color="white",
    )
    axes.add_patch(Rectangle((6.37, 0.6), 0.08, 0.2, facecolor="#9dbbd6"))
    return figure


ABOUT = {
    "cli": "the command triax",
    "distributed": "several processes and machines",
    "algorithms": "whole trainings in one call",
    "runs | loops": "what a run leaves on disk | how experience is gathered",
    "agents": "init, act, learn",
    "td_learning | policy_objectives | model_updaters": "learning rules",
    "regularizers": "entropies and divergences",
    "learning | pictures": "from a loss to a step | curves, grids, graphs",
    "functions": "V, Q, Policy, ...",
    "env_protocol": "what a JAX environment is",
    "losses": "value losses, returns",
    "proba_dists": "distributions over a space",
    "spaces": "Gymnasium space, arrays",
    "core": "no reinforcement learning",
}


def layers() -> list[str]:
    """The layers from above as ``make lint`` checks them, without their package's name."""
    contracts = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [layer.replace("triax.", "").strip("()") for layer in found]


def architecture() -> Figure:
    """The layers; imports point down."""
    names, height = layers(), 0.3
    figure, axes = canvas(6.8, height * len(names) + 0.2)
    for row, name in enumerate(names):
        y = height * (len(names) - 1 - row) + 0.12
        box(axes, 0.15, y, 6.1, height - 0.05, "", fill=LIGHT if row % 2 else "white")
        axes.text(0.25, y + 0.12, name, va="center", fontweight="bold", fontsize=8)
        axes.text(6.15, y + 0.12, ABOUT.get(name, ""), va="center", ha="right", fontsize=8)
    arrow(axes, (6.45, height * len(names)), (6.45, 0.2), color=RED)
    axes.text(6.6, height * len(names) / 2, "imports", rotation=270, va="center", color=RED, fontsize=8)
    return figure


PICTURES: tuple[Callable[[], Figure], ...] = (
    values,
    td_rules,
    policy_objectives,
    returns,
    replay,
    memory,
    distributions,
    agents_and_loops,
    device_loop,
    architecture,
)


def main() -> None:
    """Draw all."""
    with mpl.rc_context(STYLE):
        for draw in PICTURES:
            draw().savefig(FOLDER / f"{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
