"""Natural cubic splines: knots at quantiles, columns orthogonal to the line.

A spline is stored by its values at the knots. Between the knots it is the interpolating natural cubic spline, and
beyond them it is linear.
"""

from __future__ import annotations

import numpy as np

from covey.validation import FloatArray

# Eight curve columns follow most effects in tables of some hundred rows; in small tables every column costs too much.
MOST_KNOTS = 10
ROWS_PER_KNOT = 28
# The outer knots. The rows beyond them, where a cubic would follow single rows, get a line.
TAIL = 0.025
# Rows between neighbouring knots, at least: fewer would decide a bend of the curve.
ROWS_BETWEEN_KNOTS = 10
# Knots of the detail are evenly spaced over the range, as those of P-splines are: so many steps, or one for so many
# rows, and one on either side, because a natural spline does not bend at its outermost knots. None is closer to another
# knot than this share of a step.
MOST_STEPS = 19
ROWS_PER_STEP = 20
APART = 0.6
# Knots that are closer than this, relative to their range, are one.
CLOSEST = 1e-9
# Directions of which less than this is left beside the line, relative to all columns, are rounding.
RANK_TOLERANCE = 1e-9


def default_knots(n_rows: int) -> int:
    """The number of knots for a table of so many rows.

    >>> default_knots(50), default_knots(150), default_knots(200), default_knots(10**6)
    (3, 5, 7, 10)
    """
    return min(max(n_rows // ROWS_PER_KNOT, 3), MOST_KNOTS)


def quantiles(values: FloatArray, weights: FloatArray, at: FloatArray) -> FloatArray:
    """Weighted quantiles of sorted distinct values, linear between the middles of their steps."""
    middles = np.cumsum(weights) - weights / 2
    return np.interp(at, middles / weights.sum(), values)


def quantile_knots(values: FloatArray, rows: FloatArray, n_knots: int) -> FloatArray:
    """At most `n_knots` increasing knots for sorted distinct values with the given numbers of rows.

    A value that many rows share counts as no more than the rows of one knot, so that it does not attract several.
    """
    rows_up_to = np.append(0.0, np.cumsum(rows))
    knots = values
    if len(values) > n_knots:
        weights = rows / rows.sum()
        for _ in range(4):  # every pass raises the shares of the others, and four are near the limit
            weights = np.minimum(weights, 1 / n_knots)
            weights = weights / weights.sum()
        knots = quantiles(values, weights, np.linspace(TAIL, 1 - TAIL, n_knots))
    rows_up_to = rows_up_to[np.searchsorted(values, knots, side="right")]
    least, kept = CLOSEST * (knots[-1] - knots[0]), [0]
    for j in range(1, len(knots)):
        if knots[j] - knots[kept[-1]] > least and rows_up_to[j] - rows_up_to[kept[-1]] >= ROWS_BETWEEN_KNOTS:
            kept.append(j)
    return knots[kept]


def with_grid(knots: FloatArray, values: FloatArray, rows: FloatArray) -> FloatArray:
    """The knots, and those of an even grid from a step before the range to one after it that are not close to them.

    The sorted distinct values have the given numbers of rows. If half of the steps hold few rows, there are no more
    knots: in a long tail single rows would decide how the detail goes.
    """
    n_steps = min(int(rows.sum()) // ROWS_PER_STEP, MOST_STEPS)
    if n_steps < len(knots):
        return knots
    in_step, grid = np.histogram(values, n_steps, weights=rows)
    if np.median(in_step) < ROWS_BETWEEN_KNOTS:
        return knots
    step = grid[1] - grid[0]
    grid = np.concatenate([[grid[0] - step], grid, [grid[-1] + step]])
    far = np.abs(grid[:, None] - knots).min(axis=1) > APART * step
    return np.sort(np.concatenate([knots, grid[far]]))


def basis(x: FloatArray, knots: FloatArray) -> FloatArray:
    """The matrix A, (values of x, knots): ``A @ values`` is the spline with these values at the knots."""
    bend, inside = bends(knots), np.clip(x, knots[0], knots[-1])
    left = np.searchsorted(knots[1:-1], inside, side="right")  # the interval of a point
    h = np.diff(knots)[left]
    up = (inside - knots[left]) / h
    down = 1 - up
    A = (h**2 / 6 * (down**3 - down))[:, None] * bend[left]
    A += (h**2 / 6 * (up**3 - up))[:, None] * bend[left + 1]
    row = np.arange(len(x))
    A[row, left] += down
    A[row, left + 1] += up
    for beyond, edge, after in ((x < inside, 0, 1), (x > inside, -1, -2)):
        if beyond.any():
            # the slope at an outer knot, where the second derivative vanishes
            width = knots[after] - knots[edge]
            slope = -bend[after] * width / 6
            slope[edge] -= 1 / width
            slope[after] += 1 / width
            A[beyond] += (x - inside)[beyond, None] * slope
    return A


def bends(knots: FloatArray) -> FloatArray:
    """The map from values at the knots to second derivatives there, between which they are linear."""
    return _second_derivatives(knots)[0]


def slopes(knots: FloatArray) -> FloatArray:
    """The map from values at the knots to numbers between which the slope lies everywhere.

    Between two knots the slope is a quadratic function, and so a mean of its Bernstein coefficients: the slopes at both
    ends, and where their tangents meet.
    """
    step, bend = np.diff(knots)[:, None], bends(knots)
    rise = np.diff(np.eye(len(knots)), axis=0) / step
    left = rise - step / 6 * (2 * bend[:-1] + bend[1:])
    right = rise + step / 6 * (bend[:-1] + 2 * bend[1:])
    return np.concatenate([left, left + step / 2 * bend[:-1], right[-1:]])


def _second_derivatives(knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The linear map from values at the knots to second derivatives there, and the form of their integrated square."""
    k, step = len(knots), np.diff(knots)
    inner = np.arange(k - 2)
    D = np.zeros((k - 2, k))
    D[inner, inner] = 1 / step[:-1]
    D[inner, inner + 1] = -1 / step[:-1] - 1 / step[1:]
    D[inner, inner + 2] = 1 / step[1:]
    B = np.diag((step[:-1] + step[1:]) / 3)
    B[inner[:-1], inner[1:]] = B[inner[1:], inner[:-1]] = step[1:-1] / 6
    bend = np.zeros((k, k))
    bend[1:-1] = np.linalg.solve(B, D)
    return bend, D.T @ bend[1:-1]


def orthonormal_curves(x: FloatArray, weights: FloatArray, knots: FloatArray, smooth: FloatArray) -> FloatArray:
    """Values at the knots of splines that are orthonormal over the rows, and orthogonal to 1 and the line.

    The splines are ordered from smooth to wiggly: they diagonalise the integral of the squared second derivative, so
    they do not depend on the units of x, which is standardised. `weights` add up to one, and `smooth` (knots, columns)
    has splines to which the others are orthogonal besides. The result has as many columns as the rows tell apart:
    ``knots - 2`` at most, less those of `smooth`.
    """
    k, root = len(knots), np.sqrt(weights)[:, None]
    A = root * basis(x, knots)
    Q, R = np.linalg.qr(root * np.column_stack([np.ones_like(x), x]))
    given = np.hstack([np.column_stack([np.ones_like(knots), knots]) @ np.linalg.inv(R), smooth])
    Q = np.hstack([Q, A @ smooth])
    # together with 1 and x, the splines that are 1 at one inner knot and 0 at the others span all natural splines
    values = np.eye(k)[:, 1:-1]
    for _ in range(2):  # the second round removes the rounding of the first
        columns = A @ values
        norm = np.linalg.norm(columns)
        values = values - given @ (Q.T @ columns)
        _, size, axes = np.linalg.svd(A @ values, full_matrices=False)
        rank = int((size > RANK_TOLERANCE * norm).sum())
        values = values @ (axes.T[:, :rank] / size[:rank])
        if rank == 0:
            return values
    wiggliness = values.T @ _second_derivatives(knots)[1] @ values
    values = values @ np.linalg.eigh(wiggliness / np.abs(wiggliness).max())[1]
    return values * np.where(values[-1] < 0, -1.0, 1.0)
