"""Row vectors: second moments of parts of the rows, the scale of the response, folds and held-out rows.

The choice of held-out rows depends on their positions and the seed; equal rows stay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv

from covey.validation import FloatArray, on_host

if TYPE_CHECKING:
    from covey.designs.protocol import Design

__all__ = [
    "KEY_COLUMNS",
    "MIXED",
    "RESIDUALS",
    "count_rows",
    "hash_rows",
    "hold_out",
    "key_columns",
    "mix",
    "part_grams",
    "row_slices",
    "split_masks",
    "standard_response",
]


Array = NDArray[Any]

# The number of residuals, or of entries of columns, that are in memory at a time (16 MiB).
RESIDUALS = 2**21


def row_slices(n: int, n_columns: int) -> Iterator[slice]:
    """Consecutive rows, as many at a time as fit the memory for entries of columns."""
    step = RESIDUALS // (n_columns + 2) + 1
    return (slice(a, a + step) for a in range(0, n, step))


def part_grams(
    pieces: Iterable[tuple[slice, Array]], shift: Array, y: Array, weights: Sequence[Array]
) -> NDArray[np.float64]:
    """``A' diag(w) A`` with ``A = [1, X - shift, y]`` for every w, summed over pieces of the rows of X.

    X has k columns; y has shape (n,) or (n, m). The result has shape (n_parts, k + 1 + m, k + 1 + m).
    """
    k, m = len(shift), 1 if y.ndim == 1 else y.shape[1]
    out = np.zeros((len(weights), k + 1 + m, k + 1 + m))
    for at, X in pieces:
        A = np.empty((X.shape[0], k + 1 + m))
        A[:, 0], A[:, k + 1 :] = 1.0, y[at].reshape(-1, m)
        np.subtract(X, shift, out=A[:, 1 : k + 1])
        for w, total in zip(weights, out, strict=True):
            used = np.flatnonzero(w[at])
            part = A[used] * np.sqrt(w[at][used])[:, None]
            # BLAS computes only half of a matrix times its transpose
            total += part.T @ part
    return out


def count_rows(weight: FloatArray) -> float:
    """The number of rows, counted by weight in units of the least weight: a row of twice the weight is two rows."""
    return float(weight.sum()) / float(weight[weight > 0].min())


# The number of columns hashed to find equal rows: first a few, then more, and all of them if rows are still equal.
KEY_COLUMNS = (8, 128)

# Within these limits, squared errors of the response, summed over rows, neither overflow nor underflow.
SMALLEST_RESPONSE, LARGEST_RESPONSE = 1e-152, 1e152


def standard_response(y: FloatArray, q: FloatArray, *, centre: bool) -> tuple[FloatArray, float, float]:
    """The response, centred and scaled to unit mean square, without loss of digits for y of 1e150 or 1e-150."""
    used = np.where(q > 0, y, 0.0)
    largest = float(np.abs(used).max())
    if largest == 0:
        return np.zeros_like(y), 0.0, 1.0
    if largest > LARGEST_RESPONSE:
        raise ValueError(f"y has values of {largest:.3g}, whose squares overflow: change the units.")
    unit = np.where(q > 0, y / largest, 0.0)
    mean = float(q @ unit) if centre else 0.0
    unit = np.where(q > 0, unit - mean, 0.0)
    size = float(np.sqrt(q @ (unit * unit)))
    # the round-off error of a constant response is not a signal
    if size <= 8 * np.finfo(float).eps * abs(mean):
        return np.zeros_like(y), mean * largest, 1.0
    if size * largest < SMALLEST_RESPONSE:
        raise ValueError(f"y varies by only {size * largest:.3g}, whose square underflows: change the units.")
    return unit / size, mean * largest, size * largest


def split_masks(n: int, cv: Any, y: FloatArray, labels: Any) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Training and held-out rows of each fold, for anything that scikit-learn accepts as `cv`.

    A Dask array holds labels of the rows, one fold per label.
    """
    if type(cv).__module__.partition(".")[0] == "dask":
        cv = PredefinedSplit(np.unique(on_host(cv), return_inverse=True)[1])
    pairs: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    if not hasattr(cv, "split") and np.iterable(cv):
        given = iter(cv)  # scikit-learn would unpack the pairs without a check
    else:
        given = check_cv(cv, y, classifier=False).split(np.empty((n, 1)), y, labels)
    for number, pair in enumerate(given):
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"{SPLITS}; split {number} is not a pair.")
        learn = _row_mask(pair[0], n, f"training rows of split {number}")
        pairs.append((learn, _row_mask(pair[1], n, f"held-out rows of split {number}")))
    if not pairs:
        raise ValueError(f"{SPLITS}; there are none. A generator can be used only once: give a list.")
    return pairs


SPLITS = "selection must give pairs of training and held-out rows"


def _row_mask(rows: Any, n: int, title: str) -> NDArray[np.bool_]:
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
    design: Design, y: FloatArray, weight: FloatArray, fraction: float, random_state: Any, classes: Any = None
) -> NDArray[np.bool_]:
    """A mask of rows to hold out: about `fraction` of the weight, within every class if `classes` is given.

    The choice depends on the seed and on the positions of the rows: rows are numbered in order, and equal rows get the
    number of the first of them. The values of X and y only determine which rows are equal.
    """
    p = design.shape[1]
    for count in sorted({min(count, p) for count in (*KEY_COLUMNS, p)}):
        keys = design.row_keys(key_columns(p, count))
        n_numbers, all_differ = _count_numbers(y, weight, keys)
        if all_differ:
            break
    if n_numbers < 2:
        raise ValueError(
            "Rows cannot be held out: all rows are equal. Choose another way, for instance selection='ebic'."
        )
    return _held_rows(y, weight, keys, classes, fraction, random_state)


def _held_rows(
    y: FloatArray,
    weight: FloatArray,
    keys: NDArray[np.uint64],
    classes: NDArray[np.intp] | None,
    fraction: float,
    random_state: Any,
) -> NDArray[np.bool_]:
    """The mask, given a key for every row."""
    used, number = row_numbers(y, weight, keys)
    n = int(number.max()) + 1
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


# If rows that differ only in their response have more than this share of the weight, they are not a coincidence.
MIXED = 0.1


def row_numbers(
    y: FloatArray, weight: FloatArray, keys: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of positive weight, and their numbers in order; rows that are equal in X and y have the same number.

    If many rows differ only in their response, as in a table of a few categories, all rows get different
    numbers: equal rows are not repetitions there.
    """
    used = np.flatnonzero(weight > 0)
    keys = keys[used]
    response = hash_rows(np.asarray(y, dtype=float).reshape(len(y), -1)[used])
    _, first, position = np.unique(mix(keys) + response, return_index=True, return_inverse=True)
    alike = np.unique(keys, return_inverse=True)[1]
    several = np.bincount(alike[first], minlength=used.size)[alike] > 1
    if weight[used][several].sum() > MIXED * weight[used].sum():
        return used, np.arange(used.size)
    number = np.empty(first.size, dtype=np.intp)
    number[np.argsort(first)] = np.arange(first.size)
    return used, number[position]


def _count_numbers(y: FloatArray, weight: FloatArray, keys: NDArray[np.uint64]) -> tuple[int, bool]:
    """The number of distinct row numbers, and whether all rows differ."""
    used, number = row_numbers(y, weight, keys)
    response = hash_rows(np.asarray(y, dtype=float).reshape(len(y), -1)[used])
    all_differ = np.unique(mix(keys[used]) + response).size == used.size
    return int(number.max(initial=-1)) + 1, bool(all_differ)


def hash_rows(values: NDArray[Any], columns: NDArray[np.intp] | None = None) -> NDArray[np.uint64]:
    """A 64-bit hash of each row; `columns` are the columns' positions, so that hashes of tiles add up."""
    at = np.arange(values.shape[1]) if columns is None else columns
    # adding zero turns -0.0 into 0.0
    bits = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    return mix(bits.view(np.uint64) ^ mix(at.astype(np.uint64) + np.uint64(1))).sum(axis=1, dtype=np.uint64)


def key_columns(p: int, count: int) -> NDArray[np.intp]:
    """About `count` of p columns, evenly spaced."""
    return np.unique(np.linspace(0, p - 1, min(p, count)).astype(np.intp))


def mix(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every input bit changes about half of the output bits."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
