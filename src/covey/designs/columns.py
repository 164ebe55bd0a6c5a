"""Designs of the columns of another design: repeats of them, and products of two that are not stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.moments import Moments
from covey.designs.protocol import Design, Models
from covey.validation import Array, ArrayOrTensor, FloatArray

# Products that are computed at a time: 2^18 numbers, or 2 MiB, stay in a core's cache; more come from a device.
TILE, DEVICE_TILE = 2**18, 2**26


class RepeatedColumns(Design):
    """The columns ``index`` of another design, in that order and with repeats; nothing is copied.

    With overlapping groups, every group gets a copy of a shared column, and the copies' coefficients add up (the
    latent group model of Jacob, Obozinski and Vert, 2009). Here a copy is just an entry of `index`.

    Parameters
    ----------
    design : Design
    index : ndarray of int, shape (p,)
        For each column of this design, its column in the other one.
    """

    def __init__(self, design: Design, index: NDArray[np.intp]) -> None:
        names = None if design.columns is None else [design.columns[j] for j in index]
        super().__init__((design.shape[0], index.size), design.dtype, columns=names, name=design.name)
        self.design, self.index = design, index
        self.reads_columns, self.on_device = design.reads_columns, design.on_device

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        return self.design.moments(y, q, self.index[members], starts, centre=centre, scale=scale)

    def correlate(self, R: Array) -> Array:
        return self.design.correlate(R)[:, self.index]

    def take(self, columns: Array) -> NDArray[np.float64]:
        return self.design.take(self.index[columns])

    def device_columns(self, columns: Array) -> ArrayOrTensor:
        return self.design.device_columns(self.index[columns])

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        return self.design.predict(self.index[columns], coefs, intercepts)

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        return self.design.gram_parts(self.index[columns], shift, y, weights)

    def residual_products(self, models: Models) -> Array:
        return self.design.residual_products(replace(models, columns=self.index[models.columns]))[..., self.index]

    def extremes(self, columns: Array, weight: Array) -> Array:
        return self.design.extremes(self.index[columns], weight)

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        return self.design.triangles(q, [self.index[piece] for piece in pieces], means, gains)


@dataclass(frozen=True)
class Within:
    """A column that is bounded within each level before it is multiplied."""

    column: int
    # the columns of the levels; a row has the level whose column is positive, if one is
    first: int
    stop: int
    # the least and the largest value, first without a level, then in each level; shape (2, 1 + n_levels)
    ends: FloatArray

    @property
    def columns(self) -> NDArray[np.intp]:
        """All columns that are needed, that of the values first."""
        return np.array([self.column, *range(self.first, self.stop)], dtype=np.intp)

    def bounded(self, X: FloatArray) -> FloatArray:
        """The values, given `columns`."""
        level = (X[:, 1:] > 0) @ np.arange(1, self.ends.shape[1])
        return X[:, 0].clip(*self.ends[:, level])


class ProductColumns(Design):
    """The columns of another design, followed by products of two of its columns.

    Products are computed a few columns at a time, when they are needed.

    Parameters
    ----------
    design : Design
        Its columns can be read.
    left, right : ndarray of int, shape (n_products,)
        The two columns of each product.
    ranges : ndarray, shape (2, n_columns of the other design), optional
        Values outside are moved to the nearest end before they are multiplied: products of extrapolated values would
        leave all bounds. Not on a device.
    within : sequence of Within
        Further columns that `left` and `right` may name, numbered after those of the other design.
    """

    def __init__(
        self,
        design: Design,
        left: NDArray[np.intp],
        right: NDArray[np.intp],
        ranges: FloatArray | None = None,
        within: Sequence[Within] = (),
    ) -> None:
        n, p = design.shape
        super().__init__((n, p + left.size), design.dtype, columns=None, name=design.name)
        self.design, self.left, self.right = design, np.asarray(left), np.asarray(right)
        self.on_device, self.ranges, self.within = design.on_device, ranges, within
        self.tile = DEVICE_TILE if design.on_device else TILE

    @property
    def n_stored(self) -> int:
        return self.design.shape[1]

    def add(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
        """Append products; return their columns."""
        n, p = self.shape
        self.left, self.right = np.append(self.left, left), np.append(self.right, right)
        self.shape = (n, p + left.size)
        return np.arange(p, p + left.size)

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        moments = super().moments(y, q, members, starts, centre=centre, scale=scale)
        # the columns are finite, so squares of products overflow
        self.refuse(members[~np.isfinite(moments.variance)])
        return moments

    def take(self, columns: Array) -> NDArray[np.float64]:
        return np.asarray(self._columns(np.asarray(columns), self.design.take))

    def device_columns(self, columns: Array) -> ArrayOrTensor:
        return self._columns(np.asarray(columns), self.design.device_columns)

    def _columns(self, columns: NDArray[np.intp], read: Any) -> ArrayOrTensor:
        p = self.design.shape[1]
        is_product = columns >= p
        if not is_product.any():
            return read(columns)
        which = columns[is_product] - p
        # every column is read once, however many products it is in
        used, at = np.unique(
            np.concatenate([columns[~is_product], self.left[which], self.right[which]]), return_inverse=True
        )
        plain, left, right = np.split(at, np.cumsum([columns.size - which.size, which.size]))
        X, bounded = self._factors(used, read)
        products = bounded[:, left] * bounded[:, right]
        if not plain.size:
            return products
        out = X[:, np.zeros(columns.size, dtype=np.intp)]
        out[:, np.flatnonzero(~is_product)], out[:, np.flatnonzero(is_product)] = X[:, plain], products
        return out

    def _factors(self, used: NDArray[np.intp], read: Any) -> tuple[ArrayOrTensor, ArrayOrTensor]:
        """Columns as they are, and bounded, as they are multiplied; those within levels come last in `used`."""
        p = self.design.shape[1]
        within = [self.within[k - p] for k in used[used >= p]]
        columns = np.unique(np.concatenate([used[used < p], *(one.columns for one in within)])) if within else used
        X = bounded = read(columns)
        if self.ranges is not None:
            bounded = X.clip(*self.ranges[:, columns])
        if not within:
            return X, bounded
        plain = np.searchsorted(columns, used[used < p])
        out = X[:, np.zeros(used.size, dtype=np.intp)]
        out[:, : plain.size] = bounded[:, plain]
        for k, one in enumerate(within, plain.size):
            some = X[:, np.searchsorted(columns, one.columns)]
            out[:, k] = one.bounded(some)
        return X[:, plain], out
