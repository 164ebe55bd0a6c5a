"""Held-out class predictions: scores, thresholds, confusion and calibration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.evidence.class_scores import ClassScores
from covey.report.drawing import Axis, Plot

__all__ = ["Bin", "calibration_bins", "class_view"]

# The most classes of a full confusion table; beyond it, the most common mistakes are listed.
MOST_CLASSES, MOST_MISTAKES = 12, 20

# Bins of a calibration plot; half as many with fewer rows than this.
MOST_BINS, MANY_ROWS = 10, 150


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
