"""Compiled loops of the network's path. Names follow the paper: u, v, w, g, K, N.

All are in one file, because numba checks only a function's own file to decide whether its cache is still valid.

Groups are contiguous; group ``a`` of an array of groups is ``starts[a]:starts[a + 1]``. With
``m = u^N``, the coefficients are ``w = m v``. The direction update ``v + eta u^N g``, normalised, is written
``w + s g``, normalised: s is 1 for the large step ``eta = 1/u^(2N)``, and ``eta m^2`` for a constant eta.

A sleeping group is tracked in ``phi``, in which growth is additive: ``log u`` for N = 2, else ``-u^(2-N)/(N-2)``.
"""

from __future__ import annotations

import numpy as np

from covey.compiling import njit

# The lower limit of a shrinking magnitude, so that its powers do not underflow.
SMALLEST = 1e-40

# Squared norms in this range have lost no digits.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-200, 1e200

# A smaller vector has no direction: its reciprocal overflows.
SMALLEST_SIZE = 1e-300

# Cases that need more substeps are reported as diverged.
MOST_SUBSTEPS = 1000.0

# A magnitude that grows by this factor in one iteration has diverged.
EXPLODED = 1e6

# A march pauses after this many multiplications: with nearly dependent columns an iteration may take a thousand
# substeps, and all work beyond a wake-up or the end of the path would be wasted.
MOST_WORK = 5e7

# Power iteration approaches the eigenvalue from below; it ends when a round adds less than this.
EIGENVALUE_TOLERANCE = 1e-3
EIGENVALUE_MARGIN = 1.02
MOST_ROUNDS = 100

# The large direction step is a unit gradient step on w: stable while the largest eigenvalue of the awake Gram block
# is below 2. Slightly before that it is replaced by the safe step, 1 over that eigenvalue.
LARGEST_STABLE = 1.9

# Nodes of one march: enough to cover a wake-up, few enough that a discarded window costs little.
NODES = 6

# The distance between nodes, in units of the norm of y, within these bounds.
LARGEST_DELTA, SMALLEST_DELTA = 0.25, 1e-4

# A doubt is the size of the correction made, not of the error that remains.
DOUBT_SHARE = 5.0

# A path is still if all remaining movement before the horizon is below this share of the tolerance.
STILL_SHARE = 0.1

# A residual with a smaller squared norm (y has 1) is round-off error.
EXPLAINED = 1e-12

# A march lasts at most as long as the time so far, or this many iterations: the stop rule may end the path there.
SHORT = 50

# A rest of at least this share of the time so far ends a piece, so that the far groups are checked before it.
REST_SHARE = 0.3

# Larger than any expected wake-up time.
NEVER = 2.0**62

# why a march ended, or in some cases the path
HORIZON, FULL, STILL, DIVERGED, WORKED, WOKE = 0, 1, 2, 3, 4, 5

# why no more nodes are accepted: none are left; too much doubt about a gain; a group may wake up; the
# switch may be due at the last of them
DONE, DOUBTFUL, WAKING, NODE = 10, 11, 12, 13

# other reasons why the path stopped, and what comes next
RUNNING, RESTING, ASLEEP, EXHAUSTED, NO_ROWS, NO_ROOM, NEWS, MARCH, STAND = 20, 21, 22, 23, 24, 25, 26, 27, 28

# positions in the draft's counts
RECORDS, WAKE_UPS, JOINS = 0, 1, 2


@njit(inline="always")
def power(u, N):
    """``u^N``."""
    return u * u if N == 2 else u**N


@njit(inline="always")
def growth(x, N, substeps):
    """The change of ``phi`` in one iteration, made in substeps, with x = N gamma v'g."""
    if N == 2:
        return substeps * np.log1p(max(x / substeps, -0.9))
    return x


@njit(inline="always", cache=True, error_model="numpy")
def step_groups(starts, n_groups, u, v, w, g, speeds, gamma, s_large, eta, N, enter):
    """One step of some groups for given correlations, in place.

    Returns the largest relative change of a magnitude, and how far the coefficients may drift in such a step:
    relative to themselves if a magnitude grows, to `enter` if it shrinks.
    """
    most, drift = 0.0, 0.0
    for a in range(n_groups):
        i, j = starts[a], starts[a + 1]
        if i == j:
            continue
        before = power(u[a], N)
        s = s_large if eta == 0.0 else min(eta * before * before, s_large)
        size, rho, scale = 0.0, 0.0, 1.0
        for k in range(i, j):
            x = w[k] + s * g[k]
            size += x * x
            rho += x * g[k]
        if not SMALLEST_SQUARE < size < LARGEST_SQUARE:
            # squares of 1e-200 or 1e200 would underflow or overflow
            largest, size, rho = 0.0, 0.0, 0.0
            for k in range(i, j):
                largest = max(largest, abs(w[k] + s * g[k]))
            if not largest > SMALLEST_SIZE:
                continue
            scale = 1.0 / largest
            for k in range(i, j):
                x = (w[k] + s * g[k]) * scale
                size += x * x
                rho += x * g[k]
        rho /= np.sqrt(size)
        unit = scale / np.sqrt(size)
        change = N * gamma * speeds[a] * rho
        if N != 2:
            change *= u[a] ** (N - 2)
        # a step may shrink a magnitude strongly, but never change its sign
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


@njit(inline="always", cache=True)
def substeps_of(u, n_groups, speeds, gamma, curvature, N):
    """The number of substeps of an iteration, so that no magnitude overshoots.

    An explicit step is stable while ``N^2 gamma u^(2N - 2)`` times the curvature is below 2; at 1 it is smooth.
    """
    fastest = 0.0
    for a in range(n_groups):
        fastest = max(fastest, speeds[a] * power(u[a], 2 * N - 2))
    return max(1, int(np.ceil(min(N * N * gamma * fastest * curvature, MOST_SUBSTEPS))))


@njit(fastmath={"reassoc", "contract"})
def gram_times(K, n, w, out):
    """``K w`` in the leading block of K."""
    for i in range(n):
        row, s = K[i], 0.0
        for j in range(n):
            s += row[j] * w[j]
        out[i] = s


@njit(inline="always")
def copy(x, n, into):
    """An explicit loop, because numba takes seconds to compile array expressions."""
    for i in range(n):
        into[i] = x[i]


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


@njit(inline="always", cache=True)
def gains(left, right, middle, share, steps, rate, N, substeps, asleep, frozen, gain, doubt):
    """Growth of sleeping groups between two nodes, and its uncertainty.

    A norm is convex in w: along the straight line between the nodes its mean lies between its value at the mean w
    (`middle`) and the average of the ends, weighted by the position of the mean w between them (`share`). For a
    parabola it lies a third of the way.

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
    """How many groups have risen: each counts by its norm relative to the target of a unit gradient step.

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

# The scalars that the kernels of the near path read and change.
NEAR = np.dtype(
    [
        # as in `Settings` and `Switch`; the phi at which a group joins, and the tolerance
        ("N", np.int64), ("gamma", np.float64), ("enter", np.float64), ("tau", np.float64),
        ("threshold", np.float64), ("tol", np.float64),
        # the time, how far to march, the direction step after the switch, the distance between nodes
        ("t", np.int64), ("until", np.int64), ("eta", np.float64), ("delta", np.float64),
        # groups that are stepped, and that are recorded as awake; safe steps, as in `AwakeGroups`
        ("n_awake", np.int64), ("n_told", np.int64), ("curvature", np.float64), ("direction_step", np.float64),
        # substeps of an iteration; iterations until the first group wakes up if nothing changes
        ("substeps", np.int64), ("expected", np.float64),
        # pending work: find safe steps, let this many groups join, make room for this many records
        ("news", np.bool_), ("n_ready", np.int64), ("lacking", np.int64),
        # a march has come to rest; nothing moves until a group wakes up; a march has paused
        ("still", np.bool_), ("resting", np.bool_), ("worked", np.bool_),
        # of a window: accepted nodes, and all nodes; sleeping groups that are watched until the next node;
        # whether one of them woke up there; the largest doubt that was accepted
        ("done", np.int64), ("last", np.int64), ("n_watched", np.int64), ("woke", np.bool_), ("surest", np.float64),
    ]
)  # fmt: skip


@njit(cache=True, error_model="numpy")
def decide(
    now, horizon, most_awake, stops, of_awake, places, K, of_groups, flags, all_starts, stored_at, ready, filled, room
):
    """Decide what comes next, and how far to go: a march, a rest, groups that join, or the end of the path.

    Finds the groups past the threshold, largest first, and when the others would reach it. Arrays here and below
    are those of `NearAwake`, `NearPath` and `Draft`, which describe their rows.
    """
    u, w, speeds, c, g = of_awake[0], of_awake[2], of_awake[3], of_awake[4], of_awake[6]
    phi, pull, rate, steps, asleep = of_groups[0], of_groups[1], of_groups[2], of_groups[4], flags[0]
    now.substeps = substeps_of(u, now.n_awake, speeds, now.gamma, now.curvature, now.N)
    soonest, count = np.inf, 0
    for l in range(phi.size):
        each = growth(rate[l] * pull[l], now.N, now.substeps)
        steps[l] = np.ceil((now.threshold - phi[l]) / each) if asleep[l] and each > 0.0 else np.inf
        soonest = min(soonest, steps[l])
        if asleep[l] and phi[l] >= now.threshold:
            b = count
            while b > 0 and phi[ready[b - 1]] < phi[l]:
                ready[b] = ready[b - 1]
                b -= 1
            ready[b] = l
            count += 1
    now.expected, now.n_ready = max(soonest, 1.0), count
    n = places[1, now.n_awake]
    needed = n
    for b in range(count):
        if stored_at[ready[b]] < 0:
            return NO_ROWS
        needed += all_starts[ready[b] + 1] - all_starts[ready[b]]
    if needed > K.shape[0]:
        return NO_ROOM
    if count > 0 or now.news:
        return NEWS
    if now.worked or now.t >= horizon or now.n_awake >= most_awake:
        now.worked = False
        return RUNNING
    # the stored correlations are out of date if a group has just joined
    gram_times(K, n, w, g)
    explained = 0.0
    for k in range(n):
        explained += w[k] * (2.0 * c[k] - g[k])
    if 1.0 - explained < EXPLAINED and not now.still:
        return EXHAUSTED
    if now.still and now.expected > REST_SHARE * now.t:
        now.still, now.resting = False, True
        return RESTING
    if now.n_awake == 0 and now.expected >= NEVER:
        return ASLEEP
    if not now.still:
        now.until = horizon
    if now.expected < NEVER:
        now.until = min(now.until, now.t + int(now.expected))
    now.lacking = NODES + 1
    for i in range(stops.size):
        if now.t < stops[i] < now.until:
            now.lacking += 1
    if filled[RECORDS] + now.lacking > room:
        return NO_ROOM
    return MARCH if now.n_awake > 0 and not (now.still or now.resting) else STAND


@njit(cache=True, error_model="numpy")
def march(
    now, stops, state, of_awake, places, K, rows, nodes, W, times, top, of_groups, of_columns, all_starts, watched
):
    """Step the awake groups towards ``now.until``, setting nodes along the path.

    Node i is at ``times[i]``, with u, v, w in ``nodes[i]``; node 0 is the start of the window. ``W[2 i]`` repeats the
    coefficients there, and ``W[2 i + 1]`` is their mean since the previous node.

    A node is set whenever w has moved by `delta` since the last, at every time of `stops`, at the end, where the
    march pauses, when a group passes `enter`, and when the largest relative change of a magnitude falls below
    `tau`. ``top[i]`` is this change in the last iteration before node i.

    Once the remaining movement before the end is below the tolerance (relative to itself for a growing magnitude, to
    `enter` for a shrinking one), stepping ends and w is kept.

    Some sleeping groups, `watched`, may be tracked exactly from the last accepted node to the next: their
    phi is advanced, and the march ends when one of them wakes up.

    Returns why it ended. The time at which a group first passes `enter` is stored in `entered_at`.
    """
    u, v, w, speeds, c = of_awake[0], of_awake[1], of_awake[2], of_awake[3], of_awake[4]
    g, origin, total = of_awake[6], of_awake[7], of_awake[8]
    starts, entered_at, all_c, directions = places[1], places[3], of_columns[0], of_columns[2]
    rate, phi_watched = of_groups[2], of_groups[7]
    n_awake, gamma, s_large, curvature, enter = now.n_awake, now.gamma, now.direction_step, now.curvature, now.enter
    N, eta, delta, n_watched = now.N, now.eta, now.delta, now.n_watched
    tau, still = 0.0 if eta > 0.0 else now.tau, now.tol * STILL_SHARE
    if n_watched == 0:
        now.done = 0
        copy(state, nodes.shape[1], nodes[0])
        times[0] = now.t
    n, t, node, end = starts[n_awake], now.t, now.done, HORIZON
    horizon = now.until if n_watched == 0 else times[node + 1]
    limit = t + max(SHORT, t)
    for k in range(n):
        W[2 * node, k] = origin[k] = w[k]
        total[k] = 0.0
    since, next_stop, work = 0, 0, 0.0
    settled, woke = True, False
    while next_stop < stops.size and stops[next_stop] <= t:
        next_stop += 1
    while True:
        substeps = substeps_of(u, n_awake, speeds, gamma, curvature, N)
        if t >= horizon or end != HORIZON:
            break
        for k in range(n):
            total[k] += w[k]
        change, drift = 0.0, 0.0
        for b in range(n_watched):
            l, along, square = watched[b], 0.0, 0.0
            for j in range(all_starts[l], all_starts[l + 1]):
                s = all_c[j]
                for k in range(n):
                    s -= w[k] * rows[k, j]
                along += directions[j] * s
                square += s * s
            phi_watched[b] += growth(rate[l] * (along if eta > 0.0 else np.sqrt(square)), N, substeps)
            woke = woke or phi_watched[b] >= now.threshold
        for _ in range(substeps):
            gram_times(K, n, w, g)
            for k in range(n):
                g[k] = c[k] - g[k]
            x, y = step_groups(starts, n_awake, u, v, w, g, speeds, gamma / substeps, s_large, eta, N, enter)
            change, drift = max(change, x * substeps), max(drift, y)
        t += 1
        since += 1
        work += substeps * n * n
        moved = 0.0
        for k in range(n):
            moved += (w[k] - origin[k]) ** 2
        if not (np.isfinite(moved) and change < EXPLODED):
            return DIVERGED
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
        if (leave and n_watched == 0) or woke or t == horizon:
            node += 1
            times[node], top[node] = t, change
            copy(state, nodes.shape[1], nodes[node])
            for k in range(n):
                W[2 * node, k] = origin[k] = w[k]
                W[2 * node + 1, k] = total[k] / since
                total[k] = 0.0
            since = 0
            if at_stop:
                next_stop += 1
            if woke:
                end = WOKE
            elif t < horizon:
                # after news the safe steps must be recomputed
                end = STILL if rest else FULL if news or node == NODES else WORKED if ended else HORIZON
    now.substeps = substeps
    if n_watched == 0:
        now.last, now.woke, now.surest = node, False, 0.0
        now.worked, now.still = end == WORKED, end == STILL
    elif woke:
        now.last, now.woke, now.still = node, True, False
    return end


@njit(cache=True, error_model="numpy")
def digest(
    now, fresh, places, W, times, of_groups, flags, of_columns, all_starts, G, P, watched,
    filled, numbers, n_risen, models, lefts,
):  # fmt: skip
    """Advance the sleeping groups from node to node, and accept the nodes into the draft.

    G holds the correlations of all near groups under the models W; rows from `fresh` on are new, and P receives
    their pulls.

    It stops before a node with too much doubt about a gain, unless it is the next iteration; before a node by which
    a group may wake up, which must then be watched; and after every node before the switch. A node up to which sleeping
    groups have been watched is always accepted. Returns why it stopped.
    """
    starts, columns, entered_at = places[1], places[2], places[3]
    phi, pull, rate = of_groups[0], of_groups[1], of_groups[2]
    gain, doubt, phi_watched = of_groups[5], of_groups[6], of_groups[7]
    directions, asleep = of_columns[2], flags[0]
    N, threshold, n_awake, n, frozen = now.N, now.threshold, now.n_awake, starts[now.n_awake], now.eta > 0.0
    pulls(G[fresh:], 2 * now.last + 2 - fresh, all_starts, directions, frozen, P[fresh:])
    sure, result = now.n_watched > 0, DONE
    while now.done < now.last and result == DONE:
        i, record, steps = now.done + 1, filled[RECORDS], times[now.done + 1] - now.t
        length, along = 0.0, 0.0
        for k in range(n):
            way = W[2 * i, k] - W[2 * i - 2, k]
            length += way * way
            along += (W[2 * i + 1, k] - W[2 * i - 2, k]) * way
        share = min(max(along / length, 0.0), 1.0) if length > 0.0 else 0.5
        worst = gains(pull, P[2 * i], P[2 * i + 1], share, steps, rate, N, now.substeps, asleep, frozen, gain, doubt)
        if not sure:
            if worst > DOUBT_SHARE * now.tol and now.delta > SMALLEST_DELTA and steps > 1:
                result = DOUBTFUL
                break
            now.surest = max(now.surest, worst)
            now.n_watched = 0
            for l in range(phi.size):
                if asleep[l] and phi[l] + gain[l] + doubt[l] >= threshold:
                    watched[now.n_watched], phi_watched[now.n_watched] = l, phi[l]
                    now.n_watched += 1
            if now.n_watched > 0:
                result = WAKING
                break
        for l in range(phi.size):
            phi[l] += gain[l]
            pull[l] = P[2 * i, l]
        if sure:
            for b in range(now.n_watched):
                phi[watched[b]] = phi_watched[b]
            now.n_watched = 0
        up, sure = 0, False
        for a in range(n_awake):
            if 0 <= entered_at[a] <= times[i]:
                up += 1
        numbers[0, record], numbers[1, record], numbers[2, record] = times[i], max(up, now.n_told), steps
        n_risen[record] = risen(G[2 * i], columns, starts, n_awake, W[2 * i])
        for k in range(models.shape[1]):
            models[2 * record, k] = W[2 * i, k] if k < n else 0.0
            models[2 * record + 1, k] = W[2 * i + 1, k] if k < n else 0.0
            lefts[record, k] = W[2 * i - 2, k] if k < n else 0.0
        filled[RECORDS] += 1
        now.t, now.done, now.news = times[i], i, up > now.n_told
        if now.tau > 0.0 and not (frozen or now.woke):
            result = NODE
    if result == DOUBTFUL:
        now.delta, now.still = max(now.delta / 2.0, SMALLEST_DELTA), False
    elif result == DONE and not now.woke and now.surest < DOUBT_SHARE * now.tol / 4.0:
        now.delta = min(now.delta * 1.5, LARGEST_DELTA)
    return result


@njit(cache=True)
def curvature_of(K, starts, entered_at, n_awake, t, vector, x, y, own, block):
    """Largest eigenvalue of the Gram block of the groups that have entered by t; compiled `largest_eigenvalue`.

    Power iteration starts from `vector` and updates it. Returns -1 if no group has entered.
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
