"""Read and check the survival times of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from covey.losses import survival
from covey.tables import TableError
from covey.tables.complaint import listed, near
from covey.validation import FloatArray
from covey.workflow.response import Response, number_column, read_labels

if TYPE_CHECKING:
    from covey.workflow.settings import TableSettings

__all__ = ["SurvivalColumns", "check_survival", "check_ties", "read_events", "read_strata", "read_survival_times"]

# Common words for an event, in columns of text.
EVENT_WORDS = ("dead", "died", "death", "deceased", "event", "yes", "true", "relapse", "relapsed", "failed", "failure")

# The most values to list if a column is not an event indicator.
FEW_VALUES = 6


@dataclass(frozen=True)
class SurvivalColumns:
    """The columns of survival times.

    Attributes
    ----------
    time, event : str
    event_value : tuple of str
        The values of `event` that mean an event; empty if it holds 0 and 1 or booleans.
    start : str or None
        The time of entry.
    strata : tuple of str
    """

    time: str
    event: str
    event_value: tuple[str, ...] = ()
    start: str | None = None
    strata: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: TableSettings) -> SurvivalColumns | None:
        """The columns named in the settings, or None."""
        if settings.time is None or settings.event is None:
            return None
        return cls(settings.time, settings.event, settings.event_value, settings.start, settings.strata)

    @property
    def every(self) -> tuple[str, ...]:
        """All these columns; none of them is a predictor."""
        return (self.time, self.event, *([self.start] if self.start is not None else []), *self.strata)

    @property
    def title(self) -> str:
        """The name of the response."""
        return f"{self.time} to {self.event}{'=' + '/'.join(self.event_value) if self.event_value else ''}"


def check_survival(settings: TableSettings) -> None:
    """Refuse options that contradict each other, before a table is read."""
    cox = settings.family == "cox"
    if settings.time is None and settings.event is None:
        given = {"--start": settings.start, "--strata": settings.strata, "--event-value": settings.event_value}
        idle = [name for name, value in given.items() if value]
        if cox or idle:
            what = "--family cox" if cox else idle[0]
            raise TableError(f"{what} is for survival times: give --time and --event.")
        if not settings.targets:
            raise TableError("Nothing to predict: give --target COL, or --time COL and --event COL for survival times.")
        return
    if settings.targets:
        raise TableError(
            f"--target {settings.targets[0]} and --time {settings.time or '...'}: a fit has only one of them. Leave "
            "out --target for survival times."
        )
    if settings.time is None:
        raise TableError(
            f"--event {settings.event} needs --time, the column with the times of the event or of censoring."
        )
    if settings.event is None:
        raise TableError(
            f"--time {settings.time} needs --event, the column that is 1 if the event happened and 0 if the row is "
            "censored. If the event happened in every row, use a column of ones; "
            f"--target {settings.time} fits the times as plain numbers."
        )
    if settings.family not in ("auto", "cox"):
        raise TableError(
            f"--family {settings.family} is not for survival times: leave out --family, or --time and --event."
        )


def check_ties(settings: TableSettings, ties: object) -> None:
    """Refuse ``--ties`` without survival times."""
    if ties is not None and settings.time is None:
        raise TableError("--ties is for survival times: give --time and --event.")


def read_survival_times(frame: pd.DataFrame, columns: SurvivalColumns, where: str) -> Response:
    """Read and check the times, events, entries and strata of a table.

    Raises
    ------
    TableError
        Names the column, the first row, and the remedy.
    """
    _check_columns(frame, columns, where)
    time = _times(frame, columns.time, "--time")
    event = read_events(frame[columns.event], columns)
    start = None if columns.start is None else _times(frame, columns.start, "--start")
    if start is not None and (start >= time).any():
        row = int(np.argmax(start >= time))
        raise TableError(
            f"--start {columns.start!r} must lie before --time {columns.time!r}, but is {start[row]:g} against "
            f"{time[row]:g} in row {row + 1} ({_counted(start >= time)}); drop rows that were never at risk, or mend "
            "their times."
        )
    strata = read_strata(frame, columns)
    _check_events(time, event, strata, columns)
    y = survival(time, event, start=start, strata=strata)
    return Response((columns.time, columns.event), y, "cox", words=columns.title)


def read_events(column: pd.Series[Any], columns: SurvivalColumns) -> Any:
    """The event indicator, from booleans, 0 and 1, or the values named by ``--event-value``."""
    option, name = f"--event {str(column.name)!r}", str(column.name)
    if columns.event_value:
        labels = [str(label) for label in read_labels(column, "--event").tolist()]
        known = sorted(set(labels))
        wanted = [_spelt(value, known) for value in columns.event_value]
        absent = [value for value in wanted if value not in known]
        if absent:
            raise TableError(
                f"--event-value {absent[0]}: {option} does not contain it; its values are {_listed(known)}."
            )
        if set(wanted) == set(known):
            raise TableError(f"--event-value names every value of {option}: leave out those that mean censoring.")
        return np.isin(labels, wanted)
    if pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=bool)
    labels = read_labels(column, "--event")  # refuses missing values
    values = pd.to_numeric(pd.Series(labels), errors="coerce").to_numpy(dtype=float)
    if not np.isin(values, (0.0, 1.0)).all():
        known = list(dict.fromkeys(sorted(str(label) for label in labels.tolist())))
        likely = _likely_event(known)
        say = f"say which value is the event, such as --event-value {likely}" if len(known) <= FEW_VALUES else (
            "is it the right column?"
        )  # fmt: skip
        raise TableError(f"{option} must be 1 for the event and 0 for censoring, but holds {_listed(known)}: {say}")
    if np.unique(values).size == 1 and values[0] == 0:
        raise TableError(
            f"{option} is 0 in every row: there is no event, so nothing to fit. Does 1 in {name!r} mean the event?"
        )
    return values == 1.0


def read_strata(frame: pd.DataFrame, columns: SurvivalColumns) -> Any:
    """The stratum of each row, combined from all strata columns; None without any."""
    if not columns.strata:
        return None
    labels = [read_labels(frame[name], "--strata") for name in columns.strata]
    if len(labels) == 1:
        return labels[0]
    return np.array([" / ".join(map(str, row)) for row in zip(*labels, strict=True)])


def _check_columns(frame: pd.DataFrame, columns: SurvivalColumns, where: str) -> None:
    own = {"--time": (columns.time,), "--event": (columns.event,), "--strata": columns.strata}
    own["--start"] = () if columns.start is None else (columns.start,)
    for option, names in own.items():
        for name in names:
            if name not in frame.columns:
                raise TableError(f"{where} has no column {name!r} for {option}; {near(name, list(frame.columns))}")
    twice = [name for name in columns.every if columns.every.count(name) > 1]
    if twice:
        raise TableError(f"{twice[0]!r} is named twice among --time, --event, --start and --strata.")


def _times(frame: pd.DataFrame, name: str, option: str) -> FloatArray:
    values: FloatArray = number_column(frame[name], option)
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise TableError(
            f"{option} {name!r} must not be negative, but is {values[row]:g} in row {row + 1} "
            f"({_counted(values < 0)}); measure times from each row's origin."
        )
    return values


def _check_events(time: FloatArray, event: Any, strata: Any, columns: SurvivalColumns) -> None:
    name = columns.event
    if not event.any():
        raise TableError(f"--event {name!r} has no event: every row is censored, so there is nothing to fit.")
    own = time[event]
    if own.size > 1 and np.ptp(own) == 0:
        raise TableError(
            f"All {own.size} events of --event {name!r} are at --time {own[0]:g}: they show in which rows the event "
            f"happened, but not when. Use --target {name} --drop {columns.time} instead."
        )
    if strata is not None:
        without = sorted(set(strata.tolist()) - set(strata[event].tolist()))
        if without:
            raise TableError(
                f"--strata {' and '.join(map(repr, columns.strata))}: {listed(without)} has no event, so its hazard "
                "cannot be estimated. Merge it with another stratum, or drop its rows."
            )


def _spelt(value: str, known: Sequence[str]) -> str:
    """A value as the column spells it: 2 is read as 2.0 in a column that had missing values."""
    if value in known:
        return value
    try:
        return next((own for own in known if float(own) == float(value)), value)
    except ValueError:
        return value


def _likely_event(known: Sequence[str]) -> str:
    """The value that most likely means the event: a known word, or the largest number."""
    word = next((value for value in known if value.lower() in EVENT_WORDS), None)
    return known[-1] if word is None else word


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values[:FEW_VALUES]) + (f" and {len(values) - FEW_VALUES} more" * (len(values) > FEW_VALUES))


def _counted(bad: Any) -> str:
    n = int(np.sum(bad))
    return f"{n} such row{'' if n == 1 else 's'}"
