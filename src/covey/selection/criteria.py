"""Choices that need no held-out rows: information criteria, the discrepancy principle, a number of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import gammaln

from covey.limit.lockstep import Near, Paths
from covey.limit.posed import Posed
from covey.limit.rows import Split
from covey.losses import Loss, Squared
from covey.selection.fitting import CleanedModels, Fitting
from covey.selection.judge import ROUNDING, TIE
from covey.selection.search import fitting_of
from covey.selection.thresholds import THRESHOLDS
from covey.validation import FloatArray, one_of, positive, whole

__all__ = ["Criterion", "Discrepancy", "InformationCriterion", "Size", "TrainingTable", "spare_groups"]

# The most degrees of freedom, as a share of the rows: with more, the criteria extrapolate, and a saturated model has
# zero residual variance.
MOST_FREEDOM = 0.5

# The number of events without a lower criterion after which the path ends.
PATIENCE = 10

SQUARED = Squared()

# How many more groups than wanted the path wakes for elimination to choose from: a number, or a share if that is more.
SPARE_GROUPS, SPARE_SHARE = 8, 0.5


@dataclass(frozen=True)
class InformationCriterion:
    r"""The model of least BIC, extended BIC or generalised cross-validation.

    With ``RSS`` the residual sum of squares, ``s`` groups of ``L`` in the model and ``df`` degrees of freedom,

    - BIC: ``n log(RSS/n) + log(n) df``,
    - EBIC: BIC ``+ 2 gamma log C(L, s)``, which accounts for the choice among many groups (Chen and Chen, 2008),
    - GCV: ``(RSS/n) / (1 - df/n)^2``.

    For losses other than squared, the deviance replaces ``RSS``; if the loss has no scale parameter (classes, counts),
    it replaces ``n log(RSS/n)``. The degrees of freedom are the columns of the groups in the model, plus one for an
    intercept.

    Parameters
    ----------
    criterion : {"bic", "ebic", "gcv"}
    gamma : float
        The weight of the extra term of EBIC, between 0 and 1.
    """

    criterion: Literal["bic", "ebic", "gcv"] = "ebic"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        one_of(self.criterion, ("bic", "ebic", "gcv"), "criterion")
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
    """The first model whose mean squared residual is at most ``factor * sigma^2``.

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

    Parameters
    ----------
    n_groups : int
        Not counting groups that are always in the model.
    """

    n_groups: int

    def __post_init__(self) -> None:
        whole(self.n_groups, "the number of groups", least=0)


def spare_groups(n_groups: int) -> int:
    """How many more groups than wanted the path wakes, for elimination to choose from."""
    return max(SPARE_GROUPS, int(SPARE_SHARE * n_groups))


Criterion = InformationCriterion | Discrepancy | Size

# All rows, scored on themselves.
TRAINING = Split((0,), (0,))


@dataclass(frozen=True)
class TrainingTable:
    """Sets of groups, fitted on all rows without a penalty, with their residual sums of squares or deviances.

    Attributes
    ----------
    paths : Paths
    models : CleanedModels
    loss : Loss
    rss, df, sizes : ndarray, shape (n_sets,)
        For each set, the residual sum of squares (for other losses, the deviance), the degrees of freedom, and the
        number of groups, not counting those that are always in the model.
    n_rows : float
        The number of observations: with several responses, each one counts.
    n_groups, n_always : int
    """

    paths: Paths
    models: CleanedModels
    loss: Loss
    rss: FloatArray
    df: FloatArray
    sizes: FloatArray
    n_rows: float
    n_groups: int
    n_always: int

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
            return rule.value(self.rss, self.df, self.sizes, self.n_groups, self.n_rows, self.loss)
        share = self.rss / (self.rss.max(initial=0.0) or 1.0)
        if isinstance(rule, Size):
            return np.abs(self.sizes - rule.n_groups) + 0.5 * share
        if not isinstance(self.loss, Squared):
            raise ValueError(
                "The discrepancy principle compares squared residuals with the noise, and the loss is "
                f"{self.loss.name}: choose by folds (selection=5), 'ebic' or 'bic'."
            )
        if rule.sigma is None:
            at = int(np.argmin(self.scores(InformationCriterion("gcv"))))
            variance = self.rss[at] / max(self.n_rows - self.df[at], 1.0)
        else:
            variance = positive(rule.sigma, "sigma") ** 2
        enough = self.rss / self.n_rows <= positive(rule.factor, "factor") * variance * (1 + 1e-9)
        # if no residual is small enough, the least one wins
        return np.where(enough, self.df, 2 * self.n_rows) + 0.5 * share

    def frame(self, rule: Criterion) -> pd.DataFrame:
        """One row per set."""
        name = rule.criterion if isinstance(rule, InformationCriterion) else "score"
        return pd.DataFrame(
            {
                "recipe": [recipe.text(self.loss.unpenalised) for recipe in self.models.recipes],
                "groups": self.sizes.astype(int) + self.n_always,
                "columns": self.models.sizes,
                "rss" if isinstance(self.loss, Squared) else "deviance": self.rss,
                "df": self.df,
                name: self.scores(rule),
            }
        )


def training_table(posed: Posed, always: list[int], rule: Criterion) -> TrainingTable:
    """Run the path on all rows until the rule has enough groups, then eliminate."""
    near = Near(posed)
    fitting = fitting_of(near, len(always))
    paths = Paths(near, [always])
    n, begun = posed.counts[0], len(always)
    most = int((posed.problem.ranks > 0).sum()) - begun
    if isinstance(rule, Size):
        paths.advance(min(most, rule.n_groups + spare_groups(rule.n_groups)))
    else:
        _advance(paths, fitting, rule if isinstance(rule, InformationCriterion) else InformationCriterion("gcv"), most)
    total = begun + paths.n_events()
    prefixes = sorted({min(total, max(begun, prefix)) for prefix in THRESHOLDS.prefixes} | {total})
    (models,) = fitting.cleaned(paths, 0, [prefixes], ())
    scores = fitting.scores(0)
    errors = scores.errors(fitting.predictions(models, 0)) / scores.weight
    m = posed.scale.size
    unit = float(posed.scale[0] ** 2) if isinstance(scores.loss, Squared) else 1.0
    return TrainingTable(
        paths, models, scores.loss,
        np.maximum(errors, ROUNDING * errors.max(initial=0.0)) * n * unit,
        (np.array(models.sizes) + float(posed.intercept)) * scores.loss.free_outputs(m),
        np.array([float(recipe.size) for recipe in models.recipes]),
        n * scores.loss.observations(m), posed.problem.ranks.size, begun,
    )  # fmt: skip


def _advance(paths: Paths, fitting: Fitting, rule: InformationCriterion, most: int) -> None:
    """Advance until the criterion has not fallen for a while, or there is a column for every second row."""
    posed, loss = paths.posed, fitting.scores(0).loss
    n, L, m = posed.counts[0], posed.problem.ranks.size, posed.scale.size
    while not paths.ended and paths.n_events() < most:
        done = paths.n_events()
        paths.advance(done + 1)
        objective = paths.objective(0)
        columns = np.array([objective.n_extras, *objective.ends], dtype=float)
        if columns[-1] > MOST_FREEDOM * n:
            paths.truncate(done)
            return
        left = objective.unexplained()
        values = rule.value(
            np.maximum(left, ROUNDING * left[0]) * n, columns * loss.free_outputs(m), np.arange(columns.size) * 1.0, L,
            n * loss.observations(m), loss,
        )  # fmt: skip
        if columns.size - 1 - int(np.argmin(values)) > PATIENCE:
            return
