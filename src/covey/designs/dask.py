"""Dask arrays and DataFrames: X and all row vectors stay on the cluster.

The rows are read in full-width chunks. Each operation is one task per chunk (`covey.designs.row_blocks`) and a tree of
sums, on the active scheduler; only numbers per column, or per pair of awake columns, are returned. Row vectors (y,
weights, masks) are Dask arrays with the chunks of X. The order of the sums is fixed, so a result does not depend on
which worker computed what, or whether one was lost.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from covey.designs.cluster import WorkersLostError, compute, first_failure, keep
from covey.designs.dask_errors import ResidualError
from covey.designs.protocol import Design, Moments
from covey.designs.row_blocks import (
    Announced,
    ChunkError,
    Place,
    Spread,
    Summary,
    add,
    block_columns,
    block_count,
    block_extremes,
    block_gram,
    block_gram_parts,
    block_keys,
    block_largest,
    block_moments,
    block_predictions,
    block_product,
    block_residual_products,
    block_response,
    block_spread,
    block_triangles,
    combined,
    join_moments,
    join_spreads,
    join_triangles,
    largest_of,
    least_of,
    on_block,
    summarise,
)
from covey.designs.rows import check_size, check_spread
from covey.validation import name_columns

__all__ = ["DaskDesign", "wrap"]

Array = NDArray[Any]

# The number of results that one task adds up: a tree this wide keeps every sum small and every worker busy.
FAN_IN = 8


def wrap(X: Any, *, name: str = "X") -> DaskDesign:
    """The design of a Dask array or DataFrame."""
    if isinstance(X, da.Array):
        return DaskDesign(X, name=name)
    if _is_frame(X) and X.ndim == 2:
        _check_frame(X, name)
        return DaskDesign(X.to_dask_array(), columns=tuple(map(str, X.columns)), name=name)
    raise ValueError(
        f"{name} is a {type(X).__module__}.{type(X).__name__}; Dask arrays and DataFrames with two dimensions are "
        "supported: convert it with dask.array.from_delayed, Bag.to_dataframe or Series.to_frame."
    )


class DaskDesign(Design):
    """A Dask array behind the `Design` protocol.

    X is read once for the moments and once for each batch of groups that wakes up. Persist it first
    (``X = X.persist()``) if the cluster has the memory: otherwise every pass computes its chunks again.

    Parameters
    ----------
    X : dask.array.Array of float32 or float64, shape (n, p)
        Chunks of unknown length are measured once. Chunks that do not span all columns are merged. They may be
        scipy's sparse matrices.
    columns : sequence of str or None
        Column names, for messages and groups.
    name : str
        The name of X in messages.
    """

    reads_columns = False
    holds_rows = False

    def __init__(self, X: da.Array, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        super().__init__(columns=columns, name=name)
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions (rows, columns), not shape {X.shape}.")
        if X.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"{name} is a Dask array of dtype {X.dtype}; float32 or float64 is needed: "
                f"pass {name}.astype('float64')."
            )
        X = _measured(X, name)
        self.X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        if 0 in self.X.shape:
            raise ValueError(f"{name} is empty: shape {self.X.shape}.")
        self.counts: tuple[int, ...] = self.X.chunks[0]
        firsts = np.concatenate([[0], np.cumsum(self.counts)])
        self.places = [Place(i, int(firsts[i]), count) for i, count in enumerate(self.counts)]
        self.announced = Announced(
            int(self.X.shape[1]), self.X.dtype, None if columns is None else tuple(columns), name
        )
        self.blocks = _blocks(self.X)
        self._known: dict[str, list[Summary]] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return np.dtype(self.X.dtype)

    # ------------------------------------------------------------------ row vectors

    def rows(self, values: Any, *, name: str = "y") -> da.Array:
        """A finite float64 Dask vector with the chunks of X, persisted on the workers."""
        return self._checked(values, name)[0]

    def weights(self, values: Any) -> da.Array:
        """Row weights that add up to one; equal ones for None."""
        n = self.shape[0]
        if values is None:
            return da.full(n, 1.0 / n, chunks=(self.counts,))
        vector, summaries = self._checked(values, "sample_weight")
        for place, own in zip(self.places, summaries, strict=True):
            if own.least < 0:
                last = place.first + place.n_rows - 1
                raise ValueError(
                    f"sample_weight must not be negative; among the rows {place.first} to {last} is {own.least:g}."
                )
        largest = max(own.largest for own in summaries)
        if largest == 0:
            raise ValueError("sample_weight is zero in every row.")
        total = sum(own.scaled_sum * (own.largest / largest) for own in summaries)
        (shares,) = keep([vector / largest / total])
        return shares

    def total(self, values: Any) -> float:
        """The sum of a row vector."""
        return float(self._compute(self._vector(values, "values").sum()))

    def count(self, weight: Any) -> float:
        """The number of rows, counted by weight in units of the least weight."""
        blocks = _blocks(da.asarray(weight).rechunk((self.counts,)))
        totals, least = self._compute(delayed(np.array)([delayed(block_count)(own) for own in blocks])).T
        return float(totals.sum() / least.min())

    def standard(self, y: Any, q: Any, *, centre: bool) -> tuple[da.Array, float, float]:
        """The response, centred and scaled to unit mean square, with its mean and its scale."""
        top, weight, mean, variance = self.response_scale(y, q)
        zero = da.zeros(self.shape[0], chunks=(self.counts,))
        if top == 0:
            return zero, 0.0, 1.0
        check_size(top)
        level = float(weight @ mean) if centre else 0.0
        size = float(np.sqrt(weight @ (variance + (mean - level) ** 2)))
        # the round-off error of a constant response is not a signal
        if size <= 8 * np.finfo(float).eps * abs(level):
            return zero, level * top, 1.0
        check_spread(size * top)
        (unit,) = keep([da.where(q > 0, (y / top - level) / size, 0.0)])
        return unit, level * top, size * top

    def response_scale(self, y: Any, q: Any) -> tuple[float, Array, Array, Array]:
        """The largest absolute y where q > 0, and the weight, mean and variance of each chunk in units of it."""
        own = (_blocks(da.asarray(vector).rechunk((self.counts,))) for vector in (y, q))
        parts = self._compute(delayed(np.array)([delayed(block_response)(*pair) for pair in zip(*own, strict=True)]))
        weight, largest, mean, variance = parts.T
        top = float(largest.max())
        ratio = largest / (top or 1.0)
        return top, weight, mean * ratio, variance * ratio**2

    def row_keys(self, columns: Array) -> da.Array:
        """A 64-bit hash of some columns of each row, shape (n,). One pass."""
        self.n_passes += 1
        parts = self._each_block(block_keys, [], columns)
        keys = [da.from_delayed(own, (n,), dtype=np.uint64) for own, n in zip(parts, self.counts, strict=True)]
        (kept,) = keep([da.concatenate(keys)])
        return kept

    def together(self, function: Callable[..., Array], *vectors: Any) -> da.Array:
        """``function(*vectors)`` of whole row vectors, which are gathered on one worker."""
        (made,) = keep([self._on_whole(function, vectors)])
        kind = self._compute(delayed(_type_of)(made))
        parts = [
            da.from_delayed(delayed(_slice)(made, place.first, place.n_rows), (place.n_rows,), dtype=kind)
            for place in self.places
        ]
        (kept,) = keep([da.concatenate(parts)])
        return kept

    def fact(self, function: Callable[..., Any], *vectors: Any) -> Any:
        """A small result computed from whole row vectors, which are gathered on one worker."""
        return self._compute(self._on_whole(function, vectors))

    def _on_whole(self, function: Callable[..., Any], vectors: Sequence[Any]) -> Any:
        blocks = [_blocks(da.asarray(vector).rechunk({0: self.counts})) for vector in vectors]
        return delayed(function)(*[delayed(np.concatenate)(own) for own in blocks])

    def splits(self, cv: Any, y: Any, labels: Any) -> list[tuple[da.Array, da.Array]]:
        """Masks of the training and the held-out rows of each fold."""
        return [(~held, held) for held in self._folds(cv)]

    def _folds(self, cv: Any) -> list[da.Array]:
        """Masks of the rows that each fold holds out, made on the cluster."""
        if isinstance(cv, da.Array):
            marks = self._vector(cv, "cv")
            found = self._compute(delayed(_values_of)([delayed(np.unique)(block) for block in _blocks(marks)]))
            return [marks.rechunk((self.counts,)) == mark for mark in found]
        folds = cv.get_n_splits() if isinstance(cv, KFold) and not cv.shuffle else cv
        if isinstance(folds, bool) or not isinstance(folds, numbers.Integral):
            raise ValueError(
                f"For rows on a cluster, selection must be a number of folds, KFold without shuffling, or a Dask array "
                f"of labels, one fold per label, not {cv!r}."
            )
        n, k = self.shape[0], int(folds)
        if not 2 <= k <= n:
            raise ValueError(f"{k} folds need at least 2 and at most as many as there are rows, {n}.")
        sizes = np.full(k, n // k) + (np.arange(k) < n % k)
        ends = np.cumsum(sizes)
        row = da.arange(n, chunks=(self.counts,))
        return [(row >= end - size) & (row < end) for end, size in zip(ends, sizes, strict=True)]

    # ------------------------------------------------------------------ passes over X

    def moments(self, y: Any, q: Any, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`."""
        self.n_passes += 1
        parts = self._each_block(block_moments, [y, q], members, starts, centre, scale)
        moments: Moments = self._reduce(join_moments, parts, starts, scale).moments
        return moments

    def gram_rows(self, q: Any, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p). One pass."""
        self.n_passes += 1
        sums = self._reduce(add, self._each_block(block_gram, [q], columns, loadings, offset))
        rows: Array = sums[:-1, :-1]
        if offset.any():
            # round-off error left in the mean of Z would be multiplied by the means of X
            rows = rows - np.outer(sums[:-1, -1], sums[-1, :-1])
        return rows

    def triangles(self, q: Any, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of ``sqrt(q) (X[:, piece] - mean) * gain`` for several sets of columns. One pass."""
        self.n_passes += 1
        parts = self._each_block(block_triangles, [q], pieces, means, gains)
        triangles: list[Array] = self._reduce(join_triangles, parts)
        return triangles

    def extremes(self, columns: Array, weight: Any) -> Array:
        """The least and the largest value of some columns over the rows of positive weight; shape (2, k). One pass."""
        self.n_passes += 1
        low, minus_high = self._reduce(least_of, self._each_block(block_extremes, [weight], columns))
        return np.stack([low, -minus_high])

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,). One pass."""
        self.n_passes += 1
        largest: Array = self._reduce(largest_of, self._each_block(block_largest, []))
        return largest

    def errors(self, y: Any, weight: Any) -> ResidualError:
        """The weighted mean squared error of linear models on the rows of positive weight."""
        return ResidualError(self, y, weight)

    def spread(self, y: Any, h: Any, columns: Array, coef: Array, intercept: float, unit: float) -> Spread:
        """Means and second moments of some columns and of a model's residual over `unit`, with row weights h."""
        spread: Spread = self._reduce(
            join_spreads, self._each_block(block_spread, [y, h], columns, coef, intercept, unit)
        )
        return spread

    def correlate(self, R: Any) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p). One pass."""
        self.n_passes += 1
        rows = da.asarray(R).T.rechunk((self.counts, -1))
        product: Array = self._reduce(add, self._each_block(block_product, [rows]))
        return product

    def residual_products(
        self, y: Any, weights: Sequence[Any], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``; (m, p)."""
        self.n_passes += 1
        vectors = [y, self._side_by_side(weights)]
        parts = self._each_block(block_residual_products, vectors, which, columns, coefs, intercepts)
        products: Array = self._reduce(add, parts)
        return products

    def gram_parts(self, columns: Array, shift: Array, y: Any, weights: Sequence[Any]) -> Array:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w; (n_parts, k + 2, k + 2)."""
        self.n_passes += 1
        parts = self._each_block(block_gram_parts, [y, self._side_by_side(weights)], columns, shift)
        grams: Array = self._reduce(add, parts)
        return grams

    def take(self, columns: Array) -> Any:
        """Some columns as a Dask array of float64, shape (n, k): nothing is read yet."""
        return self._each_row(block_columns, len(columns), columns)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Any:
        """``X[:, columns] coefs' + intercepts`` as a Dask array, shape (n, n_models): nothing is read yet."""
        return self._each_row(block_predictions, len(coefs), columns, coefs, intercepts)

    # ------------------------------------------------------------------ tasks for the scheduler

    def _side_by_side(self, vectors: Sequence[Any]) -> da.Array:
        """Row vectors as the columns of one matrix, with the chunks of X."""
        return da.stack([da.asarray(vector) for vector in vectors], axis=1).rechunk((self.counts, -1))

    def _vector(self, values: Any, name: str) -> da.Array:
        """Convert any row vector to a Dask vector of n entries."""
        n = self.shape[0]
        if _is_frame(values):
            same = values.npartitions == len(self.counts)
            values = values.to_dask_array(lengths=list(self.counts) if same else True)
        if not isinstance(values, da.Array):
            values = da.from_array(np.asarray(values), chunks=-1)
        if values.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold numbers, not {values.dtype}.")
        if values.ndim == 0:
            values = da.full(n, values, chunks=(self.counts,))
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension, not shape {values.shape}.")
        values = _measured(values, name)
        if values.shape[0] != n:
            raise ValueError(f"{name} has {values.shape[0]} entries, but {self.name} has {n} rows.")
        return values

    def _checked(self, values: Any, name: str) -> tuple[da.Array, list[Summary]]:
        """A row vector persisted on the workers and checked to be finite, with a summary of each chunk."""
        if isinstance(values, da.Array) and values.name in self._known:
            return values, self._known[values.name]
        vector = self._vector(values, name).astype(np.float64).rechunk((self.counts,))
        (vector,) = keep([vector])
        summaries = self._compute(delayed(list)([delayed(summarise)(block) for block in _blocks(vector)]))
        found = zip(self.places, summaries, strict=True)
        bad = [(place.first + own.first_bad, own.n_bad) for place, own in found if own.n_bad]
        if bad:
            total = sum(count for _, count in bad)
            raise ValueError(f"{name} has missing or infinite values, first in row {bad[0][0]} ({total} in all).")
        self._known[vector.name] = summaries
        return vector, summaries

    def _each_block(self, function: Callable[..., Any], vectors: Sequence[Any], *shared: Any) -> list[Any]:
        """Tasks ``function(block, *blocks of the row vectors, *shared)``, one per chunk."""
        # sent to the cluster once, not once per chunk
        common = delayed((self.announced, shared), traverse=False)
        own = [_blocks(da.asarray(vector).rechunk({0: self.counts})) for vector in vectors]
        return [
            delayed(on_block)(function, block, place, list(parts), common)
            for block, place, *parts in zip(self.blocks, self.places, *own, strict=True)
        ]

    def _each_row(self, function: Callable[..., Any], width: int, *shared: Any) -> da.Array:
        """A Dask array with the rows of X and `width` columns, made block by block."""
        parts = [
            da.from_delayed(part, (count, width), dtype=np.float64)
            for part, count in zip(self._each_block(function, [], *shared), self.counts, strict=True)
        ]
        return da.concatenate(parts)

    def _reduce(self, combine: Callable[..., Any], parts: list[Any], *shared: Any) -> Any:
        """Combine parts into one value, ``combine(parts, *shared)``, by a tree."""
        common = delayed(shared, traverse=False)
        while len(parts) > 1:
            parts = [delayed(combined)(combine, parts[i : i + FAN_IN], common) for i in range(0, len(parts), FAN_IN)]
        return self._compute(parts[0])

    def _compute(self, task: Any) -> Any:
        """The value of a task; if a chunk cannot be read, the error names it."""
        try:
            return compute(task)[0]
        except (WorkersLostError, ChunkError):
            raise
        except Exception as error:
            failure = first_failure([delayed(_length)(block) for block in self.blocks])
            if failure is None:
                raise
            i, reason = failure
            title = self.announced.title(self.places[i])
            raise ChunkError(f"{title} cannot be read: {type(reason).__name__}: {reason}") from error


def _is_frame(X: Any) -> bool:
    """Whether X is a Dask DataFrame or Series, decided without importing their dependencies."""
    return hasattr(type(X), "to_dask_array")


def _blocks(array: da.Array) -> list[Any]:
    """The chunks of an array that is chunked along rows, as tasks."""
    return list(array.to_delayed().ravel())


def _measured(array: da.Array, name: str) -> da.Array:
    """The array with known chunk lengths, which DataFrames do not have."""
    if not np.isnan(array.shape[0]):
        return array
    # the first of several chunks side by side is enough
    tasks = [delayed(_length)(np.ravel(side)[0]) for side in array.to_delayed()]
    try:
        lengths = compute(*tasks)
    except WorkersLostError:
        raise
    except Exception as error:
        i, reason = first_failure(tasks) or (0, error)
        raise ChunkError(f"Chunk {i} of {name} cannot be read: {type(reason).__name__}: {reason}") from error
    return da.Array(array.dask, array.name, (lengths, *array.chunks[1:]), meta=array._meta)


def _values_of(parts: list[Array]) -> Array:
    return np.unique(np.concatenate(parts))


def _type_of(values: Array) -> np.dtype[Any]:
    return values.dtype


def _slice(values: Array, first: int, count: int) -> Array:
    return values[first : first + count]


def _length(block: Any) -> int:
    return int(block.shape[0])


def _check_frame(X: Any, name: str) -> None:
    """Refuse columns that do not hold floats, before anything is read."""
    odd = [j for j, dtype in enumerate(X.dtypes) if dtype not in (np.float32, np.float64)]
    if odd:
        kinds = ", ".join(sorted({str(X.dtypes.iloc[j]) for j in odd}))
        raise ValueError(
            f"{name} is a Dask DataFrame with dtype {kinds} in {name_columns(odd, tuple(map(str, X.columns)))}; floats "
            f"are needed: pass {name}.astype('float64'), and encode text first (dask.dataframe.get_dummies)."
        )
