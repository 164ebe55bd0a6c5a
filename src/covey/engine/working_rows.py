"""Working rows: a problem's design in working coordinates, held as one array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["WorkingRows"]

# Numbers beyond which a path does not hold them (16 MiB): a product takes longer than whatever holding them saves.
MOST_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class WorkingRows:
    """The rows of Z and of the response that count, each times the root of its weight.

    In these the problem is to minimise ``1/2 norm(y - Z w)^2``, without weights.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, n_columns)
    y : ndarray, shape (n_rows,)
    """

    Z: FloatArray
    y: FloatArray

    @staticmethod
    def of(problem: WorkingProblem, which: NDArray[np.intp] | None = None) -> WorkingRows:
        """Those of a problem whose design holds columns; of some of its groups, or of all."""
        used = problem.q > 0
        root = np.sqrt(problem.q[used])
        Z = problem.working_columns(np.arange(problem.ranks.size) if which is None else which)[used]
        Z *= root[:, None]
        return WorkingRows(Z, root * problem.response[used])

    @staticmethod
    def affordable(problem: WorkingProblem) -> bool:
        """Whether all are few enough to be held, and columns at hand."""
        return problem.design.reads_columns and int((problem.q > 0).sum()) * problem.n_columns <= MOST_NUMBERS

    @property
    def wide(self) -> bool:
        """Whether there are more columns than rows."""
        return self.Z.shape[1] > self.Z.shape[0]

    @cached_property
    def gram(self) -> FloatArray:
        """``Z'Z``."""
        return self.Z.T @ self.Z

    def take(self, columns: NDArray[np.intp]) -> WorkingRows:
        """The same for some of the columns."""
        return WorkingRows(self.Z.take(columns, axis=1), self.y)
