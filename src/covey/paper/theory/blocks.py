"""Column blocks: read a design a few groups at a time.

X may be a dense array, a scipy sparse matrix, or any `covey.designs.Design`, whose columns are read as dense blocks or,
if they are remote, through their Gram products only. The p x p Gram is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs import DenseDesign, Design, Moments, SparseDesign, as_design, is_table
from covey.groups import Groups
from covey.validation import check_sparse, column_names, name_columns, refuse_odd, whole

__all__ = [
    "Block",
    "column_norms",
    "correlate",
    "cross",
    "dense_columns",
    "fitted",
    "group_spans",
    "read_design",
    "take",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """The columns of the groups ``first:last``, side by side, in the contiguous layout."""

    first: int
    last: int
    starts: NDArray[np.intp]
    columns: Any


class _Remote:
    """Remote columns: their Gram rows, over scale^2, are read when first needed."""

    def __init__(self, design: Design, members: NDArray[np.intp], scale: float) -> None:
        self.design, self.members, self.scale = design, members, scale

    @cached_property
    def gram_rows(self) -> FloatArray:
        """``X_members' X / (n scale^2)``, shape (k, p)."""
        columns = self.design.take(self.members) / self.scale
        return self.design.correlate(columns.T / len(columns)).astype(np.float64) / self.scale


def read_design(X: Any, groups: Any) -> tuple[Any, Groups]:
    """Read a design and its groups: a dense array or a sparse CSC array, both checked, or a `Design` unchanged."""
    design: Any
    if isinstance(X, Design) or not (is_table(X) or sp.issparse(X)):
        design = as_design(X)
        coerced = Groups.coerce(groups, design.shape[1], design.columns)
        return design.X if isinstance(design, DenseDesign | SparseDesign) else design, coerced
    names = column_names(X)
    if sp.issparse(X):
        check_sparse(X, "X")
        design = sp.csc_array(X)
        values = design.data
    else:
        refuse_odd(X, "X")
        try:
            design = X.to_numpy() if names is not None else np.asarray(X)
        except ValueError:  # rows of unequal length
            raise ValueError("X must be a table with rows and columns, all rows of the same length.") from None
        values = design
    if design.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, not an array of shape {design.shape}.")
    n, p = design.shape
    if n < 1 or p < 1:
        raise ValueError(f"X has {n} rows and {p} columns; it needs at least one of each.")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, not {values.dtype}.")
    if not _all_finite(values):
        if sp.issparse(design):
            culprits = np.unique(design.tocoo().coords[1][~np.isfinite(design.tocoo().data)])
        else:
            culprits = np.flatnonzero(~np.isfinite(np.asarray(design, dtype=float)).all(axis=0))
        raise ValueError(f"X has missing or infinite values in {name_columns(culprits, names)}; impute or drop them.")
    return design, Groups.coerce(groups, p, names)


def _all_finite(values: NDArray[Any]) -> bool:
    """Check in chunks, to avoid a mask of the size of X."""
    if values.ndim == 1:
        return bool(np.isfinite(values).all())
    return all(np.isfinite(values[:, j : j + 1024]).all() for j in range(0, values.shape[1], 1024))


def group_spans(groups: Groups, block_columns: int) -> list[tuple[int, int]]:
    """Divide the groups into runs of about `block_columns` columns; a larger group is its own run."""
    block_columns = whole(block_columns, "block_columns")
    spans, first = [], 0
    for l in range(groups.n_groups):
        if l > first and groups.starts[l + 1] - groups.starts[first] > block_columns:
            spans.append((first, l))
            first = l
    spans.append((first, groups.n_groups))
    return spans


def take(X: Any, groups: Groups, first: int, last: int, scale: float = 1.0) -> Block:
    """Fetch the columns of the groups ``first:last``, divided by `scale`."""
    begin, end = groups.starts[first], groups.starts[last]
    members = groups.members[begin:end]
    if isinstance(X, Design):
        columns: Any = X.take(members) if X.reads_columns else _Remote(X, members, scale)
        if isinstance(columns, _Remote):
            return Block(first, last, np.asarray(groups.starts[first : last + 1] - begin, dtype=np.intp), columns)
    elif members[-1] - members[0] + 1 == members.size and bool(np.all(np.diff(members) == 1)):
        # consecutive: a view, no copy
        columns = X[:, members[0] : members[-1] + 1]
    else:
        columns = X[:, members]
    if columns.dtype != np.float64:
        columns = columns.astype(np.float64)
    if scale != 1.0:
        columns = columns / scale
    return Block(first, last, np.asarray(groups.starts[first : last + 1] - begin, dtype=np.intp), columns)


def cross(left: Block, right: Block, n: int) -> FloatArray:
    """The cross Gram ``left' right / n``, dense and C-contiguous."""
    if isinstance(left.columns, _Remote):
        return np.ascontiguousarray(left.columns.gram_rows[:, right.columns.members])
    product = left.columns.T @ right.columns
    if sp.issparse(product):
        product = product.toarray()
    product = np.ascontiguousarray(product)
    product /= n
    return product


def dense_columns(X: Any, columns: NDArray[np.intp]) -> FloatArray:
    """Some columns as a dense float64 array."""
    if isinstance(X, Design):
        return X.take(columns)
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def correlate(X: Any, r: FloatArray) -> FloatArray:
    """``X'r``, shape (p,)."""
    if isinstance(X, Design):
        return _moments(X, r).correlation * X.shape[0]
    return np.asarray(X.T @ r, dtype=np.float64)


def fitted(X: Any, w: FloatArray) -> FloatArray:
    """``X w``, reading only columns with nonzero coefficients."""
    used = np.flatnonzero(w)
    if isinstance(X, Design):
        return X.predict(used, w[None, used], np.zeros(1))[:, 0]
    return dense_columns(X, used) @ w[used]


def column_norms(X: Any) -> FloatArray:
    """Euclidean norm of every column over sqrt(n), without overflow."""
    n, p = X.shape
    if isinstance(X, Design):
        # powers of two near the largest values prevent overflow and are exact
        scale = np.exp2(-np.frexp(X.largest())[1].clip(-1000, 1000).astype(float))
        return np.sqrt(_moments(X, np.full(n, 1 / n), scale).variance) / scale
    if sp.issparse(X):
        largest = np.zeros(p)
        filled = np.diff(X.indptr) > 0
        magnitudes = np.abs(X.data.astype(np.float64))
        if magnitudes.size:
            largest[filled] = np.maximum.reduceat(magnitudes, X.indptr[:-1][filled])
        scale = np.where(largest > 0, largest, 1.0)
        scaled = magnitudes / np.repeat(scale, np.diff(X.indptr))
        squares = np.zeros(p)
        if scaled.size:
            squares[filled] = np.add.reduceat(scaled**2, X.indptr[:-1][filled])
        return scale * np.sqrt(squares / n)
    out = np.empty(p)
    for begin in range(0, p, 1024):
        chunk = dense_columns(X, np.arange(begin, min(begin + 1024, p)))
        largest = np.abs(chunk).max(axis=0)
        scale = np.where(largest > 0, largest, 1.0)
        out[begin : begin + 1024] = scale * np.sqrt(np.mean((chunk / scale) ** 2, axis=0))
    return out


def _moments(X: Design, r: Any, scale: FloatArray | None = None) -> Moments:
    """Sums over rows, column by column."""
    p = X.shape[1]
    alone = np.arange(p), np.arange(p + 1)
    q = np.full(X.shape[0], 1 / X.shape[0])
    return X.moments(r, q, *alone, centre=False, scale=np.ones(p) if scale is None else scale)
