"""Sub-Gaussian noise: the corollary's rates, recovery, and the underlying event, for four kinds of noise.

Corollary subgaussian-noise holds for independent sigma-sub-Gaussian noise; the paper's experiments use Gaussian noise
only. Here we add Rademacher and uniform noise, which are sub-Gaussian with parameter sigma, and Student's t with three
degrees of freedom, which is not, all with standard deviation sigma. *Rates*: the experiment `rates` for each kind, on
the same designs. *Recovery*: the number of rows at which half of the runs of `phase` recover the truth. *Event*: how
often ``norm(X'xi/n)_inf`` exceeds ``2 sqrt(2 sigma^2 log(2p)/n)``, which Lemma bounding-max-noise allows with
probability 1/(8p^3), on an orthogonal design of 64 rows and 16 columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import hadamard

from covey.datasets.simulate import NOISES, draw_noise
from covey.paper.experiments import phase, rates
from covey.paper.experiments.claim import Claim, judge
from covey.paper.experiments.settings import Scale
from covey.paper.experiments.slopes import LEVEL, fit
from covey.paper.experiments.style import COLOURS, Figure, grid, letter, styled
from covey.paper.experiments.tasks import Row, run_tasks

__all__ = ["TITLE", "Settings", "claims", "plot", "run"]

TITLE = "Sub-Gaussian noise: rates, recovery and the event behind the corollary"

SUB_GAUSSIAN = ("rademacher", "uniform")
STUDENT = "student"
CLAIMED = {"n": -1.0, "s": 1.0, "sigma": 2.0}
ROWS_OF_EVENT, COLUMNS_OF_EVENT = 64, 16  # 1/(8 p^3) = 3e-5 can be distinguished from 0 with a million draws
PRECISE = 0.07  # standard error of a ratio of errors: enough to detect 0.1 or 0.2


@dataclass(frozen=True)
class Settings(Scale):
    """Grids and repeats of the three parts."""

    QUICK: ClassVar[dict[str, Any]] = {
        "grid_n": (150, 400, 1000),
        "grid_s": (1, 3, 8),
        "grid_sigma": (0.0625, 0.25, 0.5),
        "repeats": 20,
        "rows": (14, 20, 28, 36, 48, 64),
        "groups": (1, 2),
        "recovery_repeats": 16,
        "draws": 1_000_000,
    }

    grid_n: tuple[int, ...] = (150, 300, 600, 1200)
    grid_s: tuple[int, ...] = (1, 2, 4, 8)
    grid_sigma: tuple[float, ...] = (0.0625, 0.125, 0.25, 0.5)
    repeats: int = 40
    rows: tuple[int, ...] = (14, 18, 24, 30, 36, 44, 52, 60, 70, 85, 100)
    groups: tuple[int, ...] = (1, 2, 4)
    recovery_repeats: int = 30
    recovery_sigma: float = 0.5
    draws: int = 4_000_000
    seed: int = 0


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The three parts as one table, distinguished by ``part``; every row has its ``noise``."""
    tasks: dict[str, list[dict[str, Any]]] = {"rates": [], "recovery": [], "event": []}
    for kind in NOISES:
        slopes = rates.Settings(
            grid_n=settings.grid_n, grid_s=settings.grid_s, grid_sigma=settings.grid_sigma, grid_p=(),
            grid_group_size=(), repeats=settings.repeats, seed=settings.seed, noise=kind,
        )  # fmt: skip
        recovery = phase.Settings(
            grid_n=settings.rows, grid_s=settings.groups, repeats=settings.recovery_repeats, p=100, n_steps=1000,
            sigma=settings.recovery_sigma, seed=settings.seed, noise=kind,
        )  # fmt: skip
        tasks["rates"] += slopes.tasks()
        tasks["recovery"] += recovery.tasks()
        tasks["event"] += [{"noise": kind, "draws": settings.draws, "seed": [settings.seed, 11]}]
    parts = [
        pd.DataFrame(run_tasks(function, tasks[part], jobs)).assign(part=part)
        for part, function in (("rates", noise_rates_task), ("recovery", recovery_task), ("event", event_task))
    ]
    return pd.concat(parts, ignore_index=True)


def noise_rates_task(**task: Any) -> list[Row]:
    """One data set of `rates`, with the kind of noise in every row."""
    return [{**row, "noise": task["noise"]} for row in rates.rates_task(**task)]


def recovery_task(**task: Any) -> list[Row]:
    """One data set of `phase`, with the kind of noise in every row."""
    return [{**row, "noise": task["noise"]} for row in phase.phase_task(**task)]


def event_task(noise: str, draws: int, seed: list[int]) -> list[Row]:
    """The number of draws outside the corollary's event, on an orthogonal design with entries +1 and -1."""
    n, p = ROWS_OF_EVENT, COLUMNS_OF_EVENT
    X, rng = hadamard(n)[:, :p].astype(float), np.random.default_rng(seed)
    bound, outside = 2 * math.sqrt(2 * math.log(2 * p) / n), 0
    for first in range(0, draws, 100_000):
        xi = draw_noise(rng, (min(100_000, draws - first), n), 1.0, noise)
        outside += int((np.abs(xi @ X / n).max(axis=1) > bound).sum())
    return [{"noise": noise, "outside": outside, "draws": draws, "allowed": 1 / (8 * p**3)}]


def _ratio(frame: pd.DataFrame, kind: str) -> tuple[float, float]:
    """Mean error relative to Gaussian noise, both in units of the minimax order, and its standard error."""
    part = frame[(frame["part"] == "rates") & (frame["method"] == rates.BEST)]
    scaled = (part["error"] / part["minimax"]).groupby(part["noise"])
    mean: Any = scaled.mean()
    error: Any = scaled.std() / np.sqrt(scaled.size())
    ratio = float(mean[kind] / mean["gaussian"])
    return ratio, ratio * float(np.hypot(error[kind] / mean[kind], error["gaussian"] / mean["gaussian"]))


def _rows_needed(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows at which half of the grouped runs recover, by noise and s."""
    part = frame[(frame["part"] == "recovery") & (frame["method"] == phase.GROUPED)]
    found = {
        kind: phase.rows_needed(rows.assign(recovered=rows["recovered"].astype(bool))).set_index("s")["rows"]
        for kind, rows in part.groupby("noise", sort=False)
    }
    return pd.DataFrame(found)


def claims(frame: pd.DataFrame) -> list[Claim]:
    """The corollary's statements for sub-Gaussian noise, and for noise that is not."""
    out = []
    errors = frame[(frame["part"] == "rates") & (frame["method"] == rates.BEST)]
    for kind in (*SUB_GAUSSIAN, STUDENT):
        slopes = {
            axis: fit(*(errors[(errors["noise"] == kind) & (errors["axis"] == axis)][c] for c in ("value", "error")))
            for axis in CLAIMED
        }
        good = not any(slope.rejects(CLAIMED[axis]) for axis, slope in slopes.items())
        out.append(
            Claim(
                f"{_name(kind)} the error goes like s sigma^2/n.",
                f"slopes -1 in n, 1 in s, 2 in sigma, none rejected at the {LEVEL:.0%} level",
                ", ".join(f"{slope} in {axis}" for axis, slope in slopes.items()),
                judge(good),
            )
        )
    for kind in SUB_GAUSSIAN:
        ratio, error = _ratio(frame, kind)
        out.append(
            Claim(
                f"{_name(kind)} the error is that with Gaussian noise of the same standard deviation.",
                f"ratio 1 not rejected at the {LEVEL:.0%} level, standard error at most {PRECISE:g}",
                f"{ratio:.3f} ± {error:.3f}",
                judge(abs(ratio - 1) <= stats.norm.isf(LEVEL / 2) * error and error <= PRECISE),
            )
        )
    needed = _rows_needed(frame)
    for kind in (*SUB_GAUSSIAN, STUDENT):
        more = needed[kind] / needed["gaussian"]
        out.append(
            Claim(
                f"{_name(kind)} recovery needs as many rows as with Gaussian noise.",
                "within a quarter at every s",
                f"{more.min():.2f} to {more.max():.2f} times as many",
                judge(bool(((more > 0.8) & (more < 1.25)).all())),
            )
        )
    event = frame[frame["part"] == "event"].set_index("noise")
    for kind in ("gaussian", *SUB_GAUSSIAN, STUDENT):
        row: Any = event.loc[kind]
        allowed = float(row["allowed"] * row["draws"])
        rejected = float(stats.poisson.sf(int(row["outside"]) - 1, allowed)) < LEVEL
        out.append(
            Claim(
                f"{_name(kind)} norm(X'xi/n)_inf <= 2 sqrt(2 sigma^2 log(2p)/n) with probability 1 - 1/(8p^3) or more.",
                f"{allowed:.0f} draws of {int(row['draws'])} allowed outside, more rejected at the {LEVEL:.0%} level",
                f"{int(row['outside'])} draws outside",
                judge(not rejected),
            )
        )
    return out


def _name(kind: str) -> str:
    return "(Contrast.) Student's t:" if kind == STUDENT else f"{kind.capitalize()} noise:"


@styled
def plot(frame: pd.DataFrame) -> Figure:
    """Error against n, rows against recovery, and the frequency of the event, by kind of noise."""
    figure, axes = grid(1, 3, height=2.6)
    errors = frame[(frame["part"] == "rates") & (frame["method"] == rates.BEST) & (frame["axis"] == "n")]
    recovery = frame[(frame["part"] == "recovery") & (frame["method"] == phase.GROUPED)]
    largest = recovery["s"].max()
    for kind, colour, mark in zip(NOISES, COLOURS[:4], "os^D", strict=True):
        mean = errors[errors["noise"] == kind].groupby("value")["error"].mean()
        axes[0, 0].plot(mean.index, mean, color=colour, marker=mark, mfc="none", label=kind)
        part = recovery[(recovery["noise"] == kind) & (recovery["s"] == largest)]
        rate = part["recovered"].astype(bool).groupby(part["n"]).mean()
        axes[0, 1].plot(rate.index, rate, color=colour, marker=mark, mfc="none", label=kind)
    ticks = sorted(errors["value"].unique())
    axes[0, 0].set(xscale="log", yscale="log", xlabel="rows n", ylabel="squared error")
    axes[0, 0].set_xticks(ticks, [f"{v:g}" for v in ticks])
    axes[0, 0].set_xticks([], minor=True)
    axes[0, 0].legend()
    letter(axes[0, 0], "a", "error of the network")
    axes[0, 1].set(xlabel="rows n", ylabel="share of runs that recover")
    letter(axes[0, 1], "b", f"recovery, s = {largest:g}")
    event = frame[frame["part"] == "event"].set_index("noise").loc[list(NOISES)]
    # a kind without draws outside the event is drawn at half a draw
    share = np.maximum(event["outside"], 0.5) / event["draws"]
    axes[0, 2].bar(np.arange(len(NOISES)), share, color=COLOURS[: len(NOISES)], width=0.6)
    axes[0, 2].axhline(float(event["allowed"].iloc[0]), color="black", ls="--", lw=1)
    axes[0, 2].set_xticks(np.arange(len(NOISES)), NOISES, rotation=30)
    axes[0, 2].set(yscale="log", xlabel="dashed: allowed", ylabel="probability")
    letter(axes[0, 2], "c", "noise outside the event")
    return figure
