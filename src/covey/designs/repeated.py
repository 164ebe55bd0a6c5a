"""Columns that are in several groups: a design that repeats columns of another one by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import Design, Moments
from covey.validation import Array

__all__ = ["RepeatedColumns"]


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

    def device_columns(self, columns: Array) -> Any:
        return self.design.device_columns(self.index[columns])

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        return self.design.predict(self.index[columns], coefs, intercepts)

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        return self.design.gram_parts(self.index[columns], shift, y, weights)

    def residual_products(
        self,
        y: Array,
        weights: Sequence[Array],
        which: Array,
        columns: Array,
        coefs: Array,
        intercepts: Array,
        kept: dict[str, Any] | None = None,
    ) -> Array:
        products = self.design.residual_products(y, weights, which, self.index[columns], coefs, intercepts, kept)
        return products[..., self.index]

    def extremes(self, columns: Array, weight: Array) -> Array:
        return self.design.extremes(self.index[columns], weight)

    def triangles(self, q: Array, pieces: list[Array], means: list[Array], gains: list[Array]) -> list[Array]:
        return self.design.triangles(q, [self.index[piece] for piece in pieces], means, gains)
