"""Fit a table and score the fit."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from covey.estimators.classifier import for_odds_of
from covey.evidence import NestedScore, StabilitySelection, nested_score, stability_selection
from covey.evidence.stability import default_first
from covey.progress import enter
from covey.report.fitted import Fitted
from covey.search.agreement import selects_groups
from covey.settings import FitSettings, as_options
from covey.terms import Encoding
from covey.workflow.parameters import check_settings, find_positive, make_estimator
from covey.workflow.problem import Problem, pose
from covey.workflow.stability import arguments_of

# The most groups that a half-sample looks for, as a share of all: beyond it, random draws would be found often too.
MOST_OF_HALF = 0.5


@dataclass(frozen=True)
class Fit:
    """A fitted table."""

    settings: FitSettings
    problem: Problem
    estimator: BaseEstimator  # predicts from the table as it is
    scores: dict[str, Any]  # how well the model predicts: see `_score`
    converged: bool
    warnings: tuple[str, ...]  # of the fit, in words
    seconds: float  # duration of the fit alone
    nested: NestedScore | None = None  # the score on rows that played no part in choosing the model
    stability: StabilitySelection | None = None  # how often each group is found in random halves of the rows
    positive: object = None  # the class that scores are about; None if there are more than two, or none

    @cached_property
    def shown(self) -> BaseEstimator:
        """The estimator with effects for the odds of the positive class, as tables and the report show it."""
        return for_odds_of(self.estimator, self.positive)

    @property
    def encoding(self) -> Encoding | None:
        """How the variables of the table were encoded; None with --groups."""
        expansion = getattr(self.estimator, "expansion_", None)
        return None if expansion is None else expansion.encoding

    @property
    def notices(self) -> tuple[str, ...]:
        """Remarks on the variables, and the warnings of the fit."""
        remarks = () if self.encoding is None else self.encoding.remarks
        return (*map(as_options, remarks), *self.warnings)

    def groups_table(self) -> pd.DataFrame:
        """All groups, or the terms of all variables and the pairs that woke up: selected ones first, by strength."""
        model, encoding = self.shown, self.encoding
        names, norms, woke = model.groups_.names, model.group_norms_, dict(model.path_.entered)
        always = set(model.always_groups_)
        if encoding is None:
            rows = list(range(len(names)))
            about: dict[str, Any] = {"group": list(names)}
        else:
            every = model.expansion_.terms
            rows = [l for l, term in enumerate(every) if len(term.variables) == 1 or l in woke or norms[l] > 0]
            about = {
                "term": [every[l].name for l in rows],
                "kind": [every[l].kind for l in rows],
                "variables": [", ".join(every[l].variables) for l in rows],
                "parents": [", ".join(every[j].name for j in every[l].parents) for l in rows],
            }
        facts = model._facts(rows)
        about |= {"size": facts.pop("size"), "selected": norms[rows] > 0, "always": [names[l] in always for l in rows]}
        table = pd.DataFrame({**about, **facts})
        table = table.sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)
        shown = table.iloc[:, 0]
        if self.nested is not None and selects_groups(self.estimator):
            counts = self.nested.frequencies | dict.fromkeys(always, self.nested.n_folds)
            table["outer_folds"] = [counts.get(name, 0) for name in shown]
        if self.stability is not None:
            shares = self.stability.to_frame()["frequency"].to_dict()
            if encoding is not None:  # a term has the share of its variable; pairs are not tried there
                shares = {term.name: shares.get(term.variables[0], np.nan) for term in encoding.terms}
            table["half_samples"] = shown.map(shares)
        return table if encoding is None else table.drop(columns="norm", errors="ignore")


def fit_table(settings: FitSettings) -> Fit:
    """Read the table, fit it, and score the fit.

    Raises
    ------
    ValueError
        With a reason and a remedy; `TableError` if the table is at fault.
    """
    check_settings(settings)  # before a large table is read
    problem = pose(settings)
    response = problem.response
    positive = find_positive(settings, response)
    estimator = make_estimator(settings, problem, positive)
    y = problem.y if np.ndim(problem.y) == 1 else pd.DataFrame(problem.y, columns=[*response.targets])
    enter("fitting")
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(problem.X, y, problem.weight, problem.offset)
    seconds = time.perf_counter() - begin
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    notices = [*problem.notices, *([f"{response.hint}."] if response.hint else [])]
    notices += dict.fromkeys(as_options(str(w.message)) for w in caught)
    nested = None
    if settings.nested:
        try:
            nested = nested_score(
                estimator, problem.X, problem.y, sample_weight=problem.weight, offset=problem.offset,
                random_state=settings.seed, return_estimator=True, positive=positive,
            )  # fmt: skip
            nested = replace(nested, responses=dict(zip(response.targets, nested.responses.values(), strict=False)))
        except ValueError as reason:
            notices.append(f"No held-out score: {as_options(str(reason)).rstrip('.')}.")
    # facts about the table that `covey predict` needs; saved with the model
    facts = {"targets": list(response.targets), "offset": settings.offset, "survival": response.survival}
    estimator.table_ = facts | {"positive": positive}
    stability = None
    if settings.stability:
        stability = _halve(settings, problem, estimator)
        # `covey fit` does not have the option that a remark may name
        said = [text.replace("max_false", "max_false of covey.stability_selection") for text in stability.remarks]
        stability = replace(stability, remarks=tuple(map(as_options, said)))
        notices += stability.remarks
    scores = _score(problem, estimator, nested)
    return Fit(settings, problem, estimator, scores, converged, tuple(notices), seconds, nested, stability, positive)


def _halve(settings: FitSettings, problem: Problem, estimator: BaseEstimator) -> StabilitySelection:
    """Stability selection: each half-sample looks for as many groups as the model has, or more if that is safe."""
    always = problem.find_groups(settings.always)
    n_groups = problem.groups.n_groups - len(always)
    found = min(len(estimator.selected_groups_) - len(estimator.always_groups_), MOST_OF_HALF * n_groups)
    first = max(default_first(n_groups), int(found))
    return stability_selection(**arguments_of(problem, always), random_state=settings.seed, n_first=first)


def _score(problem: Problem, estimator: BaseEstimator, nested: NestedScore | None) -> dict[str, Any]:
    """How well the model predicts, as the console and run.json say it."""
    data = Fitted(estimator, problem.X, problem.y, problem.weight, problem.offset)
    chosen_r2 = None if data.judged is None else data.judged.r2
    n_folds = estimator.n_splits_ // max(1, estimator.n_deals_)
    chosen_by = f"{n_folds}-fold cross-validation" if n_folds > 1 else "one holdout set"
    return {
        "measure": data.measure,  # "R²", or "D²", the share of the deviance that the model removes
        "train_r2": data.explained,  # on the rows the model was fitted to
        "held_out_r2": nested.mean if nested else None,  # on outer folds that played no part in choosing the model
        "held_out_margin": nested.margin if nested else None,  # of a 90 % interval for the score on new rows
        "chosen_r2": chosen_r2,  # on the rows used to choose the model: optimistic; None if no rows were used
        "chosen_by": chosen_by if chosen_r2 is not None else "",  # description of those rows
    }
