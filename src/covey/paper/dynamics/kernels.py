"""Compiled twins of the steps in this room: ``k`` iterations in place.

Each mirrors the ``step`` of its dynamics, which is the one to read; tests hold the two together. Groups are handled
through each column's label, so columns may lie in any order.

``K`` and ``c`` are ``X'X/n`` and ``X'y/n``, or empty to work with X itself. ``log`` carries what survives a call:
``[t, switch time or -1, armed, diverged]``. All take the same arguments up to ``bound``, beyond which coefficients have
diverged, and then those of their method.
"""

import numpy as np

from covey.compiling import njit

T, SWITCH, ARMED, DIVERGED = 0, 1, 2, 3
NEVER, AT_STEP, SETTLED, ORACLE = 0, 1, 2, 3


@njit(cache=True)
def _power(x, N):
    out = 1.0
    for _ in range(N):
        out *= x
    return out


@njit(cache=True)
def _correlation(X, y, K, c, w):
    if K.size > 0:
        return c - np.dot(K, w)
    return np.dot(y - np.dot(X, w), X) / y.size


@njit(cache=True)
def _coefficients(u, v, labels, N, powers, w):
    for l in range(u.size):
        powers[l] = _power(u[l], N)
    for j in range(v.size):
        w[j] = powers[labels[j]] * v[j]


@njit(cache=True)
def _normalise(z, labels, v, lengths):
    """v_l <- z_l / norm(z_l); a zero z_l leaves its direction as it is."""
    lengths[:] = 0.0
    for j in range(z.size):
        lengths[labels[j]] += z[j] * z[j]
    safe = True
    for l in range(lengths.size):
        if lengths[l] > 1e-280 and lengths[l] < 1e280:
            lengths[l] = 1.0 / np.sqrt(lengths[l])
        else:
            safe = False
    if not safe:  # a square under- or overflowed: rare, so start again, scaled by the largest entry
        _inverse_norms(z, labels, lengths)
    for j in range(z.size):
        l = labels[j]
        if lengths[l] > 0.0:
            v[j] = z[j] * lengths[l]


@njit(cache=True)
def _inverse_norms(z, labels, lengths):
    """1/norm(z_l), or zero where z_l is zero or so small that its inverse is out of range."""
    largest = np.zeros(lengths.size)
    lengths[:] = 0.0
    for j in range(z.size):
        largest[labels[j]] = max(largest[labels[j]], abs(z[j]))
    for j in range(z.size):
        l = labels[j]
        if largest[l] > 0.0:
            lengths[l] += (z[j] / largest[l]) ** 2
    for l in range(lengths.size):
        norm = largest[l] * np.sqrt(lengths[l])
        lengths[l] = 1.0 / norm if norm > 1e-300 else 0.0


@njit(cache=True)
def _group_products(a, b, labels, out):
    out[:] = 0.0
    for j in range(a.size):
        out[labels[j]] += a[j] * b[j]


@njit(cache=True)
def _diverged(u, N, bound):
    for l in range(u.size):
        if not abs(_power(u[l], N)) <= bound:
            return True
    return False


@njit(cache=True)
def _switch_due(kind, tol, epsilon, at_step, target, u_old, u, N, log):
    if kind == AT_STEP:
        return log[T] >= at_step
    if kind == ORACLE:
        for l in range(u.size):
            if _power(u[l], N) < target[l]:
                return False
        return True
    if kind == SETTLED:
        change = 0.0
        for l in range(u.size):
            change = max(change, abs(u[l] - u_old[l]) / abs(u_old[l] + epsilon))
            if target[l] > 0.0 and _power(u[l], N) >= target[l]:
                log[ARMED] = 1
        return log[ARMED] == 1 and change < tol
    return False


@njit(cache=True)
def normalized_steps(
    X, y, K, c, labels, u, v, log, k, N, gamma, scale, bound, eta, old_direction, kind, tol, epsilon, at_step, target
):
    """Algorithms 1 and 2. ``eta`` is the direction step after the switch, or negative for the large one throughout."""
    p, L = v.size, u.size
    w, z = np.empty(p), np.empty(p)
    powers, growth, lengths, u_old = np.empty(L), np.empty(L), np.empty(L), np.empty(L)
    for _ in range(k):
        large = eta < 0.0 or (kind != NEVER and log[SWITCH] < 0)
        u_old[:] = u
        _coefficients(u, v, labels, N, powers, w)
        g = _correlation(X, y, K, c, w)
        if old_direction:
            _group_products(v, g, labels, growth)
        for j in range(p):
            z[j] = w[j] + scale * g[j] if large else v[j] + eta * powers[labels[j]] * scale * g[j]
        _normalise(z, labels, v, lengths)
        if not old_direction:
            _coefficients(u, v, labels, N, powers, w)
            g = _correlation(X, y, K, c, w)
            _group_products(v, g, labels, growth)
        for l in range(L):
            u[l] += gamma * scale * N * _power(u[l], N - 1) * growth[l]
        log[T] += 1
        if _diverged(u, N, bound):
            log[DIVERGED] = 1
            return
        if log[SWITCH] < 0 and _switch_due(kind, tol, epsilon, at_step, target, u_old, u, N, log):
            log[SWITCH] = log[T]


@njit(cache=True)
def plain_steps(X, y, K, c, labels, u, v, log, k, N, gamma, scale, bound, decay):
    """Gradient descent on u and v together, without normalisation."""
    p, L = v.size, u.size
    w, powers, growth = np.empty(p), np.empty(L), np.empty(L)
    for _ in range(k):
        _coefficients(u, v, labels, N, powers, w)
        g = _correlation(X, y, K, c, w)
        _group_products(v, g, labels, growth)
        finite = True
        for j in range(p):
            v[j] += gamma * (scale * powers[labels[j]] * g[j] - decay * v[j])
            finite = finite and abs(v[j]) <= bound
        for l in range(L):
            u[l] += gamma * (scale * N * _power(u[l], N - 1) * growth[l] - decay * u[l])
        log[T] += 1
        if not finite or _diverged(u, N, bound):
            log[DIVERGED] = 1
            return


@njit(cache=True)
def diagonal_steps(X, y, K, c, labels, u, v, log, k, N, gamma, scale, bound, decay):
    """Gradient descent on the factors of w = u^N - v^N; a factor that starts at zero stays there."""
    p = u.size
    w = np.empty(p)
    for _ in range(k):
        for j in range(p):
            w[j] = _power(u[j], N) - _power(v[j], N)
        g = _correlation(X, y, K, c, w)
        for j in range(p):
            u[j] += gamma * (scale * N * _power(u[j], N - 1) * g[j] - decay * u[j])
            v[j] -= gamma * (scale * N * _power(v[j], N - 1) * g[j] + decay * v[j])
        log[T] += 1
        if _diverged(u, N, bound) or _diverged(v, N, bound):
            log[DIVERGED] = 1
            return
