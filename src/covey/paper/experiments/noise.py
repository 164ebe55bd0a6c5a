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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import hadamard

from covey.datasets.simulate import NOISES, Noise, draw_noise
from covey.paper.experiments import phase, rates
from covey.paper.experiments.base import Claim, Claims, Record, Scale, judge, mean_and_error, scaled, where
from covey.paper.experiments.slopes import LEVEL, by_axis
from covey.paper.experiments.style import COLOURS, Axes, fill_ticks, panel, panels
from covey.paper.experiments.tasks import records

TITLE = "Sub-Gaussian noise: rates, recovery and the event behind the corollary"

SUB_GAUSSIAN = ("rademacher", "uniform")
STUDENT = "student"
CLAIMED = {"n": -1.0, "s": 1.0, "sigma": 2.0}
ROWS_OF_EVENT, COLUMNS_OF_EVENT = 64, 16  # 1/(8 p^3) = 3e-5 can be distinguished from 0 with a million draws
PRECISE = 0.07  # standard error of a ratio of errors: enough to detect 0.1 or 0.2


@dataclass(frozen=True)
class Settings(Scale):
    grid_n: tuple[int, ...] = scaled((150, 300, 600, 1200), quick=(150, 400, 1000))
    grid_s: tuple[int, ...] = scaled((1, 2, 4, 8), quick=(1, 3, 8))
    grid_sigma: tuple[float, ...] = scaled((0.0625, 0.125, 0.25, 0.5), quick=(0.0625, 0.25, 0.5))
    repeats: int = scaled(40, quick=20)
    rows: tuple[int, ...] = scaled((14, 18, 24, 30, 36, 44, 52, 60, 70, 85, 100), quick=(14, 20, 28, 36, 48, 64))
    groups: tuple[int, ...] = scaled((1, 2, 4), quick=(1, 2))
    recovery_repeats: int = scaled(30, quick=16)
    draws: int = scaled(4_000_000, quick=1_000_000)


def run(settings: Settings, jobs: int = 1) -> pd.DataFrame:
    """The three parts as one table, distinguished by ``part``; every row has its ``noise``."""
    grids = {name: getattr(settings, name) for name in ("grid_n", "grid_s", "grid_sigma", "repeats")}
    slopes = rates.Settings(**grids, grid_p=(), grid_group_size=())
    recovery = phase.Settings(
        grid_n=settings.rows, grid_s=settings.groups, repeats=settings.recovery_repeats, p=100, n_steps=1000,
        sigma=0.5,
    )  # fmt: skip
    parts = [
        module.run(replace(base, noise=kind), jobs).assign(noise=kind, part=part)
        for module, base, part in ((rates, slopes, "rates"), (phase, recovery, "recovery"))
        for kind in NOISES
    ]
    outside = records(outside_the_event, [(kind, settings.draws) for kind in NOISES], jobs)
    parts.append(pd.DataFrame(outside).assign(part="event"))
    return pd.concat(parts, ignore_index=True)


def outside_the_event(item: tuple[Noise, int]) -> list[Record]:
    """The number of draws outside the corollary's event, on an orthogonal design with entries +1 and -1."""
    (noise, draws), n, p = item, ROWS_OF_EVENT, COLUMNS_OF_EVENT
    X, rng = hadamard(n)[:, :p].astype(float), np.random.default_rng([0, 11])
    bound, outside = 2 * math.sqrt(2 * math.log(2 * p) / n), 0
    for first in range(0, draws, 100_000):
        xi = draw_noise(rng, (min(100_000, draws - first), n), 1.0, noise)
        outside += int((np.abs(xi @ X / n).max(axis=1) > bound).sum())
    return [{"noise": noise, "outside": outside, "draws": draws, "allowed": 1 / (8 * p**3)}]


def claims(frame: pd.DataFrame) -> Claims:
    """The corollary's statements for sub-Gaussian noise, and for noise that is not."""
    errors = where(frame, part="rates", method=rates.BEST)
    for kind in (*SUB_GAUSSIAN, STUDENT):
        slopes = by_axis(where(errors, noise=kind), CLAIMED)
        yield Claim(
            f"{_name(kind)} the error goes like s sigma^2/n.",
            f"slopes -1 in n, 1 in s, 2 in sigma, none rejected at the {LEVEL:.0%} level",
            ", ".join(f"{slope} in {axis}" for axis, slope in slopes.items()),
            judge(not any(slope.rejects(CLAIMED[axis]) for axis, slope in slopes.items())),
        )
    for kind in SUB_GAUSSIAN:
        # in units of the minimax order
        parts = (where(errors, noise=name) for name in (kind, "gaussian"))
        (mean, spread), (other, other_spread) = (mean_and_error(part["error"] / part["minimax"]) for part in parts)
        ratio = mean / other
        error = ratio * float(np.hypot(spread / mean, other_spread / other))
        yield Claim(
            f"{_name(kind)} the error is that with Gaussian noise of the same standard deviation.",
            f"ratio 1 not rejected at the {LEVEL:.0%} level, standard error at most {PRECISE:g}",
            f"{ratio:.3f} ± {error:.3f}",
            judge(abs(ratio - 1) <= stats.norm.isf(LEVEL / 2) * error and error <= PRECISE),
        )
    recovery = where(frame, part="recovery", method=phase.GROUPED).astype({"recovered": bool}).groupby("noise")
    needed = {kind: phase.rows_needed(runs).set_index("s")["rows"] for kind, runs in recovery}
    for kind in (*SUB_GAUSSIAN, STUDENT):
        more = needed[kind] / needed["gaussian"]
        yield Claim(
            f"{_name(kind)} recovery needs as many rows as with Gaussian noise.",
            "within a quarter at every s",
            f"{more.min():.2f} to {more.max():.2f} times as many",
            judge(((more > 0.8) & (more < 1.25)).all()),
        )
    event: Any = where(frame, part="event").set_index("noise")
    for kind in ("gaussian", *SUB_GAUSSIAN, STUDENT):
        outside, draws = (int(event.loc[kind, name]) for name in ("outside", "draws"))
        allowed = float(event.loc[kind, "allowed"] * draws)
        yield Claim(
            f"{_name(kind)} norm(X'xi/n)_inf <= 2 sqrt(2 sigma^2 log(2p)/n) with probability 1 - 1/(8p^3) or more.",
            f"{allowed:.0f} draws of {draws} allowed outside, more rejected at the {LEVEL:.0%} level",
            f"{outside} draws outside",
            judge(float(stats.poisson.sf(outside - 1, allowed)) >= LEVEL),
        )


def _name(kind: str) -> str:
    return "(Contrast.) Student's t:" if kind == STUDENT else f"{kind.capitalize()} noise:"


@panels(1, 3, height=2.6)
def plot(frame: pd.DataFrame, sizes: Axes, shares: Axes, events: Axes) -> None:
    errors = where(frame, part="rates", method=rates.BEST, axis="n")
    recovery = where(frame, part="recovery", method=phase.GROUPED).astype({"recovered": bool})
    largest = recovery["s"].max()
    for kind, colour, mark in zip(NOISES, COLOURS[:4], "os^D", strict=True):
        look: dict[str, Any] = {"color": colour, "marker": mark, "mfc": "none", "label": kind}
        mean = where(errors, noise=kind).groupby("value")["error"].mean()
        sizes.plot(mean.index, mean, **look)
        rate = where(recovery, noise=kind, s=largest).groupby("n")["recovered"].mean()
        shares.plot(rate.index, rate, **look)
    labels = {"xlabel": "rows n", "ylabel": "squared error"}
    panel(sizes, "a", "error of the network", xscale="log", yscale="log", **labels)
    fill_ticks(sizes, sorted(errors["value"].unique()))
    sizes.legend()
    panel(shares, "b", f"recovery, s = {largest:g}", xlabel="rows n", ylabel="share of runs that recover")
    event = where(frame, part="event").set_index("noise").loc[list(NOISES)]
    # a kind without draws outside the event is drawn at half a draw
    share = np.maximum(event["outside"], 0.5) / event["draws"]
    events.bar(np.arange(len(NOISES)), share, color=COLOURS[: len(NOISES)], width=0.6)
    events.axhline(float(event["allowed"].iloc[0]), color="black", ls="--", lw=1)
    events.set_xticks(np.arange(len(NOISES)), NOISES, rotation=30)
    panel(events, "c", "noise outside the event", yscale="log", xlabel="dashed: allowed", ylabel="probability")
