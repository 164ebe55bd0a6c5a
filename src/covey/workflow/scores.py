"""The scores of a fit that the console, the files and the report share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey.evidence import NestedScore
from covey.report.held_out import HeldOut
from covey.report.quality import explained, measure, null_error
from covey.search.chosen import judged
from covey.workflow.problem import Problem

__all__ = ["Scores", "score"]


@dataclass(frozen=True)
class Scores:
    """How well the model predicts.

    Attributes
    ----------
    measure : str
        Name of the score: "R²", or "D²", the share of the deviance that the model removes.
    train_r2 : float
        On the rows the model was fitted to.
    held_out_r2 : float or None
        On outer folds that played no part in choosing the model; None without a nested score.
    held_out_error : float or None
        Half-width of a 90 % interval for the score on new rows.
    chosen_r2 : float or None
        On the rows used to choose the model, which is optimistic; None if no rows were used.
    chosen_by : str
        Description of those rows.
    accuracy : float or None
        For classes: the share of correct predictions on the outer folds.
    log_loss : float or None
        For classes: the log loss on the outer folds.
    """

    measure: str
    train_r2: float
    held_out_r2: float | None
    held_out_error: float | None
    chosen_r2: float | None
    chosen_by: str
    accuracy: float | None = None
    log_loss: float | None = None


def score(problem: Problem, estimator: Any, nested: NestedScore | None = None) -> Scores:
    """Score a fit."""
    train = explained(estimator, problem.X, problem.y, problem.weight, problem.offset)
    chosen_by = judged(estimator, null_error(estimator, problem.y, problem.weight, problem.offset))
    by = ""
    if chosen_by is not None and chosen_by.r2 is not None:
        n = estimator.n_splits_
        by = f"{n}-fold cross-validation" if n > 1 else "one holdout set"
    classes = HeldOut.from_nested(nested)
    return Scores(
        measure=measure(estimator),
        train_r2=train,
        held_out_r2=nested.mean if nested else None,
        held_out_error=nested.std_error if nested else None,
        chosen_r2=chosen_by.r2 if chosen_by else None,
        chosen_by=by,
        accuracy=classes.accuracy if classes else None,
        log_loss=classes.log_loss if classes else None,
    )
