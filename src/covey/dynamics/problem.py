"""Problem: the frozen data of a run, on the loss ``norm(y - X w)^2 / (2 n)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.groups import Groups
from covey.validation import FloatArray, as_matrix, as_response, column_names

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """Validated data. Columns stay in the user's order; ``groups.labels`` says which group each belongs to."""

    X: FloatArray
    y: FloatArray
    groups: Groups
    w_star: FloatArray | None

    @classmethod
    def pose(cls, X: Any, y: Any, groups: Any, w_star: Any = None) -> Problem:
        """Validate the arguments of a dynamics."""
        matrix = as_matrix(X)
        n, p = matrix.shape
        partition = Groups.coerce(groups, p, column_names(X))
        truth = None
        if w_star is not None:
            truth = np.asarray(w_star, dtype=float)
            if truth.shape != (p,) or not np.isfinite(truth).all():
                raise ValueError(f"w_star must hold {p} finite numbers, one per column of X, not shape {truth.shape}.")
        return cls(matrix, as_response(y, n), partition, truth)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.X.shape[0]

    def correlation(self, w: FloatArray) -> FloatArray:
        """``g = X'(y - X w) / n``, minus the gradient of the loss in w."""
        return self.X.T @ (self.y - self.X @ w) / self.n

    def loss(self, W: FloatArray) -> FloatArray:
        """The loss of each row of ``W``, in blocks of rows so that no more than the size of X is held."""
        out = np.empty(len(W))
        block = max(1, self.X.size // (2 * self.n))
        for i in range(0, len(W), block):
            R = self.y - W[i : i + block] @ self.X.T
            out[i : i + block] = np.einsum("tn,tn->t", R, R) / (2 * self.n)
        return out

    def error(self, W: FloatArray) -> FloatArray | None:
        """``norm(w - w_star)^2`` of each row of ``W``, where the truth is known."""
        if self.w_star is None:
            return None
        return np.array([np.sum((w - self.w_star) ** 2) for w in W])

    def gram(self) -> tuple[FloatArray, FloatArray]:
        """``(X'X/n, X'y/n)`` where stepping in Gram space is the cheaper way, else two empty arrays.

        One product with the Gram matrix costs p^2, one with X and its transpose 2 n p; and the matrix must be small
        beside X, or small outright.
        """
        n, p = self.X.shape
        if p <= n // 2 or (p <= 1000 and p <= 2 * n):
            return np.ascontiguousarray(self.X.T @ self.X / n), self.X.T @ self.y / n
        return np.empty((0, 0)), np.empty(0)
