"""Posed: a regression problem with the parts of its rows, and the table of the groups near to waking.

Limit paths work on the groups next in line (the near ones), whose rows are in hand. All others are looked at now and
then, by one product with X for many models at once (`covey.limit.lockstep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from covey.designs import Design, Factors, RepeatedColumns, count_factors, find_factors
from covey.groups import Groups
from covey.limit.rows import ROWS_PER_COLUMN, PartedRows, Split
from covey.preprocess import WorkingProblem, prepare, spans
from covey.preprocess.group_weights import read_weights
from covey.validation import FloatArray, whole

__all__ = ["FIRST_GROUPS", "Posed", "Validation", "pose"]

# Near columns at first: enough that few groups are missing, few enough to be worked on at every event.
NEAR_COLUMNS = 500

# Up to this many columns all groups are near where there are half as many rows: Gram matrices are then small beside X.
ALL_NEAR = 3000


# Weights are to be fair to groups of all sizes for the whole race, and not for its first place only.
FIRST_GROUPS = 10.0


@dataclass(frozen=True)
class Validation:
    """Rows of another design that judge the models."""

    design: Design
    y: Any
    weight: Any


@dataclass(frozen=True)
class Posed:
    """What all limit paths of one search share.

    Attributes
    ----------
    problem : WorkingProblem
        Of all rows.
    parts : list of row vectors
        Weights of the rows of each part, zero elsewhere; they add up to the weights of all rows.
    counts : list of float
        How many rows each part has, that of the validation rows included.
    splits : list of Split
        The last one is that of the model: all rows.
    weights : ndarray, shape (n_groups,)
        Of the groups.
    intercept : bool
    factors : Factors or None
        Common factors that are in every model of a path while it decides which group comes next.
    validation : Validation or None
        Rows of another design: the last part.
    """

    problem: WorkingProblem
    parts: list[Any]
    counts: list[float]
    splits: list[Split]
    weights: FloatArray
    intercept: bool
    factors: Factors | None = None
    validation: Validation | None = None

    def n_rows(self, split: Split) -> float:
        """How many rows the models of a split are fitted on: a row of weight two is two rows."""
        return sum(self.counts[k] for k in split.train)

    def nearest(self) -> NDArray[np.intp]:
        """The groups to begin with, in order: all of them, or those most correlated with the response."""
        ranks = self.problem.ranks
        if ranks.sum() <= max(2 * NEAR_COLUMNS, min(2 * self.problem.design.shape[0], ALL_NEAR)):
            return np.arange(ranks.size)
        correlation = self.problem.correlation
        if self.factors is not None:
            F = self.factors.scores(self.problem.design)
            q, y = self.problem.q, self.problem.response
            rest = y - F @ (F.T @ (q * y))
            correlation = self.problem.to_working(self.problem.design.correlate((q * rest)[None, :]))[0]
        rates = self.problem.group_norms(correlation) / self.weights
        order = np.argsort(-rates, kind="stable")
        count = int(np.searchsorted(np.cumsum(ranks[order]), NEAR_COLUMNS)) + 1
        return np.sort(order[:count])

    def rows(self, near: NDArray[np.intp], compress: bool = True) -> PartedRows:
        """The table of some groups."""
        design = self.problem.design
        width = int(self.problem.ranks[near].sum()) + 2
        # many rows are compressed to the root of their Gram matrix, which is made where X is
        tall = self.factors is None and design.shape[0] > ROWS_PER_COLUMN * width * len(self.parts)
        held = design.reads_columns and not (compress and tall)
        tables = self._held_rows(near) if held else self._gram_roots(design, near, self.parts)
        if self.validation is not None:
            held = held and self.validation.design.reads_columns
            tables.append(self._validation_rows(near, self.validation))
        return PartedRows(tables, self.problem.ranks[near], compress=compress, held=held)

    def wider_rows(self, rows: PartedRows, near: NDArray[np.intp], n_known: int) -> PartedRows:
        """The table of some groups, given that of the first so many of them."""
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
        """From the columns of X."""
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
        own = np.asarray(design.take(columns))
        design.refuse(columns[~np.isfinite(own).all(axis=0)])
        Z = own @ loadings - offset
        scores = None if self.factors is None else self.factors.scores(design)
        used = np.flatnonzero(other.weight > 0)
        return _table(Z[used], None if scores is None else scores[used], y[used], other.weight[used])

    def _gram_roots(
        self, design: Design, near: NDArray[np.intp], parts: Sequence[Any], y: Any = None
    ) -> list[FloatArray]:
        """From Gram matrices of the parts, which one reading of X gives."""
        problem = self.problem
        columns, loadings, _ = problem.combination(near.tolist())
        shift = problem.mean[spans(problem.layout.starts, near)]
        grams = design.gram_parts(columns, shift, problem.response if y is None else y, parts)
        design.refuse(columns[~np.isfinite(np.sum(grams, axis=0)[1:-1, 1:-1].diagonal())])
        k, r = loadings.shape
        change = np.zeros((k + 2, r + 2))
        change[1:-1, :r], change[0, r], change[-1, r + 1] = loadings, 1.0, 1.0
        return [_root(change.T @ gram @ change) for gram in grams]

    # ------------------------------------------------------------------ models in working coordinates and on X

    def products(
        self, which: NDArray[np.intp], columns: NDArray[np.intp], coefs: FloatArray, intercepts: FloatArray
    ) -> FloatArray:
        """Norms of all groups of the gradient at some models, each on the rows of a split; one reading of X.

        Parameters
        ----------
        which : ndarray of int, shape (m,)
            The split of each model.
        columns, coefs, intercepts
            Models on the columns of X, for the response in working coordinates.
        """
        problem = self.problem
        weights = [sum(self.parts[part] for part in split.train) for split in self.splits]
        totals = np.array([problem.design.total(weight) for weight in weights])
        norms = problem.design.residual_norms(problem, weights, which, columns, coefs, intercepts)
        return norms / totals[which][:, None]

    def on_columns(
        self, groups: NDArray[np.intp], W: FloatArray, scores: FloatArray | None, levels: FloatArray
    ) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Models of some groups (and of the factors' scores) as models on the columns of X, response as it is here."""
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
    """A matrix with this Gram matrix and as many rows as it has dimensions."""
    unit = np.sqrt(np.maximum(np.diag(gram), 0.0))
    unit[unit == 0] = 1.0
    factor, pivots, rank, _ = dpstrf(gram / unit / unit[:, None], tol=1e-14)
    out = np.zeros_like(gram)
    out[:, pivots - 1] = np.triu(factor)
    return np.asarray(out[: max(rank, 1)] * unit)


def pose(
    design: Design,
    y: Any,
    groups: Groups,
    weight: Any,
    parts: Sequence[Any],
    counts: Sequence[float],
    splits: Sequence[Split],
    *,
    group_weights: Any = "noise",
    standardize: Any = "group",
    fit_intercept: bool = True,
    factors: Any = "auto",
    validation: Validation | None = None,
) -> Posed:
    """Working coordinates of all rows, common factors, weights of the groups, parts of the rows.

    Parameters
    ----------
    design, y, groups, weight
        The problem.
    parts, counts, splits, validation
        As in `Posed`, the weights of the parts in the units of `weight`.
    group_weights, standardize, fit_intercept, factors
        As in `covey.limit_path`.
    """
    if groups.overlapping:
        # every group has its own copy of a shared column, and the coefficients of the copies add up
        design = RepeatedColumns(design, groups.members)
        if validation is not None:
            validation = replace(validation, design=RepeatedColumns(validation.design, groups.members))
        groups = groups.apart()
    problem, _ = prepare(design, y, groups, standardize=standardize, fit_intercept=fit_intercept, sample_weight=weight)
    total = design.total(weight)
    return Posed(
        problem=problem,
        parts=[own / total for own in parts],
        counts=list(counts),
        splits=list(splits),
        weights=read_weights(group_weights, problem.ranks, FIRST_GROUPS),
        intercept=fit_intercept,
        factors=_read_factors(factors, design, problem.q, groups, fit_intercept),
        validation=validation,
    )


def _read_factors(factors: Any, design: Design, q: Any, groups: Groups, intercept: bool) -> Factors | None:
    """The common factors that ``factors=`` asks for; None for none."""
    if isinstance(factors, str):
        if factors != "auto":
            raise ValueError(f"factors must be 'auto' or a whole number of at least 0, not {factors!r}.")
        if not design.reads_columns:
            return None
        k = count_factors(design, q, groups.members, groups.starts, fit_intercept=intercept)
    else:
        k = min(whole(factors, "factors", least=0), design.shape[0] - 1, design.shape[1])
        if k and not design.reads_columns:
            raise ValueError(
                f"factors = {k} needs columns of X at hand, and {type(design).__name__} only streams them. "
                "Use factors=0."
            )
    if k == 0:
        return None
    found = find_factors(design, np.asarray(q), k, fit_intercept=intercept)
    return found if found.n_factors else None
