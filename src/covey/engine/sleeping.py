"""Compiled sums over the sleepers: what they gain from node to node, and when the first of them wakes."""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.engine.kernels import copy, gains, growth, pulls, risen

__all__ = ["DONE", "DOUBTFUL", "NEWS", "WAKING", "digest", "steps_to_wake"]

# why `digest` stopped: all nodes are accepted; too much doubt about a gain; somebody may wake; a group has entered
DONE, DOUBTFUL, WAKING, NEWS = 0, 1, 2, 3


@njit(cache=True, error_model="numpy")
def digest(
    first, count, fresh, sure, one, t, left, G, P, starts, directions, frozen, rate, N, substeps, asleep, phi, pull, g,
    gain, doubt, threshold, most_doubt, surest, times, models, steps, lefts, n_risen, n_entered, n_told,
    awake_starts, columns, n_awake, entered_at,
):  # fmt: skip
    """Bring the sleepers along from node to node, and accept these into the draft.

    Nodes `first` to `count` follow the present time t, with coefficients ``models[2 i]`` and ``models[2 i + 1]`` at the
    node and in the mean since the last one, correlations G of all groups at both, and pulls P, which are formed if G is `fresh`.
    `left` are the coefficients at t. `phi`, `pull` and `g` are brought to the last node that is accepted.

    It stops before a node with more than `most_doubt` about a gain, unless it is the next iteration; before one at
    which somebody may wake; after one at which a group has entered; and, if asked for, after `one`. One that is
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
        worst = gains(
            pull, P[2 * i], P[2 * i + 1], share, times[i] - t, rate, N, substeps, asleep, frozen, gain, doubt
        )
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
