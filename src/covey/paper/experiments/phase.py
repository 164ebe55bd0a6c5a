"""Phase transition: the number of rows needed to recover s groups, with and without knowing the groups.

The theorem's condition on delta_out scales with the number of non-zero groups, not of non-zero entries, hence "improved
sample complexity". Here we measure the probability of recovery over a grid of rows n and non-zero groups s, for the
grouped network, for the same network with groups of one, and for the diagonal network u^2 - v^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.datasets import make_group_sparse
from covey.datasets.simulate import Noise
from covey.paper.dynamics import diagonal_descent, normalized_descent
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, scaled, where
from covey.paper.experiments.style import COLOURS, Axes, panel, panels
from covey.paper.experiments.tasks import records
from covey.paper.experiments.traces import errors
from covey.validation import FloatArray

TITLE = "Sample complexity: probability of recovery over rows and non-zero groups"

GROUPED, SINGLE, DIAGONAL = METHODS = ("grouped", "groups of one", "diagonal network")
TOLERANCE = 0.05  # recovered: the squared error as a share of the squared norm of the truth


@dataclass(frozen=True)
class Settings(Scale):
    """The grid and the effort. Entries on the support are +1 or -1 at random; the design is Rademacher."""

    p: int = 200
    group_size: int = 4
    grid_n: tuple[int, ...] = scaled(tuple(range(8, 201, 12)), quick=(8, 12, 18, 25, 35, 50, 70, 100, 140))
    grid_s: tuple[int, ...] = scaled(tuple(range(1, 11)), quick=(1, 2, 3, 4, 6, 8))
    repeats: int = scaled(20, quick=8)
    sigma: float = 0.1
    n_steps: int = 2000
    noise: Noise = "gaussian"


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Simulate; one row per n, s, repeat and method: the least relative error on the path, and whether it recovers."""
    grid = [(settings, n, s, r) for s in settings.grid_s for n in settings.grid_n for r in range(settings.repeats)]
    return pd.DataFrame(records(simulate, grid, jobs))


def simulate(item: tuple[Settings, int, int, int]) -> list[Record]:
    """One data set, three dynamics; each run ends as soon as it has recovered the truth."""
    at, n, s, repeat = item
    rng, k = np.random.default_rng([0, n, s, repeat]), at.group_size
    signs = rng.choice([-1.0, 1.0], size=s * k)
    data = make_group_sparse(n, at.p, k, active=s, values=signs, sigma=at.sigma, noise=at.noise, random_state=rng)
    signal = float(np.sum(data.w_star**2))
    target = TOLERANCE * signal
    correlation = data.X.T @ data.y / n

    def recovered(_: int, w: FloatArray) -> bool:
        return bool(np.sum((w - data.w_star) ** 2) <= target)

    def options(largest: float) -> Record:
        # the theorem's step, with the first estimate of the largest magnitude
        effort = {"init_scale": 1e-6, "step_size": 1 / (20 * largest), "n_steps": at.n_steps, "record_every": 10}
        return {**effort, "w_star": data.w_star, "stop": recovered}

    by_group, by_entry = (options(float(size.max())) for size in (data.groups.norms(correlation), np.abs(correlation)))
    paths = {
        GROUPED: normalized_descent(data.X, data.y, data.groups, **by_group),
        SINGLE: normalized_descent(data.X, data.y, 1, **by_entry),
        DIAGONAL: diagonal_descent(data.X, data.y, **by_entry),
    }
    place = {"n": n, "s": s, "repeat": repeat}
    least = {method: float(errors(path).min()) for method, path in paths.items()}
    return [{**place, "method": m, "error": error / signal, "recovered": error <= target} for m, error in least.items()]


def rows_needed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows at which half of the runs recover, per method and s, by the running maximum over n; NaN if never."""
    found = []
    for (method, s), part in frame.groupby(["method", "s"], sort=False):
        rate = part.groupby("n")["recovered"].mean()
        share, n = np.maximum.accumulate(rate.to_numpy(dtype=float)), rate.index.to_numpy(dtype=float)
        upto = slice(int(np.argmax(share >= 0.5)) + 1)
        found.append((method, s, np.interp(0.5, share[upto], n[upto]) if share[-1] >= 0.5 else np.nan))
    return pd.DataFrame(found, columns=["method", "s", "rows"])


def claims(frame: pd.DataFrame) -> Claims:
    """The statement "improved sample complexity", as the number of rows at which half of the runs recover the truth."""
    needed = rows_needed(frame).pivot_table(index="s", columns="method", values="rows", dropna=False)
    grouped = needed[GROUPED].dropna()
    for rival in (SINGLE, DIAGONAL):
        other = needed[rival].reindex(grouped.index)
        # a rival that never recovers on the grid needs more rows than the grid has
        ratio = (other.fillna(frame["n"].max()) / grouped).min()
        yield Claim(
            f"grouped needs fewer rows than {rival} at every s",
            "ratio above 1",
            f"at least {ratio:.2f} times fewer",
            judge((other.isna() | (other > grouped)).all()),
        )
    several = grouped[grouped.index >= 2]
    if len(several) >= 2:
        growth = np.polyfit(np.log(several.index.to_numpy(dtype=float)), np.log(several), 1)[0]
        yield Claim(
            "rows needed by the grouped network grow about linearly in s",
            "slope of log n on log s at most 1.2",
            f"{growth:.2f}",
            judge(growth <= 1.2),
        )


@panels(1, 3, height=3.0, width=9.0, sharey=True)
def plot(frame: pd.DataFrame, *axes: Axes) -> None:
    """One heat map per method: probability of recovery over n and s, with the line of probability one half."""
    needed = rows_needed(frame)
    for one, name, method, colour in zip(axes, "abc", METHODS, COLOURS[1:], strict=False):
        rate = where(frame, method=method).pivot_table(index="s", columns="n", values="recovered", aggfunc="mean")
        middles = np.arange(len(rate)) + 0.5
        image = one.pcolormesh(rate.columns, middles, rate, cmap="gray", vmin=0, vmax=1, shading="nearest")
        line = where(needed, method=method).set_index("s")["rows"].reindex(rate.index)
        one.plot(line, middles, color=colour, lw=2, marker="o")
        one.set_yticks(middles, [f"{s:g}" for s in rate.index])
        panel(one, name, method, xlabel="rows n")
    axes[0].set_ylabel("non-zero groups s")
    axes[0].figure.colorbar(image, ax=axes[-1], label="probability of recovery")
