"""Read and check the survival times of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from covey.designs.rows import Mask
from covey.losses import survival
from covey.losses.cox import likely_event
from covey.settings import TableSettings
from covey.tables.columns import labels, number_column
from covey.tables.complaint import Column, TableError, near, refuse_rows
from covey.validation import Array, FloatArray, some

# The most values to list if a column is not an event indicator.
FEW_VALUES = 6

# Survival is predicted at these quantiles of the times by default.
QUARTILES = (0.25, 0.5, 0.75)


def check_survival(settings: TableSettings) -> None:
    """Refuse options that contradict each other, before a table is read."""
    s = settings
    if s.time is None and s.event is None:
        given = {"--start": s.start, "--strata": s.strata, "--event-value": s.event_value, "--ties": s.ties}
        for option in [*(["--family cox"] if s.family == "cox" else []), *(name for name in given if given[name])]:
            raise TableError(f"{option} is for survival times: give --time and --event.")
        if not s.target:
            raise TableError("Nothing to predict: give --target COL, or --time COL and --event COL for survival times.")
    elif s.target:
        raise TableError(
            f"--target {s.target[0]} and --time {s.time or '...'}: a fit has only one of them. Leave out --target for "
            "survival times."
        )
    elif s.time is None:
        raise TableError(f"--event {s.event} needs --time, the column with the times of the event or of censoring.")
    elif s.event is None:
        raise TableError(
            f"--time {s.time} needs --event, the column that is 1 if the event happened and 0 if the row is censored. "
            f"If the event happened in every row, use a column of ones; --target {s.time} fits the times as plain "
            "numbers."
        )
    elif s.family not in ("auto", "cox"):
        raise TableError(f"--family {s.family} is not for survival times: leave out --family, or --time and --event.")


def survival_columns(settings: TableSettings) -> list[tuple[str, str]]:
    """The columns of survival times, each with its option; none of them is a predictor."""
    single = ((settings.time, "--time"), (settings.event, "--event"), (settings.start, "--start"))
    return [(name, option) for name, option in single if name] + [(name, "--strata") for name in settings.strata]


def survival_title(settings: TableSettings) -> str:
    """The name of survival times."""
    value = "=" + "/".join(settings.event_value) if settings.event_value else ""
    return f"{settings.time} to {settings.event}{value}"


def survival_facts(settings: TableSettings, y: Array) -> dict[str, object]:
    """The facts about a fit's table that predictions need: its columns, and how long its rows were followed."""
    strata = y["stratum"] if settings.strata else np.zeros(len(y))
    return {
        "time": settings.time,
        "event": settings.event,
        "event_value": list(settings.event_value),
        "start": settings.start,
        "strata": list(settings.strata),
        # rounded, because they appear in column names
        "quartiles": [float(f"{t:.4g}") for t in np.quantile(y["time"], QUARTILES)],
        # per stratum, in the order of the estimator's `strata_`
        "ends": [float(y["time"][strata == label].max()) for label in np.unique(strata)],
    }


def read_survival_times(frame: pd.DataFrame, settings: TableSettings, where: str) -> Array:
    """Read and check the times, events, entries and strata of a table; errors name the column, row and remedy."""
    columns = survival_columns(settings)
    for name, option in columns:
        if name not in frame.columns:
            raise TableError(f"{where} has no column {name!r} for {option}; {near(name, list(frame.columns))}")
        if [one for one, _ in columns].count(name) > 1:
            raise TableError(f"{name!r} is named twice among --time, --event, --start and --strata.")
    time, event = _times(frame[settings.time], "--time"), read_events(frame[settings.event], settings.event_value)
    start = None if settings.start is None else _times(frame[settings.start], "--start")
    if start is not None:
        must = f"--start {settings.start!r} must lie before --time {settings.time!r}"
        refuse_rows(start >= time, start, must, "drop rows that were never at risk, or mend their times", time)
    strata = read_strata(frame, settings.strata)
    return survival(time, event, start=start, strata=strata)


def read_events(column: Column, event_value: Sequence[str]) -> Mask:
    """The event indicator, from booleans, 0 and 1, or the values named by ``--event-value``."""
    option = f"--event {str(column.name)!r}"
    if not event_value and pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=bool)
    found = labels(column, "--event")  # refuses missing values
    texts = [str(label) for label in found.tolist()]
    known = sorted(set(texts))
    if event_value:
        wanted = [_spelt(value, known) for value in event_value]
        absent = [value for value in wanted if value not in known]
        if absent:
            raise TableError(
                f"--event-value {absent[0]}: {option} does not contain it; its values are {some(known, FEW_VALUES)}."
            )
        if set(wanted) == set(known):
            raise TableError(f"--event-value names every value of {option}: leave out those that mean censoring.")
        return np.isin(texts, wanted)
    values = pd.to_numeric(pd.Series(found), errors="coerce").to_numpy(dtype=float)
    if not np.isin(values, (0.0, 1.0)).all():
        remedy = "is it the right column?"
        if len(known) <= FEW_VALUES:
            remedy = f"say which value is the event, such as --event-value {likely_event(known)}"
        raise TableError(
            f"{option} must be 1 for the event and 0 for censoring, but holds {some(known, FEW_VALUES)}: {remedy}"
        )
    if not values.any():
        raise TableError(
            f"{option} is 0 in every row: there is no event, so nothing to fit. Does 1 in {str(column.name)!r} mean "
            "the event?"
        )
    return values == 1.0


def read_strata(frame: pd.DataFrame, strata: Sequence[str]) -> Array | None:
    """The stratum of each row, combined from all strata columns; None without any."""
    if not strata:
        return None
    found = [labels(frame[name], "--strata") for name in strata]
    return found[0] if len(found) == 1 else np.array([" / ".join(map(str, row)) for row in zip(*found, strict=True)])


def _times(column: Column, option: str) -> FloatArray:
    values: FloatArray = number_column(column, option)
    must = f"{option} {str(column.name)!r} must not be negative"
    refuse_rows(values < 0, values, must, "measure times from each row's origin")
    return values


def _spelt(value: str, known: Sequence[str]) -> str:
    """A value as the column spells it: 2 is read as 2.0 in a column that had missing values."""
    if value in known:
        return value
    try:
        return next((other for other in known if float(other) == float(value)), value)
    except ValueError:
        return value
