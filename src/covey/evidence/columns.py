"""The columns of all groups, orthonormal within each group and orthogonal to groups that are always in the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.layout import spans
from covey.preprocess import prepare
from covey.search.problem import Problem
from covey.validation import FloatArray

__all__ = ["Columns", "read_columns"]

# If the columns that are always in the model leave less than this of another column, relative to it, the rest is
# round-off error.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Columns:
    """Columns Z, group by group, with ``Z_l' diag(q) Z_l = I`` for each group and row weights q that add up to one.

    `held` are the columns of groups that are in every model, orthonormal and orthogonal to Z. With `intercept`, all are
    orthogonal to a column of ones.
    """

    Z: FloatArray
    ranks: NDArray[np.intp]
    q: FloatArray
    held: FloatArray
    intercept: bool

    @cached_property
    def weighted(self) -> FloatArray:
        """Z with every row times the root of its weight."""
        return self.Z * np.sqrt(self.q)[:, None]

    @cached_property
    def covariance(self) -> FloatArray:
        """``Z' diag(q) Z``."""
        return np.asarray(self.weighted.T @ self.weighted)


def read_columns(problem: Problem) -> tuple[Columns, NDArray[np.intp]]:
    """The columns of a problem on the rows of positive weight, and the positions of their groups, which all vary."""
    design, groups, intercept = problem.design, problem.groups, problem.options["fit_intercept"]
    if not design.reads_columns:
        raise ValueError(
            f"Knockoffs need the columns of {design.name} in memory, but {type(design).__name__} only streams them: "
            "read them into an array first."
        )
    rows = problem.weight > 0
    X, weight = design.take(groups.members)[rows], problem.weight[rows]
    design.refuse(groups.members[~np.isfinite(X).all(axis=0)])
    q = weight / weight.sum()
    always = np.array(sorted(problem.always), dtype=np.intp)
    free = np.setdiff1d(np.arange(groups.n_groups), always)
    held: FloatArray = np.empty((len(X), 0))
    candidates = X[:, spans(groups.starts, free)]
    if always.size:
        held = _orthonormal(X[:, spans(groups.starts, always)], None, weight, intercept)[0]
        largest = np.abs(candidates).max(axis=0, initial=0.0)
        candidates = candidates / np.where(largest > 0, largest, 1.0)
        candidates = candidates - q @ candidates if intercept else candidates
        left = candidates - held @ (held.T @ (q[:, None] * candidates))
        left[:, q @ left**2 <= ROUNDING**2 * (q @ candidates**2)] = 0.0
        candidates = left
    Z, ranks = _orthonormal(candidates, groups.sizes[free], weight, intercept)
    return Columns(Z, ranks[ranks > 0], q, held, intercept), free[ranks > 0]


def _orthonormal(
    X: FloatArray, sizes: NDArray[np.intp] | None, weight: FloatArray, intercept: bool
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Columns orthonormal within groups of these sizes (None: one group), and the rank of each group."""
    groups = Groups.from_sizes([X.shape[1]] if sizes is None else sizes)
    # the weights serve as a dummy response: nothing here depends on it
    problem, _ = prepare(X, weight, groups, fit_intercept=intercept, sample_weight=weight)
    return problem.working_columns(np.flatnonzero(problem.ranks > 0)), problem.ranks
