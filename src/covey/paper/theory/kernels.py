"""Compiled kernels: spectral norms of many small matrices, and the pruning that makes most of them unnecessary.

A pair of groups needs its spectral norm only where an upper bound beats the best value that one of the two groups
already has. The bounds, from cheap to sharp, are Schatten norms: the Frobenius norm of A (Schatten 2), then from
``M = A A'`` the Frobenius norms of M (Schatten 4) and of M^2 (Schatten 8). None is ever below the spectral norm, so the
largest value stays exact.
"""

from __future__ import annotations

import numpy as np

from covey.compiling import njit

__all__ = ["DIRECT_SIZE", "largest_eigenvalue", "pair_norms", "update_profile"]

# Above this smaller side, LAPACK on the single pair is faster than Jacobi rotations.
DIRECT_SIZE = 16
# Bounds are compared with this relative slack, so that rounding in a bound never prunes a true maximum.
_SLACK = 1.0 + 1e-12


@njit(cache=True)
def largest_eigenvalue(M, m):
    """Largest eigenvalue of the symmetric leading m x m block of M, by cyclic Jacobi rotations; M is overwritten."""
    if m == 1:
        return M[0, 0]
    if m == 2:
        half = 0.5 * (M[0, 0] - M[1, 1])
        return 0.5 * (M[0, 0] + M[1, 1]) + np.sqrt(half * half + M[0, 1] * M[0, 1])
    for _ in range(30):
        off = 0.0
        diagonal = 0.0
        for i in range(m):
            diagonal += M[i, i] * M[i, i]
            for j in range(i + 1, m):
                off += M[i, j] * M[i, j]
        # an eigenvalue moves by at most the off-diagonal norm: below 1e-17 of the diagonal nothing changes in float64
        if off <= 1e-34 * diagonal:
            break
        for i in range(m - 1):
            for j in range(i + 1, m):
                if M[i, j] == 0.0:
                    continue
                theta = 0.5 * (M[j, j] - M[i, i]) / M[i, j]
                if abs(theta) > 1e150:
                    t = 0.5 / theta
                else:
                    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                    if theta < 0.0:
                        t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                M[i, i] -= t * M[i, j]
                M[j, j] += t * M[i, j]
                M[i, j] = 0.0
                for k in range(m):
                    if k in (i, j):
                        continue
                    # the upper triangle only
                    a, b = (k, i) if k < i else (i, k)
                    x, y = (k, j) if k < j else (j, k)
                    old = M[a, b]
                    M[a, b] = c * old - s * M[x, y]
                    M[x, y] = s * old + c * M[x, y]
    top = M[0, 0]
    for i in range(1, m):
        top = max(top, M[i, i])
    return top


@njit(cache=True)
def _gram(A, M):
    """``M = A A'``; returns its size and squared Frobenius norm."""
    fro2 = 0.0
    for i in range(A.shape[0]):
        for j in range(i, A.shape[0]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * A[j, k]
            M[i, j] = total
            M[j, i] = total
            fro2 += total * total if i == j else 2.0 * total * total
    return A.shape[0], fro2


@njit(cache=True)
def _small_gram(C, r0, r1, c0, c1, M):
    """The Gram M of ``A = C[r0:r1, c0:c1]`` on its smaller side; returns its size and squared Frobenius norm."""
    A = C[r0:r1, c0:c1]
    return _gram(A, M) if r1 - r0 <= c1 - c0 else _gram(A.T, M)


@njit(cache=True)
def _square_fro2(M, m):
    """Squared Frobenius norm of M^2 for the symmetric leading block of M."""
    fro2 = 0.0
    for i in range(m):
        for j in range(i, m):
            total = 0.0
            for k in range(m):
                total += M[i, k] * M[j, k]
            fro2 += total * total if i == j else 2.0 * total * total
    return fro2


@njit(cache=True)
def _visit(C, r0, r1, c0, c1, l, m, floor, outer2, partner, M):
    """Compute one pair's squared spectral norm, unless a Schatten norm rules it out, and update both groups."""
    size, fro2 = _small_gram(C, r0, r1, c0, c1, M)
    if np.sqrt(fro2) * _SLACK <= floor:
        return
    if size > 2 and np.sqrt(np.sqrt(_square_fro2(M, size))) * _SLACK <= floor:
        return
    value = largest_eigenvalue(M, size)
    if value > outer2[l]:
        outer2[l] = value
        partner[l] = m
    if value > outer2[m]:
        outer2[m] = value
        partner[m] = l


@njit(cache=True)
def update_profile(C, row_starts, col_starts, first_row, first_col, outer2, partner, deferred):
    """Raise each group's largest squared cross norm by the pairs in the cross Gram C; only pairs l < m are read.

    Pairs whose smaller side exceeds `DIRECT_SIZE`, and that the Frobenius bound does not rule out, are marked with
    their squared Frobenius norm in `deferred` and left to the caller.
    """
    n_rows, n_cols = row_starts.size - 1, col_starts.size - 1
    M = np.empty((DIRECT_SIZE, DIRECT_SIZE))
    fro2 = np.empty(n_cols)
    count = 0
    for a in range(n_rows):
        l = first_row + a
        r0, r1 = row_starts[a], row_starts[a + 1]
        begin = max(0, l + 1 - first_col)
        if begin >= n_cols:
            continue
        for b in range(begin, n_cols):
            fro2[b] = 0.0
        for i in range(r0, r1):
            for b in range(begin, n_cols):
                total = 0.0
                for j in range(col_starts[b], col_starts[b + 1]):
                    total += C[i, j] * C[i, j]
                fro2[b] += total
        # the most promising pair first: it lifts the bar for all others of this group
        top = begin
        for b in range(begin + 1, n_cols):
            if fro2[b] > fro2[top]:
                top = b
        for step in range(-1, n_cols - begin):
            b = top if step < 0 else begin + step
            if step >= 0 and b == top:
                continue
            m = first_col + b
            floor = min(outer2[l], outer2[m])
            if fro2[b] * _SLACK <= floor:
                continue
            c0, c1 = col_starts[b], col_starts[b + 1]
            if min(r1 - r0, c1 - c0) > DIRECT_SIZE:
                deferred[a, b] = fro2[b]
                count += 1
            else:
                _visit(C, r0, r1, c0, c1, l, m, floor, outer2, partner, M)
    return count


@njit(cache=True)
def pair_norms(C, row_starts, col_starts, out):
    """Spectral norm of every pair in the cross Gram C whose smaller side is at most `DIRECT_SIZE`; others are -1."""
    M = np.empty((DIRECT_SIZE, DIRECT_SIZE))
    for a in range(row_starts.size - 1):
        for b in range(col_starts.size - 1):
            r0, r1, c0, c1 = row_starts[a], row_starts[a + 1], col_starts[b], col_starts[b + 1]
            if min(r1 - r0, c1 - c0) > DIRECT_SIZE:
                out[a, b] = -1.0
            else:
                size, _ = _small_gram(C, r0, r1, c0, c1, M)
                out[a, b] = np.sqrt(max(largest_eigenvalue(M, size), 0.0))
