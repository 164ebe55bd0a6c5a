"""Candidates for squared loss, from Gram rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covey.limit.kernel import RowKernel
from covey.limit.lockstep import Paths
from covey.limit.posed_squares import PosedSquares
from covey.limit.reweighted import DenseRows
from covey.selection.candidates import CleanedModels, cleaned_models
from covey.selection.fitting import Fitting
from covey.selection.scores import SquaredScores
from covey.validation import FloatArray

__all__ = ["SquaresFitting"]

# Inner products of more rows than this take more memory and time than most designs of so many rows do.
MOST_ROWS = 4000


class SquaresFitting(Fitting):
    """Least squares and ridges; tables hold residuals times the roots of the rows' weights."""

    def scores(self, split: int) -> SquaredScores:
        """The rows that judge a split."""
        return SquaredScores(self.near.rows.weight(self.posed.splits[split].test))

    def knots(self, paths: Paths, split: int, first: int, last: int) -> FloatArray:
        """Residuals of least squares on the groups awake after some events."""
        rows, objective = self.near.rows, paths.objective(split)
        begun = len(paths.starts[split])
        W = objective.knots(begun + first, begun + last)
        parts = [rows.parts[part] for part in self.posed.splits[split].test]
        return np.concatenate([table[:, [rows.response]] - table[:, objective.basis] @ W.T for table in parts])

    def cleaned(
        self, paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
    ) -> list[CleanedModels]:
        """Sets of groups by elimination, fitted by least squares and ridges."""
        splits = range(len(prefixes))
        return cleaned_models(
            [paths.objective(s) for s in splits], [paths.groups(s) for s in splits], round_, self.n_always, prefixes,
            ridges, self.penalties,
        )  # fmt: skip

    def predictions(self, models: CleanedModels, split: int) -> FloatArray:
        """Residuals of candidates."""
        rows = self.near.rows
        W, levels = models.W[:, 0], models.levels[:, 0]
        return np.concatenate(
            [
                table[:, [rows.response]]
                - table.take(models.columns, axis=1) @ W.T
                - np.outer(table[:, rows.one], levels)
                for table in (rows.parts[part] for part in self.posed.splits[split].test)
            ]
        )

    @property
    def judged_as(self) -> int:
        """0 where rows are as they are; compressed ones are other combinations of rows where there are more columns."""
        return 0 if self.near.rows.held else self.near.rows.width

    def hold_rows(self) -> None:
        """Judge rows as they are from now on; those of a design whose columns can be read."""
        if not self.near.all and not self.near.rows.held:
            assert isinstance(self.posed, PosedSquares)
            self.near.rows = self.posed.rows(self.near.groups, compress=False)

    @property
    def slow_dense(self) -> bool:
        """One factorisation gives a fit."""
        return False

    def can_be_dense(self) -> bool:
        """Whether models of all columns can be fitted."""
        design = self.posed.problem.design
        return self.near.all or (bool(design.reads_columns) and design.shape[0] <= MOST_ROWS)

    def dense_rows(self, groups: Any) -> DenseRows:
        """Some groups on columns of unit variance."""
        rows = self.near.rows if groups is self.near.groups else self.posed.rows(groups)
        return DenseRows(rows, groups, self.penalties, self.posed.intercept)

    def kernel(self, shares: FloatArray) -> RowKernel:
        """Inner products of the rows."""
        return RowKernel(self.posed, self.penalties, shares)
