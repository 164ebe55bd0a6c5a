"""Products with the groups' factors, as one block-diagonal matrix or for some groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs.pieces import alike, gathered, run
from covey.preprocess.layout import offsets

__all__ = ["block_diagonal", "times_factors", "to_columns"]

Array = NDArray[Any]


def block_diagonal(factors: Array, sizes: Array, ranks: Array) -> sp.csr_array:
    """The factors of all groups as one sparse matrix, from working columns to columns; shape (p, r).

    The factors are stored row by row, like the values of the matrix, so they are not copied.
    """
    wide = np.repeat(ranks, sizes)
    starts = offsets(wide)
    first = np.repeat(offsets(ranks)[:-1], sizes)
    kind = np.int32 if factors.size < 2**31 else np.int64
    indices = np.repeat((first - starts[:-1]).astype(kind), wide)
    indices += np.arange(factors.size, dtype=kind)
    return sp.csr_array((factors, indices, starts.astype(kind)), shape=(wide.size, int(ranks.sum())))


def times_factors(X: Array, factors: Array, sizes: Array, ranks: Array) -> Array:
    """``X_l T_l`` of some groups side by side, for columns X of these groups, shape (n, sum of sizes)."""
    n = X.shape[0]
    starts, factor_starts, out_starts = offsets(sizes), offsets(sizes * ranks), offsets(ranks)
    out = np.empty((n, int(out_starts[-1])))
    for (size, rank), at in alike(sizes, ranks):
        if rank == 0:
            continue
        T = gathered(factors, factor_starts[at], size * rank).reshape(-1, size, rank)
        read, written = (
            (from_[at][:, None] + np.arange(width)).ravel() for from_, width in ((starts, size), (out_starts, rank))
        )
        own = X[:, run(read) or read]
        made = own.reshape(n, at.size, size).transpose(1, 0, 2) @ T
        out[:, written] = made.transpose(1, 0, 2).reshape(n, at.size * rank)
    return out


def to_columns(factors: Array, sizes: Array, ranks: Array, W: Array) -> Array:
    """``T_l w_l`` of some groups, group by group, for models as rows of W; shape (n_models, sum of sizes)."""
    starts, factor_starts, own_starts = offsets(sizes), offsets(sizes * ranks), offsets(ranks)
    out = np.zeros((W.shape[0], int(starts[-1])))
    for (size, rank), at in alike(sizes, ranks):
        if rank == 0:
            continue
        T = gathered(factors, factor_starts[at], size * rank).reshape(-1, size, rank)
        w = W[:, (own_starts[at][:, None] + np.arange(rank)).ravel()].reshape(-1, at.size, rank)
        b = w.transpose(1, 0, 2) @ T.transpose(0, 2, 1)
        out[:, (starts[at][:, None] + np.arange(size)).ravel()] = b.transpose(1, 0, 2).reshape(W.shape[0], -1)
    return out
