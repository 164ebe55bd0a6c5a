"""Observed against predicted values, and residuals: two plots and a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from covey.evidence import NestedScore
from covey.report.drawing import Axis, Plot, Vector
from covey.report.numbers import shown
from covey.report.quality import in_memory
from covey.validation import FloatArray, MatrixLike, PerRow

__all__ = ["Residuals", "residual_view", "residuals"]

# The most rows to draw, evenly spaced in the order of the table.
MOST_POINTS = 600

# Around the points, relative to their range.
MARGIN = 0.04

# A mean below this share of the largest residual is round-off error.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Residuals:
    """A numeric response and its predictions, one entry per row."""

    observed: FloatArray
    fitted: FloatArray  # by the model, on its training rows
    held_out: FloatArray | None  # by refits without the row; NaN if there is none


def residuals(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, offset: PerRow, nested: NestedScore | None
) -> Residuals | None:
    """Predictions of a numeric response; None for classes, survival times and several responses."""
    if X is None or hasattr(model, "classes_") or model.loss_.survival or model.loss_.vector:
        return None
    shift = {} if offset is None else {"offset": offset}
    held_out = None if nested is None or nested.predictions is None else np.ravel(nested.predictions)
    observed = np.ravel(in_memory(y))
    if held_out is not None and (held_out.shape != observed.shape or np.isnan(held_out).all()):
        held_out = None
    return Residuals(observed, np.ravel(in_memory(model.predict(X, **shift))), held_out)


def residual_view(found: Residuals | None) -> dict[str, object] | None:
    """Two scatter plots, and a table of quantiles for each kind of prediction."""
    if found is None:
        return None
    predicted = found.fitted if found.held_out is None else found.held_out
    rows = np.flatnonzero(~np.isnan(predicted))
    drawn = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, MOST_POINTS)).astype(int))]
    x, y = predicted[drawn], found.observed[drawn]
    both, across, around_zero = (Axis.around(values, MARGIN) for values in (np.r_[x, y], x, np.r_[y - x, 0.0]))
    plots = {
        "Observed against predicted": _scatter("observed", x, y, both, both, (both.low, both.high)),
        "Residual against predicted": _scatter("residual", x, y - x, across, around_zero, (0.0, 0.0)),
    }
    summaries = {"training rows": _summary(found.observed, found.fitted)}
    if found.held_out is not None:
        summaries = {"held-out rows": _summary(found.observed, found.held_out), **summaries}
    return {
        "plots": plots,
        "n_drawn": drawn.size,
        "n_rows": rows.size,
        "summaries": summaries,
    }


def _scatter(what: str, x: Vector, y: Vector, across: Axis, down: Axis, rule: tuple[float, float]) -> Plot:
    """Dots, and a line from its height at the left to that at the right."""
    plot = Plot(f"{what}-plot", f"Scatter plot: {what} against predicted, {len(x)} rows.", across, down, n_ticks=6)
    plot.segments("dots", (x, y), (x, y))
    plot.segments("rule", (across.low, rule[0]), (across.high, rule[1]))
    return plot


def _summary(observed: FloatArray, predicted: FloatArray) -> dict[str, str]:
    known = ~np.isnan(predicted)
    left = observed[known] - predicted[known]
    most = int(np.argmax(np.abs(left)))
    low, quarter, middle, three, high = np.quantile(left, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    return {
        "mean": shown(float(left.mean()) if abs(left.mean()) > ROUNDING * np.abs(left).max() else 0.0),
        "standard deviation": shown(float(left.std())),
        "median": shown(middle),
        "middle half": f"{shown(quarter)} to {shown(three)}",
        "90 % of rows": f"{shown(low)} to {shown(high)}",
        "largest": f"{shown(float(left[most]))} (row {int(np.flatnonzero(known)[most]) + 1})",
    }
