"""Repeat the fit of a table without parts of its rows, beside what knows neither groups nor splines."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from covey.nested import NestedScore, nested_score
from covey.nested.references import find_references
from covey.workflow.problem import Problem
from covey.workflow.settings import Told

__all__ = ["N_FOLDS", "fold_stage", "repeat_fit"]

N_FOLDS = 5


def fold_stage(fold: int) -> str:
    """What a progress bar calls the repetition without a fold."""
    return f"without part {fold}"


def repeat_fit(problem: Problem, estimator: Any, seed: int, told: Told) -> NestedScore:
    """The nested score of a fit; the columns are expanded as they are in the fit on all rows.

    Where columns were expanded in splines, a lasso on the columns as they were stands beside that on the splines.
    """

    def progress(done: int) -> None:
        if done < N_FOLDS:
            told(fold_stage(done + 1))

    told(fold_stage(1))
    X, model, references = problem.X, estimator, {}
    if problem.straight is not None and problem.offset is None:
        p = X.shape[1]
        X = pd.concat([X, problem.straight.add_suffix(" as it is")], axis=1)
        model = Pipeline([("columns", _columns(slice(0, p))), ("model", estimator)])
        references = _on_straight(problem, estimator, seed, slice(p, X.shape[1]))
    return nested_score(
        model, X, problem.y, N_FOLDS, sample_weight=problem.weight, offset=problem.offset,
        references=references or True, random_state=seed, progress=progress,
    )  # fmt: skip


def _columns(which: slice) -> ColumnTransformer:
    chosen = ColumnTransformer([("chosen", "passthrough", which)], verbose_feature_names_out=False)
    return chosen.set_output(transform="pandas")


def _on_straight(problem: Problem, estimator: Any, seed: int, which: slice) -> dict[str, Any]:
    """The first method that scikit-learn has for the loss, without splines."""
    found, _ = find_references(
        estimator.loss_, has_classes=problem.response.has_classes, weighted=problem.weight is not None, offset=False,
        seed=seed,
    )  # fmt: skip
    return {
        f"{one.key} without splines": make_pipeline(_columns(which), StandardScaler(), one.estimator)
        for one in found[:1]
    }
