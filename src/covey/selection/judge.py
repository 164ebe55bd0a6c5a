"""The judge: held-out losses of recipes, and the rule that picks one recipe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.limit.response import Response
from covey.losses import Loss, Squared
from covey.selection.recipe import Cleaned, Recipe
from covey.selection.thresholds import Thresholds
from covey.validation import FloatArray

__all__ = [
    "CoupledScores",
    "Judge",
    "LossScores",
    "Scores",
    "SquaredScores",
    "Verdict",
    "mean_weights",
    "prior_weights",
]


class Scores(ABC):
    """Held-out rows. Predictions on them are tables with models along the last axis.

    Attributes
    ----------
    loss : Loss
    weight : float
        The total weight of the rows.
    """

    loss: Loss
    weight: float

    @abstractmethod
    def errors(self, table: FloatArray) -> FloatArray:
        """The summed deviance of every model; shape (n_models,)."""

    @abstractmethod
    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The distance of every model from another one: its summed deviance from the other model's predicted means.

        For squared loss this is the squared distance of predictions. Two nearby models differ in deviance by a sum over
        the rows of twice the residual times the difference of their predictors. The variance of a residual is the
        dispersion times the curvature of the loss, so the standard error of that sum is twice the root of the
        dispersion times this distance.
        """


class SquaredScores(Scores):
    """Rows scored by squared error; tables hold residuals times the roots of the rows' weights, (n_rows, n_models)."""

    def __init__(self, weight: float) -> None:
        self.loss, self.weight = Squared(), weight

    def errors(self, table: FloatArray) -> FloatArray:
        """The summed squared residuals."""
        return np.asarray(np.einsum("ij,ij->j", table, table))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The summed squared differences of predictions."""
        apart = table - point[:, None]
        return np.asarray(np.einsum("ij,ij->j", apart, apart))


class LossScores(Scores):
    """Rows scored by the deviance of a loss; tables hold linear predictors, (n_rows, n_outputs, n_models)."""

    def __init__(self, response: Response) -> None:
        self.response, self.loss, self.weight = response, response.loss, response.total_weight
        self._y = response.y[:, None]
        self._offset = response.offset[:, None, :]

    def errors(self, table: FloatArray) -> FloatArray:
        """The summed unit deviances."""
        return np.asarray(self.response.weight @ self.loss.deviance(self._y, self._seen(table)))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """The summed deviance of every model from the other model's predicted means."""
        means = self.loss.inverse_link(self._seen(point.reshape(len(point), -1, 1)))
        return np.asarray(self.response.weight @ self.loss.deviance(means, self._seen(table)))

    def _turned(self, table: FloatArray) -> FloatArray:
        """With the axes in the order of the losses: rows, models, and outputs if there are several."""
        return table.transpose(0, 2, 1) @ self.response.contrasts if self.loss.vector else table[:, 0, :]

    def _seen(self, table: FloatArray) -> FloatArray:
        return self._turned(table) + (self._offset if self.loss.vector else self._offset[:, :, 0])


class CoupledScores(Scores):
    """Rows whose loss depends on the training rows, scored by what they add to the training deviance.

    The score is the deviance of training and held-out rows together minus the deviance of the training rows, at the
    same model (van Houwelingen and others, 2006): the risk sets of a single fold would be small.

    Parameters
    ----------
    response : Response
        Of training and held-out rows; tables have a row for each.
    judging : ndarray of bool, shape (n_rows,)
    """

    def __init__(self, response: Response, judging: NDArray[np.bool_]) -> None:
        self.response, self.loss = response, response.loss
        known = response.loss.informative(response.y)
        counted = response.weight if known is None else response.weight * known
        self.weight = float(counted[judging].sum())
        self._share = self.weight / float(counted.sum())
        self._training = None if judging.all() else response.weighted(np.where(judging, 0.0, response.weight)).on_rows

    def errors(self, table: FloatArray) -> FloatArray:
        """What the held-out rows add to the deviance."""
        eta = self._seen(table)
        made = self.response.on_rows.deviance(eta)
        return np.asarray(made if self._training is None else made - self._training.deviance(eta))

    def distances(self, table: FloatArray, point: FloatArray) -> FloatArray:
        """Twice the held-out rows' share of the loss above its tangent at the other model.

        For a likelihood with independent rows this is the deviance of `LossScores`.
        """
        rows, eta = self.response.on_rows, self._seen(table)
        at = self._seen(point.reshape(len(point), -1, 1))
        rise = rows.total(eta) - rows.total(at) + ((eta - at) * rows.score(at)).sum(axis=0)
        return np.maximum(2 * self._share * rise, 0.0)

    def _seen(self, table: FloatArray) -> FloatArray:
        return np.asarray(table[:, 0, :] + self.response.offset)


# A model whose total held-out deviance is larger by this many dispersions gets 1/e of the weight, like its likelihood.
TEMPERATURE = 2.0

# Before any row is held out, models on all groups have this share of the weight.
DENSE_SHARE = 0.25

# Models whose weight is below this share of the largest are left out of the mean.
LEAST_WEIGHT = 2e-3

# Models whose squared distance from the mean is at most this many times the least count as equally good; the simplest
# of them is taken.
NEAR_MEAN = 2.0

# The rule for fewer groups ("1se") requires this many times the evidence that any group matters.
STRICT = 1.75

# Errors this close, as a share of the null model's error, are equal: a perfect fit leaves round-off error of this size.
ROUNDING = 1e-12

# Numbers this close, relative to each other, are equal.
TIE = 1e-9


@dataclass(frozen=True)
class Verdict:
    """The held-out scores of all recipes.

    Attributes
    ----------
    recipes : list of Recipe
    errors : ndarray, shape (n_recipes,)
        Mean deviance over all held-out rows; for squared loss, the mean squared error.
    by_split : ndarray, shape (n_recipes, n_splits)
        The same for each split.
    sizes : ndarray, shape (n_recipes,)
        The mean number of columns over the splits; smaller is simpler.
    doubts : ndarray, shape (n_recipes,)
        The standard error of the difference from the least error.
    weights : ndarray, shape (n_recipes,)
        Weights of the recipes in the mean of all; they add up to one.
    best, central, null : int
        The recipe with the least error, the simplest one near the mean, and the one without groups.
    evidence : float
        By how many standard errors the best recipe beats the null model.
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
        """The simplest recipe within one standard error of the best one; among equally simple ones, the best."""
        rounding = ROUNDING * float(self.errors[self.null])
        close = self.errors - self.errors[self.best] <= self.doubts * (1 + TIE) + rounding
        return _simplest(close, self.sizes, self.errors, rounding)

    def choose(self, rule: str, thresholds: Thresholds) -> int:
        """The recipe that a rule chooses: "min" or "1se"."""
        if self.evidence <= thresholds.evidence * (STRICT if rule == "1se" else 1.0):
            return self.null
        return self.simplest() if rule == "1se" else self.central


class Judge:
    """Collects the predictions of candidates on the held-out rows of each split.

    Parameters
    ----------
    scores : sequence of Scores
        The held-out rows of each split.
    counts : sequence of float
        The number of held-out rows per split.
    """

    def __init__(self, scores: Sequence[Scores], counts: Sequence[float]) -> None:
        self.scores, self.counts = list(scores), np.asarray(counts, dtype=float)
        self._tables: list[list[FloatArray]] = [[] for _ in scores]
        self._losses: list[FloatArray] = [np.empty(0) for _ in scores]
        self._places: list[dict[Recipe, tuple[int, float]]] = [{} for _ in scores]

    def add(self, split: int, recipes: Sequence[Recipe], table: FloatArray, sizes: Sequence[float]) -> None:
        """Add candidates of a split: predictions with models along the last axis, and numbers of columns."""
        places, at = self._places[split], self._losses[split].size
        for i, (recipe, size) in enumerate(zip(recipes, sizes, strict=True)):
            places.setdefault(recipe, (at + i, float(size)))
        self._tables[split].append(table)
        self._losses[split] = np.append(self._losses[split], self.scores[split].errors(table))

    def errors(self) -> dict[Recipe, float]:
        """The mean held-out deviance of every recipe that all splits have, at least the round-off error."""
        common, weight = self._common(), sum(scores.weight for scores in self.scores)
        losses = [own[self._at(split, common)] for split, own in enumerate(self._losses)]
        errors = np.sum(losses, axis=0) / weight
        errors = np.maximum(errors, ROUNDING * errors[_null(common)])
        return dict(zip(common, errors.tolist(), strict=True))

    def _common(self) -> list[Recipe]:
        """The recipes that all splits have."""
        first = self._places[0].keys()
        if all(places.keys() == first for places in self._places[1:]):
            return list(first)
        return [r for r in first if all(r in places for places in self._places[1:])]

    def _at(self, split: int, recipes: Sequence[Recipe]) -> list[int]:
        """The positions of recipes in the table of a split."""
        places = self._places[split]
        return [places[r][0] for r in recipes]

    def _table(self, split: int) -> FloatArray:
        """The predictions of all candidates of a split."""
        if len(self._tables[split]) > 1:
            self._tables[split] = [np.concatenate(self._tables[split], axis=-1)]
        return self._tables[split][0]

    def verdict(self, also: Sequence[Recipe] | None = None) -> Verdict:
        """The verdict on all recipes that every split has and that, if `also` is given, are among those."""
        common = self._common()
        if also is not None:
            known = set(also)
            common = [r for r in common if r in known]
        losses = np.empty((len(common), len(self.scores)))
        tables, sizes = [], np.zeros(len(common))
        for split, places in enumerate(self._places):
            at = self._at(split, common)
            tables.append(self._table(split).take(at, axis=-1))
            losses[:, split] = self._losses[split][at]
            sizes += [places[r][1] for r in common]
        totals, n = np.array([scores.weight for scores in self.scores]), float(self.counts.sum())
        errors = losses.sum(axis=1) / totals.sum()
        null = _null(common)
        rounding = ROUNDING * float(errors[null])
        # all models that fit perfectly get the same error
        errors = np.maximum(errors, rounding)
        best = _first_least(errors, rounding)
        noise = self.scores[0].loss.dispersion(float(errors[best]))
        # root by root: the product of two squares of a response of 1e100 is not a number
        doubts = 2 * np.sqrt(noise) * np.sqrt(self._distances(tables, [table[..., best] for table in tables]) / n)
        weights = mean_weights(errors, n, noise, rounding, prior_weights(common))
        perfect = errors <= rounding * (1 + TIE)
        if errors[null] > 0 and perfect.any():
            # among perfect fits, larger models differ from the smallest only by round-off error
            weights = np.eye(errors.size)[_simplest(perfect, sizes, errors, rounding)]
        to_mean = self._distances(tables, [table @ weights for table in tables])
        return Verdict(
            recipes=common,
            errors=errors,
            by_split=losses / totals,
            sizes=sizes / len(self.scores),
            doubts=doubts,
            weights=weights,
            best=best,
            central=_simplest(to_mean <= NEAR_MEAN * to_mean.min() * (1 + TIE) + rounding, sizes, to_mean, rounding),
            null=null,
            evidence=float((errors[null] - errors[best]) / (doubts[null] or np.inf)),
        )

    def _distances(self, tables: list[FloatArray], points: list[FloatArray]) -> FloatArray:
        """The mean squared distance of every model's predictions from one model's."""
        apart = [own.distances(table, point) for own, table, point in zip(self.scores, tables, points, strict=True)]
        return np.asarray(sum(apart)) / sum(own.weight for own in self.scores)


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
    return next(i for i, r in enumerate(recipes) if isinstance(r, Cleaned) and r.size == 0)


def mean_weights(
    errors: FloatArray, n_rows: float, noise: float, rounding: float, prior: FloatArray | float = 1.0
) -> FloatArray:
    """Weights of models in their mean: prior weights times the likelihood of the held-out rows."""
    excess = np.maximum(errors - errors.min() - rounding, 0.0) / (noise + rounding or 1.0) * n_rows / TEMPERATURE
    weights = prior * np.exp(-excess)
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    return np.asarray(weights / weights.sum())


def prior_weights(recipes: Sequence[Recipe]) -> FloatArray:
    """Weights of recipes before any row is held out; they add up to one.

    Models on all groups have `DENSE_SHARE` of the weight, the same for each number of reweightings. Of the rest, k
    groups have a part proportional to ``1 / (1 + k)``, so that each order of magnitude has about the same. Recipes with
    the same number of groups share its part equally: hundreds of recipes for some numbers would outvote the others.
    """
    kinds = [r.size if isinstance(r, Cleaned) else -1 - r.round for r in recipes]
    alike = Counter(kinds)
    weights = np.array([1.0 / alike[kind] / (1 + max(kind, 0)) for kind in kinds])
    dense = np.array(kinds) < 0
    if dense.any():
        weights[dense] *= DENSE_SHARE / weights[dense].sum()
        weights[~dense] *= (1 - DENSE_SHARE) / weights[~dense].sum()
    return np.asarray(weights / weights.sum())
