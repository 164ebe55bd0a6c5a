"""The two architectures: a diagonal linear network, and the diagonally grouped one.

The drawing is a list of nodes and weighted edges. To make sure that it shows what the text defines, the same edges are
given random weights and a signal is sent through them: the output must be ``x'w`` with ``w = u^2 - v^2``, and
``w_l = u_l^2 v_l``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.experiments.claim import Claim, judge
from covey.experiments.drawing import draw, item, number, numbers, table
from covey.experiments.style import grid, letter, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The two architectures"
Place = tuple[float, float]
Edge = tuple[Place, Place, str]


@dataclass(frozen=True)
class Settings:
    """How many inputs are drawn, and in groups of what size."""

    n_inputs: int = 6
    group_size: int = 3
    checks: int = 100

    @classmethod
    def quick(cls) -> Settings:
        """It is quick as it is."""
        return cls()

    @classmethod
    def full(cls) -> Settings:
        """The same."""
        return cls()


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The two drawings, and how far the drawn networks are from their formulas."""
    items: list[dict[str, Any]] = []
    for panel, edges in enumerate((diagonal(settings), grouped(settings))):
        for source, target, weight in edges:
            role = f"group{int(weight[1]) - 1}" if panel == 1 else ""
            items.append(item("edge", panel, *source, *target, text=f"${weight[0]}_{{{weight[1:]}}}$", role=role))
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


def grouped(settings: Settings) -> list[Edge]:
    """Inputs of a group meet in one node along the direction; two equal magnitudes follow."""
    p, size = settings.n_inputs, settings.group_size
    out: Place = (4.2, 0.0)
    edges: list[Edge] = []
    for l in range(p // size):
        members = range(l * size, (l + 1) * size)
        ys = [0.85 * ((p - 1) / 2 - i) for i in members]
        meet, then = (1.6, float(np.mean(ys))), (2.8, float(np.mean(ys)))
        edges += [((0.0, y), meet, f"v{l + 1}{k + 1}") for k, y in enumerate(ys)]
        edges += [(meet, then, f"u{l + 1}"), (then, out, f"u{l + 1}")]
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
        value[target] += sign * weights[weight] * value[source]
    return next(value[p] for p in places if p[0] == end)


def _check(settings: Settings, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    p, size = settings.n_inputs, settings.group_size
    x, u, v = rng.standard_normal((3, p))
    weights = {f"u{i + 1}": u[i] for i in range(p)} | {f"v{i + 1}": v[i] for i in range(p)}
    first = _send(diagonal(settings), x, weights, negative=True) - x @ (u**2 - v**2)
    weights = {f"u{l + 1}": u[l] for l in range(p // size)}
    weights |= {f"v{j // size + 1}{j % size + 1}": v[j] for j in range(p)}
    second = _send(grouped(settings), x, weights, negative=False) - x @ (np.repeat(u[: p // size] ** 2, size) * v)
    return abs(float(first)), abs(float(second))


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Both networks side by side."""
    figure, ((left, right),) = grid(1, 2, height=3.3)
    draw(left, frame, 0)
    draw(right, frame, 1)
    letter(left, "a", "diagonal, $w = u^{\\circ 2} - v^{\\circ 2}$ (output $v$ negated)")
    letter(right, "b", "diagonally grouped, $w_l = u_l^2 v_l$")
    return figure


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The drawn networks compute what the text defines."""
    measured = numbers(frame)
    worst = max(measured["diagonal"], measured["grouped"])
    return [
        Claim(
            "fig1",
            "The drawn networks compute x'w with w = u^2 - v^2 and w_l = u_l^2 v_l.",
            "random signals through the drawn edges agree with the formulas to rounding",
            f"largest difference {worst:.1e}; {measured['diagonal weights']:.0f} weights against "
            f"{measured['grouped weights']:.0f} for the inputs drawn (2p against p + L)",
            judge(worst < 1e-12),
        )
    ]
