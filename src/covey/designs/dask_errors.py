"""The squared error of linear models on rows that are stored on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.designs.cluster import keep
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.designs.dask import DaskDesign
    from covey.designs.row_blocks import Spread

__all__ = ["ResidualError"]

# An error below this share of the numbers it is a difference of has lost too many digits.
CANCELLED = 1e-6


class ResidualError:
    """Errors from the second moments of the awake columns and of the residual of a reference model.

    The residual of another model differs from the reference's by X times the difference of their coefficients, so its
    mean square needs no vectors over rows. The cluster is called when columns are added, and when a model is so far
    from the reference that its error would be a small difference of large numbers; it then becomes the new reference.
    Errors are accurate to ten digits, however small they are.
    """

    def __init__(self, design: DaskDesign, y: Any, weight: Any) -> None:
        self.design, self.y = design, y
        (self.weight,) = keep([weight])
        # squares of a response of 1e200 overflow, so errors are computed in this unit
        self.unit = design.response_scale(y, weight)[0] or 1.0
        self._columns = np.empty(0, dtype=np.intp)
        self._coef: FloatArray = np.empty(0)
        self._intercept = 0.0
        self._spread: Spread | None = None

    def __call__(self, columns: NDArray[np.intp], coefs: FloatArray, intercepts: FloatArray) -> FloatArray:
        """The weighted mean squared error of every model, shape (n_models,)."""
        new = columns[~np.isin(columns, self._columns)]
        if new.size:
            self._columns = np.concatenate([self._columns, new])
            self._spread = None
        known = np.argsort(self._columns, kind="stable")
        at = known[np.searchsorted(self._columns[known], columns)]
        models = np.zeros((len(coefs), self._columns.size))
        models[:, at] = coefs
        return np.array([self._error(*model) for model in zip(models, intercepts, strict=True)])

    def _error(self, coef: FloatArray, intercept: float) -> float:
        error, largest = self._difference(coef, intercept) if self._spread is not None else (0.0, 1.0)
        if error < CANCELLED * largest:
            self._coef, self._intercept = coef, float(intercept)
            self._spread = self.design.spread(self.y, self.weight, self._columns, coef, self._intercept, self.unit)
            error, _ = self._difference(coef, intercept)
        return error * self.unit**2

    def _difference(self, coef: FloatArray, intercept: float) -> tuple[float, float]:
        """The model's error, and the largest number that it is a difference of, both in units of `unit`."""
        assert self._spread is not None
        mean, gram = self._spread.mean, self._spread.gram
        move = np.append((self._coef - coef) / self.unit, 1.0)
        level = float(mean @ move) + (self._intercept - intercept) / self.unit
        error = level**2 + max(float(move @ gram @ move), 0.0)
        return error, float(gram[-1, -1] + mean[-1] ** 2)
