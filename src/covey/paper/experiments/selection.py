"""Choose a model on a path with a validation set, in the same way for all methods."""

from __future__ import annotations

import numpy as np

from covey.paper.dynamics import Trajectory
from covey.path import Path
from covey.validation import FloatArray

__all__ = ["Chosen", "choose", "choose_on_path"]


class Chosen:
    """The model with the least validation error: its coefficients and its position on the path."""

    def __init__(self, coefs: FloatArray, intercepts: FloatArray, X_val: FloatArray, y_val: FloatArray) -> None:
        errors = np.mean((y_val[:, None] - X_val @ coefs.T - intercepts) ** 2, axis=0)
        self.position = int(np.argmin(errors))
        self.coef = coefs[self.position]
        self.intercept = float(np.broadcast_to(intercepts, len(coefs))[self.position])

    def mse(self, X: FloatArray, y: FloatArray) -> float:
        """Mean squared error on other rows."""
        return float(np.mean((y - X @ self.coef - self.intercept) ** 2))


def choose_on_path(path: Path, X_val: FloatArray, y_val: FloatArray) -> Chosen:
    """Choose on a `Path`."""
    return Chosen(path.coefs.toarray(), path.intercepts, X_val, y_val)


def choose(run: Trajectory, X_val: FloatArray, y_val: FloatArray, intercept: float = 0.0) -> Chosen:
    """Choose on a `Trajectory`, including its start."""
    return Chosen(run.w, np.array(intercept), X_val, y_val)
