"""Compiled steps of the baselines, in the contiguous layout: group ``l`` is the slice ``starts[l]:starts[l + 1]``.

``K`` and ``c`` are ``X'X/n`` and ``X'y/n``, or empty to work with X itself.
"""

import numpy as np

from covey.compiling import njit


@njit(cache=True)
def shrink_groups(z, starts, thresholds, out):
    """The proximal map of ``sum_l thresholds_l norm(z_l)``: every group is shrunk by its threshold, or set to zero."""
    for l in range(starts.size - 1):
        largest = 0.0
        for j in range(starts[l], starts[l + 1]):
            largest = max(largest, abs(z[j]))
        norm = 0.0
        if largest > 0.0:
            for j in range(starts[l], starts[l + 1]):
                norm += (z[j] / largest) ** 2
            norm = largest * np.sqrt(norm)
        factor = 1.0 - thresholds[l] / norm if norm > thresholds[l] else 0.0
        for j in range(starts[l], starts[l + 1]):
            out[j] = factor * z[j]


@njit(cache=True)
def accelerated_steps(X, y, K, c, starts, thresholds, step, w, z, momentum, k):
    """``k`` accelerated proximal gradient steps in place.

    ``w`` is the iterate, ``z`` the extrapolated point, ``momentum[0]`` the t of Beck and Teboulle. The momentum is
    dropped whenever it points uphill (the gradient test of O'Donoghue and Candes).
    """
    new = np.empty_like(w)
    for _ in range(k):
        g = c - np.dot(K, z) if K.size > 0 else np.dot(y - np.dot(X, z), X) / y.size
        shrink_groups(z + step * g, starts, thresholds, new)
        uphill = 0.0
        for j in range(w.size):
            uphill += (z[j] - new[j]) * (new[j] - w[j])
        t = 1.0 if uphill > 0.0 else momentum[0]
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        beta = 0.0 if uphill > 0.0 else (t - 1.0) / t_next
        for j in range(w.size):
            z[j] = new[j] + beta * (new[j] - w[j])
            w[j] = new[j]
        momentum[0] = t_next


@njit(cache=True)
def primal_dual_steps(X, y, starts, thresholds, tau, sigma, w, theta, theta_old, k):
    """``k`` steps of the primal-dual iteration in place."""
    for _ in range(k):
        z = w - tau * np.dot(2.0 * theta - theta_old, X)
        shrink_groups(z, starts, thresholds, w)
        theta_old[:] = theta
        theta += sigma * (np.dot(X, w) - y)


@njit(cache=True)
def firm(norm, limit, gamma, clipped):
    """The factor that shrinks a group of this norm: the minimax concave penalty's, or with `clipped` SCAD's."""
    if norm <= limit:
        return 0.0
    if norm > gamma * limit:
        return 1.0
    if not clipped:
        return (1.0 - limit / norm) / (1.0 - 1.0 / gamma)
    if norm <= 2.0 * limit or np.isinf(gamma):
        return 1.0 - limit / norm
    return (gamma - 1.0 - gamma * limit / norm) / (gamma - 2.0)


@njit(cache=True)
def group_descent(Z, r, w, edges, limits, gamma, clipped, goal, most):
    """Group descent with the minimax concave penalty or SCAD, in place; returns the sweeps used.

    ``Z`` holds a column of the design per row, orthonormal in each group; ``r = y - Z'w``. A group's update is the
    firm threshold of ``z = Z_l r/n + w_l``. Sweeps run over the non-zero groups until nothing changes by more than
    ``goal``, then over all groups; the descent ends when a sweep over all groups changes nothing.
    """
    n = r.size
    z = np.empty(w.size)
    everything = True
    for sweep in range(most):
        moved = 0.0
        for l in range(edges.size - 1):
            a, b = edges[l], edges[l + 1]
            zero = True
            for j in range(a, b):
                zero = zero and w[j] == 0.0
            if zero and not everything:
                continue
            square = 0.0
            for j in range(a, b):
                z[j] = np.dot(Z[j], r) / n + w[j]
                square += z[j] * z[j]
            factor = firm(np.sqrt(square), limits[l], gamma, clipped)
            change = 0.0
            for j in range(a, b):
                step = factor * z[j] - w[j]
                if step != 0.0:
                    w[j] += step
                    change += step * step
                    for i in range(n):
                        r[i] -= step * Z[j, i]
            moved = max(moved, np.sqrt(change))
        if moved <= goal:
            if everything:
                return sweep + 1
            everything = True
        else:
            everything = False
    return most
