"""Compiled work of a wake-up: a group joins the Gram block of the awake ones, and safe steps are found for all."""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.engine.awake import EIGENVALUE_TOLERANCE, MOST_ROUNDS
from covey.engine.kernels import copy, gram_times, unit_group

__all__ = ["curvature_of", "join"]


@njit(cache=True)
def join(l, k, m, stored, at, all_starts, all_c, directions, K, rows, columns, v, w, c, vector):
    """Put group l, of norm m, behind the k awake columns; its Gram rows are ``stored[at:]``."""
    first, rank = all_starts[l], all_starts[l + 1] - all_starts[l]
    for i in range(rank):
        row = stored[at + i]
        copy(row, all_c.size, rows[k + i])
        for j in range(k):
            K[k + i, j] = row[columns[j]]
            K[j, k + i] = row[columns[j]]
        for j in range(rank):
            # one product rounds differently above and below the diagonal
            K[k + i, k + j] = (row[first + j] + stored[at + j, first + i]) / 2
    unit_group(directions, first, first + rank, v, k)
    for i in range(rank):
        w[k + i] = m * v[k + i]
        c[k + i] = all_c[first + i]
        columns[k + i] = first + i
        vector[k + i] = 1.0 / np.sqrt(k + rank)


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

