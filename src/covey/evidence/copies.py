r"""The columns of all groups, and knockoff copies of them.

Columns are orthonormal within each group and orthogonal to groups that are always in the model, so their covariance
:math:`\Sigma` has identity blocks and nothing depends on the units of columns. Copies have the same covariance among
themselves and with every column, except that it is :math:`\Sigma - S` between a group and its copy. S has one block per
group, with :math:`0 \preceq S \preceq 2 \Sigma`. The larger S is, the less a copy resembles its group, and the more
power there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from covey.designs.row_blocks import RowBlocks
from covey.evidence.overlap import chance_correlation
from covey.groups import Groups
from covey.layout import offsets, spans
from covey.preprocess import prepare
from covey.progress import tell
from covey.search.problem import Problem
from covey.validation import FloatArray

# If the columns that are always in the model leave less than this of another column, relative to it, the rest is
# round-off error.
LEFT_BY_HELD = 1e-7

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

# The folds and the candidates by which the share of the rows' covariance in its estimate is chosen.
FOLDS, SHARES = 5, np.arange(20) / 20

# Eigenvalues of this size below zero are round-off errors.
ROUNDING = 1e-8

# A direction of a group is fully explained by the factors if they leave less than this of it.
NOTHING_LEFT = 1e-10


@dataclass(frozen=True)
class Columns:
    """Columns Z, group by group, with ``Z_l' diag(q) Z_l = I`` for each group and row weights q that add up to one.

    `held` are the columns of groups that are in every model, orthonormal and orthogonal to Z. With `intercept`, all are
    orthogonal to a column of ones.
    """

    Z: FloatArray
    ranks: NDArray[np.intp]
    q: FloatArray
    held: FloatArray
    intercept: bool

    @cached_property
    def weighted(self) -> FloatArray:
        """Z with every row times the root of its weight."""
        return self.Z * np.sqrt(self.q)[:, None]

    @cached_property
    def covariance(self) -> FloatArray:
        """``Z' diag(q) Z``."""
        return np.asarray(self.weighted.T @ self.weighted)


def read_columns(problem: Problem) -> tuple[Columns, NDArray[np.intp]]:
    """The columns of a problem on the rows of positive weight, and the positions of their groups, which all vary."""
    design, groups, intercept = problem.design, problem.groups, problem.options["fit_intercept"]
    if isinstance(design, RowBlocks):
        raise ValueError(
            f"Knockoffs need the columns of {design.name} in memory, but {type(design).__name__} only streams them: "
            "read them into an array first."
        )
    rows = problem.weight > 0
    X, weight = design.take(groups.members)[rows], problem.weight[rows]
    design.refuse(groups.members[~np.isfinite(X).all(axis=0)])
    q = weight / weight.sum()
    always = np.array(sorted(problem.always), dtype=np.intp)
    free = np.setdiff1d(np.arange(groups.n_groups), always)
    held: FloatArray = np.empty((len(X), 0))
    candidates = X[:, spans(groups.starts, free)]
    if always.size:
        held = _orthonormal(X[:, spans(groups.starts, always)], None, weight, intercept)[0]
        largest = np.abs(candidates).max(axis=0, initial=0.0)
        candidates = candidates / np.where(largest > 0, largest, 1.0)
        candidates = candidates - q @ candidates if intercept else candidates
        left = candidates - held @ (held.T @ (q[:, None] * candidates))
        left[:, q @ left**2 <= LEFT_BY_HELD**2 * (q @ candidates**2)] = 0.0
        candidates = left
    Z, ranks = _orthonormal(candidates, groups.sizes[free], weight, intercept)
    return Columns(Z, ranks[ranks > 0], q, held, intercept), free[ranks > 0]


def _orthonormal(
    X: FloatArray, sizes: NDArray[np.intp] | None, weight: FloatArray, intercept: bool
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Columns orthonormal within groups of these sizes (None: one group), and the rank of each group."""
    groups = Groups.from_sizes([X.shape[1]] if sizes is None else sizes)
    # the weights serve as a dummy response: nothing here depends on it
    problem, _ = prepare(X, weight, groups, fit_intercept=intercept, sample_weight=weight)
    return problem.working_columns(np.flatnonzero(problem.ranks > 0)), problem.ranks


class Copier:
    """Draws knockoff copies: with exactly the required inner products if `fixed`, else for normal rows.

    `distance` is the mean of the diagonal of S: 1 if copies are unrelated to their groups, 0 if they are identical.
    """

    def __init__(self, columns: Columns, *, fixed: bool) -> None:
        self.columns, self.fixed = columns, fixed
        covariance = columns.covariance if fixed else estimated_covariance(columns)
        values, vectors = np.linalg.eigh(covariance)
        if values[0] < DEPENDENT:
            raise ValueError(
                "Some groups' columns are linear combinations of other groups' columns, so fixed-X knockoffs would be "
                "the columns themselves: use kind='gaussian', or leave such groups out."
            )
        inverse = (vectors / values) @ vectors.T
        S = _allowed(maximum_entropy(covariance, columns.ranks), (vectors / np.sqrt(values)) @ vectors.T)
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


def maximum_entropy(covariance: FloatArray, ranks: NDArray[np.intp]) -> FloatArray:
    r"""The blocks that maximise :math:`\log\det(2 \Sigma - S) + \log\det S` (Gimenez and Zou, 2019).

    Given all other blocks, the best one is half of what they leave of :math:`2 \Sigma` there, in closed form, so sweeps
    over the groups need no step size. They begin at half of Dai and Barber's (2016), a multiple of the identity.
    """
    starts = offsets(ranks)
    S = min(0.5, float(np.linalg.eigvalsh(covariance)[0])) * np.eye(len(covariance))
    for sweep in range(SWEEPS):
        M, before = np.linalg.inv(2 * covariance - S), S.copy()
        for l, (a, b) in enumerate(pairwise(starts), start=1):
            tell(f"similarity of copies, sweep {sweep + 1}", "group", l, ranks.size)
            change = (np.linalg.inv(M[a:b, a:b]) - S[a:b, a:b]) / 2
            change = (change + change.T) / 2  # an asymmetry would grow from sweep to sweep
            S[a:b, a:b] += change
            # update the inverse for the changed block, without factorising all of it again
            side = M[:, a:b].copy()
            M += side @ np.linalg.solve(np.eye(b - a) - change @ side[a:b], change @ side.T)
        if np.abs(S - before).max() < SETTLED:
            break
    return (S + S.T) / 2


def _allowed(S: FloatArray, root: FloatArray) -> FloatArray:
    r"""S, or the largest multiple of it with :math:`S \preceq 2 \Sigma`; `root` is :math:`\Sigma^{-1/2}`.

    Rounding errors can leave S slightly above its limit. A smaller S gives valid copies
    with somewhat less power; clipping the eigenvalues of the copies' covariance instead would change what they match.
    """
    largest = float(np.linalg.eigvalsh(root @ S @ root)[-1])
    return S * min(1.0, 2.0 / largest) if largest > 0 else S


def _root(matrix: FloatArray) -> FloatArray:
    """A symmetric square root of a matrix whose negative eigenvalues are only round-off errors."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -ROUNDING * max(1.0, values[-1]):
        raise ValueError(
            f"The covariance of knockoff copies has an eigenvalue of {values[0]:.1g}: groups explain each other too "
            "well for copies; merge groups that carry the same information."
        )
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def lost_correlation(columns: Columns, copies: FloatArray) -> float:
    """How much more groups are correlated with each other than with copies of each other, as a share; 0 if equally.

    If the covariance is right, groups can be exchanged with their copies and the two agree up to chance. If the
    estimate lost correlations, groups have them and copies do not, so groups without an effect can look like ones
    that have an effect more than their copies do.
    """
    weighted, blocks = columns.weighted, np.repeat(np.arange(columns.ranks.size), columns.ranks)
    apart = blocks[:, None] != blocks
    if not apart.any():
        return 0.0
    between = weighted.T @ (copies * np.sqrt(columns.q)[:, None])
    return float(np.sum(columns.covariance[apart] ** 2) / np.sum(between[apart] ** 2) - 1)


def estimated_covariance(columns: Columns) -> FloatArray:
    r"""A structured covariance plus as much of that of the rows as predicts held-out rows best.

    The structured covariance has common factors and those canonical correlations between groups that exceed chance:
    few correlations that are strong. Many weak ones are in none of these, and setting them to zero would make groups
    resemble true ones more than their copies do. The estimate is :math:`(1 - \lambda) T + \lambda S` for the structured
    T and the rows' S, with the :math:`\lambda` of the largest normal likelihood of rows that were left out. Without
    structure it is Ledoit and Wolf's linear shrinkage with a cross-validated intensity.
    """
    share, of_rows = _share_of_rows(columns), columns.covariance.copy()
    for a, b in pairwise(offsets(columns.ranks)):
        of_rows[a:b, a:b] = np.eye(b - a)  # exactly
    return (1 - share) * _structured(columns) + share * of_rows


def _share_of_rows(columns: Columns) -> float:
    """The share of the rows' covariance that gives left-out rows the largest normal likelihood; 0 with too few rows."""
    n = len(columns.Z)
    fold = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
    losses = np.zeros(SHARES.size)
    for k in range(min(FOLDS, n)):
        train, test = fold != k, fold == k
        q, q_test = (columns.q[rows] / columns.q[rows].sum() for rows in (train, test))
        # orthonormal within groups again, on the training rows
        _, inverses, dependent = _block_roots(columns.Z[train] * np.sqrt(q)[:, None], columns.ranks)
        if dependent:
            return 0.0
        part = Columns(columns.Z[train] @ inverses, columns.ranks, q, columns.held[train], columns.intercept)
        L = np.linalg.cholesky(_structured(part))
        half = np.linalg.solve(L, part.weighted.T)
        values, vectors = np.linalg.eigh(half @ half.T)
        left_out = (columns.Z[test] @ inverses) * np.sqrt(q_test)[:, None]
        seen = np.sum((vectors.T @ np.linalg.solve(L, left_out.T)) ** 2, axis=1)
        spread = 1 - SHARES[:, None] + SHARES[:, None] * np.maximum(values, 0.0)
        tell("covariance of the columns", "fold", k + 1, min(FOLDS, n))
        losses += np.log(spread).sum(axis=1) + (seen / spread).sum(axis=1)
    return float(SHARES[np.argmin(losses)])


def _block_roots(weighted: FloatArray, ranks: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, bool]:
    """Roots of each group's second moments, their inverses, and whether a group has linearly dependent columns."""
    starts, dependent = offsets(ranks), False
    roots, inverses = np.zeros((2, starts[-1], starts[-1]))
    for a, b in pairwise(starts):
        values, vectors = np.linalg.eigh(weighted[:, a:b].T @ weighted[:, a:b])
        dependent |= bool(values[0] < NOTHING_LEFT)
        values = np.maximum(values, NOTHING_LEFT)
        roots[a:b, a:b] = (vectors * np.sqrt(values)) @ vectors.T
        inverses[a:b, a:b] = (vectors / np.sqrt(values)) @ vectors.T
    return roots, inverses, dependent


def _structured(columns: Columns) -> FloatArray:
    r"""A covariance with common factors and those canonical correlations between groups that exceed chance.

    Shrinking all correlations alike, as Ledoit and Wolf do, improves the many that are noise at the cost of the few
    that are not. Copies must have those, or neighbours of true groups would be selected. Therefore each pair of groups
    is shrunk separately.
    """
    ranks, weighted = columns.ranks, columns.weighted
    n = 1 / float((columns.q * columns.q).sum())
    scores, values, _ = np.linalg.svd(weighted, full_matrices=False)
    k = _n_factors(values**2)
    if k == 0:
        return _between(columns.covariance, ranks, n)
    effects = scores[:, :k].T @ weighted
    left = weighted - scores[:, :k] @ effects
    # orthonormalise what the factors leave of each group, and keep the inverse map
    roots, inverses, _ = _block_roots(left, ranks)
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
