"""Reweighted ridges: a ridge on all columns, then again with each group's penalty divided by its previous norm.

Repeated, this tends to the group lasso. It is meant for dense signals, where no small set of groups explains much.
Penalties apply to coefficients of scaled columns, as in `covey.limit.ridges`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dposv

from covey.limit.ridges import Penalties
from covey.limit.rows import PartedRows, Rows, Split
from covey.validation import FloatArray

__all__ = [
    "DenseRows",
    "RidgeFit",
    "TallTraining",
    "WideTraining",
    "inverse_roots",
    "noise_norms",
    "scaled",
    "shares_of",
    "unscaled",
]

# A group's penalty grows by at most the inverse of this per round, so that no group is lost for good.
SMALLEST_SHARE = 1e-3

# With at most this many columns per row, a linear system in the columns costs less than one in the rows.
TALL = 1.5

# Second moments of a split are those of all rows minus those of the others, unless that leaves less than this share for
# some column, and so too few digits.
LEFT = 1e-4

# Systems of up to this many columns are solved in one call for all penalties.
STACKED = 48


@dataclass(frozen=True)
class RidgeFit:
    """A ridge regression on the rows of one split.

    Attributes
    ----------
    coef : ndarray, shape (r,)
        On scaled columns.
    intercept : float
    norms : ndarray, shape (n_groups,)
    """

    coef: FloatArray
    intercept: float
    norms: FloatArray


class DenseRows:
    """Rows of scaled columns, part by part: ``V_l = Z_l C_l`` with ``C_l C_l'`` the inverse of the group's penalty.

    Parameters
    ----------
    rows : PartedRows
    groups : ndarray of int
        Positions of these groups among all groups.
    penalties : Penalties
    intercept : bool
    """

    def __init__(self, rows: PartedRows, groups: NDArray[np.intp], penalties: Penalties, intercept: bool) -> None:
        self.rows, self.groups, self.intercept = rows, groups, intercept
        self.roots = inverse_roots(penalties.of(groups))
        self.tables = scaled(rows, self.roots, rows.parts)

    def training(self, split: Split, n_rows: float) -> Training:
        """The centred training rows of a split; `n_rows` counts them before any compression."""
        rows, train = self.rows, split.train
        n = sum(len(self.tables[k]) for k in train)
        tall = rows.n_columns <= TALL * n
        if tall and n > sum(map(len, self.tables)) / 2 and (quick := self._by_subtraction(train, n_rows)) is not None:
            return quick
        B = np.concatenate([self.tables[k] for k in train])
        one = np.concatenate([rows.parts[k][:, rows.one] for k in train])
        y = np.concatenate([rows.parts[k][:, rows.response] for k in train])
        weight = rows.weight(train)
        mean, level = np.zeros(B.shape[1]), 0.0
        if self.intercept:
            mean, level = one @ B / weight, float(one @ y) / weight
            if B.size:  # in place: the rows of many columns are most of what is held
                dger(-1.0, mean, one, a=B.T, overwrite_a=1)
            y = y - one * level
        B /= np.sqrt(weight)
        y /= np.sqrt(weight)
        return TallTraining(mean, level, n_rows, B.T @ B, y @ B) if tall else WideTraining(mean, level, n_rows, B, y)

    def _by_subtraction(self, train: Sequence[int], n_rows: float) -> TallTraining | None:
        """Second moments over all rows minus those of the other parts; None if too few digits would be left."""
        G = self._total.copy()
        for k in range(len(self.tables)):
            if k not in train:
                G -= self._gram(k)
        G /= self.rows.weight(train)
        K, c, mean, level = G[:-2, :-2], G[:-2, -1], G[:-2, -2], float(G[-2, -1])
        if not self.intercept:
            mean, level = np.zeros_like(mean), 0.0
        K -= np.outer(mean, mean)
        c -= mean * level
        before = np.delete(self._total.diagonal(), -2) / self.rows.weight(range(len(self.tables)))
        left = np.append(K.diagonal(), G[-1, -1] - level * level)
        return TallTraining(mean, level, n_rows, K, c) if (left >= LEFT * before).all() else None

    def _gram(self, part: int) -> FloatArray:
        """``A'A`` of a part, with ``A = [V, 1, y]``."""
        rows = self.rows
        A = np.hstack([self.tables[part], rows.parts[part][:, [rows.one, rows.response]]])
        return A.T @ A  # BLAS computes only half of a matrix times its own transpose

    @cached_property
    def _total(self) -> FloatArray:
        return np.asarray(sum(map(self._gram, range(1, len(self.tables))), self._gram(0)))

    def predictions(self, split: Split, fits: Sequence[RidgeFit]) -> FloatArray:
        """Held-out residuals of some models; shape (n_rows, n_models)."""
        rows = self.rows
        W, levels = np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])
        return np.concatenate(
            [
                rows.parts[k][:, [rows.response]] - self.tables[k] @ W.T - np.outer(rows.parts[k][:, rows.one], levels)
                for k in split.test
            ]
        )

    def fits(self, training: Training, penalties: Sequence[float], shares: FloatArray) -> list[RidgeFit]:
        """Minimise ``norm(y - B b)^2 + penalty sum_l share_l norm(b_l)^2`` for each penalty and its row of shares."""
        coefs = training.ridges(penalties, np.repeat(1.0 / shares, self.rows.ranks, axis=1))
        squares = np.add.reduceat(np.hstack([coefs * coefs, np.zeros((len(coefs), 1))]), self.rows.starts[:-1], axis=1)
        norms = np.sqrt(np.where(self.rows.ranks > 0, squares, 0.0))
        levels = (training.level - coefs @ training.mean).tolist()
        return [RidgeFit(*made) for made in zip(coefs, levels, norms, strict=True)]

    def working(self, fit: RidgeFit) -> tuple[FloatArray, FloatArray]:
        """A model in working coordinates: coefficients of shape (n_outputs, r), and intercepts."""
        return unscaled(self.rows, self.roots, fit.coef[None, :]), np.array([fit.intercept])


@dataclass(frozen=True)
class Training(ABC):
    """The training rows of a split: the means of columns and response, and the number of rows.

    With B and y the rows and the response, centred and multiplied by the roots of weights that add up to one.
    """

    mean: FloatArray
    level: float
    n_rows: float

    @property
    @abstractmethod
    def unit(self) -> float:
        """The mean eigenvalue of ``B B'``, averaged over all `n_rows` rows."""

    @abstractmethod
    def ridges(self, penalties: Sequence[float], gains: FloatArray) -> FloatArray:
        """Ridge coefficients with ``penalty / gain`` on each column; one row per penalty and row of gains."""


@dataclass(frozen=True)
class TallTraining(Training):
    """Training rows with a linear system in the columns: ``K = B'B`` and ``c = B'y``."""

    K: FloatArray
    c: FloatArray

    @property
    def unit(self) -> float:
        """The mean eigenvalue."""
        return float(self.K.trace()) / max(self.n_rows, 1.0) or 1.0

    def ridges(self, penalties: Sequence[float], gains: FloatArray) -> FloatArray:
        """Ridge coefficients."""
        p = self.c.size
        if p == 0:
            return np.zeros((len(penalties), 0))
        added = np.array(penalties)[:, None] / gains
        if p <= STACKED:
            stack = np.repeat(self.K[None], len(penalties), axis=0)
            stack[:, np.arange(p), np.arange(p)] += added
            return np.asarray(np.linalg.solve(stack, np.broadcast_to(self.c[:, None], (len(penalties), p, 1)))[:, :, 0])
        return np.array([self._solution(more) for more in added])

    def _solution(self, added: FloatArray) -> FloatArray:
        S = self.K.copy()
        S.flat[:: len(S) + 1] += added
        return np.asarray(dposv(S.T, self.c, lower=1, overwrite_a=1)[1])


@dataclass(frozen=True)
class WideTraining(Training):
    """Training rows with a linear system in the rows."""

    B: FloatArray
    y: FloatArray

    @cached_property
    def unit(self) -> float:
        """The mean eigenvalue."""
        return float(np.einsum("ij,ij->", self.B, self.B)) / max(self.n_rows, 1.0) or 1.0

    @cached_property
    def kernel(self) -> FloatArray:
        """``B B'``."""
        return self.B @ self.B.T

    def ridges(self, penalties: Sequence[float], gains: FloatArray) -> FloatArray:
        """Ridge coefficients."""
        return np.array([self._solution(penalty, gain) for penalty, gain in zip(penalties, gains, strict=True)])

    def _solution(self, penalty: float, gain: FloatArray) -> FloatArray:
        if (gain == 1.0).all():
            K = self.kernel.copy()
        else:
            A = self.B * np.sqrt(gain)
            K = A @ A.T
        K.flat[:: len(K) + 1] += penalty
        return np.asarray(gain * (dposv(K.T, self.y, lower=1, overwrite_a=1)[1] @ self.B))


def shares_of(norms: FloatArray, scales: FloatArray) -> FloatArray:
    """Factors that multiply the penalties, given the groups' norms: large for groups of small norm."""
    typical = float(norms.mean()) or 1.0
    return scales / np.maximum(norms / typical, SMALLEST_SHARE)


def noise_norms(sizes: NDArray[np.intp]) -> FloatArray:
    """The norm that pure noise reaches in a group of each size, scaled to mean one."""
    made = np.sqrt(sizes) + np.sqrt(2 * np.log(max(sizes.size, 2)))
    return np.asarray(made / made.mean())


def scaled(rows: Rows, roots: list[FloatArray], tables: Sequence[FloatArray]) -> list[FloatArray]:
    """``Z_l C_l`` of all groups, for each table; shape (n_rows, r)."""
    out: list[FloatArray] = [np.empty((len(Z), rows.n_columns)) for Z in tables]
    for which, own in _by_rank(rows.ranks, roots):
        at = rows.starts[which][:, None] + np.arange(own.shape[1])
        for Z, made in zip(tables, out, strict=True):
            made[:, at] = (Z[:, at].transpose(1, 0, 2) @ own).transpose(1, 0, 2)
    return out


def unscaled(rows: Rows, roots: list[FloatArray], W: FloatArray) -> FloatArray:
    """Convert coefficients of scaled columns to working columns, models as rows; shape (k, r)."""
    out = np.empty_like(W)
    for which, own in _by_rank(rows.ranks, roots):
        at = rows.starts[which][:, None] + np.arange(own.shape[1])
        out[:, at] = np.einsum("lkj,nlj->nlk", own, W[:, at])
    return out


def inverse_roots(forms: Sequence[FloatArray]) -> list[FloatArray]:
    """For each positive definite matrix, C with ``C C'`` its inverse; matrices of equal size are handled at once."""
    out: list[FloatArray] = [np.empty((0, 0))] * len(forms)
    sizes = np.array([len(M) for M in forms])
    for size in set(sizes.tolist()) - {0}:
        which = np.flatnonzero(sizes == size).tolist()
        stacked: FloatArray = np.array([forms[i] for i in which], dtype=float)
        roots = np.linalg.inv(np.linalg.cholesky(stacked)).transpose(0, 2, 1)
        for i, root in zip(which, roots, strict=True):
            out[i] = root
    return out


def _by_rank(ranks: NDArray[np.intp], roots: list[FloatArray]) -> list[tuple[NDArray[np.intp], FloatArray]]:
    """For each rank, the groups of that rank and their stacked roots."""
    made = []
    for rank in set(ranks.tolist()) - {0}:
        which = np.flatnonzero(ranks == rank)
        made.append((which, np.array([roots[i] for i in which])))
    return made
