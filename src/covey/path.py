"""Path: coefficients along a one-parameter family of models, the common result of the engine and the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups

__all__ = ["Path"]


@dataclass(frozen=True)
class Path:
    """Models in the order in which they were reached, on the user's scale.

    Attributes
    ----------
    times : ndarray, shape (n_times,)
        Increasing. Iterations for the network and for primal-dual; positions in the list of penalties for the
        group lasso.
    coefs : scipy.sparse.csr_array, shape (n_times, n_columns)
        Coefficients in the user's columns and units. Groups still asleep are exactly zero.
    intercepts : ndarray, shape (n_times,)
    groups : Groups
    entered : list of (group position, time)
        The order in which groups woke up, each with its time.
    status : str
        ``"completed"``, ``"stopped"`` by the caller, ``"exhausted"`` when the design has nothing left to
        explain, or ``"diverged"``; `message` says more.
    penalties : ndarray, shape (n_times,) or None
        The penalty at each position, where the path is one over penalties.
    n_passes, n_gram_columns : int
        How often X was read in full, and how many Gram columns were fetched.
    """

    times: NDArray[Any]
    coefs: sp.csr_array
    intercepts: NDArray[np.float64]
    groups: Groups
    entered: list[tuple[int, float]] = field(default_factory=list)
    status: str = "completed"
    message: str = ""
    penalties: NDArray[np.float64] | None = None
    n_passes: int = 0
    n_gram_columns: int = 0

    def __len__(self) -> int:
        return len(self.times)

    @property
    def group_norms(self) -> NDArray[np.float64]:
        """Euclidean norm of each group's coefficients at each time; shape (n_times, n_groups)."""
        squares = self.coefs.copy()
        squares.data = squares.data**2
        L = self.groups.n_groups
        membership = sp.csr_array(
            (np.ones(self.groups.n_columns), (np.arange(self.groups.n_columns), self.groups.labels)),
            shape=(self.groups.n_columns, L),
        )
        return np.sqrt((squares @ membership).toarray())

    def index(self, t: float) -> int:
        """The position of the last recorded time not after ``t``."""
        if t < self.times[0]:
            raise ValueError(f"The path starts at time {self.times[0]:g}; time {t:g} lies before it.")
        return int(np.searchsorted(self.times, t, side="right") - 1)

    def at(self, t: float) -> NDArray[np.float64]:
        """The coefficients at the last recorded time not after ``t``; shape (n_columns,)."""
        return self.coefs[[self.index(t)]].toarray().ravel()

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions of every model on the path; shape (n_rows, n_times)."""
        return np.asarray(X @ self.coefs.T) + self.intercepts
