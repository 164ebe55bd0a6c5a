"""Ridge regression on all columns of a wide design, from the matrix of inner products of the rows.

Columns are scaled as in `covey.limit.ridges`. X is read in tiles of columns: once for the inner products, and once
more for the coefficients of all models together.
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

# Numbers per tile: 2 MiB.
TILE = 2**18


@dataclass(frozen=True)
class KernelFit:
    """A ridge regression: its coefficients on the scaled columns are ``B' alpha``.

    Attributes
    ----------
    alpha : ndarray, shape (n_rows,)
        Zero for rows that were not used.
    level : float
        The weighted mean of the response.
    shift : float
        The prediction without intercept at the weighted mean of the rows.
    """

    alpha: FloatArray
    level: float
    shift: float


class RowProducts:
    """Inner products of the rows, including those of a validation set, over all scaled columns.

    Parameters
    ----------
    posed : Posed
        Its design must be able to read columns.
    penalties : Penalties
    shares : ndarray, shape (n_groups,)
        Factors that multiply the groups' penalties.
    """

    def __init__(self, posed: Posed, penalties: Penalties, shares: FloatArray) -> None:
        self.posed = posed
        problem, other = posed.problem, posed.validation
        every = np.arange(problem.ranks.size)
        self.share = np.repeat(shares, problem.layout.sizes)
        self.gains = penalties.gains(every) / np.sqrt(self.share)
        # the rows that are used, and the part of each; the validation set is the last part
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
        # what shares other than one add to the inner products; the unit of penalties is computed without it
        self.excess: FloatArray | None = None
        for own, B in self._tiles():
            # BLAS computes only half of a matrix times its own transpose
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
        """``alphas B``, with B read in tiles; shape (k, n_columns)."""
        out = np.empty((len(alphas), self.share.size))
        for own, B in self._tiles():
            out[:, own[0] : own[-1] + 1] = alphas @ B
        return out


class RowKernel(RowProducts):
    """Ridges for squared loss."""

    @cached_property
    def response(self) -> FloatArray:
        """The response of all rows in working coordinates."""
        problem, other = self.posed.problem, self.posed.validation
        own = problem.response[self.used[0]]
        return own if other is None else np.append(own, (other.y[self.used[1]] - problem.y_mean) / problem.y_scale)

    def fits(self, split: Split, penalties: Sequence[float]) -> list[KernelFit]:
        """Ridges on the training rows of a split, with penalties in units of the mean eigenvalue."""
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
        """Held-out residuals of a split, times the square root of the rows' weights; (n_rows, n_models)."""
        test = self._rows_of(split.test)
        fitted = self.inner[test] @ np.array([fit.alpha for fit in fits]).T
        fitted += np.array([fit.level - fit.shift for fit in fits])
        return np.sqrt(self.weight[test])[:, None] * (self.response[test][:, None] - fitted)

    def coefficients(self, fits: Sequence[KernelFit]) -> FloatArray:
        """Coefficients of the scaled columns, in the groups' contiguous layout; (n_models, n_outputs, n_columns)."""
        return self.combine(np.array([fit.alpha for fit in fits]))[:, None, :]

    def level(self, fit: KernelFit) -> FloatArray:
        """The prediction of a model at the means of the columns; shape (n_outputs,)."""
        return np.array([fit.level - fit.shift])


def _some_rows(table: Any, rows: NDArray[np.intp]) -> FloatArray:
    """Some rows of a table that the caller may overwrite."""
    own = np.asarray(table)
    return own if rows.size == len(own) else own[rows]
