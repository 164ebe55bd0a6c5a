"""The likelihood of ordered classes as a function of the predictor, at the likeliest thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_expit

from covey.layout import offsets
from covey.losses.base import LossOnRows
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = ["CumulativeLogits", "edges"]


@dataclass
class _At:
    """What depends on a predictor: the thresholds, and the shares of rows beyond the edges of their class."""

    eta: FloatArray
    thresholds: FloatArray
    above: FloatArray  # expit(eta - upper threshold)
    below: FloatArray  # expit(lower threshold - eta)
    value: FloatArray


class CumulativeLogits(LossOnRows):
    """Minus the log-likelihood of ordered classes, minimised over the thresholds between them.

    A row of class k between thresholds a and b has the loss ``log(1 + exp(eta - b)) + log(1 + exp(a - eta))`` plus
    ``-log(1 - exp(a - b))``, which does not involve eta. Classes without weight are left out. Of several models, which
    are the second axis of ``eta``, each has its thresholds.

    Parameters
    ----------
    loss : Loss
    y : ndarray, shape (n_rows,) or (n_rows, 1)
        Positions of classes.
    weight : ndarray, shape (n_rows,)
    """

    def __init__(self, loss: Loss, y: FloatArray, weight: FloatArray) -> None:
        super().__init__(loss, y, weight)
        self.n_rows, used = len(y), np.flatnonzero(weight > 0)
        _, codes, sizes = np.unique(np.ravel(y)[used], return_inverse=True, return_counts=True)
        order = np.argsort(codes, kind="stable")
        self._rows, self._class, self._starts = used[order], codes[order], offsets(sizes)
        self._w = weight[self._rows][:, None]
        self._totals = np.add.reduceat(self._w, self._starts[:-1], axis=0) if sizes.size else np.zeros((0, 1))
        self._last: _At | None = None

    def thresholds(self, eta: FloatArray) -> FloatArray:
        """The likeliest thresholds, one fewer than classes; models are the second axis."""
        found = self._at(eta).thresholds
        return found[:, 0] if np.ndim(eta) == 1 else found

    def values(self, eta: FloatArray) -> FloatArray:
        """Minus the log-likelihood of each row, without its weight; zero for rows without weight."""
        at = self._at(eta)
        low, high, gap = edges(at.thresholds)
        low, high, gap = low[self._class], high[self._class], gap[self._class]
        return self._scattered(-log_expit(high - at.eta) - log_expit(at.eta - low) - gap, eta)

    def total(self, eta: FloatArray) -> float | FloatArray:
        """Minus the log-likelihood."""
        value = self._at(eta).value
        return float(value[0]) if np.ndim(eta) == 1 else value

    def deviance(self, eta: FloatArray) -> float | FloatArray:
        """Twice the total: a perfect model is sure of every class."""
        return 2 * self.total(eta)

    def score(self, eta: FloatArray) -> FloatArray:
        """Minus the gradient of the total; at the likeliest thresholds, it is the same as if they were known."""
        at = self._at(eta)
        return self._scattered(self._w * (at.below - at.above), eta)

    def curvature(self, eta: FloatArray, bounding: bool = False) -> FloatArray:
        """The diagonal of the Hessian with known thresholds: a weight of two is then the same as the row twice."""
        at = self._at(eta)
        return self._scattered(self._w * (at.above * (1 - at.above) + at.below * (1 - at.below)), eta)

    def curvature_product(self, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction, for one model."""
        above, below, T = self._second(eta)
        along = np.asarray(direction, dtype=float)[self._rows]
        moved = np.append(np.linalg.solve(T, self._crossed(above, below, along[:, None])[:, 0]), 0.0)
        product = (above + below) * along - above * moved[self._class] - below * moved[self._class - 1]
        return self._scattered(product[:, None], eta)

    def gram(self, eta: FloatArray, A: FloatArray, bounding: bool = False) -> FloatArray:
        """``A' H A``: what the rows have with known thresholds, less what the thresholds explain."""
        above, below, T = self._second(eta)
        columns = A[self._rows]
        B, M = columns * np.sqrt(above + below)[:, None], self._crossed(above, below, columns)
        return np.asarray(B.T @ B - M.T @ np.linalg.solve(T, M))

    def _second(self, eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weighted second derivatives of the rows at their upper and lower thresholds, and those in the thresholds."""
        from covey.losses.threshold_kernels import derivatives

        at, w = self._at(eta), self._w[:, 0]
        up, down, limits = (np.ascontiguousarray(one[:, 0]) for one in (at.above, at.below, at.thresholds))
        _, diagonal, beside = derivatives(w, self._starts, self._totals[:, 0], limits, up, down)
        T = np.diag(diagonal) + np.diag(beside[1:], 1) + np.diag(beside[1:], -1)
        return w * up * (1 - up), w * down * (1 - down), T

    def _crossed(self, above: FloatArray, below: FloatArray, columns: FloatArray) -> FloatArray:
        """Minus the mixed second derivatives times columns; shape (n_thresholds, n_columns)."""
        of_above, of_below = (np.add.reduceat(p[:, None] * columns, self._starts[:-1], axis=0) for p in (above, below))
        return np.asarray(of_above[:-1] + of_below[1:])

    def _at(self, eta: FloatArray) -> _At:
        """The likeliest thresholds, kept for one predictor: Newton's method needs total, score and Hessian there."""
        given = np.asarray(eta, dtype=float)[self._rows]
        given = given[:, None] if given.ndim == 1 else given
        last = self._last
        if last is not None and last.eta.shape == given.shape and (last.eta == given).all():
            return last
        at = self._minimised(given, None if last is None or given.shape[1] > 1 else last.thresholds)
        if given.shape[1] == 1:
            self._last = at
        return at

    def _minimised(self, eta: FloatArray, start: FloatArray | None) -> _At:
        """The likeliest thresholds of all models."""
        from covey.losses.threshold_kernels import likeliest  # compiled with the first ordered classes

        if start is None:
            shares = np.cumsum(self._totals / self._totals.sum(), axis=0)[:-1]
            middle = (self._w * eta).sum(axis=0) / self._w.sum()
            start = np.log(shares) - np.log1p(-shares) + middle
        thresholds = np.broadcast_to(start, (max(len(self._totals) - 1, 0), eta.shape[1])).copy()
        found = likeliest(np.ascontiguousarray(eta), self._w[:, 0], self._starts, self._totals[:, 0], thresholds)
        return _At(eta, thresholds, *found)

    def _scattered(self, values: FloatArray, eta: FloatArray) -> FloatArray:
        """Values of the sorted rows, in the order of all rows and the shape of eta."""
        out = np.zeros((self.n_rows, values.shape[1]))
        out[self._rows] = values
        return out[:, 0] if np.ndim(eta) == 1 else out


def edges(thresholds: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The thresholds below and above every class, and ``log(1 - exp(-gap))`` of their gap; first axis of all: classes.

    >>> [part[:, 0].round(2).tolist() for part in edges(np.array([[0.0], [1.0]]))]
    [[-inf, 0.0, 1.0], [0.0, 1.0, inf], [0.0, -0.46, 0.0]]
    """
    ends = np.full((len(thresholds) + 2, thresholds.shape[1]), np.inf)
    ends[0], ends[1:-1] = -np.inf, thresholds
    gap = np.zeros_like(ends[:-1])
    gap[1:-1] = np.log(-np.expm1(-np.diff(thresholds, axis=0)))
    return ends[:-1], ends[1:], gap
