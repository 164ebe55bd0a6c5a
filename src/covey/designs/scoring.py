"""The squared error of linear models on weighted rows, as columns are added to the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.protocol import Design

__all__ = ["ColumnError", "GramError", "ModelError"]

# The most predictions held at a time when many models are scored (32 MiB).
PREDICTIONS = 2**22


class ModelError(Protocol):
    """Scores models: ``coefs`` has a model per row, in the order of ``columns``; columns are cached."""

    def __call__(self, columns: Any, coefs: Any, intercepts: Any) -> FloatArray:
        """The weighted mean squared error of every model, shape (n_models,)."""
        ...


class ColumnError:
    """Errors from predictions: columns are read when they are first needed, and cached."""

    def __init__(self, design: Design, y: FloatArray, weight: FloatArray) -> None:
        self.design = design
        self.rows = np.flatnonzero(weight > 0)
        self.share = weight[self.rows] / weight[self.rows].sum()
        # squares of a response of 1e200 overflow, so errors are computed in this unit
        self.unit = float(np.abs(y[self.rows]).max()) or 1.0
        self.y = y[self.rows] / self.unit
        self._block = np.empty((self.rows.size, 16))
        self._known = _Known(design.shape[1])

    def __call__(self, columns: NDArray[np.intp], coefs: FloatArray, intercepts: FloatArray) -> FloatArray:
        """The weighted mean squared error of every model, shape (n_models,)."""
        block = self._block_of(columns)
        scaled, level = np.asarray(coefs) / self.unit, np.asarray(intercepts) / self.unit
        out = np.empty(level.size)
        step = max(1, PREDICTIONS // max(1, self.rows.size))
        for a in range(0, level.size, step):
            fitted = block @ scaled[a : a + step].T + level[a : a + step]
            out[a : a + step] = self.share @ (self.y[:, None] - fitted) ** 2
        return out * self.unit**2

    def _block_of(self, columns: NDArray[np.intp]) -> FloatArray:
        """The values of some columns, reading those that are new."""
        width = self._known.count
        new, where = self._known.place(columns)
        if new.size:
            if self._known.count > self._block.shape[1]:
                wider = np.empty((self.rows.size, max(self._known.count, 2 * self._block.shape[1])))
                wider[:, :width] = self._block[:, :width]
                self._block = wider
            self._block[:, width : self._known.count] = self.design.take(new)[self.rows]
        return self._block[:, where]


class GramError:
    """Errors from second moments, ``y'y - 2 b'X'y + b'X'X b``, without holding columns in memory.

    Columns are centred at their h-weighted means, so no digits are lost to the means; the remaining absolute error is
    about 1e-15 of the variance of y.
    """

    def __init__(self, design: Design, y: Any, weight: Any) -> None:
        self.design = design
        self.h = design.weights(weight)
        largest = float(np.where(self.h > 0, np.abs(y), 0.0).max())
        self.unit = largest or 1.0
        used = np.where(self.h > 0, y / self.unit, 0.0)
        self.level = float(self.h @ used)
        centred = np.where(self.h > 0, used - self.level, 0.0)
        self.total = float(self.h @ (centred * centred))
        self._centred = centred
        # read with the first column, after the path has read its moments: one pass may serve both
        self._mean = self._cross = np.zeros(design.shape[1])
        self._known = _Known(design.shape[1])
        self._columns = np.empty(0, dtype=np.intp)
        self._gram = np.empty((0, 0))

    def __call__(self, columns: NDArray[np.intp], coefs: FloatArray, intercepts: FloatArray) -> FloatArray:
        """The weighted mean squared error of every model, shape (n_models,)."""
        where = self._fetch(columns)
        gram = self._gram[where, where] if isinstance(where, slice) else self._gram[np.ix_(where, where)]
        B, level = np.asarray(coefs) / self.unit, np.asarray(intercepts) / self.unit
        bias = self.level - level - B @ self._mean[columns]
        quadratic = np.einsum("mi,mi->m", B @ gram, B)
        error = self.total - 2 * (B @ self._cross[columns]) + quadratic + bias**2
        return np.maximum(error, 0.0) * self.unit**2

    def _fetch(self, columns: NDArray[np.intp]) -> slice | NDArray[np.intp]:
        """Read the Gram rows of new columns; return the positions of all."""
        k = self._known.count
        new, where = self._known.place(columns)
        if new.size:
            if k == 0:
                p = self.design.shape[1]
                alone = np.arange(p), np.arange(p + 1)
                made = self.design.moments(self._centred, self.h, *alone, centre=True, scale=np.ones(p))
                self._mean, self._cross = made.mean, made.correlation
            self._columns = np.concatenate([self._columns, new])
            rows = self.design.gram_rows(self.h, new, np.eye(new.size), self._mean[new])[:, self._columns]
            G = np.empty((self._columns.size, self._columns.size))
            G[:k, :k], G[k:], G[:k, k:] = self._gram, rows, rows[:, :k].T
            self._gram = G
        return where


class _Known:
    """The columns that have been read, in order."""

    def __init__(self, n_columns: int) -> None:
        self._position = np.full(n_columns, -1, dtype=np.intp)
        self.count = 0

    def place(self, columns: NDArray[np.intp]) -> tuple[NDArray[np.intp], slice | NDArray[np.intp]]:
        """The new columns, which are added; and the positions of all, as a slice if they are 0, 1, 2, ..."""
        new = columns[self._position[columns] < 0]
        self._position[new] = self.count + np.arange(new.size)
        self.count += new.size
        where = self._position[columns]
        in_row = np.array_equal(where, np.arange(columns.size))
        return new, slice(0, columns.size) if in_row else where
