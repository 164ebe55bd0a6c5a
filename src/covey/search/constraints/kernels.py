"""Minimisers of quadratic functions under inequalities, for many points and for nested sets of groups; compiled."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit
from covey.search.constraints.multipliers import forced, grown, solved, workspace

__all__ = ["beside", "nested_minimisers", "nested_ridges", "spans", "stepped"]

# Inequalities that are broken by less than this, relative to the size of their terms, are kept up to round-off error.
KEPT = 1e-13

# Coefficients below this share of those without constraints are round-off error of a group that is held at zero.
HELD_AT_ZERO = 1e-14

# Added to the diagonal, relative to it, so that dependent columns leave a second derivative positive definite.
JITTER = 1e-10

# How often a minimiser is moved to where it keeps inequalities that only round-off error breaks.
MOST_ROUNDS = 3


@njit(cache=True)
def beside(own, own_h, starts, counts, ranks, groups, n_before, n_more):
    """The inequalities of some groups, one group after another, after some free columns and before more inequalities.

    Also where the entries of each that are not zero begin and end, and where the columns of each group begin.
    """
    ends = np.empty(groups.size + 1, np.int64)
    ends[0] = n_before
    for i in range(groups.size):
        ends[i + 1], n_more = ends[i] + ranks[groups[i]], n_more + counts[groups[i]]
    G, h, n = np.zeros((n_more, ends[-1])), np.zeros(n_more), 0
    first, last = np.zeros(n_more, np.int64), np.zeros(n_more, np.int64)
    for i in range(groups.size):
        l, width = groups[i], ranks[groups[i]]
        for j in range(counts[l]):
            h[n], first[n], last[n] = own_h[starts[1, l] + j], ends[i], ends[i + 1]
            for k in range(width):
                G[n, ends[i] + k] = own[starts[0, l] + j * width + k]
            n += 1
    return G, h, first, last, ends


@njit(cache=True)
def spans(G):
    """The first column of each inequality whose entry is not zero, and the one after the last."""
    m, k = G.shape
    first, last = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for j in range(m):
        for i in range(k):
            if G[j, i] != 0:
                first[j] = i if last[j] == 0 else first[j]
                last[j] = i + 1
    return first, last


@njit(cache=True)
def _root(K):
    """The Cholesky factor ``R'R = K`` of a matrix that may be singular up to round-off error.

    R is above the diagonal and ``R'`` below it, so that every loop reads along a row.
    """
    R, jitter = np.empty(K.shape), JITTER
    while not _factored(R, K, jitter) and jitter < 1:  # no row has curvature in some direction
        jitter *= 100
    return R


@njit(cache=True)
def _factored(R, K, jitter):
    """Write the factor of K plus a share of its diagonal into R; return whether there is one."""
    R[:] = K
    for i in range(len(K)):
        R[i, i] += jitter * (K[i, i] if K[i, i] > 0 else 1.0)
    for i in range(len(K)):
        if not R[i, i] > 0:
            return False
        row, root = R[i, i:], np.sqrt(R[i, i])
        for j in range(row.size):
            row[j] /= root
        for r in range(1, row.size):
            below, rest, share = R[i + r, i + r :], row[r:], row[r]
            for j in range(below.size):
                below[j] -= share * rest[j]
            R[i + r, i] = share
    return True


@njit(cache=True)
def _mirrored(R):
    """A Cholesky factor above the diagonal, with its transpose below."""
    k = len(R)
    out = np.empty((k, k))
    for i in range(k):
        for j in range(i, k):
            out[i, j] = out[j, i] = R[i, j]
    return out


@njit(cache=True)
def _forward(R, right, first):
    """Solve ``R' x = right``, which is zero before an entry."""
    x = right.copy()
    for i in range(first, x.size):
        x[i] /= R[i, i]
        share, row, rest = x[i], R[i, i + 1 : x.size], x[i + 1 :]
        for j in range(rest.size):
            rest[j] -= share * row[j]
    return x


@njit(cache=True)
def _backward(R, right):
    """Solve ``R x = right`` with the first rows and columns of R."""
    x = right.copy()
    for i in range(x.size - 1, -1, -1):
        x[i] /= R[i, i]
        share, row, rest = x[i], R[i, :i], x[:i]
        for j in range(i):
            rest[j] -= share * row[j]
    return x


@njit(cache=True)
def broken(G, h, first, last, w, used):
    """The inequalities ``G w >= h``, not used yet, that are broken by more than round-off error."""
    out, n = np.empty(h.size, np.int64), 0
    for j in range(h.size):
        if not used[j]:
            slack, size = _slack(G, h, first, last, w, j)
            if slack < -KEPT * size:
                out[n] = j
                n += 1
    return out[:n].copy()


@njit(cache=True, inline="always")  # a call would take as long
def _slack(G, h, first, last, w, j):
    """By how much an inequality is kept on the first columns, and the size of its terms."""
    slack, size = -h[j], abs(h[j])
    for i in range(first[j], min(last[j], w.size)):
        term = G[j, i] * w[i]
        slack += term
        size += abs(term)
    return slack, size


@njit(cache=True)
def _held(S, inverted, free, U, known, G, h, first, last):
    """Move a minimiser on the first columns to the one under ``G w >= h``; also the multipliers.

    S is the inverse of the second derivative, or its Cholesky factor. The rows of U are those of G times the one or
    divided by the other; they are computed where they are not known yet.
    """
    there, forces, n = free, np.zeros(h.size), 0
    used, order = np.zeros(h.size, np.bool_), np.empty(h.size, np.int64)
    new = broken(G, h, first, last, there, used)
    while new.size:
        for j in new:
            used[j], order[n] = True, j
            n += 1
            if not known[j]:
                known[j] = True
                if inverted:
                    U[j] = 0.0
                    for i in range(first[j], last[j]):
                        U[j] += G[j, i] * S[i]
                else:
                    U[j] = _forward(S, G[j], first[j])
        there, forces[order[:n]] = _moved(S, inverted, free, U, G, h, first, last, order[:n])
        new = broken(G, h, first, last, there, used)
    # round-off error of a minimiser without constraints that is far away
    for _ in range(MOST_ROUNDS if n else 0):
        if broken(G, h, first, last, there, np.zeros(h.size, np.bool_)).size == 0:
            break
        nearer, _ = _moved(S, inverted, there, U, G, h, first, last, order[:n])
        if not np.isfinite(nearer).all():  # nothing is left but the round-off error of numbers near zero
            break
        there = nearer
    return there, forces


@njit(cache=True)
def _moved(S, inverted, w, U, G, h, first, last, order):
    """Move a minimiser to where it keeps some inequalities; also their multipliers."""
    n, k = order.size, w.size
    V, M = np.empty((n, k)), np.zeros((n, n))
    slack, tolerance, likely = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    for a in range(n):
        V[a] = U[order[a], :k]
        slack[a], size = _slack(G, h, first, last, w, order[a])
        tolerance[a] = 0.1 * KEPT * size
        likely[a] = not inverted and slack[a] < -tolerance[a]  # an inverse has too few digits to start from many
    if inverted:
        for a in range(n):
            for b in range(n):
                for i in range(first[order[a]], last[order[a]]):
                    M[a, b] += G[order[a], i] * V[b, i]
    else:
        M += V @ V.T
    forces = np.zeros(n)
    s, left, place, active, barred, L = workspace(n)
    m = forced(M, slack, tolerance, likely, forces, s, left, place, active, barred, L)
    if not np.isfinite(forces).all():  # rows that are nearly combinations of others have no forces together
        likely[:] = False
        m = forced(M, slack, tolerance, likely, forces, s, left, place, active, barred, L)
    total = forces @ V
    out = w + (total if inverted else _backward(S, total))
    # round-off error in large numbers has removed the minimiser from the rows that hold it
    for i in range(m):
        slack[place[i]] = _slack(G, h, first, last, out, order[place[i]])[0]
    solved(L, slack, place, m, s)
    for i in range(m):
        total += s[i] * V[place[i]]
    out = w + (total if inverted else _backward(S, total))
    for i in range(k):
        if abs(out[i]) <= HELD_AT_ZERO * abs(w[i]):  # round-off error of a coefficient that is held at zero
            out[i] = 0.0
    return out, forces


@njit(cache=True)
def stepped(K, is_root, W, gradients, G, h, first, last):
    """The steps from some points to the minima of quadratic functions under ``G w >= h``, and the gradients left there.

    The points and minus their gradients are columns. K has the second derivative at each point, or one for all, or
    their Cholesky factors above the diagonals.
    """
    k, n = W.shape
    steps, left, U = np.empty((n, k)), np.ascontiguousarray(gradients.T), np.empty((h.size, k))
    known, S = np.zeros(h.size, np.bool_), np.empty((k, k))
    for a in range(n):
        if a < len(K):
            S, known[:] = _mirrored(K[a]) if is_root else _root(K[a]), False
        w = np.ascontiguousarray(W[:, a])
        free = w + _backward(S, _forward(S, left[a], 0))
        there, forces = _held(S, False, free, U, known, G, h, first, last)
        steps[a] = there - w
        for j in range(h.size):
            if forces[j] > 0:
                left[a] += forces[j] * G[j]
    return steps.T, left.T


@njit(cache=True)
def nested_ridges(K, P, penalties, c, lengths, G, h, first, last):
    """The minimisers of ``w'(K + penalty P)w / 2 - c'w`` on the first columns under ``G w >= h``; zero on the others.

    The first rows of a Cholesky factor are the factor for the first columns, and so it is with what is divided by it.
    Shape (n_lengths, n_penalties, n_outputs, k); the rows of c are outputs.
    """
    m, k = c.shape
    W = np.zeros((lengths.size, penalties.size, m, k))
    for p in range(penalties.size):
        R = _root(K + penalties[p] * P)
        U, known = np.empty((h.size, k)), np.zeros(h.size, np.bool_)
        for o in range(m):
            y = _forward(R, c[o], 0)
            for a in range(lengths.size):
                free = _backward(R, y[: lengths[a]])
                W[a, p, o, : lengths[a]] = _held(R, False, free, U, known, G, h, first, last)[0]
    return W


@njit(cache=True)
def nested_minimisers(
    inverse, w, starts, units, n_always, children, parents, parent_starts, G, h, first, last, tie, nothing
):
    """Drop groups one by one; the minimisers under constraints before each drop and after the last one.

    The group that costs least in its unit comes first, as if no constraint were active then.

    Parameters
    ----------
    inverse, w : ndarray, shape (k, k) and (n_outputs, k)
        The inverse of the second derivative and the minimisers without constraints, for all groups. Overwritten.
    starts, units, n_always
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
        V, known = np.empty(G.shape), np.zeros(h.size, np.bool_)
        for o in range(m):
            W[step, o] = _held(inverse, True, w[o], V, known, G, h, first, last)[0]
        if step == L - n_always:
            break
        group, least, costs = -1, np.inf, np.full(L, np.inf)
        for l in range(n_always, L):
            if not gone[l] and children[l] == 0:
                costs[l] = 0.0
                for o in range(m):
                    costs[l] += _cost(inverse, W[step, o], starts[l], starts[l + 1]) / units[l]
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
    """By how much the objective rises if the columns of a group become zero."""
    n, order = 0, np.arange(first, last)
    L, s, total = np.zeros((order.size, order.size)), np.zeros(order.size), 0.0
    while n < order.size:
        n = grown(L, inverse, order, n)
    solved(L, w, order, n, s)
    for i in range(n):
        total -= s[i] * w[first + i]
    return total
