"""Predictions beside what was observed: scores, confusion and calibration of classes, and residuals of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from covey.evidence.class_scores import ClassScores
from covey.losses.responses import weighted_quantile
from covey.report.drawing import Axis, Plot, Vector
from covey.report.fitted import Fitted
from covey.report.page import shown
from covey.report.quality import in_memory
from covey.validation import FloatArray

# The most classes of a full confusion table; beyond it, the most common mistakes are listed.
MOST_CLASSES, MOST_MISTAKES = 12, 20

# Bins of a calibration plot; half as many with fewer rows than this.
MOST_BINS, MANY_ROWS = 10, 150

# The most rows to draw, evenly spaced in the order of the table.
MOST_POINTS = 600

# Around the points, relative to their range.
MARGIN = 0.04

# A mean below this share of the largest residual is round-off error.
ROUNDING = 1e-9


class Bin(NamedTuple):
    """Rows with similar predicted probabilities.

    It has their mean probability, the share of rows in the class, the standard error of that share if the probability
    is right, and the number of rows.
    """

    predicted: float
    observed: float
    error: float
    n: int


def calibration_bins(scores: ClassScores) -> tuple[Bin, ...]:
    """Rows in equal-width bins of their predicted probability: of the positive class, or of every class."""
    p, is_it = scores.probabilities, np.eye(len(scores.classes))[scores.codes]
    if scores.position is not None:
        p, is_it = p[:, [scores.position]], is_it[:, [scores.position]]
    weight = np.repeat(scores.weight, p.shape[1])
    p, is_it = p.ravel(), is_it.ravel()
    n_bins = MOST_BINS if p.size >= MANY_ROWS else MOST_BINS // 2
    bin_of = np.where(weight > 0, np.minimum((n_bins * p).astype(int), n_bins - 1), -1)
    bins = []
    for k in np.unique(bin_of[bin_of >= 0]):
        inside = bin_of == k
        share, q = weight[inside] / weight[inside].sum(), p[inside]
        error = float(np.sqrt(share**2 @ (q * (1 - q))))
        bins.append(Bin(float(share @ q), float(share @ is_it[inside]), error, q.size))
    return tuple(bins)


def class_view(scores: ClassScores) -> dict[str, object]:
    """The scores, the confusion table or the most common mistakes, and the calibration plot."""
    counts, classes = scores.confusion(), scores.classes.tolist()
    view = {
        "scores": scores, "lines": scores.table.reset_index().to_dict("records"),
        "thresholds": scores.thresholds.to_dict("records"), "confusion": None, "mistakes": None,
        "plot": _calibration_plot(scores),
    }  # fmt: skip
    if len(classes) <= MOST_CLASSES:
        lines = zip(classes, counts.tolist(), strict=True)
        return {**view, "confusion": [(name, row, max(sum(row), 1)) for name, row in lines]}
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_MISTAKES]
    pairs = np.column_stack(np.unravel_index(order, counts.shape))
    return {**view, "mistakes": [(classes[a], classes[b], int(counts[a, b])) for a, b in pairs if counts[a, b]]}


def _calibration_plot(scores: ClassScores) -> Plot:
    """Observed shares against predicted probabilities; calibrated probabilities lie on the diagonal."""
    bins = calibration_bins(scores)
    worst = max(bins, key=lambda b: abs(b.observed - b.predicted))
    of = f"of {scores.positive}" if scores.position is not None else "of the classes"
    description = (
        f"Calibration plot: observed share {of} against the predicted probability in {len(bins)} bins of rows; they "
        f"differ most at a probability of {worst.predicted:.2f}, where the share is {worst.observed:.2f}."
    )
    # as far as the probabilities go: those of a rare class would be crowded in a corner of the unit square
    high = max(max(b.predicted, b.observed + 2 * b.error) for b in bins)
    unit = Axis(0.0, min(1.0, np.ceil(10 * high) / 10))
    plot = Plot("calibration-plot", description, unit, unit, n_ticks=6)
    plot.segments("rule", (0.0, 0.0), (unit.high, unit.high))
    x, y, error = np.array([(b.predicted, b.observed, 2 * b.error) for b in bins]).T
    plot.segments("line c1", (x, np.minimum(y + error, unit.high)), (x, np.maximum(y - error, 0.0)))
    for b in bins:
        plot.dot("c1", b.predicted, b.observed)
    return plot


@dataclass(frozen=True)
class Residuals:
    """A numeric response and its predictions, one entry per row, and the weights of the rows."""

    observed: FloatArray
    weight: FloatArray
    fitted: FloatArray  # by the model, on its training rows
    held_out: FloatArray | None  # by refits without the row; NaN if there is none


def residuals(fit: Fitted) -> Residuals | None:
    """Predictions of a numeric response; None for classes, survival times and several responses."""
    model, nested = fit.model, fit.nested
    if fit.X is None or hasattr(model, "classes_") or model.loss_.survival or model.loss_.vector:
        return None
    shift = {} if fit.offset is None else {"offset": fit.offset}
    held_out = None if nested is None or nested.predictions is None else np.ravel(nested.predictions)
    observed = np.ravel(in_memory(fit.y))
    if held_out is not None and (held_out.shape != observed.shape or np.isnan(held_out).all()):
        held_out = None
    return Residuals(observed, fit.row_weight, np.ravel(in_memory(model.predict(fit.X, **shift))), held_out)


def residual_view(found: Residuals | None) -> dict[str, object] | None:
    """Two scatter plots, and a table of quantiles for each kind of prediction."""
    if found is None:
        return None
    predicted = found.fitted if found.held_out is None else found.held_out
    rows = np.flatnonzero(~np.isnan(predicted) & (found.weight > 0))
    drawn = rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, MOST_POINTS)).astype(int))]
    x, y = predicted[drawn], found.observed[drawn]
    both, across, around_zero = (Axis.around(values, MARGIN) for values in (np.r_[x, y], x, np.r_[y - x, 0.0]))
    plots = {
        "Observed against predicted": _scatter("observed", x, y, both, both, (both.low, both.high)),
        "Residual against predicted": _scatter("residual", x, y - x, across, around_zero, (0.0, 0.0)),
    }
    summaries = {"training rows": _summary(found, found.fitted)}
    if found.held_out is not None:
        summaries = {"held-out rows": _summary(found, found.held_out), **summaries}
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


def _summary(found: Residuals, predicted: FloatArray) -> dict[str, str]:
    known = ~np.isnan(predicted) & (found.weight > 0)
    left, weight = found.observed[known] - predicted[known], found.weight[known] / found.weight[known].sum()
    most, mean = int(np.argmax(np.abs(left))), float(weight @ left)
    low, quarter, middle, three, high = (weighted_quantile(left, weight, q) for q in (0.05, 0.25, 0.5, 0.75, 0.95))
    return {
        "mean": shown(mean if abs(mean) > ROUNDING * np.abs(left).max() else 0.0),
        "standard deviation": shown(float(np.sqrt(weight @ (left - mean) ** 2))),
        "median": shown(middle),
        "middle half": f"{shown(quarter)} to {shown(three)}",
        "90 % of rows": f"{shown(low)} to {shown(high)}",
        "largest": f"{shown(float(left[most]))} (row {int(np.flatnonzero(known)[most]) + 1})",
    }
