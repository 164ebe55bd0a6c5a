"""Repeat the fit of a table without parts of its rows, beside what knows neither groups nor splines."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from covey.nested import NestedScore, nested_score
from covey.nested.references import find_references
from covey.workflow.problem import Problem
from covey.workflow.settings import Told
from covey.workflow.terms import make_transformer

__all__ = ["N_FOLDS", "fold_stage", "repeat_fit"]

N_FOLDS = 5


def fold_stage(fold: int) -> str:
    """What a progress bar calls the repetition without a fold."""
    return f"without part {fold}"


def repeat_fit(problem: Problem, estimator: Any, impute: str | None, seed: int, told: Told) -> NestedScore:
    """The nested score of a fit: knots of splines and filled values are those of the training rows.

    Where columns were expanded in splines, a lasso on the columns as they were stands beside that on the splines.
    """

    def progress(done: int) -> None:
        if done < N_FOLDS:
            told(fold_stage(done + 1))

    told(fold_stage(1))
    model = Pipeline([("columns", _with_levels(problem.transformer, problem)), ("model", estimator)])
    straight = {} if problem.offset is not None else _on_straight(problem, estimator, impute, seed)
    return nested_score(
        model, problem.raw, problem.y, N_FOLDS, sample_weight=problem.weight, offset=problem.offset,
        references=straight or True, random_state=seed, return_estimator=True, progress=progress,
    )  # fmt: skip


def _with_levels(transformer: ColumnTransformer, problem: Problem) -> ColumnTransformer:
    """Not fitted, with the levels of all rows: one that the training rows lack is a column of zeros."""
    made = clone(transformer)
    for _, step, columns in made.transformers:
        if isinstance(step, OneHotEncoder):
            step.set_params(categories=[_levels(problem.raw[columns[0]])])
    return made


def _levels(values: Any) -> Any:
    return OneHotEncoder().fit(values.to_frame()).categories_[0]


def _on_straight(problem: Problem, estimator: Any, impute: str | None, seed: int) -> dict[str, Any]:
    """The first method that scikit-learn has for the loss, without splines; nothing where there are none."""
    if not any(problem.terms.values()):
        return {}
    found, _ = find_references(
        estimator.loss_, has_classes=problem.response.has_classes, weighted=problem.weight is not None, offset=False,
        seed=seed,
    )  # fmt: skip
    levels = {name: size for name, size in problem.terms.items() if not size}
    columns = _with_levels(make_transformer(list(problem.raw.columns), levels, impute), problem)
    return {f"{one.key} without splines": make_pipeline(columns, StandardScaler(), one.estimator) for one in found[:1]}
