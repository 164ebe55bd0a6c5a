"""Cleaning: drop from an awake set the groups that it can do without.

The path never lets a group go: one that woke early for a reason that others explain better stays. So take the groups
in the order in which they woke up; on a prefix of that order fit least squares, drop the group whose loss costs least,
and again, down to none. Every set on the way is a candidate; validation rows choose. Where noise is strong, least
squares is too much of a fit for any set, and the same is done with a ridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.engine.elimination import eliminate
from covey.preprocess import WorkingProblem, spans
from covey.validation import FloatArray

__all__ = ["Nested", "clean", "least_squares"]

# Keeps groups that repeat each other apart.
SMALLEST_RIDGE = 1e-9


@dataclass(frozen=True)
class Nested:
    """Least squares, or ridge regression, on nested sets of groups, the largest first.

    Attributes
    ----------
    groups : ndarray of int, shape (m,)
        The prefix, in the order in which the groups woke up.
    kept : ndarray of bool, shape (m + 1, m)
        Which of them are left in each set: all of them, one fewer, and so on.
    w : ndarray, shape (m + 1, k)
        Working coefficients, zero for the groups that were dropped.
    ridge : float
        The penalty on the coefficients of columns of unit variance.
    """

    groups: NDArray[np.intp]
    kept: NDArray[np.bool_]
    w: FloatArray
    ridge: float

    def columns(self, problem: WorkingProblem) -> NDArray[np.intp]:
        """The design's columns of the prefix."""
        return problem.layout.members[spans(problem.layout.starts, self.groups)]

    def __len__(self) -> int:
        return self.kept.shape[0]

    def left(self, i: int) -> tuple[int, ...]:
        """The groups of the i-th set."""
        return tuple(self.groups[self.kept[i]].tolist())

    def freedom(self, problem: WorkingProblem) -> FloatArray:
        """How many columns each set has; a ridge takes degrees of freedom away."""
        return self.kept @ problem.ranks[self.groups] / (1.0 + self.ridge)

    def coefficients(self, problem: WorkingProblem) -> tuple[FloatArray, FloatArray]:
        """All models on the user's scale: coefficients of `columns`, and intercepts."""
        return problem.models_to_user(self.groups, self.w)


def clean(
    problem: WorkingProblem, order: Sequence[int], lengths: Sequence[int], ridges: Sequence[float] = (0.0,)
) -> list[Nested]:
    """Backward elimination from some prefixes of an order of groups.

    Parameters
    ----------
    order : sequence of int
        Groups, the first to wake up first.
    lengths : sequence of int
        How long the prefixes are.
    ridges : sequence of float
        Penalties: each prefix is cleaned with each.
    """
    groups = np.array(order[: max(lengths, default=0)], dtype=np.intp)
    K, c = problem.gram_block(groups)
    penalty = problem.ridge_block(groups) if any(ridges) else np.zeros_like(K)
    edges = np.concatenate([[0], np.cumsum(problem.ranks[groups])]).astype(np.intp)
    return [
        _eliminate(groups[:m], (K + ridge * penalty)[: edges[m], : edges[m]], c[: edges[m]], edges[: m + 1], ridge)
        for m in lengths
        for ridge in ridges
    ]


def least_squares(problem: WorkingProblem, groups: Sequence[int], ridge: float = 0.0) -> FloatArray:
    """Working coefficients of least squares, or of ridge regression, on some groups."""
    which = np.array(groups, dtype=np.intp)
    K, c = problem.gram_block(which)
    return _inverse(K + ridge * problem.ridge_block(which) if ridge else K) @ c


def _eliminate(groups: NDArray[np.intp], K: FloatArray, c: FloatArray, edges: NDArray[np.intp], ridge: float) -> Nested:
    """Drop one group after another, each time the one whose loss raises the objective least per dimension."""
    m, k = groups.size, c.size
    kept, W = np.ones((m + 1, m), dtype=bool), np.zeros((m + 1, k))
    wide = int(np.diff(edges).max(initial=1))
    eliminate(np.ascontiguousarray(_inverse(K)), c.copy(), edges, kept, W, np.empty((wide, wide)), np.empty(wide))
    return Nested(groups, kept, W, ridge)


def _inverse(K: FloatArray) -> FloatArray:
    if K.size == 0:
        return K
    damped = K.copy()
    damped.flat[:: K.shape[0] + 1] += SMALLEST_RIDGE
    inverse = np.linalg.inv(damped)
    return (inverse + inverse.T) / 2
