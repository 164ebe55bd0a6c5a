"""Working rows: a small problem's design in working coordinates, held as one array."""

from __future__ import annotations

import numpy as np

from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["WorkingRows"]

# Numbers beyond which they are not held (16 MiB); a product with so many takes longer than whatever is saved.
MOST_NUMBERS = 2**21


class WorkingRows:
    """The rows of ``Z`` and of the response that count, each times the root of its weight.

    In these the problem is ``1/2 norm(y - Z w)^2`` without weights.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, r)
    y : ndarray, shape (n_rows,)
    """

    def __init__(self, problem: WorkingProblem) -> None:
        used = problem.q > 0
        root = np.sqrt(problem.q[used])
        self.Z = problem.working_columns(np.arange(problem.ranks.size))[used]
        self.Z *= root[:, None]
        self.y = root * problem.response[used]
        self._gram: FloatArray | None = None

    @staticmethod
    def affordable(problem: WorkingProblem) -> bool:
        """Whether they are few enough to be held, and columns at hand."""
        return problem.design.reads_columns and int((problem.q > 0).sum()) * problem.n_columns <= MOST_NUMBERS

    @property
    def wide(self) -> bool:
        """Whether there are more columns than rows."""
        return self.Z.shape[1] > self.Z.shape[0]

    @property
    def gram(self) -> FloatArray:
        """``Z'Z``, formed once."""
        if self._gram is None:
            self._gram = self.Z.T @ self.Z
        return self._gram

    def gram_product(self, w: FloatArray) -> FloatArray:
        """``Z'Z w``, through whichever of the two is smaller."""
        return self.Z.T @ (self.Z @ w) if self.wide else self.gram @ w
