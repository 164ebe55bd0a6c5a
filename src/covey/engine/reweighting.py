"""Reweighting: a dense network's model made sharper.

Ridge regression in which a group's penalty is one over its norm in the model before, a few times over: groups that
explain little are pressed down further each time, and those that explain much are left in peace. The network says
which is which. Where the model no longer changes it is a group lasso, which this comes close to in a few rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from covey.engine.working_rows import WorkingRows
from covey.preprocess import WorkingProblem, offsets, spans
from covey.validation import FloatArray

__all__ = ["Reweighting"]

# Columns of the strongest groups that take part, per row: what the others do is little and costs most.
MOST_COLUMNS = 5.0

# Systems beyond this are too dear to be solved again and again.
LARGEST_SYSTEM = 1500


class Reweighting:
    """A problem and a model of it to start from, for reweighted ridge regressions with several penalties.

    Parameters
    ----------
    problem : WorkingProblem
        One whose design holds columns.
    norms : ndarray, shape (n_groups,)
        Of the groups of the model, in working coordinates.
    rows : WorkingRows or None
        Those of the problem, where they are held.
    """

    def __init__(self, problem: WorkingProblem, norms: FloatArray, rows: WorkingRows | None = None) -> None:
        self.problem = problem
        self.which = _strongest(norms, problem.ranks, MOST_COLUMNS * int((problem.q > 0).sum()))
        self.norms, self.ranks = norms[self.which], problem.ranks[self.which]
        self.columns = spans(problem.starts, self.which)
        if rows is None:
            rows = WorkingRows.of(problem, self.which)
        elif self.columns.size < problem.n_columns:
            rows = rows.take(self.columns)
        self.rows, self._room = rows, np.empty((rows.Z if rows.wide else rows.gram).shape)

    @staticmethod
    def affordable(problem: WorkingProblem) -> bool:
        """Whether the systems are small enough, and columns at hand."""
        n_rows = int((problem.q > 0).sum()) if problem.design.reads_columns else 0
        return problem.design.reads_columns and min(n_rows, problem.n_columns) <= LARGEST_SYSTEM

    def fit(self, penalties: Sequence[float], rounds: int) -> FloatArray:
        """Working coefficients of all columns after so many rounds, a model for each penalty."""
        out = np.zeros((len(penalties), self.problem.n_columns))
        if self.which.size == 0:
            return out
        first, starts = self._system(self._scales(self.norms)), offsets(self.ranks)[:-1]
        for i, penalty in enumerate(penalties):
            w = first.solve(penalty)
            for _ in range(rounds - 1):
                norms = np.sqrt(np.add.reduceat(w * w, starts))
                w = self._system(self._scales(norms)).solve(penalty)
            out[i, self.columns] = w
        return out

    def _scales(self, norms: FloatArray) -> FloatArray:
        """The root of its group's norm, for every column."""
        return np.repeat(np.sqrt(norms), self.ranks)

    def _system(self, s: FloatArray) -> _System:
        """Least squares with a penalty on ``sum((w / s)^2)``, by rows or by columns, whichever are fewer."""
        rows = self.rows
        if rows.wide:
            A = np.multiply(rows.Z, s, out=self._room)
            return _System(A @ A.T, rows.y, s * s, rows.Z)
        M = np.multiply(rows.gram, s, out=self._room)
        return _System(s[:, None] * M, s * (rows.y @ rows.Z), s, None)


class _System(NamedTuple):
    """Linear equations ``(M + penalty) x = b`` with any penalty, and what x is in coefficients: ``gain * (Z' x)``."""

    M: FloatArray
    b: FloatArray
    gain: FloatArray
    Z: FloatArray | None

    def solve(self, penalty: float) -> FloatArray:
        """The coefficients."""
        M = self.M.copy()
        M.flat[:: M.shape[0] + 1] += penalty
        # M is symmetric: its transpose is the matrix in the order that LAPACK reads without a copy
        _, x, info = dposv(M.T, self.b, lower=True, overwrite_a=True)
        if info:
            # to rounding, a huge M need not be positive definite
            x = np.linalg.solve(self.M + penalty * np.eye(self.b.size), self.b)
        return self.gain * (x if self.Z is None else x @ self.Z)


def _strongest(norms: FloatArray, ranks: NDArray[np.intp], most: float) -> NDArray[np.intp]:
    """The groups of largest norm, up to a number of columns; in their own order."""
    order = np.argsort(-norms, kind="stable")
    order = order[(norms[order] > 0) & (ranks[order] > 0)]
    count = int(np.searchsorted(np.cumsum(ranks[order]), most, side="right"))
    return np.sort(order[: max(count, 1)])
