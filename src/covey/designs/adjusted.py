"""A design less what common factors explain of it: ``X - F A``, held as X and two thin matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.designs.blocks import GatheredColumns
from covey.designs.factors import Factors
from covey.designs.protocol import Design, Moments
from covey.validation import FloatArray

__all__ = ["AdjustedDesign"]

Array = NDArray[Any]

# Where no more than this share of a column's variance is left, subtraction has lost too many digits of it, and the
# column itself is asked; the effects of float32 columns have seven digits to begin with.
LITTLE_LEFT = {4: 1e-3, 8: 1e-6}
# Where no more than this share of its standard deviation is left, the factors are all there is to it.
NOTHING_LEFT = {4: 1e-5, 8: 1e-7}
# So many numbers of corrected columns are made at a time (32 MiB).
PIECE = 2**22


class _Products(NamedTuple):
    """What the scores have to do with the rows of weight q."""

    mean: FloatArray  # q' F, shape (k,)
    gram: FloatArray  # F' diag(q) F, shape (k, k)
    cross: FloatArray  # F' diag(q) X, shape (k, p)


class AdjustedDesign(Design):
    """``X - F A`` behind the `Design` protocol, without a copy of X.

    The same factors adjust the rows that they were found on and any others.

    Parameters
    ----------
    base : Design
        X.
    factors : Factors
        The scores' loadings and their effects A.
    scores : ndarray, shape (n, k)
        F for the rows of `base`; `of` computes it.
    q : ndarray, shape (n,), or None
        The row weights that the factors were found with, where these are those rows. It saves a reading of X.
    """

    def __init__(self, base: Design, factors: Factors, scores: FloatArray, q: ArrayLike | None = None) -> None:
        super().__init__(columns=base.columns, name=base.name)
        self.base = base
        self.factors = factors
        self.scores = scores
        self.batch_columns = base.batch_columns
        self._effects = factors.effects.astype(base.dtype, copy=False)
        self._known: tuple[Array, _Products] | None = None
        if q is not None:
            k = factors.n_factors
            mean = np.asarray(q) @ scores
            self._known = (np.asarray(q), _Products(mean, np.eye(k), factors.effects))

    @classmethod
    def of(cls, base: Design, factors: Factors, q: ArrayLike | None = None) -> AdjustedDesign:
        """Adjust the rows of a design, whichever they are.

        >>> from covey.designs import as_design, find_factors
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 1)) + rng.standard_normal((100, 300))
        >>> q = np.full(100, 0.01)
        >>> factors = find_factors(as_design(X), q, 1)
        >>> adjusted = AdjustedDesign.of(as_design(X), factors, q)
        >>> bool(abs((adjusted.scores[:, 0] * q) @ adjusted.take(np.arange(300))).max() < 1e-12)
        True
        """
        return cls(base, factors, factors.scores(base), q)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.base.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of X."""
        return self.base.dtype

    # ------------------------------------------------------------------ products

    def correlate(self, R: Array) -> Array:
        """The product ``R (X - F A)`` for R of shape (k, n); shape (k, p)."""
        self.n_passes += 1
        out = self.base.correlate(R)
        return out - (np.asarray(R) @ self.scores).astype(out.dtype) @ self._effects

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        return np.asarray(self.base.take(columns)) - self.scores @ self.factors.effects[:, columns]

    def gather(self, columns: Array) -> GatheredColumns:
        """A copy of some columns, to work on between two looks at all of X."""
        copy = self.base.gather(columns) if self.base.reads_columns else None
        if not isinstance(copy, GatheredColumns):
            return GatheredColumns([self.take(columns).astype(self.dtype, copy=False)])
        step = max(1, PIECE // max(1, self.shape[0]))
        for block, first in zip(copy.blocks, copy.starts, strict=False):
            for a in range(0, block.shape[1], step):
                b = min(a + step, block.shape[1])
                block[:, a:b] -= self.scores @ self.factors.effects[:, columns[first + a : first + b]]
        return copy

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Any:
        """Predictions of several models as rows of `coefs`; shape (n, n_models)."""
        through = self.factors.effects[:, columns] @ np.asarray(coefs).T
        return self.base.predict(columns, coefs, intercepts) - self.scores @ through

    # ------------------------------------------------------------------ moments

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Moments of X less those of ``F A``; from the columns themselves where that would lose the digits.

        A column of which the factors leave nothing has variance zero.
        """
        self.n_passes += 1
        raw = self.base.moments(y, q, members, starts, centre=centre, scale=scale)
        made = self._products(q)
        A = self.factors.effects[:, members]
        with np.errstate(over="ignore", invalid="ignore"):
            cross, gram, with_y = made.cross[:, members], made.gram, (self.scores.T * q) @ y
            if centre:
                cross = cross - np.outer(made.mean, raw.mean)
                gram = gram - np.outer(made.mean, made.mean)
                with_y = with_y - made.mean * float(q @ y)
            mean = raw.mean - made.mean @ A if centre else raw.mean
            # (X - F A)'(X - F A) = X'X - A'D - D'A with D = F'X - F'F A / 2
            A, D = A * scale, (cross - 0.5 * gram @ A) * scale
            correlation = raw.correlation - with_y @ A
            variance = raw.variance - 2 * np.einsum("kj,kj->j", A, D)
            blocks = raw.blocks.copy()
            _subtract(blocks, raw.block_starts, starts, A, D)
            out = Moments(mean, variance, correlation, blocks, raw.block_starts)
            self._mend(out, raw.variance, y, q, members, starts, centre, scale)
        return out

    def _mend(
        self,
        out: Moments,
        before: FloatArray,
        y: Array,
        q: Array,
        members: Array,
        starts: Array,
        centre: bool,
        scale: Array,
    ) -> None:
        """Take the moments of groups with hardly anything left from their columns, in place."""
        little, nothing = LITTLE_LEFT[self.dtype.itemsize], NOTHING_LEFT[self.dtype.itemsize]
        out.variance[before == 0] = 0.0
        weak = out.variance < little * before
        if not weak.any():
            return
        group = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        root = np.sqrt(q)[:, None]
        for some in self._pieces(np.unique(group[weak]), starts):
            own = np.concatenate([np.arange(starts[l], starts[l + 1]) for l in some])
            Z = (self.take(members[own]) - out.mean[own]) * scale[own]
            if centre:
                Z -= q @ Z
            out.correlation[own] = (q * y) @ Z
            Z *= root
            variance = np.einsum("ij,ij->j", Z, Z)
            rounding = 8 * float(np.finfo(self.dtype).eps) * np.abs(out.mean[own] * scale[own])
            gone = np.sqrt(variance) <= np.maximum(nothing * np.sqrt(before[own]), rounding)
            out.variance[own] = np.where(gone, 0.0, variance)
            Z[:, gone] = 0.0
            at = 0
            for l in some:
                size = int(starts[l + 1] - starts[l])
                a, b = out.block_starts[l], out.block_starts[l + 1]
                if b > a:
                    out.blocks[a:b] = (Z[:, at : at + size].T @ Z[:, at : at + size]).ravel()
                at += size

    def _pieces(self, which: NDArray[np.intp], starts: Array) -> Iterator[NDArray[np.intp]]:
        """Some groups, so many at a time as fit into memory."""
        ends = np.cumsum(np.diff(starts)[which]) * self.shape[0] // PIECE
        edges = np.concatenate([[0], np.flatnonzero(np.diff(ends)) + 1, [which.size]])
        for a, b in pairwise(edges):
            yield which[a:b]

    def _products(self, q: Array) -> _Products:
        """The scores' products with the rows of weight q; those of the last q are kept."""
        if self._known is None or not np.array_equal(self._known[0], q):
            weighted = self.scores.T * q
            cross = np.asarray(self.base.correlate(weighted), dtype=np.float64)
            self._known = (q, _Products(weighted.sum(axis=1), weighted @ self.scores, cross))
        return self._known[1]

    # ------------------------------------------------------------------ what X itself knows

    def largest(self) -> Array:
        """The largest absolute value of each column of X: in these units the adjusted columns are harmless."""
        return self.base.largest()

    def rows(self, values: Any, *, name: str = "y") -> Any:
        """A finite float64 vector with one entry per row."""
        return self.base.rows(values, name=name)

    def weights(self, values: Any) -> Any:
        """Row weights that add up to one; equal ones for None."""
        return self.base.weights(values)

    def hold_out(self, y: Any, weight: Any, fraction: float, random_state: Any) -> Any:
        """A mask of rows to hold out, the same as without factors."""
        return self.base.hold_out(y, weight, fraction, random_state)

    def expect(self, y: Any, weight: Any, held: Sequence[Any]) -> None:
        """Be told that paths without these rows, or with them alone, follow."""
        self.base.expect(y, weight, held)

    def multiply(self, coef: Array) -> Any:
        """The product ``(X - F A) coef``; shape (n,)."""
        self.n_passes += 1
        return self.base.multiply(coef) - self.scores @ (self.factors.effects @ coef)


def _subtract(blocks: FloatArray, block_starts: Array, starts: Array, A: FloatArray, D: FloatArray) -> None:
    """Take ``A_l' D_l + D_l' A_l`` off every group's block, groups of one size at a time."""
    sizes = np.diff(starts)
    has_block = np.diff(block_starts) > 0
    for size in np.unique(sizes[has_block]).tolist():
        which = np.flatnonzero(has_block & (sizes == size))
        columns = starts[which][:, None] + np.arange(size)
        left, right = A[:, columns].transpose(1, 2, 0), D[:, columns].transpose(1, 0, 2)
        product = left @ right
        product += product.transpose(0, 2, 1).copy()
        entries = block_starts[which][:, None] + np.arange(size * size)
        blocks[entries] -= product.reshape(which.size, size * size)
