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

# A bound for hopeless cases; they are reported as diverged.
MOST_SUBSTEPS = 1000.0

# A magnitude that grows by this factor in one iteration is no descent any more.
EXPLODED = 1e6

# A march ends for now after so many multiplications: where columns are nearly dependent an iteration may take a
# thousand substeps, and whatever lies behind a wake-up or the end of the path would be in vain.
MOST_WORK = 5e7

# why a march ended
HORIZON, FULL, STILL, DIVERGED, WORKED = 0, 1, 2, 3, 4


@njit(cache=True)
def phi_of(u, N):
    """The coordinate in which a sleeping group's growth adds up."""
    return np.log(u) if N == 2 else -(u ** (2.0 - N)) / (N - 2.0)


@njit(cache=True)
def u_of(phi, N):
    """The magnitude behind a ``phi``."""
    return np.exp(phi) if N == 2 else (-(N - 2.0) * phi) ** (-1.0 / (N - 2.0))


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
    m = u[a] ** N
    s = s_large if eta == 0.0 else min(eta * m * m, s_large)
    # relative to the largest entry, so that neither 1e-200 nor 1e200 is lost in the square
    largest = 0.0
    for k in range(i, j):
        v[k] = w[k] + s * g[k] if s > 0.0 else w[k]
        largest = max(largest, abs(v[k]))
    if not largest > 0.0:
        return 0.0
    size = 0.0
    for k in range(i, j):
        v[k] /= largest
        size += v[k] * v[k]
    size = np.sqrt(size)
    rho = 0.0
    for k in range(i, j):
        v[k] /= size
        rho += v[k] * g[k]
    change = N * gamma * rho
    if N != 2:
        change *= u[a] ** (N - 2)
    # a step may halve a magnitude or worse, never turn its sign
    change = max(change, -0.9)
    u[a] = max(u[a] * (1.0 + change), SMALLEST)
    m = u[a] ** N
    for k in range(i, j):
        w[k] = m * v[k]
    return change


@njit(cache=True)
def substeps_of(u, speeds, gamma, curvature, N):
    """Steps into which an iteration is divided, so that no magnitude overshoots.

    An explicit step is stable while ``N^2 gamma u^(2N - 2)`` times the curvature is below 2; at 1 it is smooth.
    """
    fastest = 0.0
    for a in range(u.size):
        fastest = max(fastest, speeds[a] * u[a] ** (2 * N - 2))
    return max(1, int(np.ceil(min(N * N * gamma * fastest * curvature, MOST_SUBSTEPS))))


@njit(cache=True)
def _correlations(K, c, w, g):
    """``g = c - K w`` in the awake block."""
    n = c.size
    for i in range(n):
        row = K[i]
        s = 0.0
        for j in range(n):
            s += row[j] * w[j]
        g[i] = c[i] - s


@njit(cache=True)
def _copy(x, into):
    """An explicit loop: array expressions take numba seconds to compile."""
    for i in range(x.size):
        into[i] = x[i]


@njit(cache=True)
def march(
    K, c, starts, u, v, w, speeds, gamma, s_large, eta, N, curvature, enter, entered_at,
    t, horizon, limit, delta, still, tau, stops, times, nodes_u, nodes_v, nodes_w, means, top,
):  # fmt: skip
    """Step the awake groups from t towards `horizon`, leaving nodes on the way.

    A node is left whenever w has moved by `delta` since the last, at every time of `stops`, at the horizon, at the
    limit, where the march ends for now, when a
    group passes `enter`, and when the largest relative change of a magnitude falls below `tau`.
    ``times[i]`` and ``nodes_*[i]`` are its t and state, ``means[i]`` the mean of w over the iterations since the
    node before, and ``top[i]`` the largest relative change of a magnitude in its last iteration.

    Once what is left to move before the horizon is below `still` (relative to itself for a magnitude that grows, to
    `enter` for one that shrinks), nothing more is stepped: w stays as it is until the horizon.

    Returns the number of nodes and why it ended. The first passing of `enter` by a group goes into `entered_at`.
    """
    n, A = c.size, starts.size - 1
    g, origin, total = np.empty(n), np.empty(n), np.empty(n)
    _copy(w, origin)
    for i in range(n):
        total[i] = 0.0
    since, count, next_stop = 0, 0, 0
    work = 0.0
    settled = True
    while next_stop < stops.size and stops[next_stop] <= t:
        next_stop += 1
    while t < horizon:
        for i in range(n):
            total[i] += w[i]
        change, drift = 0.0, 0.0
        substeps = substeps_of(u, speeds, gamma, curvature, N)
        for _ in range(substeps):
            _correlations(K, c, w, g)
            for a in range(A):
                before = u[a] ** N
                x = step_group(a, starts, u, v, w, g, gamma / substeps * speeds[a], s_large, eta, N)
                change = max(change, abs(x) * substeps)
                drift = max(drift, N * x if x > 0.0 else (before - u[a] ** N) / enter)
        t += 1
        since += 1
        work += substeps * n * n
        moved = 0.0
        for i in range(n):
            moved += (w[i] - origin[i]) ** 2
        if not (np.isfinite(moved) and change < EXPLODED):
            return count, DIVERGED
        news = False
        for a in range(A):
            if entered_at[a] < 0 and u[a] ** N >= enter:
                entered_at[a] = t
                news = True
        at_stop = next_stop < stops.size and stops[next_stop] == t
        settling = change < tau and not settled
        settled = change < tau
        rest = drift * substeps * (horizon - t) <= still
        ended = t >= min(horizon, limit) or work > MOST_WORK
        if moved > delta * delta or at_stop or ended or rest or settling or news:
            times[count], top[count] = t, change
            _copy(u, nodes_u[count])
            _copy(v, nodes_v[count])
            _copy(w, nodes_w[count])
            _copy(w, origin)
            for i in range(n):
                means[count, i] = total[i] / since
                total[i] = 0.0
            count += 1
            since = 0
            if at_stop:
                next_stop += 1
            if rest and t < horizon:
                return count, STILL
            # after news the safe steps have to be found again
            if (news or count == times.size) and t < horizon:
                return count, FULL
            if ended and t < horizon:
                return count, WORKED
    return count, HORIZON


@njit(cache=True)
def watch(
    K, c, starts, u, v, w, speeds, gamma, s_large, eta, N, curvature, enter, entered_at,
    t, horizon, mean, KC, cC, startsC, phi, directions, speedsC, threshold, frozen,
):  # fmt: skip
    """Step the awake groups, and with them a few candidates in exact growth, until one of those wakes.

    ``KC`` holds the Gram columns of the candidates against the awake columns. Returns the time reached and leaves in
    `mean` the mean of w on the way; `phi` of the candidates is advanced in place.
    """
    n, A, C = c.size, starts.size - 1, startsC.size - 1
    g = np.empty(n)
    gC = np.empty(cC.size)
    for i in range(n):
        mean[i] = 0.0
    first = t
    while t < horizon:
        for i in range(n):
            mean[i] += w[i]
        substeps = substeps_of(u, speeds, gamma, curvature, N)
        _copy(cC, gC)
        for i in range(n):
            row = KC[i]
            for j in range(cC.size):
                gC[j] -= w[i] * row[j]
        awoke = False
        for b in range(C):
            phi[b] += growth(
                N * gamma * speedsC[b] * pull(gC, startsC[b], startsC[b + 1], directions, frozen), N, substeps
            )
            awoke = awoke or phi[b] >= threshold
        for _ in range(substeps):
            _correlations(K, c, w, g)
            for a in range(A):
                step_group(a, starts, u, v, w, g, gamma / substeps * speeds[a], s_large, eta, N)
        t += 1
        for a in range(A):
            if entered_at[a] < 0 and u[a] ** N >= enter:
                entered_at[a] = t
        if awoke:
            break
    for i in range(n):
        mean[i] /= max(t - first, 1)
    return t


@njit(cache=True)
def unit_groups(g, starts, v):
    """The direction of every group of g; equal entries where there is none."""
    for l in range(starts.size - 1):
        i, j = starts[l], starts[l + 1]
        largest = 0.0
        for k in range(i, j):
            largest = max(largest, abs(g[k]))
        size = 0.0
        for k in range(i, j):
            v[k] = g[k] / largest if largest > 0.0 else 1.0
            size += v[k] * v[k]
        for k in range(i, j):
            v[k] /= np.sqrt(size)


@njit(cache=True)
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
def pulls(G, starts, directions, frozen, out):
    """``v'g`` of every group for every row of correlations G."""
    for r in range(G.shape[0]):
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
def risen_at(g, starts, w):
    """How many groups are up: each counts by how far it has come of where a unit gradient step points."""
    count = 0.0
    for a in range(starts.size - 1):
        now, pointed = 0.0, 0.0
        for k in range(starts[a], starts[a + 1]):
            now += w[k] * w[k]
            pointed += (w[k] + g[k]) ** 2
        if now > 0.0:
            count += min(1.0, np.sqrt(now / max(pointed, now)))
    return count


@njit(cache=True)
def risen(K, c, starts, w):
    """`risen_at` in the awake block."""
    g = np.empty(c.size)
    _correlations(K, c, w, g)
    return risen_at(g, starts, w)


@njit(cache=True)
def step_everyone(starts, u, v, w, g, speeds, gamma, s_large, eta, N):
    """One step of every group for given correlations; the largest relative change of a magnitude."""
    change = 0.0
    for l in range(starts.size - 1):
        if starts[l + 1] > starts[l]:
            x = step_group(l, starts, u, v, w, g, gamma * speeds[l], s_large, eta, N)
            change = max(change, abs(x))
    return change
