"""Results of passes over X so far, for each of several disjoint parts of the rows.

Held-out rows, the folds of a cross-validation and the remaining rows are parts; the rows of every path are a union of
parts. Sums over rows are additive, so one pass over X that stores them part by part serves all paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import Moments
from covey.designs.sums import RowSums, accumulate, row_sums

__all__ = ["SharedSums"]

Array = NDArray[Any]

# Weights and responses that agree to this relative accuracy are considered equal.
SAME = 1e-12

Block = tuple[int, Array]


class SharedSums:
    """Moments and Gram rows of every part, computed in passes over row blocks of X.

    Parameters
    ----------
    y, weight, parts : ndarray, shape (n,)
        The response, the weights, and the part of every row.
    shift : ndarray, shape (p,)
        A row of X, subtracted from all rows so that no digits are lost to the means of columns.
    """

    def __init__(self, y: Array, weight: Array, parts: Array, shift: Array) -> None:
        self.weight = weight / weight.sum()
        self.parts, self.shift = parts, shift
        self.y = y - self.weight @ y
        self.y /= np.abs(self.y).max() or 1.0
        used = self.weight > 0
        self.rows = [np.flatnonzero(used & (parts == k)) for k in range(int(parts.max()) + 1)]
        self.layout: tuple[Array, Array, bool] | None = None
        self.sums: list[RowSums] = []
        self._at: dict[int, int] = {}
        p = shift.size
        self._gram: list[list[Array]] = [[] for _ in self.rows]
        self._levels = np.zeros((len(self.rows), p))
        self._starts = [0]
        self._gains = np.empty(0)

    # ------------------------------------------------------------------ matching weights and responses

    def union(self, q: Array) -> list[int] | None:
        """The parts whose rows have these weights; None if they are not a union of parts."""
        chosen = [k for k, rows in enumerate(self.rows) if rows.size and q[rows[0]] > 0]
        expected = np.where(np.isin(self.parts, chosen), self.weight, 0.0)
        total = expected.sum()
        return chosen if total > 0 and np.allclose(q, expected / total, rtol=SAME, atol=0.0) else None

    def serves(self, q: Array, y: Array | None) -> bool:
        """Whether these weights are a union of parts, and this response a linear function of the known one."""
        chosen = self.union(q)
        return chosen is not None and (y is None or self._line(y, chosen) is not None)

    def _line(self, y: Array, chosen: list[int]) -> tuple[float, float] | None:
        """``(a, b)`` with ``y = a + b self.y`` on the chosen parts; None if there are none."""
        rows = np.concatenate([self.rows[k] for k in chosen])
        own, other = self.y[rows], y[rows]
        low, high = int(np.argmin(own)), int(np.argmax(own))
        spread = own[high] - own[low]
        b = float((other[high] - other[low]) / spread) if spread > 0 else 0.0
        a = float(other[low] - b * own[low])
        close = np.abs(a + b * own - other).max() <= SAME * max(np.abs(other).max(), abs(a))
        return (a, b) if close else None

    # ------------------------------------------------------------------ moments

    def read_moments(
        self, blocks: Iterator[Block], refuse: Callable[[Array], None], members: Array, starts: Array, centre: bool
    ) -> None:
        """Read X once for the moments of every part; `refuse` is called with columns that have non-finite values."""
        p = members.size
        shift, ones = self.shift[members] if centre else np.zeros(p), np.ones(p)
        sums = [RowSums.zero(starts) for _ in self.rows]
        for top, X in blocks:
            for k, inside in self._inside(top, X):
                rows = X if inside.size == X.shape[0] else X[inside]
                at = top + inside
                own = row_sums(rows, self.y[at], self.weight[at], members, starts, shift, ones)
                if not np.isfinite(own.total).all():
                    refuse(np.flatnonzero(~np.isfinite(rows).all(axis=0)))
                sums[k] = sums[k] + own
        self.layout, self.sums = (members, starts, centre), sums

    def moments(self, y: Array, q: Array, members: Array, starts: Array, centre: bool) -> Moments | None:
        """Moments from what has been read; None if that is not enough."""
        chosen = self.union(q) if self.layout is not None else None
        if chosen is None or self.layout is None or self.layout[2] != centre:
            return None
        line = self._line(y, chosen)
        if line is None:
            return None
        members_read, starts_read, _ = self.layout
        p = members.size
        total = self.sums[chosen[0]]
        for k in chosen[1:]:
            total = total + self.sums[k]
        shift = self.shift[members_read] if centre else np.zeros(p)
        made = total.moments(starts_read, shift, np.ones(p), centre=centre, line=line)
        if np.array_equal(members, members_read) and np.array_equal(starts, starts_read):
            return made
        if starts.size != p + 1:
            return None
        # every column is its own group: the same numbers in another order, and the blocks are the variances
        at = np.empty(p, dtype=np.intp)
        at[members_read] = np.arange(p)
        at = at[members]
        variance = made.variance[at]
        return Moments(made.mean[at], variance, made.correlation[at], variance.copy(), np.arange(p + 1))

    # ------------------------------------------------------------------ Gram rows

    def missing(self, columns: Array) -> Array:
        """The columns whose Gram rows have not been read."""
        return np.array([j for j in columns.tolist() if j not in self._at], dtype=np.intp)

    def read_gram(self, blocks: Iterator[Block], columns: Array, gains: Array) -> None:
        """Read X once for the Gram rows ``gain_j (x_j - shift_j)' diag(weight) X`` of some columns, in every part.

        Gains are powers of two that scale extreme columns close to one.
        """
        k, p = columns.size, self.shift.size
        first = self._starts[-1] == 0
        # a last column of ones gives the sums of the columns of X
        out = [np.zeros((k + first, p)) for _ in self.rows]
        for top, X in blocks:
            Z = np.ones((X.shape[0], k + first))
            np.multiply(X[:, columns] - self.shift[columns], gains, out=Z[:, :k])
            for part, inside in self._inside(top, X):
                whole = inside.size == X.shape[0]
                left = (Z if whole else Z[inside]) * self.weight[top + inside][:, None]
                accumulate(left, X if whole else X[inside], out[part])
        for part, rows in enumerate(out):
            self._gram[part].append(rows[:k])
            if first:
                self._levels[part] = rows[k]
        self._gains = np.concatenate([self._gains, gains])
        self._at |= {int(j): self._starts[-1] + i for i, j in enumerate(columns)}
        self._starts.append(self._starts[-1] + k)

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array | None:
        """``Z' diag(q) X`` from what has been read; None if q is not a union of parts."""
        chosen = self.union(q)
        if chosen is None:
            return None
        total = sum(float(self.weight[self.rows[k]].sum()) for k in chosen)
        at = np.array([self._at[j] for j in columns.tolist()])
        batch = np.searchsorted(self._starts, at, side="right") - 1
        out = np.outer(self.shift[columns] @ loadings - offset, self._levels[chosen].sum(axis=0))
        loadings = loadings / self._gains[at][:, None]
        for b in np.unique(batch):
            own = batch == b
            rows = at[own] - self._starts[b]
            for k in chosen:
                out += loadings[own].T @ self._gram[k][b][rows]
        return out / total

    def _inside(self, top: int, X: Array) -> Iterator[tuple[int, Array]]:
        """For every part with rows in a block: its number, and those rows as positions in the block."""
        for k, rows in enumerate(self.rows):
            a, b = np.searchsorted(rows, (top, top + X.shape[0]))
            if b > a:
                yield k, rows[a:b] - top
