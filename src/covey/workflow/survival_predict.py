"""Predict the log risk and survival of a table's rows with a saved model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covey.estimators.concordance import concordance_index
from covey.losses import survival
from covey.losses.survival import read_survival
from covey.tables import TableError
from covey.tables.complaint import listed, near
from covey.validation import FloatArray
from covey.workflow.response import number_column
from covey.workflow.settings import TableSettings
from covey.workflow.survival import SurvivalColumns, read_events, read_strata

__all__ = ["about_survival", "concordance_of", "predict_survival", "read_at"]

# Survival is predicted at these quantiles of the times by default.
QUARTILES = (0.25, 0.5, 0.75)


def about_survival(settings: TableSettings, y: Any) -> dict[str, Any] | None:
    """The facts about a fit's table that predictions need: its columns, and how long its rows were followed."""
    columns = SurvivalColumns.of(settings)
    if columns is None:
        return None
    labels = y["stratum"] if columns.strata else np.zeros(len(y))
    return {
        "time": columns.time, "event": columns.event, "event_value": list(columns.event_value),
        "start": columns.start, "strata": list(columns.strata),
        # rounded, because they appear in column names
        "quartiles": [float(f"{t:.4g}") for t in np.quantile(y["time"], QUARTILES)],
        # per stratum, in the order of the estimator's `strata_`
        "ends": [float(y["time"][labels == label].max()) for label in np.unique(labels)],
    }  # fmt: skip


def read_at(given: Sequence[str]) -> list[float]:
    """Parse times given as ``1,2,5`` or by repeating the option.

    >>> read_at(["1,2", "5"])
    [1.0, 2.0, 5.0]
    """
    times = []
    for word in (part.strip() for text in given for part in text.split(",")):
        try:
            times.append(float(word))
        except ValueError:
            raise TableError(f"--at must be a list of times such as 1,2,5; {word!r} is not a number.") from None
        if not (np.isfinite(times[-1]) and times[-1] >= 0):
            raise TableError(f"--at {word}: times must be finite and not negative.")
    return list(dict.fromkeys(times))


def predict_survival(
    fitted: Any, last: Any, X: pd.DataFrame, frame: pd.DataFrame, shift: dict[str, Any],
    about: Mapping[str, Any] | None, at: Sequence[float],
) -> pd.DataFrame:  # fmt: skip
    """The log risk, and survival at the given times, by default the quartiles of the times in the fit.

    Survival is NaN beyond the follow-up of a row's stratum.
    """
    risk = np.asarray(fitted.predict(X, **shift), dtype=float)
    made = {"prediction": risk}
    if about is None and last.strata_ is not None:
        return pd.DataFrame(made)  # the file does not describe the table of the fit
    times = np.array(list(at) or ([] if about is None else about["quartiles"]), dtype=float)
    ends = np.array([last.event_times_[-1]] if about is None else about["ends"])
    if (times > ends.max()).any():
        raise TableError(
            f"--at {times.max():g} lies beyond the follow-up of the fit, which ends at {ends.max():g}: survival "
            "by then is unknown."
        )
    codes = np.zeros(len(risk), dtype=int)
    strata = None
    if last.strata_ is not None and about is not None:
        strata = _strata(frame, last, about)
        codes = np.searchsorted(last.strata_, strata)
    inside = fitted[:-1].transform(X) if hasattr(fitted, "steps") and len(fitted.steps) > 1 else X
    functions = last.predict_survival_function(inside, **shift, strata=strata)
    for time in times:
        left = np.array([function(time) for function in functions], dtype=float)
        made[f"survival_{time:g}"] = np.where(time > ends[codes], np.nan, left)
    return pd.DataFrame(made)


def concordance_of(
    frame: pd.DataFrame, target: Sequence[str], last: Any, risk: FloatArray, about: Mapping[str, Any] | None
) -> dict[str, float]:
    """The concordance of predicted risks with the events of a table."""
    about = about or {"event_value": (), "start": None, "strata": ()}
    columns = SurvivalColumns(target[0], target[1], tuple(about["event_value"]), about["start"], tuple(about["strata"]))
    own = [name for name in columns.every if name not in frame.columns]
    if own:
        raise TableError(f"The table lacks {listed(own)}, used in the fit: needed for the score.")
    time = number_column(frame[columns.time], "--target")
    event = read_events(frame[columns.event], columns)
    start = None if columns.start is None else number_column(frame[columns.start], "--target")
    strata = _strata(frame, last, about) if columns.strata else None
    rows = read_survival(survival(time, event, start=start, strata=strata)).rows
    return {"concordance": concordance_index(rows, risk, np.ones(len(risk)))}


def _strata(frame: pd.DataFrame, last: Any, about: Mapping[str, Any]) -> Any:
    """The stratum of each row, as the model encodes it."""
    names = about["strata"]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(
            f"The table lacks {listed(absent)}, the strata of the fit, each with its own hazard; "
            f"{near(absent[0], list(frame.columns))}"
        )
    found = read_strata(frame, SurvivalColumns(about["time"], about["event"], strata=tuple(names)))
    labels = found.astype(str) if last.strata_.dtype.kind == "U" else found
    unknown = sorted(set(map(str, labels.tolist())) - set(map(str, last.strata_.tolist())))
    if unknown:
        raise TableError(
            f"--strata {' and '.join(map(repr, names))} of the fit: the table holds {listed(unknown)}, which the model "
            f"has not seen; it knows {listed(last.strata_.tolist())}."
        )
    places = {str(label): label for label in last.strata_.tolist()}
    return np.array([places[str(label)] for label in labels.tolist()], dtype=last.strata_.dtype)
