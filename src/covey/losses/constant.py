"""The best constant predictor: the minimum of a convex function of one or a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.losses.base import Loss

__all__ = ["best_constant", "best_constants", "scalar_constant"]

# Ten steps are usual; if they fail, bisection down to round-off error takes about sixty.
MAX_STEPS = 200
# Far beyond any predictor for valid data.
LARGEST = 1e200
TOLERANCE = 4 * float(np.finfo(np.float64).eps)


def scalar_constant(slope: Callable[[float], float], start: float, width: float = 1.0) -> float:
    """The minimum of a convex function of one number, given minus its derivative, by Brent's method within a bracket.

    Parameters
    ----------
    slope : callable
    start, width : float
        The starting point of the search, and the length of its first step.

    Examples
    --------
    >>> print(round(np.exp(scalar_constant(lambda c: 2 - np.exp(c), start=-5.0)), 12))
    2.0
    """
    low, high = _bracket(slope, start, width)
    if low == high:
        return low
    return float(brentq(slope, low, high, xtol=TOLERANCE * width, rtol=TOLERANCE, maxiter=MAX_STEPS, disp=False))


def _bracket(slope: Callable[[float], float], start: float, width: float) -> tuple[float, float]:
    """Two numbers that bracket the minimum, found by doubling steps from the start."""
    first = slope(start)
    if first == 0:
        return start, start
    up, step, near = first > 0, width, start
    while step < LARGEST:
        far = near + step if up else near - step
        if (slope(far) > 0) != up:
            return (near, far) if up else (far, near)
        near, step = far, 2 * step
    raise ValueError("No finite constant minimises the loss: every row pulls the model in the same direction.")


def best_constant(
    loss: Loss, y: FloatArray, weight: FloatArray, offset: FloatArray, start: float, width: float
) -> float:
    """The constant that, added to the offset, minimises a scalar loss."""
    return scalar_constant(lambda c: float(weight @ loss.residual(y, offset + c)), start, width)


def best_constants(loss: Loss, y: FloatArray, weight: FloatArray, offset: FloatArray, start: FloatArray) -> FloatArray:
    """One constant per output that minimise a vector loss, by damped Newton steps of least norm."""

    def value(c: FloatArray) -> float:
        return float(weight @ loss.value(y, offset + c))

    point, here = np.array(start, dtype=np.float64), value(start)
    units = [np.broadcast_to(unit, y.shape) for unit in np.eye(point.size)]
    for _ in range(MAX_STEPS):
        eta = offset + point
        g = weight @ loss.residual(y, eta)
        H = np.stack([weight @ loss.curvature_product(y, eta, unit) for unit in units])
        # the loss may be constant in some direction, and the Hessian singular
        step = np.linalg.lstsq(H, g, rcond=1e-12)[0]
        slope = float(g @ step)
        size = 1.0
        # close to the minimum, values differ only by round-off error, and full steps are safe
        while value(point + size * step) > here - 1e-4 * size * slope + 1e-14 * abs(here) and size > 1e-10:
            size /= 2
        point = point + size * step
        here = value(point)
        if np.abs(step).max() <= 1e-12 * max(1.0, np.abs(point).max()):
            break
    return point
