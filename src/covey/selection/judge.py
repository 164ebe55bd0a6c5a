"""The judge: a table of losses, recipes by judging rows, and the rule that picks one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.selection.recipe import Cleaned, Recipe
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = ["Judge", "Verdict", "mean_weights"]

# A model whose squared error is larger by this many noise variances in all, over the judging rows, counts e times less:
# the likelihood of Gaussian residuals.
TEMPERATURE = 2.0

# Models that count less than this share of the first are left out of the mean.
LEAST_WEIGHT = 2e-3

# Models at most this many times as far from the mean as the nearest one (squared) are as good; the simplest is taken.
NEAR_MEAN = 2.0

# The rule for fewer groups asks for this many times the evidence that there is any.
STRICT = 1.75

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
    weights : ndarray, shape (n_recipes,)
        What each recipe counts in the mean of all; they add up to one.
    best, central, null : int
        The recipe of least error, the simplest one near to the mean, and the one without any group.
    evidence : float
        By how many standard errors the best recipe beats the one without any group.
    """

    recipes: list[Recipe]
    errors: FloatArray
    by_split: FloatArray
    sizes: FloatArray
    doubts: FloatArray
    weights: FloatArray
    best: int
    central: int
    null: int
    evidence: float

    def simplest(self) -> int:
        """The simplest recipe within one standard error of the best one; of equally simple ones the best."""
        rounding = ROUNDING * float(self.errors[self.null])
        close = self.errors - self.errors[self.best] <= self.doubts + rounding
        return _simplest(close, self.sizes, self.errors, rounding)

    def choose(self, rule: str, thresholds: Thresholds) -> int:
        """The recipe that a rule chooses: "min" or "1se"."""
        if self.evidence <= thresholds.evidence * (STRICT if rule == "1se" else 1.0):
            return self.null
        return self.simplest() if rule == "1se" else self.central


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

    def errors(self) -> dict[Recipe, float]:
        """The mean squared error over all judging rows of every recipe that every split has."""
        common, total = self._common(), 0.0
        for split, places in enumerate(self._places):
            E = self._table(split)
            total = total + np.einsum("ij,ij->j", E, E)[[places[r][0] for r in common]]
        return dict(zip(common, (np.asarray(total) / self.weights.sum()).tolist(), strict=True))

    def _common(self) -> list[Recipe]:
        """The recipes that every split has."""
        first = self._places[0].keys()
        if all(places.keys() == first for places in self._places[1:]):
            return list(first)
        return [r for r in first if all(r in places for places in self._places[1:])]

    def _table(self, split: int) -> FloatArray:
        """All residuals of a split, shape (n_rows, n)."""
        if len(self._residuals[split]) > 1:
            self._residuals[split] = [np.concatenate(self._residuals[split], axis=1)]
        return self._residuals[split][0]

    def verdict(self, also: Sequence[Recipe] | None = None) -> Verdict:
        """The table of all recipes that every split has, and that are among `also` where it is given."""
        common = self._common()
        if also is not None:
            known = set(also)
            common = [r for r in common if r in known]
        squares = np.empty((len(common), self.weights.size))
        tables, sizes = [], np.zeros(len(common))
        for split, places in enumerate(self._places):
            at = [places[r][0] for r in common]
            E = self._table(split).take(at, axis=1)
            tables.append(E)
            squares[:, split] = np.einsum("ij,ij->j", E, E)
            sizes += [places[r][1] for r in common]
        total, n = float(self.weights.sum()), float(self.counts.sum())
        errors = squares.sum(axis=1) / total
        null = next(i for i, r in enumerate(common) if isinstance(r, Cleaned) and r.size == 0)
        rounding = ROUNDING * float(errors[null])
        best = _first_least(errors, rounding)
        noise = float(errors[best])
        doubts = 2 * np.sqrt(noise * _distances(tables, [E[:, best] for E in tables], total) / n)
        weights = mean_weights(errors, n, rounding)
        to_mean = _distances(tables, [E @ weights for E in tables], total)
        return Verdict(
            recipes=common,
            errors=errors,
            by_split=squares / self.weights,
            sizes=sizes / self.weights.size,
            doubts=doubts,
            weights=weights,
            best=best,
            central=_simplest(to_mean <= NEAR_MEAN * to_mean.min() + rounding, sizes, to_mean, rounding),
            null=null,
            evidence=float((errors[null] - noise) / (doubts[null] or np.inf)),
        )


def _simplest(allowed: NDArray[np.bool_], sizes: FloatArray, values: FloatArray, rounding: float) -> int:
    """The smallest of some models; of those the first of least value."""
    smallest = allowed & (sizes <= sizes[allowed].min() * (1 + 1e-9))
    return _first_least(np.where(smallest, values, np.inf), rounding)


def _first_least(values: FloatArray, rounding: float) -> int:
    """The first of the least values: rounding must not decide between candidates that are one and the same model."""
    return int(np.argmax(values <= values.min() * (1 + 1e-9) + rounding))


def _distances(tables: list[FloatArray], points: list[FloatArray], total: float) -> FloatArray:
    """The mean squared distance of every model's predictions from those of one model.

    Two models differ in squared error by a mean over the rows of twice the residual times this distance's root; with
    residuals of some variance that has a standard error of twice their standard deviation times the root, over the
    root of the number of rows.
    """
    out = np.zeros(tables[0].shape[1])
    for E, point in zip(tables, points, strict=True):
        D = E - point[:, None]
        out += np.einsum("ij,ij->j", D, D)
    return out / total


def mean_weights(errors: FloatArray, n_rows: float, rounding: float) -> FloatArray:
    """What models count in their mean: the likelihood of the judging rows, the least error being the noise variance."""
    least = float(errors.min())
    excess = np.maximum(errors - least - rounding, 0.0) / (least + rounding or 1.0) * n_rows / TEMPERATURE
    weights = np.exp(-excess)
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    return np.asarray(weights / weights.sum())
