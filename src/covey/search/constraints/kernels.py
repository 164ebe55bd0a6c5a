"""The compiled arithmetic of constraints: nonnegative multipliers, projections on cones, and nested sets of groups."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit

__all__ = ["beside", "multipliers", "nested_minimisers", "nested_ridge", "project", "stepped"]

# A row that depends on the active ones up to this share of its square gets this share as its pivot, so that one of
# them leaves in its place.
DEPENDENT = 1e-11

# Inequalities that are broken by less than this, relative to the size of their terms, are kept up to round-off error.
KEPT = 1e-13

# Coefficients below this share of those without constraints are round-off error of a group that is held at zero.
HELD_AT_ZERO = 1e-14

# How often a minimiser is moved to where it keeps inequalities that only round-off error breaks.
MOST_ROUNDS = 3


@njit(cache=True)
def multipliers(M, d, tolerance, likely):
    """The minimiser of ``l'Ml / 2 + d'l`` over ``l >= 0``: the active-set method of Lawson and Hanson.

    ``d + M l`` is by how much every inequality is kept; down to minus its tolerance it counts as kept. The Cholesky
    factor of the active rows grows with them. The first active rows are the likely ones that have a force together.
    """
    m = d.size
    l = np.zeros(m)
    _forced(M, d, tolerance, likely, l, *_workspace(m))
    return l


@njit(cache=True)
def _workspace(m):
    """Arrays for m inequalities: steps, slacks, the order, which are active and barred, and a factor."""
    flags = np.zeros(m, np.bool_)
    return np.zeros(m), np.zeros(m), np.zeros(m, np.int64), flags, flags.copy(), np.zeros((m, m))


@njit(cache=True)
def _forced(M, d, tolerance, likely, l, s, slack, order, active, barred, L):
    """`multipliers`, written into l; returns how many rows are active, the first of the order. L is their factor."""
    m, n = d.size, 0
    l[:], slack[:], active[:], barred[:] = 0.0, d, False, False
    for j in range(m):
        if likely[j] and M[j, j] > 0:
            order[n], active[j] = j, True
            n += 1
    while n > 0:
        given, n = n, 0
        while n < given:
            n = _grown(L, M, order, n)
        _solved(L, d, order, given, s)
        n = 0
        for i in range(given):
            j = order[i]
            l[j], active[j] = max(s[i], 0.0), s[i] > 0
            if s[i] > 0:
                order[n] = j
                n += 1
        if n == given:
            break
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
        order[n], active[new] = new, True
        n = _grown(L, M, order, n)
        first = True
        while True:
            _solved(L, d, order, n, s)
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
                n = _grown(L, M, order, n)
        for j in range(m):
            slack[j] = d[j]
            for i in range(n):
                slack[j] += M[j, order[i]] * l[order[i]]
    return n


@njit(cache=True)
def _grown(L, M, order, n):
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


@njit(cache=True)
def _solved(L, d, order, n, s):
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
def beside(G, h, own, own_h, starts, counts, groups, ends):
    """Write the inequalities of some groups into G and h, one group after another; their columns end at `ends`."""
    n = 0
    for i in range(groups.size):
        l, first, width = groups[i], ends[i], ends[i + 1] - ends[i]
        for j in range(counts[l]):
            h[n] = own_h[starts[1, l] + j]
            for k in range(width):
                G[n, first + k] = own[starts[0, l] + j * width + k]
            n += 1


@njit(cache=True)
def broken(G, h, first, last, w, used):
    """The inequalities ``G w >= h``, not used yet, that are broken by more than round-off error."""
    out, n = np.empty(h.size, np.int64), 0
    for j in range(h.size):
        if not used[j]:
            slack, size = -h[j], abs(h[j])
            for i in range(first[j], last[j]):
                term = G[j, i] * w[i]
                slack += term
                size += abs(term)
            if slack < -KEPT * size:
                out[n] = j
                n += 1
    return out[:n].copy()


@njit(cache=True)
def held(G, h, V, w, likely):
    """Move a minimiser without constraints to the one under ``G w >= h``; also the multipliers.

    The rows of V are those of G after the inverse of the second derivative; the likely ones hold it back.
    """
    n, k = G.shape
    M, slack, tolerance = np.zeros((n, n)), np.empty(n), np.empty(n)
    for a in range(n):
        slack[a], tolerance[a] = -h[a], abs(h[a])
        for i in range(k):
            if G[a, i] != 0:
                term = G[a, i] * w[i]
                slack[a] += term
                tolerance[a] += abs(term)
                for b in range(n):
                    M[a, b] += G[a, i] * V[b, i]
        tolerance[a] *= 0.1 * KEPT
    forces, out = np.zeros(n), w.copy()
    s, left, order, active, barred, L = _workspace(n)
    m = _forced(M, slack, tolerance, likely, forces, s, left, order, active, barred, L)
    for i in range(m):
        out += V[order[i]] * forces[order[i]]
    # round-off error in large numbers has removed the minimiser from the rows that hold it
    for i in range(m):
        slack[order[i]] = G[order[i]] @ out - h[order[i]]
    _solved(L, slack, order, m, s)
    for i in range(m):
        out += V[order[i]] * s[i]
    _flush(out, w)
    return out, forces


@njit(cache=True)
def _flush(w, free):
    """Remove the round-off error of coefficients that are held at zero."""
    for i in range(w.size):
        if abs(w[i]) <= HELD_AT_ZERO * abs(free[i]):
            w[i] = 0.0


@njit(cache=True)
def stepped(L, w, gradient, G, h, first, last):
    """The step from w to the minimum of a quadratic function under ``G w >= h``, and the gradient left there.

    L is the Cholesky factor of the second derivative, and `gradient` minus the gradient at w.
    """
    there, forces = _constrained(L, False, w + _divided(L, gradient), G, h, first, last)
    left = gradient.copy()
    for j in range(h.size):
        if forces[j] > 0:
            left += forces[j] * G[j]
    return there - w, left


@njit(cache=True)
def _constrained(S, inverted, free, G, h, first, last):
    """The minimiser under ``G w >= h``, given that without constraints, and the multipliers.

    S is the inverse of the second derivative, or its Cholesky factor.
    """
    there, used, n, every = free, np.zeros(h.size, np.bool_), 0, np.zeros(h.size)
    order, V, likely = np.empty(h.size, np.int64), np.zeros((h.size, free.size)), np.zeros(h.size, np.bool_)
    while True:
        new = broken(G, h, first, last, there, used)
        if new.size == 0:
            return _polished(G, h, first, last, order[:n], V[:n], there), every
        for j in new:
            used[j], order[n] = True, j
            if inverted:
                for i in range(first[j], last[j]):
                    V[n] += G[j, i] * S[i]
            else:
                V[n] = _divided(S, G[j])
            n += 1
        there, forces = held(G[order[:n]], h[order[:n]], V[:n], free, likely)
        likely[:n], every[order[:n]] = forces > 0, forces


@njit(cache=True)
def _polished(G, h, first, last, order, V, w):
    """Keep inequalities that are broken by the round-off error of a minimiser without them that is far away."""
    for _ in range(MOST_ROUNDS):
        if broken(G, h, first, last, w, np.zeros(h.size, np.bool_)).size == 0:
            break
        w, _ = held(G[order], h[order], V, w, np.zeros(order.size, np.bool_))
    return w


@njit(cache=True)
def _divided(L, right):
    """Solve ``L L' x = right``."""
    x = right.copy()
    for i in range(x.size):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    return _backward(L, x)


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
    s, slack, order, active, barred, L = _workspace(0)
    for l in range(first.size):
        k, a = size[l], first[l]
        m = (G_starts[l + 1] - G_starts[l]) // k
        rows = G[G_starts[l] : G_starts[l + 1]].reshape(m, k)
        inner = M[M_starts[l] : M_starts[l + 1]].reshape(m, m)
        if m != forces.size:
            d, tolerance, forces, beyond = np.empty(m), np.empty(m), np.empty(m), np.zeros(m, np.bool_)
            s, slack, order, active, barred, L = _workspace(m)
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
                _forced(inner, d, tolerance, beyond, forces, s, slack, order, active, barred, L)
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


@njit(cache=True)
def nested_ridge(L, z, U, c, G, h, first, last, lengths, likely):
    """The minimisers on the first columns under ``G w >= h``, for numbers of columns that fall; zero on the others.

    L is the Cholesky factor of the second derivative on all columns, z and the rows of U are c and the rows of G
    divided by it. The first rows of L are the factor for the first columns, and so it is with z and U.
    `likely` are the inequalities that probably hold the first minimiser back; overwritten by those that do.
    """
    W, m, at_first = np.zeros((lengths.size, c.size)), h.size, likely
    likely = likely.copy()
    slack, tolerance, forces, unused = np.empty(m), np.empty(m), np.zeros(m), np.zeros(m, np.bool_)
    s, left, order, active, barred, R = _workspace(m)
    M, done = np.zeros((m, m)), 0
    for a in range(lengths.size - 1, -1, -1):
        k = lengths[a]
        more = np.ascontiguousarray(U[:, done:k])
        M += more @ more.T
        done, ends, w = k, np.minimum(last, k), _backward(L, z[:k])
        starts = np.minimum(first, ends)
        if broken(G, h, starts, ends, w, unused).size:
            for j in range(m):
                slack[j], tolerance[j] = -h[j], abs(h[j])
                for i in range(starts[j], ends[j]):
                    slack[j] += G[j, i] * w[i]
                    tolerance[j] += abs(G[j, i] * w[i])
                tolerance[j] *= 0.1 * KEPT
            n, t = _forced(M, slack, tolerance, likely, forces, s, left, order, active, barred, R), z[:k].copy()
            for i in range(n):
                t += forces[order[i]] * U[order[i], :k]
            likely[:] = active
            held_back = _backward(L, t)
            # round-off error in large numbers has removed the minimiser from the rows that hold it
            for i in range(n):
                slack[order[i]] = G[order[i], :k] @ held_back - h[order[i]]
            _solved(R, slack, order, n, s)
            for i in range(n):
                t += s[i] * U[order[i], :k]
            held_back = _backward(L, t)
            _flush(held_back, w)
            w = held_back
            if broken(G, h, starts, ends, w, unused).size:
                w = stepped(L[:k, :k], np.zeros(k), c[:k], G[:, :k], h, starts, ends)[0]
        W[a, :k] = w
        if a == lengths.size - 1:
            at_first[:] = likely
    return W


@njit(cache=True)
def _backward(L, right):
    """Solve ``L' x = right`` with the first rows and columns of L; its rows are read from left to right."""
    x = right.copy()
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]
    return x


@njit(cache=True)
def nested_minimisers(inverse, w, starts, n_always, children, parents, parent_starts, G, h, first, last, tie, nothing):
    """Drop groups one by one; the minimisers under constraints before each drop and after the last one.

    The group that costs least per dimension comes first, as if no constraint were active then.

    Parameters
    ----------
    inverse, w : ndarray, shape (k, k) and (n_outputs, k)
        The inverse of the second derivative and the minimisers without constraints, for all groups. Overwritten.
    starts, n_always
        As in `covey.search.elimination.eliminate`.
    children : ndarray of int, shape (n_groups,)
        The number of children of each group. Overwritten.
    parents, parent_starts : ndarray of int
        The parents of all groups, one group after another, and where those of each begin.
    G, h, first, last : ndarray, shape (m, k) and (m,)
        The inequalities ``G w >= h``, and where the entries of each row that are not zero begin and end.
    tie, nothing : float
        Costs this close, relative to each other or absolutely, are equal, and the last group is dropped.
    """
    (m, k), L = w.shape, starts.size - 1
    gone, asleep, width = np.zeros(L, np.bool_), np.zeros(k, np.bool_), k
    W, dropped = np.zeros((L - n_always + 1, m, k)), np.empty(L - n_always, np.int64)
    for step in range(L - n_always + 1):
        for o in range(m):
            W[step, o] = _constrained(inverse, True, w[o], G, h, first, last)[0]
        if step == L - n_always:
            break
        group, least, costs = -1, np.inf, np.full(L, np.inf)
        for l in range(n_always, L):
            if not gone[l] and children[l] == 0:
                costs[l] = 0.0
                for o in range(m):
                    costs[l] += _cost(inverse, W[step, o], starts[l], starts[l + 1])
                least = min(least, costs[l])
        for l in range(n_always, L):
            if costs[l] <= least + tie * abs(least) + nothing:
                group = l
        dropped[step], gone[group] = group, True
        for e in range(parent_starts[group], parent_starts[group + 1]):
            children[parents[e]] -= 1
        # one column after another: each has a pivot of its own
        for i in range(starts[group], starts[group + 1]):
            if inverse[i, i] > 0:
                side = inverse[i] / inverse[i, i]
                for r in range(width):
                    factor = inverse[r, i]
                    if factor != 0 and r != i:
                        for o in range(m):
                            w[o, r] -= side[r] * w[o, i]
                        for s in range(width):
                            inverse[r, s] -= factor * side[s]
            w[:, i], asleep[i] = 0.0, True
            inverse[i] = 0.0
            inverse[:, i] = 0.0
        while width > 0 and asleep[width - 1]:
            width -= 1
    return dropped, W


@njit(cache=True)
def _cost(inverse, w, first, last):
    """By how much the objective rises, per dimension, if the columns of a group become zero."""
    n = last - first
    if n == 0:
        return 0.0
    L, z, total = np.zeros((n, n)), np.zeros(n), 0.0
    for a in range(n):
        value = w[first + a]
        pivot = inverse[first + a, first + a]
        for b in range(a):
            entry = inverse[first + a, first + b]
            for c in range(b):
                entry -= L[a, c] * L[b, c]
            L[a, b] = entry / L[b, b]
            pivot -= L[a, b] * L[a, b]
            value -= L[a, b] * z[b]
        L[a, a] = np.sqrt(max(pivot, 1e-12 * inverse[first + a, first + a], 1e-300))
        z[a] = value / L[a, a]
        total += z[a] * z[a]
    return total / n
