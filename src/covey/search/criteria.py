"""Choices that need no held-out rows: information criteria, the discrepancy principle, a number of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import gammaln

from covey.losses import Loss, Squared
from covey.search.cleaned import Cleaned, clean
from covey.search.judge import ROUNDING, TIE, Scores
from covey.search.paths import Knots, Paths
from covey.search.posed import Posed
from covey.search.recipes import Training
from covey.search.search import trainings_of
from covey.search.table import Table
from covey.validation import FloatArray, positive, whole

__all__ = ["Criterion", "Discrepancy", "InformationCriterion", "Size", "TrainingTable", "training_table"]

SQUARED = Squared()


@dataclass(frozen=True)
class InformationCriterion:
    r"""The least BIC, extended BIC or generalised cross-validation score.

    With ``RSS`` the residual sum of squares, ``s`` awake groups of ``L`` and ``df`` degrees of freedom,

    - BIC: ``n log(RSS/n) + log(n) df``,
    - EBIC: BIC ``+ 2 gamma log C(L, s)``, which accounts for the choice among many groups (Chen and Chen, 2008);
      groups that are always in the model are not chosen, and count in neither,
    - GCV: ``(RSS/n) / (1 - df/n)^2``.

    For losses other than squared, the deviance replaces ``RSS``; if the loss has no scale parameter (classes, counts),
    it replaces ``n log(RSS/n)``.

    The degrees of freedom are those of least squares on the awake groups: their columns, plus one for an intercept.
    That these groups were chosen is not counted in them; only EBIC charges for it.

    Parameters
    ----------
    criterion : {"bic", "ebic", "gcv"}
    gamma : float
        The weight of the extra term of EBIC, between 0 and 1.
    """

    criterion: Literal["bic", "ebic", "gcv"] = "ebic"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.criterion not in ("bic", "ebic", "gcv"):
            raise ValueError(f"criterion must be 'bic', 'ebic' or 'gcv', not {self.criterion!r}.")
        positive(self.gamma, "gamma", zero=True)

    def value(
        self, rss: FloatArray, df: FloatArray, s: FloatArray, L: int, n: float, loss: Loss = SQUARED
    ) -> FloatArray:
        """The criterion, given residual sums of squares (or deviances), degrees of freedom and numbers of groups."""
        if self.criterion == "gcv":
            left = 1 - df / n
            return np.where(left > 0, rss / n / np.where(left > 0, left, 1.0) ** 2, np.inf)
        # an exact fit has no residual: the smallest positive number keeps its logarithm finite
        value = loss.criterion(np.maximum(rss, np.finfo(float).tiny) / n, n) + np.log(n) * df
        if self.criterion == "ebic":
            value = value + 2 * self.gamma * (gammaln(L + 1) - gammaln(s + 1) - gammaln(L - s + 1))
        return np.where(df < n, value, np.inf)


@dataclass(frozen=True)
class Discrepancy:
    """The smallest model whose mean squared residual is at most ``factor * sigma^2``: ``selection=Discrepancy(2.0)``.

    Parameters
    ----------
    sigma : float, optional
        The standard deviation of the noise; by default estimated where generalised cross-validation is least.
    factor : float
        The safety factor of the principle, at least 1.
    """

    sigma: float | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        positive(self.factor, "factor")
        if self.sigma is not None:
            positive(self.sigma, "sigma")


@dataclass(frozen=True)
class Size:
    """A number of groups: backward elimination keeps this many of the groups on the path, fitted without a penalty.

    ``selection=Size(3)`` selects three groups, or all if there are fewer.

    Parameters
    ----------
    n_groups : int
        Not counting groups that are always in the model.
    """

    n_groups: int

    def __post_init__(self) -> None:
        whole(self.n_groups, "the number of groups", least=0)


Criterion = InformationCriterion | Discrepancy | Size


@dataclass(frozen=True)
class TrainingTable:
    """Sets of groups, fitted on all rows without a penalty, with their residual sums of squares or deviances.

    Attributes
    ----------
    training : Training
    knots : Knots
    recipes : list of Cleaned
    rss, df : ndarray, shape (n_sets,)
        For each set, the residual sum of squares (for other losses, the deviance) and the degrees of freedom.
    n_rows : float
        The number of observations: with several responses, each one counts.
    """

    training: Training
    knots: Knots
    recipes: list[Cleaned]
    rss: FloatArray
    df: FloatArray
    n_rows: float

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.training.posed.response.loss

    @property
    def sizes(self) -> FloatArray:
        """The number of groups of each set, not counting those that are always in the model."""
        return np.array([float(recipe.n_groups) for recipe in self.recipes])

    def choose(self, rule: Criterion) -> int:
        """The set with the least score; the first one if several differ only by round-off error."""
        scores = self.scores(rule)
        least = float(scores.min())
        unit = 1.0
        if isinstance(rule, InformationCriterion):
            unit = least if rule.criterion == "gcv" else self.n_rows
        return int(np.argmax(scores <= least + TIE * unit))

    def scores(self, rule: Criterion) -> FloatArray:
        """The score that a rule minimises; shape (n_sets,)."""
        if isinstance(rule, InformationCriterion):
            n_free = self.training.posed.n_groups - len(self.training.always)
            return rule.value(self.rss, self.df, self.sizes, n_free, self.n_rows, self.loss)
        share = self.rss / (self.rss.max(initial=0.0) or 1.0)
        if isinstance(rule, Size):
            return np.abs(self.sizes - rule.n_groups) + 0.5 * share
        if not self.loss.quadratic or self.loss.vector:
            raise ValueError(
                "The discrepancy principle compares squared residuals with the noise, and the loss is "
                f"{self.loss.name}: choose by folds (selection=5), 'ebic' or 'bic'."
            )
        if rule.sigma is None:
            at = int(np.argmin(self.scores(InformationCriterion("gcv"))))
            variance = self.rss[at] / max(self.n_rows - self.df[at], 1.0)
        else:
            variance = rule.sigma**2
        enough = self.rss / self.n_rows <= rule.factor * variance * (1 + TIE)
        # if no residual is small enough, the least one wins
        return np.where(enough, self.df, 2 * self.n_rows) + 0.5 * share

    def frame(self, rule: Criterion) -> pd.DataFrame:
        """One row per set."""
        name = rule.criterion if isinstance(rule, InformationCriterion) else "score"
        return pd.DataFrame(
            {
                "recipe": [recipe.text(self.loss.unpenalised) for recipe in self.recipes],
                "groups": self.sizes.astype(int) + len(self.training.always),
                "columns": self.training.rounds[0].sizes,
                "deviance" if self.loss.vector or not self.loss.quadratic else "rss": self.rss,
                "df": self.df,
                name: self.scores(rule),
            }
        )


def training_table(posed: Posed, always: list[int], rule: Criterion) -> TrainingTable:
    """Run the path on all rows until the rule has enough groups, then eliminate."""
    table, settings = Table(posed), posed.settings
    (training,) = trainings_of(table, always)
    paths = Paths(table, [always])
    most = posed.n_groups - len(always) - int((np.delete(posed.ranks, always) == 0).sum())
    if isinstance(rule, Size):
        paths.advance(min(most, rule.n_groups + settings.spare(rule.n_groups)))
    else:
        _advance(paths, rule if isinstance(rule, InformationCriterion) else InformationCriterion("gcv"), most)
    clean([training], paths, 0, ())
    round_ = training.rounds[0]
    round_.finish()
    scores = Scores(table.response.rows(training.scored), np.ones(training.scored.size, dtype=bool))
    errors = scores.errors(Cleaned.scored(round_.recipes, training)[0]) / scores.weight
    loss, m, n = posed.response.loss, posed.scale.size, posed.counts[0]
    errors = np.maximum(errors, ROUNDING * errors.max(initial=0.0)) * posed.error_unit
    return TrainingTable(
        training, paths.knots(0), round_.recipes, n * errors,
        (np.array(round_.sizes) + float(posed.intercept)) * loss.free_outputs(m), n * loss.observations(m),
    )  # fmt: skip


def _advance(paths: Paths, rule: InformationCriterion, most: int) -> None:
    """Advance until the criterion has not fallen for a while, or there are too many columns for it."""
    posed, settings = paths.posed, paths.posed.settings
    loss, n, L, m = posed.response.loss, posed.counts[0], posed.n_groups, posed.scale.size
    active, begun = paths.active(0), len(paths.starts[0])
    deviances = [active.mean_deviance(begun)]
    while not paths.ended and paths.n_events() < most:
        done = paths.n_events()
        paths.advance(done + 1)
        columns = np.array(active.ends[begun:], dtype=float)
        if columns[-1] > settings.criterion_columns * n:
            paths.end_at(active.widths[begun + done] - active.n_first)
            return
        # parents wake with their child
        deviances += [active.mean_deviance(begun + m) for m in range(done + 1, columns.size)]
        values = rule.value(
            np.maximum(deviances, ROUNDING * deviances[0]) * n, columns * loss.free_outputs(m),
            np.arange(columns.size, dtype=float), L - begun, n * loss.observations(m), loss,
        )  # fmt: skip
        if columns.size - 1 - int(np.argmin(values)) > settings.criterion_patience:
            return
