"""Predict from a table with a saved model."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from covey.persistence import ModelFileError, load
from covey.progress import enter
from covey.settings import PredictSettings
from covey.settings.wording import quoted
from covey.tables.columns import apart
from covey.tables.complaint import TableError, near
from covey.workflow.outcomes import outcome_of, read_at
from covey.workflow.problem import read_files


@dataclass(frozen=True)
class Prediction:
    """Predictions, with scores if the truth is known."""

    # The copied columns, then the column ``prediction``: a mean, or a class followed by columns ``probability_CLASS``.
    # Several responses have one column ``prediction_RESPONSE`` each. For survival times, the log risk followed by
    # columns ``survival_TIME``. Intervals come last: ``lower`` and ``upper``, or ``set``
    table: pd.DataFrame
    # ``r2`` and ``rmse`` (per response); for classes ``accuracy``, ``always_commonest`` (that of always saying the
    # commonest class), ``log_loss``, and with two classes the columns of `covey.evidence.ClassScores.table`;
    # ``deviance_explained`` and ``deviance``; or ``concordance``
    scores: dict[str, float]
    notices: tuple[str, ...]  # changes to the table that the user should know about


def predict_table(settings: PredictSettings) -> Prediction:
    """Read a table and predict the response of each of its rows."""
    enter("loading")
    fitted = load(settings.model / "model.skops" if settings.model.is_dir() else settings.model)
    enter("reading")
    frame, notices = read_files(settings.data, settings)
    columns = list(frame.columns)
    keep = tuple(dict.fromkeys(apart(settings.keep, columns)))
    settings = replace(settings, target=tuple(apart(settings.target, columns)), keep=keep)
    for name in (*settings.keep, *settings.target):
        if name not in columns:
            raise TableError(f"The table has no column {name!r}; {near(name, columns)}")
    enter("predicting")
    try:
        found = _predict(fitted, frame, settings)
    except (TableError, ModelFileError, MemoryError):
        raise
    except Exception as reason:
        if type(reason) is ValueError:  # raised by covey or scikit-learn; other libraries raise subclasses
            raise
        raise ModelFileError(
            f"{settings.model} cannot be used: its steps do not match each other ({reason})."
        ) from reason
    return replace(found, notices=(*notices, *_marks_of_fit(settings), *found.notices))


def _predict(fitted: Any, frame: pd.DataFrame, settings: PredictSettings) -> Prediction:
    times, outcome = read_at(settings.at), outcome_of(fitted, frame, settings)
    outcome.check(settings.target, times)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predictions = outcome.predict(times)
        intervals = [] if settings.interval is None else [outcome.intervals(settings.interval)]
    scores = outcome.score(settings.target, predictions) if settings.target else {}
    for name in settings.keep:
        if any(name in part for part in (predictions, *intervals)):
            raise TableError(f"--keep {name}: the predictions have a column of this name; rename it in the table.")
    table = pd.concat([outcome.frame[list(settings.keep)].reset_index(drop=True), predictions, *intervals], axis=1)
    remarks = dict.fromkeys(str(one.message) for one in caught)
    return Prediction(table, scores, (*outcome.notices, *remarks))


def _marks_of_fit(settings: PredictSettings) -> list[str]:
    """A notice if the fit's table was read with marks that this one is read without: 1.310 would be a number, too."""
    if settings.decimal or settings.thousands or settings.missing:
        return []
    folder = settings.model if settings.model.is_dir() else settings.model.parent
    try:
        used = json.loads((folder / "run.json").read_bytes())["settings"]
        given = [f"--{name} {used[name]!r}" for name in ("decimal", "thousands") if used.get(name)]
        given += [f"--missing {quoted(text)}" for text in used.get("missing", ())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # a model file alone
        return []
    return [f"The fit read its table with {' '.join(given)}: add it if this one is written alike."] if given else []
