"""Candidates of all splits for squared loss: sets of groups by elimination, fitted by least squares and ridges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from covey.limit.cleaning import eliminate_all
from covey.limit.least_squares import DEPENDENT, LeastSquares, NormalEquations
from covey.limit.ridges import Penalties, ridge_models
from covey.progress import tell
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
    objectives: Sequence[LeastSquares],
    groups: Sequence[Sequence[int]],
    round_: int,
    n_always: int,
    prefixes: Sequence[Sequence[int]],
    ridges: Sequence[float],
    penalties: Penalties,
) -> list[CleanedModels]:
    """All candidates of the paths of some splits.

    Parameters
    ----------
    objectives : sequence of LeastSquares
        At the ends of the paths.
    groups : sequence of sequences of int
        The awake groups among all groups, in order.
    round_ : int
    n_always : int
        How many of the first groups are in every model and not penalised.
    prefixes : sequence of sequences of int
        Lengths of each path to eliminate from.
    ridges : sequence of float
    penalties : Penalties
    """
    wholes = [objective.normal_equations(dependent=objective.deficient) for objective in objectives]
    begun = [[whole.first(m) for m in lengths] for whole, lengths in zip(wholes, prefixes, strict=True)]
    done = iter(eliminate_all([(one.K, one.c, one.starts) for own in begun for one in own], n_always))
    made = []
    for objective, own, whole, parts in zip(objectives, groups, wholes, begun, strict=True):
        M = _penalty(objective, whole, own, n_always, penalties) if ridges else None
        eliminated = [(equations, *next(done)) for equations in parts]
        made.append(_models(whole, eliminated, objective.deficient, round_, n_always, ridges, M))
        tell(f"candidates of round {round_ + 1}", "fit", len(made), len(objectives))
    return made


def _models(
    whole: NormalEquations,
    eliminated: Sequence[tuple[NormalEquations, list[int], FloatArray]],
    deficient: bool,
    round_: int,
    n_always: int,
    ridges: Sequence[float],
    M: FloatArray | None,
) -> CleanedModels:
    """The candidates of one split, given the groups in the order in which they were dropped from each prefix."""
    recipes: list[Cleaned] = []
    sizes: list[int] = []
    sets: dict[Cleaned, list[int]] = {}
    n_sets = [len(dropped) + 1 for _, dropped, _ in eliminated]
    tried = [[i for i in range(n - 1) if is_tried(n - 1 - i, i)] if M is not None else [] for n in n_sets]
    n_models = sum(n + len(own) * len(ridges) for n, own in zip(n_sets, tried, strict=True))
    models, row = np.zeros((n_models, whole.c.size)), 0
    for (equations, dropped, W), n, with_ridges in zip(eliminated, n_sets, tried, strict=True):
        prefix, k = equations.starts.size - 1, equations.c.size
        left = list(range(prefix))
        nested = [left]
        for group in dropped:
            left = [l for l in left if l != group]
            nested.append(left)
        own, shrunk = _recipes(round_, prefix, n, tuple(with_ridges), tuple(ridges))
        lengths = np.diff(equations.starts)
        counts = (k - np.cumsum([0, *lengths[dropped]])).tolist()
        if deficient:
            # what was a combination of others need not be one of those that are left
            W, counts = _refitted(equations, nested)
        recipes += own
        sizes += counts
        sets.update(zip(own, nested, strict=True))
        models[row : row + n, :k] = W
        row += n
        if M is None or not with_ridges:
            continue
        # those that were dropped last come first
        order = equations.positions([*range(n_always), *reversed(dropped)])
        kept = (k - np.cumsum([0, *lengths[dropped]]))[with_ridges]
        n = len(with_ridges) * len(ridges)
        models[row : row + n, :k] = ridge_models(equations, M[:k, :k], order, kept, ridges)
        row += n
        recipes += shrunk
        sizes += [counts[i] for i in with_ridges for _ in ridges]
    levels = whole.intercepts(models)[:, None]
    return CleanedModels(recipes, models[:, None, :], levels, whole.columns, sizes, sets)


@lru_cache(maxsize=64)
def _recipes(
    round_: int, prefix: int, n: int, with_ridges: tuple[int, ...], ridges: tuple[float, ...]
) -> tuple[list[Cleaned], list[Cleaned]]:
    """Least squares on n nested sets, and ridges on some of them: the same for every split."""
    sizes = range(n - 1, -1, -1)
    plain = [Cleaned(round_, prefix, size, 0.0) for size in sizes]
    return plain, [Cleaned(round_, prefix, sizes[i], ridge) for i in with_ridges for ridge in ridges]


@cache
def is_tried(size: int, place: int) -> bool:
    """Whether ridges are tried on a set of this size: all of a prefix, and sizes along a geometric series."""
    step = round(math.log(size) / math.log(SIZE_RATIO))
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
