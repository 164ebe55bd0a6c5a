"""Compiled steps of the awake groups, leaving nodes on the way."""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.engine.kernels import EXPLODED, copy, gram_times, growth, power, pull, step_group, substeps_of

__all__ = ["DIVERGED", "FULL", "HORIZON", "STILL", "WOKE", "WORKED", "march"]

# A march ends for now after so many multiplications: where columns are nearly dependent an iteration may take a
# thousand substeps, and whatever lies behind a wake-up or the end of the path would be in vain.
MOST_WORK = 5e7

# why a march ended
HORIZON, FULL, STILL, DIVERGED, WORKED, WOKE = 0, 1, 2, 3, 4, 5


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
            for a in range(n_awake):
                before = power(u[a], N)
                x = step_group(a, starts, u, v, w, g, gamma / substeps * speeds[a], s_large, eta, N)
                change = max(change, abs(x) * substeps)
                drift = max(drift, N * x if x > 0.0 else (before - power(u[a], N)) / enter)
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
