"""Reweighted ridges: ridge on all columns, then with each group's penalty divided by its norm before.

Repeated, this tends to a group lasso. It is for signals that are dense, in which no few groups explain much.
Coefficients are counted on columns in their own scales, as in `covey.limit.ridges`.
"""

from __future__ import annotations

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

__all__ = ["DenseRows", "RidgeFit", "inverse_roots", "noise_norms", "scaled", "shares_of", "unscaled"]

# A group's penalty grows at most by one over this from one round to the next, so that none is lost for ever.
SMALLEST_SHARE = 1e-3


# Systems of up to so many columns are solved in one call for all penalties.
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
        Which of all groups these are.
    penalties : Penalties
    intercept : bool
    """

    def __init__(self, rows: PartedRows, groups: NDArray[np.intp], penalties: Penalties, intercept: bool) -> None:
        self.rows, self.groups, self.intercept = rows, groups, intercept
        self.roots = inverse_roots(penalties.of(groups))
        self.tables = scaled(rows, self.roots, rows.parts)

    def training(self, split: Split, n_rows: float) -> Training:
        """The rows of a split, centred; `n_rows` of them, which are fewer here where parts are compressed."""
        rows, train = self.rows, split.train
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
        return Training(B, y / np.sqrt(weight), mean, level, n_rows)

    def predictions(self, split: Split, fits: Sequence[RidgeFit]) -> FloatArray:
        """Residuals of some models on the rows that judge a split; shape (n_rows, n_models)."""
        rows = self.rows
        W, levels = np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])
        return np.concatenate(
            [
                rows.parts[k][:, [rows.response]] - self.tables[k] @ W.T - np.outer(rows.parts[k][:, rows.one], levels)
                for k in split.test
            ]
        )

    def fits(self, training: Training, penalties: Sequence[float], shares: FloatArray) -> list[RidgeFit]:
        """Minimise ``norm(y - B b)^2 + penalty sum_l share_l norm(b_l)^2`` for penalties and rows of shares."""
        coefs = training.ridges(penalties, np.repeat(1.0 / shares, self.rows.ranks, axis=1))
        squares = np.add.reduceat(np.hstack([coefs * coefs, np.zeros((len(coefs), 1))]), self.rows.starts[:-1], axis=1)
        norms = np.sqrt(np.where(self.rows.ranks > 0, squares, 0.0))
        levels = (training.level - coefs @ training.mean).tolist()
        return [RidgeFit(*made) for made in zip(coefs, levels, norms, strict=True)]

    def working(self, fit: RidgeFit) -> tuple[FloatArray, FloatArray]:
        """A model in working coordinates: coefficients of shape (n_outputs, r), and intercepts."""
        return unscaled(self.rows, self.roots, fit.coef[None, :]), np.array([fit.intercept])


@dataclass(frozen=True)
class Training:
    """Centred rows B and response y, weights taken in, and what they were centred at."""

    B: FloatArray
    y: FloatArray
    mean: FloatArray
    level: float
    n_rows: float

    @cached_property
    def unit(self) -> float:
        """The mean eigenvalue of ``B B'``, all rows counted."""
        return float(np.einsum("ij,ij->", self.B, self.B)) / max(self.n_rows, 1.0) or 1.0

    @cached_property
    def kernel(self) -> FloatArray:
        """``B B'``."""
        return self.B @ self.B.T

    @cached_property
    def gram(self) -> tuple[FloatArray, FloatArray]:
        """``B'B`` and ``B'y``."""
        return self.B.T @ self.B, self.B.T @ self.y

    def ridges(self, penalties: Sequence[float], gains: FloatArray) -> FloatArray:
        """The coefficients with ``penalty / gain`` on each column, by the smaller one of the two systems."""
        n, p = self.B.shape
        if p == 0:
            return np.zeros((len(penalties), 0))
        if p >= n:
            return np.array([self._by_rows(penalty, gain) for penalty, gain in zip(penalties, gains, strict=True)])
        K, c = self.gram
        added = np.array(penalties)[:, None] / gains
        if p <= STACKED:
            stack = np.repeat(K[None], len(penalties), axis=0)
            stack[:, np.arange(p), np.arange(p)] += added
            return np.asarray(np.linalg.solve(stack, np.broadcast_to(c[:, None], (len(penalties), p, 1)))[:, :, 0])
        return np.array([self._by_columns(more) for more in added])

    def _by_columns(self, added: FloatArray) -> FloatArray:
        K, c = self.gram
        K = K.copy()
        K.flat[:: len(K) + 1] += added
        return np.asarray(dposv(K.T, c, lower=1, overwrite_a=1)[1])

    def _by_rows(self, penalty: float, gain: FloatArray) -> FloatArray:
        if (gain == 1.0).all():
            K = self.kernel.copy()
        else:
            A = self.B * np.sqrt(gain)
            K = A @ A.T  # of a matrix with its own transpose BLAS forms half
        K.flat[:: len(K) + 1] += penalty
        return np.asarray(gain * (dposv(K.T, self.y, lower=1, overwrite_a=1)[1] @ self.B))


def shares_of(norms: FloatArray, scales: FloatArray) -> FloatArray:
    """What the penalties are multiplied by, given the groups' norms: large where a group has hardly any."""
    typical = float(norms.mean()) or 1.0
    return scales / np.maximum(norms / typical, SMALLEST_SHARE)


def noise_norms(sizes: NDArray[np.intp]) -> FloatArray:
    """What noise alone reaches in a group of each size, up to a factor; mean one."""
    made = np.sqrt(sizes) + np.sqrt(2 * np.log(max(sizes.size, 2)))
    return np.asarray(made / made.mean())


def scaled(rows: Rows, roots: list[FloatArray], tables: Sequence[FloatArray]) -> list[FloatArray]:
    """``Z_l C_l`` of all groups, for each of some tables; shape (n_rows, r)."""
    out: list[FloatArray] = [np.empty((len(Z), rows.n_columns)) for Z in tables]
    for which, own in _by_rank(rows.ranks, roots):
        at = rows.starts[which][:, None] + np.arange(own.shape[1])
        for Z, made in zip(tables, out, strict=True):
            made[:, at] = (Z[:, at].transpose(1, 0, 2) @ own).transpose(1, 0, 2)
    return out


def unscaled(rows: Rows, roots: list[FloatArray], W: FloatArray) -> FloatArray:
    """Coefficients of scaled columns as those of the working ones, models as rows; shape (k, r)."""
    out = np.empty_like(W)
    for which, own in _by_rank(rows.ranks, roots):
        at = rows.starts[which][:, None] + np.arange(own.shape[1])
        out[:, at] = np.einsum("lkj,nlj->nlk", own, W[:, at])
    return out


def inverse_roots(forms: Sequence[FloatArray]) -> list[FloatArray]:
    """C with ``C C'`` the inverse, for each of some positive definite matrices; those of one size at once."""
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
    """Groups of one rank with their roots, stacked."""
    made = []
    for rank in set(ranks.tolist()) - {0}:
        which = np.flatnonzero(ranks == rank)
        made.append((which, np.array([roots[i] for i in which])))
    return made
