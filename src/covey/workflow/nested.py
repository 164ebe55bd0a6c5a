"""The nested score of a table's fit, next to methods that know neither groups nor splines."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from covey.evidence import NestedScore, nested_score
from covey.evidence.references import find_references
from covey.workflow.problem import Problem
from covey.workflow.settings import Told
from covey.workflow.terms import make_transformer

__all__ = ["N_FOLDS", "fold_stage", "repeat_fit"]

N_FOLDS = 5


def fold_stage(fold: int) -> str:
    """The progress bar's label for the fit without an outer fold."""
    return f"without part {fold}"


def repeat_fit(problem: Problem, estimator: Any, impute: str | None, seed: int, told: Told) -> NestedScore:
    """The nested score of a fit, with spline knots and imputed values taken from the training rows only.

    If columns are expanded into splines, a lasso on the unexpanded columns is compared as well.
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
    """An unfitted copy with the levels of all rows: a level missing from the training rows gives a column of zeros."""
    made = clone(transformer)
    for _, step, columns in made.transformers:
        if isinstance(step, OneHotEncoder):
            step.set_params(categories=[_levels(problem.raw[columns[0]])])
    return made


def _levels(values: Any) -> Any:
    return OneHotEncoder().fit(values.to_frame()).categories_[0]


def _on_straight(problem: Problem, estimator: Any, impute: str | None, seed: int) -> dict[str, Any]:
    """scikit-learn's first method for the loss, on the columns without splines; empty if no column has a spline."""
    if not any(problem.terms.values()):
        return {}
    found, _ = find_references(
        estimator.loss_, has_classes=problem.response.has_classes, weighted=problem.weight is not None, offset=False,
        seed=seed,
    )  # fmt: skip
    levels = {name: size for name, size in problem.terms.items() if not size}
    columns = _with_levels(make_transformer(list(problem.raw.columns), levels, impute), problem)
    return {f"{one.key} without splines": make_pipeline(columns, StandardScaler(), one.estimator) for one in found[:1]}
