"""Pieces that are stored one after another in flat arrays: columns of groups, Gram blocks, factors, coefficients.

Pieces of equal length form a matrix, without a copy if they are neighbours, so a few array operations handle all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.validation import Array

__all__ = ["Layout", "alike", "columns_of", "gathered", "group_tiles", "joined", "offsets", "run", "scatter", "spans"]


@dataclass(frozen=True)
class Layout:
    """The columns of the groups in a design: group l has columns ``members[starts[l]:starts[l + 1]]``."""

    members: NDArray[np.intp]
    starts: NDArray[np.intp]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of columns of each group."""
        return self.starts[1:] - self.starts[:-1]


def offsets(lengths: Sequence[int] | Array) -> NDArray[np.intp]:
    """Where consecutive pieces of these lengths start, and where the last one ends."""
    out = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=out[1:])
    return out


def spans(starts: Array, which: Array) -> NDArray[np.intp]:
    """The positions of some pieces, one after another."""
    first = starts[which]
    lengths = starts[1:][which] - first
    ends = np.cumsum(lengths)
    return np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if ends.size else 0)


def group_tiles(starts: Array, width: int) -> Iterator[tuple[int, int]]:
    """The first of consecutive pieces of up to `width` in all, at least one piece, and the one after the last."""
    first, n_pieces = 0, len(starts) - 1
    while first < n_pieces:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + width, side="right")) - 1)
        yield first, min(last, n_pieces)
        first = last


def alike(*keys: Array) -> list[tuple[tuple[int, ...], NDArray[np.intp]]]:
    """Positions at which some integer arrays have the same values: for each combination, the values and positions.

    >>> alike(np.array([2, 1, 2]))
    [((1,), array([1])), ((2,), array([0, 2]))]
    """
    if keys[0].size == 0:
        return []
    table = np.stack(keys)
    if (table == table[:, :1]).all():
        return [(tuple(table[:, 0].tolist()), np.arange(keys[0].size))]
    code = np.zeros(keys[0].size, dtype=np.intp)
    for key in keys:
        code = code * (int(key.max()) + 1) + key
    order = np.argsort(code, kind="stable")
    edges = np.flatnonzero(np.diff(code[order])) + 1
    return [(tuple(table[:, at[0]].tolist()), at) for at in np.split(order, edges)]


def run(positions: Array) -> slice | None:
    """Some positions as a slice; None if they are not consecutive."""
    first, count = int(positions[0]), positions.size
    if int(positions[-1]) - first + 1 != count or (count > 1 and bool((positions[1:] <= positions[:-1]).any())):
        return None
    return slice(first, first + count)


def columns_of(X: Array, columns: Array) -> Array:
    """A copy of some columns, in the fastest way for the memory order of X."""
    if X.flags.c_contiguous:
        return np.take(X, columns, axis=1)
    if X.flags.f_contiguous:
        return np.take(X.T, columns, axis=0).T
    # `take` would copy all of X first
    return X[:, columns]


def gathered(flat: Array, starts: Array, length: int) -> Array:
    """Pieces of equal length of a flat array, as rows; a view if they are neighbours.

    The pieces do not overlap, and `starts` increases.
    """
    if _neighbours(starts, length):
        return flat[starts[0] : starts[0] + starts.size * length].reshape(starts.size, length)
    return flat[starts[:, None] + np.arange(length)]


def scatter(flat: Array, starts: Array, rows: Array) -> None:
    """The inverse of `gathered`: write rows back to the flat array."""
    length = rows.shape[1]
    if _neighbours(starts, length):
        flat[starts[0] : starts[0] + rows.size] = rows.ravel()
    else:
        flat[starts[:, None] + np.arange(length)] = rows


def joined(size: int, pieces: Sequence[tuple[Array, Array]]) -> Array:
    """A flat array from the starts and rows of its pieces, which fill it; the rows themselves if they are all of it."""
    if len(pieces) == 1 and pieces[0][1].size == size and _neighbours(*pieces[0][:1], pieces[0][1].shape[1]):
        return pieces[0][1].reshape(-1)
    flat = np.empty(size)
    for starts, rows in pieces:
        scatter(flat, starts, rows)
    return flat


def _neighbours(starts: Array, length: int) -> bool:
    return bool(starts.size) and int(starts[-1]) - int(starts[0]) == (starts.size - 1) * length
