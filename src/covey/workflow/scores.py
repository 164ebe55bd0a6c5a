"""The scores of a fit that the console, the files and the report share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey.nested import NestedScore
from covey.report.held_out import HeldOut
from covey.report.quality import explained, measure, null_error
from covey.selection.judged import judged
from covey.workflow.problem import Problem

__all__ = ["Scores", "score"]


@dataclass(frozen=True)
class Scores:
    """How well the model predicts."""

    measure: str  # name of the score: "R²", or "D²", the share of the deviance that the model removes
    train_r2: float  # on the rows the model was fitted to
    held_out_r2: float | None  # on outer folds that played no part in choosing the model
    held_out_error: float | None  # half-width of a 90 % interval for the score on new rows
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
        held_out_error=nested.std_error if nested else None,
        chosen_r2=chosen_r2,
        chosen_by=chosen_by if chosen_r2 is not None else "",
        accuracy=classes.accuracy if classes else None,
        log_loss=classes.log_loss if classes else None,
    )
