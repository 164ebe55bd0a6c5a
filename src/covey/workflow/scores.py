"""The scores of a fit that the console, the files and the report share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from covey.evidence import NestedScore, nested_score
from covey.evidence.references import find_references
from covey.report.held_out import HeldOut
from covey.report.quality import explained, measure, null_error
from covey.search.chosen import judged
from covey.workflow.problem import Problem, Show
from covey.workflow.terms import make_transformer

# The progress bar's labels for the fits without an outer fold.
FOLD_STAGES = tuple(f"without part {fold}" for fold in range(1, 6))


@dataclass(frozen=True)
class Scores:
    """How well the model predicts."""

    measure: str  # name of the score: "R²", or "D²", the share of the deviance that the model removes
    train_r2: float  # on the rows the model was fitted to
    held_out_r2: float | None  # on outer folds that played no part in choosing the model
    held_out_margin: float | None  # half-width of a 90 % interval for the score on new rows
    chosen_r2: float | None  # on the rows used to choose the model, which is optimistic; None if no rows were used
    chosen_by: str  # description of those rows
    accuracy: float | None  # for classes: the share of correct predictions on the outer folds
    log_loss: float | None  # for classes: the log loss on the outer folds


def score(problem: Problem, estimator: Any, nested: NestedScore | None = None) -> Scores:
    """Score a fit."""
    response = problem.y, problem.weight, problem.offset
    candidates = judged(estimator, null_error(estimator, *response))
    chosen_r2 = candidates.r2 if candidates is not None else None
    n_splits = estimator.n_splits_
    chosen_by = f"{n_splits}-fold cross-validation" if n_splits > 1 else "one holdout set"
    classes = HeldOut.from_nested(nested)
    return Scores(
        measure=measure(estimator),
        train_r2=explained(estimator, problem.X, *response),
        held_out_r2=nested.mean if nested else None,
        held_out_margin=nested.margin if nested else None,
        chosen_r2=chosen_r2,
        chosen_by=chosen_by if chosen_r2 is not None else "",
        accuracy=classes.accuracy if classes else None,
        log_loss=classes.log_loss if classes else None,
    )


def repeat_fit(problem: Problem, estimator: Any, seed: int, show: Show) -> NestedScore:
    """The nested score of a fit, with spline knots and imputed values taken from the training rows only.

    If columns are expanded into splines, a lasso on the unexpanded columns is compared as well.
    """

    def progress(done: int) -> None:
        if done < len(FOLD_STAGES):
            show(FOLD_STAGES[done])

    progress(0)
    model = Pipeline([("columns", _with_levels(problem.transformer, problem)), ("model", estimator)])
    return nested_score(
        model, problem.raw, problem.y, len(FOLD_STAGES), sample_weight=problem.weight, offset=problem.offset,
        references=_without_splines(problem, estimator, seed) or True, random_state=seed, return_estimator=True,
        progress=progress,
    )  # fmt: skip


def _with_levels(transformer: ColumnTransformer, problem: Problem) -> ColumnTransformer:
    """An unfitted copy with the levels of all rows: a level missing from the training rows gives a column of zeros."""
    copy = clone(transformer)
    for _, step, columns in copy.transformers:
        if isinstance(step, OneHotEncoder):
            step.set_params(categories=OneHotEncoder().fit(problem.raw[[columns[0]]]).categories_)
    return copy


def _without_splines(problem: Problem, estimator: Any, seed: int) -> dict[str, Any]:
    """scikit-learn's first method for the loss, on the columns without splines; empty if no column has a spline."""
    if problem.offset is not None or not any(problem.terms.values()):
        return {}
    found, _ = find_references(
        estimator.loss_, has_classes=problem.response.has_classes, weighted=problem.weight is not None, offset=False,
        seed=seed,
    )  # fmt: skip
    levels = {name: size for name, size in problem.terms.items() if not size}
    columns = _with_levels(make_transformer(list(problem.raw.columns), levels, problem.settings.impute), problem)
    return {f"{one.key} without splines": make_pipeline(columns, StandardScaler(), one.estimator) for one in found[:1]}
