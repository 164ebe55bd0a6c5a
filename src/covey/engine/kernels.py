"""Compiled loops of the engine. Names follow the paper: u, v, w, g, K, N.

Groups lie one after another; group ``a`` of an array of groups is ``starts[a]:starts[a + 1]``. With
``m = u^N``, the coefficients are ``w = m v``. The direction update ``v + eta u^N g``, normalised, is written
``w + s g``, normalised: s is 1 for the large step ``eta = 1/u^(2N)``, and ``eta m^2`` for a constant eta.

A sleeping group is followed in ``phi``, in which its growth adds up: ``log u`` for N = 2, ``-u^(2-N)/(N-2)`` beyond.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# A magnitude that shrinks for ever stays a number whose powers are numbers.
SMALLEST = 1e-40

# Squared norms between these have lost no digits.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-200, 1e200

# A bound for hopeless cases; they are reported as diverged.
MOST_SUBSTEPS = 1000.0

# A magnitude that grows by this factor in one iteration is no descent any more.
EXPLODED = 1e6


@njit(inline="always")
def power(u, N):
    """``u^N``."""
    return u * u if N == 2 else u**N


@njit(cache=True)
def growth(x, N, substeps):
    """What one iteration, made in substeps, adds to ``phi``, with x = N gamma v'g."""
    if N == 2:
        return substeps * np.log1p(max(x / substeps, -0.9))
    return x


@njit(cache=True)
def step_group(a, starts, u, v, w, g, gamma, s_large, eta, N):
    """One iteration of one group, in place; the relative change of its magnitude."""
    i, j = starts[a], starts[a + 1]
    m = power(u[a], N)
    s = s_large if eta == 0.0 else min(eta * m * m, s_large)
    size = 0.0
    for k in range(i, j):
        v[k] = w[k] + s * g[k] if s > 0.0 else w[k]
        size += v[k] * v[k]
    if not SMALLEST_SQUARE < size < LARGEST_SQUARE:
        # relative to the largest entry, so that neither 1e-200 nor 1e200 is lost in the square
        largest = 0.0
        for k in range(i, j):
            largest = max(largest, abs(v[k]))
        if not largest > 0.0:
            return 0.0
        size = 0.0
        for k in range(i, j):
            v[k] /= largest
            size += v[k] * v[k]
    unit, rho = 1.0 / np.sqrt(size), 0.0
    for k in range(i, j):
        v[k] *= unit
        rho += v[k] * g[k]
    change = N * gamma * rho
    if N != 2:
        change *= u[a] ** (N - 2)
    # a step may halve a magnitude or worse, never turn its sign
    change = max(change, -0.9)
    u[a] = max(u[a] * (1.0 + change), SMALLEST)
    m = power(u[a], N)
    for k in range(i, j):
        w[k] = m * v[k]
    return change


@njit(cache=True)
def substeps_of(u, n_groups, speeds, gamma, curvature, N):
    """Steps into which an iteration is divided, so that no magnitude overshoots.

    An explicit step is stable while ``N^2 gamma u^(2N - 2)`` times the curvature is below 2; at 1 it is smooth.
    """
    fastest = 0.0
    for a in range(n_groups):
        fastest = max(fastest, speeds[a] * power(u[a], 2 * N - 2))
    return max(1, int(np.ceil(min(N * N * gamma * fastest * curvature, MOST_SUBSTEPS))))


@njit(cache=True, fastmath={"reassoc", "contract"})
def gram_times(K, n, w, out):
    """``K w`` in the leading block of K."""
    for i in range(n):
        row, s = K[i], 0.0
        for j in range(n):
            s += row[j] * w[j]
        out[i] = s


@njit(inline="always")
def copy(x, n, into):
    """An explicit loop: array expressions take numba seconds to compile."""
    for i in range(n):
        into[i] = x[i]


@njit(inline="always")
def unit_group(g, i, j, v, at):
    """The direction of ``g[i:j]``, into v from position `at` on; equal entries where there is none."""
    largest = 0.0
    for k in range(i, j):
        largest = max(largest, abs(g[k]))
    size = 0.0
    for k in range(i, j):
        x = g[k] / largest if largest > 0.0 else 1.0
        v[at + k - i] = x
        size += x * x
    for k in range(j - i):
        v[at + k] /= np.sqrt(size)


@njit(cache=True)
def unit_groups(g, starts, v):
    """The direction of every group of g."""
    for l in range(starts.size - 1):
        unit_group(g, starts[l], starts[l + 1], v, starts[l])


@njit(inline="always")
def pull(g, i, j, directions, frozen):
    """``v'g`` of a sleeping group: along its own correlation, or along the direction it was frozen in."""
    s = 0.0
    if frozen:
        for k in range(i, j):
            s += directions[k] * g[k]
        return s
    for k in range(i, j):
        s += g[k] * g[k]
    return np.sqrt(s)


@njit(cache=True)
def pulls(G, n_rows, starts, directions, frozen, out):
    """``v'g`` of every group for the first rows of correlations G."""
    for r in range(n_rows):
        for l in range(starts.size - 1):
            s = 0.0
            if frozen:
                for k in range(starts[l], starts[l + 1]):
                    s += directions[k] * G[r, k]
            else:
                for k in range(starts[l], starts[l + 1]):
                    s += G[r, k] * G[r, k]
                s = np.sqrt(s)
            out[r, l] = s


@njit(cache=True)
def gains(left, right, middle, share, steps, rate, N, substeps, asleep, frozen, gain, doubt):
    """Growth of sleeping groups between two nodes, and how far it may be off.

    A norm is convex in w: along the straight line between the nodes its mean lies between that at the mean w
    (`middle`) and the average of the ends, weighted by where the mean w lies between them (`share`). For a parabola
    it lies a third of the way.

    Returns the largest doubt relative to a group's own gain plus a tenth of the largest.
    """
    most = 0.0
    for l in range(gain.size):
        if not asleep[l]:
            gain[l] = 0.0
            doubt[l] = 0.0
            continue
        low = growth(rate[l] * middle[l], N, substeps) * steps
        if frozen:
            gain[l] = low
            doubt[l] = 0.0
        else:
            ends = (
                growth(rate[l] * left[l], N, substeps) * (1.0 - share) + growth(rate[l] * right[l], N, substeps) * share
            )
            gap = max(ends * steps - low, 0.0)
            gain[l] = low + gap / 3.0
            doubt[l] = gap / 3.0
        most = max(most, gain[l])
    worst = 0.0
    for l in range(gain.size):
        if doubt[l] > 0.0:
            worst = max(worst, doubt[l] / (abs(gain[l]) + 0.1 * most))
    return worst


@njit(cache=True)
def risen(g, columns, starts, n_groups, w):
    """How many groups are up: each counts by how far it has come of where a unit gradient step points.

    Column k of the groups is ``columns[k]`` in g, the correlations.
    """
    count = 0.0
    for a in range(n_groups):
        now, pointed = 0.0, 0.0
        for k in range(starts[a], starts[a + 1]):
            now += w[k] * w[k]
            pointed += (w[k] + g[columns[k]]) ** 2
        if now > 0.0:
            count += min(1.0, np.sqrt(now / max(pointed, now)))
    return count


@njit(cache=True)
def step_everyone(starts, u, v, w, g, speeds, gamma, s_large, eta, N):
    """One step of every group for given correlations; the largest relative change of a magnitude."""
    change = 0.0
    for l in range(starts.size - 1):
        if starts[l + 1] > starts[l]:
            x = step_group(l, starts, u, v, w, g, gamma * speeds[l], s_large, eta, N)
            change = max(change, abs(x))
    return change
