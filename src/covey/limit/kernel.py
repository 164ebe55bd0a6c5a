"""Ridge on all columns of a wide design, through the matrix of inner products of the rows.

Columns have unit variance, as in `covey.limit.ridges`. X is read in tiles of columns, once for the inner products and
once for the coefficients of all models together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from covey.limit.posed import Posed
from covey.limit.ridges import Penalties
from covey.limit.rows import Split
from covey.preprocess import spans
from covey.validation import FloatArray

__all__ = ["KernelFit", "RowKernel", "RowProducts"]

# Columns that are held at a time.
TILE = 1024


@dataclass(frozen=True)
class KernelFit:
    """A ridge regression: its coefficients on the scaled columns are ``B' alpha``.

    Attributes
    ----------
    alpha : ndarray, shape (n_rows,)
        One number per row; zero for rows that took no part.
    level : float
        The weighted mean of the response.
    shift : float
        The prediction that the weighted mean of the rows would have without an intercept.
    """

    alpha: FloatArray
    level: float
    shift: float


class RowProducts:
    """Inner products of the rows, those of a validation set included, over all scaled columns.

    Parameters
    ----------
    posed : Posed
        Of a design whose columns can be read.
    penalties : Penalties
    shares : ndarray, shape (n_groups,)
        What the penalty of each group is multiplied by.
    """

    def __init__(self, posed: Posed, penalties: Penalties, shares: FloatArray) -> None:
        self.posed = posed
        problem, other = posed.problem, posed.validation
        every = np.arange(problem.ranks.size)
        self.share = np.repeat(shares, problem.layout.sizes)
        self.gains = penalties.gains(every) / np.sqrt(self.share)
        rows = [np.flatnonzero(weight > 0) for weight in posed.parts]
        self.order = np.concatenate(rows)
        weights = [weight[own] for weight, own in zip(posed.parts, rows, strict=True)]
        if other is not None:
            self.judges = np.flatnonzero(other.weight > 0)
            rows.append(self.judges)
            weights.append(other.weight[self.judges])
        self.part = np.repeat(np.arange(len(rows)), [own.size for own in rows])
        self.weight = np.concatenate(weights)
        self.inner = np.zeros((self.part.size, self.part.size))
        # the inner products of columns with a share of their own, which the unit of penalties does without
        self.excess = np.zeros_like(self.inner)
        for own, B in self._tiles():
            self.inner += B @ B.T
            unequal = self.share[own] != 1.0
            if unequal.any():
                A = B[:, unequal]
                self.excess += (A * (1.0 - self.share[own][unequal])) @ A.T

    def _tiles(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """Positions of columns in the groups' layout, and the scaled columns of all rows."""
        problem, other = self.posed.problem, self.posed.validation
        starts = problem.layout.starts
        first = 0
        while first < problem.ranks.size:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + TILE, side="right")) - 1)
            groups = np.arange(first, min(last, problem.ranks.size))
            own = spans(starts, groups)
            members = problem.layout.members[own]
            B = np.asarray(problem.design.take(members))[self.order]
            if other is not None:
                B = np.concatenate([B, np.asarray(other.design.take(members))[self.judges]])
            yield own, (B - problem.mean[own]) * self.gains[own]
            first = int(groups[-1]) + 1

    def combine(self, alphas: FloatArray) -> FloatArray:
        """``alphas B`` for rows of numbers per row of B; shape (k, n_columns)."""
        return np.concatenate([alphas @ B for _, B in self._tiles()], axis=1)


class RowKernel(RowProducts):
    """Ridges for squared loss."""

    @cached_property
    def response(self) -> FloatArray:
        """Of all rows, in working coordinates."""
        problem, other = self.posed.problem, self.posed.validation
        own = problem.response[self.order]
        return own if other is None else np.append(own, (other.y[self.judges] - problem.y_mean) / problem.y_scale)

    def fits(self, split: Split, penalties: Sequence[float]) -> list[KernelFit]:
        """Ridges on the rows of a split, with penalties in units of the mean eigenvalue."""
        train = np.flatnonzero(np.isin(self.part, split.train))
        M, excess = self.inner[np.ix_(train, train)], self.excess[np.ix_(train, train)]
        q = self.weight[train] / self.weight[train].sum()
        root, y = np.sqrt(q), self.response[train]
        level, shifts = 0.0, np.zeros(train.size)
        spread = float(q @ np.diag(M - excess))
        if self.posed.intercept:
            level, shifts = float(q @ y), M @ q
            spread -= float(q @ (M - excess) @ q)
            M = M - shifts[:, None] - shifts + q @ shifts
        S = M * root * root[:, None]
        unit = spread / self.posed.n_rows(split) or 1.0
        out = []
        for penalty in penalties:
            K = S.copy()
            K[np.diag_indices(len(K))] += penalty * unit
            alpha = root * dposv(K, root * (y - level))[1]
            if self.posed.intercept:
                alpha = alpha - q * alpha.sum()
            full = np.zeros(self.part.size)
            full[train] = alpha
            out.append(KernelFit(full, level, float(shifts @ alpha)))
        return out

    def predictions(self, split: Split, fits: Sequence[KernelFit]) -> FloatArray:
        """Residuals on the rows that judge a split, times the square root of their weights; (n_rows, n_models)."""
        test = np.flatnonzero(np.isin(self.part, split.test))
        fitted = self.inner[test] @ np.array([fit.alpha for fit in fits]).T
        fitted += np.array([fit.level - fit.shift for fit in fits])
        return np.sqrt(self.weight[test])[:, None] * (self.response[test][:, None] - fitted)

    def coefficients(self, fits: Sequence[KernelFit]) -> FloatArray:
        """On the scaled columns, in the groups' contiguous layout; shape (n_models, n_outputs, n_columns)."""
        return self.combine(np.array([fit.alpha for fit in fits]))[:, None, :]

    def level(self, fit: KernelFit) -> FloatArray:
        """The prediction of a model where all centred columns are zero; shape (n_outputs,)."""
        return np.array([fit.level - fit.shift])
