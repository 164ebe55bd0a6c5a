"""Which rows to hold out, chosen on the cluster: the same rows as `covey.designs.rows` chooses in memory.

A row's key is a hash of the ranks of a few of its values, so the ranks of whole columns are needed. They are found by
a sample sort: partitions of rows cut their distinct values at common bounds, each bucket between two bounds is put in
order by itself, and the ranks go back to the partitions. Data of one partition and one bucket meet in one worker; up to
`PARTITION_ROWS` rows there is one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from dask import delayed
from numpy.typing import NDArray

from covey.designs.cluster import compute, keep
from covey.designs.rows import ENOUGH_KEYS, KEY_COLUMNS, all_equal, key_columns, mix

__all__ = ["split_rows"]

Array = NDArray[Any]

# Rows whose response, weight and first eight key columns are at one place at a time: 640 MiB.
PARTITION_ROWS = 2**23

# Values that a partition shows for the choice of bounds.
SAMPLE = 1024


def split_rows(
    tables: Callable[[Array], list[Any]], counts: Sequence[int], n_columns: int, fraction: float, random_state: Any
) -> list[Any]:
    """Masks of rows to hold out, one task per chunk.

    Parameters
    ----------
    tables : function of column positions
        Tasks, one per chunk: the weight, the response and those columns, one row of the table for each.
    counts : sequence of int
        Rows of each chunk.
    """
    rng = np.random.default_rng(random_state)
    edges = _partitions(counts)
    n_buckets = len(edges) - 1
    keys: list[Any] = [None] * n_buckets
    for n_key_columns in KEY_COLUMNS:
        chosen = key_columns(n_columns, n_key_columns)
        chunks = tables(chosen)
        parts = keep([delayed(_stack)(chunks[a:b]) for a, b in pairwise(edges)])
        salts = rng.integers(0, 2**63, size=chosen.size + 1, dtype=np.uint64)
        if n_buckets == 1:
            keys = [delayed(_keys)(keys[0], parts[0], salts)]
        else:
            for j, salt in enumerate(salts):
                ranks = _ranks([delayed(_values)(part, j + 1) for part in parts])
                keys = [delayed(_mixed)(key, rank, salt) for key, rank in zip(keys, ranks, strict=True)]
        keys = keep(keys)
        bins = [delayed(_bins)(key, part, n_buckets) for key, part in zip(keys, parts, strict=True)]
        buckets = keep([delayed(_merge_keys)([delayed(_item)(own, b) for own in bins]) for b in range(n_buckets)])
        sizes = compute(*(delayed(_size)(bucket) for bucket in buckets))
        if sum(count for count, _ in sizes) >= ENOUGH_KEYS:
            break
    bound = _bound(buckets, sizes, fraction)
    held = [delayed(_held)(key, part, bound) for key, part in zip(keys, parts, strict=True)]
    return [
        delayed(_slice)(held[i], int(sum(counts[edges[i] : c])), int(counts[c]))
        for i in range(n_buckets)
        for c in range(edges[i], edges[i + 1])
    ]


def _partitions(counts: Sequence[int]) -> list[int]:
    """Runs of chunks of at most `PARTITION_ROWS` rows, or of a single chunk."""
    edges, rows = [0], 0
    for c, count in enumerate(counts):
        if rows and rows + count > PARTITION_ROWS:
            edges.append(c)
            rows = 0
        rows += count
    return [*edges, len(counts)]


def _ranks(values: list[Any]) -> list[Any]:
    """The rank of every value among the distinct values of all partitions."""
    n_buckets = len(values)
    distinct = [delayed(np.unique)(own) for own in values]
    bounds = delayed(_bounds)([delayed(_sample)(own) for own in distinct], n_buckets)
    cuts = [delayed(_cut)(own, bounds) for own in distinct]
    pieces = [[delayed(_item)(cut, b) for b in range(n_buckets)] for cut in cuts]
    merged = [delayed(_union)([own[b] for own in pieces]) for b in range(n_buckets)]
    before = delayed(_before)([delayed(len)(own) for own in merged])
    places = [
        [delayed(_places)(merged[b], own[b], delayed(_item)(before, b)) for b in range(n_buckets)] for own in pieces
    ]
    return [delayed(_look_up)(*parts) for parts in zip(values, distinct, places, strict=True)]


def _bound(buckets: list[Any], sizes: Sequence[tuple[int, float]], fraction: float) -> np.uint64:
    """The largest key that is held out: the smallest number of keys that reaches the fraction, but not all."""
    count = sum(own for own, _ in sizes)
    if count < 2:
        raise all_equal()
    target = fraction * sum(weight for _, weight in sizes) * (1 - 1e-12)
    last = count - 2
    reached, passed = 0.0, 0
    for bucket, (own, weight) in zip(buckets, sizes, strict=True):
        if own and (reached + weight >= target or passed + own > last):
            (bound,) = compute(delayed(_bound_in)(bucket, target - reached, last - passed))
            return np.uint64(bound)
        reached, passed = reached + weight, passed + own
    raise AssertionError("the shares of all buckets add up to less than the whole")


# What runs on the workers, on arrays of one partition. A table has the weight, the response and key columns as rows.


def _stack(tables: list[Array]) -> Array:
    return np.concatenate(tables, axis=1)


def _values(table: Array, j: int) -> Array:
    return table[j, table[0] > 0]


def _keys(key: Array | None, table: Array, salts: Array) -> Array:
    """The keys of rows that are all in one partition."""
    for j, salt in enumerate(salts):
        rank = np.unique(_values(table, j + 1), return_inverse=True)[1]
        key = _mixed(key, rank, salt)
    assert key is not None
    return key


def _mixed(key: Array | None, rank: Array, salt: np.uint64) -> Array:
    return mix((np.uint64(0) if key is None else key) ^ (rank.astype(np.uint64) + salt))


def _sample(distinct: Array) -> Array:
    return distinct[np.linspace(0, distinct.size - 1, min(SAMPLE, distinct.size)).astype(np.intp)]


def _bounds(samples: list[Array], n_buckets: int) -> Array:
    """Values that cut the samples into buckets of about one size."""
    shown = np.sort(np.concatenate(samples))
    at = (np.arange(1, n_buckets) * shown.size) // n_buckets
    return shown[at]


def _cut(distinct: Array, bounds: Array) -> list[Array]:
    return np.split(distinct, np.searchsorted(distinct, bounds))


def _item(items: Any, b: int) -> Any:
    return items[b]


def _union(pieces: list[Array]) -> Array:
    return np.unique(np.concatenate(pieces))


def _before(sizes: list[int]) -> Array:
    return np.concatenate([[0], np.cumsum(sizes)])


def _places(merged: Array, piece: Array, before: int) -> Array:
    return np.searchsorted(merged, piece) + before


def _look_up(values: Array, distinct: Array, places: list[Array]) -> Array:
    return np.concatenate(places)[np.searchsorted(distinct, values)]


def _bins(key: Array, table: Array, n_buckets: int) -> list[tuple[Array, Array]]:
    """Distinct keys and their weights, cut into equal ranges of keys."""
    distinct, inverse = np.unique(key, return_inverse=True)
    weight = np.bincount(inverse, weights=table[0, table[0] > 0], minlength=distinct.size)
    bounds = np.array([(b * 2**64) // n_buckets for b in range(1, n_buckets)], dtype=np.uint64)
    cuts = np.searchsorted(distinct, bounds)
    return list(zip(np.split(distinct, cuts), np.split(weight, cuts), strict=True))


def _merge_keys(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    distinct, inverse = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    weight = np.bincount(inverse, weights=np.concatenate([own for _, own in parts]), minlength=distinct.size)
    return distinct, np.cumsum(weight)


def _size(bucket: tuple[Array, Array]) -> tuple[int, float]:
    keys, ends = bucket
    return keys.size, float(ends[-1]) if keys.size else 0.0


def _bound_in(bucket: tuple[Array, Array], target: float, last: int) -> int:
    keys, ends = bucket
    return int(keys[min(int(np.searchsorted(ends, target)), last, keys.size - 1)])


def _held(key: Array, table: Array, bound: np.uint64) -> NDArray[np.bool_]:
    used = table[0] > 0
    held = np.zeros(used.size, dtype=bool)
    held[used] = key <= bound
    return held


def _slice(held: Array, first: int, count: int) -> Array:
    return held[first : first + count]
