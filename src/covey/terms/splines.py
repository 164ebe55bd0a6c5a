"""Natural cubic splines, for many variables at once: knots at quantiles, columns orthogonal to the line.

A spline is stored by its values at the knots. Between the knots it is the interpolating natural cubic spline, and
beyond them it is linear. Arrays have the variables along the first axis: (variables, rows) or (variables, knots).
"""

from __future__ import annotations

import numpy as np

from covey.validation import FloatArray

__all__ = [
    "basis", "bends", "default_knots", "orthonormal_curves", "quantile_knots", "quantiles", "slopes", "with_grid",
]  # fmt: skip

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
    """The matrices A, (variables, rows, knots): ``A @ values`` are the splines with these values at the knots."""
    bend, _ = _second_derivatives(knots)
    step = np.diff(knots, axis=1)
    inside = np.clip(x, knots[:, :1], knots[:, -1:])
    # the interval of a point: how many inner knots are not above it
    left = (inside[:, :, None] >= knots[:, None, 1:-1]).sum(axis=2)
    here = np.arange(len(x))[:, None]
    h = step[here, left]
    up = (inside - knots[here, left]) / h
    down = 1 - up
    A = (h**2 / 6 * (down**3 - down))[:, :, None] * bend[here, left]
    A += (h**2 / 6 * (up**3 - up))[:, :, None] * bend[here, left + 1]
    row = np.arange(x.shape[1])
    A[here, row, left] += down
    A[here, row, left + 1] += up
    for below, (edge, after) in ((True, (0, 1)), (False, (-1, -2))):
        which, at = np.nonzero(x < inside if below else x > inside)
        if which.size:
            # the slope at an outer knot, where the second derivative vanishes
            width = knots[:, after] - knots[:, edge]
            slope = -bend[:, after] * width[:, None] / 6
            slope[:, edge] -= 1 / width
            slope[:, after] += 1 / width
            A[which, at] += (x - inside)[which, at, None] * slope[which]
    return A


def bends(knots: FloatArray) -> FloatArray:
    """The map from values at the knots of one variable to second derivatives there, between which they are linear."""
    return _second_derivatives(knots[None])[0][0]


def slopes(knots: FloatArray) -> FloatArray:
    """The map from values at the knots of one variable to numbers between which the slope lies everywhere.

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
    m, k = knots.shape
    step = np.diff(knots, axis=1)
    inner = np.arange(k - 2)
    D = np.zeros((m, k - 2, k))
    D[:, inner, inner] = 1 / step[:, :-1]
    D[:, inner, inner + 1] = -1 / step[:, :-1] - 1 / step[:, 1:]
    D[:, inner, inner + 2] = 1 / step[:, 1:]
    B = np.zeros((m, k - 2, k - 2))
    B[:, inner, inner] = (step[:, :-1] + step[:, 1:]) / 3
    B[:, inner[:-1], inner[1:]] = B[:, inner[1:], inner[:-1]] = step[:, 1:-1] / 6
    bend = np.zeros((m, k, k))
    bend[:, 1:-1] = np.linalg.solve(B, D)
    return bend, D.transpose(0, 2, 1) @ bend[:, 1:-1]


def orthonormal_curves(
    x: FloatArray, weights: FloatArray, knots: FloatArray, smooth: FloatArray | None = None
) -> FloatArray:
    """Values at the knots of splines that are orthonormal over the rows, and orthogonal to 1 and the line.

    The splines are ordered from smooth to wiggly: they diagonalise the integral of the squared second derivative, so
    they do not depend on the units of x.
    All arrays have a variable per entry of their first axis. `x` is standardised, `weights` add up to one, and `smooth`
    (variables, knots, columns) has splines to which the others are orthogonal besides. The result has the same axes,
    with as many columns as the rows of every variable tell apart: ``knots - 2`` at most, less those of `smooth`.
    """
    m, k = knots.shape
    root = np.sqrt(weights)[:, :, None]
    A = root * basis(x, knots)
    given = np.stack([np.ones_like(knots), knots], axis=2)
    Q, R = np.linalg.qr(root * np.stack([np.ones_like(x), x], axis=2))
    given = given @ np.linalg.inv(R)
    if smooth is not None:
        given, Q = np.concatenate([given, smooth], axis=2), np.concatenate([Q, A @ smooth], axis=2)
    # together with 1 and x, the splines that are 1 at one inner knot and 0 at the others span all natural splines
    values = np.broadcast_to(np.eye(k)[:, 1:-1], (m, k, k - 2))
    for _ in range(2):  # the second round removes the rounding of the first
        columns = A @ values
        norm = np.linalg.norm(columns, axis=(1, 2))[:, None]
        values = values - given @ (Q.transpose(0, 2, 1) @ columns)
        _, size, axes = np.linalg.svd(A @ values, full_matrices=False)
        rank = int((size > RANK_TOLERANCE * norm).sum(axis=1).min())
        if rank == 0:
            return np.zeros((m, k, 0))
        values = values @ (axes.transpose(0, 2, 1)[:, :, :rank] / size[:, None, :rank])
    wiggliness = values.transpose(0, 2, 1) @ _second_derivatives(knots)[1] @ values
    _, rotation = np.linalg.eigh(wiggliness / np.abs(wiggliness).max(axis=(1, 2), keepdims=True))
    values = values @ rotation
    return values * np.where(values[:, -1:] < 0, -1.0, 1.0)
