"""Rates: squared error against n, s, sigma, log p and the group size (Corollary subgaussian-noise).

The corollary promises ``norm(w(t) - w*)^2 <~ s sigma^2 log(p)/n``. One quantity is varied at a time around a base
setting; slopes on log axes are fitted to the means over repeats. The network is compared with least squares on the true
groups and with the minimax order of group sparsity, ``sigma^2 s (k + log(e L/s))/n``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.datasets import make_group_sparse
from covey.datasets.simulate import Noise
from covey.paper.dynamics import normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.tasks import Row, run_tasks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TITLE", "Settings", "claims", "fit_slope", "plot", "run", "slopes"]

TITLE = "Rates: squared error against n, s, sigma, log p and the group size"

BEST, HELD_OUT, ORACLE = "network, best time", "network, held-out time", "least squares on the true groups"
AXES = {"n": "rows n", "s": "non-zero groups s", "sigma": "noise sigma", "p": "log p", "group_size": "group size k"}


# Quantiles of the normal distribution for tests at the 5% level.
ONE_SIDED, TWO_SIDED = 1.645, 1.96

# With a standard error of 0.15, a slope that is off by 1/2 is rejected in 91 of 100 runs. A less precise slope does not
# test a claim.
MOST_ERROR = 0.15


@dataclass(frozen=True)
class Settings:
    """Base values, grids and effort. Every group of the support has norm 1 in every setting."""

    n: int = 400
    p: int = 300
    group_size: int = 3
    s: int = 4
    sigma: float = 0.5
    grid_n: tuple[int, ...] = (150, 250, 400, 650, 1000)
    grid_s: tuple[int, ...] = (1, 2, 4, 8)
    grid_sigma: tuple[float, ...] = (0.0625, 0.125, 0.25, 0.5)
    grid_p: tuple[int, ...] = (60, 150, 300, 750, 1800)
    grid_group_size: tuple[int, ...] = (1, 2, 4, 8, 16)
    repeats: int = 30
    n_steps: int = 1000
    init_scale: float = 1e-6
    noise: Noise = "gaussian"
    depth: int = 2
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Half a minute on two cores."""
        return cls(repeats=12)

    @classmethod
    def full(cls) -> Settings:
        """Finer grids and 30 repeats: a few minutes."""
        return cls(
            grid_n=(150, 200, 300, 400, 600, 800, 1200, 1600),
            grid_s=(1, 2, 3, 4, 6, 8, 12),
            grid_sigma=(0.03125, 0.0625, 0.125, 0.25, 0.5, 0.7),
            grid_p=(60, 150, 300, 600, 1200, 2400),
            grid_group_size=(1, 2, 3, 4, 6, 8, 12, 16, 24),
            repeats=30,
        )

    def tasks(self) -> list[dict[str, Any]]:
        """One task per axis, value and repeat."""
        out = []
        for a, axis in enumerate(AXES):
            for j, value in enumerate(getattr(self, f"grid_{axis}")):
                base = {"n": self.n, "p": self.p, "group_size": self.group_size, "s": self.s, "sigma": self.sigma}
                base[axis] = value
                if axis == "group_size":
                    # the number of groups is fixed, so that only their size changes
                    base["p"] = self.p // self.group_size * value
                for r in range(self.repeats):
                    task = {"axis": axis, "value": value, "repeat": r, "seed": [self.seed, a, j, r], **base}
                    task |= {"noise": self.noise, "depth": self.depth}
                    out.append({**task, "n_steps": self.n_steps, "init_scale": self.init_scale})
        return out


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Simulate; one row per axis, value, repeat and method, with the squared error and the problem's numbers."""
    return pd.DataFrame(run_tasks(rates_task, settings.tasks(), jobs))


def rates_task(
    axis: str,
    value: float,
    repeat: int,
    seed: list[int],
    n: int,
    p: int,
    group_size: int,
    s: int,
    sigma: float,
    n_steps: int,
    init_scale: float,
    noise: Noise = "gaussian",
    depth: int = 2,
) -> list[Row]:
    """One data set: Algorithm 1 at its best time and at the time chosen on a held-out third, and the oracle."""
    n_held = n // 3
    data = make_group_sparse(
        n + n_held,
        p,
        group_size,
        active=s,
        values=1 / math.sqrt(group_size),
        sigma=sigma,
        noise=noise,
        random_state=np.random.default_rng(seed),
    )
    train = replace(data, X=data.X[:n], y=data.y[:n], noise=data.noise[:n])
    # groups of the support have norm 1, and the theorem's largest step is 1/(5 N^2): 1/20 for N = 2
    path = normalized_descent(
        train.X,
        train.y,
        train.groups,
        init_scale=init_scale,
        step_size=1 / (5 * depth**2),
        depth=depth,
        n_steps=n_steps,
        record_every=5,
        w_star=train.w_star,
    )
    assert path.error is not None
    held = np.mean((data.y[n:, None] - data.X[n:] @ path.w.T) ** 2, axis=0)
    errors = {
        BEST: float(path.error.min()),
        HELD_OUT: float(path.error[np.argmin(held)]),
        ORACLE: float(np.sum((train.oracle() - train.w_star) ** 2)),
    }
    L = p // group_size
    known = {
        "corollary": s * sigma**2 * math.log(p) / n,
        "minimax": sigma**2 * s * (group_size + math.log(math.e * L / s)) / n,
    }
    place = {"axis": axis, "value": value, "repeat": repeat}
    return [{**place, "method": method, "error": error, **known} for method, error in errors.items()]


def fit_slope(x: Any, error: Any, *, level: float = 0.95, n_boot: int = 1000) -> tuple[float, float, float, float]:
    """Slope of log(mean error) on log(x), its standard error and an interval, by a bootstrap over the repeats.

    The mean is taken first: the mean of a logarithm would bias the slope, because errors with few degrees of freedom
    are more skewed. If the rate holds only for large n, the slope is off by more than this standard error.

    >>> slope, se, low, high = fit_slope([1, 1, 2, 2, 4, 4], [0.9, 1.1, 0.45, 0.55, 0.225, 0.275])
    >>> round(slope, 6), low < slope < high, 0 < se < 0.1
    (-1.0, True, True)
    """
    x, error = np.asarray(x, dtype=float), np.asarray(error, dtype=float)
    values = np.unique(x)
    log_x = np.log(values) - np.log(values).mean()
    weights = log_x / np.sum(log_x**2)
    rng = np.random.default_rng(0)
    slope, resampled = 0.0, np.zeros(n_boot)
    for value, weight in zip(values, weights, strict=True):
        repeats = error[x == value]
        draws = rng.integers(repeats.size, size=(n_boot, repeats.size))
        slope += weight * math.log(repeats.mean())
        resampled += weight * np.log(repeats[draws].mean(axis=1))
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(slope), float(resampled.std()), float(low), float(high)


def slopes(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per axis and method: slope, standard error and interval. The axis p is on the scale log p."""
    rows = []
    for (axis, method), part in frame.groupby(["axis", "method"], sort=False):
        x = np.log(part["value"]) if axis == "p" else part["value"]
        rows.append((axis, method, *fit_slope(x, part["error"])))
    return pd.DataFrame(rows, columns=["axis", "method", "slope", "se", "low", "high"])


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The corollary's statements against the fitted slopes."""
    table = slopes(frame).set_index(["axis", "method"])

    def one(axis: str, text: str, wanted: float, *, below: bool = False) -> Claim:
        slope, se = table.loc[(axis, BEST), ["slope", "se"]].to_numpy(dtype=float)
        if below:
            expected = f"a slope of {wanted:g} or more is rejected at the 5% level"
            good = slope + ONE_SIDED * se < wanted
        else:
            expected = (
                f"slope {wanted:g} is not rejected at the 5% level, with a standard error of at most {MOST_ERROR:g}"
            )
            good = se <= MOST_ERROR and abs(slope - wanted) <= TWO_SIDED * se
        return Claim(text, expected, f"{slope:.2f} ± {se:.2f} (standard error)", judge(bool(good)))

    out = [
        one("n", "error falls like 1/n", -1),
        one("s", "error grows like s", 1),
        one("sigma", "error grows like sigma^2", 2),
        one("p", "error grows no faster than log p", 1, below=True),
        one("group_size", "error does not depend on the group size, which the corollary leaves out", 0),
    ]
    wide = frame.pivot_table(index=["axis", "value", "repeat"], columns="method", values="error")
    for method in (BEST, HELD_OUT):
        ratio = float(np.median(wide[method] / wide[ORACLE]))
        text = f"{method}: near least squares on the true groups"
        out.append(Claim(text, "ratio below 2", f"{ratio:.2f}", judge(ratio < 2)))
    return out


def plot(frame: pd.DataFrame) -> Figure:
    """One panel per axis: medians with quartiles, fitted slopes in the legend, and the minimax and corollary lines."""
    from covey.paper.plots.rates import draw_rates

    return draw_rates(frame, slopes(frame), AXES)
