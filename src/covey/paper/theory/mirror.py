"""Mirror flow, and a test that a flow is not one: drive it around a closed loop.

Under a time-dependent loss a mirror flow moves by ``d/dt grad R(w) = -grad L_t(w)``. If the losses are linear,
``L_t(w) = -c_t'w``, the mirror image ``grad R(w)`` moves by the integral of ``c_t`` for any R; if that integral
vanishes, w returns to its start. A parameterised flow that does not return is not a mirror flow, for any R: theorem
not-mf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from covey.paper.theory.geometry import Parameterization
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, check_scale, positive, whole


def drive(
    network: Parameterization, x: ArrayLike, pieces: Sequence[tuple[ArrayLike, float]], *, points: int = 2
) -> FloatArray:
    """Follow the parameterised flow from x under linear losses, one after another.

    A piece is ``(c, length)``: the loss is ``-c'w`` for this length of time, and parameters move by ``dx/dt = sum_i c_i
    grad G_i(x)``. The result has `points` points per piece, including both ends.

    A closed loop: along G_0, along G_1, back along G_0, back along G_1.

    >>> from covey import Groups
    >>> from covey.paper.theory import GroupedNetwork
    >>> network = GroupedNetwork(Groups.from_sizes([2]))
    >>> pieces = [([1, 0], 0.2), ([0, 1], 0.2), ([-1, 0], 0.2), ([0, -1], 0.2)]
    >>> path = drive(network, network.pack(u=[1.0], v=[0.3, 0.5]), pieces)
    >>> (network.value(path[-1, -1]) - network.value(path[0, 0])).round(3).tolist()
    [-0.168, 0.105]
    """
    whole(points, "points", least=2)
    out, at = [], np.asarray(x, dtype=float)
    for c, length in pieces:
        direction = np.asarray(c, dtype=float)
        if direction.shape != (network.n_columns,):
            raise ValueError(f"A piece needs {network.n_columns} numbers, one per column, not {direction.shape}.")
        times = np.linspace(0.0, positive(length, "the length of a piece"), points)
        out.append(_solve(lambda z, c=direction: network.jacobian(z).T @ c, at, times))
        at = out[-1][-1]
    return np.array(out)


def follow(network: Parameterization, x: ArrayLike, X: ArrayLike, y: ArrayLike, times: ArrayLike) -> FloatArray:
    """Follow the parameterised flow of ``norm(y - Xw)^2/2``: the parameters at these times, increasing from 0."""
    matrix, start, grid = as_matrix(X), np.asarray(x, dtype=float), np.asarray(times, dtype=float)
    response = as_response(y, matrix.shape[0])

    def field(z: FloatArray) -> FloatArray:
        return network.jacobian(z).T @ (matrix.T @ (response - matrix @ network.value(z)))

    return _solve(field, start, grid)


def diagonal_potential(w: ArrayLike, scale: float) -> float:
    r"""The R of the diagonal network ``w = a^2 - b^2`` started at ``a = b = scale``.

    ``1/4 sum_i (w_i arcsinh(w_i/(2 s^2)) - sqrt(w_i^2 + 4 s^4))``: quadratic for a large scale, nearly the l1 norm for
    a small one (Woodworth et al., 2020).
    """
    w, s = as_numbers(w, "w"), _scale(scale)
    check_scale(w, "w")
    return float(np.sum(w * np.arcsinh(w / (2 * s**2)) - np.sqrt(w**2 + 4 * s**4)) / 4)


def diagonal_mirror(w: ArrayLike, scale: float) -> FloatArray:
    """``grad R(w) = arcsinh(w/(2 s^2))/4``: how far the diagonal network has moved along each column.

    >>> from covey.paper.theory import DiagonalNetwork
    >>> network = DiagonalNetwork(2)
    >>> path = drive(network, [0.5, 0.5, 0.5, 0.5], [([1, 0], 0.2), ([1, -2], 0.1)])
    >>> diagonal_mirror(network.value(path[-1, -1]), 0.5).round(6).tolist()
    [0.3, -0.2]
    """
    return np.arcsinh(as_numbers(w, "w") / (2 * _scale(scale) ** 2)) / 4


def mirror_limit(X: ArrayLike, y: ArrayLike, scale: float) -> FloatArray:
    """The limit of the diagonal network: the w with ``Xw = y`` that minimises `diagonal_potential`.

    The KKT condition is ``grad R(w) = X'm``: w is ``2 s^2 sinh(4 X'm)``, with m the maximiser of the concave dual,
    found by Newton's method. X must have independent rows.
    """
    matrix = as_matrix(X)
    response, s = as_response(y, matrix.shape[0]), _scale(scale)
    check_scale(matrix, "X")
    check_scale(response, "y")
    m = np.zeros(matrix.shape[0])

    def dual(m: FloatArray) -> float:
        return float(s**2 / 2 * np.sum(np.cosh(4 * matrix.T @ m)) - response @ m)

    for _ in range(200):
        z = 4 * matrix.T @ m
        gap = 2 * s**2 * matrix @ np.sinh(z) - response
        if np.abs(gap).max() <= 1e-13 * max(1.0, float(np.abs(response).max())):
            break
        step = np.linalg.solve((matrix * (8 * s**2 * np.cosh(z))) @ matrix.T, gap)
        # with a small scale the first step would overflow cosh
        length = min(1.0, 2.0 / max(float(np.abs(4 * matrix.T @ step).max()), 2.0))
        while dual(m - length * step) > dual(m) and length > 1e-12:
            length /= 2
        m = m - length * step
    return 2 * s**2 * np.sinh(4 * matrix.T @ m)


def _scale(scale: object) -> float:
    """Check that the fourth power of the start neither overflows nor underflows."""
    s = positive(scale, "scale")
    if not 1e-70 < s < 1e70:
        raise ValueError(f"scale must lie between 1e-70 and 1e70, so that no power over- or underflows, not {s:g}.")
    return s


def _solve(field: Callable[..., FloatArray], x: FloatArray, times: FloatArray) -> FloatArray:
    """The solution of an autonomous equation at these times."""
    found = solve_ivp(lambda _, z: field(z), (times[0], times[-1]), x, "DOP853", times, rtol=1e-11, atol=1e-13)
    if not found.success:
        raise ValueError(f"The flow could not be followed to time {times[-1]:g}: {found.message}")
    return found.y.T
