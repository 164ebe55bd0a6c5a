"""PartedRows: the rows of some groups in working coordinates, in disjoint parts, and their Gram rows part by part.

The Gram rows of a training set are the sum of its parts' Gram rows, so training folds, held-out folds and the full data
share one table. A part with many more rows than columns is replaced by the triangular factor of its QR decomposition,
which has the same Gram matrix and gives the same squared errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.layout import offsets, spans
from covey.validation import FloatArray

__all__ = ["ROWS_PER_COLUMN", "PartedRows", "Rows", "Split"]

# Size of the Gram-row cache, in bytes, or half the size of the table if that is more: splits often wake the same groups
# at about the same time.
KEPT_BYTES = 2**21

# A part with at least this many rows per column is compressed; with fewer, the decomposition costs more than it saves.
ROWS_PER_COLUMN = 1.5


@dataclass(frozen=True)
class Split:
    """The parts of the rows that a model is fitted on, and the parts that it is scored on, if any."""

    train: tuple[int, ...]
    test: tuple[int, ...] = ()

    def judging(self, coupled: bool) -> tuple[int, ...]:
        """The parts that need predictions: all of them if the loss couples rows, else the held-out ones."""
        return (*self.train, *self.test) if coupled else self.test


class Rows:
    """The table of some groups.

    Parameters
    ----------
    ranks : ndarray of int, shape (n_groups,)
        The number of columns of each group.
    """

    def __init__(self, ranks: NDArray[np.intp]) -> None:
        self.ranks = ranks
        self.starts = offsets(ranks)
        self.n_columns = int(self.starts[-1])

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return self.ranks.size

    def columns(self, groups: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of some groups, one group after another."""
        return spans(self.starts, np.asarray(groups, dtype=np.intp))

    def forget(self) -> None:
        """Clear caches."""


class PartedRows(Rows):
    """Rows ``sqrt(weight) [Z, E, 1, y]`` of some groups, part by part.

    Parameters
    ----------
    parts : sequence of ndarray, shape (n_part, width)
        Z holds the working columns, group by group, and E the scores of common factors; then come a column of ones and
        the response. Each row is multiplied by the square root of its weight.
    ranks : ndarray of int, shape (n_groups,)
        The number of columns of each group.
    compress : bool
        Whether parts may be compressed.
    held : bool
        Whether the parts are the rows themselves rather than roots of their Gram matrices.

    Attributes
    ----------
    parts : list of ndarray
        As given, or compressed.
    held : bool
        Whether every row of the parts is a row of X.
    """

    def __init__(
        self, parts: Sequence[FloatArray], ranks: NDArray[np.intp], *, compress: bool = True, held: bool = True
    ) -> None:
        self.parts = [_compressed(part) for part in parts] if compress else list(parts)
        self.held = held and all(own is part for own, part in zip(self.parts, parts, strict=True))
        super().__init__(ranks)
        # the common rank of all groups, if they have one
        self.equal_rank = int(ranks[0]) if ranks.size and (ranks == ranks[0]).all() and ranks[0] > 0 else None
        self.width = parts[0].shape[1]
        self.one, self.response = self.width - 2, self.width - 1
        self.extras = np.arange(self.n_columns, self.one)
        # Gram rows of E, the ones and the response in every part, shape (n_parts, e + 2, width)
        self.special_rows = np.array([part[:, self.n_columns :].T @ part for part in self.parts])
        self._rows: dict[int, FloatArray] = {}
        row_bytes = 8 * len(self.parts) * self.width
        self._most_kept = max(KEPT_BYTES, sum(part.nbytes for part in self.parts) // 2) // row_bytes
        self._n_kept = 0

    def gram_rows(self, group: int) -> FloatArray:
        """``A_l' A`` in every part, where A has all columns; shape (n_parts, rank of the group, width)."""
        known = self._rows.get(group)
        if known is None:
            a, b = int(self.starts[group]), int(self.starts[group + 1])
            known = np.empty((len(self.parts), b - a, self.width))
            for part, out in zip(self.parts, known, strict=True):
                np.matmul(part[:, a:b].T, part, out=out)
            self._rows[group] = known
            self._n_kept += b - a
            while self._n_kept > self._most_kept and len(self._rows) > 1:
                oldest = next(iter(self._rows))
                self._n_kept -= self._rows.pop(oldest).shape[1]
        return known

    def forget(self) -> None:
        """Clear the cache of Gram rows."""
        self._rows.clear()
        self._n_kept = 0

    def gram(self, part: int, columns: NDArray[np.intp], others: slice) -> FloatArray:
        """Inner products of some columns with a slice of others in a part."""
        return np.asarray(self.parts[part].take(columns, axis=1).T @ self.parts[part][:, others])

    def widened(self, more: Sequence[FloatArray], ranks: NDArray[np.intp]) -> PartedRows:
        """These rows with the working columns of further groups appended."""
        n = self.n_columns
        parts = [np.hstack([own[:, :n], new, own[:, n:]]) for own, new in zip(self.parts, more, strict=True)]
        return PartedRows(parts, np.concatenate([self.ranks, ranks]))

    def weight(self, parts: Sequence[int]) -> float:
        """The total weight of the rows of some parts."""
        return float(self.special_rows[list(parts), -2, self.one].sum())

    def total_response(self, parts: Sequence[int]) -> float:
        """The weighted sum of the response over some parts."""
        return float(self.special_rows[list(parts), -1, self.one].sum())


def _compressed(part: FloatArray) -> FloatArray:
    """A table with the same Gram matrix and no more rows than columns, if the part has many rows."""
    n, width = part.shape
    return part if n < ROWS_PER_COLUMN * width else np.asarray(np.linalg.qr(part, mode="r"))
