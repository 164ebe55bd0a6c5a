"""Design: the few operations through which the rest of the library accesses X.

X is read once for its moments, and then only for products with many models and for Gram rows, so any kind of storage
that implements these operations supports the whole method. Nothing here centres, scales or copies X: `covey.preprocess`
does that on the results, with each group's small factor.

A new kind of storage subclasses `Design`, implements the abstract operations, overrides derived ones if it has a faster
way, and is added to the table in `covey.designs` and to `tests/designs/test_contract.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.cholesky import factor_groups
from covey.designs.row_keys import dense_rank_keys
from covey.designs.rows import hash_rows, hold_out, part_grams, split_masks, standard_response, weighted_residuals
from covey.designs.scoring import ColumnError, GramError, ModelError
from covey.validation import as_response, as_sample_weight, name_columns

__all__ = [
    "LARGEST_BLOCK",
    "NORMS_AT_A_TIME",
    "Design",
    "Moments",
    "block_offsets",
    "diagonals",
]

Array = NDArray[Any]

# Correlations that are converted to group norms at a time: half a MiB.
NORMS_AT_A_TIME = 2**16

# Numbers that are hashed at a time (8 MiB), and that are compared (1 MiB).
KEYS_AT_A_TIME, EXTREMES_AT_A_TIME = 2**20, 2**17

# Numbers that are ranked at a time: in cache if columns can be read, otherwise 256 MiB.
RANKED_AT_A_TIME, RANKED_IN_A_PASS = 2**17, 2**25


@dataclass(frozen=True)
class Moments:
    """First and second moments of a design, from one pass over it, in the groups' contiguous layout.

    Attributes
    ----------
    mean : ndarray, shape (p,)
        Weighted column means; zeros without centring.
    variance : ndarray, shape (p,)
        ``sum_i q_i (x_ij - mean_j)^2`` of the scaled columns.
    correlation : ndarray, shape (p,)
        ``sum_i q_i (x_ij - mean_j) y_i`` of the scaled columns.
    blocks, block_starts : ndarray
        The centred Gram blocks ``sum_i q_i (x_i - mean)(x_i - mean)'`` of the scaled columns, flattened: the block of
        group l is ``blocks[block_starts[l]:block_starts[l + 1]]``, row by row. Empty for a group larger than
        `LARGEST_BLOCK`.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    correlation: NDArray[np.float64]
    blocks: NDArray[np.float64]
    block_starts: NDArray[np.intp]


# The Gram block of a larger group costs more than a factorisation of the columns themselves, and one such group would
# slow down the pass for all its neighbours.
LARGEST_BLOCK = 64


def block_offsets(starts: Array) -> NDArray[np.intp]:
    """Where each group's Gram block begins in `Moments.blocks`."""
    sizes = np.diff(starts)
    offsets = np.zeros(starts.size, dtype=np.intp)
    np.cumsum(np.where(sizes <= LARGEST_BLOCK, sizes**2, 0), out=offsets[1:])
    return offsets


def diagonals(blocks: Array, block_starts: Array, starts: Array) -> NDArray[np.float64]:
    """The diagonals of all Gram blocks, shape (p,); NaN for the columns of groups without one."""
    sizes = np.diff(starts)
    out = np.full(int(starts[-1]), np.nan)
    known = np.repeat(np.diff(block_starts) > 0, sizes)
    within = np.arange(out.size) - np.repeat(starts[:-1], sizes)
    at = np.repeat(block_starts[:-1], sizes) + within * (np.repeat(sizes, sizes) + 1)
    out[known] = blocks[at[known]]
    return out


class Design(ABC):
    """A matrix X of n rows and p columns, in any kind of storage.

    ``q`` below are row weights that add up to one; a subset of the rows is selected by giving the others weight zero.
    Row vectors (``y``, ``q``, masks) have the type that `rows` returns: numpy arrays, unless a design stores them where
    X is. Callers use elementwise numpy functions, ``@``, ``sum`` and ``max`` on them, but no indexing.

    Attributes
    ----------
    columns : sequence of str or None
        Column names, for messages and groups.
    name : str
        The name of X in messages.
    n_passes : int
        The number of passes over X so far.
    reads_columns : bool
        Whether k columns can be read as an (n, k) array at a cost proportional to k; otherwise `take` reads all of X.
    holds_rows : bool
        Whether row vectors are numpy arrays; if not, folds are made where the rows are stored.
    on_device : bool
        Whether products of columns are computed on the device of X.
    """

    reads_columns: bool = True
    holds_rows: bool = True
    on_device: bool = False

    def __init__(self, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        self.columns = columns
        self.name = name
        self.n_passes = 0

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the precision of products."""

    # ------------------------------------------------------------------ abstract operations

    @abstractmethod
    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`.

        One pass. Group l has the columns ``members[starts[l]:starts[l + 1]]``. A non-finite value raises a `ValueError`
        that names its column.
        """

    @abstractmethod
    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p). One pass."""

    @abstractmethod
    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""

    @abstractmethod
    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,). One pass, used only for columns of extreme scale."""

    # ------------------------------------------------------------------ derived operations

    def extremes(self, columns: Array, weight: Any) -> Array:
        """The least and the largest value of some columns over the rows of positive weight; shape (2, k)."""
        used = np.flatnonzero(np.asarray(weight) > 0)
        out = np.empty((2, len(columns)))
        step = max(1, EXTREMES_AT_A_TIME // self.shape[0])
        for a in range(0, len(columns), step):
            own = slice(a, a + step)
            X = np.asarray(self.take(columns[own]))
            X = X if used.size == len(X) else X[used]
            out[0, own], out[1, own] = X.min(axis=0), X.max(axis=0)
        return out

    def rows(self, values: Any, *, name: str = "y") -> Any:
        """A finite float64 vector with one entry per row."""
        return as_response(values, self.shape[0], name=name)

    def weights(self, values: Any) -> Any:
        """Row weights that add up to one; equal ones for None."""
        return as_sample_weight(values, self.shape[0])

    def total(self, values: Any) -> float:
        """The sum of a row vector."""
        return float(values.sum())

    def count(self, weight: Any) -> float:
        """The number of rows, counted by weight in units of the least weight: a row of twice the weight is two rows."""
        return float(weight.sum()) / float(weight[weight > 0].min())

    def standard(self, y: Any, q: Any, *, centre: bool) -> tuple[Any, float, float]:
        """The response, centred if requested and scaled to unit mean square, with its mean and its scale."""
        return standard_response(y, q, centre=centre)

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p). One pass."""
        Z = self.take(columns) @ loadings - offset
        if offset.any():
            Z -= q @ Z  # round-off error left in the mean would be multiplied by the means of X
        return self.correlate(Z.T * q)

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of ``sqrt(q) (X[:, piece] - mean) * gain`` for several sets of columns. At most one pass.

        R has as many columns as the piece and at most as many rows; pivoting is left to the caller.
        """
        root = np.sqrt(q)[:, None]
        return [
            np.asarray(np.linalg.qr((self.take(piece) - mean) * gain * root, mode="r"))
            for piece, mean, gain in zip(pieces, means, gains, strict=True)
        ]

    def factor_groups(
        self, blocks: Array, block_starts: Array, starts: Array, scale: Array, root: Array, alive: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Factors that orthonormalise every group, from its Gram block; see `covey.designs.cholesky`."""
        return factor_groups(blocks, block_starts, starts, scale, root, alive)

    def errors(self, y: Any, weight: Any) -> ModelError:
        """The weighted mean squared error of linear models on the rows of positive weight."""
        return ColumnError(self, y, weight) if self.reads_columns else GramError(self, y, weight)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Any:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
        return self.take(columns) @ np.asarray(coefs).T + intercepts

    def residual_products(
        self, y: Any, weights: Sequence[Any], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``; (m, p).

        One pass for any number m of models.

        Parameters
        ----------
        y : row vector
        weights : sequence of row vectors
            Non-negative; zero for rows that are not used.
        which : ndarray of int, shape (m,)
            The position of each model's weights.
        columns : ndarray of int, shape (k,)
        coefs, intercepts : ndarray, shapes (m, k) and (m,)

        Returns
        -------
        ndarray of `dtype`, shape (m, p)
            Residuals are computed in double precision for any X.
        """
        return self.correlate(weighted_residuals(self.take(columns), y, weights, which, coefs, intercepts))

    def residual_norms(
        self, problem: Any, weights: Sequence[Any], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """The group norms of `residual_products` in the coordinates of a `WorkingProblem`; (m, n_groups)."""
        return np.asarray(
            problem.all_norms(self.residual_products(problem.response, weights, which, columns, coefs, intercepts))
        )

    def gram_parts(self, columns: Array, shift: Array, y: Any, weights: Sequence[Any]) -> Array:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w; (n_parts, k + 2, k + 2), float64.

        At most one pass. The parts are disjoint: no row has a positive weight in two of them.
        """
        return part_grams(self.take(columns), shift, y, weights)

    def row_keys(self, columns: Array) -> Array:
        """A 64-bit hash of some columns of each row, shape (n,); equal rows have equal keys."""
        key = np.zeros(self.shape[0], dtype=np.uint64)
        tile = max(1, KEYS_AT_A_TIME // max(self.shape[0], 1))
        for a in range(0, columns.size, tile):
            own = columns[a : a + tile]
            key += hash_rows(np.asarray(self.take(own)), own)
        return key

    def rank_keys(self, marks: Any, weight: Any) -> Any:
        """Keys of the rows from the ranks of their values, given marks of the rows; see `covey.designs.row_keys`."""
        n, p = self.shape
        # without cheap access to columns, every tile is a pass over X
        tile = max(1, (RANKED_AT_A_TIME if self.reads_columns else RANKED_IN_A_PASS) // n)
        parts = [
            self.together(dense_rank_keys, self.take(np.arange(a, min(a + tile, p))), marks, weight)
            for a in range(0, p, tile)
        ]
        return sum(parts[1:], parts[0])

    def hold_out(self, y: Any, weight: Any, fraction: float, random_state: Any, classes: Any = None) -> Any:
        """A mask of rows to hold out: about `fraction` of the weight, equal rows on the same side."""
        return hold_out(self, y, weight, fraction, random_state, classes)

    def together(self, function: Callable[..., Array], *vectors: Any) -> Any:
        """A row vector computed from whole row vectors: ``function(*vectors)``."""
        return function(*map(np.asarray, vectors))

    def fact(self, function: Callable[..., Any], *vectors: Any) -> Any:
        """A small result computed from whole row vectors."""
        return function(*map(np.asarray, vectors))

    def splits(self, cv: Any, y: Any, labels: Any) -> list[tuple[Any, Any]]:
        """Masks of the training and the held-out rows of each fold; `labels` are for grouped splitters."""
        return split_masks(self.shape[0], cv, y, labels)

    def gradient_norms(self, problem: Any, R: Array) -> Array:
        """The group norms of ``R X`` in the coordinates of a `WorkingProblem`; (k, n_groups). One pass."""
        return np.asarray(problem.all_norms(np.asarray(self.correlate(R))))

    def device_columns(self, columns: Array) -> Any:
        """Some columns in float64, where X lives; shape (n, k)."""
        return self.take(columns)

    # ------------------------------------------------------------------ for messages

    def refuse(self, bad: Array) -> None:
        """Raise if there are columns with non-finite values."""
        if np.size(bad):
            where = name_columns(bad, self.columns)
            raise ValueError(f"{self.name} has missing or infinite values in {where}; impute or drop them.")
