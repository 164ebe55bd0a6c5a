"""Compiled loops of the engine. Names follow the paper: u, v, w, g, K, N.

All are in one file: numba looks at a function's own file alone to see whether what it has compiled is still good.

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

# A march ends for now after so many multiplications: where columns are nearly dependent an iteration may take a
# thousand substeps, and whatever lies behind a wake-up or the end of the path would be in vain.
MOST_WORK = 5e7

# why a march ended
HORIZON, FULL, STILL, DIVERGED, WORKED, WOKE = 0, 1, 2, 3, 4, 5

# why `digest` stopped: all nodes are accepted; too much doubt about a gain; somebody may wake; a group has entered
DONE, DOUBTFUL, WAKING, NEWS = 0, 1, 2, 3

# Power iteration approaches an eigenvalue from below; it ends when a round adds less than the tolerance.
EIGENVALUE_TOLERANCE = 1e-3
MOST_ROUNDS = 100


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


@njit(cache=True, error_model="numpy")
def step_groups(starts, n_groups, u, v, w, g, speeds, gamma, s_large, eta, N, enter):
    """One step of some groups for given correlations, in place.

    Returns the largest relative change of a magnitude, and how far the coefficients may drift in a step like this one:
    relative to themselves where a magnitude grows, to `enter` where it shrinks.
    """
    most, drift = 0.0, 0.0
    for a in range(n_groups):
        i, j = starts[a], starts[a + 1]
        if i == j:
            continue
        before = power(u[a], N)
        s = s_large if eta == 0.0 else min(eta * before * before, s_large)
        size, rho = 0.0, 0.0
        for k in range(i, j):
            x = w[k] + s * g[k]
            size += x * x
            rho += x * g[k]
        if SMALLEST_SQUARE < size < LARGEST_SQUARE:
            unit = 1.0 / np.sqrt(size)
            rho *= unit
        else:
            unit, rho = unit_of_extremes(i, j, w, g, s)
            if unit == 0.0:
                continue
        change = N * gamma * speeds[a] * rho
        if N != 2:
            change *= u[a] ** (N - 2)
        # a step may halve a magnitude or worse, never turn its sign
        change = max(change, -0.9)
        u[a] = max(u[a] * (1.0 + change), SMALLEST)
        m = power(u[a], N)
        for k in range(i, j):
            x = (w[k] + s * g[k]) * unit
            v[k] = x
            w[k] = m * x
        most = max(most, abs(change))
        drift = max(drift, N * change if change > 0.0 else (before - m) / enter)
    return most, drift


@njit(cache=True)
def unit_of_extremes(i, j, w, g, s):
    """One over the norm of ``x = w + s g``, and g along x, where squares of 1e-200 or 1e200 would be lost; or zeros."""
    largest, size, rho = 0.0, 0.0, 0.0
    for k in range(i, j):
        largest = max(largest, abs(w[k] + s * g[k]))
    if not largest > 0.0:
        return 0.0, 0.0
    for k in range(i, j):
        x = (w[k] + s * g[k]) / largest
        size += x * x
        rho += x * g[k]
    return 1.0 / np.sqrt(size) / largest, rho / np.sqrt(size)


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


# ---------------------------------------------------------------------- the near path


@njit(cache=True, error_model="numpy")
def march(
    K, c, starts, n_awake, u, v, w, speeds, entered_at, gamma, s_large, eta, N, curvature, enter,
    t, horizon, limit, delta, still, tau, stops, times, top, us, vs, models, g, origin, total,
    watched, phi, all_rows, all_c, all_starts, rate, directions, gW, threshold,
):  # fmt: skip
    """Step the awake groups from t towards `horizon`, leaving nodes on the way.

    A node is left whenever w has moved by `delta` since the last, at every time of `stops`, at the horizon, at the
    limit, where the march ends for now, when a group passes `enter`, and when the largest relative change of a
    magnitude falls below `tau`. ``times[i]``, ``us[i]``, ``vs[i]`` and ``models[2 i]`` are its t and its u, v and w,
    ``models[2 i + 1]`` the mean of w over the iterations since the node before, and ``top[i]`` the largest relative
    change of a magnitude in its last iteration.

    Once what is left to move before the horizon is below `still` (relative to itself for a magnitude that grows, to
    `enter` for one that shrinks), nothing more is stepped: w stays as it is until the horizon.

    Some sleepers, `watched`, may be followed exactly: their `phi` is advanced in place, with their columns of
    ``all_rows``, the Gram rows of the awake groups against all. The march then leaves one node, where one of them
    wakes or at the horizon.

    Returns the number of nodes and why it ended. The first passing of `enter` by a group goes into `entered_at`.
    ``g``, ``origin``, ``total`` and ``gW`` are scratch.
    """
    n, watching = starts[n_awake], watched.size > 0
    copy(w, n, origin)
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
        change, drift, woke = 0.0, 0.0, False
        substeps = substeps_of(u, n_awake, speeds, gamma, curvature, N)
        for b in range(watched.size):
            l = watched[b]
            first, last = all_starts[l], all_starts[l + 1]
            for j in range(first, last):
                s = 0.0
                for i in range(n):
                    s += w[i] * all_rows[i, j]
                gW[j] = all_c[j] - s
            phi[b] += growth(rate[l] * pull(gW, first, last, directions, eta > 0.0), N, substeps)
            woke = woke or phi[b] >= threshold
        for _ in range(substeps):
            gram_times(K, n, w, g)
            for i in range(n):
                g[i] = c[i] - g[i]
            x, y = step_groups(starts, n_awake, u, v, w, g, speeds, gamma / substeps, s_large, eta, N, enter)
            change, drift = max(change, x * substeps), max(drift, y)
        t += 1
        since += 1
        work += substeps * n * n
        moved = 0.0
        for i in range(n):
            moved += (w[i] - origin[i]) ** 2
        if not (np.isfinite(moved) and change < EXPLODED):
            return count, DIVERGED
        news = False
        for a in range(n_awake):
            if entered_at[a] < 0 and power(u[a], N) >= enter:
                entered_at[a] = t
                news = True
        at_stop = next_stop < stops.size and stops[next_stop] == t
        settling = change < tau and not settled
        settled = change < tau
        rest = drift * substeps * (horizon - t) <= still
        ended = t >= min(horizon, limit) or work > MOST_WORK
        leave = moved > delta * delta or at_stop or ended or rest or settling or news
        if (leave and not watching) or woke or t == horizon:
            times[count], top[count] = t, change
            copy(u, n_awake, us[count])
            copy(v, n, vs[count])
            copy(w, n, origin)
            for i in range(n):
                models[2 * count, i] = w[i]
                models[2 * count + 1, i] = total[i] / since
                total[i] = 0.0
            count += 1
            since = 0
            if at_stop:
                next_stop += 1
            if woke:
                return count, WOKE
            if rest and t < horizon:
                return count, STILL
            # after news the safe steps have to be found again
            if (news or count == top.size) and t < horizon:
                return count, FULL
            if ended and t < horizon:
                return count, WORKED
    return count, HORIZON


@njit(cache=True, error_model="numpy")
def digest(
    first, count, fresh, sure, one, t, left, G, P, starts, directions, frozen, rate, N, substeps, asleep, phi, pull, g,
    gain, doubt, threshold, most_doubt, surest, times, models, steps, lefts, n_risen, n_entered, n_told,
    awake_starts, columns, n_awake, entered_at,
):  # fmt: skip
    """Bring the sleepers along from node to node, and accept these into the draft.

    Nodes `first` to `count` follow the present time t, with coefficients ``models[2 i]`` at the node and
    ``models[2 i + 1]`` in the mean since the last one, correlations G of all groups at both, and pulls P, which are
    formed if G is `fresh`. `left` are the coefficients at t. `phi`, `pull` and `g` are brought to the last node that is
    accepted.

    It stops before a node with more than `most_doubt` about a gain, unless it is the next iteration; before one at
    which somebody may wake; after one at which a group has entered; and, if asked for, after `one`. A node that is
    `sure` is accepted in any case.

    Returns how many nodes are accepted, why it stopped, and the largest doubt that was accepted, or `surest`.
    """
    n = awake_starts[n_awake]
    if fresh:
        pulls(G[2 * first :], 2 * (count - first), starts, directions, frozen, P[2 * first :])
    i, why = first, DONE
    while i < count and why == DONE:
        length, along = 0.0, 0.0
        for k in range(n):
            way = models[2 * i, k] - left[k]
            length += way * way
            along += (models[2 * i + 1, k] - left[k]) * way
        share = min(max(along / length, 0.0), 1.0) if length > 0.0 else 0.5
        worst = gains(pull, P[2 * i], P[2 * i + 1], share, times[i] - t, rate, N, substeps, asleep, frozen, gain, doubt)
        if not sure:
            if worst > most_doubt and times[i] - t > 1:
                return i, DOUBTFUL, surest
            surest = max(surest, worst)
            for l in range(phi.size):
                if asleep[l] and phi[l] + gain[l] + doubt[l] >= threshold:
                    return i, WAKING, surest
        for l in range(phi.size):
            phi[l] += gain[l]
            pull[l] = P[2 * i, l]
        steps[i], up = times[i] - t, 0
        for k in range(lefts.shape[1]):
            lefts[i, k] = left[k] if k < n else 0.0
        for k in range(n, models.shape[1]):
            models[2 * i, k], models[2 * i + 1, k] = 0.0, 0.0
        t, left = times[i], models[2 * i]
        for a in range(n_awake):
            if 0 <= entered_at[a] <= t:
                up += 1
        n_entered[i] = max(up, n_told)
        n_risen[i] = risen(G[2 * i], columns, awake_starts, n_awake, left)
        if up > n_told:
            why = NEWS
        i += 1
        if sure or one:
            break
    if i > first:
        copy(G[2 * i - 2], g.size, g)
    return i, why, surest


@njit(cache=True, error_model="numpy")
def steps_to_wake(phi, pull, rate, asleep, threshold, N, substeps, steps):
    """Iterations until each group wakes if all correlations stay as they are; the least of them."""
    soonest = np.inf
    for l in range(phi.size):
        each = growth(rate[l] * pull[l], N, substeps)
        steps[l] = np.ceil((threshold - phi[l]) / each) if asleep[l] and each > 0.0 else np.inf
        soonest = min(soonest, steps[l])
    return soonest


@njit(cache=True)
def curvature_of(K, starts, entered_at, n_awake, t, vector, x, y, own, block):
    """Largest eigenvalue of the Gram block of the groups that have entered by t; the twin of `largest_eigenvalue`.

    `vector` is where power iteration begins, and where it has come to. Returns -1 where nobody has entered.
    """
    m = starts[0]
    for a in range(n_awake):
        if 0 <= entered_at[a] <= t:
            for k in range(starts[a], starts[a + 1]):
                own[m], x[m] = k, vector[k]
                m += 1
    if m == 0:
        return -1.0
    for i in range(m):
        for j in range(m):
            block[i, j] = K[own[i], own[j]]
    value = 0.0
    for _ in range(MOST_ROUNDS):
        gram_times(block, m, x, y)
        size = 0.0
        for i in range(m):
            size += y[i] * y[i]
        size = np.sqrt(size)
        if not size > 0.0:
            return 0.0
        previous, value = value, size
        for i in range(m):
            x[i] = y[i] / size
        if abs(value - previous) <= EIGENVALUE_TOLERANCE * value:
            break
    for i in range(m):
        vector[own[i]] = x[i]
    return value
