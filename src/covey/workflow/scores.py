"""How well a fit predicts, in the numbers that console, files and report share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from covey.report.held_out import HeldOut
from covey.report.quality import explained, measure, null_error
from covey.selection.judged import judged
from covey.workflow.problem import Problem

__all__ = ["Scores", "score"]


@dataclass(frozen=True)
class Scores:
    """How well the model predicts.

    Attributes
    ----------
    measure : str
        What `train_r2` and `held_out_r2` are: "R²", or "D²", the share of the deviance that the model removes.
    train_r2 : float
        On the rows that it was fitted to.
    held_out_r2 : float or None
        On rows that the fit did not see: None where none were held out. The model was chosen by these same rows, so
        that it is a little on the bright side.
    held_out_by : str
        Which rows those are.
    accuracy : float or None
        For classes: the share of rows whose class is predicted right by a fit that was repeated without them.
    log_loss : float or None
        Of the same predictions.
    refits : int
        How many such fits there were.
    """

    measure: str
    train_r2: float
    held_out_r2: float | None
    held_out_by: str
    accuracy: float | None = None
    log_loss: float | None = None
    refits: int = 0


def score(problem: Problem, estimator: Any, held_out: HeldOut | None = None) -> Scores:
    """Judge a fit."""
    train = explained(estimator, problem.X, problem.y, problem.weight, problem.offset)
    chosen_by = judged(estimator, null_error(estimator, problem.y, problem.weight, problem.offset))
    by = ""
    if chosen_by is not None and chosen_by.r2 is not None:
        n = estimator.n_splits_
        by = f"{n}-fold cross-validation" if n > 1 else "rows held out once"
    again = (held_out.accuracy, held_out.log_loss, held_out.n_folds) if held_out else (None, None, 0)
    return Scores(measure(estimator), train, chosen_by.r2 if chosen_by else None, by, *again)
