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
