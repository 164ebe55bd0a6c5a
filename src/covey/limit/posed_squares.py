"""Squared loss: everything is computed from Gram rows of the near groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from covey.designs import Design
from covey.layout import offsets, spans
from covey.limit.least_squares import LeastSquares
from covey.limit.posed import Posed, Validation
from covey.limit.rows import ROWS_PER_COLUMN, PartedRows
from covey.validation import FloatArray

__all__ = ["PosedSquares"]


@dataclass(frozen=True)
class PosedSquares(Posed):
    """One response, squared loss."""

    @property
    def level(self) -> FloatArray:
        """The mean of the response."""
        return np.array([self.problem.y_mean])

    @property
    def scale(self) -> FloatArray:
        """The standard deviation of the response."""
        return np.array([self.problem.y_scale])

    def null_norms(self) -> FloatArray:
        """The norm of the correlations with the response, for each group."""
        problem, q = self.problem, self.problem.q
        if self.factors is None:
            return problem.group_norms(problem.correlation)
        coef, level = self.factors.explained(problem.design, problem.response, q)
        one = np.zeros(1, dtype=np.intp)
        return self._residual_norms([q], one, self.factors.columns, coef[None, :], np.array([level]))[0]

    def objective(self, rows: PartedRows, split: int) -> LeastSquares:
        """Half the mean squared error on the training rows of a split."""
        return LeastSquares(rows, self.splits[split].train, self.intercept)

    def rows(self, near: NDArray[np.intp], compress: bool = True) -> PartedRows:
        """The table of some groups."""
        design = self.problem.design
        width = int(self.problem.ranks[near].sum()) + 2
        # many rows are compressed to a root of their Gram matrix, which is computed where X is stored
        tall = design.shape[0] > ROWS_PER_COLUMN * width * len(self.parts)
        held = design.reads_columns and not (compress and tall)
        tables = self._held_rows(near) if held else self._gram_roots(design, near, self.parts)
        if self.validation is not None:
            held = held and self.validation.design.reads_columns
            tables.append(self._validation_rows(near, self.validation))
        return PartedRows(tables, self.problem.ranks[near], compress=compress, held=held)

    def wider_rows(self, rows: PartedRows, near: NDArray[np.intp], n_known: int) -> PartedRows:
        """The table of some groups, given the table of the first `n_known` of them."""
        if not rows.held:
            return self.rows(near)
        new = near[n_known:]
        Z = self.problem.working_columns(new)
        more = []
        for weight in self.parts:
            own = np.flatnonzero(weight > 0)
            more.append(Z[own] * np.sqrt(weight[own])[:, None])
        if self.validation is not None:
            n = int(self.problem.ranks[new].sum())
            more.append(self._validation_rows(new, self.validation)[:, :n])
        return rows.widened(more, self.problem.ranks[new])

    def _held_rows(self, near: NDArray[np.intp]) -> list[FloatArray]:
        """Tables made from the columns of X."""
        problem = self.problem
        Z = problem.working_columns(near)
        scores = None if self.factors is None else self.factors.scores(problem.design)
        tables = []
        for weight in self.parts:
            rows = np.flatnonzero(weight > 0)
            tables.append(
                _table(Z[rows], None if scores is None else scores[rows], problem.response[rows], weight[rows])
            )
        return tables

    def _validation_rows(self, near: NDArray[np.intp], other: Validation) -> FloatArray:
        problem, design = self.problem, other.design
        y = (other.y - problem.y_mean) / problem.y_scale
        if not design.reads_columns:
            return self._gram_roots(design, near, [other.weight], y)[0]
        columns, loadings, offset = problem.combination(near.tolist())
        own = design.take(columns)
        design.refuse(columns[~np.isfinite(own).all(axis=0)])
        Z = own @ loadings - offset
        scores = None if self.factors is None else self.factors.scores(design)
        used = np.flatnonzero(other.weight > 0)
        return _table(Z[used], None if scores is None else scores[used], y[used], other.weight[used])

    def _gram_roots(
        self, design: Design, near: NDArray[np.intp], parts: Sequence[Any], y: Any = None
    ) -> list[FloatArray]:
        """Tables made from the parts' Gram matrices, which take one pass over X."""
        problem, factors = self.problem, self.factors
        columns, loadings, _ = problem.combination(near.tolist())
        shift = problem.mean[spans(problem.layout.starts, near)]
        n_own, r = loadings.shape
        e = 0
        if factors is not None:
            e, new = factors.n_factors, ~np.isin(factors.columns, columns)
            columns = np.concatenate([columns, factors.columns[new]])
            shift = np.concatenate([shift, factors.means[new]])
        grams = design.gram_parts(columns, shift, problem.response if y is None else y, parts)
        design.refuse(columns[~np.isfinite(np.sum(grams, axis=0)[1:-1, 1:-1].diagonal())])
        change = np.zeros((columns.size + 2, r + e + 2))
        change[1 : n_own + 1, :r], change[0, r + e], change[-1, r + e + 1] = loadings, 1.0, 1.0
        if factors is not None:
            place = {int(j): i for i, j in enumerate(columns)}
            at = np.array([place[int(j)] for j in factors.columns], dtype=np.intp)
            change[at + 1, r : r + e] = factors.loadings
            change[0, r : r + e] = (shift[at] - factors.means) @ factors.loadings
        return [_root(change.T @ gram @ change) for gram in grams]

    # ------------------------------------------------------------------ far groups

    def gradients(
        self,
        near: NDArray[np.intp],
        rows: PartedRows,
        objectives: Sequence[LeastSquares],
        segments: Sequence[tuple[int, int]],
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Gradient norms of all groups at models of some paths, in one pass over X."""
        which, models = self._models(near, rows, objectives, segments)
        if not which.size:
            return which, np.empty((0, self.problem.ranks.size))
        weights = [sum(self.parts[part] for part in split.train) for split in self.splits]
        totals = np.array([weight.sum() for weight in weights])
        return which, self._residual_norms(weights, which, *models) / totals[which][:, None]

    def _residual_norms(
        self, weights: Sequence[Any], which: NDArray[np.intp], columns: Any, coefs: FloatArray, intercepts: FloatArray
    ) -> FloatArray:
        """The gradient norms of all groups under the residuals of some models; shape (n_models, n_groups)."""
        problem, design = self.problem, self.problem.design
        if not design.reads_columns:
            products = design.residual_products(problem.response, weights, which, columns, coefs, intercepts)
            return problem.all_norms(products)
        R = problem.response - design.predict(columns, coefs, intercepts).T
        R *= np.stack(list(weights))[which]
        return design.gradient_norms(problem, R)

    def _models(
        self,
        near: NDArray[np.intp],
        rows: PartedRows,
        objectives: Sequence[LeastSquares],
        segments: Sequence[tuple[int, int]],
    ) -> tuple[NDArray[np.intp], tuple[NDArray[np.intp], FloatArray, FloatArray]]:
        """Least squares on the first m groups of each split, for every m in its segment."""
        used = sorted({l for objective in objectives for l in objective.joined})
        place = {l: i for i, l in enumerate(used)}
        groups = np.array(used, dtype=np.intp)
        starts = offsets(rows.ranks[groups])
        which, W, scores, levels = [], [], [], []
        for split, (first, last) in enumerate(segments):
            if last < first:
                continue
            objective = objectives[split]
            knots = objective.knots(first, last)
            basis = np.array(objective.basis, dtype=np.intp)
            wide = np.zeros((len(knots), int(starts[-1])))
            own = basis < rows.n_columns
            group = np.searchsorted(rows.starts, basis[own], side="right") - 1
            at = starts[[place[int(l)] for l in group]] + basis[own] - rows.starts[group]
            wide[:, at] = knots[:, own]
            W.append(wide)
            levels.append(knots[:, basis == rows.one].sum(axis=1))
            extras = np.zeros((len(knots), rows.extras.size))
            extra = (basis >= rows.n_columns) & (basis < rows.one)
            extras[:, basis[extra] - rows.n_columns] = knots[:, extra]
            scores.append(extras)
            which.append(np.full(len(knots), split))
        if not which:
            empty = np.empty(0, dtype=np.intp)
            return empty, (empty, np.empty((0, 0)), np.empty(0))
        models = self._on_columns(near[groups], np.vstack(W), np.vstack(scores), np.concatenate(levels))
        return np.concatenate(which), models

    def _on_columns(
        self, groups: NDArray[np.intp], W: FloatArray, scores: FloatArray | None, levels: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Convert models on groups and factor scores to models on the columns of X, for the working response."""
        problem = self.problem
        columns, loadings, offset = problem.combination(groups.tolist())
        coefs, intercepts = W @ loadings.T, levels - W @ offset
        if self.factors is not None and scores is not None:
            extra = scores @ self.factors.loadings.T
            columns, coefs = np.concatenate([columns, self.factors.columns]), np.hstack([coefs, extra])
            intercepts = intercepts - extra @ self.factors.means
        return columns, coefs, intercepts


def _table(Z: FloatArray, scores: FloatArray | None, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Rows ``sqrt(weight) [Z, E, 1, y]``."""
    blocks = [Z] if scores is None else [Z, scores]
    out = np.column_stack([*blocks, np.ones(len(y)), y])
    out *= np.sqrt(weight)[:, None]
    return out


def _root(gram: FloatArray) -> FloatArray:
    """A matrix with this Gram matrix and as many rows as its rank."""
    unit = np.sqrt(np.maximum(np.diag(gram), 0.0))
    unit[unit == 0] = 1.0
    factor, pivots, rank, _ = dpstrf(gram / unit / unit[:, None], tol=1e-14)
    out = np.zeros_like(gram)
    out[:, pivots - 1] = np.triu(factor)
    return np.asarray(out[: max(rank, 1)] * unit)
