"""Compiled loops over the groups' small factors."""

from __future__ import annotations

import numpy as np
from numba import njit

from covey.designs.pivots import DEPENDENT, DOUBTFUL, TIE


def factor_groups(blocks, block_starts, starts, scale, root, alive):
    """Orthonormalise every group by a pivoted Cholesky factorisation of its correlation matrix.

    Returns the factors (flat), where each starts, the ranks, and the groups whose rank their Gram block cannot
    decide (those that have none included), which get rank zero here.
    """
    n_groups = starts.size - 1
    factors = np.empty(block_starts[-1])
    factor_starts = np.zeros(n_groups + 1, np.intp)
    ranks, doubtful = np.zeros(n_groups, np.intp), np.empty(n_groups, np.intp)
    largest = int(np.sqrt(np.diff(block_starts).max(initial=0)) + 0.5)
    square, triangle = np.empty((largest, largest)), np.empty((largest, largest))
    order = np.empty(largest, np.intp)
    n_doubtful = _factor_groups(
        blocks, block_starts, starts, scale, root, alive,
        factors, factor_starts, ranks, doubtful, square, triangle, order,
    )  # fmt: skip
    return factors[: factor_starts[-1]], factor_starts, ranks, doubtful[:n_doubtful]


@njit(cache=True)
def _factor_groups(
    blocks, block_starts, starts, scale, root, alive, factors, factor_starts, ranks, doubtful, square, triangle, order
):
    """The loop of `factor_groups`; arrays are made outside, where making them need not be compiled."""
    n_doubtful, at = 0, 0
    for l in range(starts.size - 1):
        a, size = starts[l], starts[l + 1] - starts[l]
        if block_starts[l + 1] == block_starts[l]:
            doubtful[n_doubtful] = l
            n_doubtful += 1
            factor_starts[l + 1] = at
            continue
        A, T = square[:size, :size], triangle[:size, :size]
        for i in range(size):
            for j in range(size):
                A[i, j], T[i, j] = 0.0, 0.0
                if alive[a + i] and alive[a + j]:
                    A[i, j] = blocks[block_starts[l] + i * size + j] / root[a + i] / root[a + j]
        rank, certain = _pivoted_cholesky(A, order)
        if not certain:
            doubtful[n_doubtful] = l
            n_doubtful += 1
            factor_starts[l + 1] = at
            continue
        # A = C C' on the chosen columns, lower triangular; T holds the inverse transpose of C
        for j in range(rank):
            T[order[j], j] = 1.0 / A[j, j]
            for i in range(j - 1, -1, -1):
                s = 0.0
                for k in range(i + 1, j + 1):
                    s += A[k, i] * T[order[k], j]
                T[order[i], j] = -s / A[i, i]
        for i in range(size):
            gain = scale[a + i] / root[a + i] if alive[a + i] else 0.0
            for j in range(rank):
                factors[at + i * rank + j] = T[i, j] * gain
        ranks[l] = rank
        at += size * rank
        factor_starts[l + 1] = at
    return n_doubtful


@njit(cache=True)
def _pivoted_cholesky(A, order):
    """Factorise a correlation matrix in place, its columns in `order`; the rank, and whether that is certain."""
    size = A.shape[0]
    for k in range(size):
        order[k] = k
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if A[i, i] > A[best, best] * (1.0 + TIE):
                best = i
        pivot = A[best, best]
        if pivot <= DEPENDENT:
            return k, True
        if pivot <= DOUBTFUL:
            return k, False
        if best != k:
            order[k], order[best] = order[best], order[k]
            for j in range(size):
                kept = A[k, j]
                A[k, j] = A[best, j]
                A[best, j] = kept
            for i in range(size):
                kept = A[i, k]
                A[i, k] = A[i, best]
                A[i, best] = kept
        A[k, k] = np.sqrt(pivot)
        for i in range(k + 1, size):
            A[i, k] /= A[k, k]
        for j in range(k + 1, size):
            for i in range(j, size):
                A[i, j] -= A[i, k] * A[j, k]
                A[j, i] = A[i, j]
    return size, True


@njit(cache=True)
def apply_factors(rows, starts, factors, factor_starts, out_starts, out):
    """``out_l = rows_l T_l`` for every group and row."""
    for l in range(starts.size - 1):
        a, size = starts[l], starts[l + 1] - starts[l]
        b, rank = out_starts[l], out_starts[l + 1] - out_starts[l]
        T = factors[factor_starts[l] : factor_starts[l + 1]]
        for i in range(rows.shape[0]):
            row, into = rows[i, a : a + size], out[i, b : b + rank]
            for j in range(rank):
                into[j] = 0.0
            for k in range(size):
                x = row[k]
                for j in range(rank):
                    into[j] += x * T[k * rank + j]


@njit(cache=True)
def models_to_user(factors, shapes, means, counts, rows, row_starts, y_scale, y_mean, coefs, coef_starts, intercepts):
    """``coef_l = T_l w_l y_scale``, group after group, for several models; and their intercepts.

    Model m has the first ``counts[m]`` groups; its w begins at ``rows[row_starts[m]]``, and its coefficients at
    ``coefs[coef_starts[m]]``.
    """
    for m in range(counts.size):
        at, i, j, level = 0, coef_starts[m], row_starts[m], 0.0
        for a in range(counts[m]):
            size, rank = shapes[a, 0], shapes[a, 1]
            for r in range(size):
                s = 0.0
                for k in range(rank):
                    s += factors[at + r * rank + k] * rows[j + k]
                coefs[i + r] = s * y_scale
                level += s * y_scale * means[i - coef_starts[m] + r]
            at += size * rank
            i += size
            j += rank
        intercepts[m] = y_mean - level
