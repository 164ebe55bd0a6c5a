"""Step functions of time: survival and cumulative hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.validation import FloatArray

__all__ = ["StepFunction"]


@dataclass(frozen=True)
class StepFunction:
    """A function that is constant between some times, and takes its new value at each of them.

    Attributes
    ----------
    x, y : ndarray, shape (n_times,)
        Times, ascending, and the value from each of them on.
    before : float
        The value before the first of them. After the last one the function stays as it is.

    Examples
    --------
    >>> StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]), before=1.0)([0.5, 1.0, 7.0]).tolist()
    [1.0, 0.9, 0.5]
    """

    x: FloatArray
    y: FloatArray
    before: float

    @property
    def domain(self) -> tuple[float, float]:
        """From when to when it is known."""
        return 0.0, float(self.x[-1])

    def __call__(self, times: Any) -> Any:
        """The values at some times."""
        given = np.asarray(times, dtype=float)
        values = np.concatenate([[self.before], self.y])[np.searchsorted(self.x, given, side="right")]
        return values if given.ndim else float(values)

    def __repr__(self) -> str:
        return f"StepFunction({self.x.size} steps up to time {self.x[-1]:g})"
