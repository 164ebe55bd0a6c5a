"""Problem: the immutable data of a run, and its loss, by default ``norm(y - X w)^2 / (2 n)``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from covey.groups import Groups
from covey.losses import Loss, Squared, get_loss
from covey.losses.responses import read_offset
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, check_scale, column_names


@dataclass(frozen=True)
class Problem:
    """Validated data. Columns keep the user's order; ``groups.labels`` has the group of each.

    ``row_loss`` is the loss of one row, and ``offset`` is added to every linear predictor. For the squared loss it is
    subtracted from y instead, which is equivalent.
    """

    X: FloatArray
    y: FloatArray
    groups: Groups
    w_star: FloatArray | None
    row_loss: Loss = field(default_factory=Squared)
    offset: FloatArray | None = None

    @classmethod
    def pose(
        cls, X: object, y: object, groups: object, w_star: object = None, loss: str | Loss = "squared",
        offset: ArrayLike | None = None,
    ) -> Problem:  # fmt: skip
        matrix = as_matrix(X)
        n, p = matrix.shape
        partition = Groups.coerce(groups, p, column_names(X))
        truth = None if w_star is None else as_coefficients(w_star, "w_star", p)
        row_loss, response = get_loss(loss), as_response(y, n)
        check_scale(matrix, "X")
        check_scale(response, "y")
        shift = None if offset is None else read_offset(offset, n, 1, row_loss)[:, 0]
        if row_loss.vector:
            raise ValueError(
                f"The network has one linear predictor, but the {row_loss.name} loss needs several. "
                "Use covey.limit_path."
            )
        if row_loss.quadratic:
            return cls(matrix, response if shift is None else response - shift, partition, truth)
        return cls(matrix, row_loss.check(response), partition, truth, row_loss, shift)

    @property
    def n(self) -> int:
        return self.X.shape[0]

    def correlation(self, w: FloatArray) -> FloatArray:
        """``g = X' residual / n``, the negative gradient of the loss in w: ``X'(y - X w) / n`` for the squared loss."""
        return self.X.T @ self.row_loss.residual(self.y, self.predictor(w)) / self.n

    def first_norms(self) -> FloatArray:
        """The norm of ``g`` on each group at ``w = 0``, ``norm(X_l'y/n)`` for the squared loss."""
        return self.groups.norms(self.correlation(np.zeros(self.X.shape[1])))

    def predictor(self, w: FloatArray) -> FloatArray:
        """The linear predictor ``X w`` plus the offset; one row per row of w if there are several."""
        eta = w @ self.X.T
        return eta if self.offset is None else eta + self.offset

    def loss(self, W: FloatArray) -> FloatArray:
        """The mean loss at each row of ``W``, in blocks of rows so that memory stays below the size of X."""
        out = np.empty(len(W))
        block = max(1, self.X.size // (2 * self.n))
        for i in range(0, len(W), block):
            out[i : i + block] = self.row_loss.value(self.y, self.predictor(W[i : i + block])).mean(axis=1)
        return out

    def error(self, W: FloatArray) -> FloatArray | None:
        """``norm(w - w_star)^2`` of each row of ``W``, if the truth is known."""
        if self.w_star is None:
            return None
        return np.array([np.sum((w - self.w_star) ** 2) for w in W])

    def gram(self) -> tuple[FloatArray, FloatArray]:
        """``(X'X/n, X'y/n)`` if they are small, and a product, p^2, is cheaper than with X, 2 n p; otherwise empty."""
        n, p = self.X.shape
        if p <= n // 2 or (p <= 1000 and p <= 2 * n):
            return np.ascontiguousarray(self.X.T @ self.X / n), self.X.T @ self.y / n
        return np.empty((0, 0)), np.empty(0)


def as_coefficients(values: object, name: str, p: int) -> FloatArray:
    """One finite number per column."""
    w = as_numbers(values, name)
    if w.shape != (p,):
        raise ValueError(f"{name} must hold {p} finite numbers, one per column, not shape {w.shape}.")
    return w
