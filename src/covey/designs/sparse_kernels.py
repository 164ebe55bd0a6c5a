"""The compiled pass over sparse columns for their moments; imported only for a sparse X."""

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
