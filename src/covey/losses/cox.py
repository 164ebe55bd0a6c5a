"""Survival times: as users store them, in one array or table, and the partial likelihood of Cox's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.losses.base import CoupledLoss, Response
from covey.losses.responses import codes_among, refuse_rows
from covey.losses.risk_sets import EVENT, STOP, STRATUM, RiskSets
from covey.validation import Array, FloatArray, as_numbers, on_host

__all__ = ["Cox", "FieldNames", "SurvivalTimes", "likely_event", "read_survival", "survival"]

# Common words for an event, in columns of text.
EVENT_WORDS = ("dead", "died", "death", "deceased", "event", "yes", "true", "relapse", "relapsed", "failed", "failure")

# Round-off error of a martingale residual of zero.
ROUNDING = 1e-9


@dataclass(frozen=True)
class FieldNames:
    """Names of the columns of a table of survival times, or of the fields of a structured array."""

    time: str = "time"
    event: str = "event"
    start: str = "start"
    stratum: str = "stratum"

    @classmethod
    def of(cls, model: Any) -> FieldNames:
        """The names that an estimator has as parameters."""
        return cls(model.time, model.event, model.start, model.stratum)


@dataclass(frozen=True)
class Cox(CoupledLoss):
    """Proportional hazards: minus the log partial likelihood, where ``exp(eta)`` multiplies the hazard of a row.

    The loss of a row depends on the other rows at risk: `value`, `residual` and `curvature` treat the given rows as
    all the data, with weights of one, and add up to the total of `on`. `value` is zero for censored rows, and
    `residual` is the martingale residuals, observed minus expected events. Adding a constant to `eta` does not change
    the loss, so there is no intercept.

    Parameters
    ----------
    ties : {"efron", "breslow"}
        How events at the same time are treated; Efron's approximation is the more accurate one.

    Examples
    --------
    Rows are (start, stop, event, stratum); `covey.survival` makes them from times and events.

    >>> y = np.array([[-np.inf, 1.0, 1.0, 0.0], [-np.inf, 2.0, 0.0, 0.0]])
    >>> Cox().residual(y, np.zeros(2))
    array([ 0.5, -0.5])
    """

    ties: Literal["efron", "breslow"] = "efron"

    name: ClassVar[str] = "cox"
    known_dispersion: ClassVar[bool] = True
    effect: ClassVar[str | None] = "hazard ratio"
    unpenalised: ClassVar[str] = "maximum partial likelihood"
    survival: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.ties not in ("efron", "breslow"):
            raise ValueError(f"ties must be 'efron' or 'breslow', not {self.ties!r}.")

    def read(self, y: ArrayLike, name: str = "y", fields: FieldNames | None = None) -> Response:
        """Survival times as rows (start, stop, event, stratum), with the labels of the strata."""
        times = read_survival(y, name, fields)
        return Response(self, times.rows, times.labels)

    def check(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Survival times as rows (start, stop, event, stratum); rows in this form are returned unchanged."""
        if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 4 and y.dtype == np.float64:
            return y
        return read_survival(y, name).rows

    def check_estimable(self, response: Response, weight: FloatArray, offset: FloatArray | None = None) -> None:
        """Refuse survival times without events, or with all events at one time, and strata without events."""
        rows = response.y[weight > 0]
        events = rows[rows[:, EVENT] > 0]
        if not len(events):
            raise ValueError("y has no event: every row is censored, and there is nothing to fit. Is 1 the event?")
        if len(events) > 1 and np.ptp(events[:, STOP]) == 0:
            raise ValueError(
                f"All {len(events)} events of y are at time {events[0, STOP]:g}: such times say which rows had the "
                "event, not when. Use covey.GroupSparseClassifier for that."
            )
        if response.labels is not None:
            without = np.setdiff1d(np.arange(response.labels.size), events[:, STRATUM].astype(int))
            if without.size:
                label = response.labels[without[0] : without[0] + 1].tolist()[0]
                raise ValueError(
                    f"Stratum {label!r} of y has no event, so its hazard cannot be estimated: merge it with another "
                    "stratum, or drop its rows."
                )

    def balance(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The rank of each time within its stratum, with events after censored rows."""
        return np.unique(y[:, [EVENT, STRATUM, STOP]], axis=0, return_inverse=True)[1].ravel().astype(float)

    def on(self, y: FloatArray, weight: FloatArray) -> RiskSets:
        """The partial likelihood of these rows, which are sorted once."""
        return RiskSets(np.asarray(y, dtype=float), np.asarray(weight, dtype=float), self.ties == "efron")

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the excess of each event's loss over the saturated model, in which the event was certain to be next."""
        rows = self.on(y, np.ones(len(y)))
        return 2 * np.maximum(rows.values(eta) - rows.saturated_values.reshape(-1, *[1] * (np.ndim(eta) - 1)), 0)

    def informative(self, y: FloatArray) -> NDArray[np.bool_]:
        """The rows with events; censored rows only enter risk sets."""
        return np.asarray(np.asarray(y)[:, EVENT] > 0)

    def null(self, y: FloatArray, weight: FloatArray, offset: FloatArray | None = None) -> float:
        """Zero: a constant does not change the loss.

        Raises
        ------
        ValueError
            If there is nothing to learn from: no events, or no other rows at risk at any event.
        """
        rows = np.asarray(y, dtype=float)
        if not (rows[:, EVENT] * np.asarray(weight, dtype=float)).any():
            raise ValueError("There is no event: every row is censored.")
        shift = np.zeros(len(rows)) if offset is None else np.asarray(offset, dtype=float)
        if (np.abs(self.on(rows, weight).score(shift)) <= ROUNDING * np.asarray(weight)).all():
            raise ValueError(
                "At every event time all rows at risk have their event, so nothing can be learned from the times."
            )
        return 0.0


@dataclass(frozen=True)
class SurvivalTimes:
    """Validated survival times.

    Attributes
    ----------
    rows : ndarray, shape (n_rows, 4)
        Start, stop, event, and the position of the stratum among the labels.
    labels : ndarray, shape (n_strata,), or None
        Labels of the strata, if there are any.
    """

    rows: FloatArray
    labels: Array | None

    def coded_as(self, labels: Array | None, name: str = "y") -> FloatArray:
        """The rows with strata as positions among other labels."""
        if self.labels is None and labels is None:
            return self.rows
        if self.labels is None or labels is None:
            which = ("has no strata", "had strata") if self.labels is None else ("has strata", "had none")
            raise ValueError(f"{name} {which[0]}, but the rows of fit {which[1]}: give them in both, or in neither.")
        rows = self.rows.copy()
        codes = codes_among(self.labels, labels, f"{name} has the stratum")
        rows[:, -1] = codes[rows[:, -1].astype(int)]
        return rows


def survival(
    time: ArrayLike, event: ArrayLike | None = None, *, start: ArrayLike | None = None, strata: ArrayLike | None = None
) -> Array:
    """Survival times as one array that can be split by rows: the `y` of `GroupSparseCox`.

    Parameters
    ----------
    time : array-like of shape (n_rows,)
        The time of the event, or of censoring.
    event : array-like of shape (n_rows,), optional
        True or 1 for an event, False or 0 for censoring. By default every row has an event.
    start : array-like of shape (n_rows,), optional
        When each row came under observation (left truncation). By default all rows are at risk from the beginning.
    strata : array-like of shape (n_rows,), optional
        Labels of strata, which differ in their baseline hazards.

    Returns
    -------
    structured ndarray of shape (n_rows,)
        With the fields ``event`` and ``time``, in scikit-survival's order, and ``start`` and ``stratum`` if given.

    Examples
    --------
    >>> y = survival([5.0, 3.0, 8.0], [1, 0, 1])
    >>> y["event"].tolist(), y["time"].tolist()
    ([True, False, True], [5.0, 3.0, 8.0])
    """
    stop = _numbers(time, "time")
    fields = {"event": np.ones(stop.size, dtype=bool) if event is None else _events(event, "event"), "time": stop}
    if start is not None:
        fields["start"] = _numbers(start, "start")
    if strata is not None:
        fields["stratum"] = _labels(strata, "strata")
    for name, values in fields.items():
        if values.shape != stop.shape:
            raise ValueError(f"{name} has shape {values.shape}, but time has {stop.shape}: give one value per row.")
    out = np.empty(stop.size, dtype=[(name, values.dtype) for name, values in fields.items()])
    for name, values in fields.items():
        out[name] = values
    read_survival(out)
    return out


def read_survival(y: Any, name: str = "y", fields: FieldNames | None = None) -> SurvivalTimes:
    """Read and check a structured array, a table, a pair of arrays, or times without censoring.

    Raises
    ------
    ValueError
        Names the first invalid row and the remedy.
    """
    names = fields or FieldNames()
    if isinstance(y, tuple | list) and len(y) in (2, 3) and all(np.ndim(part) == 1 for part in y):
        *start, time, event = y
        return _read(name, event, time, start[0] if start else None, None)
    if hasattr(y, "columns") and hasattr(y, "__getitem__"):
        return _from_fields({str(column): y[column] for column in y.columns}, name, names)
    given = np.asarray(on_host(y))
    if given.dtype.names is not None:
        return _from_fields({field: given[field] for field in given.dtype.names}, name, names)
    if given.ndim == 2 and given.shape[1] == 2:
        return _read(name, given[:, 1], given[:, 0], None, None)
    if given.ndim != 1:
        raise ValueError(
            f"{name} has shape {given.shape}: survival times are a structured array from covey.survival(time, event), "
            f"a table with columns {names.time!r} and {names.event!r}, or a pair of arrays (time, event)."
        )
    return _read(name, np.ones(given.size), given, None, None)


def _from_fields(columns: dict[str, ArrayLike], name: str, names: FieldNames) -> SurvivalTimes:
    """Read fields by name; if there are two and exactly one is boolean, that one is the event, whatever its name."""
    time, event = names.time, names.event
    if len(columns) == 2 and names == FieldNames():
        flags = [field for field, values in columns.items() if np.asarray(values).dtype.kind == "b"]
        if len(flags) == 1 and flags[0] != time and (event in flags or event not in columns):
            (event,) = flags
            (time,) = (field for field in columns if field != event)
    missing = [field for field in (time, event) if field not in columns]
    if missing:
        raise ValueError(
            f"{name} has no column {missing[0]!r}, but {', '.join(map(repr, columns))}: name the columns with "
            "GroupSparseCox(time=..., event=...), or use covey.survival(time, event)."
        )
    return _read(name, columns[event], columns[time], columns.get(names.start), columns.get(names.stratum))


def _read(
    name: str, event: ArrayLike, time: ArrayLike, start: ArrayLike | None, stratum: ArrayLike | None
) -> SurvivalTimes:
    """Check the parts of survival times, and put them together."""
    event, stop = _events(event, f"The event of {name}"), _numbers(time, f"The time of {name}")
    if event.shape != stop.shape:
        raise ValueError(f"{name} has {stop.size} times and {event.size} events: give one of each per row.")
    if stop.size == 0:
        raise ValueError(f"{name} is empty.")
    origin = "Measure times from each row's origin."
    refuse_rows(stop < 0, stop, f"The time of {name} must not be negative", origin)
    begin = np.full(stop.size, -np.inf)
    if start is not None:
        begin = _numbers(start, f"The start of {name}")
        if begin.shape != stop.shape:
            raise ValueError(f"The start of {name} has {begin.size} entries, but there are {stop.size} times.")
        refuse_rows(begin < 0, begin, f"The start of {name} must not be negative", origin)
        late = "Drop rows that were never at risk, or correct their times."
        refuse_rows(begin >= stop, begin, f"The start of {name} must lie before the time", late)
    labels: Array | None = None
    codes: Array = np.zeros(stop.size)
    if stratum is not None:
        labels, codes = np.unique(_labels(stratum, f"The stratum of {name}"), return_inverse=True)
    return SurvivalTimes(np.column_stack([begin, stop, event.astype(float), codes]).astype(float), labels)


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    numbers = as_numbers(values, name, ndim=1, finite=False)
    refuse_rows(~np.isfinite(numbers), numbers, f"{name} must not be missing or infinite", "Impute or drop such rows.")
    return numbers


def likely_event(known: Sequence[str]) -> str:
    """The value that most likely means the event: a known word, or the last one in order, such as 2 of 1 and 2."""
    return next((value for value in known if value.lower() in EVENT_WORDS), max(known))


def _events(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    given = np.asarray(on_host(values))
    if given.dtype.kind == "b" and given.ndim == 1:
        return given
    if given.dtype.kind in "OUST":
        texts = list(dict.fromkeys(str(value) for value in given.ravel()))
        if 1 < len(texts) <= 10 and not set(texts) <= {"0", "1", "0.0", "1.0", "True", "False"}:
            raise ValueError(
                f"{name} must be 0 or 1, or boolean, but holds {', '.join(map(repr, texts))}: say which value is the "
                f"event, such as event == {likely_event(texts)!r}."
            )
    numbers = _numbers(values, name)
    largest = numbers.max(initial=0.0)
    refuse_rows(
        ~np.isin(numbers, (0.0, 1.0)), numbers, f"{name} must be 0 or 1, or boolean",
        f"Say which value is the event, such as event == {largest:g}, or code it as 1 and censoring as 0.",
    )  # fmt: skip
    return numbers == 1.0


def _labels(values: ArrayLike, name: str) -> Array:
    given = np.asarray(on_host(values))
    if given.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not shape {given.shape}.")
    missing = [row for row, label in enumerate(given.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"{name} is missing in row {missing[0]}: give every row a stratum, or drop the row.")
    return given.astype(str) if given.dtype.kind == "O" else given
