"""Held-out errors of folds on a common grid of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.stopping.monitor import earliest_least
from covey.validation import FloatArray

__all__ = ["FoldErrors", "FoldRun", "align", "as_run", "choose_time", "standard_error", "time_grid"]

# Neighbouring times of the grid differ by this factor. A group takes about a third of its wake-up time to grow, so
# a step of 2% shows every transition in more than ten points.
GRID_RATIO = 1.02


class FoldRun(NamedTuple):
    """One path in one fold: its errors, up to which time it is known, and when its groups woke up.

    Of a dense network also the errors of its model sharpened, penalty by penalty (`covey.stopping.averaging`); and
    whether it was cut short because its model cleaned is better by far.
    """

    times: list[float]
    errors: list[float]
    reached: float
    entered: list[tuple[int, float]]
    sharpened: list[float]
    overtaken: bool = False


def as_run(kept: Any) -> FoldRun:
    """A run that may have come back from a file."""
    run = FoldRun(*kept)
    return run._replace(entered=[(int(l), float(t)) for l, t in run.entered])


@dataclass(frozen=True)
class FoldErrors:
    """Held-out squared error of every fold along the common grid.

    Attributes
    ----------
    times : ndarray, shape (n_times,)
    mse : ndarray, shape (n_times, n_folds)
    step_size : float
        The step shared by the folds, which makes their times comparable.
    """

    times: NDArray[np.float64]
    mse: FloatArray
    step_size: float

    @property
    def mean(self) -> FloatArray:
        """Mean over the folds."""
        return self.mse.mean(axis=1)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean over the folds."""
        return standard_error(self.mse)


def standard_error(mse: FloatArray) -> FloatArray:
    """Standard error of the mean over the last axis, whatever its units (errors of 1e300 have no square)."""
    k = mse.shape[-1]
    unit = np.abs(mse).max()
    if k < 2 or unit == 0:
        return np.zeros(mse.shape[:-1])
    return (mse / unit).std(axis=-1, ddof=1) / np.sqrt(k) * unit


def time_grid(last: int) -> NDArray[np.int64]:
    """0 and then times a constant factor apart, up to `last`."""
    steps = int(np.ceil(np.log(max(last, 2)) / np.log(GRID_RATIO))) + 1
    return np.unique(np.append(np.round(GRID_RATIO ** np.arange(steps)).clip(0, last), [0, last])).astype(np.int64)


def align(runs: list[FoldRun], grid: NDArray[np.int64], step: float) -> FoldErrors:
    """Cut to the times up to which every fold is known; one that had nothing left to learn keeps its last error."""
    reached = min(run.reached for run in runs)
    last = max(run.reached if np.isfinite(run.reached) else run.times[-1] for run in runs)
    times = grid[grid <= min(reached, last)].astype(float)
    mse = np.empty((times.size, len(runs)))
    for k, run in enumerate(runs):
        mse[:, k] = np.asarray(run.errors)[np.searchsorted(run.times, times, side="right") - 1]
    return FoldErrors(times, mse, step)


def choose_time(errors: FoldErrors, rule: Literal["min", "1se"]) -> float:
    """The time that a rule chooses."""
    mean = errors.mean
    best = earliest_least(mean)
    if rule == "1se":
        best = int(np.argmax(mean <= mean[best] + errors.standard_error[best]))
    return float(errors.times[best])
