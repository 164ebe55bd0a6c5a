"""PartedRows: the rows of some groups in working coordinates, in disjoint parts, and their Gram rows part by part.

Sums over rows add up, so the Gram rows of a training set are the sum of those of its parts: every fold, the rows that
it leaves out and the whole data share one table. Where a part has more rows than columns it is replaced by the
triangular factor of its QR decomposition, which has the same Gram matrix and the same squared errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.preprocess.layout import offsets, spans
from covey.validation import FloatArray

__all__ = ["ROWS_PER_COLUMN", "PartedRows", "Rows", "Split"]

# Gram rows are kept for splits that wake the same groups at about the same time: so many bytes of them, or half as many
# as the table itself has where that is more.
KEPT_BYTES = 2**21

# A part of at least this many rows per column is compressed: below, the decomposition costs more than it saves.
ROWS_PER_COLUMN = 1.5


@dataclass(frozen=True)
class Split:
    """Parts of the rows that a model is fitted on, and parts that it is judged by; none where it is not judged."""

    train: tuple[int, ...]
    test: tuple[int, ...] = ()

    def judging(self, coupled: bool) -> tuple[int, ...]:
        """The parts that predictions are needed on: where the loss of a row depends on others, on all of them."""
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
        """How many groups there are."""
        return self.ranks.size

    def columns(self, groups: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of some groups, one group after another."""
        return spans(self.starts, np.asarray(groups, dtype=np.intp))

    def forget(self) -> None:
        """Let go of what can be made again."""


class PartedRows(Rows):
    """Rows ``sqrt(weight) [Z, E, 1, y]`` of some groups, part by part.

    Parameters
    ----------
    parts : sequence of ndarray, shape (n_part, width)
        Z holds the working columns of the groups, one group after another, E the scores of common factors; then come a
        column of ones and the response; each row is multiplied by the square root of its weight.
    ranks : ndarray of int, shape (n_groups,)
        The number of columns of each group.
    compress : bool
        Whether parts may be compressed.
    held : bool
        Whether the parts are the rows themselves, and not roots of their Gram matrices.

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
        # the rank of all groups, where they have one and the same
        self.equal_rank = int(ranks[0]) if ranks.size and (ranks == ranks[0]).all() and ranks[0] > 0 else None
        self.width = parts[0].shape[1]
        self.one, self.response = self.width - 2, self.width - 1
        self.extras = np.arange(self.n_columns, self.one)
        # Gram rows of E, of the ones and of the response in every part, shape (n_parts, e + 2, width)
        self.special_rows = np.array([part[:, self.n_columns :].T @ part for part in self.parts])
        self._rows: dict[int, FloatArray] = {}
        row_bytes = 8 * len(self.parts) * self.width
        self._most_kept = max(KEPT_BYTES, sum(part.nbytes for part in self.parts) // 2) // row_bytes
        self._n_kept = 0

    def gram_rows(self, group: int) -> FloatArray:
        """``A_l' A`` in every part, A being all columns; shape (n_parts, rank of the group, width)."""
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
        """Keep no Gram rows."""
        self._rows.clear()
        self._n_kept = 0

    def gram(self, part: int, columns: NDArray[np.intp], others: slice) -> FloatArray:
        """Inner products of some columns with a run of others in a part."""
        return np.asarray(self.parts[part].take(columns, axis=1).T @ self.parts[part][:, others])

    def widened(self, more: Sequence[FloatArray], ranks: NDArray[np.intp]) -> PartedRows:
        """These rows with the working columns of further groups, which come after those that are here."""
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
    """A part with no more rows than columns, with the same Gram matrix."""
    n, width = part.shape
    return part if n < ROWS_PER_COLUMN * width else np.asarray(np.linalg.qr(part, mode="r"))
