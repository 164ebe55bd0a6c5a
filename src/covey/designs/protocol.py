"""Design: the few operations through which the rest of the library accesses X.

X is read once for its moments, and then only for products with many models and for Gram matrices of some columns, so
any kind of storage that implements these operations supports the method. Nothing here centres, scales or copies
X: `covey.preprocess` does that on the results, with each group's small factor. Row vectors (the response, weights,
masks) are numpy arrays in the memory of this process for every kind of storage.

A new kind of storage subclasses `Design`, implements `take`, overrides the other operations if it has a faster way, and
is added to `KINDS` and to `tests/storage_kinds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covey.designs.moments import Moments, tiled_moments
from covey.validation import Array, ArrayOrTensor, name_columns, on_host, pandas_frame

__all__ = ["RESIDUALS", "Design", "Models", "as_design", "is_table", "row_slices"]

# Numbers that are compared at a time: 1 MiB.
COMPARED_AT_A_TIME = 2**17

# Residuals of at least this many models are multiplied with X together: with fewer, reading X would take longer.
FEWEST_MODELS = 16

# The number of residuals, or of entries of columns, that are in memory at a time (16 MiB).
RESIDUALS = 2**21

# Kinds of X other than a table in memory: the library that defines the type, and the module whose `wrap` handles it.
# The module is imported when it is needed, so that unused libraries cost nothing.
KINDS: dict[str, str] = {
    "dask": "covey.designs.dask",
    "scipy": "covey.designs.sparse",
    "torch": "covey.designs.torch",
    "zarr": "covey.designs.zarr",
}
IN_MEMORY = "covey.designs.dense"

# What objects have that numpy reads.
READ_BY_NUMPY = ("__array__", "__array_interface__", "to_numpy")


@dataclass(frozen=True)
class Models:
    """Linear models on some columns, each with its weights of the rows, whose residuals are multiplied with X.

    Attributes
    ----------
    y : ndarray, shape (n, m)
    weights : sequence of ndarray, shape (n,)
        Zero for rows that are not used.
    which : ndarray of int, shape (n_models,)
        The weights of each model.
    columns : ndarray of int, shape (k,)
    coefs, intercepts : ndarray, shape (n_models, m, k) and (n_models, m)
    kept : dict or None
        Where a design may keep what it needs again for the same y and weights.
    """

    y: Array
    weights: Sequence[Array]
    which: Array
    columns: Array
    coefs: Array
    intercepts: Array
    kept: dict[str, Any] | None = None


class Design(ABC):
    """A matrix X of n rows and p columns, in any kind of storage.

    ``q`` below are row weights that add up to one; a subset of the rows is selected by giving the others weight zero.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns.
    dtype : numpy dtype
        float32 or float64: the precision of products.
    columns : sequence of str or None
        Column names, for messages and groups.
    name : str
        The name of X in messages.
    row_names : ndarray of str or None
        The names of the rows, such as ids of samples.
    n_passes : int
        The number of passes over X so far.
    reads_columns : bool
        Whether k columns can be read as an (n, k) array at a cost proportional to k; otherwise `take` reads all of X.
    keeps_products : bool
        Whether `residual_products` keeps products with columns, so that many models cost little more than a few.
    on_device : bool
        Whether X is on a device, where products are computed.
    tile : int
        The number of entries that `take` returns at a time in `moments` and `correlate`.
    """

    row_names: NDArray[np.object_] | None = None
    reads_columns: bool = True
    keeps_products: bool = False
    on_device: bool = False
    tile: int = RESIDUALS

    def __init__(self, shape: Sequence[int], dtype: DTypeLike, *, columns: Sequence[str] | None, name: str) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = np.dtype(dtype)
        self.columns = columns
        self.name = name
        self.n_passes = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} rows, {self.shape[1]} columns, {self.dtype})"

    @abstractmethod
    def take(self, columns: Array) -> NDArray[np.float64]:
        """Some columns as a dense float64 array, shape (n, k)."""

    # ------------------------------------------------------------------ operations that some kinds have faster

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`.

        One pass. Group l has the columns ``members[starts[l]:starts[l + 1]]``. A non-finite value raises a `ValueError`
        that names its column.
        """
        self.n_passes += 1
        moments = tiled_moments(self.take, self.tile, y, q, members, starts, centre=centre, scale=scale)
        self.refuse(members[~np.isfinite(moments.variance)], overflow=False)
        return moments

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p). One pass."""
        self.n_passes += 1
        R = np.ascontiguousarray(R, dtype=self.dtype)
        n, p = self.shape
        out, step = np.empty((len(R), p), dtype=self.dtype), max(1, self.tile // n)
        for a in range(0, p, step):
            out[:, a : a + step] = R @ self.take(np.arange(a, min(a + step, p)))
        return out

    def _pieces(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        """Some columns, a few rows at a time: which rows, and a dense array."""
        yield slice(0, self.shape[0]), self.take(columns)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
        coefs = np.asarray(coefs).T
        return np.concatenate([X @ coefs + intercepts for _, X in self._pieces(columns)])

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w. At most one pass.

        The parts are disjoint: no row has a positive weight in two of them. `y` has shape (n,) or (n, m); the result
        has shape (n_parts, k + 1 + m, k + 1 + m).
        """
        k, m = len(shift), 1 if y.ndim == 1 else y.shape[1]
        out = np.zeros((len(weights), k + 1 + m, k + 1 + m))
        for rows, X in self._pieces(columns):
            A = np.empty((X.shape[0], k + 1 + m))
            A[:, 0], A[:, k + 1 :] = 1.0, y[rows].reshape(-1, m)
            np.subtract(X, shift, out=A[:, 1 : k + 1])
            for w, total in zip(weights, out, strict=True):
                used = np.flatnonzero(w[rows])
                part = A[used] * np.sqrt(w[rows][used])[:, None]
                # BLAS computes only half of a matrix times its transpose; `refuse` names columns whose squares overflow
                with np.errstate(over="ignore", invalid="ignore"):
                    total += part.T @ part
        return out

    def residual_products(self, models: Models) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``.

        The result has shape (n_models, m, p). Residuals are computed in double precision for any X. At most one pass
        over an X that is streamed.
        """
        (n, p), (n_models, m, k) = self.shape, models.coefs.shape
        weights, step = np.stack(list(models.weights)), max(1, max(FEWEST_MODELS, RESIDUALS // n) // m)
        out = np.empty((n_models, m, p), dtype=self.dtype)
        for a in range(0, n_models, step):
            at = slice(a, a + step)
            B, levels = models.coefs[at].reshape(-1, k), models.intercepts[at].ravel()
            R = models.y.T - self.predict(models.columns, B, levels).T.reshape(-1, m, n)
            R *= weights[models.which[at]][:, None, :]
            out[at] = self.correlate(R.reshape(-1, n)).reshape(-1, m, p)
        return out

    def gradient_norms(self, problem: Any, R: ArrayOrTensor) -> NDArray[np.float64]:
        """The group norms of ``R X`` in the coordinates of a `WorkingProblem`, for R of shape (k, n); (k, n_groups).

        Products with all columns take up to an eighth of the memory of X at a time; an X that is streamed is read once.
        """
        R = on_host(R)
        step = max(FEWEST_MODELS, self.shape[0] // 8) if self.reads_columns else max(len(R), 1)
        out = np.empty((len(R), problem.ranks.size))
        for a in range(0, len(R), step):
            out[a : a + step] = problem.all_norms(self.correlate(R[a : a + step]))
        return out

    def extremes(self, columns: Array, weight: Array) -> Array:
        """The least and the largest value of some columns over the rows of positive weight; shape (3, k).

        The last row is one for columns that have no other values, and zero for the others.
        """
        used = np.flatnonzero(weight > 0)
        out = np.empty((3, len(columns)))
        step = max(1, COMPARED_AT_A_TIME // self.shape[0])
        for a in range(0, len(columns), step):
            at = slice(a, a + step)
            X = self.take(columns[at])
            X = X if used.size == len(X) else X[used]
            low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
            out[:, at] = low, high, ((low == X) | (high == X)).all(axis=0)
        return out

    def largest(self) -> NDArray[np.float64]:
        """The largest absolute value of each column, shape (p,); used only for constant or extreme columns."""
        n, p = self.shape
        return np.abs(self.extremes(np.arange(p), np.ones(n))[:2]).max(axis=0)

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of ``sqrt(q) (X[:, piece] - mean) * gain`` for several sets of columns. At most one pass.

        R has as many columns as the piece and at most as many rows; pivoting is left to the caller.
        """
        root = np.sqrt(q)[:, None]
        return [
            np.asarray(np.linalg.qr((self.take(piece) - mean) * gain * root, mode="r"))
            for piece, mean, gain in zip(pieces, means, gains, strict=True)
        ]

    # ------------------------------------------------------------------ X on a device, and X of functions of columns

    def put(self, values: Array) -> ArrayOrTensor:
        """An array where X is stored: the array itself, or a tensor on the device of X."""
        return values

    def device_columns(self, columns: Array) -> ArrayOrTensor:
        """Some columns in float64 where X is stored: a numpy array, or a tensor on the device of X; shape (n, k)."""
        return self.take(columns)

    @property
    def n_stored(self) -> int:
        """The number of columns, from the first on, of which all others are functions: they tell rows apart."""
        return self.shape[1]

    # ------------------------------------------------------------------ for messages

    def check_labels(self, values: object, name: str) -> None:
        """Raise if values with one entry per row have other labels than the rows of X, where these have names."""
        if self.row_names is None or not hasattr(values, "index"):
            return
        import pandas as pd

        index = values.index
        if not isinstance(index, pd.Index) or isinstance(index, pd.RangeIndex | pd.MultiIndex):
            return
        labels = index.map(str)
        if len(labels) != self.shape[0] or (same := labels == self.row_names).all():
            return
        # numbers that are no names of rows only count them
        if labels.isin(self.row_names).any() or not pd.api.types.is_numeric_dtype(index):
            row = int(np.argmin(same))
            raise ValueError(
                f"{name} has the label {labels[row]!r} in row {row}, where {self.name} has {self.row_names[row]!r}: "
                f"give {name}.loc[X.row_names], in the order of {self.name}."
            )

    def refuse(self, bad: Array, *, overflow: bool = True) -> None:
        """Raise if columns with infinite moments have missing or infinite values, or if only their squares overflow."""
        if not np.size(bad):
            return
        infinite = np.asarray(bad)[~np.isfinite(self.largest()[bad])]
        if infinite.size:
            where = name_columns(infinite, self.columns)
            raise ValueError(f"{self.name} has missing or infinite values in {where}; impute or drop them.")
        if overflow:
            where = name_columns(bad, self.columns)
            raise ValueError(
                f"{self.name} has values in {where} whose squares overflow beside the others: change the units, or "
                "correct them."
            )


def as_design(X: object, *, name: str = "X") -> Design:
    """Wrap X in the design for its kind of storage; a `Design` is returned unchanged.

    >>> import numpy as np
    >>> as_design(np.eye(3, 5)).shape
    (3, 5)
    """
    if isinstance(X, Design):
        return X
    X = pandas_frame(X, name)
    design: Design = import_module(_kind(X, name)).wrap(X, name=name)
    return design


def is_table(X: object, *, name: str = "X") -> bool:
    """Whether X is read by numpy as a table in memory, rather than by a design for its kind of storage."""
    return not isinstance(X, Design) and _kind(X, name) == IN_MEMORY


def _kind(X: object, name: str) -> str:
    """The module that wraps X; an X that numpy would turn into an array of one object is refused."""
    if isinstance(X, np.memmap):
        return "covey.designs.memmap"
    for base in type(X).__mro__:
        if (root := base.__module__.partition(".")[0]) in KINDS:
            return KINDS[root]
    if not isinstance(X, list | tuple) and not any(hasattr(X, mark) for mark in READ_BY_NUMPY):
        hint = " For a path use covey.open." if isinstance(X, str | PurePath) else ""
        hint = " For an AnnData object use covey.from_anndata." if hasattr(X, "obs_names") else hint
        raise ValueError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, which covey cannot read: pass a numpy array or "
            "anything that numpy.asarray reads, a pandas or polars DataFrame, a scipy sparse matrix, a numpy.memmap, a "
            "folder of Parquet (covey.designs.ParquetDesign), a Zarr array, a Dask array or DataFrame, or a torch "
            f"tensor; convert with {name}.to_numpy(), numpy.asarray({name}) or scipy.sparse.csr_array({name}).{hint}"
        )
    return IN_MEMORY


def row_slices(n: int, n_columns: int) -> Iterator[slice]:
    """Consecutive rows, as many at a time as fit the memory for entries of columns."""
    step = RESIDUALS // (n_columns + 2) + 1
    return (slice(a, a + step) for a in range(0, n, step))
