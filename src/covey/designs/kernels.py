"""The one pass over a dense X: means, correlations and group Gram blocks together."""

from __future__ import annotations

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
