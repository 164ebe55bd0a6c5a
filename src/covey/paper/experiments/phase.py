"""Phase transition: the number of rows needed to recover s groups, with and without knowing the groups.

The theorem's condition on delta_out scales with the number of non-zero groups, not of non-zero entries, hence "improved
sample complexity". Here we measure the probability of recovery over a grid of rows n and non-zero groups s, for the
grouped network, for the same network with groups of one, and for the diagonal network u^2 - v^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.datasets import make_group_sparse
from covey.datasets.simulate import Noise
from covey.paper.dynamics import Trajectory, diagonal_descent, normalized_descent
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.tasks import Row, run_tasks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "TITLE", "Settings", "claims", "plot", "rows_needed", "run"]

TITLE = "Sample complexity: probability of recovery over rows and non-zero groups"

GROUPED, SINGLE, DIAGONAL = "grouped", "groups of one", "diagonal network"
METHODS = (GROUPED, SINGLE, DIAGONAL)


@dataclass(frozen=True)
class Settings:
    """The grid and the effort. Entries on the support are +1 or -1 at random; the design is Rademacher."""

    p: int = 200
    group_size: int = 4
    grid_n: tuple[int, ...] = (8, 12, 18, 25, 32, 40, 50, 60, 70, 85, 100, 120, 140, 160)
    grid_s: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10)
    repeats: int = 16
    sigma: float = 0.1
    tolerance: float = 0.05
    n_steps: int = 2000
    init_scale: float = 1e-6
    noise: Noise = "gaussian"
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Half a minute on two cores."""
        return cls(grid_n=(8, 12, 18, 25, 35, 50, 70, 100, 140), grid_s=(1, 2, 3, 4, 6, 8), repeats=8)

    @classmethod
    def full(cls) -> Settings:
        """A finer grid, 20 repeats: a few minutes."""
        return cls(grid_n=tuple(range(8, 201, 12)), grid_s=tuple(range(1, 11)), repeats=20)

    def tasks(self) -> list[dict[str, Any]]:
        """One task per cell and repeat; all methods share the data."""
        shared = {
            "p": self.p,
            "group_size": self.group_size,
            "sigma": self.sigma,
            "tolerance": self.tolerance,
            "n_steps": self.n_steps,
            "init_scale": self.init_scale,
            "noise": self.noise,
        }
        return [
            {"n": n, "s": s, "repeat": r, "seed": [self.seed, n, s, r], **shared}
            for s in self.grid_s
            for n in self.grid_n
            for r in range(self.repeats)
        ]


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """Simulate; one row per n, s, repeat and method: the least relative error on the path, and whether it recovers."""
    return pd.DataFrame(run_tasks(phase_task, settings.tasks(), jobs))


def phase_task(
    n: int,
    s: int,
    repeat: int,
    seed: list[int],
    p: int,
    group_size: int,
    sigma: float,
    tolerance: float,
    n_steps: int,
    init_scale: float,
    noise: Noise = "gaussian",
) -> list[Row]:
    """One data set, three dynamics; each run ends as soon as it has recovered the truth."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=s * group_size)
    data = make_group_sparse(n, p, group_size, active=s, values=signs, sigma=sigma, noise=noise, random_state=rng)
    target = tolerance * float(np.sum(data.w_star**2))
    correlation = data.X.T @ data.y / n

    def recovered(_: int, w: Any) -> bool:
        return bool(np.sum((w - data.w_star) ** 2) <= target)

    def common(largest: float) -> dict[str, Any]:
        # the theorem's step, with the first estimate of the largest magnitude
        return {
            "init_scale": init_scale,
            "step_size": 1 / (20 * largest),
            "n_steps": n_steps,
            "record_every": 10,
            "w_star": data.w_star,
            "stop": recovered,
        }

    by_entry = common(float(np.abs(correlation).max()))
    paths: dict[str, Trajectory] = {
        GROUPED: normalized_descent(data.X, data.y, data.groups, **common(float(data.groups.norms(correlation).max()))),
        SINGLE: normalized_descent(data.X, data.y, 1, **by_entry),
        DIAGONAL: diagonal_descent(data.X, data.y, **by_entry),
    }
    rows = []
    for method, path in paths.items():
        assert path.error is not None
        least = float(path.error.min())
        rows.append(
            {
                "n": n,
                "s": s,
                "repeat": repeat,
                "method": method,
                "error": least / float(np.sum(data.w_star**2)),
                "recovered": least <= target,
            }
        )
    return rows


def rows_needed(frame: pd.DataFrame, probability: float = 0.5) -> pd.DataFrame:
    """The number of rows at which recovery reaches a probability, per method and s; NaN if it never does.

    Linear between grid points, after the running maximum over n has made the curve monotone.
    """
    out = []
    for (method, s), part in frame.groupby(["method", "s"], sort=False):
        rate = part.groupby("n")["recovered"].mean()
        curve, n = np.maximum.accumulate(rate.to_numpy(dtype=float)), rate.index.to_numpy(dtype=float)
        if curve[-1] < probability:
            needed = float("nan")
        else:
            k = int(np.argmax(curve >= probability))
            needed = (
                n[0]
                if k == 0
                else n[k - 1] + (n[k] - n[k - 1]) * (probability - curve[k - 1]) / (curve[k] - curve[k - 1])
            )
        out.append((method, s, float(needed)))
    return pd.DataFrame(out, columns=["method", "s", "rows"])


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The statement "improved sample complexity", as the number of rows at which half of the runs recover the truth."""
    needed = rows_needed(frame).pivot_table(index="s", columns="method", values="rows", dropna=False)
    out = []
    for rival in (SINGLE, DIAGONAL):
        both = needed[[GROUPED, rival]].dropna(subset=[GROUPED])
        # a rival that never recovers on the grid needs more rows than the grid has
        ratio = (both[rival].fillna(frame["n"].max()) / both[GROUPED]).min()
        more = (both[rival].isna() | (both[rival] > both[GROUPED])).all()
        out.append(
            Claim(
                f"grouped needs fewer rows than {rival} at every s",
                "ratio above 1",
                f"at least {ratio:.2f} times fewer",
                judge(bool(more)),
            )
        )
    several = needed[GROUPED].dropna()
    several = several[several.index >= 2]
    if len(several) >= 2:
        growth = np.polyfit(np.log(several.index.to_numpy(dtype=float)), np.log(several), 1)[0]
        out.append(
            Claim(
                "rows needed by the grouped network grow about linearly in s",
                "slope of log n on log s at most 1.2",
                f"{growth:.2f}",
                judge(bool(growth <= 1.2)),
            )
        )
    return out


def plot(frame: pd.DataFrame) -> Figure:
    """One heat map per method: probability of recovery over n and s, with the line of probability one half."""
    from covey.paper.plots.phase import draw_phase

    return draw_phase(frame, rows_needed(frame), METHODS)
