"""The compiled loop of the exact path. Names follow the paper: u, v, w, g, K, N.

Its pieces that the screened path has too are in `covey.engine.kernels`. Numba looks at a function's own file alone to
see whether what it has compiled is still good: touch this one when those have changed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.engine.awake import EIGENVALUE_MARGIN
from covey.engine.kernels import (
    EIGENVALUE_TOLERANCE,
    EXPLODED,
    MOST_ROUNDS,
    copy,
    power,
    risen,
    step_groups,
    substeps_of,
)

# In working coordinates the response has unit size: a magnitude beyond this is on its way to infinity.
LARGEST_MAGNITUDE = 1e6

# A record at least this often, relative to the time so far: the path changes on a logarithmic scale of time.
RECORD_EVERY = 0.02

# A batch ends after so many multiplications, some milliseconds: whatever lies behind the stop is in vain.
MOST_WORK = 2e7

# why `descend` came back: the last iteration, room or work is used up; Algorithm 2 may switch; divergence
ENDED, SETTLED, DIVERGED = 0, 1, 2


@njit(cache=True, fastmath={"reassoc", "contract"})
def gram_product(A, n_rows, n_columns, wide, x, out):
    """``K x`` for the leading block of A: K itself, or with fewer rows than columns its root, ``K = A'A``.

    Four rows at a time, read once for both products: what is read and written along with them counts for four.
    """
    for k in range(n_columns):
        out[k] = 0.0
    whole = n_rows - n_rows % 4
    for i in range(0, whole, 4):
        a, b, c, d = A[i], A[i + 1], A[i + 2], A[i + 3]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for k in range(n_columns):
            p += a[k] * x[k]
            q += b[k] * x[k]
            r += c[k] * x[k]
            s += d[k] * x[k]
        if wide:
            for k in range(n_columns):
                out[k] += p * a[k] + q * b[k] + r * c[k] + s * d[k]
        else:
            out[i], out[i + 1], out[i + 2], out[i + 3] = p, q, r, s
    for i in range(whole, n_rows):
        a, p = A[i], 0.0
        for k in range(n_columns):
            p += a[k] * x[k]
        if wide:
            for k in range(n_columns):
                out[k] += p * a[k]
        else:
            out[i] = p


@njit(cache=True)
def wake(u, N, enter, asleep, order, n_awake):
    """Put the groups that have passed `enter` into the order, the strongest first; how many are awake then."""
    n = n_awake
    for l in range(u.size):
        if asleep[l] and power(u[l], N) >= enter:
            asleep[l] = False
            order[n] = l
            n += 1
    gap = (n - n_awake) // 2
    while gap > 0:
        for a in range(n_awake + gap, n):
            l, b = order[a], a
            while b >= n_awake + gap:
                m = order[b - gap]
                if u[m] > u[l] or (u[m] == u[l] and m < l):
                    break
                order[b] = m
                b -= gap
            order[b] = l
        gap //= 2
    return n


@njit(cache=True)
def awake_eigenvalue(A, wide, starts, order, n_known, n_awake, block, filled, columns, x, y):
    """The largest eigenvalue of the Gram block of the awake groups; the twin of `AwakeGroups.find_safe_steps`.

    The first `filled` of their columns are in `block` already. Power iteration begins where it had come to, in x, with
    an average share for the groups after the first `n_known`. Returns also how many columns there are.
    """
    m = starts[0]
    for a in range(n_awake):
        i, j = starts[order[a]], starts[order[a] + 1]
        for k in range(i, j):
            columns[m + k - i] = k
        if a >= n_known:
            for k in range(m, m + j - i):
                x[k] = 1.0 / np.sqrt(m + j - i)
        m += j - i
    n_rows = A.shape[0] if wide else m
    for i in range(n_rows):
        for k in range(0 if not wide and i >= filled else filled, m):
            block[i, k] = A[i if wide else columns[i], columns[k]]
    value = 0.0
    for _ in range(MOST_ROUNDS):
        gram_product(block, n_rows, m, wide, x, y)
        size = 0.0
        for k in range(m):
            size += y[k] * y[k]
        size = np.sqrt(size)
        if not size > 0.0:
            return 0.0, m
        previous, value = value, size
        for k in range(m):
            x[k] = y[k] / size
        if abs(value - previous) <= EIGENVALUE_TOLERANCE * value:
            break
    return value, m


@njit(cache=True, error_model="numpy")
def descend(
    A, wide, c, starts, speeds, gamma, eta, N, enter, tau, largest_stable, state,
    asleep, order, entered_at, n_awake, s_large, curvature, vector, block, filled,
    t, last, max_iter, horizon, stops, times, n_woken, n_risen, states, g, scratch, columns, every,
):  # fmt: skip
    """Step all groups from t to `last`, leaving records on the way; the twin of `ExactPath.run`.

    A record is left at `horizon`, the time of the next one that is due, when a group wakes up, and when the largest
    relative change of a magnitude falls below `tau`. ``times[i]`` and ``states[i]`` are its t and its state, u, v and w
    one after another, ``n_woken[i]`` the number of groups awake, and ``n_risen[i]`` how many of these are up. The awake
    groups are ``order[:n_awake]``; those that wake up are put behind, with their time in `entered_at`.

    Returns the number of records, why it came back, t, the next horizon, the relative change; and of the awake groups
    their number, the safe step on directions, the curvature, and how many of their columns are in `block`. After
    divergence the state is that of the last good iteration, which is kept in the last of `states`. `g`, `scratch` and
    `columns` are scratch, and `every` counts the columns.
    """
    L, r = speeds.size, c.size
    u, v, w, good = state[:L], state[L : L + r], state[L + r :], states[-1]
    count, next_stop, change, work = 0, 0, np.inf, 0.0
    before, substep, substeps = n_awake, 0, 1
    while True:
        if substep == 0:
            before = n_awake
            n_awake = wake(u, N, enter, asleep, order, n_awake)
            if n_awake > before:
                for a in range(before, n_awake):
                    entered_at[a] = t
                curvature, filled = awake_eigenvalue(
                    A, wide, starts, order, before, n_awake, block, filled, columns, vector, scratch
                )
                curvature *= EIGENVALUE_MARGIN
                s_large = 1.0 if curvature < largest_stable else 1.0 / curvature
        gram_product(A, A.shape[0], r, wide, w, g)
        for k in range(r):
            g[k] = c[k] - g[k]
        if substep == 0:
            why = SETTLED if change < tau else ENDED
            if t >= horizon or n_awake > before or why == SETTLED:
                times[count], n_woken[count], n_risen[count] = t, n_awake, 0.0
                for a in range(n_awake):
                    n_risen[count] += risen(g, every, starts[order[a] :], 1, w)
                copy(state, state.size, states[count])
                count += 1
                horizon = min(max_iter, t + max(1, int(RECORD_EVERY * t)))
                while next_stop < stops.size and stops[next_stop] <= t:
                    next_stop += 1
                if next_stop < stops.size:
                    horizon = min(horizon, stops[next_stop])
            if why == SETTLED or t >= last or count == times.size or work > MOST_WORK:
                break
            copy(state, state.size, good)
            substeps = substeps_of(u, L, speeds, gamma, curvature, N)
            work += substeps * A.size
            change = 0.0
        x, _ = step_groups(starts, L, u, v, w, g, speeds, gamma / substeps, s_large, eta, N, enter)
        change = max(change, x * substeps)
        for l in range(L):
            if not u[l] < LARGEST_MAGNITUDE:
                change = np.inf
        if not change < EXPLODED:
            copy(good, state.size, state)
            why = DIVERGED
            break
        substep += 1
        if substep == substeps:
            substep = 0
            t += 1
    return count, why, t, horizon, change, n_awake, s_large, curvature, filled
