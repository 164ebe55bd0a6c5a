"""Scorer: the rows that judge models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from covey.designs import Design
from covey.validation import FloatArray

__all__ = ["PARSIMONY", "Scorer"]

# The time chosen is the first one whose error is within this share of the least: on a plateau groups wake that change
# the error by less than held-out rows can tell.
PARSIMONY = 3e-3

# Of sets of groups the smallest is taken whose error is within so many standard errors of the least.
MARGIN = 1.0


class Scorer:
    """The rows that judge models.

    Parameters
    ----------
    design, y, weight
        Rows of weight zero are not looked at.

    Attributes
    ----------
    errors : ModelError
        The weighted mean squared error of linear models.
    n_rows : float
        Rows counted by their weights, in units of the least: repeated rows count as often as they are repeated.
    whole : callable or None
        Makes the scorer of the same rows with common factors left in, where they were taken out.
    """

    def __init__(self, design: Design, y: Any, weight: Any, whole: Callable[[], Scorer] | None = None) -> None:
        self.design, self.y, self.weight, self.whole = design, y, weight, whole
        self.errors = self.design.errors(y, weight)
        self.n_rows = self.design.count(weight)

    def simplest(self, columns: Any, coefs: FloatArray, intercepts: FloatArray, sizes: Any) -> tuple[int, FloatArray]:
        """The smallest model that cannot be told from the best one, and the error of every model.

        The errors of two models on the same rows differ by a mean of n terms; its standard error follows from the
        residual variance and the squared distance of their predictions, which the error half way between them gives.
        """
        errors = self.errors(columns, coefs, intercepts)
        best = int(np.argmin(errors))
        middle = self.errors(columns, (coefs + coefs[best]) / 2, (intercepts + intercepts[best]) / 2)
        squares = np.maximum(2 * (errors + errors[best]) - 4 * middle, 0.0)
        doubt = 2 * np.sqrt(errors[best]) * np.sqrt(squares / self.n_rows)
        close = errors <= errors[best] * (1 + PARSIMONY) + MARGIN * doubt
        return min(np.flatnonzero(close).tolist(), key=lambda i: (sizes[i], errors[i])), errors
