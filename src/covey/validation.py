"""Checks of user input, once at the public surface; messages name the offending value and the remedy."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Array", "ArrayOrTensor", "Dtype", "FloatArray", "IntArray", "MatrixLike", "PerRow", "Stored", "as_int_vector",
    "as_matrix", "as_numbers", "as_numeric_matrix", "as_response", "as_sample_weight", "boolean", "check_scale",
    "check_sparse", "column_names", "finite_response", "is_sparse", "is_tensor", "last_step", "listed", "name_columns",
    "on_host", "one_of", "one_value", "pandas_frame", "positive", "read_row_labels", "real", "refuse_odd",
    "response_numbers", "some", "whole",
]  # fmt: skip

Array = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
Dtype: TypeAlias = np.dtype[Any]
# Where X lives: a numpy array, or a tensor on a device.
ArrayOrTensor: TypeAlias = Any
IntArray = NDArray[np.intp]
T = TypeVar("T")

# Tensors of at least this many bytes are copied from a device to pinned memory, which is many times as fast.
PINNED = 2**20


class Stored(Protocol):
    """A matrix or table that may be stored anywhere: DataFrames, sparse matrices, tensors, a `covey.designs.Design`."""

    @property
    def shape(self) -> tuple[int, ...]: ...


MatrixLike: TypeAlias = ArrayLike | Stored  # what is accepted as X
PerRow: TypeAlias = ArrayLike | None  # weights, offsets, labels: one per row, or none


def column_names(X: object) -> tuple[str, ...] | None:
    """The column names of a DataFrame (pandas, polars, ...); None for anything else."""
    columns = getattr(X, "columns", None)
    return tuple(map(str, columns)) if columns is not None and hasattr(X, "to_numpy") else None


def pandas_frame(values: Any, name: str = "X") -> Any:
    """Convert a table of another library (polars, pyarrow, cudf, ...) to a pandas DataFrame; leave others unchanged.

    Columns are converted one by one, so that no further library is needed.
    """
    if hasattr(values, "to_native"):  # narwhals' wrapper
        values = values.to_native()
    if type(values).__module__.partition(".")[0] in ("pandas", "dask"):
        return values
    if hasattr(values, "collect") and hasattr(values, "collect_schema") and not hasattr(values, "to_numpy"):
        raise ValueError(f"{name} is lazy, a {type(values).__name__}: pass {name}.collect().")
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__dataframe__"):
        return values
    columns = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if columns is None:
        return values
    import pandas as pd

    if twice := [column for column, count in Counter(map(str, columns)).items() if count > 1]:
        raise ValueError(f"{name} has several columns of the same name: {', '.join(map(repr, twice))}; rename them.")
    return pd.DataFrame({str(column): _pandas_column(values[column]) for column in columns})


def _pandas_column(column: Any) -> Any:
    """A column of another library in a form that pandas reads, with the order of its levels if it has one."""
    if hasattr(column, "dictionary_encode"):  # pyarrow, whose dictionaries lose missing values in numpy
        return column.to_pandas()
    values = np.asarray(column)
    if type(getattr(column, "dtype", None)).__name__ == "Enum":  # polars
        import pandas as pd

        return pd.Categorical(values, categories=list(column.dtype.categories), ordered=True)
    return values


def name_columns(indices: Iterable[int], columns: Sequence[str] | None = None, limit: int = 6) -> str:
    """Name at most `limit` columns for a message.

    >>> name_columns([3], ["a", "b", "c", "d"]), name_columns(range(9), limit=2)
    ("column 'd'", 'columns 0, 1 and 7 more')
    """
    wanted = [int(j) for j in indices]
    shown = [repr(columns[j]) if columns is not None and 0 <= j < len(columns) else j for j in wanted]
    return f"column{'s' if len(wanted) > 1 else ''} {some(shown, limit)}"


def some(names: Sequence[object], most: int) -> str:
    """The first names, and a count of the rest.

    >>> some("abcd", 2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def one_value(what: str, value: object, rows: str) -> str:
    """The message for a response that has one value, such as x, and is empty in other rows."""
    return (
        f"{what} is missing in {rows} and {value!r} in all others: if an empty cell means no, write a word such as no "
        "there, or 0 beside 1."
    )


def refuse_odd(values: object, name: str) -> None:
    """Refuse masked, complex and date values, which numpy would silently alter, iterators, and damaged matrices."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked values; fill them ({name}.filled(0.0)) or drop them.")
    if isinstance(values, Iterator):
        raise ValueError(f"{name} is a {type(values).__name__}, which can be read only once: give an array or a list.")
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", "f")
    if kind == "c" or isinstance(values, complex):
        raise ValueError(f"{name} holds complex numbers. Complex data not supported.")
    if kind in "mM":
        raise ValueError(f"{name} must hold numbers, not {dtype}.")
    if is_sparse(values):
        check_sparse(values, name)


def check_scale(values: FloatArray, name: str) -> None:
    """Refuse values so large or so small that their squares overflow or underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > 0 and not 1e-150 < largest < 1e150:
        raise ValueError(
            f"{name} has values up to {largest:.3g}, whose squares overflow or underflow: change the units."
        )


def as_matrix(X: object, *, name: str = "X") -> FloatArray:
    """A dense float64 matrix, without a copy if X already is one in C or Fortran order."""
    matrix = as_numeric_matrix(X, name=name).astype(np.float64, copy=False)
    if not (matrix.flags.c_contiguous or matrix.flags.f_contiguous):
        matrix = np.ascontiguousarray(matrix)
    # one pass without a mask of the size of X; the columns are located only if there are bad values
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if not np.isfinite(total) and not np.isfinite(matrix).all():
        bad = name_columns(np.flatnonzero(~np.isfinite(matrix).all(axis=0)), column_names(X))
        raise ValueError(f"{name} has missing or infinite values in {bad}; impute or drop them.")
    return matrix


def as_numeric_matrix(X: object, *, name: str = "X") -> FloatArray:
    """A dense matrix of float32 or float64, not copied if X already is one; other types become float64.

    Values are not checked: `covey.designs` finds missing ones when it reads X anyway.
    """
    if is_sparse(X):
        raise ValueError(f"{name} is sparse, and only dense arrays are supported here: pass {name}.toarray().")
    columns = column_names(X)
    refuse_odd(X, name)
    try:
        matrix = np.asarray(X)
        if matrix.dtype.kind == "c":
            raise ValueError(f"{name} holds complex numbers. Complex data not supported.")
        if matrix.dtype not in (np.float32, np.float64):
            matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "complex" in str(error):
            raise
        raise ValueError(f"{name} must hold numbers{_first_text_column(X, columns)}.") from None
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), not shape {matrix.shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) for a single column, {name}.reshape(1, -1) for a single row."
        )
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: shape {matrix.shape}.")
    return matrix


def as_numbers(values: object, name: str, *, ndim: int | None = None, finite: bool = True) -> NDArray[np.float64]:
    """A float64 array of finite numbers, with `ndim` dimensions if given."""
    refuse_odd(values, name)
    if is_sparse(values):
        raise ValueError(f"{name} is sparse: pass {name}.toarray().")
    try:
        array = np.asarray(on_host(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, not {_short(values)}.") from None
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}, not shape {array.shape}.")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} has missing or infinite values.")
    return array


def as_int_vector(values: object, what: str) -> IntArray:
    """A vector of integers."""
    refuse_odd(values, what)
    try:
        array = np.asarray(values)
    except ValueError:  # nested sequences of unequal length
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{what} must be whole numbers in one row, not {values!r}.")
    return array.astype(np.intp)


def last_step(model: Any) -> Any:
    """The estimator that was given, or the last step of a pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def listed(values: Any, name: str) -> list[Any]:
    """The entries of a sequence."""
    if isinstance(values, str | bytes) or is_sparse(values):
        raise ValueError(f"{name} must be a sequence, not {_short(values)}.")
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name} must be a sequence, not {_short(values)}.") from None


def one_of(value: T, options: Sequence[T], name: str) -> T:
    """Check that a value is one of the options."""
    if not isinstance(value, str | int | None) or value not in options:
        shown = list(map(repr, options))
        allowed = " or ".join(shown) if len(shown) == 2 else f"one of {', '.join(shown)}"
        raise ValueError(f"{name} must be {allowed}, not {_short(value)}.")
    return value


def _short(value: object) -> str:
    """A value in one line, for a message."""
    text = repr(value)
    return text if len(text) < 60 and "\n" not in text else f"a {type(value).__name__}"


def as_sample_weight(weights: ArrayLike | None, n_rows: int, *, name: str = "sample_weight") -> FloatArray:
    """Row weights that add up to one; None or a single number gives equal weights."""
    if weights is None or np.ndim(weights) == 0:
        if weights is not None:
            positive(weights, name)
        return np.full(n_rows, 1.0 / n_rows)
    vector = as_response(weights, n_rows, name=name)
    below = np.flatnonzero(vector < 0)
    if below.size:
        raise ValueError(f"{name} must not be negative; row {below[0]} has {vector[below[0]]:g}.")
    largest = vector.max()
    if largest == 0:
        raise ValueError(f"{name} is zero in every row.")
    scaled = vector / largest
    return scaled / scaled.sum()


def as_response(y: object, n_rows: int, *, name: str = "y") -> FloatArray:
    """A finite float64 vector with one entry per row."""
    vector = as_numbers(y, name, finite=False)
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not shape {vector.shape}.")
    if vector.size != n_rows:
        raise ValueError(f"{name} has {vector.size} entries, but X has {n_rows} rows.")
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise ValueError(f"{name} has missing or infinite values, first in row {bad[0]} ({bad.size} in all).")
    return np.ascontiguousarray(vector)


def read_row_labels(labels: Any, n_rows: int, name: str) -> NDArray[np.intp]:
    """Labels of rows that belong together as whole numbers, in their order."""
    from pandas import factorize

    values = np.asarray(on_host(labels))
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must have one label per row: {n_rows}, not an array of shape {values.shape}.")
    codes = np.asarray(factorize(values, sort=True)[0], dtype=np.intp)
    if (codes < 0).any():
        row, n_missing = int(np.argmin(codes)), int((codes < 0).sum())
        raise ValueError(
            f"{name} has missing labels, first in row {row} ({n_missing} in all): give each of these rows a label of "
            "its own if it belongs to no other, or leave the rows out."
        )
    return codes


def response_numbers(y: ArrayLike, name: str) -> FloatArray:
    """A response as float64 numbers, of any shape; missing values become NaN."""
    from pandas import isna

    refuse_odd(y, name)
    text = False
    try:
        array = np.asarray(on_host(y))
        kind = array.dtype.kind
        text = kind in "US" or (kind == "O" and any(isinstance(value, str | bytes) for value in array.flat))
        if text or kind == "c":
            raise TypeError
        return np.where(isna(array), np.nan, array).astype(np.float64) if kind == "O" else array.astype(np.float64)
    except (TypeError, ValueError):
        rule = f"{name} holds text{_odd_text(array)}, and must hold numbers" if text else f"{name} must hold numbers"
        raise ValueError(f"{rule}. For classes use covey.GroupSparseClassifier.") from None


def _odd_text(values: Array) -> str:
    """The first text that is no number, and how many there are, if most values are numbers."""
    from pandas import Series, to_numeric

    given = Series(values.ravel())
    odd = (to_numeric(given, errors="coerce").isna() & given.notna()).to_numpy()
    if not 0 < 2 * odd.sum() < odd.size:
        return ""
    row = int(odd.argmax())
    return f", {_short(given[row])} in row {row} ({int(odd.sum())} of {odd.size} values)"


def finite_response(y: ArrayLike, name: str, *, vector: bool = False) -> FloatArray:
    """A response as finite float64 numbers: one per row, or several if `vector`."""
    array = response_numbers(y, name)
    if vector and array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, outputs), not shape {array.shape}.")
    if not vector and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if not vector and array.ndim != 1:
        remedy = " For several responses use the loss 'multi-squared'." if array.ndim == 2 else ""
        raise ValueError(f"{name} must have one dimension, not shape {array.shape}.{remedy}")
    if array.size == 0:
        raise ValueError(f"{name} is empty: shape {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
    if bad.size:
        raise ValueError(
            f"{name} has missing or infinite values, first in row {bad[0]} ({bad.size} of {len(array)} in all); leave "
            "these rows out."
        )
    return np.ascontiguousarray(array)


def is_tensor(values: object) -> bool:
    """Whether something is a torch tensor, on any device."""
    return type(values).__module__.partition(".")[0] == "torch"


def on_host(values: Any) -> Any:
    """Convert a torch tensor on any device, or a Dask collection, to values in memory; leave others unchanged."""
    if is_tensor(values):
        values = values.detach()
        if values.is_cuda and values.nbytes >= PINNED:
            values = values.new_empty(values.shape, device="cpu", pin_memory=True).copy_(values)
        return values.cpu().numpy()
    if type(values).__module__.partition(".")[0] == "dask":
        from covey.cluster import compute

        return compute(values)[0]
    return values


def real(value: object, name: str) -> float:
    """A number, of any sign and size."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real) or np.isnan(float(value)):
        raise ValueError(f"{name} must be a number, not {_short(value)}.")
    return float(value)


def positive(value: object, name: str, *, zero: bool = False) -> float:
    """A finite number above zero (or, with `zero`, not below it)."""
    least = "at least 0" if zero else "above 0"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number {least}, not {_short(value)}.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} must be {least} and finite, not {value!r}.")
    return number


def whole(value: object, name: str, *, least: int = 1) -> int:
    """A whole number not below `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, not {_short(value)}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}.")
    return int(value)


def boolean(value: object, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {_short(value)}.")
    return bool(value)


def is_sparse(X: object) -> bool:
    """Whether X is a scipy sparse array or matrix, decided without importing scipy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def check_sparse(X: Any, name: str) -> None:
    """Refuse a sparse matrix with entries outside its shape, which compiled code would read or write.

    scipy checks this only on request.
    """
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
            return
        table = X.tocoo()
        places = (table.row, table.col) if X.ndim == 2 else table.coords
        for axis, (index, length) in enumerate(zip(places, X.shape, strict=True)):
            if len(index) != len(table.data):
                raise ValueError(f"{len(table.data)} values have {len(index)} indices along axis {axis}")
            if len(index) and not 0 <= index.min() <= index.max() < length:
                raise ValueError(f"axis {axis} of length {length} has indices from {index.min()} to {index.max()}")
    except (ValueError, TypeError, IndexError) as reason:
        raise ValueError(f"{name} is a damaged sparse matrix: {reason}. Build it again.") from None


def _first_text_column(X: Any, columns: Sequence[str] | None) -> str:
    if columns is None:
        return ""
    for j, column in enumerate(columns):
        try:
            np.asarray(X[X.columns[j]]).astype(np.float64)
        except (TypeError, ValueError):
            return f"; column {column!r} does not (encode it, or give terms='auto')"
    return ""
