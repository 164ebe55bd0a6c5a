"""The scale of a loss that has one, such as the threshold of Huber's loss, and the rows that are outliers.

Both follow from the residuals of a selected model, and the model depends on both, so they are found in turn. All scales
are medians and quartiles, which a few rows cannot move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covey.losses import Loss
from covey.losses.arrays import weighted_median
from covey.search.problem import Problem
from covey.search.select import Selected
from covey.search.splits import EmptyFoldError
from covey.validation import FloatArray, on_host

__all__ = ["select_scaled"]

# Residuals below this share of the response's spread are round-off error, and useless as the scale of a loss.
LEAST_NOISE = 1e-6

# An outlier is a response beyond the limit of the loss that leaves at least this share of its distance unexplained.
UNEXPLAINED = 0.5

# Searches end when the median residual is at least this share of the one before, and the outliers are those of the two
# searches before. Without outliers the second search is usually the last; with outliers, the third or fourth.
SETTLED, MOST_SEARCHES = 0.8, 6


def select_scaled(
    problem: Problem, search: Callable[[Problem], Selected], quick: Callable[[Problem], Selected]
) -> tuple[Loss, Selected]:
    """The loss with its scale, and the model that a search selects with it; a quick search is enough to find the scale.

    The first search takes the scale of the response and all rows. Each further one takes the scale of the last model's
    residuals, and leaves out the rows that are outliers by that model.
    """
    loss, weight = problem.loss, np.asarray(problem.weight, dtype=float)
    y = problem.y if problem.offset is None else problem.y - problem.offset
    centred = y - weighted_median(y, weight)
    unscaled = loss.limited_to(centred, weight)
    far = np.zeros(y.shape, dtype=bool) if unscaled.limit is None else np.abs(centred) > unscaled.limit
    outlying, used, size = np.zeros_like(far), weight, weighted_median(np.abs(centred), weight)
    # a mean, because more than half of the responses may be equal; bounded, because outliers must not move it
    bounded = np.minimum(np.abs(centred), np.inf if unscaled.limit is None else unscaled.limit)
    least, scaled = LEAST_NOISE * float(np.average(bounded, weights=weight)), unscaled.scaled_to(centred, weight)
    searches = 0  # with the same outliers
    for number in range(1, MOST_SEARCHES + 1):
        current = replace(problem, loss=scaled, weight=used)
        try:
            found = quick(current)
        except EmptyFoldError:
            if not outlying.any():
                raise
            # the outliers are all rows of a fold: they stay
            far, outlying, used = np.zeros_like(far), np.zeros_like(far), weight
            current = replace(problem, loss=scaled)
            found = quick(current)
        residuals = y - _predicted(problem.with_pairs(found.met), found)
        outlying, before = far & (np.abs(residuals) > UNEXPLAINED * np.abs(centred)), outlying
        searches = searches + 1 if (outlying == before).all() else 0
        used = np.where(outlying, 0.0, weight)
        last, size = size, weighted_median(np.abs(residuals), used)
        settled = scaled == unscaled or (searches > 1 and size >= SETTLED * last)
        if number == MOST_SEARCHES or (searches and settled):
            break
        scaled = unscaled.scaled_to(residuals if size > least else LEAST_NOISE * centred, used)
    return current.loss, found if quick is search else search(current)


def _predicted(problem: Problem, found: Selected) -> FloatArray:
    """The predictions of a model, without the offset."""
    used = np.flatnonzero(found.coef.any(axis=0))
    predicted = problem.design.predict(used, found.coef[:, used], found.intercept)
    return np.asarray(on_host(predicted), dtype=float)[:, 0]
