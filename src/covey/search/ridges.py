"""Penalties of ridges on groups, on scaled columns.

In working coordinates all directions of a group count the same, even those in which its columns hardly vary. A ridge
on the columns themselves, each in its own scale, shrinks such directions first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.layout import offsets, spans
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["Penalties", "inverse_roots"]

# Working columns whose inner products differ from the identity by more than this are not meant to be orthonormal.
ORTHONORMAL = 1e-4

# Eigenvalues of a penalty below this share of the largest are round-off error.
ROUNDING = 1e-10


class Penalties:
    """``M_l`` such that ``w_l' M_l w_l`` is the squared norm of a group's coefficients on its scaled columns.

    The squared scale of a column is its standard deviation times a sixth of its range, which is its variance if its
    values are roughly normal. A column that is nearly constant except in a few rows (a rare category, the end of a
    spline, a product of two columns) has a larger scale: its coefficient rests on these rows and is shrunk more.

    If columns are linearly dependent, it is the least norm among all coefficients that give the same predictions.

    Parameters
    ----------
    working : WorkingProblem
    column_range : float
        The range of a column that has its variance as its squared scale, in standard deviations.
    equal_shares : bool
        Use the variance as the squared scale instead, and for a two-valued column the variance it would have if both
        values were equally frequent, so that the effect of a category is shrunk the same however rare it is. Classes
        and counts of real data were predicted better that way.
    roughness : ndarray, optional
        Factors of the squared scales of the first columns of X.
    """

    def __init__(
        self,
        working: WorkingProblem,
        column_range: float,
        equal_shares: bool = False,
        roughness: FloatArray | None = None,
    ) -> None:
        self.working, self.column_range, self.equal_shares = working, column_range, equal_shares
        self.roughness = np.ones(0) if roughness is None else roughness
        self._forms: dict[int, FloatArray] = {}
        self._gains: dict[int, FloatArray] = {}
        self._of_all: FloatArray | None = None

    def learn(self, groups: Sequence[int] | NDArray[np.intp]) -> None:
        """Compute the penalties of some groups, groups of the same shape at once."""
        missing = set(map(int, groups)) - self._forms.keys()
        if not missing:
            return
        new = np.array(sorted(missing), dtype=np.intp)
        sizes, ranks = self.working.layout.sizes[new], self.working.ranks[new]
        (low, high, two), starts = self._extremes(new), offsets(sizes)
        for size, rank in {(int(s), int(r)) for s, r in zip(sizes, ranks, strict=True)}:
            which = np.flatnonzero((sizes == size) & (ranks == rank))
            alike = new[which]
            at = self.working.factor_starts[alike][:, None] + np.arange(size * rank)
            T = self.working.factors[at].reshape(alike.size, size, rank)
            # in units of each column: squares of columns of extreme scale would overflow or underflow
            unit = np.abs(T).max(axis=2, initial=0.0)
            unit[unit == 0] = 1.0
            given, T = T, T / unit[:, :, None]
            R = np.linalg.inv(T) if size == rank else self._coordinates(alike, given) * unit[:, None, :]
            variance = np.einsum("lkj,lkj->lj", R, R)
            columns = starts[which][:, None] + np.arange(size)
            if self.equal_shares:
                equal = ((high - low)[columns] * unit / 2) ** 2
                # a constant column varies only if it is not centred
                scale = np.where((two[columns] > 0) & (variance > 0) & (equal > 0), equal, variance)
            else:
                # the mean of a centred column lies in its range; columns that are not centred have mean zero here
                mean = self.working.mean[spans(self.working.layout.starts, alike)].reshape(columns.shape)
                spread = np.maximum(high[columns], mean) - np.minimum(low[columns], mean)
                scale = np.sqrt(variance) * spread * unit / self.column_range
            if self.roughness.size:
                members = self.working.layout.members[spans(self.working.layout.starts, alike)].reshape(columns.shape)
                known = members < self.roughness.size
                scale = scale * np.where(known, self.roughness[np.where(known, members, 0)], 1.0)
            M = T.transpose(0, 2, 1) @ (scale[:, :, None] * T)
            if size > rank > 0:
                M = np.linalg.pinv(
                    (R / np.where(scale > 0, scale, 1.0)[:, None, :]) @ R.transpose(0, 2, 1), hermitian=True
                )
            self._forms.update(zip(alike.tolist(), M, strict=True))
            gains = np.divide(unit, np.sqrt(scale), out=np.zeros_like(scale), where=scale > 0)
            self._gains.update(zip(alike.tolist(), gains, strict=True))

    def _extremes(self, groups: NDArray[np.intp]) -> FloatArray:
        """`Design.extremes` of all columns of some groups."""
        design, members = self.working.design, self.working.layout.members
        if design.reads_columns:
            return np.asarray(design.extremes(members[spans(self.working.layout.starts, groups)], self.working.q))
        if self._of_all is None:
            # X is streamed: one pass for these groups and for all that come later
            self._of_all = np.asarray(design.extremes(members, self.working.q))
        return self._of_all[:, spans(self.working.layout.starts, groups)]

    def _coordinates(self, groups: NDArray[np.intp], T: FloatArray) -> FloatArray:
        """R with ``X_l = Z_l R_l`` for groups of one shape with linearly dependent columns."""
        working = self.working
        places = spans(working.layout.starts, groups)
        columns, mean = working.layout.members[places], working.mean[places]
        gram = working.design.gram_parts(columns, mean, working.response, [working.q])[0][1:-1, 1:-1]
        at = np.arange(places.size).reshape(T.shape[:2])
        R = T.transpose(0, 2, 1) @ gram[at[:, :, None], at[:, None, :]]
        # columns that are not orthonormalised are scaled one by one, and those left out are constant
        scaled = np.abs(R @ T - np.eye(T.shape[2])).max(axis=(1, 2), initial=0.0) > ORTHONORMAL
        R[scaled] = np.linalg.pinv(T[scaled])
        return np.asarray(R)

    def gains(self, groups: NDArray[np.intp]) -> FloatArray:
        """Factors that give the columns of some groups scale one; zero for constant columns."""
        self.learn(groups)
        return np.concatenate([self._gains[int(l)] for l in groups])

    def of(self, groups: Sequence[int] | NDArray[np.intp]) -> list[FloatArray]:
        """The penalties of some groups, each of shape (rank, rank)."""
        self.learn(groups)
        return [self._forms[int(l)] for l in groups]

    def matrix(self, groups: Sequence[int], n_free: int) -> FloatArray:
        """The block-diagonal penalty of several groups; zero for the first `n_free` of them."""
        forms = self.of(groups)
        ends = offsets(np.array([len(M) for M in forms], dtype=np.intp))
        out = np.zeros((int(ends[-1]), int(ends[-1])))
        for a, b, M in zip(ends[n_free:-1], ends[n_free + 1 :], forms[n_free:], strict=True):
            out[a:b, a:b] = M
        return out


def inverse_roots(forms: Sequence[FloatArray]) -> list[FloatArray]:
    """For each positive definite matrix, C with ``C C'`` its inverse; matrices of equal size are handled at once.

    Directions in which a matrix is zero up to round-off error, as nearly dependent columns have, count as small.
    """
    out: list[FloatArray] = [np.empty((0, 0))] * len(forms)
    sizes = np.array([len(M) for M in forms])
    for size in set(sizes.tolist()) - {0}:
        which = np.flatnonzero(sizes == size).tolist()
        stacked: FloatArray = np.array([forms[i] for i in which], dtype=float)
        try:
            roots = np.linalg.inv(np.linalg.cholesky(stacked)).transpose(0, 2, 1)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh((stacked + stacked.transpose(0, 2, 1)) / 2)
            largest = np.maximum(values[:, -1:], np.finfo(float).tiny)
            roots = vectors / np.sqrt(np.maximum(values, ROUNDING * largest))[:, None, :]
        for i, root in zip(which, roots, strict=True):
            out[i] = root
    return out
