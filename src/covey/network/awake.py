"""The awake groups and the steps that are safe for them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from covey.layout import spans
from covey.network.kernels import EIGENVALUE_MARGIN, EIGENVALUE_TOLERANCE, LARGEST_STABLE, MOST_ROUNDS
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["EIGENVALUE_MARGIN", "LARGEST_STABLE", "AwakeGroups", "largest_eigenvalue", "unit", "unit_groups"]

# `LARGEST_STABLE` is for groups that grow from near zero. A group that starts above its level overshoots to the other
# side if an eigenvalue exceeds 1, and its magnitude grows again there.
STABLE_FROM_ABOVE = 1.0


class AwakeGroups:
    """State of the groups that are stepped, in the order in which they joined.

    Attributes
    ----------
    which : list of int
        The groups.
    starts : ndarray
        Offsets of their columns in the arrays below.
    columns : ndarray
        Their working columns.
    u, v, w : ndarray
        Magnitudes, unit directions, coefficients ``w = u^N v``.
    c : ndarray
        Correlations at w = 0.
    direction_step : float
        The largest s for which ``w + s g`` is a stable step on the directions.
    curvature : float
        The largest eigenvalue of their Gram block, which bounds steps on the magnitudes.
    vector : ndarray
        The current vector of the power iteration for it.
    """

    def __init__(self, problem: WorkingProblem, largest_stable: float = LARGEST_STABLE) -> None:
        self.problem = problem
        self.largest_stable = largest_stable
        self.which: list[int] = []
        self.starts = np.zeros(1, dtype=np.intp)
        self.columns = np.empty(0, dtype=np.intp)
        self.u: FloatArray = np.empty(0)
        self.v: FloatArray = np.empty(0)
        self.w: FloatArray = np.empty(0)
        self.c: FloatArray = np.empty(0)
        self.speeds = np.empty(0)
        self.direction_step = 1.0
        self.curvature = 0.0
        self.vector: FloatArray = np.empty(0)

    def add(self, new: NDArray[np.intp], u: FloatArray, v: FloatArray, depth: int, speeds: FloatArray) -> None:
        """Add groups, in this order; `v` holds their directions, concatenated."""
        ranks, own = self.problem.ranks[new], spans(self.problem.starts, new)
        ends = self.columns.size + np.cumsum(ranks)
        self.which = [*self.which, *new.tolist()]
        self.columns = np.concatenate([self.columns, own])
        self.starts = np.concatenate([self.starts, ends]).astype(np.intp)
        self.u = np.concatenate([self.u, u])
        self.v = np.concatenate([self.v, v])
        self.w = np.concatenate([self.w, np.repeat(u**depth, ranks) * v])
        self.c = np.concatenate([self.c, self.problem.correlation[own]])
        self.speeds = np.concatenate([self.speeds, speeds])
        self.vector = np.concatenate([self.vector, np.repeat(1.0 / np.sqrt(ends), ranks)])

    def find_safe_steps(self, product: Callable[[FloatArray], FloatArray]) -> None:
        """Find steps that cannot oscillate; `product` multiplies by the Gram block of the awake groups."""
        largest, self.vector = largest_eigenvalue(product, self.vector)
        self.curvature = EIGENVALUE_MARGIN * largest
        self.direction_step = 1.0 if self.curvature < self.largest_stable else 1.0 / self.curvature


def largest_eigenvalue(product: Callable[[FloatArray], FloatArray], x: FloatArray) -> tuple[float, FloatArray]:
    """Largest eigenvalue of a positive semidefinite matrix by power iteration from x, and the last vector."""
    value = 0.0
    for _ in range(MOST_ROUNDS):
        y = product(x)
        size = float(np.linalg.norm(y))
        if not size > 0.0:
            return 0.0, x
        previous, value, x = value, size, y / size
        if abs(value - previous) <= EIGENVALUE_TOLERANCE * value:
            break
    return value, x


def unit(v: FloatArray) -> FloatArray:
    """The direction of v; equal entries if it has none."""
    size = math.sqrt(v @ v)
    # squares outside this range have lost digits
    if 1e-100 < size < 1e100:
        return v / size
    largest = np.abs(v).max()
    if not largest > 0:
        return np.full(v.size, 1.0 / np.sqrt(v.size))
    v = v / largest
    return v / np.sqrt(v @ v)


def unit_groups(g: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """The direction of every group of g; equal entries where there is none."""
    filled = np.diff(starts) > 0
    first, ranks = starts[:-1][filled], np.diff(starts)[filled]
    if first.size == 0:
        return np.empty(0)
    largest = np.repeat(np.maximum.reduceat(np.abs(g), first), ranks)
    v = np.divide(g, largest, out=np.ones(g.size), where=largest > 0)
    return v / np.repeat(np.sqrt(np.add.reduceat(v * v, first)), ranks)
