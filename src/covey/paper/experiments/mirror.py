"""Beyond mirror descent, on a closed loop (Theorem not-mf).

Four linear losses in turn, ``-w_1, -w_2, w_1, w_2``, each for the same time, drive any mirror flow back to its start.
One group of two columns, ``w = u^2 v``, is driven around that loop, and so is the diagonal network ``w = a^2 - b^2``,
whose flow is a mirror flow with a known potential. Both then solve one equation in two unknowns, from the start and
from the end of the loop: a mirror flow ends at the point of least potential, whatever its path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.groups import Groups
from covey.paper.experiments.base import Claim, Claims, Scale, judge, where
from covey.paper.experiments.style import COLOURS, GREY, Axes, panel, panels
from covey.paper.theory.geometry import DiagonalNetwork, GroupedNetwork, Parameterization, lie_bracket
from covey.paper.theory.mirror import diagonal_mirror, diagonal_potential, drive, follow, mirror_limit

TITLE = "Beyond mirror descent: a closed loop"
GROUPED, DIAGONAL = "grouped", "diagonal"
LOOP, DIRECT, AFTER = "loop", "from the start", "from the end of the loop"
GROUP = Groups.from_sizes([2])


@dataclass(frozen=True)
class Settings(Scale):
    """The loop, the starts, and one equation ``row'w = value``."""

    length: float = 0.2
    halvings: int = 6
    u: float = 1.0
    v: tuple[float, float] = (0.3, 0.5)
    scale: float = 0.5
    row: tuple[float, float] = (1.0, 2.0)
    value: float = 2.0
    time: float = 12.0
    points: int = 60

    def network(self, kind: str) -> tuple[Parameterization, np.ndarray]:
        """A network and the parameters it starts from."""
        if kind == GROUPED:
            network = GroupedNetwork(GROUP)
            return network, network.pack([self.u], self.v)
        return DiagonalNetwork(2), np.full(4, self.scale)

    def pieces(self, length: float) -> list[tuple[np.ndarray, float]]:
        """Along w_1, along w_2, and back in the same order."""
        return [(sign * np.eye(2)[i], length) for sign in (1.0, -1.0) for i in (0, 1)]


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The loops, the distance of their ends from the start for shorter and shorter pieces, and the equation's flows."""
    parts = []
    for kind in (GROUPED, DIAGONAL):
        network, x = settings.network(kind)
        path = drive(network, x, settings.pieces(settings.length), points=settings.points).reshape(-1, x.size)
        parts.append(_points(kind, LOOP, np.arange(len(path)), [network.value(z) for z in path]))
        for k in range(settings.halvings):
            length = settings.length / 2**k
            ends = drive(network, x, settings.pieces(length))
            parts.append(_points(kind, "moved", [length], [network.value(ends[-1, -1]) - network.value(x)]))
        t = settings.time * np.linspace(0, 1, settings.points) ** 3
        for name, begin in ((DIRECT, x), (AFTER, path[-1])):
            flow = follow(network, begin, [settings.row], [settings.value], t)
            parts.append(_points(kind, name, t, [network.value(z) for z in flow]))
    least = mirror_limit([settings.row], [settings.value], settings.scale)
    parts += [_points("problem", "least potential", [0], [least]), _points("problem", "row", [0], [settings.row])]
    parts += [_points("problem", "value and scale", [0], [(settings.value, settings.scale)])]
    bracket = lie_bracket((0, 1), [settings.u], settings.v)[1:] * settings.u**2
    return pd.concat([*parts, _points("problem", "bracket", [0], [bracket])], ignore_index=True)


def _points(network: str, what: str, t: object, w: object) -> pd.DataFrame:
    values = np.asarray(w, dtype=float)
    return pd.DataFrame({"network": network, "what": what, "t": t, "w1": values[:, 0], "w2": values[:, 1]})


def curve(frame: pd.DataFrame, network: str, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, and points of shape (n, 2)."""
    chosen = where(frame, network=network, what=what)
    return chosen["t"].to_numpy(dtype=float), chosen[["w1", "w2"]].to_numpy(dtype=float)


@panels(2, 2, height=2.5, width=6.4)
def plot(frame: pd.DataFrame, left: Axes, middle: Axes, sizes: Axes, limits: Axes) -> None:
    for axes, kind, name in ((left, GROUPED, "a"), (middle, DIAGONAL, "b")):
        w = curve(frame, kind, LOOP)[1]
        for k, piece in enumerate(np.array_split(w, 4)):
            axes.plot(*piece.T, color=COLOURS[k], label=f"{('', '-')[k > 1]}$w_{k % 2 + 1}$")
        axes.plot(*w[0], "o", color="black", ms=5, label="start")
        axes.plot(*w[-1], "s", color="black", ms=5, mfc="none", label="end")
        axes.legend(ncols=2, fontsize=6.5)
        panel(axes, name, f"{kind}, round the loop", xlabel="$w_1$", ylabel="$w_2$")
    t, moved = curve(frame, GROUPED, "moved")
    bracket = curve(frame, "problem", "bracket")[1][0]
    sizes.plot(t, np.linalg.norm(moved, axis=1), "o-", color=COLOURS[0], ms=4, label="grouped")
    sizes.plot(t, t**2 * np.linalg.norm(bracket), ls="--", color=GREY, label="Lie bracket, length$^2$")
    labels = {"xlabel": "length of a piece", "ylabel": "moved by the loop"}
    panel(sizes, "c", "moved, and the bracket", xscale="log", yscale="log", **labels)
    sizes.legend(loc="upper left")
    _draw_limits(limits, frame)
    panel(limits, "d", "let go on one equation", xlabel="$w_1$", ylabel="$w_2$")


def _draw_limits(axes: Axes, frame: pd.DataFrame) -> None:
    row, (value, scale) = curve(frame, "problem", "row")[1][0], curve(frame, "problem", "value and scale")[1][0]
    ends = []
    for kind, colour in ((GROUPED, COLOURS[0]), (DIAGONAL, COLOURS[1])):
        for what, style in ((DIRECT, "-"), (AFTER, ":")):
            w = curve(frame, kind, what)[1]
            axes.plot(*w.T, style, color=colour, label=f"{kind}, {what}")
            axes.plot(*w[-1], "o", color=colour, ms=4)
            ends.append(w)
    least = curve(frame, "problem", "least potential")[1][0]
    axes.plot(*least, "x", color="black", ms=7, label="least potential")
    every = np.concatenate([*ends, [least]])
    low, high = every.min(axis=0) - 0.15, every.max(axis=0) + 0.15
    x, y = np.meshgrid(np.linspace(low[0], high[0], 60), np.linspace(low[1], high[1], 60))
    level = [[diagonal_potential([a, b], scale) for a, b in zip(*pair, strict=True)] for pair in zip(x, y, strict=True)]
    axes.contour(x, y, level, levels=10, colors=GREY, linewidths=0.4)
    line = np.array([low[0], high[0]])
    axes.plot(line, (value - row[0] * line) / row[1], color="black", lw=0.8)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.legend(fontsize=5.5, loc="lower right")


def _tiny(size: float) -> str:
    """A size; values below the precision of the saved table are not distinguished."""
    return "less than 1e-6" if size < 1e-6 else f"{size:.1e}"


def claims(frame: pd.DataFrame) -> Claims:
    moved = {kind: curve(frame, kind, LOOP)[1] for kind in (GROUPED, DIAGONAL)}
    off = {kind: w[-1] - w[0] for kind, w in moved.items()}
    length, short = (values[-1] for values in curve(frame, GROUPED, "moved"))
    bracket = curve(frame, "problem", "bracket")[1][0]
    near = float(np.linalg.norm(short / length**2 - bracket) / np.linalg.norm(bracket))
    ends = {(kind, way): curve(frame, kind, way)[1][-1] for kind in moved for way in (DIRECT, AFTER)}
    apart = {kind: float(np.linalg.norm(ends[kind, DIRECT] - ends[kind, AFTER])) for kind in moved}
    row, (_, scale) = curve(frame, "problem", "row")[1][0], curve(frame, "problem", "value and scale")[1][0]
    least = curve(frame, "problem", "least potential")[1][0]
    gap = float(np.linalg.norm(ends[DIAGONAL, DIRECT] - least))
    image = diagonal_mirror(ends[DIAGONAL, DIRECT], scale)
    residual = float(np.linalg.norm(image - row * (image @ row) / (row @ row)))
    yield Claim(
        "There are a start and a loss that varies in time under which the grouped flow is no mirror flow.",
        "four linear losses that add up to zero move w by more than 1e-3; a mirror flow would return",
        f"({off[GROUPED][0]:.3f}, {off[GROUPED][1]:.3f})",
        judge(np.linalg.norm(off[GROUPED]) > 1e-3),
    )
    yield Claim(
        "(Our check.) The diagonal network, which is a mirror flow, returns on the same loop.",
        "w moves by less than 1e-6",
        _tiny(float(np.linalg.norm(off[DIAGONAL]))),
        judge(np.linalg.norm(off[DIAGONAL]) < 1e-6),
    )
    yield Claim(
        "(Our check.) What the loop moves is the Lie bracket: 4 u^4 (-v_2, v_1) times the length squared.",
        "within 5% for the shortest pieces",
        f"within {near:.1%} for pieces of length {length:g}",
        judge(near < 0.05),
    )
    yield Claim(
        "The limit of a mirror flow meets the KKT condition of its potential.",
        "the diagonal network ends within 1e-4 of the point of least potential, found by Newton's method, and the "
        "mirror image of its end is a multiple of the row to 1e-4",
        f"{_tiny(gap)} away; {_tiny(residual)} off the row",
        judge(gap < 1e-4 and residual < 1e-4),
    )
    yield Claim(
        "The limit of the grouped flow is not decided by a potential: it depends on the way.",
        "after the loop it ends more than 1e-3 away from where it ends without; the diagonal one less than 1e-4",
        f"{apart[GROUPED]:.3f} (grouped), {_tiny(apart[DIAGONAL])} (diagonal)",
        judge(apart[GROUPED] > 1e-3 and apart[DIAGONAL] < 1e-4),
    )
