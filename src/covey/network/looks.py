"""A look at all groups: their correlations with the residuals of some models of the awake groups.

There are two ways to look. If columns of X can be held in memory (`Design.reads_columns`), the awake groups' columns
are kept, the residuals are formed, and a look is one product with X. Otherwise the Gram rows of the awake groups
against all groups are kept, and a look does not read X at all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covey.layout import spans
from covey.network.kernels import pulls
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["ColumnLook", "GramLook", "KeptRows", "Look", "pulls_of"]


class Look(Protocol):
    """The interface that the screened path needs; a design on a device provides its own (`Design.look`)."""

    def join(self, near: Any, groups: list[int]) -> Any:
        """The look when these groups of a restriction `near` have joined too."""
        ...

    def pulls(self, W: FloatArray, directions: FloatArray, frozen: bool, row: int = 0) -> tuple[FloatArray, FloatArray]:
        """``v'g`` of every group under every model, shape (k, n_groups); and all correlations under that of `row`."""
        ...


def pulls_of(G: FloatArray, starts: NDArray[np.intp], directions: FloatArray, frozen: bool) -> FloatArray:
    """``v'g`` of every group for every row of correlations."""
    out = np.empty((G.shape[0], starts.size - 1))
    pulls(G, G.shape[0], starts, directions, frozen, out)
    return out


@dataclass(frozen=True)
class ColumnLook:
    """A look through the awake groups' columns, shape (n, k)."""

    problem: WorkingProblem
    Z: FloatArray

    @classmethod
    def first(cls, problem: WorkingProblem, awake: list[int]) -> ColumnLook:
        """The look when these groups are awake."""
        return cls(problem, np.empty((problem.design.shape[0], 0))).join(problem, awake)

    def join(self, near: WorkingProblem, groups: list[int]) -> ColumnLook:
        """The look when these groups of a restriction `near` have joined too."""
        if not groups:
            return self
        Z = near.working_columns(np.array(groups, dtype=np.intp))
        return ColumnLook(self.problem, np.concatenate([self.Z, Z], axis=1))

    def correlations(self, W: FloatArray) -> FloatArray:
        """Correlations of all groups with the residuals of several models, one row each."""
        residuals = self.problem.response - W @ self.Z.T
        return self.problem.to_working(self.problem.design.correlate(residuals * self.problem.q))

    def pulls(self, W: FloatArray, directions: FloatArray, frozen: bool, row: int = 0) -> tuple[FloatArray, FloatArray]:
        """``v'g`` of every group under every model, shape (k, n_groups); and all correlations under that of `row`."""
        G = self.correlations(W)
        return pulls_of(G, self.problem.starts, directions, frozen), G[row]


class KeptRows:
    """Gram rows of a whole problem, read once for each group that wakes up."""

    def __init__(self, problem: WorkingProblem) -> None:
        self.problem = problem
        self._rows: dict[int, NDArray[Any]] = {}

    def rows(self, which: list[int], upcoming: NDArray[np.intp] | None = None) -> list[NDArray[Any]]:
        """The Gram rows of some groups against all; missing ones are read in one pass.

        `upcoming` are columns that may be needed next, soonest first.
        """
        new = [l for l in which if l not in self._rows]
        if new:
            starts = np.concatenate([[0], np.cumsum(self.problem.ranks[new])])
            read = self.problem.gram_rows(new, upcoming)
            for l, a, b in zip(new, starts[:-1], starts[1:], strict=True):
                self._rows[l] = read[a:b]
        return [self._rows[l] for l in which]

    def restrict(self, which: NDArray[np.intp]) -> KeptProblem:
        """The problem restricted to some groups, in the given order."""
        part = self.problem.restrict(which)
        return KeptProblem(**{f.name: getattr(part, f.name) for f in fields(part)}, kept=self, which=which)


@dataclass(frozen=True)
class KeptProblem(WorkingProblem):
    """A restriction whose Gram rows are slices of the kept ones."""

    kept: KeptRows
    which: NDArray[np.intp]

    def gram_rows(self, which: list[int], upcoming: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """``Z_l' diag(q) Z`` for some groups, stacked."""
        return self._cut(which, self.which, upcoming)

    def cross_gram_rows(self, which: list[int], other: WorkingProblem) -> NDArray[Any]:
        """``Z_l' diag(q) Z`` with the working columns of another restriction of the same problem."""
        assert isinstance(other, KeptProblem)
        return self._cut(which, other.which)

    def _cut(
        self, which: list[int], others: NDArray[np.intp], upcoming: NDArray[np.intp] | None = None
    ) -> NDArray[Any]:
        own = spans(self.kept.problem.starts, others)
        kept = self.kept.rows([int(self.which[l]) for l in which], upcoming)
        return np.concatenate([rows[:, own] for rows in kept])

    def join(self, other: WorkingProblem) -> KeptProblem:
        """The problem of both sets of groups."""
        assert isinstance(other, KeptProblem)
        return self.kept.restrict(np.concatenate([self.which, other.which]))


@dataclass(frozen=True)
class GramLook:
    """A look through the awake groups' Gram rows, shape (k, r)."""

    kept: KeptRows
    awake: tuple[int, ...]

    def join(self, near: WorkingProblem, groups: list[int]) -> GramLook:
        """The look when these groups of a restriction `near` have joined too."""
        assert isinstance(near, KeptProblem)
        return GramLook(self.kept, (*self.awake, *(int(near.which[l]) for l in groups)))

    def correlations(self, W: FloatArray) -> FloatArray:
        """Correlations of all groups with the residuals of several models, one row each."""
        problem = self.kept.problem
        out = np.empty((W.shape[0], problem.n_columns))
        out[:] = problem.correlation
        at = 0
        for rows in self.kept.rows(list(self.awake)):
            out -= np.ascontiguousarray(W[:, at : at + rows.shape[0]], dtype=rows.dtype) @ rows
            at += rows.shape[0]
        return out

    def pulls(self, W: FloatArray, directions: FloatArray, frozen: bool, row: int = 0) -> tuple[FloatArray, FloatArray]:
        """``v'g`` of every group under every model, shape (k, n_groups); and all correlations under that of `row`."""
        G = self.correlations(W)
        return pulls_of(G, self.kept.problem.starts, directions, frozen), G[row]
