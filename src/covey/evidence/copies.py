r"""Knockoff copies of groups of columns.

Columns are orthonormal within each group, so their covariance :math:`\Sigma` has identity blocks and nothing depends on
the units of columns. Copies have the same covariance among themselves and with every column, except that it is
:math:`\Sigma - S` between a group and its copy. S has one block per group, with :math:`0 \preceq S \preceq
2 \Sigma`. The larger S is, the less a copy resembles its group, and the more power there is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from covey.evidence.columns import Columns
from covey.evidence.overlap import chance_correlation
from covey.layout import offsets
from covey.validation import FloatArray

__all__ = ["CONSTRUCTIONS", "Construction", "Copier", "equicorrelated", "estimated_covariance", "maximum_entropy"]

Construction = Literal["entropy", "equicorrelated", "semidefinite"]

# If an eigenvalue is below this, groups explain each other and copies would be the columns themselves.
DEPENDENT = 1e-8

# The largest number of sweeps over the groups, and the largest change of an entry in the last one.
SWEEPS, SETTLED = 50, 1e-3

# The expected number of unrelated pairs of groups that pass as correlated.
BY_CHANCE = 0.1

# The least eigenvalue allowed after removing common factors; if it is lower, all correlations are shrunk. A larger
# value gives copies more power, but they lose correlations that they must have.
LEAST = 0.05

# Factors are counted as in `covey.designs.count_factors`, but on all columns, because groups are orthonormal here.
MOST_FACTORS, COLUMNS_PER_FACTOR, LEAST_RATIO = 10, 8, 3.0

# A direction of a group is fully explained by the factors if they leave less than this of it.
NOTHING_LEFT = 1e-10


class Copier:
    """Draws knockoff copies: with exactly the required inner products if `fixed`, else for normal rows.

    `distance` is the mean of the diagonal of S: 1 if copies are unrelated to their groups, 0 if they are identical.
    """

    def __init__(self, columns: Columns, *, fixed: bool, construction: Construction = "entropy") -> None:
        self.columns, self.fixed = columns, fixed
        covariance = columns.covariance if fixed else estimated_covariance(columns)
        values, vectors = np.linalg.eigh(covariance)
        if values[0] < DEPENDENT:
            raise ValueError(
                "Some groups' columns are linear combinations of other groups' columns, so fixed-X knockoffs would be "
                "the columns themselves: use kind='gaussian', or leave such groups out."
            )
        S = CONSTRUCTIONS[construction](covariance, columns.ranks)
        inverse = (vectors / values) @ vectors.T
        self._root = _root(2 * S - S @ inverse @ S)
        self._share_of_columns = np.eye(len(S)) - inverse @ S
        self.distance = float(np.diag(S).mean())

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Copies of all columns; shape (n, r)."""
        columns, noise = self.columns, rng.standard_normal(self.columns.Z.shape)
        if self.fixed:
            # orthonormal columns that are orthogonal to all existing ones
            root = np.sqrt(columns.q)[:, None]
            ones = np.ones((len(noise), int(columns.intercept)))
            basis = np.linalg.qr(np.hstack([ones, columns.held, columns.Z]) * root)[0]
            for _ in range(2):
                noise -= basis @ (basis.T @ noise)
            noise = np.linalg.qr(noise)[0] / root
        return np.asarray(columns.Z @ self._share_of_columns + noise @ self._root)


def equicorrelated(covariance: FloatArray, ranks: NDArray[np.intp]) -> FloatArray:
    r""":math:`S = \gamma I` with :math:`\gamma = \min(1, 2 \lambda_{\min}(\Sigma))` (Dai and Barber, 2016)."""
    return min(1.0, 2 * float(np.linalg.eigvalsh(covariance)[0])) * np.eye(len(covariance))


def maximum_entropy(covariance: FloatArray, ranks: NDArray[np.intp]) -> FloatArray:
    r"""The blocks that maximise :math:`\log\det(2 \Sigma - S) + \log\det S` (Gimenez and Zou, 2019).

    Given all other blocks, the best one is half of what they leave of :math:`2 \Sigma` there, in closed form, so sweeps
    over the groups need no step size.
    """
    starts = offsets(ranks)
    S = 0.5 * equicorrelated(covariance, ranks)
    for _ in range(SWEEPS):
        M, before = np.linalg.inv(2 * covariance - S), S.copy()
        for a, b in pairwise(starts):
            change = (np.linalg.inv(M[a:b, a:b]) - S[a:b, a:b]) / 2
            S[a:b, a:b] += change
            # update the inverse for the changed block, without factorising all of it again
            side = M[:, a:b].copy()
            M += side @ np.linalg.solve(np.eye(b - a) - change @ side[a:b], change @ side.T)
        if np.abs(S - before).max() < SETTLED:
            break
    return (S + S.T) / 2


def _semidefinite(covariance: FloatArray, ranks: NDArray[np.intp]) -> FloatArray:
    """The S closest to the covariance's blocks, computed by knockpy."""
    try:
        from knockpy.smatrix import compute_smatrix
    except ImportError:
        raise ValueError(
            "construction='semidefinite' needs knockpy: pip install knockpy, or use construction='entropy'."
        ) from None
    labels = np.repeat(np.arange(1, ranks.size + 1), ranks)
    S: Any = compute_smatrix(covariance, groups=labels, method="sdp")
    return np.asarray((S + S.T) / 2)


CONSTRUCTIONS = {"entropy": maximum_entropy, "equicorrelated": equicorrelated, "semidefinite": _semidefinite}


def _root(matrix: FloatArray) -> FloatArray:
    """A symmetric square root; eigenvalues below zero are round-off errors and count as zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


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
