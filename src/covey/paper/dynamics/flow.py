"""Gradient flow: the paper's ordinary differential equation, solved."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from covey.paper.dynamics.loop import check_scale
from covey.paper.dynamics.plain import read_plain_start
from covey.paper.dynamics.problem import Problem
from covey.paper.dynamics.trajectory import Status, Trajectory
from covey.validation import FloatArray, as_numbers, one_of, positive, whole

SHORTEST = 1e-100
METHODS = ("LSODA", "DOP853", "RK45", "Radau", "BDF")


def gradient_flow(
    X: object, y: object, groups: object, *, init_scale: float | FloatArray = 1e-3, t_end: float | None = None,
    times: object = None, start: object = "aligned", depth: int = 2, w_star: object = None,
    method: Literal["LSODA", "DOP853", "RK45", "Radau", "BDF"] = "LSODA", rtol: float = 1e-9, atol: float = 1e-12,
) -> Trajectory:  # fmt: skip
    r"""Follow the gradient flow of ``norm(y - X w)^2 / (2 n)`` over ``w_l = u_l^N v_l``.

    .. math::

        \dot u_l = N u_l^{N-1} v_l^\top g_l, \qquad \dot v_l = u_l^N g_l, \qquad g = X^\top (y - X w)/n.

    ``u_l^2/N - norm(v_l)^2`` is conserved (lemma balancing). The curve is followed in the coordinates ``(log u_l,
    v_l/u_l)``, in which neither factor can underflow however small the start:

    .. math::

        \tfrac{d}{dt} \log u_l = N u_l^{N-1} q_l^\top g_l, \qquad \dot q_l = u_l^{N-1} (g_l - N q_l q_l^\top g_l).

    Parameters
    ----------
    X, y, groups, depth, w_star
        As in `normalized_descent`.
    init_scale : float or array of shape (L,)
        Start of the magnitudes, theta in theorem gf-es.
    t_end : float, optional
        The last time; by default five times the time in which the strongest group would grow from `init_scale`,
        which is of order ``1/init_scale``: without normalisation small starts are slow.
    times : array, optional
        Times to record at, increasing from 0; by default 501 equally spaced ones.
    start : "aligned", "zero", "small" or array of shape (p,)
        Directions at time 0, as in `plain_descent`; the default is balanced and aligned with ``X_l'y/n``.
    method, rtol, atol
        As in `scipy.integrate.solve_ivp`. A flow that stays near its end for long is faster with ``method="BDF"`` and
        a looser `atol`.

    Returns
    -------
    Trajectory
        Its method ``at(t)`` uses the solver's dense output.

    Examples
    --------
    >>> from covey.datasets import make_group_sparse
    >>> from covey.paper.dynamics import gradient_flow
    >>> data = make_group_sparse(60, 12, 3, design="orthogonal", active=1, values=1.0, random_state=0)
    >>> path = gradient_flow(data.X, data.y, data.groups, init_scale=0.01, w_star=data.w_star)
    >>> bool(path.error.min() < 0.05)
    True
    """
    problem = Problem.pose(X, y, groups, w_star)
    N = whole(depth, "depth", least=2)
    partition = problem.groups
    labels, L = partition.labels, partition.n_groups
    alpha = check_scale(init_scale, L)
    v0 = read_plain_start(start, problem, alpha, N)
    first_norms = problem.first_norms()
    if times is None:
        if t_end is None:
            # with a balanced, aligned start du/dt = sqrt(N) u^N norm(g): the time to grow from alpha to any large value
            with np.errstate(divide="ignore", over="ignore"):
                growth = float((1 / (np.sqrt(N) * (N - 1) * alpha ** (N - 1) * first_norms)).min())
            t_end = 5 * growth if np.isfinite(growth) else 1.0
        grid = np.linspace(0.0, positive(t_end, "t_end"), 501)
    else:
        if t_end is not None:
            raise ValueError("Give times or t_end, not both.")
        grid = as_numbers(times, "times")
        if grid.ndim != 1 or grid.size < 2 or grid[0] != 0 or not (np.diff(grid) > 0).all():
            raise ValueError("times must increase from 0 and hold at least two numbers.")
    if grid[-1] < SHORTEST:
        raise ValueError(f"t_end must be at least {SHORTEST:g}, not {grid[-1]:g}: solvers need a longer interval.")
    one_of(method, METHODS, "method")
    # At its fixed point, u^(N+1)/sqrt(N) = c, the strongest group settles within 1/(N u^(N-1) c); from a start of 1e-20
    # it takes until 1e20 to wake up, where the spacing of doubles is 1e4.
    c = float(first_norms.max())
    if c > 0 and grid[-1] * np.finfo(float).eps * N * (np.sqrt(N) * c) ** ((N - 1) / (N + 1)) * c > 0.1:
        raise ValueError(
            f"The flow would run to time {grid[-1]:.3g}, too long for double precision to resolve its last stage. "
            "Use a larger init_scale, or normalized_descent, whose time grows only as log(1/init_scale)."
        )

    def equation(_: float, state: FloatArray) -> FloatArray:
        u, q = np.exp(state[:L]), state[L:]
        g = problem.correlation((u ** (N + 1))[labels] * q)
        rate = np.add.reduceat(partition.to_contiguous(q * g), partition.starts[:-1])
        return np.concatenate([N * u ** (N - 1) * rate, (u ** (N - 1))[labels] * (g - N * q * rate[labels])])

    def factors(states: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = np.exp(states[:L].T)
        return u, u[:, labels] * states[L:].T

    first = np.concatenate([np.log(alpha), v0 / alpha[labels]])
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(
            equation, (0.0, grid[-1]), first, method=method, t_eval=grid, dense_output=True,
            rtol=positive(rtol, "rtol"), atol=positive(atol, "atol"),
        )  # fmt: skip
    u, v = factors(solution.y)
    w = u[:, labels] ** N * v
    failed = f"The solver failed: {solution.message} Loosen rtol and atol."
    return Trajectory(
        solution.t, u, v, w, problem.loss(w), problem.error(w), partition, N,
        status=Status.COMPLETED if solution.success else Status.DIVERGED,
        message=solution.message if solution.success else failed,
        _dense=lambda t: factors(solution.sol(t)),
    )  # fmt: skip
