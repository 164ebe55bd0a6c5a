"""Backward elimination: starting from all groups, drop the one that costs least for its size, again and again.

A group that is a parent of others stays until they have been dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dposv

from covey.layout import alike
from covey.search.quadratic import least_norm
from covey.validation import FloatArray

__all__ = ["Eliminated", "eliminate", "eliminate_all"]

# The parents of each group, as positions among the groups.
Parents = Sequence[Sequence[int]]
# A quadratic function: K, c, the starts of the groups, and their parents.
QuadraticForm = tuple[FloatArray, FloatArray, NDArray[np.intp], Parents]
Eliminated = tuple[list[int], FloatArray]

# An inverse of more than SMALL columns is cut down when fewer than this share of them are left.
COMPACT, SMALL = 0.7, 256

# Small problems with equal numbers of groups are solved together, every group padded to the size of the largest, if
# the padded problem has at most TOGETHER columns and at most FILLED times as many as the original.
TOGETHER, FILLED = 160, 1.6

# Added to the Gram matrix's diagonal, relative to it, so that it stays invertible when groups nearly repeat each other.
# Dropping a group loses twice the digits that the inverse has lost, so more is added when columns repeat others and
# their variance inflation exceeds LARGEST: a share of the groups' own blocks, so that neither the order of a group's
# columns nor other columns that span the same decide.
JITTER, LARGEST, MORE_JITTER = 1e-9, 1e6, 1e-5

# The inverse of a column's square overflows if the square is below this.
SMALLEST = 1e-300

# Increases of the objective this close, relative to each other or to all that the groups explain, are a tie, and the
# group that woke last is dropped: round-off error must not decide. Fewer digits are left when columns repeat others.
TIE, REPEATED_TIE, NO_RISE = 1e-6, 1e-3, 1e-12

# Singular values of a Gram matrix below this share of the largest are round-off error.
ROUNDING = 1e-12


def eliminate(
    K: FloatArray,
    c: FloatArray,
    starts: NDArray[np.intp],
    parents: Parents = (),
    n_always: int = 0,
    *,
    units: FloatArray | None = None,
    only_order: bool = False,
) -> Eliminated:
    """Drop groups one by one, each time the one whose removal raises ``tr(w'Kw/2 - c'w)`` least in its unit.

    Parameters
    ----------
    K, c : ndarray, shape (k, k) and (k, n_outputs)
        A Gram matrix and the correlations.
    starts : ndarray of int, shape (n_groups + 1,)
        Where the columns of each group begin.
    parents : sequence of sequences of int
        The parents of each group; empty if no group has any.
    n_always : int
        How many of the first groups are never dropped.
    units : ndarray, shape (n_groups,), optional
        What the increase for each group is divided by; by default its dimension.
    only_order : bool
        Whether the minimisers are not needed and may have few digits.

    Returns
    -------
    dropped : list of int
        The groups in the order in which they were dropped.
    W : ndarray, shape (n_groups - n_always + 1, k, n_outputs)
        The minimiser before each drop and after the last one.
    """
    sizes = np.diff(starts)
    units = np.maximum(sizes, 1) if units is None else units
    diagonal = np.where(np.diag(K) > SMALLEST, np.diag(K), 1.0)
    inverse = np.asfortranarray(np.linalg.inv(K + np.diag(JITTER * diagonal)))
    repeated = bool((np.diag(inverse) * diagonal).max(initial=0.0) > LARGEST)
    if repeated:
        inverse = np.asfortranarray(np.linalg.inv(K + np.diag(JITTER * diagonal) + MORE_JITTER * _blocks(K, starts)))
    w = inverse @ c
    tie, nothing = REPEATED_TIE if repeated else TIE, NO_RISE * float(np.nan_to_num(np.abs((c * w).sum()), nan=0.0))
    dropped: list[int] = []
    W = np.zeros((sizes.size - n_always + 1, *c.shape))
    W[0] = w
    # the columns in the inverse, and the position of each group in it
    kept, place = np.arange(len(c)), starts[:-1].copy()
    classes = [_SizeClass(size, place, np.flatnonzero(sizes[n_always:] == size) + n_always) for size in set(sizes)]
    children = _count_children(parents, sizes.size)
    left = len(c)
    for step in range(1, len(W)):
        # groups whose cost is NaN are dropped first
        rises = [
            np.nan_to_num(one.rises(inverse, w) / units[one.groups], nan=0.0) + _closed(children[one.groups])
            for one in classes
        ]
        least = min(float(values.min(initial=np.inf)) for values in rises)
        most = least + tie * abs(least) + nothing  # round-off error can make an increase of zero negative
        group = max(int(one.groups[rise <= most].max(initial=-1)) for one, rise in zip(classes, rises, strict=True))
        for one in classes:
            one.remove(group)
        children[list(parents[group]) if parents else []] -= 1
        dropped.append(group)
        at = slice(int(place[group]), int(place[group] + sizes[group]))
        side = inverse[:, at].copy()
        gain, failed = dposv(side[at], side.T)[1:] if sizes[group] else (side.T, 0)
        if failed:  # columns that nearly repeat each other
            gain = np.linalg.solve(side[at], side.T)
        w -= gain.T @ w[at]
        w[at] = 0.0
        W[step, kept] = w
        # rows and columns of the group become zero up to round-off error, and are not read again
        inverse = dgemm(-1.0, side, gain, beta=1.0, c=inverse, overwrite_c=1)
        left -= int(sizes[group])
        if kept.size > SMALL and left < COMPACT * kept.size:
            alive = np.ones(kept.size, dtype=bool)
            alive[[j for g in dropped for j in range(place[g], place[g] + sizes[g]) if place[g] >= 0]] = False
            inverse = np.asfortranarray(inverse[np.ix_(alive, alive)])
            kept, w = kept[alive], w[alive]
            before = np.cumsum(alive) - alive
            place = np.where(np.isin(np.arange(sizes.size), dropped), -1, before[np.minimum(place, alive.size - 1)])
            classes = [_SizeClass(one.size, place, one.groups) for one in classes]
    if repeated and not only_order:  # solve again without the added diagonal
        alive = np.ones(len(c), dtype=bool)
        for step in range(len(W)):
            if step:
                alive[starts[dropped[step - 1]] : starts[dropped[step - 1] + 1]] = False
            W[step] = 0.0
            W[step, alive] = least_norm(K[np.ix_(alive, alive)], c[alive], ROUNDING, diagonal[alive])[0]
    return dropped, W


def _blocks(K: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """The blocks of the groups on the diagonal of K, and zeros elsewhere."""
    group = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    return np.where(group[:, None] == group, K, 0.0)


def eliminate_all(
    forms: Sequence[QuadraticForm],
    n_always: int = 0,
    only_order: Sequence[bool] | None = None,
    units: Sequence[FloatArray] | None = None,
) -> list[Eliminated]:
    """`eliminate` for several quadratic functions; small ones with equal numbers of groups run in lockstep."""
    only_order = [False] * len(forms) if only_order is None else only_order
    units = [np.maximum(np.diff(starts), 1.0) for _, _, starts, _ in forms] if units is None else units
    out: list[Eliminated | None] = [None] * len(forms)
    for _, which in alike(np.array([starts.size - 1 for _, _, starts, _ in forms], dtype=np.intp)):
        some = [forms[i] for i in which]
        size = max(int(np.diff(starts).max(initial=0)) for _, _, starts, _ in some)
        width = size * (some[0][2].size - 1)
        if len(some) > 1 and 0 < width <= min(TOGETHER, FILLED * min(len(c) for _, c, _, _ in some)):
            try:
                results = _eliminate_together(some, size, n_always, np.array([units[i] for i in which]))
            except np.linalg.LinAlgError:  # columns that repeat others
                continue
            for i, result in zip(which, results, strict=True):
                out[i] = result
    return [
        eliminate(*form, n_always, units=unit, only_order=some) if done is None else done
        for form, done, some, unit in zip(forms, out, only_order, units, strict=True)
    ]


def _eliminate_together(
    forms: Sequence[QuadraticForm], size: int, n_always: int, units: FloatArray
) -> list[Eliminated]:
    """Eliminate in several problems with equal numbers of groups, every group padded with columns of no effect."""
    n, m, o = len(forms), forms[0][2].size - 1, forms[0][1].shape[1]
    groups, within, each = np.arange(m), np.arange(size), np.arange(n)[:, None]
    K, c = np.zeros((n, m * size, m * size)), np.zeros((n, m * size, o))
    K[:, np.arange(m * size), np.arange(m * size)] = 1.0
    sizes: FloatArray = np.array([np.diff(starts) for _, _, starts, _ in forms], dtype=float)
    children = np.array([_count_children(parents, m) for _, _, _, parents in forms])
    places = [(groups[:, None] * size + within)[within < given[:, None]] for given in sizes]
    for i, (one_K, one_c, _, _) in enumerate(forms):
        diagonal = np.where(np.diag(one_K) > SMALLEST, np.diag(one_K), 1.0)
        K[i][places[i][:, None], places[i]] = one_K + np.diag(JITTER * diagonal)
        c[i, places[i]] = one_c
    inverse = np.linalg.inv(K)
    if (inverse.diagonal(axis1=1, axis2=2) * K.diagonal(axis1=1, axis2=2)).max() > LARGEST:
        raise np.linalg.LinAlgError("Too few digits are left for repeated steps.")
    w = inverse @ c
    nothing = NO_RISE * np.nan_to_num(np.abs((c * w).sum(axis=(1, 2))), nan=0.0)
    W = np.zeros((n, m - n_always + 1, m * size, o))
    W[:, 0] = w
    dropped = np.empty((n, m - n_always), dtype=np.intp)
    # infinite for groups that must not be dropped, or have been
    closed = np.zeros((n, m))
    closed[:, :n_always] = np.inf
    blocked = inverse.reshape(n, m, size, m, size)
    for step in range(m - n_always):
        by_group = w.reshape(n, m, size, o).transpose(1, 0, 2, 3)
        blocks = blocked[:, groups, :, groups, :]
        if size == 1:
            rises = (by_group[:, :, 0] ** 2).sum(axis=2) / blocks[:, :, 0, 0]
        else:
            rises = (by_group * np.linalg.solve(blocks, by_group)).sum(axis=(2, 3))
        costs = np.nan_to_num(rises.T / units, nan=0.0) + closed + _closed(children)
        least = costs.min(axis=1)
        most = least + TIE * np.abs(least) + nothing
        group = m - 1 - (costs <= most[:, None])[:, ::-1].argmax(axis=1)
        dropped[:, step] = group
        closed[each[:, 0], group] = np.inf
        for i, (_, _, _, parents) in enumerate(forms):
            children[i, list(parents[group[i]]) if parents else []] -= 1
        at = group[:, None] * size + within
        side = inverse[each, at]
        block = blocks[group, each[:, 0]]
        gain = side / block if size == 1 else np.linalg.solve(block, side)
        w -= gain.transpose(0, 2, 1) @ w[each, at]
        w[each, at] = 0.0
        inverse -= side.transpose(0, 2, 1) @ gain
        # rows and columns of the group become zero; ones keep its block invertible
        inverse[each, at, at] = 1.0
        W[:, step + 1] = w
    return [(dropped[i].tolist(), W[i][:, at]) for i, at in enumerate(places)]


def _count_children(parents: Parents, n_groups: int) -> NDArray[np.intp]:
    """The number of children of each group."""
    return np.bincount([p for some in parents for p in some], minlength=n_groups).astype(np.intp)


def _closed(children: NDArray[np.intp]) -> FloatArray:
    """Infinite for groups that have children, and so must not be dropped."""
    return np.where(children > 0, np.inf, 0.0)


class _SizeClass:
    """The remaining groups of one size, so that their small systems are solved in one call."""

    def __init__(self, size: int, starts: NDArray[np.intp], groups: NDArray[np.intp]) -> None:
        self.size, self.groups = int(size), groups
        self.at = starts[groups][:, None] + np.arange(self.size)

    def rises(self, inverse: FloatArray, w: FloatArray) -> FloatArray:
        """The increase of the objective if a group were dropped, for each group."""
        if self.groups.size == 0 or self.size == 0:
            return np.zeros(self.groups.size)
        coef = w[self.at]
        if self.size == 1:
            return np.asarray((coef * coef).sum(axis=2)[:, 0] / inverse[self.at, self.at][:, 0])
        blocks = inverse[self.at[:, :, None], self.at[:, None, :]]
        return np.asarray(np.einsum("ijk,ijk->i", coef, np.linalg.solve(blocks, coef)))

    def remove(self, group: int) -> None:
        """Take a group out if it is one of these."""
        left = self.groups != group
        if not left.all():
            self.groups, self.at = self.groups[left], self.at[left]
