"""Common factors of the columns: a few scores per row that most columns share.

If all columns move together (equicorrelation, batch effects, population structure), every group is correlated with the
response through the common factor alone, and groups wake up in the wrong order. Therefore the factors are in the model
while the order of the groups is determined (`covey.search.problem`).

The scores are a linear function of some columns, ``F = (X[:, columns] - means) loadings``, so they can be computed for
any rows. They follow from the correlation matrix of these columns, which takes one pass over any kind of storage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.designs.protocol import Design
from covey.designs.rows import count_rows
from covey.validation import Array, FloatArray

__all__ = ["Factors", "count_factors", "find_factors"]

# How many columns the scores are computed from, and how many are used to count the factors; fewer with very many rows.
# Scores from 500 columns miss a share (1 - rho) / (500 rho) of a factor with correlation rho.
SCORE_COLUMNS = 500
COUNT_COLUMNS = 250
MOST_NUMBERS = 2**26

# Factors stand out if an eigenvalue is at least this many times the next; see docs/decisions/0012-factors.md.
LEAST_RATIO = 3.0
# The number of columns (and rows) per factor needed to distinguish it from correlation among neighbours.
COLUMNS_PER_FACTOR = 8

# Columns with standard deviations outside these limits are not used: their loadings would overflow or underflow.
SMALLEST, LARGEST = 1e-150, 1e150
# Directions below this share of the strongest are round-off error.
SMALLEST_SHARE = 1e-10
# Ratios of eigenvalues this close are equal.
TIE = 1e-9


@dataclass(frozen=True)
class Factors:
    """Common factors, as scores of rows.

    For the row weights q used to compute them, ``F' diag(q) F = I`` and, with an intercept, ``q' F = 0``.

    Attributes
    ----------
    columns : ndarray of int, shape (m,)
        The columns that the scores are computed from.
    means : ndarray, shape (m,)
        Their weighted means; zeros without an intercept.
    loadings : ndarray, shape (m, k)
        The scores are ``F = (X[:, columns] - means) loadings``.
    n_columns : int
        The number of columns of the design.
    """

    columns: NDArray[np.intp]
    means: FloatArray
    loadings: FloatArray
    n_columns: int

    @property
    def n_factors(self) -> int:
        """The number of factors; zero if X is constant."""
        return int(self.loadings.shape[1])

    def scores(self, design: Design) -> FloatArray:
        """``F`` for the rows of a design with the same columns; shape (n, k)."""
        if design.shape[1] != self.n_columns:
            raise ValueError(
                f"The factors were computed from {self.n_columns} columns, but {design.name} has {design.shape[1]}."
            )
        if not design.reads_columns:
            return design.predict(self.columns, self.loadings.T, -self.means @ self.loadings)
        return (design.take(self.columns) - self.means) @ self.loadings


def find_factors(
    design: Design, q: FloatArray, k: int, *, fit_intercept: bool = True, means: FloatArray | None = None
) -> Factors:
    """The first k principal components of some columns of unit variance.

    Reads at most 500 evenly spaced columns. There are fewer than k factors if the columns have a lower rank.

    Parameters
    ----------
    design : Design
    q : row vector
        Row weights that add up to one.
    k : int
    fit_intercept : bool
        Centre the columns.
    means : ndarray, shape (p,), optional
        The weighted means of all columns, if known; otherwise X is read for them.

    >>> from covey.designs import as_design
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 1)) + rng.standard_normal((100, 300))
    >>> factors = find_factors(as_design(X), np.full(100, 0.01), 1)
    >>> factors.loadings.shape
    (300, 1)
    """
    n, p = design.shape
    if k < 1:
        raise ValueError(f"factors must be at least 1 here, not {k}.")
    evenly = np.unique(np.linspace(0, p - 1, min(p, _limit(SCORE_COLUMNS, n))).astype(np.intp))
    columns, centres, deviations, C = _correlations(design, q, evenly, fit_intercept, means)
    directions = _leading(C, k)
    # eigenvectors are orthogonal only up to the ratio of the eigenvalues
    root = np.linalg.cholesky(directions.T @ C @ directions) if directions.size else np.eye(directions.shape[1])
    loadings = np.linalg.solve(root, directions.T).T / deviations[:, None]
    return Factors(columns, centres, loadings, p)


def count_factors(
    design: Design,
    q: FloatArray,
    members: Array,
    starts: Array,
    *,
    most: int = 5,
    fit_intercept: bool = True,
    means: FloatArray | None = None,
) -> int:
    """The number of factors that stand out, from at most 250 columns of different groups; zero if none does.

    It is the k with the largest ratio of the k-th eigenvalue of the correlation matrix to the next one, if that ratio
    is at least 3. Columns of one group may be strongly correlated, so only one column per group is read.

    Parameters
    ----------
    design : Design
    q : row vector
        Row weights that add up to one.
    members, starts : ndarray
        Group l has the columns ``members[starts[l]:starts[l + 1]]``.
    most : int
        The largest number of factors to look for.
    fit_intercept, means
        As in `find_factors`.
    """
    chosen = _one_per_group(members, starts, _limit(COUNT_COLUMNS, design.shape[0]))
    # a row of weight two counts as two rows
    rows = round(count_rows(q)) - fit_intercept
    if min(rows, chosen.size) < COLUMNS_PER_FACTOR:
        return 0
    _, _, _, C = _correlations(design, q, chosen, fit_intercept, means)
    most = min(most, rows // COLUMNS_PER_FACTOR, len(C) // COLUMNS_PER_FACTOR)
    if most < 1:
        return 0
    values = np.linalg.eigvalsh(C)[::-1][: most + 1]
    # eigenvalues beyond the rank of X are round-off error
    values = np.maximum(values, SMALLEST_SHARE * values[0])
    ratios = values[:-1] / values[1:]
    k = int(np.argmax(ratios >= ratios.max() * (1 - TIE))) + 1
    return k if ratios[k - 1] >= LEAST_RATIO else 0


def _limit(most: int, n: int) -> int:
    """The number of columns of n rows that may be held in memory."""
    return max(2 * COLUMNS_PER_FACTOR, min(most, MOST_NUMBERS // max(n, 1)))


def _one_per_group(members: Array, starts: Array, most: int) -> NDArray[np.intp]:
    """One column from each of evenly spaced groups; its place within the group moves from first to last."""
    filled = np.flatnonzero(np.diff(starts) > 0)
    groups = filled[np.unique(np.linspace(0, filled.size - 1, min(filled.size, most)).astype(np.intp))]
    sizes = np.diff(starts)[groups]
    within = np.arange(groups.size) * sizes // max(groups.size, 1)
    return np.asarray(members)[starts[groups] + within]


def _correlations(
    design: Design, q: FloatArray, columns: NDArray[np.intp], centre: bool, means: FloatArray | None
) -> tuple[NDArray[np.intp], FloatArray, FloatArray, FloatArray]:
    """The non-constant ones among some columns, their means and deviations, and their correlation matrix."""
    shift: FloatArray = np.zeros(columns.size)
    with np.errstate(over="ignore", invalid="ignore"):
        if centre:
            shift = design.gram_parts(columns, shift, q, [q])[0][0, 1:-1] if means is None else means[columns]
            shift = np.where(np.isfinite(shift), shift, 0.0)
        gram = design.gram_parts(columns, shift, q, [q])[0]
        rest = gram[0, 1:-1] if centre else np.zeros(columns.size)
        G = gram[1:-1, 1:-1] - np.outer(rest, rest)
        squares = np.diag(gram)[1:-1]
    design.refuse(columns[~np.isfinite(squares)], overflow=False)
    centres, deviations = shift + rest, np.sqrt(np.maximum(np.diag(G), 0.0))
    varies = np.isfinite(squares) & (squares < LARGEST**2)
    varies[varies] = deviations[varies] > np.maximum(8 * np.finfo(float).eps * np.abs(centres[varies]), SMALLEST)
    deviations = deviations[varies]
    C = G[np.ix_(varies, varies)] / deviations / deviations[:, None]
    return columns[varies], centres[varies], deviations, C


def _leading(C: FloatArray, k: int) -> FloatArray:
    """The k leading eigenvectors of C divided by the roots of their eigenvalues, as columns; fewer for a lower rank."""
    side = len(C)
    if side == 0:
        return np.zeros((0, 0))
    # all of them: a routine for some fails where eigenvalues are repeated, as those of one-hot columns are
    values, vectors = (part[..., max(0, side - k) :] for part in np.linalg.eigh(C))
    strong = values > SMALLEST_SHARE * values.max()
    return np.asarray(vectors[:, strong] / np.sqrt(values[strong]))
