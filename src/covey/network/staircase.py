"""The records of a path on the user's scale: each has the groups of the previous one, and perhaps more."""

from __future__ import annotations

from covey.compiling import njit


@njit(cache=True)
def models_to_user(factors, shapes, means, counts, rows, row_starts, y_scale, y_mean, coefs, coef_starts, intercepts):
    """``coef_l = T_l w_l y_scale``, group by group, for several models; and their intercepts.

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
