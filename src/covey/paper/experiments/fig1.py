"""The two architectures: a diagonal linear network, and the diagonally grouped one.

The drawing is a list of nodes and weighted edges. To make sure that it shows what the text defines, the same edges are
given random weights and a signal is sent through them: the output must be ``x'w`` with ``w = u^2 - v^2``, and
``w_l = u_l^2 v_l``.

The text's grouped network has ``W_1 = diag(v)`` and ``W_2 = diag(u)``, tied within groups, on p units. The product of
the two is ``u v``; for ``u^2 v`` the signal must pass through ``W_2`` twice, and is drawn that way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge
from covey.paper.experiments.drawing import draw, item, number, numbers, table
from covey.paper.experiments.style import Axes, panel, panels

TITLE = "The two architectures"
Place = tuple[float, float]
Edge = tuple[Place, Place, str]


@dataclass(frozen=True)
class Settings(Scale):
    n_inputs: int = 6
    group_size: int = 3
    checks: int = 100


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The two drawings, and how far the drawn networks are from their formulas."""
    p, size = settings.n_inputs, settings.group_size
    items: list[Record] = []
    heights = [_height(i, p) for i in range(p)]
    for k, edges in enumerate((diagonal(p), grouped(p, size))):
        for source, target, weight in edges:
            text = "" if weight == "1" else f"${weight[0]}_{{{weight[1:]}}}$"
            role = f"group{heights.index(source[1]) // size}" if k == 1 else ""
            items.append(item("edge", k, *source, *target, text=text, role=role))
        places = _places(edges)
        for place in places:
            text, role = "", "layer"
            if place[0] == 0:
                text, role = f"$x_{{{heights.index(place[1]) + 1}}}$", "input"
            elif place == places[-1]:
                text, role = r"$\hat y$", "output"
            items.append(item("node", k, *place, text=text, role=role))
    worst = np.max([_check(p, size, seed) for seed in range(settings.checks)], axis=0)
    names = ("diagonal", "grouped", "two matrices", "two matrices, off", "diagonal weights", "grouped weights")
    return table(items + [number(*pair) for pair in zip(names, (*worst, 2 * p, p + p // size), strict=True)])


def _height(i: int, p: int) -> float:
    return 0.85 * ((p - 1) / 2 - i)


def _places(edges: list[Edge]) -> list[Place]:
    return sorted({place for edge in edges for place in edge[:2]})


def diagonal(p: int) -> list[Edge]:
    """Each input has two paths, of weights u, u and v, -v (drawn v', the sign at the output)."""
    edges: list[Edge] = []
    for i in range(p):
        y = _height(i, p)
        for name, shift in (("u", 0.21), ("v", -0.21)):
            hidden = (1.6, y + shift)
            edges += [((0.0, y), hidden, f"{name}{i + 1}"), (hidden, (3.2, 0.0), f"{name}{i + 1}")]
    return edges


def grouped(p: int, size: int, passes: int = 2) -> list[Edge]:
    """Two layers of p units: ``W_1 = diag(v)``, then ``W_2 = diag(u)`` tied within groups, passed twice or once."""
    edges: list[Edge] = []
    for i in range(p):
        units = [(1.3 * k, _height(i, p)) for k in range(passes + 2)]
        edges += [(units[0], units[1], f"v{i + 1}")]
        edges += [(units[k], units[k + 1], f"u{i // size + 1}") for k in range(1, passes + 1)]
        edges += [(units[-1], (1.3 * (passes + 2), 0.0), "1")]
    return edges


def _send(edges: list[Edge], x: np.ndarray, weights: dict[str, float], negative: bool = False) -> float:
    """Push a signal through the drawn edges, layer by layer."""
    places = _places(edges)
    value = dict.fromkeys(places, 0.0)
    inputs = sorted((place for place in places if place[0] == 0), key=lambda place: -place[1])
    value.update(zip(inputs, x, strict=True))
    for source, target, weight in sorted(edges, key=lambda edge: edge[0][0]):
        sign = -1.0 if negative and target == places[-1] and weight[0] == "v" else 1.0
        value[target] += sign * weights.get(weight, 1.0) * value[source]
    return value[places[-1]]


def _check(p: int, size: int, seed: int) -> tuple[float, float, float, float]:
    """How far the drawn networks are from their formulas, and one pass of ``W_2`` from ``u v`` and from ``u^2 v``."""
    x, u, v = np.random.default_rng(seed).standard_normal((3, p))
    weights = {f"u{i + 1}": u[i] for i in range(p)} | {f"v{i + 1}": v[i] for i in range(p)}
    tied = np.repeat(u[: p // size], size)
    first = _send(diagonal(p), x, weights, negative=True) - x @ (u**2 - v**2)
    second = _send(grouped(p, size), x, weights) - x @ (tied**2 * v)
    once = _send(grouped(p, size, passes=1), x, weights)
    return abs(float(first)), abs(float(second)), abs(once - x @ (tied * v)), abs(once - x @ (tied**2 * v))


@panels(1, 2, height=3.3)
def plot(frame: pd.DataFrame, left: Axes, right: Axes) -> None:
    draw(left, frame, 0)
    draw(right, frame, 1)
    panel(left, "a", "diagonal, $w = u^{\\circ 2} - v^{\\circ 2}$ (output $v$ negated)")
    panel(right, "b", "grouped: diag$(v)$, then diag$(u)$ twice")


def claims(frame: pd.DataFrame) -> Claims:
    measured = numbers(frame)
    worst = max(measured["diagonal"], measured["grouped"])
    yield Claim(
        "The drawn networks compute x'w with w = u^2 - v^2 and w_l = u_l^2 v_l.",
        "random signals through the drawn edges agree with the formulas to rounding",
        f"largest difference {worst:.1e}; {measured['diagonal weights']:.0f} weights against "
        f"{measured['grouped weights']:.0f} for the inputs drawn (2p against p + L)",
        judge(worst < 1e-12),
    )
    yield Claim(
        "The text's two matrices, W_1 = diag(v) and tied W_2 = diag(u), make the parameterisation w_l = u_l^2 v_l.",
        "x'(W_2 W_1) agrees with x'w to rounding on random weights",
        f"it differs by up to {measured['two matrices, off']:.2g}; W_2 W_1 is u v, to "
        f"{measured['two matrices']:.0e}, and W_2 W_2 W_1 is u^2 v",
        judge(measured["two matrices, off"] < 1e-12),
    )
