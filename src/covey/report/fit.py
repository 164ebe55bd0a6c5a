"""FitReport: the contents of a fit's report, as plain data, from the chosen model to how to repeat the fit."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import covey
from covey.estimators.classifier import for_odds_of
from covey.estimators.reading import read_weight
from covey.estimators.term_views import as_terms
from covey.evidence import GroupTests, NestedScore, StabilitySelection, nested_score
from covey.evidence.class_scores import class_position, positive_position
from covey.evidence.folds import as_table
from covey.groups import Groups
from covey.report.choice import constraints_of, rivals_of
from covey.report.effects import TermPart, expanded_columns, pipeline_effects, term_part
from covey.report.fitted import Fitted
from covey.report.path import Along, Frames, along_the_path, keep_frames
from covey.report.predictions import Residuals, residuals
from covey.report.quality import Response, Score, Test, quality, responses
from covey.report.remarks import Remark, remarks
from covey.report.survival import Survival, survival_part
from covey.search.agreement import selects_groups
from covey.search.chosen import Judged, how_chosen, in_words, price_of_sparsity
from covey.terms.effects import Effect
from covey.validation import IntArray, MatrixLike, PerRow

# The definition of a group's strength if groups are orthonormalised, and otherwise.
SPREAD = "standard deviation of the group's part of the prediction"
NORM = "norm of the group's coefficients on the scaled columns"

# The scale of the linear predictor, for effects with a name.
UNITS = {
    "odds ratio": "log odds",
    "rate ratio": "the logarithm of the rate",
    "ratio of means": "the logarithm of the mean",
    "hazard ratio": "the logarithm of the hazard",
}

# The libraries whose versions are listed.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")

# Longer values, such as a list of every column's group, are shortened for readers.
LONGEST_SETTING = 300


@dataclass(frozen=True)
class FitReport:
    """The contents of a fit's report, as plain data; `from_model` collects them."""

    title: str
    estimator: str  # the name of its class
    target: str  # the name of the response
    n_rows: int | None  # None if the data were not given
    n_columns: int
    n_groups: int  # without those that are always in
    model: str  # in words, and whether it is shrunk
    how_chosen: str
    n_selected: int  # groups, without those that are always in
    n_selected_columns: int
    scores: tuple[Score, ...]
    frames: Frames  # the path; its last frame is the model
    strength_label: str  # the definition of a group's strength
    n_folds: int = 0  # 0 if the groups selected in each are unknown
    folds_name: str = "folds"  # or "outer folds"
    judged: Judged | None = None  # the errors of the candidates
    price: str = ""  # what sparsity costs, in one sentence
    rivals: tuple[dict[str, Any], ...] = ()  # sets of groups that held-out rows cannot tell from the best
    constraints: tuple[Any, ...] = ()  # the lines of `constraints_`, those that bind first
    remarks: tuple[Remark, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    unpenalised: str = "least squares"  # the kind of model on the path
    effect: str | None = None  # the name of a coefficient's exponential
    strength_unit: str = ""
    classes: tuple[str, ...] = ()  # their labels
    always: tuple[str, ...] = ()  # groups that are in every model
    along: Along | None = None  # training errors along the path, for losses other than squared
    nested: NestedScore | None = None  # the score on rows that played no part in choosing the model
    no_nested: str = ""  # why there is no such score
    responses: tuple[Response, ...] = ()  # if there are several
    survival: Survival | None = None
    stability: StabilitySelection | None = None
    tests: GroupTests | None = None
    effects: tuple[Effect, ...] = ()  # of expanded columns
    terms: TermPart | None = None  # of a model that was fitted with terms=
    residuals: Residuals | None = None  # for a numeric response
    command: str = ""  # the command line that repeats the fit, if there is one
    membership: tuple[tuple[str, ...], ...] = ()  # each group's name and columns; empty if groups overlap, or for terms

    @property
    def noun(self) -> str:
        """What is selected: groups of columns, or terms."""
        return "group" if self.terms is None else "term"

    @property
    def moves(self) -> bool:
        """Whether a group's strength measures how far it moves the prediction."""
        return self.strength_label in (SPREAD, as_terms(SPREAD))

    @classmethod
    def from_model(
        cls,
        model: BaseEstimator,
        X: MatrixLike | None = None,
        y: PerRow = None,
        *,
        sample_weight: PerRow = None,
        offset: PerRow = None,
        split_groups: PerRow = None,
        title: str | None = None,
        target: str | None = None,
        outputs: Sequence[str] | None = None,
        test: Test = None,
        nested: NestedScore | int = 5,
        positive: object = None,
        stability: StabilitySelection | None = None,
        tests: GroupTests | None = None,
        settings: Mapping[str, object] | None = None,
        command: str = "",
    ) -> FitReport:
        """Collect the contents of a report.

        Parameters
        ----------
        model : GroupSparseRegressor, GroupSparseClassifier or GroupSparseCox, or a Pipeline that ends with one
            Fitted.
        X, y : array-like, optional
            The training data. Without them the report has no training R^2 and no remarks on correlated groups.
        sample_weight, offset, split_groups : array-like, optional
            As given to `fit`.
        title : str, optional
        target : str, optional
            The name of the response; by default the name of `y`, if it has one.
        outputs : sequence of str, optional
            The names of several responses; by default the column names of `y`, if it has any.
        test : (X, y), or (X, y, offset), optional
            Test rows that were used for nothing else; the report then leads with the R^2 on them.
        nested : int or NestedScore
            The number of outer folds in which to repeat the fit, for a score on rows that played no part in
            choosing the model, compared with a lasso and a ridge; for classes also a confusion table and a
            calibration plot. 0 for none. Or a result of `covey.nested_score`.
        positive : object, optional
            The class that scores are about and, if there are two, whose odds the effects and coefficients describe. By
            default the one of `nested`, or of two classes the affirmative one, such as yes or ja, or else the second.
        stability : StabilitySelection, optional
            The result of `covey.stability_selection` on the same data.
        tests : GroupTests, optional
            The result of `covey.evidence.test_groups` on the same data.
        settings : mapping, optional
            Further lines for the section on repeating the fit, such as the file, its hash and the seed.
        command : str
            The command line that repeats the fit.
        """
        for name, result, kind in (("stability", stability, StabilitySelection), ("tests", tests, GroupTests)):
            if result is not None and not isinstance(result, kind):
                made_by = "covey.stability_selection" if name == "stability" else "covey.evidence.test_groups"
                raise ValueError(f"{name} must be a result of {made_by}, not {type(result).__name__}.")
        given = model, X
        model, X, test = _last_step(model, X, test)
        check_is_fitted(model, "path_")
        if positive is not None and not hasattr(model, "classes_"):
            raise ValueError("positive= names a class, but the model predicts none: leave it out.")
        if (X is None) != (y is None):
            raise ValueError("X and y go together: give both, or neither.")
        if y is not None and model.loss_.survival:
            y, target = as_table(model, y), target or f"{model.time} to {model.event}"
        if sample_weight is not None and y is not None:
            sample_weight = read_weight(sample_weight, np.shape(y)[0])
        known: dict[str, Any] = {"sample_weight": sample_weight, "offset": offset, "split_groups": split_groups}
        score, why_not = _nested(*given, y, known, nested, positive)
        if (classes := getattr(model, "classes_", None)) is not None and len(classes) == 2:
            chosen = positive if score is None else score.positive
            position = positive_position(classes) if chosen is None else class_position(classes, chosen)
            label = classes.tolist()[position]
            given, model = (for_odds_of(given[0], label), given[1]), for_odds_of(model, label)
            if score is not None:
                score = replace(score, estimators=[for_odds_of(one, label) for one in score.estimators])
        name = target or str(getattr(y, "name", None) or "y")
        fit = Fitted(model, X, y, sample_weight, offset, score)
        always = {model.groups_.position(group) for group in model.always_groups_}
        folds, n_folds, folds_name = _folds(model, score)
        has_terms = hasattr(model, "expansion_")
        say = as_terms if has_terms else str
        names = _outputs(model, y, outputs)
        frames = keep_frames(model.path_, folds, always=always, outputs=names)
        return cls(
            title=title or f"What predicts {name}",
            estimator=type(model).__name__,
            target=name,
            n_rows=None if y is None else int(np.count_nonzero(fit.row_weight)),
            n_columns=model.groups_.n_columns,
            n_groups=model.groups_.n_groups - len(always),
            model=say(in_words(model)),
            how_chosen=how_chosen(model),
            n_selected=len(fit.names),
            n_selected_columns=model.n_selected_columns_,
            scores=quality(fit, test),
            frames=frames,
            strength_label=say(SPREAD if model.standardize == "group" else NORM),
            n_folds=n_folds,
            folds_name=folds_name,
            judged=fit.judged,
            price=say(price_of_sparsity(model)),
            rivals=rivals_of(model),
            constraints=constraints_of(model),
            remarks=remarks(fit),
            settings={
                **{name: _short(repr(value)) for name, value in model.get_params(deep=False).items()},
                **{str(name): _short(str(value)) for name, value in (settings or {}).items()},
            },
            versions={"covey": covey.__version__, "Python": platform.python_version()}
            | {name: version(name) for name in PACKAGES}
            | {"system": platform.platform(terse=True)},
            unpenalised=model.loss_.unpenalised,
            effect=model.loss_.effect,
            strength_unit=UNITS.get(
                model.loss_.effect or "", "standard deviations of the responses" if model.loss_.several else ""
            ),
            classes=tuple(map(str, getattr(model, "classes_", ()))),
            always=tuple(str(group) for group in model.always_groups_),
            along=along_the_path(fit, frames),
            nested=score,
            no_nested=why_not,
            responses=responses(fit, names),
            survival=survival_part(fit, expanded_columns(given[0])),
            stability=stability,
            tests=tests,
            effects=pipeline_effects(*given, score, fit.weight),
            terms=term_part(model, score),
            residuals=residuals(fit),
            command=command,
            membership=() if has_terms else _membership(model.groups_),
        )


def _folds(model: BaseEstimator, nested: NestedScore | None) -> tuple[IntArray | None, int, str]:
    """In how many folds each group is selected, or None, how many there are, and what they are called.

    They are the outer folds, if there are any and the model is no mean of others.
    """
    if nested is None or not selects_groups(model):
        folds = model.fold_frequencies_ if model.n_splits_ > 1 else None
        return folds, 0 if folds is None else model.n_splits_, "folds"
    always = set(model.always_groups_)
    counts = (nested.n_folds if name in always else nested.frequencies.get(name, 0) for name in model.groups_.names)
    return np.array(list(counts)), nested.n_folds, "outer folds"


def _outputs(model: BaseEstimator, y: PerRow, given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of several outputs: classes or responses."""
    m = model.path_.n_outputs
    if hasattr(model, "classes_"):
        return tuple(map(str, model.classes_)) if m > 1 else ()
    if np.ndim(model.coef_) == 1:
        return ()
    names = model.loss_.outputs or (given if given is not None else getattr(y, "columns", None))
    found = tuple(map(str, (model._outputs() or range(m)) if names is None else names))
    if len(found) != m:
        raise ValueError(f"outputs has {len(found)} names, but the model has {m} responses.")
    return found


def _nested(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, known: dict[str, Any], given: NestedScore | int,
    positive: object,
) -> tuple[NestedScore | None, str]:  # fmt: skip
    """The nested score, or the reason why there is none."""
    if isinstance(given, NestedScore):
        return given if positive is None else replace(given, positive=positive), ""
    if X is None or y is None or not given:
        return None, ""
    try:
        return nested_score(model, X, y, given, **known, positive=positive, return_estimator=True), ""
    except ValueError as reason:
        return None, str(reason).rstrip(".")


def _last_step(model: BaseEstimator, X: MatrixLike | None, test: Test) -> tuple[BaseEstimator, MatrixLike | None, Test]:
    """The estimator at the end of a pipeline, with the data after the preceding steps."""
    if not hasattr(model, "steps"):
        return model, X, test
    before, last = model[:-1], model[-1]
    if before.steps:
        X = None if X is None else before.transform(X)
        test = None if test is None else (before.transform(test[0]), *test[1:])
    return last, X, test


def _membership(groups: Groups) -> tuple[tuple[str, ...], ...]:
    """The name and the columns of each group; empty if groups overlap."""
    every = () if groups.overlapping else zip(groups.names, groups.lists(), strict=True)
    return tuple((str(name), *map(groups.column_name, members)) for name, members in every)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]} … ({len(text)} characters)"
