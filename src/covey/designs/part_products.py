"""Products of all genotypes with the columns of models, part by part of the rows.

The gradient of squared errors is linear in the model: ``X' diag(w) (y - A b) = c - P b``. Models of different folds and
of different events have much the same columns A, so products with these are computed once, for each part of the rows,
and kept for later models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import Models
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.genotypes import GenotypeDesign

# The most products that are kept (512 MiB); beyond, residuals are multiplied with X.
MOST_KEPT = 2**26

# Rows that are decoded at a time.
ROWS = 2**10


class PartProducts:
    """Products of every column of X with some of them, with the response and with one, on every part of the rows.

    `uses` has a row per weight, which is `weight` where it is true and zero elsewhere.
    """

    def __init__(self, design: GenotypeDesign, y: FloatArray, weight: FloatArray, uses: NDArray[np.bool_]) -> None:
        self.design, self.y, self.weight = design, y, weight
        self.patterns, part = np.unique(uses, axis=1, return_inverse=True)  # shape (n_weights, n_parts)
        part = np.ravel(part)
        self.order = np.argsort(part, kind="stable")
        self.edges = np.searchsorted(part[self.order], np.arange(self.patterns.shape[1] + 1))
        self.columns = np.empty(0, dtype=np.intp)
        self.shift = np.empty(0)
        self.kept: list[FloatArray] = []  # of one and y, and then of columns; shape (p, n_parts, ...)

    @classmethod
    def of(cls, design: GenotypeDesign, models: Models) -> PartProducts | None:
        """Products for the weights of some models, if they differ in which rows they use only."""
        q = np.stack(list(models.weights))
        weight, uses = q.max(axis=0), q > 0
        return cls(design, models.y, weight, uses) if (q == np.where(uses, weight, 0.0)).all() else None

    def have(self, columns: NDArray[np.intp]) -> bool:
        """Compute the products with those columns that are new, in one pass; False if there are too many to keep."""
        new = np.setdiff1d(columns, self.columns)
        n_parts, (n, m) = self.patterns.shape[1], self.y.shape
        if (1 + m + self.columns.size + new.size) * n_parts * self.design.shape[1] > MOST_KEPT:
            self.kept, self.columns, self.shift = [], self.columns[:0], self.shift[:0]
            return False
        if not self.kept:
            self._keep(np.column_stack([np.ones(n), self.y]), new)
        elif new.size:
            self._keep(np.empty((n, 0)), new)
        return True

    def of_residuals(self, models: Models) -> FloatArray:
        """As `Design.residual_products`, of the weights that this was made for."""
        n_models, m, _ = models.coefs.shape
        place = {int(j): i for i, j in enumerate(self.columns)}
        # a column may be given more than once
        B = models.coefs @ np.eye(self.columns.size)[[place[int(j)] for j in models.columns]]
        levels, each = models.intercepts + B @ self.shift, np.broadcast_to(np.eye(m), (n_models, m, m))
        W = np.concatenate([-levels[:, :, None], each, -B], axis=2)
        # a model only uses the rows of its weight
        W = self.patterns[models.which][:, None, :, None] * W[:, :, None, :]
        out, first = np.zeros((n_models * m, self.design.shape[1])), 0
        for products in self.kept:
            n_parts, width = products.shape[1:]
            some = W[..., first : first + width].reshape(len(out), n_parts * width)
            out += some @ products.reshape(-1, n_parts * width).T
            first += width
        return out.reshape(n_models, m, -1)

    def _keep(self, rows: FloatArray, new: NDArray[np.intp]) -> None:
        """Keep products with some row vectors, shape (n, k), and new columns, which are centred."""
        design = self.design
        design.n_passes += 1
        X = design.take(new)
        # the level of a column would cost digits
        shift = X.mean(axis=0)
        A = np.hstack([rows, X - shift]) * self.weight[:, None]
        A = A[self.order].astype(design.dtype)
        products = np.empty((design.shape[1], self.edges.size - 1, A.shape[1]))
        for columns, read in design.tiles(design.dtype, self.order):
            total = np.zeros((columns.stop - columns.start, *products.shape[1:]))
            for part, (first, last) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True)):
                for a in range(first, last, ROWS):
                    some = slice(a, min(a + ROWS, last))
                    total[:, part] += read(some) @ A[some]
            products[columns] = total
        self.kept.append(products)
        self.columns, self.shift = np.concatenate([self.columns, new]), np.concatenate([self.shift, shift])
