"""Predict from a table with a saved model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pandas as pd

from covey.persistence import ModelFileError
from covey.settings import PredictSettings
from covey.tables import TableError, apart, read_tables
from covey.tables.complaint import near
from covey.workflow.matching import SavedModel
from covey.workflow.outcomes import outcome_of, read_at
from covey.workflow.problem import Show, show_nothing


@dataclass(frozen=True)
class Prediction:
    """Predictions, with scores if the truth is known.

    Attributes
    ----------
    table : DataFrame
        The copied columns, then the column ``prediction``: a mean, or a class followed by columns
        ``probability_CLASS``. Several responses have one column ``prediction_RESPONSE`` each. For survival times, the
        log risk followed by columns ``survival_TIME``.
    scores : dict
        ``r2`` and ``rmse`` (per response), ``accuracy`` and ``log_loss`` of classes, ``deviance_explained`` and
        ``deviance``, or ``concordance``.
    notices : tuple of str
        Changes to the table that the user should know about.
    """

    table: pd.DataFrame
    scores: dict[str, float] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def predict_table(settings: PredictSettings, show: Show = show_nothing) -> Prediction:
    """Read a table and predict the response of each of its rows."""
    show("loading")
    model = SavedModel(settings.model)
    show("reading")
    frame = read_tables(settings.data, sep=settings.sep, decimal=settings.decimal)
    columns = list(frame.columns)
    settings = replace(
        settings, target=tuple(apart(settings.target, columns)), keep=tuple(apart(settings.keep, columns))
    )
    for name in (*settings.keep, *settings.target):
        if name not in columns:
            raise TableError(f"The table has no column {name!r}; {near(name, columns)}")
    show("predicting")
    try:
        return _predict(model, frame, settings)
    except (TableError, ModelFileError, MemoryError):
        raise
    except Exception as reason:
        if type(reason) is ValueError:  # raised by covey or scikit-learn; other libraries raise subclasses
            raise
        raise model.unusable(reason) from reason


def _predict(model: SavedModel, frame: pd.DataFrame, settings: PredictSettings) -> Prediction:
    frame, left_out = model.complete_rows(frame, settings.target) if settings.drop_missing else (frame, ())
    if settings.handle_unknown is not None:
        for encoder in model.encoders.values():
            encoder.handle_unknown = settings.handle_unknown
    times, outcome = read_at(settings.at), outcome_of(model, frame)
    outcome.check(settings.target, times)
    predictions = outcome.predict(times)
    scores = outcome.score(settings.target, predictions) if settings.target else {}
    table = pd.concat([frame[list(settings.keep)].reset_index(drop=True), predictions], axis=1)
    return Prediction(table, scores, (*left_out, *outcome.notices))
