"""Fit a table and score the fit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from inspect import signature
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.evidence import NestedScore, StabilitySelection
from covey.evidence.stability import default_first
from covey.report.held_out import HeldOut
from covey.selection import Size
from covey.settings import FitSettings
from covey.tables import TableError
from covey.wording import as_options
from covey.workflow.problem import Problem, Show, pose, show_nothing
from covey.workflow.scores import Scores, repeat_fit, score
from covey.workflow.stability import select_by_halves
from covey.workflow.tables import coefficients_table, groups_table, output_names

# The most groups that a half-sample looks for, as a share of all: beyond it, random draws would be found often too.
MOST_OF_HALF = 0.5

SELECTIONS = ("holdout", "ebic", "bic", "gcv", "discrepancy")


@dataclass(frozen=True)
class Fit:
    """A fitted table."""

    settings: FitSettings
    problem: Problem
    model: Pipeline  # predicts from the raw table
    scores: Scores
    converged: bool
    notices: tuple[str, ...]  # warnings of the fit, in words
    seconds: float  # duration of the fit alone
    nested: NestedScore | None = None  # the score on rows that played no part in choosing the model
    stability: StabilitySelection | None = None  # how often each group is found in random halves of the rows

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


def fit_table(settings: FitSettings, show: Show = show_nothing) -> Fit:
    """Read the table, expand it, fit it, and score the fit.

    Raises
    ------
    ValueError
        With a reason and a remedy; `TableError` if the table is at fault.
    """
    check_settings(settings)  # before a large table is read
    problem = pose(settings, show)
    response = problem.response
    estimator = make_estimator(settings, problem)
    show("fitting")
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(problem.X, problem.y, problem.weight, problem.offset)
    seconds = time.perf_counter() - begin
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    notices = [*problem.notices, *([f"{response.hint}."] if response.hint else [])]
    notices += dict.fromkeys(as_options(str(w.message)) for w in caught)
    nested = None
    if settings.nested:
        try:
            nested = repeat_fit(problem, estimator, settings.seed, show)
        except ValueError as reason:
            notices.append(f"No held-out score: {as_options(str(reason)).rstrip('.')}.")
    model = Pipeline([("columns", problem.transformer), ("model", estimator)])
    # facts about the table that `covey predict` needs; saved with the model
    model.table_ = {
        "targets": list(response.targets), "offset": settings.offset, "survival": response.survival,
        "dates": problem.dates,
    }  # fmt: skip
    stability = None
    if settings.stability:
        show("halving")
        stability = _stability(settings, problem, estimator)
        notices += stability.remarks
    scores = score(problem, estimator, nested)
    return Fit(settings, problem, model, scores, converged, tuple(notices), seconds, nested, stability)


def _stability(settings: FitSettings, problem: Problem, estimator: Any) -> StabilitySelection:
    """Stability selection: each half-sample looks for as many groups as the model has, or more if that is safe."""
    always = list(estimator.always_groups_)
    n_groups = problem.groups.n_groups - len(always)
    found = min(len(estimator.selected_groups_) - len(always), MOST_OF_HALF * n_groups)
    first = max(default_first(n_groups), int(found))
    return select_by_halves(problem, always, random_state=settings.seed, n_first=first)


def check_settings(settings: FitSettings) -> None:
    """Refuse settings that are impossible or would have no effect."""
    families = settings.table()["family"].kind.__args__
    if settings.family not in families:
        raise TableError(f"--family must be one of {', '.join(families)}, not {settings.family}.")
    selection = _selection(settings.selection)
    if not isinstance(selection, int) and selection != "holdout":
        _refuse_idle(settings, f"--selection {settings.selection}", "rule")


def _refuse_idle(settings: FitSettings, beside: str, *names: str) -> None:
    for name in names:
        if getattr(settings, name) is not None:
            raise TableError(f"{settings.table()[name].flag} has no effect with {beside}.")


def make_estimator(settings: FitSettings, problem: Problem) -> Any:
    """The estimator for these settings and this response."""
    response = problem.response
    if response.family != "gaussian" and settings.selection == "discrepancy":
        raise TableError(
            f"--selection discrepancy needs squared loss, but the family is {response.family}: use 5, bic or ebic."
        )
    kind: Any = GroupSparseRegressor
    if response.has_classes or response.n_events is not None:
        kind = GroupSparseClassifier if response.has_classes else GroupSparseCox
    values = settings.parameters() | {
        "loss": response.loss.name,
        "groups": problem.groups,
        "always": problem.find_groups(settings.always),
        "selection": _selection(settings.selection),
    }
    accepted = signature(kind).parameters
    return kind(**{name: value for name, value in values.items() if name in accepted})


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
