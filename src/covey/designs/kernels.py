"""The pass over X for its moments, dense and sparse; and products with sparse columns."""

from __future__ import annotations

import numpy as np
from numba import njit

# A panel of 24 rows by about 768 columns is 144 KiB: it and its accumulators stay in a core's second-level cache.
PANEL_ROWS = 24
PANEL_COLUMNS = 768


@njit(cache=True, fastmath={"contract"})
def panel_moments(
    X, by_column, in_order, members, starts, l0, l1, block_starts, shift, scale, root_q, y, total, cross, blocks,
    bands, buffer,
):  # fmt: skip
    """Moments of the columns of the groups l0 to l1: one panel of X, read once.

    Rows enter as ``sqrt(q) scale (x - shift)``; ``total`` gathers their products with sqrt(q), ``cross`` those with
    sqrt(q) y, and ``blocks[block_starts[l]:block_starts[l + 1]]`` the Gram block of group l.

    ``bands`` and ``buffer`` are zero, with a row per distance within a group and ``PANEL_ROWS`` rows. On the way
    ``bands[d, j]`` gathers column j times column j + d. Running along j rather than along groups keeps
    every inner loop long, contiguous and vectorised whatever the size of the groups; entries that straddle two groups
    are computed and never read.
    """
    first, last = starts[l0], starts[l1]
    n, span, width = X.shape[0], last - first, bands.shape[0]
    left, gain = shift[first:last], scale[first:last]
    sums, products = total[first:last], cross[first:last]
    for top in range(0, n, PANEL_ROWS):
        rows = min(PANEL_ROWS, n - top)
        if by_column:
            for j in range(span):
                c = members[first + j]
                for i in range(rows):
                    buffer[i, j] = (X[top + i, c] - left[j]) * gain[j] * root_q[top + i]
        elif in_order:
            for i in range(rows):
                row, into, a = X[top + i, first:last], buffer[i], root_q[top + i]
                for j in range(span):
                    into[j] = (row[j] - left[j]) * gain[j] * a
        else:
            for i in range(rows):
                row, into, a = X[top + i], buffer[i], root_q[top + i]
                for j in range(span):
                    into[j] = (row[members[first + j]] - left[j]) * gain[j] * a
        for i in range(rows, PANEL_ROWS):
            for j in range(span):
                buffer[i, j] = 0.0
        for i in range(rows):
            a = root_q[top + i]
            b = a * y[top + i]
            row = buffer[i]
            for j in range(span):
                sums[j] += a * row[j]
                products[j] += b * row[j]
        for i in range(0, rows, 4):
            x0, x1, x2, x3 = buffer[i], buffer[i + 1], buffer[i + 2], buffer[i + 3]
            for d in range(width):
                band = bands[d]
                s0, s1, s2, s3 = x0[d:], x1[d:], x2[d:], x3[d:]
                for j in range(span):
                    band[j] += x0[j] * s0[j] + x1[j] * s1[j] + x2[j] * s2[j] + x3[j] * s3[j]
    for l in range(l0, l1):
        if block_starts[l + 1] > block_starts[l]:
            size, offset, at = starts[l + 1] - starts[l], starts[l] - first, block_starts[l]
            for i in range(size):
                for j in range(size):
                    blocks[at + i * size + j] = bands[abs(i - j), offset + min(i, j)]


@njit(cache=True)
def recentre_blocks(blocks, block_starts, starts, total):
    """Move Gram blocks from the shift to the mean, in place."""
    for l in range(starts.size - 1):
        if block_starts[l + 1] == block_starts[l]:
            continue
        size, left, at = starts[l + 1] - starts[l], starts[l], block_starts[l]
        for i in range(size):
            for j in range(size):
                blocks[at + i * size + j] -= total[left + i] * total[left + j]


@njit(cache=True)
def gather_columns(X, columns, by_column, out):
    """Copy some columns of X."""
    if by_column:
        for j in range(columns.size):
            for i in range(X.shape[0]):
                out[i, j] = X[i, columns[j]]
    else:
        for i in range(X.shape[0]):
            row, into = X[i], out[i]
            for j in range(columns.size):
                into[j] = row[columns[j]]


@njit(cache=True)
def sparse_moments(
    indptr, indices, data, members, starts, block_starts, centre, scale, q, y, n_used, total_y,
    mean, variance, cross, blocks, deviations, stamps,
):  # fmt: skip
    """Moments of a CSC matrix from its stored values alone; columns enter times `scale`.

    Products of two columns are summed over the rows where both are stored, as deviations from their means, and
    completed by what rows with a zero on either side contribute: no digits are lost to a mean, and a column that is
    constant, stored in every one of the `n_used` rows of positive weight, has exactly no variance. ``deviations`` and
    ``stamps`` have one entry per row; stamps are -1.
    """
    p = members.size
    weight, sums, filled = np.zeros(p), np.zeros(p), np.zeros(p, np.int64)
    for j in range(p):
        a, b = indptr[members[j]], indptr[members[j] + 1]
        s, m, m2 = scale[j], 0.0, 0.0
        for i in range(a, b):
            r = indices[i]
            m += q[r] * (data[i] * s)
            if q[r] > 0:
                weight[j] += q[r]
                filled[j] += 1
        if centre and filled[j] == n_used:
            # around the first value the mean of equal ones is exact
            first = 0.0
            for i in range(a, b):
                if q[indices[i]] > 0:
                    first = data[i] * s
                    break
            for i in range(a, b):
                m2 += q[indices[i]] * (data[i] * s - first)
            m = first + m2
        if not centre:
            m = 0.0
        mean[j] = m
        gap = 0.0 if filled[j] == n_used else max(1.0 - weight[j], 0.0)
        stored_y = 0.0
        for i in range(a, b):
            r = indices[i]
            d = data[i] * s - m
            sums[j] += q[r] * d
            variance[j] += q[r] * d * d
            cross[j] += q[r] * d * y[r]
            stored_y += q[r] * y[r]
        variance[j] += gap * m * m
        if filled[j] < n_used:
            cross[j] -= m * (total_y - stored_y)
    for l in range(starts.size - 1):
        if block_starts[l + 1] == block_starts[l]:
            continue
        size, at = starts[l + 1] - starts[l], block_starts[l]
        for u in range(size):
            j = starts[l] + u
            blocks[at + u * size + u] = variance[j]
            for i in range(indptr[members[j]], indptr[members[j] + 1]):
                deviations[indices[i]] = data[i] * scale[j] - mean[j]
                stamps[indices[i]] = j
            for v in range(u + 1, size):
                k = starts[l] + v
                both, own, other, shared, count = 0.0, 0.0, 0.0, 0.0, 0
                for i in range(indptr[members[k]], indptr[members[k] + 1]):
                    r = indices[i]
                    if stamps[r] == j and q[r] > 0:
                        d = data[i] * scale[k] - mean[k]
                        both += q[r] * deviations[r] * d
                        own += q[r] * deviations[r]
                        other += q[r] * d
                        shared += q[r]
                        count += 1
                neither = 0.0
                if filled[j] + filled[k] - count < n_used:
                    neither = max(1.0 - weight[j] - weight[k] + shared, 0.0)
                value = both - mean[k] * (sums[j] - own) - mean[j] * (sums[k] - other) + neither * mean[j] * mean[k]
                blocks[at + u * size + v] = value
                blocks[at + v * size + u] = value


@njit(cache=True)
def sparse_correlate(indptr, indices, data, R, out):
    """``out = R' X`` for a CSC matrix X and R of shape (n, k); sums are kept in double precision."""
    k = R.shape[1]
    sums = np.empty(k)
    for j in range(indptr.size - 1):
        sums[:] = 0.0
        for i in range(indptr[j], indptr[j + 1]):
            x, row = data[i], R[indices[i]]
            for t in range(k):
                sums[t] += x * row[t]
        for t in range(k):
            out[t, j] = sums[t]
