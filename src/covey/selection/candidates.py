"""Candidates of one split for the squared loss: sets of groups by elimination, fitted by least squares and ridges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.limit.cleaning import eliminate
from covey.limit.least_squares import DEPENDENT, LeastSquares, NormalEquations
from covey.limit.ridges import Penalties, ridge_models
from covey.selection.recipe import Cleaned
from covey.validation import FloatArray

__all__ = ["CleanedModels", "cleaned_models", "is_tried"]

# Sizes of sets on which ridges are tried grow by this factor: neighbours differ by less than ridges do.
SIZE_RATIO = 1.2


@dataclass(frozen=True)
class CleanedModels:
    """Models of one split in working coordinates.

    Attributes
    ----------
    recipes : list of Cleaned
    W, levels : ndarray, shape (n_models, n_outputs, k) and (n_models, n_outputs)
        Coefficients and intercepts.
    columns : ndarray of int, shape (k,)
        Of the table of the near groups.
    sizes : list of int
        The number of columns of each model.
    sets : dict
        The groups of each recipe without a ridge, by their places on the path.
    separated : frozenset of Cleaned
        Recipes without a ridge whose minimum lies at infinity, so that they have a small one after all.
    """

    recipes: list[Cleaned]
    W: FloatArray
    levels: FloatArray
    columns: NDArray[np.intp]
    sizes: list[int]
    sets: dict[Cleaned, list[int]]
    separated: frozenset[Cleaned] = frozenset()


def cleaned_models(
    objective: LeastSquares,
    groups: Sequence[int],
    round_: int,
    n_always: int,
    prefixes: Sequence[int],
    ridges: Sequence[float],
    penalties: Penalties,
) -> CleanedModels:
    """All candidates of a path.

    Parameters
    ----------
    objective : LeastSquares
        At the end of the path.
    groups : sequence of int
        The awake groups among all groups, in order.
    round_ : int
    n_always : int
        How many of the first groups are in every model and not penalised.
    prefixes : sequence of int
        Lengths of the path to eliminate from.
    ridges : sequence of float
    penalties : Penalties
    """
    deficient = objective.deficient
    whole = objective.normal_equations(dependent=deficient)
    k = whole.c.size
    recipes: list[Cleaned] = []
    blocks: list[FloatArray] = []
    sizes: list[int] = []
    sets: dict[Cleaned, list[int]] = {}
    M = _penalty(objective, whole, groups, n_always, penalties) if ridges else None
    for prefix in prefixes:
        equations = whole.first(prefix)
        dropped, W = eliminate(equations.K, equations.c, equations.starts, n_always)
        left = list(range(prefix))
        nested = [left]
        for group in dropped:
            left = [l for l in left if l != group]
            nested.append(left)
        own = [Cleaned(round_, prefix, len(kept) - n_always, 0.0) for kept in nested]
        counts = [int(np.diff(equations.starts)[kept].sum()) for kept in nested]
        if deficient:
            # what was a combination of others need not be one of those that are left
            W, counts = _refitted(equations, nested)
        recipes += own
        sizes += counts
        sets.update(zip(own, nested, strict=True))
        blocks.append(_widened(W, k))
        if M is None:
            continue
        tried = [i for i, kept in enumerate(nested) if len(kept) > n_always and is_tried(len(kept) - n_always, i)]
        columns = [equations.positions(nested[i]) for i in tried]
        size = equations.c.size
        blocks.append(_widened(ridge_models(equations, M[:size, :size], columns, ridges), k))
        recipes += [own[i]._replace(ridge=ridge) for i in tried for ridge in ridges]
        sizes += [counts[i] for i in tried for _ in ridges]
    W = np.concatenate(blocks)
    return CleanedModels(recipes, W[:, None, :], whole.intercepts(W)[:, None], whole.columns, sizes, sets)


def is_tried(size: int, place: int) -> bool:
    """Whether ridges are tried on a set of this size: all of a prefix, and sizes along a geometric series."""
    step = round(np.log(size) / np.log(SIZE_RATIO))
    return place == 0 or any(round(SIZE_RATIO**i) == size for i in (step - 1, step, step + 1))


def _penalty(
    objective: LeastSquares, equations: NormalEquations, groups: Sequence[int], n_always: int, penalties: Penalties
) -> FloatArray:
    """The quadratic form of a ridge on the groups of a path; zero on those that are always in."""
    starts = objective.rows.starts
    within = equations.columns - starts[np.searchsorted(starts, equations.columns, side="right") - 1]
    own = [within[a:b] for a, b in zip(equations.starts[:-1], equations.starts[1:], strict=True)]
    M = penalties.block(groups, own)
    first = int(equations.starts[n_always])
    M[:first, :first] = 0.0
    return M


def _refitted(equations: NormalEquations, nested: Sequence[Sequence[int]]) -> tuple[FloatArray, list[int]]:
    """Least squares on sets of groups with columns that depend on each other, and the rank of each set."""
    W, ranks = np.zeros((len(nested), equations.c.size)), []
    for w, kept in zip(W, nested, strict=True):
        at = equations.positions(kept)
        w[at], _, rank, _ = np.linalg.lstsq(equations.K[np.ix_(at, at)], equations.c[at], rcond=DEPENDENT)
        ranks.append(int(rank))
    return W, ranks


def _widened(W: FloatArray, k: int) -> FloatArray:
    out = np.zeros((len(W), k))
    out[:, : W.shape[1]] = W
    return out
