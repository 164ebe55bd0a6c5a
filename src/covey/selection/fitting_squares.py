"""Candidates for squared loss, computed from Gram rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from covey.limit.cleaning import eliminate_all
from covey.limit.kernel import RowKernel
from covey.limit.least_squares import DEPENDENT, LeastSquares, NormalEquations
from covey.limit.lockstep import Paths
from covey.limit.posed_squares import PosedSquares
from covey.limit.reweighted import DenseRows
from covey.limit.ridges import Penalties, ridge_models
from covey.progress import tell
from covey.selection.fitting import CleanedModels, Fitting, is_tried
from covey.selection.judge import SquaredScores
from covey.selection.recipe import Cleaned
from covey.validation import FloatArray

__all__ = ["SquaresFitting", "cleaned_models"]

# With more rows than this, their inner products take more memory and time than most designs.
MOST_ROWS = 4000


class SquaresFitting(Fitting):
    """Least squares and ridges; tables hold residuals times the roots of the rows' weights."""

    def scores(self, split: int) -> SquaredScores:
        """The rows that a split is scored on."""
        return SquaredScores(self.near.rows.weight(self.posed.splits[split].test))

    def knots(self, paths: Paths, split: int, first: int, last: int) -> FloatArray:
        """Residuals of least squares on the groups awake after some events."""
        rows, objective = self.near.rows, paths.objective(split)
        begun = len(paths.starts[split])
        W = objective.knots(begun + first, begun + last)
        parts = [rows.parts[part] for part in self.posed.splits[split].test]
        return np.concatenate([table[:, [rows.response]] - table[:, objective.basis] @ W.T for table in parts])

    def cleaned(
        self, paths: Paths, round_: int, prefixes: Sequence[Sequence[int]], ridges: Sequence[float]
    ) -> list[CleanedModels]:
        """Sets of groups by elimination, fitted by least squares and ridges."""
        splits = range(len(prefixes))
        if ridges:
            # at once, so that a design that has to be read for them is read once
            self.penalties.learn([l for split in splits for l in paths.groups(split)])
        return cleaned_models(
            [paths.objective(s) for s in splits], [paths.groups(s) for s in splits], round_, self.n_always, prefixes,
            ridges, self.penalties,
        )  # fmt: skip

    def predictions(self, models: CleanedModels, split: int) -> FloatArray:
        """Residuals of candidates."""
        rows = self.near.rows
        W, levels = models.W[:, 0], models.levels[:, 0]
        return np.concatenate(
            [
                table[:, [rows.response]]
                - table.take(models.columns, axis=1) @ W.T
                - np.outer(table[:, rows.one], levels)
                for table in (rows.parts[part] for part in self.posed.splits[split].test)
            ]
        )

    @property
    def judged_as(self) -> int:
        """0 if rows are uncompressed; compressed rows depend on the number of columns."""
        return 0 if self.near.rows.held else self.near.rows.width

    def hold_rows(self) -> None:
        """Score uncompressed rows from now on, if the columns of the design can be read."""
        if not self.near.all and not self.near.rows.held:
            assert isinstance(self.posed, PosedSquares)
            self.near.rows = self.posed.rows(self.near.groups, compress=False)

    @property
    def slow_dense(self) -> bool:
        """False: one factorisation gives a fit."""
        return False

    def can_be_dense(self) -> bool:
        """Whether models on all columns are affordable."""
        design = self.posed.problem.design
        return self.near.all or (bool(design.reads_columns) and design.shape[0] <= MOST_ROWS)

    def dense_rows(self, groups: Any) -> DenseRows:
        """Some groups on columns of unit variance."""
        rows = self.near.rows if groups is self.near.groups else self.posed.rows(groups)
        return DenseRows(rows, groups, self.penalties, self.posed.intercept)

    def kernel(self, shares: FloatArray) -> RowKernel:
        """Inner products of the rows."""
        return RowKernel(self.posed, self.penalties, shares)


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
        At the end of each path.
    groups : sequence of sequences of int
        The awake groups of each path, as positions among all groups, in order.
    round_ : int
    n_always : int
        How many of the first groups are in every model, unpenalised.
    prefixes : sequence of sequences of int
        For each path, the lengths of the prefixes to eliminate from.
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
    """The candidates of one split, given the order in which groups were dropped from each prefix."""
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
            # a column that was a combination of others may be independent of those that are left
            W, counts = _refitted(equations, nested)
        recipes += own
        sizes += counts
        sets.update(zip(own, nested, strict=True))
        models[row : row + n, :k] = W
        row += n
        if M is None or not with_ridges:
            continue
        # groups dropped last come first
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
    """Recipes for least squares on n nested sets, and for ridges on some of them: the same for every split."""
    sizes = range(n - 1, -1, -1)
    plain = [Cleaned(round_, prefix, size, 0.0) for size in sizes]
    return plain, [Cleaned(round_, prefix, sizes[i], ridge) for i in with_ridges for ridge in ridges]


def _penalty(
    objective: LeastSquares, equations: NormalEquations, groups: Sequence[int], n_always: int, penalties: Penalties
) -> FloatArray:
    """The quadratic form of a ridge on the groups of a path; zero on groups that are always in the model."""
    starts = objective.rows.starts
    within = equations.columns - starts[np.searchsorted(starts, equations.columns, side="right") - 1]
    own = [within[a:b] for a, b in zip(equations.starts[:-1], equations.starts[1:], strict=True)]
    M = penalties.block(groups, own)
    first = int(equations.starts[n_always])
    M[:first, :first] = 0.0
    return M


def _refitted(equations: NormalEquations, nested: Sequence[Sequence[int]]) -> tuple[FloatArray, list[int]]:
    """Least squares on sets of groups with linearly dependent columns, and the rank of each set."""
    W, ranks = np.zeros((len(nested), equations.c.size)), []
    for w, kept in zip(W, nested, strict=True):
        at = equations.positions(kept)
        w[at], _, rank, _ = np.linalg.lstsq(equations.K[np.ix_(at, at)], equations.c[at], rcond=DEPENDENT)
        ranks.append(int(rank))
    return W, ranks
