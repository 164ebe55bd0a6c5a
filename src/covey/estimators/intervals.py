"""Prediction intervals by CV+: the folds' models, and how far held-out rows are from their predictions.

A held-out row has a score, the misfit of its response by the model that was fitted without it. Around a new row, every
held-out row draws an interval: the responses whose misfit, by the same model, is no larger than its score. The interval
of the new row covers the ends of these, save a share of them on either side (Barber, Candès, Ramdas and Tibshirani,
"Predictive inference with the jackknife+", 2021). With one fold this is split conformal prediction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from covey.estimators.reading import read_rows
from covey.losses import Loss
from covey.losses.responses import read_offset
from covey.search.held_out import HeldOut
from covey.validation import FloatArray, MatrixLike, PerRow

# Bounds that are whole numbers but for round-off error are these numbers.
NEAR_WHOLE = 1e-6

# Scores of classes this close, relative to each other, are equal.
EQUAL = 1e-9

# Halvings of a bracket: as many as a float64 has digits, and a few more.
MOST_HALVINGS, MOST_DOUBLINGS = 64, 1100


def fold_predictors(estimator: BaseEstimator, X: MatrixLike, offset: PerRow) -> tuple[HeldOut, FloatArray]:
    """The held-out rows of a fit, and linear predictors of other rows by all fold models.

    The predictors have shape (n_rows, n_folds, n_outputs).
    """
    check_is_fitted(estimator)
    held_out: HeldOut | None = estimator.held_out_
    if held_out is None:
        raise ValueError(
            f"Prediction intervals are made of rows that were held out, and selection={estimator.selection!r} holds "
            "out none: fit with folds, such as selection=5, or with selection='holdout'."
        )
    design = read_rows(estimator, X)
    estimator._in_range(estimator._predictor(design))  # warns of rows far outside
    eta = estimator._bounded(held_out.predictors(design))
    if offset is not None:
        eta = eta + read_offset(offset, design.shape[0], eta.shape[2], estimator.loss_)[:, None, :]
    return held_out, eta


def class_sets(held_out: HeldOut, p: FloatArray, level: float) -> NDArray[np.bool_]:
    """The classes that a share of new rows belong to: adaptive prediction sets (Romano, Sesia and Candès, 2020).

    A class is in the set unless more than the share of the held-out rows have a lower score by the same fold's model.
    No random numbers are drawn, and the class that conforms best is always in.
    `p` has the probabilities by all fold models, shape (n_rows, n_folds, n_classes), and the result a column per class.
    """
    # scores that differ by round-off error are equal
    below = held_out.upto(class_scores(p).transpose(0, 2, 1) * (1 - EQUAL), side="left")
    return np.asarray((below < held_out.needed(level)) | (below == below.min(axis=1, keepdims=True)))


def class_scores(p: FloatArray) -> FloatArray:
    """The score of every class: the probability that the class is a more likely one. Classes are the last axis."""
    order = np.argsort(-p, axis=-1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=-1)
    before, scores = np.cumsum(ranked, axis=-1) - ranked, np.empty_like(p)
    np.put_along_axis(scores, order, np.where(np.arange(p.shape[-1]) > 0, before, 0.0), axis=-1)
    return scores


def interval_bounds(loss: Loss, held_out: HeldOut, eta: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, shape (n_rows, n_responses), of intervals that contain a share of new responses.

    `eta` has the linear predictors of all fold models, shape (n_rows, n_folds, n_responses).
    """
    needed = held_out.needed(level)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ends = [
            np.column_stack([_end(loss, held_out, eta[:, :, j], needed, j, side) for j in range(eta.shape[2])])
            for side in (-1, 1)
        ]
    lower, upper = ends
    if held_out.whole:
        first, last = np.ceil(lower - NEAR_WHOLE), np.floor(upper + NEAR_WHOLE)
        # an interval between two neighbours gets both
        lower, upper = np.where(first > last, last, first) + 0.0, np.where(first > last, first, last)
    return lower, upper


def _end(loss: Loss, held_out: HeldOut, eta: FloatArray, needed: float, response: int, side: int) -> FloatArray:
    """The nearest upper (side 1) or lower (side -1) end beyond which few enough of the held-out rows' ends lie."""
    mean = np.asarray(loss.inverse_link(eta), dtype=float)

    def is_enough(ends: FloatArray) -> NDArray[np.bool_]:
        """Whether enough held-out rows have an interval that ends here or before."""
        outside = side * (ends[:, None] - mean) >= 0
        misfit = np.where(outside, loss.misfit(ends[:, None], eta), -1.0)
        return held_out.upto(misfit, response) >= needed

    if loss.identity_link:
        # if every fold has the same share of ends before a place, so have all together
        ends = mean + side * held_out.quantiles(needed / held_out.n_rows, response)
        near, far = (ends.min(axis=1), ends.max(axis=1))[::side]
    else:
        near, far = _bracket(loss, mean, is_enough, side)
    far = np.where(is_enough(near), near, far)
    for _ in range(MOST_HALVINGS):
        middle = near + (far - near) / 2
        left = (middle != near) & (middle != far)
        if not left.any():
            break
        enough = is_enough(middle)
        near, far = np.where(enough, near, middle), np.where(enough, middle, far)
    return far


def _bracket(
    loss: Loss, mean: FloatArray, is_enough: Callable[[FloatArray], NDArray[np.bool_]], side: int
) -> tuple[FloatArray, FloatArray]:
    """A place before the end, and one behind it or at the end of all responses."""
    near, limit = (mean.min(axis=1) if side > 0 else mean.max(axis=1)), loss.support[side > 0]
    if np.isfinite(limit):
        return near, np.full_like(near, limit)
    step = np.maximum(np.ptp(mean, axis=1), np.maximum(np.abs(near), np.finfo(float).tiny))
    far = near + side * step
    for _ in range(MOST_DOUBLINGS):
        short = ~is_enough(far) & np.isfinite(far)
        if not short.any():
            break
        step = np.where(short, 2 * step, step)
        far = near + side * step
    return near, far
