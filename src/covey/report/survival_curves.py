"""What a report shows of survival times: curves by predicted risk, the baseline, and hazard ratios, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.losses.risk_sets import EVENT, START, STOP
from covey.losses.survival import FieldNames, read_survival
from covey.nested import NestedScore
from covey.validation import FloatArray, on_host

__all__ = ["Curve", "Ratio", "SurvivalPart", "as_records", "kaplan_meier", "survival_part", "survival_rows"]

# With the places of their colours: green, blue and orange.
THIRDS = {"lowest third": 2, "middle third": 0, "highest third": 1}


@dataclass(frozen=True)
class Curve:
    """A survival curve.

    Attributes
    ----------
    name : str
    x, y : ndarray
        Times, ascending, and the survival from each of them on; before the first it is one.
    end : float
        Up to when it is known.
    start, stop : ndarray
        Of the rows that it is of: when they are at risk. Empty for the curve of a model.
    n_events : int
        Of these rows.
    place : int
        Which of the colours it has.
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
        """How many rows are at risk just before a time; at zero those that are from the beginning on."""
        entered = self.start < time if time > 0 else self.start <= 0
        return int((entered & (self.stop >= time)).sum())


@dataclass(frozen=True)
class Ratio:
    """The hazard ratio of one column.

    Attributes
    ----------
    column, group : str
    per_unit : float
        The logarithm of the ratio, of rows that differ by one in the column.
    per_deviation : float or None
        The same for rows that differ by a standard deviation of the column.
    """

    column: str
    group: str
    per_unit: float
    per_deviation: float | None


@dataclass(frozen=True)
class SurvivalPart:
    """What a report shows of survival times.

    Attributes
    ----------
    thirds : tuple of Curve
        Kaplan and Meier's curves of the rows by their predicted risk; one curve where all risks are the same.
    n_folds : int
        How many fits without the rows predicted the risk; 0 where it is that of the fit itself.
    baseline : tuple of Curve
        Survival of a row at the means of all columns: one curve, or one per stratum.
    ratios : tuple of Ratio
        Of every column of the model, the strongest group first.
    n_rows, n_events : int
    median : float or None
        The time at which half of all rows have had their event, by Kaplan and Meier; None where it is not reached.
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
    """Start, stop, event and the position of the stratum, as the model has the strata."""
    return read_survival(on_host(y), "y", FieldNames.of(model)).coded_as(model.strata_)


def as_records(model: Any, y: Any) -> Any:
    """Survival times as one array with an entry per row, which can be split; a pair of arrays cannot."""
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
    """Gather what a report shows; None for other responses, and where the data are not known."""
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
    """Times of events, and Kaplan and Meier's estimate of the survival from each of them on.

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
    # at risk: those who have entered before the time, less those who have left before it
    at_risk = _mass(rows[:, START], weight, times) - _mass(rows[:, STOP], weight, times)
    return times, np.cumprod(1.0 - events / at_risk)


def _mass(points: FloatArray, weight: FloatArray, times: FloatArray) -> FloatArray:
    """The weight of the points before each time."""
    order = np.argsort(points, kind="stable")
    return np.concatenate([[0.0], np.cumsum(weight[order])])[np.searchsorted(points[order], times, side="left")]


def _curve(name: str, rows: FloatArray, weight: FloatArray, place: int = 0) -> Curve:
    x, y = kaplan_meier(rows, weight)
    n_events = int(rows[:, EVENT].sum())
    return Curve(name, x, y, float(rows[:, STOP].max()), rows[:, START], rows[:, STOP], n_events, place)


def _by_risk(rows: FloatArray, weight: FloatArray, risk: FloatArray) -> tuple[Curve, ...]:
    """A curve for each third of the rows; fewer where many risks are the same."""
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
    """Of all columns with a coefficient: by the strength of their groups, then by size."""
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
    """The standard deviations of some columns of tables and dense arrays; of nothing for other kinds."""
    if hasattr(X, "iloc") and not hasattr(X, "dask"):
        values = X.iloc[:, used].to_numpy(dtype=float)
    elif isinstance(X, np.ndarray):
        values = X[:, used].astype(float)
    else:
        return {}
    return dict(zip(used.tolist(), values.std(axis=0).tolist(), strict=True))
