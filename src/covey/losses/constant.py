"""The best constant predictor: the minimum of a convex function of one number, or of a few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.validation import FloatArray

__all__ = ["scalar_constant", "vector_constant"]

# Ten Newton steps are usual; where they fail, halving a bracket down to its rounding takes about sixty.
MAX_STEPS = 200
# No predictor of data that are accepted comes near.
LARGEST = 1e200
TOLERANCE = 4 * float(np.finfo(np.float64).eps)


def scalar_constant(slopes: Callable[[float], tuple[float, float, float]], start: float, width: float = 1.0) -> float:
    """The minimum of a convex function of one number: Newton's method, kept within a bracket.

    Parameters
    ----------
    slopes : callable
        Minus the derivative, the second derivative, and the size of the terms that the first adds up, whose rounding
        it cannot fall below.
    start, width : float
        Where the search begins, and its first step.

    Examples
    --------
    >>> constant = scalar_constant(lambda c: (2 - np.exp(c), np.exp(c), 2 + np.exp(c)), start=-5.0)
    >>> print(round(np.exp(constant), 12))
    2.0
    """
    low, high = _bracket(slopes, start, width)
    # the end that is nearer to the start
    point, last = low if low >= start else high, high - low
    for _ in range(MAX_STEPS):
        g, h, size = slopes(point)
        if abs(g) <= TOLERANCE * size:
            break
        low, high = (point, high) if g > 0 else (low, point)
        step = g / h if h > 0 else np.inf
        # a step that leaves the bracket, or is not half of the one before, is replaced by a halving of the bracket
        if not (low < point + step < high and abs(step) < abs(last) / 2):
            step = (low + high) / 2 - point
        point, last = point + step, step
        if abs(step) <= TOLERANCE * abs(point):
            break
    return float(point)


def _bracket(slopes: Callable[[float], tuple[float, float, float]], start: float, width: float) -> tuple[float, float]:
    """Two numbers with the minimum between them, by doubling steps from the start."""
    first = slopes(start)[0]
    if first == 0:
        return start, start
    up, step, near = first > 0, width, start
    while step < LARGEST:
        far = near + step if up else near - step
        if (slopes(far)[0] > 0) != up:
            return (near, far) if up else (far, near)
        near, step = far, 2 * step
    raise ValueError("No finite constant minimises the loss: every row pulls the model in the same direction.")


def vector_constant(
    value: Callable[[FloatArray], float],
    score: Callable[[FloatArray], FloatArray],
    hessian: Callable[[FloatArray], FloatArray],
    start: FloatArray,
) -> FloatArray:
    """The minimum of a convex function of a few numbers, by damped Newton steps; the one nearest to the start."""
    point, here = np.array(start, dtype=np.float64), value(start)
    for _ in range(MAX_STEPS):
        g = score(point)
        H = hessian(point)
        # the Hessian may have a direction in which the loss is constant
        step = np.linalg.lstsq(H, g, rcond=1e-12)[0]
        slope = float(g @ step)
        size = 1.0
        # within rounding of the minimum values cannot be told apart, and full steps are good there
        while value(point + size * step) > here - 1e-4 * size * slope + 1e-14 * abs(here) and size > 1e-10:
            size /= 2
        point = point + size * step
        here = value(point)
        if np.abs(step).max() <= 1e-12 * max(1.0, np.abs(point).max()):
            break
    return point
