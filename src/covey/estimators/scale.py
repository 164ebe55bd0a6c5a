"""Parameters of a loss that follow from a model: Huber's threshold, a dispersion, a power; and rows that are outliers.

The parameters depend on a selected model, and the model on them, so both are found in turn. Scales of residuals are
medians and quartiles, which a few rows cannot move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covey.losses.responses import weighted_median
from covey.search.problem import Problem
from covey.search.select import Selected
from covey.search.splits import EmptyFoldError
from covey.validation import FloatArray

# Residuals below this share of the response's spread are round-off error, and useless as the scale of a loss.
LEAST_NOISE = 1e-6

# An outlier is a response beyond the limit of the loss that leaves at least this share of its distance unexplained.
UNEXPLAINED = 0.5

# Searches end when the loss has settled and the outliers are those of the two searches before. Without outliers the
# second search is usually the last; with outliers, the third or fourth.
MOST_SEARCHES = 6


def select_scaled(
    problem: Problem, search: Callable[[Problem], Selected], quick: Callable[[Problem], Selected], *, begins: bool
) -> Selected:
    """The model that a search selects with the parameters of its loss; a quick search is enough to find them.

    If the search `begins` with the quick one, it ends with it where that has settled.

    The first search takes the parameters that fit a constant, and all rows. Each further one takes those that fit the
    last model, and leaves out the rows that are outliers by that model.
    """
    loss, weight, y = problem.loss, np.asarray(problem.weight, dtype=float), problem.y
    offset = np.zeros_like(y) if problem.offset is None else problem.offset
    constant = offset + (_median(y - offset, weight) if loss.identity_link else loss.null(y, weight, offset))
    centred = y - constant
    unscaled = loss.limited_to(centred, weight)
    far = np.zeros(len(y), dtype=bool) if unscaled.limit is None else np.abs(centred) > unscaled.limit
    outlying, used = np.zeros_like(far), weight
    # a mean, because more than half of the responses may be equal; bounded, because outliers must not move it
    bounded = np.minimum(np.abs(centred), np.inf if unscaled.limit is None else unscaled.limit)
    least = LEAST_NOISE * float(np.average(bounded, axis=0, weights=weight).max())
    scaled = unscaled.scaled_to(y, constant, weight)
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
        columns = np.flatnonzero(found.coef.any(axis=0))
        design = problem.with_pairs(found.met).design
        predicted = design.predict(columns, found.coef[:, columns], found.intercept)
        eta = offset + predicted.reshape(y.shape)
        residuals = y - eta
        before = outlying
        if far.any():
            outlying = far & (np.abs(residuals) > UNEXPLAINED * np.abs(centred))
        searches = searches + 1 if (outlying == before).all() else 0
        used = np.where(outlying, 0.0, weight)
        if loss.identity_link and _median(np.abs(residuals), used).max() <= least:
            eta = y - LEAST_NOISE * centred
        last, scaled = scaled, unscaled.scaled_to(y, eta, used)
        settled = last == unscaled or (searches > 1 and scaled.settled(last))
        if number == MOST_SEARCHES or (searches and settled):
            break
    return found if quick is search or (begins and found.settled) else search(current)


def _median(values: FloatArray, weight: FloatArray) -> FloatArray:
    """The weighted median of each column; shape (1,) for a vector."""
    return np.array([weighted_median(column, weight) for column in values.reshape(len(values), -1).T])
