"""Reweighting: a dense network's model made sharper.

Ridge regression in which a group's penalty is one over its norm in the model before, a few times over: groups that
explain little are pressed down further each time, and those that explain much are left in peace. The network says
which is which. Where the model no longer changes it is a group lasso, which this comes close to in a few rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
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
    """

    def __init__(self, problem: WorkingProblem, norms: FloatArray) -> None:
        rows = problem.q > 0
        self.problem = problem
        self.which = _strongest(norms, problem.ranks, MOST_COLUMNS * int(rows.sum()))
        self.norms, self.ranks = norms[self.which], problem.ranks[self.which]
        root = np.sqrt(problem.q[rows])
        self.Z, self.y = root[:, None] * problem.working_columns(self.which)[rows], root * problem.response[rows]
        self.wide = self.Z.shape[1] > self.Z.shape[0]
        if not self.wide:
            self.K, self.c = self.Z.T @ self.Z, self.Z.T @ self.y

    @staticmethod
    def affordable(problem: WorkingProblem) -> bool:
        """Whether the systems are small enough, and columns at hand."""
        n_rows = int((problem.q > 0).sum()) if problem.design.reads_columns else 0
        return problem.design.reads_columns and min(n_rows, problem.n_columns) <= LARGEST_SYSTEM

    def fit(self, penalty: float, rounds: int) -> FloatArray:
        """Working coefficients of all columns after so many rounds."""
        out: FloatArray = np.zeros(self.problem.n_columns)
        if self.which.size == 0:
            return out
        norms, w = self.norms, out[:0]
        starts = np.concatenate([[0], np.cumsum(self.ranks)[:-1]]).astype(np.intp)
        for _ in range(rounds):
            s = np.repeat(np.sqrt(norms), self.ranks)
            w = self._ridge(s, penalty)
            norms = np.sqrt(np.add.reduceat(w * w, starts))
        for l, part in zip(self.which.tolist(), np.split(w, starts[1:]), strict=True):
            out[self.problem.starts[l] : self.problem.starts[l + 1]] = part
        return out

    def _ridge(self, s: FloatArray, penalty: float) -> FloatArray:
        """Least squares with the penalty ``penalty * sum((w / s)^2)``, by rows or by columns, whichever are fewer."""
        if self.wide:
            A = self.Z * s
            G = A @ A.T
            G.flat[:: G.shape[0] + 1] += penalty
            return s * (A.T @ np.linalg.solve(G, self.y))
        M = s[:, None] * self.K * s
        M.flat[:: M.shape[0] + 1] += penalty
        return s * np.linalg.solve(M, s * self.c)


def _strongest(norms: FloatArray, ranks: NDArray[np.intp], most: float) -> NDArray[np.intp]:
    """The groups of largest norm, up to a number of columns; in their own order."""
    order = np.argsort(-norms, kind="stable")
    order = order[(norms[order] > 0) & (ranks[order] > 0)]
    count = int(np.searchsorted(np.cumsum(ranks[order]), most, side="right"))
    return np.sort(order[: max(count, 1)])
