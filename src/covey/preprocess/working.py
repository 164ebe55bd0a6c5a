"""Working coordinates (centred, scaled, orthonormal within groups), and the map back to the user's.

Paths are computed on ``Z_l = (X_l - mean_l) T_l`` and ``(y - mean) / scale``. X itself is never copied: the small
factor ``T_l`` of each group, of shape (p_l, rank_l), is applied to correlations and Gram rows instead, so the same code
serves every kind of design. A direction in which a group does not vary gets no column in ``T_l``; this handles
constant, zero and duplicate columns.

With row weights q that add up to one, the inner product is ``<a, b> = sum_i q_i a_i b_i``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

from covey.designs import Design, as_design
from covey.groups import Groups
from covey.layout import Layout, alike, gathered, group_tiles, offsets, run, scatter, spans
from covey.preprocess.factoring import Standardize, block_diagonal, check_standardize, group_factors, times_factors
from covey.validation import Array, FloatArray, as_numbers, as_response, as_sample_weight

__all__ = ["WorkingProblem", "noise_weights", "prepare", "read_weights", "standard_response"]

# Correlations that are converted to group norms at a time: half a MiB.
NORMS_AT_A_TIME = 2**16

# Outside these, squares of a column overflow or underflow, or are about to.
SMALLEST_VARIANCE, LARGEST_VARIANCE = 1e-200, 1e200

# A power of ten: larger coefficients are about to overflow.
LARGEST_COEFFICIENT = 305

# Within these limits, squared errors of the response, summed over rows, neither overflow nor underflow.
SMALLEST_RESPONSE, LARGEST_RESPONSE = 1e-152, 1e152


@dataclass
class WorkingProblem:
    """Minimise ``1/2 <y~ - Z w, y~ - Z w>`` over w, where y~ and Z are in working coordinates."""

    # X, the groups of its columns, and the row weights (adding up to one)
    design: Design
    layout: Layout
    q: FloatArray
    mean: FloatArray  # column means in the contiguous layout; zeros without an intercept; shape (p,)
    factors: FloatArray  # ``T_l`` row by row, one after another
    ranks: NDArray[np.intp]  # the number of working columns of each group
    y_mean: float
    y_scale: float
    response: FloatArray  # y~; shape (n,)
    correlation: FloatArray  # ``Z' diag(q) y~``, the correlations at w = 0; shape (r,)
    # the weights of the groups in the race; 1 until others are set; shape (n_groups,)
    weights: FloatArray = field(init=False)
    # where the working columns and the factor of each group start
    starts: NDArray[np.intp] = field(init=False)
    factor_starts: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = np.ones(self.ranks.size)
        self._find_starts()

    def _find_starts(self) -> None:
        self.starts, self.factor_starts = offsets(self.ranks), offsets(self.ranks * self.layout.sizes)

    @property
    def n_columns(self) -> int:
        """The number of working columns, at most p."""
        return int(self.starts[-1])

    def append(self, other: WorkingProblem, columns: NDArray[np.intp]) -> None:
        """Add groups, given their working problem and the columns of the design that they have here."""
        before = self.layout
        starts = np.concatenate([before.starts, before.starts[-1] + other.layout.starts[1:]])
        self.layout = Layout(np.concatenate([before.members, columns]), starts)
        for name in ("mean", "factors", "ranks", "correlation"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self._find_starts()

    def group_norms(self, g: Array) -> FloatArray:
        """The norm of a vector in working coordinates on each group; zero for a group without working columns."""
        squares = np.add.reduceat(np.append(g * g, 0.0), self.starts[:-1])
        return np.where(self.ranks > 0, np.sqrt(squares), 0.0)

    def tiles(self, n_models: int) -> Iterator[tuple[slice, slice | Array]]:
        """Neighbouring groups, as many as have their correlations with so many models in cache, and their columns."""
        starts = self.layout.starts
        for first, last in group_tiles(starts, NORMS_AT_A_TIME // max(n_models, 1)):
            columns = self.layout.members[starts[first] : starts[last]]
            yield slice(first, last), run(columns) or columns

    def norms_of(self, groups: slice, correlations: Array) -> NDArray[np.float64]:
        """Norms in working coordinates of some neighbouring groups, given correlations with their columns."""
        sizes, ranks, first = self.layout.sizes[groups], self.ranks[groups], self.layout.starts[groups]
        out = np.zeros((len(correlations), sizes.size))
        for (size, rank), at in alike(sizes, ranks):
            if rank == 0:
                continue
            T = gathered(self.factors, self.factor_starts[groups][at], size * rank).reshape(-1, size, rank)
            places = (first[at][:, None] - first[0] + np.arange(size)).ravel()
            block = correlations[:, run(places) or places].reshape(len(out), at.size, size).transpose(1, 0, 2)
            g = block.astype(np.float64, copy=False) @ T
            out[:, at] = np.sqrt(np.einsum("lmk,lmk->ml", g, g))
        return out

    def all_norms(self, correlations: Array) -> NDArray[np.float64]:
        """Group norms in working coordinates, given correlations with the design's columns; (m, n_groups)."""
        out = np.empty((len(correlations), self.ranks.size))
        for groups, columns in self.tiles(len(correlations)):
            out[:, groups] = self.norms_of(groups, correlations[:, columns])
        return out

    def working_columns(self, which: NDArray[np.intp]) -> FloatArray:
        """``Z_l`` of some groups, side by side; shape (n, sum of ranks)."""
        at = spans(self.layout.starts, which)
        mean = self.mean[at]
        X = self.design.take(self.layout.members[at])
        if mean.any():
            X = X - mean
        Z = times_factors(X, self.factors_of(which), self.layout.sizes[which], self.ranks[which])
        if mean.any():
            Z -= self.q @ Z  # round-off error left in the mean would be multiplied by the means of X in products
        return Z

    def factors_of(self, which: NDArray[np.intp]) -> FloatArray:
        """``T_l`` of some groups, row by row, one after another."""
        return self.factors[spans(self.factor_starts, which)]

    def gram_rows(self, which: list[int]) -> Array:
        """``Z_l' diag(q) Z`` for some groups, stacked; shape (sum of ranks, r)."""
        Z = self.working_columns(np.array(which, dtype=np.intp))
        # Z has mean zero, so the other side does not have to be centred
        correlations = self.design.correlate(Z.T * self.q)[:, self.layout.members]
        factors = block_diagonal(self.factors, self.layout.sizes, self.ranks)
        return np.ascontiguousarray((factors.T @ correlations.T).T)

    def combination(self, which: list[int]) -> tuple[Array, Array, Array]:
        """The columns, loadings and offset that give the working columns of some groups."""
        groups = np.array(which, dtype=np.intp)
        at = spans(self.layout.starts, groups)
        sizes, ranks = self.layout.sizes[groups], self.ranks[groups]
        wide, first = np.repeat(ranks, sizes), np.repeat(offsets(ranks)[:-1], sizes)
        row = np.repeat(np.arange(at.size), wide)
        loadings = np.zeros((at.size, int(ranks.sum())))
        loadings[row, np.arange(row.size) - (offsets(wide)[:-1] - first)[row]] = self.factors_of(groups)
        return self.layout.members[at], loadings, self.mean[at] @ loadings

    def from_user(self, which: NDArray[np.intp], coef: Array) -> FloatArray:
        """The working coefficients of some groups, group by group, closest to the user's ``coef`` of shape (p,)."""
        ranks, sizes, factors = self.ranks[which], self.layout.sizes[which], self.factors_of(which)
        wanted = np.asarray(coef, dtype=float)[self.layout.members[spans(self.layout.starts, which)]] / self.y_scale
        columns, starts, factor_starts = offsets(sizes), offsets(ranks), offsets(sizes * ranks)
        out = np.empty(int(starts[-1]))
        # groups of the same shape at once: the factors have full rank
        for (size, rank), at in alike(sizes, ranks):
            if rank == 0:
                continue
            T = gathered(factors, factor_starts[at], size * rank).reshape(-1, size, rank)
            # in units of each column: entries of 1e150 would swamp entries of 1e-150
            unit = np.abs(T).max(axis=2)
            unit[unit == 0] = 1.0
            Q, R = np.linalg.qr(T / unit[..., None])
            b = gathered(wanted, columns[at], size) / unit
            w = np.linalg.solve(R, (b[:, None, :] @ Q).transpose(0, 2, 1))
            scatter(out, starts[at], w[..., 0])
        return out


def prepare(
    X: object,
    y: ArrayLike,
    groups: object = None,
    *,
    standardize: Standardize = "group",
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
) -> tuple[WorkingProblem, Groups]:
    """Convert a regression problem to working coordinates, in one pass over X.

    `standardize` says how: "group" orthonormalises within each group; "column" scales each column to unit variance;
    "block" scales each group as a block, so that its columns have unit variance on average; False leaves the columns
    alone (up to one constant for all of them, which makes the largest variance 1 and the result equivariant to units).
    """
    check_standardize(standardize)
    design = as_design(X)
    p = design.shape[1]
    groups = Groups.coerce(groups, p, design.columns)
    q = as_sample_weight(sample_weight, design.shape[0])
    unit_y, y_mean, y_scale = standard_response(as_response(y, design.shape[0]), q, centre=fit_intercept)

    scale = np.ones(p)
    moments = design.moments(unit_y, q, groups.members, groups.starts, centre=fit_intercept, scale=scale)
    odd = ~((moments.variance > SMALLEST_VARIANCE) & (moments.variance < LARGEST_VARIANCE))
    if odd.any() and (largest := design.largest()[groups.members])[odd].any():
        # scaling by a power of two is exact
        scale = np.exp2(-np.frexp(np.where(largest > 0, largest, 1.0))[1].clip(-1000, 1000).astype(float))
        moments = design.moments(unit_y, q, groups.members, groups.starts, centre=fit_intercept, scale=scale)
    factors, ranks = group_factors(design, moments, groups, q, scale, standardize)
    largest_factor = float(max(factors.max(initial=0.0), -factors.min(initial=0.0)))
    if largest_factor and np.log10(largest_factor) + np.log10(y_scale) > LARGEST_COEFFICIENT:
        raise ValueError(
            f"{design.name} has columns that vary so little compared with y that their coefficients would overflow "
            f"(above 1e{LARGEST_COEFFICIENT}): change the units of {design.name} or y, or drop these columns."
        )
    # factors apply to unscaled columns, but the moments were computed from scaled ones
    correlation = times_factors((moments.correlation / scale)[None, :], factors, groups.sizes, ranks)[0]
    # a copy, because numba would compile its functions again for the read-only arrays of the groups
    layout = Layout(groups.members, groups.starts.copy())
    problem = WorkingProblem(design, layout, q, moments.mean, factors, ranks, y_mean, y_scale, unit_y, correlation)
    return problem, groups


def standard_response(y: FloatArray, q: FloatArray, *, centre: bool) -> tuple[FloatArray, float, float]:
    """The response, centred and scaled to unit mean square, without loss of digits for y of 1e150 or 1e-150."""
    used = np.where(q > 0, y, 0.0)
    largest = float(np.abs(used).max())
    if largest == 0:
        return np.zeros_like(y), 0.0, 1.0
    if largest > LARGEST_RESPONSE:
        raise ValueError(f"y has values of {largest:.3g}, whose squares overflow: change the units.")
    unit = np.where(q > 0, y / largest, 0.0)
    mean = float(q @ unit) if centre else 0.0
    unit = np.where(q > 0, unit - mean, 0.0)
    size = float(np.sqrt(q @ (unit * unit)))
    # the round-off error of a constant response is not a signal
    if size <= 8 * np.finfo(float).eps * abs(mean):
        return np.zeros_like(y), mean * largest, 1.0
    if size * largest < SMALLEST_RESPONSE:
        raise ValueError(f"y varies by only {size * largest:.3g}, whose square underflows: change the units.")
    return unit / size, mean * largest, size * largest


def noise_weights(ranks: FloatArray, first: float, n_groups: float) -> FloatArray:
    """The norm that pure noise exceeds in about `first` of `n_groups` groups, if all groups had this dimension.

    In working coordinates, n times the squared norm of a group's correlation with noise is chi-squared with as many
    degrees of freedom as the group has dimensions. Its mean grows with the dimension faster than its spread, so weights
    by the mean (the square root of the dimension) would favour groups of one column.
    """
    distinct, position = np.unique(ranks, return_inverse=True)
    share = min(first / (n_groups + 1), 0.5)
    return np.asarray(np.sqrt(chdtri(distinct, share))[position])


def read_weights(
    group_weights: ArrayLike | None,
    ranks: Array,
    first: float = 1.0,
    families: Array | None = None,
    counts: Array | None = None,
) -> NDArray[np.float64]:
    """Weights of mean one for groups of these dimensions: a group of weight 2 wakes half as fast.

    With "noise", they are fair to groups of all sizes until about `first` groups are awake, and fair between families:
    one pair among a thousand must stand out more than one variable among ten. An entry of `ranks` may stand for several
    groups, as many as `counts` says.
    """
    if group_weights is None:
        return np.ones(ranks.size)
    if isinstance(group_weights, str):
        if group_weights not in ("noise", "sqrt"):
            raise ValueError(
                f"group_weights must be 'noise', 'sqrt', None or one number per group, not {group_weights!r}."
            )
        sizes = np.maximum(ranks, 1).astype(float)
        named = np.sqrt(sizes)
        if group_weights == "noise":
            families = np.zeros(ranks.size, dtype=np.intp) if families is None else np.asarray(families)
            for family in np.unique(families):
                some = families == family
                n_groups = some.sum() if counts is None else counts[some].sum()
                named[some] = noise_weights(sizes[some], first, n_groups)
        return (named / np.average(named, weights=counts)).astype(np.float64)
    weights = as_numbers(group_weights, "group_weights", finite=False)
    if weights.shape != (ranks.size,):
        raise ValueError(f"group_weights has shape {weights.shape}; there are {ranks.size} groups.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        raise ValueError(f"group_weights must be above 0 and finite; group {bad[0]} has {weights[bad[0]]:g}.")
    largest = weights.max()
    return (weights / largest) / (weights / largest).mean()
