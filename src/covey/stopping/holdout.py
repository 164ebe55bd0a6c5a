"""Stop where held-out rows are predicted best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.monitor import PATIENCE, Monitor
from covey.validation import FloatArray, as_response, positive

__all__ = ["HoldOut", "split_rows"]

# Columns that go into a row's key beside the response: first a few, then more where few keys come of it.
KEY_COLUMNS = (8, 128)
ENOUGH_KEYS = 50


@dataclass(frozen=True)
class HoldOut(Stopping):
    """The time of least squared error on held-out rows.

    A share of the rows is set aside, the path runs on the others until the error has not improved while a few more
    groups rose, and the best time is taken; then the path is run on all rows to that time.

    Rows that are equal stay on the same side, and shares are measured by weight: a weight of two is the same as the
    row twice, and duplicates never leak from one side to the other.

    Parameters
    ----------
    fraction : float
        The share of the rows to hold out.
    refit : bool
        Whether to run the path on all rows to the chosen time; otherwise the held-out rows are not used again.
    patience : float
        How many groups may rise without lowering the error before the path is given up. Counted in groups and not
        in iterations, because the model stands still for long times between them.
    validation : (X, y), optional
        Use these rows instead of holding out some.
    random_state : int, Generator or None
    """

    fraction: float = 0.2
    refit: bool = True
    patience: float = PATIENCE
    validation: tuple[Any, Any] | None = None
    random_state: Any = None

    def choose(self, task: PathTask) -> Choice:
        """Hold out, choose, and run again on all rows."""
        patience = positive(self.patience, "patience")
        if self.validation is not None:
            X_val, y_val = self.validation
            X_val = np.asarray(X_val)
            y_val = as_response(y_val, len(X_val), name="y_val")
            monitor = Monitor(X_val, y_val, np.ones(len(X_val)), patience, task.groups.n_groups)
            path = task.path(stop=monitor)
            return Choice(path, monitor.best_time, monitor.scores())
        held = split_rows(task, self.fraction, self.random_state)
        monitor = Monitor(task.X, task.y, np.where(held, task.weight, 0.0), patience, task.groups.n_groups)
        path = task.on(~held).path(stop=monitor)
        if self.refit:
            path = task.path(max_iter=max(1, int(monitor.best_time)), step_size=path.step_size)
        return Choice(path, monitor.best_time, monitor.scores())


def split_rows(task: PathTask, fraction: float, random_state: Any) -> NDArray[np.bool_]:
    """Which rows to hold out: about `fraction` of the weight, equal rows together."""
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"The held-out fraction must lie between 0 and 1, not {fraction!r}.")
    rng = np.random.default_rng(random_state)
    used = np.flatnonzero(task.weight > 0)
    keys = _row_keys(task.X, task.y, used, rng)
    distinct, inverse = np.unique(keys, return_inverse=True)  # keys are hashes, so their order is random
    if distinct.size < 2:
        raise ValueError(
            "Rows cannot be held out: all rows are equal. Choose the time otherwise, with stopping='ebic' for instance."
        )
    weight = np.bincount(inverse, weights=task.weight[used])
    ends = np.cumsum(weight)
    # whole rows only: the smallest number that reaches the fraction, at least one, never all
    n_held = int(np.searchsorted(ends, fraction * ends[-1] * (1 - 1e-12))) + 1
    held = np.zeros(task.weight.size, dtype=bool)
    held[used] = inverse < min(n_held, distinct.size - 1)
    return held


def _row_keys(X: Any, y: FloatArray, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.uint64]:
    """A seeded 64-bit hash of each row's response and of some of its columns: equal rows have equal keys.

    Values enter by their rank among the distinct ones, so that neither units nor repetitions change the split.
    """
    p = X.shape[1]
    key = np.zeros(rows.size, dtype=np.uint64)
    for n_columns in KEY_COLUMNS:
        for j in (None, *np.unique(np.linspace(0, p - 1, min(p, n_columns)).astype(np.intp))):
            values = y[rows] if j is None else np.asarray(X[rows, j])
            rank = np.unique(values, return_inverse=True)[1].astype(np.uint64)
            key = _mix(key ^ (rank + rng.integers(0, 2**63, dtype=np.uint64)))
        if np.unique(key).size >= ENOUGH_KEYS:
            break
    return key


def _mix(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the input changes half of the output's."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
