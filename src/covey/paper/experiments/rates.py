"""Rates: squared error against n, s, sigma, log p and the group size (Corollary subgaussian-noise).

The corollary promises ``norm(w(t) - w*)^2 <~ s sigma^2 log(p)/n``. One quantity is varied at a time around a base
setting; slopes on log axes are fitted to the means over repeats. The network is compared with least squares on the true
groups and with the minimax order of group sparsity, ``sigma^2 s (k + log(e L/s))/n``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.datasets import make_group_sparse
from covey.datasets.simulate import Noise
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, scaled, where
from covey.paper.experiments.slopes import Slope, fit
from covey.paper.experiments.style import COLOURS, GREY, Axes, fill_ticks, panel, panels
from covey.paper.experiments.tasks import records
from covey.paper.experiments.traces import descend, errors
from covey.validation import FloatArray

TITLE = "Rates: squared error against n, s, sigma, log p and the group size"

BEST, HELD_OUT, ORACLE = METHODS = (
    "network, best time", "network, held-out time", "least squares on the true groups",
)  # fmt: skip
AXES = {"n": "rows n", "s": "non-zero groups s", "sigma": "noise sigma", "p": "log p", "group_size": "group size k"}
LEVEL = 0.05

# With a standard error of 0.15, a slope that is off by 1/2 is rejected in 91 of 100 runs. A less precise slope does not
# test a claim.
MOST_ERROR = 0.15


@dataclass(frozen=True)
class Settings(Scale):
    """Base values, grids and effort. Every group of the support has norm 1 in every setting."""

    n: int = 400
    p: int = 300
    group_size: int = 3
    s: int = 4
    sigma: float = 0.5
    grid_n: tuple[int, ...] = scaled((150, 200, 300, 400, 600, 800, 1200, 1600), quick=(150, 250, 400, 650, 1000))
    grid_s: tuple[int, ...] = scaled((1, 2, 3, 4, 6, 8, 12), quick=(1, 2, 4, 8))
    grid_sigma: tuple[float, ...] = scaled((0.03125, 0.0625, 0.125, 0.25, 0.5, 0.7), quick=(0.0625, 0.125, 0.25, 0.5))
    grid_p: tuple[int, ...] = scaled((60, 150, 300, 600, 1200, 2400), quick=(60, 150, 300, 750, 1800))
    grid_group_size: tuple[int, ...] = scaled((1, 2, 3, 4, 6, 8, 12, 16, 24), quick=(1, 2, 4, 8, 16))
    repeats: int = scaled(30, quick=12)
    n_steps: int = 1000
    init_scale: float = 1e-6
    noise: Noise = "gaussian"
    depth: int = 2

    def at(self, axis: str, value: Any) -> Settings:
        """With one value changed; another group size leaves the number of groups as it is."""
        columns = {"p": self.p // self.group_size * value} if axis == "group_size" else {}
        return replace(self, **{axis: value}, **columns)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Simulate; one row per axis, value, repeat and method, with the squared error and the problem's numbers."""
    work = [
        (settings.at(axis, value), axis, value, [0, a, j, r])
        for a, axis in enumerate(AXES)
        for j, value in enumerate(getattr(settings, f"grid_{axis}"))
        for r in range(settings.repeats)
    ]
    return pd.DataFrame(records(simulate, work, jobs))


def simulate(item: tuple[Settings, str, float, list[int]]) -> list[Record]:
    """One data set: Algorithm 1 at its best time and at the time chosen on a held-out third, and the oracle."""
    at, axis, value, seed = item
    n, s, k = at.n, at.s, at.group_size
    data = make_group_sparse(
        n + n // 3, at.p, k, active=s, values=1 / math.sqrt(k), sigma=at.sigma, noise=at.noise,
        random_state=np.random.default_rng(seed),
    )  # fmt: skip
    train = replace(data, X=data.X[:n], y=data.y[:n], noise=data.noise[:n])
    # groups of the support have norm 1, and the theorem's largest step is 1/(5 N^2): 1/20 for N = 2
    options = {"init_scale": at.init_scale, "step_size": 1 / (5 * at.depth**2), "depth": at.depth}
    path = descend(train, n_steps=at.n_steps, record_every=5, **options)
    held_out = np.mean((data.y[n:, None] - data.X[n:] @ path.w.T) ** 2, axis=0)
    found = (errors(path).min(), errors(path)[np.argmin(held_out)], np.sum((train.oracle() - train.w_star) ** 2))
    known = {
        "corollary": s * at.sigma**2 * math.log(at.p) / n,
        "minimax": at.sigma**2 * s * (k + math.log(math.e * (at.p // k) / s)) / n,
    }
    place = {"axis": axis, "value": value, "repeat": seed[-1]}
    return [{**place, "method": m, "error": float(error), **known} for m, error in zip(METHODS, found, strict=True)]


def slopes(frame: pd.DataFrame) -> dict[tuple[str, str], Slope]:
    """The slope for each axis and method. The axis p is on the scale log p."""
    found = {}
    for (axis, method), part in frame.groupby(["axis", "method"], sort=False):
        found[str(axis), str(method)] = fit(_scale(str(axis), part["value"]), part["error"])
    return found


def _scale(axis: str, values: ArrayLike) -> FloatArray:
    return np.log(values) if axis == "p" else np.asarray(values, dtype=float)


def claims(frame: pd.DataFrame) -> Claims:
    table = slopes(frame)
    for axis, text, wanted in (
        ("n", "error falls like 1/n", -1),
        ("s", "error grows like s", 1),
        ("sigma", "error grows like sigma^2", 2),
        ("p", "error grows no faster than log p", 1),
        ("group_size", "error does not depend on the group size, which the corollary leaves out", 0),
    ):
        slope = table[axis, BEST]
        expected = f"slope {wanted:g} is not rejected at the 5% level, with a standard error of at most {MOST_ERROR:g}"
        holds = slope.error <= MOST_ERROR and not slope.rejects(wanted, LEVEL)
        if axis == "p":
            expected, holds = "a slope of 1 or more is rejected at the 5% level", slope.is_below(wanted, LEVEL)
        yield Claim(text, expected, f"{slope} (standard error)", judge(holds))
    wide = frame.pivot_table(index=["axis", "value", "repeat"], columns="method", values="error")
    for method in (BEST, HELD_OUT):
        ratio = float(np.median(wide[method] / wide[ORACLE]))
        text = f"{method}: near least squares on the true groups"
        yield Claim(text, "ratio below 2", f"{ratio:.2f}", judge(ratio < 2))


@panels(2, 3, height=2.7, width=9.0)
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    """One panel per axis: means with quartiles, fitted slopes in the legend, and the minimax and corollary lines."""
    from matplotlib.ticker import NullFormatter

    table = slopes(frame)
    for one, (axis, label), name in zip(axes, AXES.items(), "abcde", strict=False):
        part = where(frame, axis=axis)
        for method, colour, marker in zip(METHODS, COLOURS, "os^", strict=False):
            by_value = where(part, method=method).groupby("value")["error"]
            x = _scale(axis, by_value.mean().index)
            one.fill_between(x, by_value.quantile(0.25), by_value.quantile(0.75), color=colour, alpha=0.12, lw=0)
            one.plot(x, by_value.mean(), color=colour, marker=marker, label=f"{table[axis, method]}")
        lines = part.groupby("value")[["minimax", "corollary"]].first()
        x = _scale(axis, lines.index)
        one.plot(x, lines["minimax"], color="black", lw=1, ls="--")
        one.plot(x, lines["corollary"], color=GREY, lw=1, ls=":")
        title = f"error against {label}"
        panel(one, name, title, xscale="log", yscale="log", xlabel=label, ylabel="squared error")
        fill_ticks(one, x)
        one.yaxis.set_minor_formatter(NullFormatter())
        if axis == "p":
            # flat curves: make room for the legend below them
            one.set_ylim(bottom=0.2 * float(part["error"].mean()))
        place: Any = "lower left" if axis == "p" else "best"
        one.legend(title="slope ± standard error", title_fontsize=7, fontsize=7, loc=place)
    last = axes[-1]
    last.axis("off")
    for method, colour, marker in zip(METHODS, COLOURS, "os^", strict=False):
        last.plot([], [], color=colour, marker=marker, label=method)
    last.plot([], [], color="black", ls="--", label="minimax order, sigma² s (k + log(eL/s))/n")
    last.plot([], [], color=GREY, ls=":", label="corollary, sigma² s log(p)/n")
    last.legend(loc="center", fontsize=8)
