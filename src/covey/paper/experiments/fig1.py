"""The two architectures: a diagonal linear network, and the diagonally grouped one.

The drawing is a list of nodes and weighted edges. To make sure that it shows what the text defines, the same edges are
given random weights and a signal is sent through them: the output must be ``x'w`` with ``w = u^2 - v^2``, and
``w_l = u_l^2 v_l``.

The text's grouped network has ``W_1 = diag(v)`` and ``W_2 = diag(u)``, tied within groups, on p units. The product of
the two is ``u v``; for ``u^2 v`` the signal must pass through ``W_2`` twice, and is drawn that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.drawing import draw, item, number, numbers, table
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.style import Figure, grid, letter, styled

TITLE = "The two architectures"
Place = tuple[float, float]
Edge = tuple[Place, Place, str]


@dataclass(frozen=True)
class Settings(Scale):
    """The number of inputs to draw, and the group size."""

    n_inputs: int = 6
    group_size: int = 3
    checks: int = 100


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The two drawings, and how far the drawn networks are from their formulas."""
    items: list[dict[str, Any]] = []
    rows = [edge[0] for edge in grouped(settings) if edge[0][0] == 0]
    for panel, edges in enumerate((diagonal(settings), grouped(settings))):
        for source, target, weight in edges:
            role, text = "", "" if weight == "1" else f"${weight[0]}_{{{weight[1:]}}}$"
            if panel == 1:
                role = f"group{[place[1] for place in rows].index(source[1]) // settings.group_size}"
            items.append(item("edge", panel, *source, *target, text=text, role=role))
        places = sorted({place for edge in edges for place in edge[:2]})
        inputs = sorted((p for p in places if p[0] == 0), key=lambda p: -p[1])
        for place in places:
            last = place[0] == max(p[0] for p in places)
            text = f"$x_{{{inputs.index(place) + 1}}}$" if place in inputs else (r"$\hat y$" if last else "")
            items.append(
                item(
                    "node", panel, *place, text=text, role="input" if place in inputs else "output" if last else "layer"
                )
            )
    worst = [_check(settings, seed) for seed in range(settings.checks)]
    items.append(number("diagonal", max(w[0] for w in worst)))
    items.append(number("grouped", max(w[1] for w in worst)))
    items.append(number("two matrices", max(w[2] for w in worst)))
    items.append(number("two matrices, off", max(w[3] for w in worst)))
    items.append(number("diagonal weights", 2 * settings.n_inputs))
    items.append(number("grouped weights", settings.n_inputs + settings.n_inputs // settings.group_size))
    return table(items)


def diagonal(settings: Settings) -> list[Edge]:
    """Each input has two paths, of weights u, u and v, -v (drawn v', the sign at the output)."""
    p = settings.n_inputs
    out: Place = (3.2, 0.0)
    edges: list[Edge] = []
    for i in range(p):
        y = 0.85 * ((p - 1) / 2 - i)
        for name, shift in (("u", 0.21), ("v", -0.21)):
            hidden = (1.6, y + shift)
            edges += [((0.0, y), hidden, f"{name}{i + 1}"), (hidden, out, f"{name}{i + 1}")]
    return edges


def grouped(settings: Settings, passes: int = 2) -> list[Edge]:
    """Two layers of p units: ``W_1 = diag(v)``, then ``W_2 = diag(u)`` tied within groups, passed twice or once."""
    p, size = settings.n_inputs, settings.group_size
    out: Place = (1.3 * (passes + 2), 0.0)
    edges: list[Edge] = []
    for i in range(p):
        y, tied = 0.85 * ((p - 1) / 2 - i), f"u{i // size + 1}"
        units = [(1.3 * k, y) for k in range(passes + 2)]
        edges += [(units[0], units[1], f"v{i + 1}")]
        edges += [(units[k], units[k + 1], tied) for k in range(1, passes + 1)]
        edges += [(units[-1], out, "1")]
    return edges


def _send(edges: list[Edge], x: np.ndarray, weights: dict[str, float], negative: bool) -> float:
    """Push a signal through the drawn edges, layer by layer."""
    places = sorted({place for edge in edges for place in edge[:2]})
    inputs = sorted((p for p in places if p[0] == 0), key=lambda p: -p[1])
    value = dict.fromkeys(places, 0.0)
    value.update(zip(inputs, x, strict=True))
    end = max(p[0] for p in places)
    for source, target, weight in sorted(edges, key=lambda edge: edge[0][0]):
        sign = -1.0 if negative and target[0] == end and weight[0] == "v" else 1.0
        value[target] += sign * weights.get(weight, 1.0) * value[source]
    return next(value[p] for p in places if p[0] == end)


def _check(settings: Settings, seed: int) -> tuple[float, float, float, float]:
    """How far the drawn networks are from their formulas, and one pass of ``W_2`` from ``u v`` and from ``u^2 v``."""
    rng = np.random.default_rng(seed)
    p, size = settings.n_inputs, settings.group_size
    x, u, v = rng.standard_normal((3, p))
    weights = {f"u{i + 1}": u[i] for i in range(p)} | {f"v{i + 1}": v[i] for i in range(p)}
    first = _send(diagonal(settings), x, weights, negative=True) - x @ (u**2 - v**2)
    weights = {f"u{l + 1}": u[l] for l in range(p // size)}
    weights |= {f"v{i + 1}": v[i] for i in range(p)}
    tied = np.repeat(u[: p // size], size)
    second = _send(grouped(settings), x, weights, negative=False) - x @ (tied**2 * v)
    once = _send(grouped(settings, passes=1), x, weights, negative=False)
    return abs(float(first)), abs(float(second)), abs(once - x @ (tied * v)), abs(once - x @ (tied**2 * v))


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Both networks side by side."""
    figure, ((left, right),) = grid(1, 2, height=3.3)
    draw(left, frame, 0)
    draw(right, frame, 1)
    letter(left, "a", "diagonal, $w = u^{\\circ 2} - v^{\\circ 2}$ (output $v$ negated)")
    letter(right, "b", "grouped: diag$(v)$, then diag$(u)$ twice")
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The drawn networks compute what the text defines."""
    measured = numbers(frame)
    worst = max(measured["diagonal"], measured["grouped"])
    return [
        Claim(
            "The drawn networks compute x'w with w = u^2 - v^2 and w_l = u_l^2 v_l.",
            "random signals through the drawn edges agree with the formulas to rounding",
            f"largest difference {worst:.1e}; {measured['diagonal weights']:.0f} weights against "
            f"{measured['grouped weights']:.0f} for the inputs drawn (2p against p + L)",
            judge(worst < 1e-12),
        ),
        Claim(
            "The text's two matrices, W_1 = diag(v) and tied W_2 = diag(u), make the parameterisation w_l = u_l^2 v_l.",
            "x'(W_2 W_1) agrees with x'w to rounding on random weights",
            f"it differs by up to {measured['two matrices, off']:.2g}; W_2 W_1 is u v, to "
            f"{measured['two matrices']:.0e}, and W_2 W_2 W_1 is u^2 v",
            judge(measured["two matrices, off"] < 1e-12),
        ),
    ]
