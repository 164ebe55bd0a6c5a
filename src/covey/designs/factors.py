"""Common factors of the columns: a few scores per row that most columns share.

Where all columns move together (equicorrelation, batch effects, population structure), every group is correlated with
the response through the factor alone, and groups wake up in the wrong order. So the factors are in the model while the
order of the groups is found (`covey.limit.posed`).

The scores are a linear function of some columns, ``F = (X[:, columns] - means) loadings``, so that they are known for
any rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from covey.designs.protocol import Design
from covey.validation import FloatArray

__all__ = ["Factors", "count_factors", "find_factors"]

Array = NDArray[Any]

# How many columns the scores are made of, and their number is decided on; fewer where there are very many rows. Scores
# of 500 columns miss a share (1 - rho) / (500 rho) of a factor with correlation rho, and more would cost more than X.
SCORE_COLUMNS = 500
COUNT_COLUMNS = 250
MOST_NUMBERS = 2**26

# Factors stand out where an eigenvalue is at least so many times the next; see docs/decisions/0012-factors.md.
LEAST_RATIO = 3.0
# Each factor needs so many columns (and rows) to be told from correlation among neighbours.
COLUMNS_PER_FACTOR = 8

# Standard deviations beyond these are left to the columns themselves: their loadings would leave the range of float64.
SMALLEST, LARGEST = 1e-150, 1e150
# Directions of the columns below this share of the strongest are rounding.
SMALLEST_SHARE = 1e-10
# Eigenvectors of a large matrix are looked for among so many powers of it, times so many vectors more than are wanted.
KRYLOV_STEPS, SPARE = 8, 5
EXACT = 1e-12


@dataclass(frozen=True)
class Factors:
    """Scores of rows, and what they explain of every column.

    With the row weights q that they were found with, ``F' diag(q) F = I`` and, with an intercept, ``q' F = 0``.

    Attributes
    ----------
    columns : ndarray of int, shape (m,)
        The columns that the scores are made of.
    means : ndarray, shape (m,)
        Their weighted means; zeros without an intercept.
    loadings : ndarray, shape (m, k)
        The scores are ``F = (X[:, columns] - means) loadings``.
    effects : ndarray, shape (k, p)
        ``A = F' diag(q) X``, the least squares coefficients of every column on the scores.
    """

    columns: NDArray[np.intp]
    means: FloatArray
    loadings: FloatArray
    effects: FloatArray

    @property
    def n_factors(self) -> int:
        """How many there are; zero where X does not vary."""
        return int(self.loadings.shape[1])

    def scores(self, design: Design) -> FloatArray:
        """``F`` for the rows of a design with the same columns; shape (n, k)."""
        if design.shape[1] != self.effects.shape[1]:
            raise ValueError(
                f"The factors were found in {self.effects.shape[1]} columns, and {design.name} has {design.shape[1]}."
            )
        return (np.asarray(design.take(self.columns)) - self.means) @ self.loadings


def find_factors(design: Design, q: ArrayLike, k: int, *, fit_intercept: bool = True) -> Factors:
    """The first k principal components of some columns of unit variance, and their effect on all columns.

    Reads at most 500 columns, evenly spread, and then X once. There are fewer than k factors where the columns have
    fewer directions.

    >>> from covey.designs import as_design
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 1)) + rng.standard_normal((100, 300))
    >>> factors = find_factors(as_design(X), np.full(100, 0.01), 1)
    >>> factors.loadings.shape, factors.effects.shape
    ((300, 1), (1, 300))
    """
    q = np.asarray(q, dtype=np.float64)
    n, p = design.shape
    if k < 1:
        raise ValueError(f"factors must be at least 1 to be found, not {k}.")
    columns, means, deviations, Z = _standard_columns(design, q, _spread(p, SCORE_COLUMNS, n), fit_intercept)
    directions = _leading(Z, k)
    # the scores of the training rows times sqrt(q); QR, as eigenvectors are orthogonal to the eigenvalues' ratio only
    weighted = Z @ directions
    back = np.linalg.inv(np.asarray(np.linalg.qr(weighted, mode="r")))
    loadings = directions @ back / deviations[:, None]
    effects = np.asarray(design.correlate((weighted @ back).T * np.sqrt(q)), dtype=np.float64)
    design.refuse(np.flatnonzero(~np.isfinite(effects).all(axis=0)))
    return Factors(columns, means, loadings, effects)


def count_factors(
    design: Design, q: ArrayLike, members: Array, starts: Array, *, most: int = 5, fit_intercept: bool = True
) -> int:
    """How many factors stand out, from at most 250 columns of different groups; zero where none does.

    The number k is that of the largest ratio of the k-th eigenvalue of the correlation matrix to the next one, if
    that ratio is at least 3. Columns of one group may be as correlated as they like: one column a group is read.

    Parameters
    ----------
    design : Design
    q : array-like, shape (n,)
        Row weights that add up to one.
    members, starts : ndarray
        Group l has the columns ``members[starts[l]:starts[l + 1]]``.
    most : int
        The largest number of factors to look for.
    fit_intercept : bool
        Centre the columns.
    """
    q = np.asarray(q, dtype=np.float64)
    chosen = _one_per_group(members, starts, _limit(COUNT_COLUMNS, design.shape[0]))
    _, _, _, Z = _standard_columns(design, q, chosen, fit_intercept)
    # a row of twice the weight is the row twice
    rows, columns = round(1 / float(q[q > 0].min())) - fit_intercept, Z.shape[1]
    most = min(most, rows // COLUMNS_PER_FACTOR, columns // COLUMNS_PER_FACTOR)
    if most < 1:
        return 0
    G = _gram(Z)
    values = scipy.linalg.eigvalsh(G, subset_by_index=[len(G) - most - 1, len(G) - 1])[::-1]
    # beyond the rank of X there is rounding only
    values = np.maximum(values, SMALLEST_SHARE * values[0])
    ratios = values[:-1] / values[1:]
    k = int(np.argmax(ratios)) + 1
    return k if ratios[k - 1] >= LEAST_RATIO else 0


def _limit(most: int, n: int) -> int:
    """So many columns of n rows may be held."""
    return max(2 * COLUMNS_PER_FACTOR, min(most, MOST_NUMBERS // max(n, 1)))


def _spread(size: int, most: int, n: int) -> NDArray[np.intp]:
    """Positions evenly spread over all of them."""
    return np.unique(np.linspace(0, size - 1, min(size, _limit(most, n))).astype(np.intp))


def _one_per_group(members: Array, starts: Array, most: int) -> NDArray[np.intp]:
    """A column from each of evenly spread groups; from first to last within the groups as they go by."""
    filled = np.flatnonzero(np.diff(starts) > 0)
    groups = filled[np.unique(np.linspace(0, filled.size - 1, min(filled.size, most)).astype(np.intp))]
    sizes = np.diff(starts)[groups]
    within = np.arange(groups.size) * sizes // max(groups.size, 1)
    return np.asarray(members)[starts[groups] + within]


def _standard_columns(
    design: Design, q: FloatArray, columns: NDArray[np.intp], centre: bool
) -> tuple[NDArray[np.intp], FloatArray, FloatArray, FloatArray]:
    """Those of some columns that vary, their means and deviations, and ``sqrt(q) (X - mean) / deviation``."""
    X = np.asarray(design.take(columns), dtype=np.float64)
    top = np.maximum(X.max(axis=0), -X.min(axis=0))
    design.refuse(columns[~np.isfinite(top)])
    usual = (top > SMALLEST) & (top < LARGEST)
    if not usual.all():
        columns, X = columns[usual], X[:, usual]
    # relative to a row of X, so that a constant column gives exact zeros
    shift = X[int(np.argmax(q))].copy() if centre else np.zeros(columns.size)
    Z = X - shift
    means = shift
    if centre:
        rest = q @ Z
        means = shift + rest
        Z -= rest
    Z *= np.sqrt(q)[:, None]
    deviations = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    varies = deviations > np.maximum(8 * np.finfo(float).eps * np.abs(means), SMALLEST)
    if not varies.all():
        columns, means, deviations, Z = columns[varies], means[varies], deviations[varies], Z[:, varies]
    Z /= deviations
    return columns, means, deviations, Z


def _gram(Z: FloatArray) -> FloatArray:
    """The smaller one of ``Z Z'`` and ``Z'Z``, which have the same eigenvalues."""
    return Z @ Z.T if Z.shape[0] < Z.shape[1] else Z.T @ Z


def _leading(Z: FloatArray, k: int) -> FloatArray:
    """The k leading right singular vectors of Z over their singular values, as columns; fewer for a lower rank."""
    G = _gram(Z)
    side = len(G)
    if side == 0:
        return np.zeros((Z.shape[1], 0))
    found = _standing_out(G, k) if side >= 2 * (k + SPARE) * (KRYLOV_STEPS + 1) else None
    values, vectors = found or scipy.linalg.eigh(G, subset_by_index=[max(0, side - k), side - 1])
    kept = values > SMALLEST_SHARE * values.max()
    values, vectors = values[kept], vectors[:, kept]
    return (Z.T @ vectors) / values if Z.shape[0] < Z.shape[1] else vectors / np.sqrt(values)


def _standing_out(G: FloatArray, k: int) -> tuple[FloatArray, FloatArray] | None:
    """The k leading eigenvalues and eigenvectors of G from a block Krylov space; None where they do not stand out."""
    basis = last = np.linalg.qr(G @ np.random.default_rng(0).standard_normal((len(G), k + SPARE)))[0]
    for _ in range(KRYLOV_STEPS):
        last = G @ last
        for _ in range(2):
            last -= basis @ (basis.T @ last)
            last = np.linalg.qr(last)[0]
        basis = np.hstack([basis, last])
    image = G @ basis
    width = basis.shape[1]
    values, inside = scipy.linalg.eigh(basis.T @ image, subset_by_index=[width - k, width - 1])
    vectors = basis @ inside
    residual = np.abs(image @ inside - vectors * values).max()
    return (values, vectors) if residual <= EXACT * values[-1] else None
