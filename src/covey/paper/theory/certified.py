"""Certified coherence for very wide designs: an interval guaranteed to contain delta_out, at a cost linear in p."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.paper.theory.blocks import column_blocks, cross, own_grams, read_design, stays_away, take_groups
from covey.paper.theory.coherence import BLOCK_COLUMNS, _norm_of_pair, _rescale, _scale, group_deviations
from covey.paper.theory.kernels import pair_norms
from covey.validation import whole

__all__ = ["CoherenceBounds", "coherence_bounds"]

# The energy of a group needs the n x n matrix XX'; beyond this many rows (800 MB) only the norms are used.
MAX_ROWS = 10_000


@dataclass(frozen=True)
class CoherenceBounds:
    """The result of `coherence_bounds`: the exact `delta_in`, and an interval for delta_out.

    Attributes
    ----------
    delta_in : float
    delta_out_lower, delta_out_upper : float
        delta_out lies between them, up to round-off error, for any design.
    pair : tuple of two group names, or None
        The worst pair found; it attains `delta_out_lower` unless the mean over all pairs gives a larger bound.
    n_rows_exact : int
        Groups whose cross norms with every other group were computed exactly.
    """

    delta_in: float
    delta_out_lower: float
    delta_out_upper: float
    pair: tuple[Hashable, Hashable] | None
    n_rows_exact: int
    groups: Groups

    @property
    def delta_out(self) -> tuple[float, float]:
        """The interval ``(lower, upper)``."""
        return self.delta_out_lower, self.delta_out_upper

    def __str__(self) -> str:
        return (
            f"certified coherence, {self.groups!r}\n"
            f"  delta_in  = {self.delta_in:.6g}\n"
            f"  delta_out in [{self.delta_out_lower:.6g}, {self.delta_out_upper:.6g}]"
        )


def coherence_bounds(
    X: Any, groups: Any = None, *, refine: int = 32, block_columns: int = BLOCK_COLUMNS
) -> CoherenceBounds:
    """The exact delta_in and a certified interval for delta_out, without visiting every pair of groups.

    With ``R_l = norm(X_l)/sqrt(n)`` and the energy ``E_l = lambda_max(X_l'(XX' - X_l X_l')X_l)/n^2``,

        norm(X_l'X_m/n) <= min(R_l R_m, sqrt(E_l), sqrt(E_m)),
        max_{l!=m} norm(X_l'X_m/n)^2 >= mean over pairs of Frobenius^2, divided by the largest rank of a pair.

    The second line is Welch's bound, specialised to the design. The `refine` groups that could be worst are then
    compared exactly with all others, which raises the lower end and removes them from the upper end. The cost is
    ``n p (refine * group size + n)`` operations instead of ``n p^2``; with ``refine >= n_groups`` the interval closes.

    For a design with remote columns (Dask, files) energies are not computed, since they would need as many readings of
    X as it has columns; X is read once for the norms and once for the `refine` groups, and the interval is wider.

    The interval is narrow if the energies are small (n much larger than p) or if a few groups stand out. On a wide
    random design the upper end stays near 1, the best certified bound at this cost.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 400))
    >>> result = coherence_bounds(X, 4)
    >>> exact = coherence_bounds(X, 4, refine=100)
    >>> result.delta_out_lower <= exact.delta_out_lower == exact.delta_out_upper <= result.delta_out_upper
    True
    """
    refine, block_columns = whole(refine, "refine", least=0), whole(block_columns, "block_columns")
    X, groups = read_design(X, groups)
    n, L = X.shape[0], groups.n_groups
    scale = _scale(X)
    inner, norms2, energies, fro_mean2 = _scan(X, groups, block_columns, scale)
    delta_in = float(inner.max())
    if L == 1:
        return CoherenceBounds(delta_in, 0.0, 0.0, None, 1, groups)

    radius = np.sqrt(norms2)
    ceiling = np.minimum(radius * np.sort(radius)[-2:].max(), np.sqrt(energies))
    exact = _suspects(ceiling, energies, norms2, min(refine, L))
    open_groups = np.setdiff1d(np.arange(L), exact)
    lower, pair = _refine(X, groups, exact, block_columns, scale)
    sizes = np.sort(groups.sizes)
    rank = min(int(sizes[-2]), n)
    lower = max(lower, float(np.sqrt(fro_mean2 / rank)))
    upper = lower
    if open_groups.size > 1:
        left = np.sort(radius[open_groups])
        rest = min(left[-1] * left[-2], np.sqrt(np.sort(energies[open_groups])[-2]))
        # widen by the round-off error of sums of n float64 products, to keep the bound valid
        upper = max(lower, float(rest) * (1.0 + 4 * n * np.finfo(float).eps))
    ends = _rescale(np.array([lower, upper]), scale)
    names = (groups.names[pair[0]], groups.names[pair[1]]) if pair else None
    return CoherenceBounds(delta_in, float(ends[0]), float(ends[1]), names, len(exact), groups)


def _suspects(
    ceiling: NDArray[np.float64], energies: NDArray[np.float64], norms2: NDArray[np.float64], count: int
) -> NDArray[np.intp]:
    """Groups to compare exactly: alternately one with a high bound, and one with high energy relative to its norm."""
    by_ceiling = np.argsort(-ceiling, kind="stable")
    excess = np.where(norms2 > 0, energies / np.where(norms2 > 0, norms2, 1.0), 0.0)
    by_excess = np.argsort(-excess, kind="stable")
    turns = np.column_stack([by_ceiling, by_excess]).ravel()
    _, first = np.unique(turns, return_index=True)
    return np.sort(turns[np.sort(first)][:count])


def _scan(
    X: Any, groups: Groups, block_columns: int, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Deviations, squared spectral norms and energies per group, mean Frobenius^2 of a pair; one or two readings."""
    n, L = X.shape[0], groups.n_groups
    inner, norms2, energies = np.empty(L), np.empty(L), np.full(L, np.inf)
    if stays_away(X):
        for l, own in enumerate(own_grams(X, groups, scale)):
            edges = np.array([0, own.shape[0]])
            inner[l], norms2[l] = group_deviations(own, edges, scale)[0], _largest_eigenvalues(own, None, edges)[0]
        return inner, norms2, energies, 0.0
    outer_product = np.zeros((n, n)) if n <= MAX_ROWS else None
    for block in column_blocks(X, groups, block_columns, scale):
        if outer_product is not None:
            part = block.columns @ block.columns.T
            outer_product += part.toarray() if sp.issparse(part) else part
    own_fro2 = 0.0
    # narrow blocks, because only the diagonal of the Gram is needed here
    for block in column_blocks(X, groups, min(block_columns, 128), scale):
        at = slice(block.first, block.last)
        own = cross(block, block, n)
        inner[at] = group_deviations(own, block.starts, scale)
        if outer_product is None:
            norms2[at] = _largest_eigenvalues(own, None, block.starts)
            continue
        dense = block.columns.toarray() if sp.issparse(block.columns) else block.columns
        norms2[at] = _largest_eigenvalues(own, None, block.starts)
        energies[at] = _largest_eigenvalues(dense.T @ (outer_product @ dense) / n**2, own, block.starts)
        within = np.add.reduceat(np.add.reduceat(own * own, block.starts[:-1], axis=0), block.starts[:-1], axis=1)
        own_fro2 += float(np.trace(within))
    if outer_product is None:
        return inner, norms2, energies, 0.0
    # widen by the round-off error of sums of n products, to keep the interval valid
    slack = 4 * n * np.finfo(float).eps
    energies[:] = np.maximum(energies, 0.0) + slack * norms2 * float(np.trace(outer_product)) / n
    total = float(np.sum((outer_product / n) ** 2)) * (1 - slack)
    mean2 = max(total - own_fro2, 0.0) / (L * (L - 1)) if L > 1 else 0.0
    return inner, norms2, energies, mean2


def _largest_eigenvalues(
    A: NDArray[np.float64], B: NDArray[np.float64] | None, starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """lambda_max of ``A_ll - B_ll^2`` for each diagonal block; blocks of equal size are solved together."""
    sizes, out = np.diff(starts), np.empty(starts.size - 1)
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        index = starts[which][:, None] + np.arange(size)
        at = index[:, :, None], index[:, None, :]
        stacked = A[at] if B is None else A[at] - B[at] @ B[at]
        out[which] = np.linalg.eigvalsh(stacked)[:, -1]
    return out


def _refine(
    X: Any, groups: Groups, exact: NDArray[np.intp], block_columns: int, scale: float
) -> tuple[float, tuple[int, int] | None]:
    """The largest cross norm of the given groups with all others, and the pair that attains it."""
    n, best, pair = X.shape[0], 0.0, None
    if not exact.size:
        return best, pair
    rows = take_groups(X, groups, exact, scale)
    for cols in column_blocks(X, groups, block_columns, scale):
        C = cross(rows, cols, n)
        values = np.empty((exact.size, cols.last - cols.first))
        pair_norms(C, rows.starts, cols.starts, values)
        for a, b in np.argwhere(values < 0):
            values[a, b] = _norm_of_pair(C, rows, cols, a, b)
        own = (exact >= cols.first) & (exact < cols.last)
        values[own, exact[own] - cols.first] = -1.0
        a, b = np.unravel_index(int(np.argmax(values)), values.shape)
        if pair is None or values[a, b] > best:
            l, m = int(exact[a]), cols.first + int(b)
            if l != m:
                best, pair = float(values[a, b]), (min(l, m), max(l, m))
    return best, pair
