"""The scale of a loss that has one, such as the threshold of Huber's loss, from the residuals of a first model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from covey.losses.arrays import weighted_median
from covey.search.problem import Problem
from covey.search.select import Selected
from covey.validation import on_host

__all__ = ["with_scale"]

# Residuals below this share of the response's spread are round-off error, and useless as the scale of a loss.
LEAST_NOISE = 1e-6


def with_scale(problem: Problem, search: Callable[[Problem], Selected]) -> Problem:
    """The problem with the scale of its loss; unchanged if the loss has none.

    A first model is selected with the scale of the response, and the loss takes the scale of its residuals.
    """
    loss, y, weight = problem.loss, problem.y, problem.weight
    if loss.scaled_to(y, weight) == loss:
        return problem
    y = y if problem.offset is None else y - problem.offset
    centred = y - weighted_median(y, weight)
    first = search(replace(problem, loss=loss.scaled_to(centred, weight)))
    used = np.flatnonzero(first.coef.any(axis=0))
    residuals = y - np.asarray(on_host(problem.design.predict(used, first.coef[:, used], first.intercept)))[:, 0]
    if weighted_median(np.abs(residuals), weight) <= LEAST_NOISE * weighted_median(np.abs(centred), weight):
        residuals = LEAST_NOISE * centred
    return replace(problem, loss=loss.scaled_to(residuals, weight))
