"""The scores of a fit that the console, the files and the report share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.base import BaseEstimator

from covey.evidence import NestedScore, nested_score
from covey.report.quality import explained, measure, null_error
from covey.search.chosen import judged
from covey.workflow.problem import Problem, Show

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


def score(problem: Problem, estimator: BaseEstimator, nested: NestedScore | None = None) -> Scores:
    """Score a fit."""
    response = problem.y, problem.weight, problem.offset
    candidates = judged(estimator, null_error(estimator, *response))
    chosen_r2 = candidates.r2 if candidates is not None else None
    n_folds = estimator.n_splits_ // max(1, estimator.n_deals_)
    chosen_by = f"{n_folds}-fold cross-validation" if n_folds > 1 else "one holdout set"
    return Scores(
        measure=measure(estimator),
        train_r2=explained(estimator, problem.X, *response),
        held_out_r2=nested.mean if nested else None,
        held_out_margin=nested.margin if nested else None,
        chosen_r2=chosen_r2,
        chosen_by=chosen_by if chosen_r2 is not None else "",
    )


def repeat_fit(
    problem: Problem, estimator: BaseEstimator, seed: int, show: Show, positive: object = None
) -> NestedScore:
    """The nested score of a fit, with everything that is learned from a table learned from the training rows only."""

    def progress(done: int) -> None:
        if done < len(FOLD_STAGES):
            show(FOLD_STAGES[done])

    progress(0)
    found = nested_score(
        estimator, problem.X, problem.y, len(FOLD_STAGES), sample_weight=problem.weight, offset=problem.offset,
        random_state=seed, return_estimator=True, progress=progress, positive=positive,
    )  # fmt: skip
    return replace(found, responses=dict(zip(problem.response.targets, found.responses.values(), strict=False)))
