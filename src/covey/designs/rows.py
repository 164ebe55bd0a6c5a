"""Which rows are equal, which are held out, and keys of rows by which folds are dealt.

The choice of held-out rows depends on their positions and the seed; equal rows stay together.

`canonical_keys` depend on the values of the rows and on what their columns hold, but on no order and on no units. A
value enters by its rank within its column, and a column by its salt: the sum, over distinct rows, of a hash of the
rank times a mark of the row. The key of a row is the sum, over columns, of a hash of the rank times a hash of the salt.
The marks are hashes of the response first and of the row's key in later rounds (Weisfeiler-Lehman refinement), so that
columns which hold the same values at different rows get different salts. All sums are of 64-bit integers and wrap
around: they are exact in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import PredefinedSplit, check_cv

from covey.designs.protocol import Design
from covey.designs.row_blocks import RowBlocks
from covey.designs.sparse import SparseDesign
from covey.validation import FloatArray, IntArray, PerRow, as_response, as_sample_weight, on_host

Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Seed = int | np.random.Generator | None

ONE = np.uint64(1)

# Whether each round counts how often a row occurs. The first does not, so that weights rarely matter; two more rounds
# tell apart nearly everything that is not exchangeable.
ROUNDS = (False, True, True)

# Ranks of more numbers than this would take longer than a fit. The keys then come from the columns that go most with
# the response: as many as there may be numbers, within these bounds, or up to eight times as many if columns tie.
MOST_RANKED, FEWEST_TELLING, MOST_TELLING, TIES, TIE = 2**23, 8, 128, 8, 1e-9

# Numbers that are hashed at a time (8 MiB), and that are ranked, which is faster in cache.
HASHED_AT_A_TIME, RANKED_AT_A_TIME = 2**20, 2**17

# Shares of the weight are counted in this unit: sums of weights may differ in the last digits.
SHARE = 2.0**-40

# In a table of a few categories, rows that differ only in their response have more than the first of these as a share
# of the weight, which is no coincidence, and a row occurs more often than the second on average, counted by weight.
MIXED, REPEATED = 0.1, 2.0

# Whole numbers up to the first of these count repeated rows, and multiples of the least weight, to this precision, up
# to the second.
MOST_REPEATED, MOST_TIMES, WHOLE = 2**31, 100, 1e-6

# The number of columns hashed to find equal rows: first a few, then more, and all of them if rows are still equal.
KEY_COLUMNS = (8, 128)


def split_masks(n: int, cv: Any, y: FloatArray, labels: ArrayLike | None) -> list[tuple[Mask, Mask]]:
    """Training and held-out rows of each fold, for anything that scikit-learn accepts as `cv`.

    A Dask array holds labels of the rows, one fold per label.
    """
    if type(cv).__module__.partition(".")[0] == "dask":
        cv = PredefinedSplit(np.unique(on_host(cv), return_inverse=True)[1])
    pairs: list[tuple[Mask, Mask]] = []
    if not hasattr(cv, "split") and np.iterable(cv):
        given = list(cv)  # scikit-learn would unpack the pairs without a check
    else:
        given = _by_splitter(check_cv(cv, y, classifier=False), n, y, labels)
    for number, pair in enumerate(given):
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"{SPLITS}; split {number} is not a pair.")
        learn = _row_mask(pair[0], n, f"training rows of split {number}")
        judge = _row_mask(pair[1], n, f"held-out rows of split {number}")
        if (both := np.flatnonzero(learn & judge)).size:
            raise ValueError(
                f"{SPLITS}: split {number} holds out rows that it trains on, {both.size} in all, first row {both[0]}; "
                "errors on them would be too small. Leave them out of one of the two."
            )
        pairs.append((learn, judge))
    if not pairs:
        raise ValueError(f"{SPLITS}; there are none. A generator can be used only once: give a list.")
    return pairs


def _by_splitter(cv: Any, n: int, y: FloatArray, labels: ArrayLike | None) -> list[Any]:
    try:
        return list(cv.split(Unread(n), y, labels))
    except ValueError as error:
        if labels is None and "groups" in str(error):  # which are not the groups of columns
            raise ValueError(f"{cv!r} needs labels of the rows: call fit(X, y, split_groups=labels).") from error
        raise


class Unread:
    """X as splitters get it, which know how many rows it has and cannot read them: they may be anywhere."""

    def __init__(self, n_rows: int) -> None:
        self.shape = (n_rows, 1)

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(READS_X)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ValueError(READS_X)

    __getitem__ = __iter__ = __array__


READS_X = "Splitters are not given the values of X: give what this one returns, list(cv.split(X, y))."
SPLITS = "selection must give pairs of training and held-out rows"


def _row_mask(rows: ArrayLike, n: int, title: str) -> Mask:
    """A mask of rows that are given by their positions, or by a mask."""
    try:
        index = np.asarray(rows)
    except ValueError:  # lists of unequal lengths
        index = np.empty((0, 0))
    if index.dtype == bool and index.shape == (n,):
        return index.copy()
    if index.ndim != 1 or (index.dtype.kind not in "iu" and index.size):
        raise ValueError(f"{SPLITS}: {title} must be a list of positions, or a mask of {n} rows.")
    mask = np.zeros(n, dtype=bool)
    index = index.astype(np.intp)
    if index.size:
        if not 0 <= index.min() <= index.max() < n:
            raise ValueError(f"{SPLITS}: {title} must lie between 0 and {n - 1}, not {index.min()} to {index.max()}.")
        mask[index] = True
        if mask.sum() < index.size:
            raise ValueError(f"{SPLITS}: {title} name a row more than once; repeat rows by sample_weight instead.")
    return mask


def hold_out(
    design: Design,
    y: FloatArray,
    weight: FloatArray,
    fraction: float,
    random_state: Seed,
    classes: IntArray | None = None,
) -> Mask:
    """A mask of rows to hold out: about `fraction` of the weight, within every class if `classes` is given.

    The choice depends on the seed and on the positions of the rows: rows are numbered in order, and equal rows get the
    number of the first of them. The values of X and y only determine which rows are equal.
    """
    p = design.n_stored
    for count in sorted({min(count, p) for count in (*KEY_COLUMNS, p)}):
        # evenly spaced
        columns = np.unique(np.linspace(0, p - 1, count).astype(np.intp))
        used, number, all_differ = _row_numbers(y, weight, row_keys(design, columns))
        if all_differ:
            break
    n = int(number.max(initial=-1)) + 1
    if n < 2:
        raise ValueError(
            "Rows cannot be held out: all rows are equal. Choose another way, for instance selection='ebic'."
        )
    place = np.random.default_rng(random_state).permutation(n)
    shares = np.bincount(number, weights=weight[used])
    out = np.zeros(n, dtype=bool)
    if classes is None:
        order = np.argsort(place)
        ends = np.cumsum(shares[order])
        # the smallest number of rows that reaches the fraction: at least one, never all
        n_held = int(np.searchsorted(ends, fraction * ends[-1] * (1 - 1e-12))) + 1
        out[order[: min(n_held, n - 1)]] = True
    else:
        label = np.empty(n, dtype=np.intp)
        label[number] = classes[used]
        for value in np.unique(label):
            members = np.flatnonzero(label == value)
            members = members[np.argsort(place[members])]
            middles = np.cumsum(shares[members]) - shares[members] / 2
            # the number of rows nearest to the fraction, but never all of a class
            n_held = int(np.sum(middles <= fraction * shares[members].sum() * (1 + 1e-12)))
            out[members[: min(n_held, members.size - 1)]] = True
        if not out.any():
            raise ValueError(
                "Rows cannot be held out: every class has too few rows. Give more rows, or choose selection='ebic'."
            )
    held = np.zeros(weight.size, dtype=bool)
    held[used] = out[number]
    return held


def _row_numbers(y: FloatArray, weight: FloatArray, keys: Keys) -> tuple[IntArray, IntArray, bool]:
    """The rows of positive weight, their numbers in order, and whether all differ; equal rows have the same number.

    In a table of a few categories all rows get different numbers: equal rows are not repetitions there.
    """
    used = np.flatnonzero(weight > 0)
    values = np.asarray(y, dtype=float).reshape(len(y), -1)[used]
    response = hash_rows(values, np.arange(values.shape[1]))
    _, first, position = np.unique(mix(keys[used]) + response, return_index=True, return_inverse=True)
    rank, equal = (np.unique(one, return_inverse=True)[1] for one in (response, keys[used]))
    if is_contingency_table(rank, equal, weight[used]):
        return used, np.arange(used.size), first.size == used.size
    number = np.empty(first.size, dtype=np.intp)
    number[np.argsort(first)] = np.arange(first.size)
    return used, number[position], first.size == used.size


def is_contingency_table(rank: IntArray, equal: IntArray, weight: FloatArray) -> bool:
    """Whether many rows differ only in their response, whose rank is given, and most rows are repeated."""
    distinct = np.unique(rank * equal.size + equal)
    several = np.bincount(distinct % equal.size, minlength=equal.size)[equal] > 1
    mostly = weight[several].sum() > MIXED * weight.sum()
    return bool(mostly and count_rows(weight) > REPEATED * distinct.size)


def count_rows(weight: FloatArray) -> float:
    """The number of rows, counted by weight: whole numbers, or small multiples of the least weight, are repetitions.

    Other weights do not say how often a row was seen: beside a row of weight 1e-6, all others would count as a million
    each. They count as Kish's effective number of rows.
    """
    used = np.asarray(weight[weight > 0], dtype=float)
    if used.max() <= MOST_REPEATED and (used == np.round(used)).all():
        return float(used.sum()) / float(np.gcd.reduce(used.astype(np.int64)))
    times = used / used.min()
    if times.max() <= MOST_TIMES and np.abs(times - np.round(times)).max() <= WHOLE:
        return float(times.sum())
    shares = used / used.max()
    return float(shares.sum()) ** 2 / float(shares @ shares)


def repetitions(sample_weight: PerRow, n_rows: int) -> FloatArray:
    """How many rows each row counts as: whole numbers for repetitions; other weights add up to the number of rows."""
    shares = as_sample_weight(sample_weight, n_rows)
    if sample_weight is None or np.ndim(sample_weight) == 0:
        return np.ones(n_rows)
    rows = shares * max(count_rows(as_response(sample_weight, n_rows)), float(np.count_nonzero(shares)))
    whole = np.round(rows)
    return np.where((whole > 0) & (np.abs(rows - whole) <= WHOLE), whole, rows)


def row_keys(design: Design, columns: IntArray) -> Keys:
    """A 64-bit hash of some columns of each row; equal rows have equal keys."""
    if isinstance(design, RowBlocks):
        return np.concatenate(design.map_blocks(lambda block: row_keys(block, columns)))
    if isinstance(design, SparseDesign):
        return hash_rows(design.X[:, columns], columns)
    n = design.shape[0]
    key, step = np.zeros(n, dtype=np.uint64), max(1, HASHED_AT_A_TIME // n)
    for a in range(0, columns.size, step):
        key += hash_rows(design.take(columns[a : a + step]), columns[a : a + step])
    return key


def hash_rows(X: Any, columns: IntArray) -> Keys:
    """A 64-bit hash of each row of a dense or sparse X; `columns` are positions, so that hashes of tiles add up."""
    salts = mix(columns.astype(np.uint64) + ONE)
    # adding zero turns -0.0 into 0.0
    if sp.issparse(X):
        zeros, column = mix(salts), np.repeat(np.arange(columns.size), np.diff(X.indptr))
        bits = (X.data.astype(np.float64) + 0.0).view(np.uint64)
        key = np.full(X.shape[0], zeros.sum(dtype=np.uint64))
        np.add.at(key, X.indices, mix(bits ^ salts[column]) - zeros[column])
        return key
    key, step = np.zeros(len(X), dtype=np.uint64), max(1, HASHED_AT_A_TIME // max(len(X), 1))
    for a in range(0, columns.size, step):
        bits = (np.ascontiguousarray(X[:, a : a + step], dtype=np.float64) + 0.0).view(np.uint64)
        key += mix(bits ^ salts[a : a + step]).sum(axis=1, dtype=np.uint64)
    return key


def mix(key: Keys) -> Keys:
    """The finaliser of splitmix64: every input bit changes about half of the output bits."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def canonical_keys(design: Design, rank: IntArray, weight: FloatArray) -> tuple[Keys, Keys]:
    """Two keys per row: one that depends on no order and no units, and one that only equal rows share.

    The first is also shared by rows that nothing can tell apart, because exchanging them and some columns gives the
    same data. The second depends on the order of the columns. A row of weight two is like two equal rows of weight one,
    and rows of weight zero do not count; their keys are zero. `rank` is that of each row's response.
    """
    columns = _telling_columns(design, rank, weight)
    X = design.X[:, columns] if isinstance(design, SparseDesign) else design.take(columns)
    used = weight > 0
    same = np.where(used, hash_rows(X, columns), np.uint64(0))
    n_distinct = np.unique(same[used]).size
    keys = np.zeros_like(same)
    for counted in ROUNDS:
        keys = rank_keys(X, _marks(same, rank, keys, weight, counted), weight)
        if np.unique(keys[used]).size >= n_distinct:
            break
    return keys, same


def _telling_columns(design: Design, rank: IntArray, weight: FloatArray) -> IntArray:
    """All columns; of a very large X, those that go most with the response, whatever their order and units."""
    n, p = design.shape[0], design.n_stored
    if n * p <= MOST_RANKED:
        return np.arange(p)
    q = weight / weight.sum()
    product = np.abs(design.correlate((q * (rank - q @ rank))[None, :])[0]).astype(float)[:p]
    low, high, _ = design.extremes(np.arange(p), weight)
    strength = np.divide(product, high - low, out=np.zeros(p), where=high > low)
    count = min(max(MOST_RANKED // n, FEWEST_TELLING), MOST_TELLING, p)
    least = np.partition(strength, -count)[-count]
    # columns that tie with the last one are all in, or their order would decide
    return np.flatnonzero(strength >= least * (1 - TIE))[: TIES * count]


def rank_keys(X: Any, marks: Keys, weight: FloatArray) -> Keys:
    """Keys of the rows of a dense or sparse X from the ranks within its columns; zero for rows of weight zero."""
    if sp.issparse(X):
        return _sparse_rank_keys(X, marks, weight)
    used = weight > 0
    out, step = np.zeros(weight.size, dtype=np.uint64), max(1, RANKED_AT_A_TIME // max(weight.size, 1))
    for a in range(0, X.shape[1], step):
        columns = np.ascontiguousarray(X[used, a : a + step].T)
        order = np.argsort(columns, axis=1)
        ordered = np.take_along_axis(columns, order, axis=1)
        rank = np.zeros(columns.shape, dtype=np.uint64)
        np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rank[:, 1:])
        hashes = np.empty_like(rank)
        np.put_along_axis(hashes, order, mix(rank + ONE), axis=1)
        salts = (hashes * marks[used]).sum(axis=1, dtype=np.uint64)
        out[used] += (hashes * mix(salts)[:, None]).sum(axis=0, dtype=np.uint64)
    return out


def _sparse_rank_keys(X: sp.csc_array, marks: Keys, weight: FloatArray) -> Keys:
    """The same from the stored values of a sparse matrix: zeros are the base of their column."""
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


def _marks(same: Keys, rank: IntArray, keys: Keys, weight: FloatArray, counted: bool) -> Keys:
    """A hash of response, key and, if counted, weight of one row for all that are equal; zero for the others."""
    used = np.flatnonzero(weight > 0)
    response = mix(rank[used].astype(np.uint64) + ONE)
    _, first, cell = np.unique(mix(same[used]) + response, return_index=True, return_inverse=True)
    shares = np.bincount(cell, weights=weight[used]) / weight[used].sum()
    occurs = np.rint(shares / SHARE).astype(np.uint64) if counted else np.uint64(0)
    out = np.zeros(weight.size, dtype=np.uint64)
    out[used[first]] = mix(mix(mix(keys[used[first]]) + response[first]) + occurs)
    return out
