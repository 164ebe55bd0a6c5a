"""The judge: held-out deviances of recipes, and the rule that picks one recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.search.observations import Observations
from covey.search.recipes import Recipe
from covey.search.settings import Settings
from covey.validation import FloatArray

__all__ = ["ROUNDING", "TIE", "Board", "Judge", "Scores", "Verdict", "mean_weights", "prior_weights"]

# Errors this close, as a share of the null model's error, are equal: a perfect fit leaves round-off error of this size.
ROUNDING = 1e-12

# Numbers this close, relative to each other, are equal.
TIE = 1e-9


class Scores:
    """Held-out rows. Tables of linear predictors on them have shape (n_rows, n_outputs, n_models).

    If the loss couples rows, as survival times do, rows are scored by what they add to the training deviance: the
    deviance of training and held-out rows together minus that of the training rows, at the same model (van Houwelingen
    and others, 2006), because the risk sets of a single fold would be small. Tables then have the training rows too.

    Parameters
    ----------
    response : Observations
        Of the rows of a table.
    held_out : ndarray of bool, shape (n_rows,)

    Attributes
    ----------
    weight : float
        The total weight of the held-out rows.
    """

    def __init__(self, response: Observations, held_out: NDArray[np.bool_]) -> None:
        self.response, self.loss = response, response.loss
        informative = response.loss.informative(response.y)
        counted = response.weight if informative is None else response.weight * informative
        counted = counted * response.one * response.one
        self.weight = float(counted[held_out].sum())
        self._share = self.weight / (float(counted.sum()) or 1.0)
        self._training = None
        if response.loss.coupled and not held_out.all():
            self._training = response.weighted(np.where(held_out, 0.0, response.weight)).on_rows

    def errors(self, table: FloatArray) -> FloatArray:
        """The summed deviance of every model; shape (n_models,)."""
        eta = self._to_loss(table)
        if not self.loss.coupled:
            return np.asarray(self.response.weight @ self.loss.deviance(self.response.y[:, None], eta))
        both = self.response.on_rows.deviance(eta)
        return np.asarray(both if self._training is None else both - self._training.deviance(eta))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The distance of every model from another one: (2, n_models), by the other model's means and by its own.

        The first row has the summed deviance of the model from the means that the other one predicts, the second one
        that of the other from the model's means. For squared loss both are the squared distance of predictions. Two
        nearby models differ in deviance by a sum over the rows of twice the residual times the difference of their
        predictors. The variance of a residual is the dispersion times the curvature of the loss, so the standard error
        of that sum is twice the root of the dispersion times this distance, if the means are right. With a canonical
        link this distance is twice the loss above its tangent at the one model, whatever the response; if the loss
        couples rows, it is the held-out rows' share of that.
        """
        eta, at = self._to_loss(table), self._to_loss(point.reshape(len(point), -1, 1))
        if self.loss.quadratic:
            return np.tile(self.response.weight @ self.loss.deviance(at, eta), (2, 1))
        with np.errstate(all="ignore"):  # means of a wild model may overflow
            if not (self.loss.coupled or self.loss.canonical):
                return np.stack([self.response.weight @ self.loss.distance(*pair) for pair in ((at, eta), (eta, at))])
            rows, axes = self.response.for_models, (0, *range(2, eta.ndim))
            rise, gaps = rows.total(eta) - rows.total(at), eta - at
            above = [rise + (gaps * rows.score(at)).sum(axis=axes), -rise - (gaps * rows.score(eta)).sum(axis=axes)]
        share = self._share if self.loss.coupled else 1.0
        return np.maximum(2 * share * np.stack(above), 0.0)

    def _to_loss(self, table: FloatArray) -> FloatArray:
        """Predictors of the loss, with the axes in its order: rows, models, and outputs if there are several."""
        offset = self.response.offset
        if self.loss.vector:
            return table.transpose(0, 2, 1) @ self.response.contrasts + offset[:, None, :]
        return table[:, 0, :] + offset if offset.any() else table[:, 0, :]


@dataclass(frozen=True)
class Verdict:
    """The held-out scores of some recipes.

    Attributes
    ----------
    recipes : list of Recipe
    errors : ndarray, shape (n_recipes,)
        Mean deviance over all held-out rows; for squared loss, the mean squared error.
    by_split : ndarray, shape (n_recipes, n_splits)
        The same for each split.
    sizes : ndarray, shape (n_recipes,)
        The mean number of columns over the splits; smaller is simpler.
    standard_errors : ndarray, shape (n_recipes,)
        The standard error of the difference from the least error.
    weights : ndarray, shape (n_recipes,)
        Weights of the recipes in the mean of all; they add up to one.
    noise : float
        The dispersion at the least error.
    best, null : int
        The recipe with the least error, and the one without groups.
    coupled : bool
        Whether the loss couples rows.
    settings : Settings
    """

    recipes: list[Recipe]
    errors: FloatArray
    by_split: FloatArray
    sizes: FloatArray
    standard_errors: FloatArray
    weights: FloatArray
    noise: float
    best: int
    null: int
    coupled: bool
    settings: Settings

    def near(self, strictness: float, cost: float = np.inf) -> NDArray[np.bool_]:
        """The recipes within so many standard errors of the best one that lose at most so much."""
        rounding = ROUNDING * float(self.errors[self.null])
        apart = self.errors - self.errors[self.best]
        most = np.minimum(strictness * self.standard_errors, cost)
        return np.asarray(apart <= most * (1 + TIE) + rounding)

    @cached_property
    def equal(self) -> NDArray[np.bool_]:
        """The recipes that count as equally good: the rows cannot tell them from the best, and they cost little.

        Of survival times, the cost is a share of what the best model gains: partial likelihoods have no zero.
        """
        least, null = float(self.errors[self.best]), float(self.errors[self.null])
        return self.near(self.settings.strictness, self.settings.cost * (null - least if self.coupled else least))

    def simplest(self, allowed: NDArray[np.bool_]) -> int:
        """The simplest of some recipes; among equally simple ones, the best."""
        return _simplest(allowed, self.sizes, self.errors, ROUNDING * float(self.errors[self.null]))

    @cached_property
    def chosen(self) -> int:
        """The simplest of the recipes that are as good as the best, or the null model if the rows cannot tell it."""
        return self.null if self.near(self.settings.strictness)[self.null] else self.simplest(self.equal)


class Judge:
    """Collects the predictors of candidates on the held-out rows of each split.

    Parameters
    ----------
    scores : sequence of Scores
        The held-out rows of each split.
    n_rows : float
        The number of rows that are held out by some split; a row counts once, however often it is held out.
    settings : Settings
    """

    def __init__(self, scores: Sequence[Scores], n_rows: float, settings: Settings) -> None:
        self.n_rows, self.settings = n_rows, settings
        # of the rows that are held out, however often
        self.weight = sum(one.weight for one in scores)
        self.scores: list[Scores] = []
        self._tables: list[list[FloatArray]] = []
        self._losses: list[FloatArray] = []
        self._places: list[dict[Recipe, tuple[int, float]]] = []
        self._distances: list[dict[Recipe, FloatArray]] = []
        self.extend(scores)

    def extend(self, scores: Sequence[Scores]) -> None:
        """Add splits."""
        self.scores += scores
        for _ in scores:
            self._tables.append([])
            self._losses.append(np.empty(0))
            self._places.append({})
            self._distances.append({})

    def forget(self, n_splits: int) -> None:
        """Keep the first splits."""
        for of_splits in (self.scores, self._tables, self._losses, self._places, self._distances):
            del of_splits[n_splits:]

    def add(self, split: int, recipes: Sequence[Recipe], table: FloatArray, sizes: Sequence[float]) -> None:
        """Add candidates of a split: predictors with models along the last axis, and numbers of columns."""
        places, at = self._places[split], self._losses[split].size
        for i, (recipe, size) in enumerate(zip(recipes, sizes, strict=True)):
            places.setdefault(recipe, (at + i, float(size)))
        self._tables[split].append(table)
        self._losses[split] = np.append(self._losses[split], self.scores[split].errors(table))

    def scored_by(self, scores: Sequence[Scores]) -> Judge:
        """The same candidates on the same rows with other weights."""
        other, share = copy(self), sum(one.weight for one in scores) / (sum(one.weight for one in self.scores) or 1.0)
        other.scores, other.n_rows, other.weight = list(scores), self.n_rows * share, self.weight * share
        other._losses = [one.errors(self._table(split)) for split, one in enumerate(scores)]
        other._distances = [{} for _ in scores]
        return other

    def errors(self) -> dict[Recipe, float]:
        """The mean held-out deviance of every recipe that all splits have, at least the round-off error."""
        common, weight = self._common(), sum(scores.weight for scores in self.scores)
        losses = [errors[self._at(split, common)] for split, errors in enumerate(self._losses)]
        errors = np.sum(losses, axis=0) / weight
        errors = np.maximum(errors, ROUNDING * errors[_null(common)])
        return dict(zip(common, errors.tolist(), strict=True))

    def least_error(self, split: int) -> float:
        """The least summed deviance of all candidates on the held-out rows of a split."""
        return float(self._losses[split].min())

    def _common(self) -> list[Recipe]:
        """The recipes that all splits have, in the order of the first."""
        first, *others = self._places
        if all(places.keys() == first.keys() for places in others):
            return list(first)
        return [r for r in first if all(r in places for places in others)]

    def _at(self, split: int, recipes: Sequence[Recipe]) -> list[int]:
        """The positions of recipes in the table of a split."""
        places = self._places[split]
        return [places[r][0] for r in recipes]

    def _table(self, split: int) -> FloatArray:
        """The predictors of all candidates of a split."""
        if len(self._tables[split]) > 1:
            self._tables[split] = [np.concatenate(self._tables[split], axis=-1)]
        return self._tables[split][0]

    def distances(self, split: int, recipe: Recipe) -> FloatArray:
        """`Scores.distances` of all candidates of a split from one of them; boards ask for the same ones again."""
        table, known = self._table(split), self._distances[split].get(recipe, np.empty((2, 0)))
        n_known = known.shape[1]
        if n_known < table.shape[-1]:
            new = self.scores[split].distances(table[..., n_known:], table[..., self._places[split][recipe][0]])
            known = self._distances[split][recipe] = np.concatenate([known, new], axis=1)
        return known

    def board(self, allowed: Container[Recipe]) -> Board:
        """The scores of the allowed recipes that all splits have."""
        return Board(self, [r for r in self._common() if r in allowed])


class Board:
    """The scores of the same recipes on all splits.

    Attributes
    ----------
    recipes : list of Recipe
    losses, sizes : ndarray, shape (n_recipes, n_splits)
        Summed deviances of the held-out rows, and numbers of columns.
    """

    def __init__(self, judge: Judge, recipes: list[Recipe]) -> None:
        self.judge, self.scores, self.settings, self.n_rows = judge, list(judge.scores), judge.settings, judge.n_rows
        self.recipes, self.null = recipes, _null(recipes)
        self._at: list[NDArray[np.intp]] = []
        losses, sizes = [], []
        for split, places in enumerate(judge._places):
            found = [places[r] for r in recipes]
            at = np.array([place for place, _ in found], dtype=np.intp)
            self._at.append(at)
            losses.append(judge._losses[split][at])
            sizes.append([size for _, size in found])
        self.losses, self.sizes = np.stack(losses, axis=1), np.array(sizes).T
        self._prior = prior_weights(recipes, self.settings.dense_share)

    def verdict(self, splits: Sequence[int] | None = None) -> Verdict:
        """The verdict of some splits, or all."""
        splits = range(len(self.scores)) if splits is None else splits
        losses, sizes = self.losses[:, splits], self.sizes[:, splits].mean(axis=1)
        totals = np.array([self.scores[split].weight for split in splits])
        n = self.n_rows * min(1.0, float(totals.sum()) / (self.judge.weight or 1.0))
        errors = losses.sum(axis=1) / totals.sum()
        rounding = ROUNDING * float(errors[self.null])
        # all models that fit perfectly get the same error
        errors = np.maximum(errors, rounding)
        best = _first_least(errors, rounding)
        noise = self.scores[0].loss.dispersion(float(errors[best]))
        # root by root: the product of two squares of a response of 1e100 is not a number
        standard_errors = 2 * np.sqrt(noise) * np.sqrt(self.apart(best, splits) / n)
        weights = mean_weights(errors, n, noise, rounding, self._prior, self.settings)
        perfect = errors <= rounding * (1 + TIE)
        if errors[self.null] > 0 and perfect.any():
            # among perfect fits, larger models differ from the smallest only by round-off error
            weights = np.eye(errors.size)[_simplest(perfect, sizes, errors, rounding)]
        return Verdict(
            recipes=self.recipes,
            errors=errors,
            # a fold of which no row counts, as where late groups cannot predict it, has no error
            by_split=np.divide(losses, totals, out=np.full_like(losses, np.nan), where=totals > 0),
            sizes=sizes,
            standard_errors=standard_errors,
            weights=weights,
            noise=noise,
            best=best,
            null=self.null,
            coupled=self.scores[0].loss.coupled,
            settings=self.settings,
        )

    def apart(self, recipe: int, splits: Sequence[int] | None = None) -> FloatArray:
        """The mean distance of all recipes' predictions from those of one of them.

        It is the smaller one of the two that `Scores.distances` has: a model that is sure of itself in every row, as
        fits of separated classes are, is far from any other by the other's means, and would be within a standard error
        of the best one whatever the rows say.
        """
        splits = range(len(self.scores)) if splits is None else splits
        total, weight = np.zeros((2, len(self.recipes))), 0.0
        for split in splits:
            total += self.judge.distances(split, self.recipes[recipe])[:, self._at[split]]
            weight += self.scores[split].weight
        return np.asarray(np.fmin(*total) / weight)

    def moved(self, weights: FloatArray, others: Sequence[FloatArray]) -> float:
        """The largest mean distance between the mean of all recipes by some weights and by others."""
        total = np.zeros((2, len(others)))
        for split, (scores, at) in enumerate(zip(self.scores, self._at, strict=True)):
            some = self.judge._table(split).take(at, axis=-1)
            total += scores.distances(some @ np.stack(others, axis=-1), some @ weights)
        return float(np.fmin(*total).max() / sum(scores.weight for scores in self.scores))


def _simplest(allowed: NDArray[np.bool_], sizes: FloatArray, values: FloatArray, rounding: float) -> int:
    """The smallest of the allowed models; among equally small ones, the first with the least value."""
    smallest = allowed & (sizes <= sizes[allowed].min() * (1 + TIE))
    return _first_least(np.where(smallest, values, np.inf), rounding)


def _first_least(values: FloatArray, rounding: float) -> int:
    """The first of the least values: round-off error must not decide between identical models."""
    least = float(values.min())
    return int(np.argmax(values <= least + TIE * abs(least) + rounding))


def _null(recipes: Sequence[Recipe]) -> int:
    """The position of the recipe without groups."""
    return next(i for i, r in enumerate(recipes) if r.n_groups == 0)


def mean_weights(
    errors: FloatArray, n_rows: float, noise: float, rounding: float, prior: FloatArray | float, settings: Settings
) -> FloatArray:
    """Weights of models in their mean: prior weights times a root of the held-out rows' likelihood."""
    excess = np.maximum(errors - errors.min() - rounding, 0.0) / (noise + rounding or 1.0) * n_rows
    weights = prior * np.exp(-excess / settings.temperature)
    weights /= weights.sum()
    weights[weights < settings.least_weight * weights.max()] = 0.0
    return np.asarray(weights / weights.sum())


def prior_weights(recipes: Sequence[Recipe], dense_share: float) -> FloatArray:
    """Weights of recipes before any row is held out; they add up to one.

    Models on all groups have `dense_share` of the weight, the same for each family. Of the rest, k groups have a part
    proportional to ``1 / (1 + k)``, so that each order of magnitude has about the same. Recipes of a family share its
    part equally: hundreds of recipes for some numbers of groups would outvote the others.
    """
    families = [r.family for r in recipes]
    members = Counter(families)
    sizes = np.array([r.n_groups or 0 for r in recipes])
    weights = 1.0 / (np.array([members[family] for family in families]) * (1.0 + sizes))
    dense = np.array([r.n_groups is None for r in recipes])
    if dense.any():
        weights[dense] *= dense_share / weights[dense].sum()
        weights[~dense] *= (1 - dense_share) / weights[~dense].sum()
    return np.asarray(weights / weights.sum())
