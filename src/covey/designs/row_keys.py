"""Keys of rows that depend on their values and on what their columns hold, but on no order and on no units.

A value enters by its rank within its column, and a column by its salt: the sum, over distinct rows, of a hash of the
rank times a mark of the row. The key of a row is the sum, over columns, of a hash of the rank times a hash of the salt.
The marks are hashes of the response first and of the row's key in later rounds (Weisfeiler-Lehman refinement), so that
columns which hold the same values at different rows get different salts.

All sums are of 64-bit integers and wrap around: they are exact in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs.rows import mix
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.protocol import Design

__all__ = ["canonical_keys", "dense_rank_keys", "sparse_rank_keys"]

Keys = NDArray[np.uint64]

ONE = np.uint64(1)

# Whether each round counts how often a row occurs. The first does not, so that weights rarely matter; two more rounds
# tell apart nearly everything that is not exchangeable.
ROUNDS = (False, True, True)

# Ranks of more numbers than this would take longer than a fit. The keys then come from the columns that go most with
# the response: this many, or more if columns tie.
MOST_RANKED, FEWEST_TELLING, MOST_TELLING, TIE = 2**25, 512, 4096, 1e-9

# Shares of the weight are counted in this unit: sums of weights may differ in the last digits.
SHARE = 2.0**-40


def canonical_keys(design: Design, rank: NDArray[np.intp], weight: FloatArray) -> tuple[Keys, Keys]:
    """Two keys per row: one that depends on no order and no units, and one that only equal rows share.

    The first is also shared by rows that nothing can tell apart, because exchanging them and some columns gives the
    same data. The second depends on the order of the columns. A row of weight two is like two equal rows of weight one,
    and rows of weight zero do not count; their keys are zero.

    Parameters
    ----------
    rank : ndarray of int, shape (n,)
        The rank of each row's response.
    """
    columns = _telling_columns(design, rank, weight)
    same = np.where(weight > 0, design.row_keys(columns), np.uint64(0))
    n_distinct = _n_distinct(same, weight)
    keys = np.zeros_like(same)
    for counted in ROUNDS:
        marks = _marks(same, rank, keys, weight, counted)
        keys = np.where(weight > 0, design.rank_keys(columns, marks, weight), np.uint64(0))
        if _n_distinct(keys, weight) >= n_distinct:
            break
    return keys, same


def _telling_columns(design: Design, rank: NDArray[np.intp], weight: FloatArray) -> NDArray[np.intp]:
    """All columns; of a very large X, those that go most with the response, whatever their order and units."""
    n, p = design.shape
    if n * p <= MOST_RANKED:
        return np.arange(p)
    q = weight / weight.sum()
    product = np.abs(design.correlate((q * (rank - q @ rank))[None, :])[0]).astype(float)
    low, high = design.extremes(np.arange(p), weight)
    strength = np.divide(product, high - low, out=np.zeros(p), where=high > low)
    least = np.partition(strength, -FEWEST_TELLING)[-FEWEST_TELLING]
    # columns that tie with the last one are all in, or their order would decide
    return np.flatnonzero(strength >= least * (1 - TIE))[:MOST_TELLING]


def dense_rank_keys(values: FloatArray, marks: Keys, weight: FloatArray) -> Keys:
    """The part of the rows' keys that comes from some columns; zero for rows of weight zero."""
    used = weight > 0
    columns = np.ascontiguousarray(values[used].T)
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    rank = np.zeros(columns.shape, dtype=np.uint64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rank[:, 1:])
    hashes = np.empty_like(rank)
    np.put_along_axis(hashes, order, mix(rank + ONE), axis=1)
    salts = (hashes * marks[used]).sum(axis=1, dtype=np.uint64)
    out = np.zeros(weight.size, dtype=np.uint64)
    out[used] = (hashes * mix(salts)[:, None]).sum(axis=0, dtype=np.uint64)
    return out


def sparse_rank_keys(X: sp.csc_array, marks: Keys, weight: FloatArray) -> Keys:
    """The same for all columns of a sparse matrix, from its stored values: zeros are the base of their column."""
    used = weight > 0
    n_columns = X.shape[1]
    column = np.repeat(np.arange(n_columns), np.diff(X.indptr))
    stored = (X.data != 0) & used[X.indices]
    row, column, value = X.indices[stored], column[stored], X.data[stored]
    order = np.lexsort((value, column))
    row, column, value = row[order], column[order], value[order]
    ends = np.searchsorted(column, np.arange(n_columns + 1))
    has_zeros = np.diff(ends) < used.sum()
    # the number of distinct values up to each stored one, and from that the rank within the column
    first = np.ones(value.size, dtype=bool)
    first[1:] = (column[1:] != column[:-1]) | (value[1:] != value[:-1])
    total = np.append(0, np.cumsum(first))
    rank = total[1:] - 1 - total[ends[:-1]][column] + (has_zeros[column] & (value > 0))
    n_negative = np.bincount(column, weights=first & (value < 0), minlength=n_columns)
    base = np.where(has_zeros, mix(n_negative.astype(np.uint64) + ONE), np.uint64(0))
    hashes = mix(rank.astype(np.uint64) + ONE) - base[column]
    sums = np.append(np.uint64(0), np.cumsum(hashes * marks[row], dtype=np.uint64))
    salts = mix(sums[ends[1:]] - sums[ends[:-1]] + base * marks[used].sum(dtype=np.uint64))
    out = np.zeros(weight.size, dtype=np.uint64)
    out[used] = (base * salts).sum(dtype=np.uint64)
    np.add.at(out, row, hashes * salts[column])
    return out


def _marks(same: Keys, rank: NDArray[np.intp], keys: Keys, weight: FloatArray, counted: bool) -> Keys:
    """A hash of response, key and, if counted, weight of one row for all that are equal; zero for the others."""
    used = np.flatnonzero(weight > 0)
    response = mix(rank[used].astype(np.uint64) + ONE)
    _, first, cell = np.unique(mix(same[used]) + response, return_index=True, return_inverse=True)
    shares = np.bincount(cell, weights=weight[used]) / weight[used].sum()
    occurs = np.rint(shares / SHARE).astype(np.uint64) if counted else np.uint64(0)
    out = np.zeros(weight.size, dtype=np.uint64)
    out[used[first]] = mix(mix(mix(keys[used[first]]) + response[first]) + occurs)
    return out


def _n_distinct(keys: Keys, weight: FloatArray) -> int:
    return int(np.unique(keys[weight > 0]).size)
