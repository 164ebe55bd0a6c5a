"""Nonnegative multipliers of inequalities, by an active set, and projections on cones; compiled."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit

__all__ = ["forced", "multipliers", "project", "solved", "workspace"]

# A row that depends on the active ones up to this share of its square gets this share as its pivot, so that one of
# them leaves in its place.
DEPENDENT = 1e-11

# Of the rows that are likely to be active, those that are not nearly combinations of others: this share of their square
# is their own.
APART = 1e-6


@njit(cache=True)
def multipliers(M, d, tolerance, likely):
    """The minimiser of ``l'Ml / 2 + d'l`` over ``l >= 0``: the active-set method of Lawson and Hanson.

    ``d + M l`` is by how much every inequality is kept; down to minus its tolerance it counts as kept. The Cholesky
    factor of the active rows grows with them. The first active rows are the likely ones that have a force together.
    """
    m = d.size
    l = np.zeros(m)
    forced(M, d, tolerance, likely, l, *workspace(m))
    return l


@njit(cache=True)
def workspace(m):
    """Arrays for m inequalities: steps, slacks, the order, which are active and barred, and a factor."""
    flags = np.zeros(m, np.bool_)
    return np.zeros(m), np.zeros(m), np.zeros(m, np.int64), flags, flags.copy(), np.zeros((m, m))


@njit(cache=True)
def forced(M, d, tolerance, likely, l, s, slack, order, active, barred, L):
    """`multipliers`, written into l; returns how many rows are active, the first of the order. L is their factor."""
    m, n = d.size, 0
    l[:], slack[:], active[:], barred[:] = 0.0, d, False, False
    for j in range(m):
        if likely[j] and M[j, j] > 0:
            order[n] = j
            grown(L, M, order, n)
            if L[n, n] ** 2 > APART * M[j, j]:
                active[j], n = True, n + 1
    given = 0
    while n != given:
        given, n = n, 0
        solved(L, d, order, given, s)
        for i in range(given):
            j = order[i]
            l[j], active[j] = max(s[i], 0.0), s[i] > 0
            if s[i] > 0:
                order[n] = j
                n += 1
        for i in range(n if n < given else 0):  # without those that have no force
            grown(L, M, order, i)
    for j in range(m):
        for i in range(n):
            slack[j] += M[j, order[i]] * l[order[i]]
    for _ in range(10 * m + 10):
        new, most = -1, 0.0
        for j in range(m):
            if not active[j] and not barred[j] and slack[j] < -tolerance[j]:
                force = -slack[j] / np.sqrt(M[j, j]) if M[j, j] > 0 else 0.0
                if force > most:
                    new, most = j, force
        if new < 0:
            break
        before, held = l.copy(), order[:n].copy()
        order[n], active[new] = new, True
        n = grown(L, M, order, n)
        first = True
        while True:
            solved(L, d, order, n, s)
            if first and s[n - 1] <= 0:  # round-off error: it has no force
                n -= 1
                active[new], barred[new] = False, True
                break
            first = False
            length, at = 1.0, -1
            for i in range(n):
                if s[i] <= 0:
                    share = l[order[i]] / (l[order[i]] - s[i]) if l[order[i]] > s[i] else 0.0
                    if share < length or at < 0:
                        length, at = share, i
            for i in range(n):
                j = order[i]
                l[j] = max(l[j] + length * (s[i] - l[j]), 0.0) if at >= 0 else s[i]
            if at < 0 and _depends(L, M, order, n, new):  # and no row left in its place: it breaks by round-off error
                active[order[:n]] = False
                l[:], n = before, 0
                for j in held:
                    order[n], active[j] = j, True
                    n = grown(L, M, order, n)
                barred[new] = True
                break
            if at < 0:
                barred[:] = False
                break
            active[order[at]], l[order[at]] = False, 0.0
            kept = 0
            for i in range(n):
                if i != at:
                    order[kept] = order[i]
                    kept += 1
            n = 0
            while n < kept:
                n = grown(L, M, order, n)
        for j in range(m):
            slack[j] = d[j]
            for i in range(n):
                slack[j] += M[j, order[i]] * l[order[i]]
    return n


@njit(cache=True)
def _depends(L, M, order, n, row):
    """Whether a row of the factor is a combination of those before it."""
    for i in range(n):
        if order[i] == row:
            return L[i, i] ** 2 <= 2 * DEPENDENT * M[row, row]
    return False


@njit(cache=True, inline="always")  # a call would take as long
def grown(L, M, order, n):
    """Add the row at position n of the order to the Cholesky factor; return the number of rows that it has then."""
    j = order[n]
    pivot = M[j, j]
    for i in range(n):
        value = M[j, order[i]]
        for k in range(i):
            value -= L[n, k] * L[i, k]
        L[n, i] = value / L[i, i]
        pivot -= L[n, i] * L[n, i]
    L[n, n] = np.sqrt(max(pivot, DEPENDENT * M[j, j], 1e-300))
    return n + 1


@njit(cache=True, inline="always")  # a call would take as long
def solved(L, d, order, n, s):
    """Solve ``L L' s = -d`` on the first n rows of the order."""
    for i in range(n):
        value = -d[order[i]]
        for k in range(i):
            value -= L[i, k] * s[k]
        s[i] = value / L[i, i]
    for i in range(n - 1, -1, -1):
        value = s[i]
        for k in range(i + 1, n):
            value -= L[k, i] * s[k]
        s[i] = value / L[i, i]


@njit(cache=True)
def project(products, first, size, G, G_starts, M, M_starts):
    """Project gradients of sleeping groups on their cones, in place.

    Parameters
    ----------
    products : ndarray, shape (n_columns, n_models)
    first, size : ndarray of int, shape (n_groups,)
        Where the columns of each group begin, and how many they are.
    G, G_starts, M, M_starts : ndarray
        The rows of the cone of each group and their inner products, flattened, and where those of each group begin.
    """
    d, tolerance, forces, beyond = np.empty(0), np.empty(0), np.empty(0), np.zeros(0, np.bool_)
    s, slack, order, active, barred, L = workspace(0)
    for l in range(first.size):
        k, a = size[l], first[l]
        m = (G_starts[l + 1] - G_starts[l]) // k
        rows = G[G_starts[l] : G_starts[l + 1]].reshape(m, k)
        inner = M[M_starts[l] : M_starts[l + 1]].reshape(m, m)
        if m != forces.size:
            d, tolerance, forces, beyond = np.empty(m), np.empty(m), np.empty(m), np.zeros(m, np.bool_)
            s, slack, order, active, barred, L = workspace(m)
        for model in range(products.shape[1]):
            norm = 0.0
            for i in range(k):
                norm += products[a + i, model] ** 2
            outside = False
            for j in range(m):
                d[j] = 0.0
                for i in range(k):
                    d[j] += rows[j, i] * products[a + i, model]
                tolerance[j] = 1e-14 * np.sqrt(norm * inner[j, j])
                beyond[j] = d[j] < -tolerance[j]
                outside = outside or beyond[j]
            if outside:
                forced(inner, d, tolerance, beyond, forces, s, slack, order, active, barred, L)
                left = 0.0
                for i in range(k):
                    value = products[a + i, model]
                    for j in range(m):
                        value += rows[j, i] * forces[j]
                    products[a + i, model] = value
                    left += value * value
                if left <= 1e-24 * norm:  # the gradient points away from the cone
                    for i in range(k):
                        products[a + i, model] = 0.0
