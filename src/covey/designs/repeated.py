"""Columns that are in several groups: a design that repeats columns of another one by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import Design, Moments

__all__ = ["RepeatedColumns"]

Array = NDArray[Any]


class RepeatedColumns(Design):
    """The columns ``index`` of another design, in that order and with repeats; nothing is copied.

    With overlapping groups, every group gets its own copy of a shared column, and the copies' coefficients add up (the
    latent group model of Jacob, Obozinski and Vert, 2009). Here a copy is just an entry of `index`.

    Parameters
    ----------
    design : Design
    index : ndarray of int, shape (p,)
        For each column of this design, its column in the other one.
    """

    def __init__(self, design: Design, index: NDArray[np.intp]) -> None:
        names = None if design.columns is None else [design.columns[j] for j in index]
        super().__init__(columns=names, name=design.name)
        self.design, self.index = design, index
        self.reads_columns = design.reads_columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, including repeats."""
        return self.design.shape[0], self.index.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the other design."""
        return self.design.dtype

    def rows(self, values: Any, *, name: str = "y") -> Any:
        """A finite float64 vector with one entry per row."""
        return self.design.rows(values, name=name)

    def weights(self, values: Any) -> Any:
        """Row weights that add up to one; equal ones for None."""
        return self.design.weights(values)

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`."""
        return self.design.moments(y, q, self.index[members], starts, centre=centre, scale=scale)

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p)."""
        return self.design.correlate(R)[:, self.index]

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p)."""
        return self.design.gram_rows(q, self.index[columns], loadings, offset)[:, self.index]

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        return self.design.take(self.index[columns])

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        """The R factors of ``sqrt(q) (X[:, piece] - mean) * gain`` for several sets of columns."""
        return self.design.triangles(q, [self.index[piece] for piece in pieces], means, gains)

    def residual_products(
        self, y: Any, weights: Sequence[Any], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``; (m, p)."""
        made = self.design.residual_products(y, weights, which, self.index[columns], coefs, intercepts)
        return made[:, self.index]

    def gram_parts(self, columns: Array, shift: Array, y: Any, weights: Sequence[Any]) -> Array:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w; (n_parts, k + 2, k + 2)."""
        return self.design.gram_parts(self.index[columns], shift, y, weights)

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        return self.design.largest()[self.index]
