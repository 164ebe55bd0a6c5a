"""Step functions of time: survival and cumulative hazard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covey.validation import FloatArray

__all__ = ["StepFunction"]


@dataclass(frozen=True)
class StepFunction:
    """A step function, continuous from the right.

    Attributes
    ----------
    x, y : ndarray, shape (n_times,)
        Ascending times, and the value from each time on.
    before : float
        The value before the first time. After the last time the function is constant.

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
        """The first and last time at which the function is known."""
        return 0.0, float(self.x[-1])

    def __call__(self, times: ArrayLike) -> Any:
        """The values at some times."""
        given = np.asarray(times, dtype=float)
        values = np.concatenate([[self.before], self.y])[np.searchsorted(self.x, given, side="right")]
        return values if given.ndim else float(values)

    def __repr__(self) -> str:
        return f"StepFunction({self.x.size} steps up to time {self.x[-1]:g})"
