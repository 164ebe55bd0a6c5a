"""The data behind the report's survival section: curves by predicted risk, the baseline, and hazard ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.evidence import NestedScore
from covey.losses.risk_sets import EVENT, START, STOP
from covey.losses.survival import FieldNames, read_survival
from covey.validation import FloatArray, on_host

__all__ = ["Curve", "Ratio", "SurvivalPart", "as_records", "kaplan_meier", "survival_part", "survival_rows"]

# Thirds of the rows by risk, with the indices of their colours: green, blue and orange.
THIRDS = {"lowest third": 2, "middle third": 0, "highest third": 1}


@dataclass(frozen=True)
class Curve:
    """A survival curve.

    Attributes
    ----------
    name : str
    x, y : ndarray
        Ascending times, and the survival from each of them on; one before the first.
    end : float
        The end of the follow-up.
    start, stop : ndarray
        When the curve's rows enter and leave the risk set. Empty for a model's curve.
    n_events : int
        The number of events in these rows.
    place : int
        The index of its colour.
    """

    name: str
    x: FloatArray
    y: FloatArray
    end: float
    start: FloatArray
    stop: FloatArray
    n_events: int = 0
    place: int = 0

    def at_risk(self, time: float) -> int:
        """The number of rows at risk just before a time; at zero, those at risk from the start."""
        entered = self.start < time if time > 0 else self.start <= 0
        return int((entered & (self.stop >= time)).sum())


@dataclass(frozen=True)
class Ratio:
    """The hazard ratio of one column.

    Attributes
    ----------
    column, group : str
    per_unit : float
        The logarithm of the ratio for an increase of the column by one.
    per_deviation : float or None
        The same for an increase by one standard deviation.
    """

    column: str
    group: str
    per_unit: float
    per_deviation: float | None


@dataclass(frozen=True)
class SurvivalPart:
    """The contents of the report's survival section.

    Attributes
    ----------
    thirds : tuple of Curve
        Kaplan-Meier curves of the rows by predicted risk; a single curve if all risks are equal.
    n_folds : int
        The number of outer folds that predicted the risk; 0 if it was predicted by the fit itself.
    baseline : tuple of Curve
        Survival of a row at the means of all columns: one curve, or one per stratum.
    ratios : tuple of Ratio
        The ratios of all columns in the model, strongest group first.
    n_rows, n_events : int
    median : float or None
        The Kaplan-Meier median survival time; None if it is not reached.
    has_strata, has_entries : bool
    """

    thirds: tuple[Curve, ...]
    n_folds: int
    baseline: tuple[Curve, ...]
    ratios: tuple[Ratio, ...]
    n_rows: int
    n_events: int
    median: float | None
    has_strata: bool = False
    has_entries: bool = False


def survival_rows(model: Any, y: Any) -> FloatArray:
    """Start, stop, event, and the stratum as the model encodes it."""
    return read_survival(on_host(y), "y", FieldNames.of(model)).coded_as(model.strata_)


def as_records(model: Any, y: Any) -> Any:
    """Survival times as one array with one entry per row; unlike a pair of arrays, it can be split."""
    if not isinstance(y, tuple | list):
        return y
    rows = survival_rows(model, y)
    fields: Mapping[str, Any] = {model.event: rows[:, EVENT] > 0, model.time: rows[:, STOP]}
    if np.isfinite(rows[:, START]).any():
        fields = {**fields, model.start: rows[:, START]}
    made = np.empty(len(rows), dtype=[(name, values.dtype) for name, values in fields.items()])
    for name, values in fields.items():
        made[name] = values
    return made


def survival_part(
    model: Any, X: Any, y: Any, weight: Any = None, offset: Any = None, nested: NestedScore | None = None
) -> SurvivalPart | None:
    """The contents of the survival section; None for other responses, or without the data."""
    if not model.loss_.coupled or X is None:
        return None
    rows = survival_rows(model, y)
    q = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=float)
    held_out = nested is not None and nested.predictions is not None
    risk = nested.predictions if held_out and nested is not None else model.predict(X, offset)
    every = _curve("all rows", rows, q)
    reached = every.y <= 0.5
    return SurvivalPart(
        thirds=_by_risk(rows, q, np.asarray(risk, dtype=float)),
        n_folds=nested.n_folds if held_out and nested is not None else 0,
        baseline=_baseline(model, rows),
        ratios=_ratios(model, X),
        n_rows=len(rows),
        n_events=int(rows[:, EVENT].sum()),
        median=float(every.x[reached][0]) if reached.any() else None,
        has_strata=model.strata_ is not None,
        has_entries=bool(np.isfinite(rows[:, START]).any()),
    )


def kaplan_meier(rows: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Event times, and the Kaplan-Meier estimate of the survival from each of them on.

    Examples
    --------
    >>> rows = np.array([[-np.inf, t, e, 0.0] for t, e in [(1.0, 1.0), (2.0, 0.0), (3.0, 1.0), (4.0, 0.0)]])
    >>> times, left = kaplan_meier(rows, np.ones(4))
    >>> times.tolist(), left.tolist()
    ([1.0, 3.0], [0.75, 0.375])
    """
    event = (rows[:, EVENT] > 0) & (weight > 0)
    times, place = np.unique(rows[event, STOP], return_inverse=True)
    events = np.bincount(place, weights=weight[event], minlength=times.size)
    # at risk: rows that have entered before the time, minus those that have left before it
    at_risk = _mass(rows[:, START], weight, times) - _mass(rows[:, STOP], weight, times)
    return times, np.cumprod(1.0 - events / at_risk)


def _mass(points: FloatArray, weight: FloatArray, times: FloatArray) -> FloatArray:
    """The total weight of the points before each time."""
    order = np.argsort(points, kind="stable")
    return np.concatenate([[0.0], np.cumsum(weight[order])])[np.searchsorted(points[order], times, side="left")]


def _curve(name: str, rows: FloatArray, weight: FloatArray, place: int = 0) -> Curve:
    x, y = kaplan_meier(rows, weight)
    n_events = int(rows[:, EVENT].sum())
    return Curve(name, x, y, float(rows[:, STOP].max()), rows[:, START], rows[:, STOP], n_events, place)


def _by_risk(rows: FloatArray, weight: FloatArray, risk: FloatArray) -> tuple[Curve, ...]:
    """One curve per third of the rows; fewer if many risks are equal."""
    known = ~np.isnan(risk)
    rows, weight, risk = rows[known], weight[known], risk[known]
    if np.ptp(risk) == 0:
        return (_curve("all rows", rows, weight),)
    third = np.searchsorted(np.quantile(risk, [1 / 3, 2 / 3]), risk, side="left")
    return tuple(
        _curve(name, rows[third == k], weight[third == k], place)
        for k, (name, place) in enumerate(THIRDS.items())
        if (third == k).any()
    )


def _baseline(model: Any, rows: FloatArray) -> tuple[Curve, ...]:
    frame, none = model.baseline(), np.empty(0)
    if model.strata_ is None:
        end = float(rows[:, STOP].max())
        return (Curve("baseline", frame["time"].to_numpy(), frame["survival"].to_numpy(), end, none, none),)
    made = []
    for code, label in enumerate(model.strata_.tolist()):
        own, end = frame[frame["stratum"] == label], float(rows[rows[:, -1] == code, STOP].max())
        made.append(Curve(str(label), own["time"].to_numpy(), own["survival"].to_numpy(), end, none, none, place=code))
    return tuple(made)


def _ratios(model: Any, X: Any) -> tuple[Ratio, ...]:
    """The ratios of all columns with nonzero coefficients, by the strength of their groups, then by size."""
    groups, coef = model.groups_, np.asarray(model.coef_, dtype=float)
    used = np.flatnonzero(coef)
    spread = _spread(X, used)
    found, seen = [], set()
    for l in np.argsort(-model.group_strengths_, kind="stable"):
        columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
        own = [int(j) for j in columns if coef[j] != 0 and int(j) not in seen]  # groups may overlap
        seen.update(own)
        for j in sorted(own, key=lambda j: -abs(coef[j] * spread.get(j, 1.0))):
            deviation = coef[j] * spread[j] if j in spread else None
            found.append(Ratio(groups.column_name(j), str(groups.names[l]), float(coef[j]), deviation))
    return tuple(found)


def _spread(X: Any, used: Any) -> dict[int, float]:
    """The standard deviations of the used columns of a table or dense array; empty for other kinds of data."""
    if hasattr(X, "iloc") and not hasattr(X, "dask"):
        values = X.iloc[:, used].to_numpy(dtype=float)
    elif isinstance(X, np.ndarray):
        values = X[:, used].astype(float)
    else:
        return {}
    return dict(zip(used.tolist(), values.std(axis=0).tolist(), strict=True))
