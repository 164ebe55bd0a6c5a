"""The nested score of a table's fit, next to methods that know neither groups nor splines."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from covey.nested import NestedScore, nested_score
from covey.nested.references import find_references
from covey.workflow.problem import Problem, Show
from covey.workflow.terms import make_transformer

__all__ = ["FOLD_STAGES", "repeat_fit"]

# The progress bar's labels for the fits without an outer fold.
FOLD_STAGES = tuple(f"without part {fold}" for fold in range(1, 6))


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
