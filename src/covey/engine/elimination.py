"""Compiled backward elimination of groups from a least-squares fit."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["eliminate"]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def eliminate(P, c, edges, kept, W, square, part):
    """Fit, drop the group whose loss raises the objective least per dimension, and again, down to none.

    P is the inverse of the Gram block, which is overwritten, and ``w = P c``. Without group l the objective rises by
    ``w_l' (P_ll)^-1 w_l``, and P loses ``P_l (P_ll)^-1 P_l'``, which is done column by column of the group.

    Leaves the fits in W and the groups of each in `kept`; ``square`` and ``part`` are scratch of the largest rank.
    """
    m = edges.size - 1
    for i in range(m):
        for k in range(c.size):
            row, s = P[k], 0.0
            for j in range(c.size):
                s += row[j] * c[j]
            W[i, k] = s
        best, least = -1, np.inf
        for a in range(m):
            if kept[i, a]:
                rise = _rise(P, W[i], edges[a], edges[a + 1], square, part) / max(edges[a + 1] - edges[a], 1)
                # a fit that is no number leaves the first of the groups
                if best < 0 or rise < least:
                    best, least = a, rise
        for j in range(i + 1, m + 1):
            kept[j, best] = False
        for j in range(edges[best], edges[best + 1]):
            pivot = P[j]
            for a in range(m):
                if kept[i, a]:
                    for k in range(edges[a], edges[a + 1]):
                        if k != j:
                            row, factor = P[k], P[k, j] / pivot[j]
                            for l in range(c.size):
                                row[l] -= factor * pivot[l]
            for l in range(c.size):
                P[l, j], P[j, l] = 0.0, 0.0


@njit(inline="always")
def _rise(P, w, first, last, square, part):
    """``w_l' (P_ll)^-1 w_l`` by a Cholesky factorisation of the block."""
    n, total = last - first, 0.0
    for i in range(n):
        part[i] = w[first + i]
        for j in range(i + 1):
            s = P[first + i, first + j]
            for k in range(j):
                s -= square[i, k] * square[j, k]
            square[i, j] = np.sqrt(s) if i == j else s / square[j, j]
        for k in range(i):
            part[i] -= square[i, k] * part[k]
        part[i] /= square[i, i]
        total += part[i] * part[i]
    return total
