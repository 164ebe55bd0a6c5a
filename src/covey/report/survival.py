"""Survival times: curves by predicted risk with numbers at risk, the baseline, and hazard ratios."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from covey.designs import as_design
from covey.estimators.survival import kaplan_meier
from covey.losses.cox import FieldNames, read_survival
from covey.losses.risk_sets import EVENT, START, STOP
from covey.report.drawing import Axis, Plot, steps
from covey.report.fitted import Fitted
from covey.report.page import MOST_COLOURS, colour
from covey.validation import FloatArray, MatrixLike, PerRow, on_host

# The most strata in the baseline plot.
MOST_STRATA = 60

SURVIVAL = Axis(0.0, 1.0)

# Thirds of the rows by risk, with the numbers of their colours: green, blue and orange. Legends shorten longer names.
THIRDS = {"low risk": 2, "middle risk": 0, "high risk": 1}


@dataclass(frozen=True)
class Curve:
    """A survival curve: one before the first time in `x`, and `y` from each of them on."""

    name: str
    x: FloatArray
    y: FloatArray
    end: float  # of the follow-up
    start: FloatArray  # when its rows enter the risk set; empty for a model's curve
    stop: FloatArray  # when they leave it
    n_events: int = 0
    colour: int = 0

    @property
    def last(self) -> float:
        """The survival at the end."""
        return float(self.y[-1]) if len(self.y) else 1.0

    def at_risk(self, time: float) -> int:
        """The number of rows at risk just before a time; at zero, those at risk from the start."""
        entered = self.start < time if time > 0 else self.start <= 0
        return int((entered & (self.stop >= time)).sum())


class HazardRatio(NamedTuple):
    """Logarithms of the hazard ratio of one column: for an increase by one, and by one standard deviation."""

    column: str
    group: str
    per_unit: float
    per_deviation: float


@dataclass(frozen=True)
class Survival:
    """The contents of the report's survival section."""

    thirds: tuple[Curve, ...]  # Kaplan-Meier curves of the rows by predicted risk; one curve if all risks are equal
    n_folds: int  # outer folds that predicted the risk; 0 if it was predicted by the fit itself
    baseline: tuple[Curve, ...]  # survival of a row at the means of all columns: one curve, or one per stratum
    ratios: tuple[HazardRatio, ...]  # of columns in the model that mean something alone, strongest group first
    n_rows: int
    n_events: int
    median: float | None  # the Kaplan-Meier median survival time; None if it is not reached
    has_strata: bool = False
    has_entries: bool = False


def survival_times(model: BaseEstimator, y: PerRow) -> FloatArray:
    """Start, stop, event, and the stratum as the model encodes it, one record per row."""
    return read_survival(on_host(y), "y", FieldNames.of(model)).coded_as(model.strata_)


def survival_part(fit: Fitted, expanded: Collection[int] = ()) -> Survival | None:
    """The contents of the survival section; None for other responses, or without the data.

    Columns that are `expanded` from others, such as those of a spline, have no hazard ratio: their curves are shown.
    """
    model, nested = fit.model, fit.nested
    if not model.loss_.survival or fit.X is None:
        return None
    times = survival_times(model, fit.y)
    weight = np.ones(len(times)) if fit.weight is None else np.asarray(fit.weight, dtype=float)
    held_out = None if nested is None else nested.predictions
    risk = np.asarray(model.predict(fit.X, fit.offset) if held_out is None else held_out, dtype=float)
    rows = weight > 0
    times, q, risk = times[rows], weight[rows], risk[rows]
    everyone = _curve("all rows", times, q)
    reached = everyone.y <= 0.5
    return Survival(
        thirds=_by_risk(times, q, risk),
        n_folds=0 if nested is None or held_out is None else nested.n_folds,
        baseline=_baseline(model, times),
        ratios=() if hasattr(model, "expansion_") else _ratios(model, fit.X, weight, expanded),
        n_rows=len(times),
        n_events=everyone.n_events,
        median=float(everyone.x[reached][0]) if reached.any() else None,
        has_strata=model.strata_ is not None,
        has_entries=bool(np.isfinite(times[:, START]).any()),
    )


def _curve(name: str, times: FloatArray, weight: FloatArray, colour: int = 0) -> Curve:
    x, y = kaplan_meier(times, weight)
    n_events = int(times[:, EVENT].sum())
    return Curve(name, x, y, float(times[:, STOP].max()), times[:, START], times[:, STOP], n_events, colour)


def _by_risk(times: FloatArray, weight: FloatArray, risk: FloatArray) -> tuple[Curve, ...]:
    """One curve per third of the rows; fewer if many risks are equal."""
    known = ~np.isnan(risk)
    times, weight, risk = times[known], weight[known], risk[known]
    if np.ptp(risk) == 0:
        return (_curve("all rows", times, weight),)
    third = np.searchsorted(np.quantile(risk, [1 / 3, 2 / 3]), risk, side="left")
    return tuple(
        _curve(name, times[third == k], weight[third == k], number)
        for k, (name, number) in enumerate(THIRDS.items())
        if (third == k).any()
    )


def _baseline(model: BaseEstimator, times: FloatArray) -> tuple[Curve, ...]:
    frame, none = model.baseline(), np.empty(0)
    if model.strata_ is None:
        frame, labels = frame.assign(stratum="baseline"), ["baseline"]
    else:
        labels = model.strata_.tolist()
    found = []
    for code, label in enumerate(labels):
        x, y = (frame.loc[frame["stratum"] == label, name].to_numpy() for name in ("time", "survival"))
        end = float(times[times[:, -1] == code, STOP].max() if model.strata_ is not None else times[:, STOP].max())
        found.append(Curve(str(label), x, y, end, none, none, colour=code))
    return tuple(found)


def _ratios(
    model: BaseEstimator, X: MatrixLike, weight: FloatArray, expanded: Collection[int]
) -> tuple[HazardRatio, ...]:
    """The ratios of columns with nonzero coefficients, by the strength of their groups, then by size."""
    groups, coef = model.groups_, np.asarray(model.coef_, dtype=float)
    used, share = np.flatnonzero(coef), weight / weight.sum()
    columns_used = np.asarray(on_host(as_design(X).take(used)), dtype=float)
    deviations = np.zeros(coef.size)
    deviations[used] = np.sqrt(share @ (columns_used - share @ columns_used) ** 2)
    found: dict[int, HazardRatio] = {}
    for l in np.argsort(-model.group_strengths_, kind="stable"):
        columns = groups.members[groups.starts[l] : groups.starts[l + 1]].tolist()
        new = [j for j in columns if coef[j] != 0 and j not in found and j not in expanded]  # groups may overlap
        for j in sorted(new, key=lambda j: -abs(coef[j] * deviations[j])):
            in_units = float(coef[j]), float(coef[j] * deviations[j])
            found[j] = HazardRatio(groups.column_name(j), str(groups.names[l]), *in_units)
    return tuple(found.values())


def survival_view(part: Survival | None) -> dict[str, object] | None:
    """The two plots, and the numbers at risk at the ticks of the first."""
    if part is None:
        return None
    what = f"Kaplan-Meier curves of {len(part.thirds)} sets of rows by predicted risk"
    by_risk = _plot("survival-plot", what, part.thirds)
    at_risk = [(curve, [curve.at_risk(t) for t in by_risk.across.ticks()]) for curve in part.thirds]
    baseline = _plot("baseline-plot", "survival of a row at the means of all columns", part.baseline[:MOST_STRATA])
    if not part.has_strata:
        baseline.ends = []
    return {"plot": by_risk, "at_risk": at_risk, "baseline": baseline}


def _plot(id: str, what: str, curves: tuple[Curve, ...]) -> Plot:
    """Step curves from one at time zero to the end of the follow-up."""
    named = curves[:MOST_COLOURS]
    left = ", ".join(f"{curve.name} {curve.last:.2f}" for curve in named)
    times = Axis(0.0, max((curve.end for curve in curves), default=1.0) or 1.0)
    plot = Plot(id, f"Line plot: {what}; at the end: {left}.", times, SURVIVAL, n_levels=6)
    for curve in reversed(curves):
        plot.line(f"line {colour(curve.colour)}", steps(np.r_[0.0, curve.x], np.r_[1.0, curve.y], curve.end))
    plot.name_ends((curve.name, curve.last, curve.colour) for curve in named)
    return plot
