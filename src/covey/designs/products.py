"""Products of columns: a design with the columns of another one, and products of two of them that are not stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.dense import group_tiles, tiled_moments
from covey.designs.protocol import Design, Moments
from covey.validation import Array, FloatArray

__all__ = ["ProductColumns"]

# Products that are computed at a time: 2^18 numbers, or 2 MiB, stay in a core's cache; more come from a device.
TILE, DEVICE_TILE = 2**18, 2**26


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
        leave all bounds.
    """

    def __init__(
        self, design: Design, left: NDArray[np.intp], right: NDArray[np.intp], ranges: FloatArray | None = None
    ) -> None:
        n, p = design.shape
        super().__init__((n, p + left.size), design.dtype, columns=None, name=design.name)
        self.design, self.left, self.right = design, np.asarray(left), np.asarray(right)
        self.on_device, self.ranges = design.on_device, ranges
        self._tile = DEVICE_TILE if design.on_device else TILE

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
        self.n_passes += 1
        moments = tiled_moments(self, self._tile, y, q, members, starts, centre=centre, scale=scale)
        self.refuse(members[~np.isfinite(moments.variance)])
        return moments

    def correlate(self, R: Array) -> Array:
        self.n_passes += 1
        R = np.ascontiguousarray(R, dtype=self.dtype)
        n, p = self.shape
        out, step = np.empty((len(R), p), dtype=self.dtype), max(1, self._tile // n)
        for a in range(0, p, step):
            out[:, a : a + step] = R @ self.take(np.arange(a, min(a + step, p)))
        return out

    def gradient_norms(self, problem: Any, R: Array) -> NDArray[np.float64]:
        self.n_passes += 1
        layout, norms = problem.layout, np.empty((len(R), problem.ranks.size))
        for first, last in group_tiles(layout.starts, self._tile // self.shape[0]):
            X = self.take(layout.members[layout.starts[first] : layout.starts[last]])
            norms[:, first:last] = problem.correlation_norms(R @ X, first, last)
        return norms

    def take(self, columns: Array) -> NDArray[np.float64]:
        return np.asarray(self._columns(np.asarray(columns), self.design.take))

    def device_columns(self, columns: Array) -> Any:
        return self._columns(np.asarray(columns), self.design.device_columns)

    def _columns(self, columns: NDArray[np.intp], read: Any) -> Any:
        p = self.design.shape[1]
        is_product = columns >= p
        if not is_product.any():
            return read(columns)
        which = columns[is_product] - p
        # every column is read once, however many products it is in
        used, at = np.unique(
            np.concatenate([columns[~is_product], self.left[which], self.right[which]]), return_inverse=True
        )
        X, n_plain, n_products = read(used), int((~is_product).sum()), which.size
        bounded = X
        if self.ranges is not None:
            ends = self.ranges[:, used]
            bounded = X.clip(*(ends if isinstance(X, np.ndarray) else map(self.design.put, ends)))
        products = bounded[:, at[n_plain : n_plain + n_products]] * bounded[:, at[n_plain + n_products :]]
        if n_plain == 0:
            return products
        out = X[:, np.zeros(columns.size, dtype=np.intp)]
        out[:, np.flatnonzero(~is_product)], out[:, np.flatnonzero(is_product)] = X[:, at[:n_plain]], products
        return out
