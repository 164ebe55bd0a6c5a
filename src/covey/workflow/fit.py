"""Fit a table and score the fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.classifier import ClassWeight, for_odds_of
from covey.evidence import NestedScore, StabilitySelection
from covey.evidence.class_scores import class_position, positive_position
from covey.evidence.stability import default_first
from covey.losses import Loss, Ordinal, get_loss
from covey.search.agreement import selects_groups
from covey.search.select import SelectionLike
from covey.selection import Size
from covey.settings import FitSettings
from covey.tables import TableError
from covey.terms import Constraints, Encoding
from covey.terms.requirements import opposite
from covey.validation import Array
from covey.wording import as_options
from covey.workflow.constraints import read_constraints
from covey.workflow.problem import Problem, Show, pose, show_nothing
from covey.workflow.response import Response
from covey.workflow.scores import Scores, repeat_fit, score
from covey.workflow.stability import select_by_halves
from covey.workflow.tables import groups_table, terms_table

# The most groups that a half-sample looks for, as a share of all: beyond it, random draws would be found often too.
MOST_OF_HALF = 0.5

SELECTIONS = ("holdout", "ebic", "bic", "gcv", "discrepancy")


@dataclass(frozen=True)
class Fit:
    """A fitted table."""

    settings: FitSettings
    problem: Problem
    estimator: BaseEstimator  # predicts from the table as it is
    scores: Scores
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
    def outputs(self) -> list[str]:
        """Names of the responses or classes, if the model has a row of coefficients for each."""
        return [*self.estimator._outputs()]

    @property
    def n_found(self) -> int:
        """The number of selected terms or groups, not counting those that are always in."""
        always = set(self.estimator.always_groups_)
        return sum(name not in always for name in self.estimator.selected_groups_)

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
        """All terms or groups: selected ones first, in order of strength."""
        table = groups_table(self.shown) if self.encoding is None else terms_table(self.shown)
        if self.nested is not None and selects_groups(self.estimator):
            always = set(self.estimator.always_groups_)
            counts = {name: self.nested.frequencies.get(name, 0) for name in table.iloc[:, 0]}
            counts |= dict.fromkeys(always & counts.keys(), self.nested.n_folds)
            table["outer_folds"] = table.iloc[:, 0].map(counts)
        if self.stability is not None:
            table["half_samples"] = table.iloc[:, 0].map(self._half_samples())
        return table

    def _half_samples(self) -> dict[Hashable, float]:
        """In which share of the half-samples a group is found, or the variable of a term; pairs are not tried there."""
        assert self.stability is not None
        found = self.stability.to_frame()["frequency"].to_dict()
        if self.encoding is None:
            return found
        return {term.name: found.get(term.variables[0], np.nan) for term in self.encoding.terms}

    def coefficients_table(self) -> pd.DataFrame:
        """All columns of the fit with their coefficients, after the intercept."""
        table: pd.DataFrame = self.shown.coefficients()
        return table


def fit_table(settings: FitSettings, show: Show = show_nothing) -> Fit:
    """Read the table, fit it, and score the fit.

    Raises
    ------
    ValueError
        With a reason and a remedy; `TableError` if the table is at fault.
    """
    check_settings(settings)  # before a large table is read
    problem = pose(settings, show)
    response = problem.response
    positive = _positive(settings, response)
    estimator = make_estimator(settings, problem, positive)
    y = problem.y if np.ndim(problem.y) == 1 else pd.DataFrame(problem.y, columns=[*response.targets])
    show("fitting")
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
            nested = repeat_fit(problem, estimator, settings.seed, show, positive)
        except ValueError as reason:
            notices.append(f"No held-out score: {as_options(str(reason)).rstrip('.')}.")
    # facts about the table that `covey predict` needs; saved with the model
    facts = {"targets": list(response.targets), "offset": settings.offset, "survival": response.survival}
    estimator.table_ = facts | {"positive": positive}
    stability = None
    if settings.stability:
        show("halving")
        stability = _stability(settings, problem, estimator)
        # `covey fit` does not have the option that a remark may name
        notices += [
            remark.replace("max_false", "max_false of covey.stability_selection") for remark in stability.remarks
        ]
    scores = score(problem, estimator, nested)
    return Fit(settings, problem, estimator, scores, converged, tuple(notices), seconds, nested, stability, positive)


def _stability(settings: FitSettings, problem: Problem, estimator: BaseEstimator) -> StabilitySelection:
    """Stability selection: each half-sample looks for as many groups as the model has, or more if that is safe."""
    always = problem.find_groups(settings.always)
    n_groups = problem.groups.n_groups - len(always)
    found = min(len(estimator.selected_groups_) - len(estimator.always_groups_), MOST_OF_HALF * n_groups)
    first = max(default_first(n_groups), int(found))
    return select_by_halves(problem, always, random_state=settings.seed, n_first=first)


def check_settings(settings: FitSettings) -> None:
    """Refuse settings that are impossible or would have no effect."""
    families = settings.table()["family"].kind.__args__
    if settings.family not in families:
        raise TableError(f"--family must be one of {', '.join(families)}, not {settings.family}.")
    read_constraints(settings.constraint)
    selection = _selection(settings.selection)
    if not isinstance(selection, int) and selection != "holdout":
        _refuse_idle(settings, f"--selection {settings.selection}", "rule")


def _refuse_idle(settings: FitSettings, beside: str, *names: str) -> None:
    for name in names:
        if getattr(settings, name) is not None:
            raise TableError(f"{settings.table()[name].flag} has no effect with {beside}.")


def _positive(settings: FitSettings, response: Response) -> object:
    """The class that --positive names, or that of two that is positive by default."""
    if settings.positive is not None:
        _refuse_for_classes(settings, response, "positive")
        return find_class(response, settings.positive, "--positive")
    position = positive_position(_classes(response)) if response.has_classes else None
    return None if position is None else _classes(response).tolist()[position]


def _classes(response: Response) -> Array:
    """The labels in the order of the estimator's `classes_`."""
    order = response.loss.order if isinstance(response.loss, Ordinal) else None
    return np.unique(response.y) if order is None else np.array(order)


def make_estimator(settings: FitSettings, problem: Problem, positive: object = None) -> BaseEstimator:
    """The estimator for these settings and this response; constraints are about the odds of the positive class."""
    response = problem.response
    if response.family != "gaussian" and settings.selection == "discrepancy":
        raise TableError(
            f"--selection discrepancy needs squared loss, but the family is {response.family}: use 5, bic or ebic."
        )
    kind: type[GroupSparseEstimator] = GroupSparseRegressor
    if response.has_classes or response.n_events is not None:
        kind = GroupSparseClassifier if response.has_classes else GroupSparseCox
    values = settings.parameters() | {
        "loss": _loss(response),
        "terms": problem.terms,
        "groups": problem.given_groups,
        "always": problem.find_terms(settings.always),
        "selection": _selection(settings.selection),
        "class_weight": _class_weight(settings, response),
        "constraints": _constraints(settings, response, positive),
    }
    accepted = signature(kind).parameters
    return kind(**{name: value for name, value in values.items() if name in accepted})


def _loss(response: Response) -> str | Loss:
    """The estimator's `loss`: a name, or an object if options gave it parameters."""
    if response.has_classes:
        return response.loss if response.family == "ordinal" else "multinomial"
    return response.loss.name if response.loss == get_loss(response.loss.name) else response.loss


def _constraints(settings: FitSettings, response: Response, positive: object) -> Constraints:
    """The estimator's `constraints`, which are about the odds of the second class in its order."""
    given = read_constraints(settings.constraint)
    if given is None or positive is None or _classes(response).tolist()[1:] == [positive]:
        return given
    return {name: opposite(value) for name, value in given.items()}


def _refuse_for_classes(settings: FitSettings, response: Response, name: str) -> None:
    """Refuse an option that is for classes only."""
    if not response.has_classes:
        flag = settings.table()[name].flag
        raise TableError(f"{flag} is for classes, but the family is {response.family}: leave it out.")


def _class_weight(settings: FitSettings, response: Response) -> ClassWeight:
    """The estimator's `class_weight` for the text of the option."""
    if not settings.class_weight:
        return None
    _refuse_for_classes(settings, response, "class_weight")
    if settings.class_weight == ("balanced",):
        return "balanced"
    weights = {}
    for part in (part for text in settings.class_weight for part in text.split(",")):
        label, _, number = part.rpartition("=")
        try:
            weights[find_class(response, label, "--class-weight")] = float(number)
        except ValueError as reason:
            if isinstance(reason, TableError):
                raise
            raise TableError(
                f"--class-weight must be balanced, or a list such as ill=10,well=1; {part!r} is neither."
            ) from None
    return weights


def find_class(response: Response, text: str, option: str) -> object:
    """The label with this text."""
    labels = np.unique(response.y)
    try:
        return labels.tolist()[class_position(labels, text, option)]
    except ValueError as reason:
        raise TableError(str(reason)) from None


def _selection(text: str) -> SelectionLike:
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
            f"--selection must be a number of folds, one of {', '.join(SELECTIONS)}, or size:3 for three terms or "
            f"groups, not {text}."
        )
    return text
