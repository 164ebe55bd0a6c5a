"""The judge: a table of losses, recipes by judging rows, and the rule that picks one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.selection.recipe import Cleaned, Recipe
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["Judge", "Verdict"]

# Errors this close, as a share of the null model's error, are equal: below is what rounding leaves of a perfect fit.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Verdict:
    """What the judging rows say of all recipes.

    Attributes
    ----------
    recipes : list of Recipe
    errors : ndarray, shape (n_recipes,)
        Mean squared error over all judging rows.
    by_split : ndarray, shape (n_recipes, n_splits)
        The same for the rows of each split.
    sizes : ndarray, shape (n_recipes,)
        The number of columns, on average over the splits: simplicity.
    doubts : ndarray, shape (n_recipes,)
        The standard error of the difference of the error to the least one.
    best, null : int
        The recipe of least error, and the one without any group.
    """

    recipes: list[Recipe]
    errors: FloatArray
    by_split: FloatArray
    sizes: FloatArray
    doubts: FloatArray
    best: int
    null: int
    null_doubts: FloatArray

    def simplest(self, standard_errors: float, allowed: NDArray[np.bool_] | None = None) -> int:
        """The simplest recipe within so many standard errors of the best one; of equally simple ones the best."""
        margin = standard_errors * self.doubts + ROUNDING * self.errors[self.null]
        close = self.errors - self.errors[self.best] <= margin
        if allowed is not None:
            close &= allowed
        which = np.flatnonzero(close)
        if not which.size:
            return self.best
        which = which[self.sizes[which] == self.sizes[which].min()]
        # one set of groups is found in several ways, which rounding alone tells apart: the first of them is taken
        return int(which[np.argmax(self.errors[which] <= self.errors[which].min() + ROUNDING * self.errors[self.null])])

    def choose(self, rule: str, thresholds: Thresholds) -> int:
        """The recipe that a rule chooses."""
        chosen = self.simplest(1.0 if rule == "1se" else thresholds.parsimony)
        gained = self.errors[self.null] - self.errors[chosen]
        return chosen if gained > thresholds.evidence * self.null_doubts[chosen] else self.null


class Judge:
    """Collects the residuals of candidates on the rows that judge each split.

    Parameters
    ----------
    weights : sequence of float
        The total weight of the judging rows of each split.
    counts : sequence of float
        How many rows these are.
    """

    def __init__(self, weights: Sequence[float], counts: Sequence[float]) -> None:
        self.weights, self.counts = np.asarray(weights, dtype=float), np.asarray(counts, dtype=float)
        self._residuals: list[list[FloatArray]] = [[] for _ in weights]
        self._places: list[dict[Recipe, tuple[int, float]]] = [{} for _ in weights]

    def add(self, split: int, recipes: Sequence[Recipe], residuals: FloatArray, sizes: Sequence[float]) -> None:
        """Hear candidates of a split: residuals times the square root of the rows' weights, shape (n_rows, n)."""
        places = self._places[split]
        at = sum(block.shape[1] for block in self._residuals[split])
        for i, (recipe, size) in enumerate(zip(recipes, sizes, strict=True)):
            places.setdefault(recipe, (at + i, float(size)))
        self._residuals[split].append(residuals)

    def verdict(self, also: Sequence[Recipe] | None = None) -> Verdict:
        """The table of all recipes that every split has, and that are among `also` where it is given."""
        common = [r for r in self._places[0] if all(r in places for places in self._places[1:])]
        if also is not None:
            known = set(also)
            common = [r for r in common if r in known]
        squares = np.empty((len(common), self.weights.size))
        tables, sizes = [], np.zeros(len(common))
        for split, places in enumerate(self._places):
            at = [places[r][0] for r in common]
            E = np.concatenate(self._residuals[split], axis=1)[:, at]
            tables.append(E)
            squares[:, split] = np.einsum("ij,ij->j", E, E)
            sizes += [places[r][1] for r in common]
        total, n = self.weights.sum(), self.counts.sum()
        errors = squares.sum(axis=1) / total
        best = int(np.argmin(errors))
        null = next(i for i, r in enumerate(common) if isinstance(r, Cleaned) and r.size == 0)
        return Verdict(
            common, errors, squares / self.weights, sizes / self.weights.size,
            self._doubts(tables, best, float(errors[best]), total, n), best, null,
            self._doubts(tables, null, float(errors[best]), total, n),
        )  # fmt: skip

    def _doubts(self, tables: list[FloatArray], against: int, noise: float, total: float, n: float) -> FloatArray:
        """Standard errors of differences of errors.

        Two models differ in squared error by a mean over the rows of twice the residual times the distance of their
        predictions; with residuals of variance `noise` that has this standard error.
        """
        distances = sum(((E - E[:, [against]]) ** 2).sum(axis=0) for E in tables) / total
        return 2 * np.sqrt(noise * np.asarray(distances) / n)
