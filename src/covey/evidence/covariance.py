"""An estimate of the rows' covariance, for columns that are orthonormal within groups."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from covey.evidence.columns import Columns
from covey.evidence.overlap import chance_correlation
from covey.layout import offsets
from covey.validation import FloatArray

__all__ = ["estimated_covariance"]

# The expected number of unrelated pairs of groups that pass as correlated.
BY_CHANCE = 0.1

# The least eigenvalue allowed after removing common factors; if it is lower, all correlations are shrunk. A larger
# value gives copies more power, but they lose correlations that they must have.
LEAST = 0.05

# Factors are counted as in `covey.designs.count_factors`, but on all columns, because groups are orthonormal here.
MOST_FACTORS, COLUMNS_PER_FACTOR, LEAST_RATIO = 10, 8, 3.0

# A direction of a group is fully explained by the factors if they leave less than this of it.
NOTHING_LEFT = 1e-10


def estimated_covariance(columns: Columns) -> FloatArray:
    r"""A covariance with common factors and those canonical correlations between groups that exceed chance.

    Shrinking all correlations alike, as Ledoit and Wolf do, improves the many that are noise at the cost of the few
    that are not. Copies must have those, or neighbours of true groups would be selected. Therefore each pair of groups
    is shrunk separately.
    """
    ranks, weighted = columns.ranks, columns.weighted
    starts = offsets(ranks)
    n = 1 / float((columns.q * columns.q).sum())
    scores, values, _ = np.linalg.svd(weighted, full_matrices=False)
    k = _n_factors(values**2)
    if k == 0:
        return _between(columns.covariance, ranks, n)
    effects = scores[:, :k].T @ weighted
    left = weighted - scores[:, :k] @ effects
    # orthonormalise what the factors leave of each group, and keep the inverse map
    roots, inverses = np.zeros((2, starts[-1], starts[-1]))
    for a, b in pairwise(starts):
        values, vectors = np.linalg.eigh(left[:, a:b].T @ left[:, a:b])
        values = np.maximum(values, NOTHING_LEFT)
        roots[a:b, a:b] = (vectors * np.sqrt(values)) @ vectors.T
        inverses[a:b, a:b] = (vectors / np.sqrt(values)) @ vectors.T
    orthonormal = left @ inverses
    return np.asarray(effects.T @ effects + roots @ _between(orthonormal.T @ orthonormal, ranks, n - k) @ roots)


def _n_factors(values: FloatArray) -> int:
    """The number of eigenvalues that stand out: those before the largest ratio of one to the next."""
    most = min(MOST_FACTORS, values.size // COLUMNS_PER_FACTOR)
    if most < 1:
        return 0
    ratios = values[:most] / np.maximum(values[1 : most + 1], NOTHING_LEFT)
    return int(np.argmax(ratios)) + 1 if ratios.max() >= LEAST_RATIO else 0


def _between(covariance: FloatArray, ranks: NDArray[np.intp], n: float) -> FloatArray:
    """Identity blocks, and the correlations between groups that stand out from the noise of n rows."""
    starts = offsets(ranks)
    norms = np.add.reduceat(np.add.reduceat(covariance**2, starts[:-1], axis=0), starts[:-1], axis=1)
    n_pairs = max(ranks.size * (ranks.size - 1) / 2, 1)
    # n times the squared norm of a block is about chi-squared for unrelated groups
    strong = np.triu(n * norms > chdtri(np.outer(ranks, ranks), min(BY_CHANCE / n_pairs, 0.5)), 1)
    between = np.zeros_like(covariance)
    for l, m in np.argwhere(strong):
        one, other = slice(starts[l], starts[l + 1]), slice(starts[m], starts[m + 1])
        u, correlations, v = np.linalg.svd(covariance[one, other], full_matrices=False)
        correlations[correlations < chance_correlation(int(ranks[l]), int(ranks[m]), n)] = 0.0
        between[one, other] = (u * correlations) @ v
        between[other, one] = between[one, other].T
    lowest = -float(np.linalg.eigvalsh(between)[0])
    return np.asarray(np.eye(len(between)) + (min(1.0, (1 - LEAST) / lowest) if lowest > 0 else 1.0) * between)
