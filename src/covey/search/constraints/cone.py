"""Constraints: linear inequalities on the coefficients of groups, in working coordinates.

A sleeping group accumulates the norm of its gradient's projection on its cone, the directions in which its coefficients
may move from zero. Awake groups are at the minimiser under their inequalities. Every minimum of a quadratic function
here is the one without constraints, moved by nonnegative multiples of the inequalities that hold it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from covey.layout import offsets, spans
from covey.preprocess import WorkingProblem
from covey.preprocess.factoring import block_diagonal
from covey.validation import FloatArray

__all__ = ["Cone", "Constraint", "Rows"]

# Coefficients this close to a bound, in the units of their column, are at the bound up to round-off error.
ROUNDING = 1e-10

# Inequalities that are broken by more than this, relative to the size of their terms, are not kept.
OFF = 2e-13


@dataclass(frozen=True)
class Constraint:
    """``A b >= low`` for the coefficients b of the columns of some groups, one group after another.

    Attributes
    ----------
    groups : tuple of int
        Positions of the groups. Coefficients of groups that are not in a model are zero.
    A : ndarray, shape (m, n_columns)
    low : ndarray, shape (m,)
    name, text : str
        What is constrained, and how, in the user's words.
    """

    groups: tuple[int, ...]
    A: FloatArray
    low: FloatArray
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class Rows:
    """The inequalities ``G w >= h`` on some columns."""

    G: FloatArray
    h: FloatArray

    @cached_property
    def spans(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first column of each inequality, and the one after its last."""
        from covey.search.constraints.kernels import spans  # compiled with the first constraint

        return spans(self.G)

    def on(self, columns: NDArray[np.intp]) -> Rows:
        """The inequalities on some of the columns, where the others are zero."""
        G = self.G[:, columns]
        some = G.any(axis=1)
        return Rows(G[some], self.h[some])

    def after(self, n_columns: int) -> Rows:
        """The same inequalities after some free columns."""
        return Rows(np.hstack([np.zeros((self.h.size, n_columns)), self.G]), self.h)

    def step(
        self, K: FloatArray, w: FloatArray, gradient: FloatArray, *, is_root: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """The steps from points to the minima of quadratic functions under the inequalities, and the gradients left.

        Parameters
        ----------
        K : ndarray, shape (n_columns, n_columns) or (n_points, n_columns, n_columns)
            The second derivative: one for all points, or one for each. It may be singular up to round-off error.
        w, gradient : ndarray, shape (n_columns, n_points)
            Points, and minus the gradients there.
        is_root : bool
            Whether K is the second derivative's Cholesky factor, above its diagonal.

        Returns
        -------
        steps, left : ndarray, shape (n_columns, n_points)
            `left` is the gradient plus what the inequalities hold it back by: the second derivative times the step.
        """
        from covey.search.constraints.kernels import stepped

        some = np.ascontiguousarray(K if K.ndim == 3 else K[None])
        points = np.ascontiguousarray(w), np.ascontiguousarray(gradient)
        return stepped(some, is_root, *points, np.ascontiguousarray(self.G), self.h, *self.spans)

    def kept(self, W: FloatArray) -> FloatArray:
        """Models of shape (..., k); where more than round-off error breaks an inequality, the nearest that keeps all.

        Where inequalities are on columns of very different lengths, those that hold a minimiser back are nearly the
        same, and too few digits are left to tell them apart.
        """
        slack, size = W @ self.G.T - self.h, np.abs(W) @ np.abs(self.G).T + np.abs(self.h)
        for at in zip(*np.nonzero((slack < -OFF * size).any(axis=-1)), strict=True):
            used = np.flatnonzero(W[at])  # groups that were dropped stay at zero
            W[at][used] = self.on(used).nearest(W[at][used, None])[:, 0]
        return W

    def nearest(self, w: FloatArray) -> FloatArray:
        """The nearest point that keeps the inequalities."""
        return w + self.step(np.eye(len(w)), w, np.zeros_like(w), is_root=True)[0]


class Cone:
    """The constraints of a problem, in working coordinates; those of several outputs hold for each of them.

    Parameters
    ----------
    constraints : sequence of Constraint
        At zero all of them are kept, except those on groups that are always in the model. With several outputs, which
        have scales of their own, all bounds are zero.
    working : WorkingProblem
    scale : ndarray, shape (n_outputs,)
        The coefficients of the columns are those of the working columns, mapped back, times this.
    """

    def __init__(self, constraints: Sequence[Constraint], working: WorkingProblem, scale: FloatArray) -> None:
        self.constraints, self.working, self.scale = list(constraints), working, scale
        self._distinct: dict[tuple[int, tuple[int, ...]], Rows] = {}
        self._placed: dict[tuple[int, int], tuple[NDArray[np.intp], _Placed]] = {}
        self._everywhere = np.arange(working.ranks.size)
        self._flattened: tuple[FloatArray, FloatArray, NDArray[np.intp], NDArray[np.intp]] | None = None

    def factor(self, group: int) -> FloatArray:
        """``T_l``, shape (size, rank)."""
        working = self.working
        T = working.factors[working.factor_starts[group] : working.factor_starts[group + 1]]
        return T.reshape(int(working.layout.sizes[group]), int(working.ranks[group]))

    def working_rows(self, number: int) -> FloatArray:
        """The inequalities of a constraint on the working columns of all its groups, one after another."""
        return np.hstack(list(self._parts(number).values()))

    def _parts(self, number: int) -> dict[int, FloatArray]:
        """The inequalities of a constraint on the working columns of each of its groups."""
        one, first, parts = self.constraints[number], 0, dict[int, FloatArray]()
        for l in one.groups:
            T = self.factor(l)
            parts[l] = one.A[:, first : first + len(T)] @ T * self.scale[0]
            first += len(T)
        return parts

    def columns(self, number: int) -> NDArray[np.intp]:
        """The columns of a constraint, as positions in the groups' layout."""
        return spans(self.working.layout.starts, np.array(self.constraints[number].groups))

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray, FloatArray, list[int]]:
        """Bounds of the columns, in the groups' layout, and what counts as round-off error at a scale of one.

        Also the constraints with inequalities on several columns.
        """
        working = self.working
        n_columns, ranks = working.layout.members.size, np.repeat(working.ranks, working.layout.sizes)
        squares = np.bincount(np.repeat(np.arange(n_columns), ranks), np.square(working.factors), n_columns)
        low, high, rounding = (np.full(n_columns, value) for value in (-np.inf, np.inf, 0.0))
        A, counts = [one.A for one in self.constraints], [len(one.A) for one in self.constraints]
        groups = [l for one in self.constraints for l in one.groups * len(one.A)]
        columns = spans(working.layout.starts, np.array(groups, dtype=np.intp))
        values = np.concatenate([part.ravel() for part in A])
        least = np.concatenate([one.low for one in self.constraints])
        rows = np.repeat(np.arange(least.size), np.repeat([part.shape[1] for part in A], counts))
        rounding[columns] = ROUNDING * np.sqrt(squares[columns])
        n_columns_of = np.bincount(rows, values != 0, least.size)
        coupled = np.unique(np.repeat(np.arange(len(A)), counts)[n_columns_of > 1]).tolist()
        # inequalities on one column
        alone = (values != 0) & (n_columns_of[rows] == 1)
        for ends, better, some in ((low, np.maximum, alone & (values > 0)), (high, np.minimum, alone & (values < 0))):
            better.at(ends, columns[some], least[rows[some]] / values[some])
        return low, high, rounding, coupled

    def snapped(self, groups: Sequence[int], coef: FloatArray) -> FloatArray:
        """Coefficients of some groups, shape (..., n_outputs, n_columns), without round-off error of mapping them."""
        starts = self.working.layout.starts
        at = spans(starts, np.asarray(groups, dtype=np.intp))
        low, high, rounding = (one[at] for one in self._bounds[:3])
        rounding = rounding * self.scale[:, None]
        for bound in (low, high):
            near = rounding + ROUNDING * np.abs(np.where(np.isfinite(bound), bound, 0.0))
            coef = np.where(np.abs(coef - bound) <= near, bound, coef)
        place, inside = {int(j): i for i, j in enumerate(at)}, set(groups)
        for number in self._bounds[3]:
            one = self.constraints[number]
            if not inside.intersection(one.groups):
                continue
            among = [place.get(j, -1) for j in self.columns(number).tolist()]
            known = np.array([i >= 0 for i in among])
            A, columns = one.A[:, known], np.array(among)[known]
            flat = coef.reshape(-1, coef.shape[-1])
            off = flat[:, columns] @ A.T - one.low
            some = (off < 0).any(axis=1)
            flat = flat.copy() if some.any() else flat
            apart = OFF * (np.count_nonzero(A, axis=1) > 1)  # so much inside that round-off error stays inside too
            for model in np.flatnonzero(some):
                margin = apart * (np.abs(A) @ np.abs(flat[model, columns]) + np.abs(one.low))
                flat[model, columns] = Rows(A, one.low + margin).nearest(flat[model, columns, None])[:, 0]
            coef = flat.reshape(coef.shape)
        return np.where(rounding > 0, np.clip(coef, low, high), coef)  # constant columns have no coefficient

    def rows(self, groups: Sequence[int], n_before: int = 0) -> Rows:
        """The inequalities on the working columns of some groups, one after another, after some free columns."""
        from covey.search.constraints.kernels import beside  # compiled with the first constraint

        shared: list[tuple[tuple[int, ...], Rows]] = []
        if self._shared:
            inside = set(groups)
            for number in dict.fromkeys(n for l in groups for n in self._shared.get(l, ())):
                some = tuple(l for l in self.constraints[number].groups if l in inside)
                shared.append((some, self._on(number, some)))
        which, n_more = np.asarray(groups, dtype=np.intp), sum(rows.h.size for _, rows in shared)
        G, h, first, last, ends = beside(*self._flat(), self.working.ranks, which, n_before, n_more)
        if not shared:
            rows = Rows(G, h)
            vars(rows)["spans"] = first, last
            return rows
        place, n = dict(zip(groups, pairwise(ends.tolist()), strict=True)), h.size - n_more
        for some, rows in shared:
            at = np.concatenate([np.arange(*place[l]) for l in some])
            G[n : n + rows.h.size, at], h[n : n + rows.h.size] = rows.G, rows.h
            n += rows.h.size
        return Rows(G, h)

    def _flat(self) -> tuple[FloatArray, FloatArray, NDArray[np.intp], NDArray[np.intp]]:
        """The inequalities on single groups: all G, all h, where those of each group begin, and how many it has."""
        n_groups = self.working.ranks.size
        if self._flattened is None or self._flattened[3].size < n_groups:  # pairs become groups
            counts, sizes = np.zeros(n_groups, dtype=np.intp), np.zeros(n_groups, dtype=np.intp)
            for l, rows in self._own.items():
                counts[l], sizes[l] = rows.G.shape[0], rows.G.size
            ordered = [self._own[l] for l in sorted(self._own)]
            G = np.concatenate([np.empty(0), *(rows.G.ravel() for rows in ordered)])
            h = np.concatenate([np.empty(0), *(rows.h for rows in ordered)])
            self._flattened = G, h, np.stack([offsets(sizes)[:-1], offsets(counts)[:-1]]), counts
        return self._flattened

    @cached_property
    def _own(self) -> dict[int, Rows]:
        """The inequalities on single groups."""
        found: dict[int, list[Constraint]] = {}
        for one in self.constraints:
            if len(one.groups) == 1:
                found.setdefault(one.groups[0], []).append(one)
        return {
            l: _distinct(
                np.concatenate([one.A for one in some]) @ self.factor(l) * self.scale[0],
                np.concatenate([one.low for one in some]),
            )
            for l, some in found.items()
        }

    @cached_property
    def _shared(self) -> dict[int, list[int]]:
        """For each group, the constraints that it shares with others."""
        found: dict[int, list[int]] = {}
        for number, one in enumerate(self.constraints):
            for l in one.groups if len(one.groups) > 1 else ():
                found.setdefault(l, []).append(number)
        return found

    def _on(self, number: int, inside: tuple[int, ...]) -> Rows:
        """The inequalities of a constraint on those of its groups that are in a model."""
        if (number, inside) not in self._distinct:
            parts = self._parts(number)
            G = np.hstack([parts[l] for l in inside])
            self._distinct[number, inside] = _distinct(G, self.constraints[number].low)
        return self._distinct[number, inside]

    @cached_property
    def _asleep(self) -> dict[int, FloatArray]:
        """The inequalities that hold groups back at zero by themselves.

        Those that involve a group before them, as the slope of a curve involves the line, are left out: they depend on
        where that group is.
        """
        found: dict[int, list[FloatArray]] = {l: [rows.G[rows.h == 0]] for l, rows in self._own.items()}
        for number in sorted({n for some in self._shared.values() for n in some}):
            one, parts = self.constraints[number], self._parts(number)
            free = one.low == 0
            for l, part in parts.items():
                found.setdefault(l, []).append(part[free])
                free = free & ~part.any(axis=1)
        joined = {l: some[0] if l not in self._shared else np.concatenate(some) for l, some in found.items()}
        distinct = {l: _distinct(G, np.zeros(len(G))).G if l in self._shared else G for l, G in joined.items()}
        return {l: G for l, G in distinct.items() if len(G)}

    def project(self, products: FloatArray, groups: NDArray[np.intp], starts: NDArray[np.intp]) -> None:
        """Project gradients of sleeping groups, of shape (n_columns, n_models), on their cones, in place.

        Parameters
        ----------
        products : ndarray
        groups : ndarray of int
            The groups whose columns these are, one after another.
        starts : ndarray of int
            Where the columns of each begin.
        """
        key = id(groups), groups.size
        if key not in self._placed:
            # the groups are kept, so that no others get their identity
            self._placed[key] = groups, _Placed.of(self._asleep, groups, starts)
        self._placed[key][1].project(products)

    def norms(self, correlations: FloatArray) -> FloatArray:
        """The norms of projected gradients of all groups, given correlations with the design's columns.

        Shape (n_models, n_groups).
        """
        working = self.working
        T = block_diagonal(working.factors, working.layout.sizes, working.ranks)
        g = np.ascontiguousarray(T.T @ np.asarray(correlations, dtype=float)[:, working.layout.members].T)
        if self._everywhere.size != working.ranks.size:  # pairs have become groups
            self._everywhere = np.arange(working.ranks.size)
        self.project(g, self._everywhere, working.starts)
        sums = np.add.reduceat(np.vstack([g * g, np.zeros((1, g.shape[1]))]), working.starts[:-1], axis=0)
        sums[working.ranks == 0] = 0.0
        return np.asarray(np.sqrt(sums.T))


@dataclass(frozen=True)
class _Placed:
    """The cones of sleeping groups in a table of gradients: columns that may only rise or fall, and larger cones."""

    up: NDArray[np.intp]
    down: NDArray[np.intp]
    first: NDArray[np.intp]
    sizes: NDArray[np.intp]
    cones: list[FloatArray]

    @classmethod
    def of(cls, cones: Mapping[int, FloatArray], groups: NDArray[np.intp], starts: NDArray[np.intp]) -> _Placed:
        """The cones of those groups that have one."""
        sizes, up, down = np.diff(starts), list[int](), list[int]()
        large: list[tuple[int, int, FloatArray]] = []
        for i, l in enumerate(groups.tolist()):
            if l in cones and sizes[i] == 1:
                up += [int(starts[i])] * bool((cones[l] > 0).any())
                down += [int(starts[i])] * bool((cones[l] < 0).any())
            elif l in cones:
                large.append((int(starts[i]), int(sizes[i]), cones[l]))
        first, widths = (np.array([one[k] for one in large], dtype=np.intp) for k in (0, 1))
        return cls(np.array(up, dtype=np.intp), np.array(down, dtype=np.intp), first, widths, [G for *_, G in large])

    @cached_property
    def _flat(self) -> tuple[FloatArray, NDArray[np.intp], FloatArray, NDArray[np.intp]]:
        inner = [G @ G.T for G in self.cones]
        return (
            np.concatenate([G.ravel() for G in self.cones]), np.cumsum([0, *(G.size for G in self.cones)]),
            np.concatenate([M.ravel() for M in inner]), np.cumsum([0, *(M.size for M in inner)]),
        )  # fmt: skip

    def project(self, products: FloatArray) -> None:
        """Project gradients of shape (n_columns, n_models), in place."""
        products[self.up] = np.maximum(products[self.up], 0.0)
        products[self.down] = np.minimum(products[self.down], 0.0)
        if self.cones:
            from covey.search.constraints.multipliers import project

            project(products, self.first, self.sizes, *self._flat)


def _distinct(G: FloatArray, h: FloatArray) -> Rows:
    """Inequalities of length one, and of parallel ones the tightest; those without columns are left out."""
    norms = np.sqrt((G * G).sum(axis=1))
    if not norms.all():
        G, h, norms = G[norms > 0], h[norms > 0], norms[norms > 0]
    G, h = G / norms[:, None], h / norms
    if len(h) > 1 and np.abs(G @ G.T - np.eye(len(h))).max() > 1 - 1e-9:
        parallel = np.unique(np.round(G, 12) + 0.0, axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((-h, parallel))
        first = np.append(True, np.diff(parallel[order]) != 0)
        kept = np.sort(order[first])
        G, h = G[kept], h[kept]
    return Rows(np.ascontiguousarray(G), h)
