"""Ridge on all columns of a wide design, through the matrix of inner products of the rows.

Columns are in their own scales, as in `covey.limit.ridges`. X is read in tiles of columns, once for the inner products and
once for the coefficients of all models together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from covey.limit.posed import Posed
from covey.limit.ridges import Penalties
from covey.limit.rows import Split
from covey.validation import FloatArray

__all__ = ["KernelFit", "RowKernel", "RowProducts"]

# Numbers that are held at a time: 2 MiB.
TILE = 2**18


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
        # the rows that take part, and the part of each; those of the validation set are the last
        part, weight = np.full(problem.design.shape[0], -1), np.zeros(problem.design.shape[0])
        for k, given in enumerate(map(np.asarray, posed.parts)):
            part[given > 0], weight[given > 0] = k, given[given > 0]
        self.used = [np.flatnonzero(part >= 0)]
        self.part, self.weight = part[self.used[0]], weight[self.used[0]]
        if other is not None:
            judges = np.flatnonzero(other.weight > 0)
            self.used.append(judges)
            self.part = np.concatenate([self.part, np.full(judges.size, len(posed.parts))])
            self.weight = np.concatenate([self.weight, other.weight[judges]])
        self.inner = np.zeros((self.part.size, self.part.size))
        # the inner products of columns with a share of their own, which the unit of penalties does without
        self.excess: FloatArray | None = None
        for own, B in self._tiles():
            # of a matrix with its own transpose BLAS forms half
            self.inner += B @ B.T
            unequal = self.share[own] != 1.0
            if unequal.any():
                A = B[:, unequal]
                more = (A * (1.0 - self.share[own][unequal])) @ A.T
                self.excess = more if self.excess is None else self.excess + more

    def _tiles(self) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
        """Positions of columns in the groups' layout, and the scaled columns of all rows."""
        problem, other = self.posed.problem, self.posed.validation
        designs = [problem.design] if other is None else [problem.design, other.design]
        starts = problem.layout.starts
        tile = max(TILE // max(self.part.size, 1), 1)
        first = 0
        while first < problem.ranks.size:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + tile, side="right")) - 1)
            own = np.arange(starts[first], starts[min(last, problem.ranks.size)])
            members = problem.layout.members[own]
            blocks = [_some_rows(design.take(members), used) for design, used in zip(designs, self.used, strict=True)]
            B = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
            B -= problem.mean[own]
            B *= self.gains[own]
            yield own, B
            first = last

    def combine(self, alphas: FloatArray) -> FloatArray:
        """``alphas B`` for rows of numbers per row of B; shape (k, n_columns)."""
        out = np.empty((len(alphas), self.share.size))
        for own, B in self._tiles():
            out[:, own[0] : own[-1] + 1] = alphas @ B
        return out


class RowKernel(RowProducts):
    """Ridges for squared loss."""

    @cached_property
    def response(self) -> FloatArray:
        """Of all rows, in working coordinates."""
        problem, other = self.posed.problem, self.posed.validation
        own = problem.response[self.used[0]]
        return own if other is None else np.append(own, (other.y[self.used[1]] - problem.y_mean) / problem.y_scale)

    def fits(self, split: Split, penalties: Sequence[float]) -> list[KernelFit]:
        """Ridges on the rows of a split, with penalties in units of the mean eigenvalue."""
        train = self._rows_of(split.train)
        at = np.ix_(train, train)
        M = self.inner[at]
        plain = M if self.excess is None else M - self.excess[at]
        q = self.weight[train] / self.weight[train].sum()
        root, y = np.sqrt(q), self.response[train]
        level, shifts = 0.0, np.zeros(train.size)
        spread = float(q @ np.diag(plain))
        if self.posed.intercept:
            level, shifts = float(q @ y), M @ q
            spread -= float(q @ plain @ q)
            M = M - shifts[:, None]
            M -= shifts - q @ shifts
        M *= root
        M *= root[:, None]
        unit = spread / self.posed.n_rows(split) or 1.0
        out = []
        for penalty in penalties:
            K = M.copy()
            K.flat[:: len(K) + 1] += penalty * unit
            alpha = root * dposv(K.T, root * (y - level), lower=1, overwrite_a=1)[1]
            if self.posed.intercept:
                alpha = alpha - q * alpha.sum()
            full = np.zeros(self.part.size)
            full[train] = alpha
            out.append(KernelFit(full, level, float(shifts @ alpha)))
        return out

    def _rows_of(self, parts: Sequence[int]) -> NDArray[np.intp]:
        """The rows of some parts, one part after another."""
        return np.concatenate([np.flatnonzero(self.part == k) for k in parts])

    def predictions(self, split: Split, fits: Sequence[KernelFit]) -> FloatArray:
        """Residuals on the rows that judge a split, times the square root of their weights; (n_rows, n_models)."""
        test = self._rows_of(split.test)
        fitted = self.inner[test] @ np.array([fit.alpha for fit in fits]).T
        fitted += np.array([fit.level - fit.shift for fit in fits])
        return np.sqrt(self.weight[test])[:, None] * (self.response[test][:, None] - fitted)

    def coefficients(self, fits: Sequence[KernelFit]) -> FloatArray:
        """On the scaled columns, in the groups' contiguous layout; shape (n_models, n_outputs, n_columns)."""
        return self.combine(np.array([fit.alpha for fit in fits]))[:, None, :]

    def level(self, fit: KernelFit) -> FloatArray:
        """The prediction of a model where all centred columns are zero; shape (n_outputs,)."""
        return np.array([fit.level - fit.shift])


def _some_rows(table: Any, rows: NDArray[np.intp]) -> FloatArray:
    """Rows of a table that is nobody else's."""
    own = np.asarray(table)
    return own if rows.size == len(own) else own[rows]
