"""Survival times: the partial likelihood of Cox's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.losses.base import Loss, Response
from covey.losses.risk_sets import EVENT, STOP, STRATUM, RiskSets
from covey.losses.survival import FieldNames, read_survival
from covey.validation import FloatArray

__all__ = ["Cox"]

# Round-off error of a martingale residual of zero.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Cox(Loss):
    """Proportional hazards: minus the log partial likelihood, where ``exp(eta)`` multiplies the hazard of a row.

    The loss of a row depends on the other rows at risk: `value`, `residual` and `curvature` treat the given rows as
    all the data, with weights of one, and add up to the total of `on`. Adding a constant to `eta` does not change the
    loss, so there is no intercept.

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
    coupled: ClassVar[bool] = True
    has_intercept: ClassVar[bool] = False

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

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """What each event adds to the loss; zero for censored rows."""
        return self._alone(y).values(eta)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Martingale residuals: observed minus expected events."""
        return self._alone(y).score(eta)

    def curvature(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The diagonal of the Hessian."""
        return self._alone(y).curvature(eta)

    def curvature_product(self, y: FloatArray, eta: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian times a direction; it is not diagonal."""
        return self._alone(y).curvature_product(eta, direction)

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Twice the excess of each event's loss over the saturated model, in which the event was certain to be next."""
        rows = self._alone(y)
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

    def _alone(self, y: FloatArray) -> RiskSets:
        return self.on(y, np.ones(len(y)))
