"""Compiled loops over sparse columns and packed genotypes; imported only where X has these."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit


@njit(cache=True)
def sparse_moments(
    indptr, indices, data, members, starts, block_starts, centre, scale, q, y, n_used, total_y,
    mean, variance, cross, blocks, deviations, stamps,
):  # fmt: skip
    """Moments of a CSC matrix from its stored values alone, with columns multiplied by `scale`.

    Products of two columns are summed over the rows where both are stored, as deviations from their means; the
    contribution of rows with a zero on either side is then added. No digits are lost to means, and a constant column
    that is stored in all `n_used` rows of positive weight has a variance of exactly zero. ``deviations`` and ``stamps``
    are work arrays with one entry per row; stamps must be -1.
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
            # relative to the first value, the mean of equal values is exact
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
                both, left, right, shared, count = 0.0, 0.0, 0.0, 0.0, 0
                for i in range(indptr[members[k]], indptr[members[k] + 1]):
                    r = indices[i]
                    if stamps[r] == j and q[r] > 0:
                        d = data[i] * scale[k] - mean[k]
                        both += q[r] * deviations[r] * d
                        left += q[r] * deviations[r]
                        right += q[r] * d
                        shared += q[r]
                        count += 1
                neither = 0.0
                if filled[j] + filled[k] - count < n_used:
                    neither = max(1.0 - weight[j] - weight[k] + shared, 0.0)
                value = both - mean[k] * (sums[j] - left) - mean[j] * (sums[k] - right) + neither * mean[j] * mean[k]
                blocks[at + u * size + v] = value
                blocks[at + v * size + u] = value


@njit(cache=True, nogil=True)
def decode(packed, values, byte, shift, out):
    """Write ``values[c, code]`` to ``out[c, i]``, where the code of sample i has two bits of ``packed[c, byte[i]]``."""
    for c in range(packed.shape[0]):
        line, value, target = packed[c], values[c], out[c]
        for i in range(byte.size):
            target[i] = value[(line[byte[i]] >> shift[i]) & 3]


@njit(cache=True, nogil=True)
def count_codes(packed, rows, n):
    """How many of the samples have each of the four codes, per variant; shape (n_variants, 4).

    `rows` are the samples in the file, or empty for the first n of them.
    """
    counts = np.zeros((packed.shape[0], 4), np.int64)
    for v in range(packed.shape[0]):
        line = packed[v]
        if rows.size:
            for row in rows:
                counts[v, (line[row >> 2] >> (2 * (row & 3))) & 3] += 1
            continue
        bytes_seen = np.zeros(256, np.int64)
        for b in range(n >> 2):
            bytes_seen[line[b]] += 1
        for byte in range(256):
            for place in range(4):
                counts[v, (byte >> (2 * place)) & 3] += bytes_seen[byte]
        for i in range(n - n % 4, n):
            counts[v, (line[i >> 2] >> (2 * (i & 3))) & 3] += 1
    return counts
