"""Pieces of equal length in a flat array, read and written together.

Columns, Gram blocks and factors of groups are stored one after another in flat arrays. The pieces of groups of equal
size form a matrix, without a copy if they are neighbours, so a few array operations handle all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["alike", "columns_of", "gathered", "run", "scatter"]

Array = NDArray[Any]


def alike(*keys: Array) -> list[tuple[tuple[int, ...], NDArray[np.intp]]]:
    """Positions at which some integer arrays have the same values: for each combination, the values and positions.

    >>> alike(np.array([2, 1, 2]))
    [((1,), array([1])), ((2,), array([0, 2]))]
    """
    n = keys[0].size
    if n == 0:
        return []
    if all(bool((key == key[0]).all()) for key in keys):
        return [(tuple(int(key[0]) for key in keys), np.arange(n))]
    code = np.zeros(n, dtype=np.intp)
    for key in keys:
        code = code * (int(key.max()) + 1) + key
    order = np.argsort(code, kind="stable")
    edges = np.flatnonzero(np.diff(code[order])) + 1
    return [(tuple(int(key[at[0]]) for key in keys), at) for at in np.split(order, edges)]


def run(positions: Array) -> slice | None:
    """Some positions as a slice; None if they are not consecutive."""
    first, count = int(positions[0]), positions.size
    if int(positions[-1]) - first + 1 != count or (count > 1 and bool((positions[1:] <= positions[:-1]).any())):
        return None
    return slice(first, first + count)


def columns_of(X: Array, columns: Array) -> Array:
    """A copy of some columns, made in the fastest way for the memory order of X."""
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


def _neighbours(starts: Array, length: int) -> bool:
    return bool(starts.size) and int(starts[-1]) - int(starts[0]) == (starts.size - 1) * length
