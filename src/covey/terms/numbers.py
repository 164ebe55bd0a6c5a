"""Numbers: a standardised column with a flag for missing values, and the columns of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from covey.tables.complaint import Column
from covey.terms.reading import as_labels, as_numbers
from covey.terms.splines import basis, orthonormal_curves, quantile_knots, quantiles, with_grid
from covey.validation import Array, FloatArray

# Quantiles kept for drawing where the data are.
N_QUANTILES = 41
# A spline of the detail that is larger by this factor between the rows than on them is left out: no row says how it
# goes there.
WILDEST = 5.0
BOOLEAN = ("False", "True")
# Missing values get a flag from this number on: a flag for one row fits that row and says nothing of others.
LEAST_FLAGGED = 3


@dataclass(frozen=True, eq=False)
class Number:
    """A fitted number: ``(x - mean) / sd``, a flag if values were missing, and splines by their values at the knots."""

    name: str
    mean: float
    sd: float
    quantiles: tuple[float, ...]
    share_missing: float = 0.0  # 0 if they are too few for a flag
    n_missing: int = 0
    n_distinct: int = 0
    n_rarer: int = 0  # rows with the rarer one of two values; 0 if there are more
    knots: FloatArray = field(default_factory=lambda: np.zeros(0))  # of standardised values
    values: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (knots, columns of the curve and its detail)
    n_smooth: int = 0  # columns of the curve without its detail
    labels: tuple[str, ...] | None = None
    integer: bool = False
    always: bool = False

    kind = "number"

    @property
    def low(self) -> float:
        """The smallest value."""
        return self.quantiles[0]

    @property
    def high(self) -> float:
        """The largest value."""
        return self.quantiles[-1]

    @property
    def ordered(self) -> bool:
        """Whether it is an ordered category: its values are labels."""
        return self.labels is not None and self.labels != BOOLEAN

    @property
    def terms(self) -> tuple[tuple[str, str, int | None, tuple[str, ...]], ...]:
        """Name, kind, parent and column names of each term."""
        flag = (f"{self.name} missing",) if self.share_missing else ()
        line = (self.name, "linear", None, (self.name, *flag))
        columns = tuple(f"{self.name}~{j + 1}" for j in range(self.values.shape[1]))
        curve = (f"{self.name}~", "curve", 0, columns[: self.n_smooth])
        detail = (f"{self.name}~~", "detail", 1, columns[self.n_smooth :])
        return (line, *(term for term in (curve, detail) if term[-1]))

    def read(self, column: Column) -> FloatArray:
        """Raw values as numbers, NaN for missing ones; a label that was not in the data of fit is infinite."""
        return label_positions(column, self.labels or ()) if self.ordered else as_numbers(column, lenient=True)

    def encode(self, x: FloatArray) -> FloatArray:
        """The encoded columns of numbers, NaN for missing ones.

        What is missing or infinite is 0, the mean, in the line and its curve.
        """
        z = (x - self.mean) / self.sd
        missing, known = np.isnan(z), np.isfinite(z)
        z = np.where(known, z, 0.0)
        columns = [z, missing - self.share_missing] if self.share_missing else [z]
        if self.values.size:
            # beyond the range that was seen, a curve stays where it is and the line goes on
            low, high = (self.low - self.mean) / self.sd, (self.high - self.mean) / self.sd
            columns += list((basis(z.clip(low, high), self.knots) @ self.values * known[:, None]).T)
        return np.array(columns).T

    def grid(self, n: int) -> Array | list[str | None]:
        """Values over the range: all of them if they are two, few integers or labels, else evenly spaced."""
        if self.labels is not None:
            return [*self.labels, *([None] if self.share_missing else [])]
        if self.n_distinct == 2:
            return np.array([self.low, self.high])
        if self.integer and self.high - self.low < n:
            return np.arange(self.low, self.high + 1)
        return np.linspace(self.low, self.high, n)

    def describe(self) -> dict[str, object]:
        """A line of `Encoding.table`."""
        flag = " and a flag" if self.share_missing else ""
        if self.labels is None:
            span = " to ".join(f"{end:.0f}" if self.integer else f"{end:.6g}" for end in (self.low, self.high))
        else:
            span = f"{len(self.labels)} levels, ordered" if self.labels != BOOLEAN else "False, True"
        return {
            "kind": "curve" if self.values.size else "linear",
            "columns": sum(len(names) for *_, names in self.terms),
            "values": span,
            "missing": self.n_missing,
            "remark": f"missing values: the mean{flag}" if self.n_missing else "",
        }

    def state(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return vars(self) | {"knots": self.knots.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Number:
        """The inverse of `state`."""
        arrays = {name: np.array(state[name], dtype=np.float64) for name in ("knots", "values")}
        if arrays["values"].size == 0:
            arrays["values"] = np.zeros((0, 0))
        labels = None if state["labels"] is None else tuple(state["labels"])
        return cls(**{**state, **arrays, "labels": labels, "quantiles": tuple(state["quantiles"])})


@dataclass(frozen=True)
class Sample:
    """A number before it is fitted: its values, the distinct ones with their rows, and how it should be encoded."""

    name: str
    x: FloatArray
    distinct: FloatArray  # sorted
    rows: FloatArray  # counted by weight
    n_knots: int = 0  # 0 for no curve
    detail: bool = False  # whether the curve may have one
    labels: tuple[str, ...] | None = None
    integer: bool = False
    always: bool = False

    @classmethod
    def of(cls, name: str, x: FloatArray, weights: FloatArray, **settings: Any) -> Sample:
        """Find the distinct values of a column, NaN for missing ones."""
        observed = ~np.isnan(x)
        distinct, which = np.unique(x[observed], return_inverse=True)
        rows = np.bincount(which, weights[observed], len(distinct)).astype(np.float64)
        return cls(name, x, distinct, rows, **settings)


def label_positions(column: Column, labels: Sequence[str]) -> FloatArray:
    """The position of each value among some labels, NaN for missing ones and infinite for other labels."""
    places: dict[str | None, float] = {text: float(j) for j, text in enumerate(labels)} | {None: np.nan}
    return np.array([places.get(text, np.inf) for text in as_labels(column)], dtype=np.float64)


def fit_number(sample: Sample, weights: FloatArray, n_quantiles: int = N_QUANTILES) -> Number:
    """Fit a number with at least two distinct values: its line, its curve, and the detail on more knots if wanted."""
    number = _fit_line(sample, weights, np.linspace(0, 1, n_quantiles))
    if not number.knots.size:
        return number
    curve = _splines(sample, number, weights)
    number = replace(number, values=curve, n_smooth=curve.shape[1])
    if not (number.values.size and sample.detail):
        return number
    z = (sample.distinct - number.mean) / number.sd
    knots = with_grid(number.knots, z, sample.rows)
    fine = replace(number, knots=knots, values=basis(knots, number.knots) @ number.values)
    detail = _splines(sample, fine, weights)
    # without those that are much larger between the rows than on them
    on_rows = np.abs(basis(z, knots) @ detail).max(axis=0)
    inside = (knots >= z[0]) & (knots <= z[-1])
    detail = detail[:, np.abs(detail[inside]).max(axis=0) <= WILDEST * on_rows]
    return replace(fine, values=np.hstack([fine.values, detail]))


def _splines(sample: Sample, number: Number, weights: FloatArray) -> FloatArray:
    """The splines that the knots of a number allow beside those that it has, by their values at the knots."""
    observed = ~np.isnan(sample.x)
    z, shares = (sample.x[observed] - number.mean) / number.sd, weights[observed]
    smooth = number.values if number.values.size else np.empty((len(number.knots), 0))
    return orthonormal_curves(z, shares / shares.sum(), number.knots, smooth)


def _fit_line(sample: Sample, weights: FloatArray, at: FloatArray) -> Number:
    """Mean, standard deviation, quantiles and knots of a number, without its curve."""
    values, total = sample.distinct, sample.rows.sum()
    middle = values[len(values) // 2]  # subtracted first: a large offset costs no digits of the mean
    span = values[-1] - values[0]  # divided by: squares of tiny numbers underflow
    centred = (values - middle) / span
    centre = sample.rows @ centred / total
    sd = span * np.sqrt(sample.rows @ (centred - centre) ** 2 / total)
    mean = middle + span * centre
    drawn = quantiles(values, sample.rows, at)
    drawn[[0, -1]] = values[[0, -1]]
    missing = np.isnan(sample.x)
    n_flagged = float(weights[missing].sum())
    knots: FloatArray = np.zeros(0)
    if sample.n_knots and len(values) > 2:
        knots = quantile_knots((values - mean) / sd, sample.rows, sample.n_knots)
    return Number(
        sample.name, float(mean), float(sd), tuple(drawn.tolist()),
        n_flagged / float(weights.sum()) if n_flagged >= LEAST_FLAGGED else 0.0, int(missing.sum()), len(values),
        n_rarer=max(1, round(sample.rows.min())) if len(values) == 2 else 0,
        knots=knots if len(knots) > 2 else np.zeros(0), labels=sample.labels, integer=sample.integer,
        always=sample.always,
    )  # fmt: skip
