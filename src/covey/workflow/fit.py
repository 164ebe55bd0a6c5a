"""Fit a table and score the fit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.estimators.base import GroupSparseEstimator
from covey.evidence import NestedScore, StabilitySelection
from covey.evidence.stability import default_first
from covey.losses import get_loss
from covey.report.held_out import HeldOut
from covey.selection import Size
from covey.tables import TableError
from covey.wording import as_options
from covey.workflow.always import read_always
from covey.workflow.nested import repeat_fit
from covey.workflow.problem import Problem, pose
from covey.workflow.response import FAMILIES
from covey.workflow.scores import Scores, score
from covey.workflow.settings import FitSettings, Told, silent
from covey.workflow.stability import select_by_halves
from covey.workflow.survival import check_ties
from covey.workflow.survival_predict import about_survival
from covey.workflow.tables import coefficients_table, groups_table, output_names

__all__ = ["SELECTIONS", "Fit", "fit_table"]

# The most groups that a half-sample looks for, as a share of all: beyond it, random draws would be found often too.
MOST_OF_HALF = 0.5

SELECTIONS = ("holdout", "ebic", "bic", "gcv", "discrepancy")


@dataclass(frozen=True)
class Fit:
    """A fitted table.

    Attributes
    ----------
    settings : FitSettings
    problem : Problem
    model : Pipeline
        Predicts from the raw table.
    scores : Scores
    converged : bool
    notices : tuple of str
        Warnings of the fit, in words.
    seconds : float
        Duration of the fit alone.
    nested : NestedScore or None
        The score on rows that played no part in choosing the model.
    stability : StabilitySelection or None
        How often each group is found in random halves of the rows, if requested.
    """

    settings: FitSettings
    problem: Problem
    model: Pipeline
    scores: Scores
    converged: bool
    notices: tuple[str, ...]
    seconds: float
    nested: NestedScore | None = None
    stability: StabilitySelection | None = None

    @property
    def held_out(self) -> HeldOut | None:
        """For classes: predictions of the refits that did not see the rows."""
        return HeldOut.from_nested(self.nested)

    @property
    def estimator(self) -> Any:
        """The pipeline's last step."""
        return self.model.steps[-1][1]

    @property
    def outputs(self) -> list[str]:
        """Names of the responses or classes, if the model has a row of coefficients for each."""
        return output_names(self.estimator, self.problem)

    @property
    def n_found(self) -> int:
        """The number of selected groups, not counting those that are always in."""
        always = set(self.estimator.always_groups_)
        return sum(name not in always for name in self.estimator.selected_groups_)

    def groups_table(self) -> pd.DataFrame:
        """All groups: selected ones first, in order of strength."""
        table = groups_table(self.estimator)
        if self.stability is not None:
            table["half_samples"] = table["group"].map(self.stability.to_frame()["frequency"])
        return table

    def coefficients_table(self) -> pd.DataFrame:
        """All columns of the fit with their coefficients, after the intercept."""
        return coefficients_table(self.estimator, self.problem)


def fit_table(settings: FitSettings, told: Told = silent) -> Fit:
    """Read the table, expand it, fit it, and score the fit.

    Raises
    ------
    ValueError
        With a reason and a remedy; `TableError` if the table is at fault.
    """
    check_settings(settings)  # before a large table is read
    problem = pose(settings.table, told)
    estimator = make_estimator(settings, problem)
    told("fitting")
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(problem.X, problem.y, problem.weight, problem.offset)
    seconds = time.perf_counter() - begin
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    notices = [*problem.notices, *([f"{problem.response.hint}."] if problem.response.hint else [])]
    notices += list(dict.fromkeys(as_options(str(w.message)) for w in caught))
    nested, why = _nested(settings, problem, estimator, told)
    notices += [why] if why else []
    model = Pipeline([("columns", problem.transformer), ("model", estimator)])
    # facts about the table that `covey predict` needs; saved with the model
    model.table_ = {
        "targets": list(problem.response.targets), "offset": settings.table.offset,
        "survival": about_survival(problem.settings, problem.y), "dates": problem.dates,
    }  # fmt: skip
    scores = score(problem, estimator, nested)
    stability = None
    if settings.stability:
        told("halving")
        stability = _stability(settings, problem, estimator)
        notices += stability.remarks
    return Fit(settings, problem, model, scores, converged, tuple(notices), seconds, nested, stability)


def _stability(settings: FitSettings, problem: Problem, estimator: Any) -> StabilitySelection:
    """Stability selection: each half-sample looks for as many groups as the model has, or more if that is safe."""
    always = list(estimator.always_groups_)
    n_groups = problem.groups.n_groups - len(always)
    found = min(len(estimator.selected_groups_) - len(always), MOST_OF_HALF * n_groups)
    first = max(default_first(n_groups), int(found))
    return select_by_halves(problem, always, settings.seed, ties=settings.options.get("ties"), n_first=first)


def _nested(settings: FitSettings, problem: Problem, estimator: Any, told: Told) -> tuple[NestedScore | None, str]:
    """The nested score, or the reason why there is none."""
    if not settings.nested:
        return None, ""
    try:
        return repeat_fit(problem, estimator, settings.table.impute, settings.seed, told), ""
    except ValueError as reason:
        return None, f"No held-out score: {as_options(str(reason)).rstrip('.')}."


def check_settings(settings: FitSettings) -> None:
    """Refuse settings that are impossible or would have no effect."""
    selection, family = _selection(settings.selection), settings.table.family
    given = {*settings.options, *(["always"] if settings.always else [])}
    if family not in FAMILIES:
        raise TableError(f"--family must be one of {', '.join(FAMILIES)}, not {family}.")
    check_ties(settings.table, settings.options.get("ties"))
    if not isinstance(selection, int) and selection != "holdout":
        _refuse_idle(given & {"rule", "average"}, f"--selection {settings.selection}")
    if settings.options.get("average"):
        _refuse_idle(given & {"rule"}, "--average")


def make_estimator(settings: FitSettings, problem: Problem) -> GroupSparseEstimator:
    """The estimator for these settings and this response."""
    shared = {
        "groups": problem.groups,
        "always": read_always(settings.always, problem),
        "selection": _selection(settings.selection),
        "random_state": settings.seed,
        **dict(settings.options),
    }
    family = problem.response.family
    if family != "gaussian" and settings.selection == "discrepancy":
        raise TableError(f"--selection discrepancy needs squared loss, but the family is {family}: use 5, bic or ebic.")
    if problem.response.has_classes:
        return GroupSparseClassifier(**shared)
    if family == "cox":
        return GroupSparseCox(**shared)
    return GroupSparseRegressor(loss=get_loss(family).name, **shared)


def _refuse_idle(given: set[str], beside: str) -> None:
    for name in sorted(given):
        raise TableError(f"--{name.replace('_', '-')} has no effect with {beside}.")


def _selection(text: str) -> Any:
    """The estimator's `selection` for the text of the option."""
    kind, _, number = text.partition(":")
    if kind == "size" and number.isdigit():
        return Size(int(number))
    if text.isdigit():
        if int(text) < 2:
            raise TableError(f"--selection must be at least 2 folds, not {text}.")
        return int(text)
    if text not in SELECTIONS:
        raise TableError(
            f"--selection must be a number of folds, one of {', '.join(SELECTIONS)}, or size:3 for three groups, not "
            f"{text}."
        )
    return text
