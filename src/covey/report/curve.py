"""What the stopping rule looked at along the path, whichever rule it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from covey.selection.network_time import standard_error
from covey.validation import FloatArray

__all__ = ["Curve", "stopping_curve"]

CRITERIA = {
    "bic": "Bayesian information criterion",
    "ebic": "extended Bayesian information criterion",
    "gcv": "generalised cross-validation score",
}


@dataclass(frozen=True)
class Curve:
    """A score against time, smaller is better.

    Attributes
    ----------
    label : str
        What the values are.
    times, values : ndarray, shape (n_times,)
    band : ndarray, shape (n_times,), or None
        One standard error, where there are folds.
    n_folds : int
        0 where there are none.
    rules : mapping
        The times that rules choose, by the rule's name.
    held_out : bool
        Whether the values are squared errors on rows that the path did not see.
    null : float or None
        The held-out error without any group, where it is known.
    """

    label: str
    times: FloatArray
    values: FloatArray
    band: FloatArray | None = None
    n_folds: int = 0
    rules: Mapping[str, float] = field(default_factory=dict)
    held_out: bool = False
    null: float | None = None

    def position(self, times: Any) -> Any:
        """The position of the last time not after each of these."""
        return np.searchsorted(self.times, times, side="right").clip(1) - 1

    def r2(self, times: Any) -> FloatArray | None:
        """Share of the held-out error without any group that the model at each of these times removes, if known."""
        if not self.null:
            return None
        return 1 - self.values[self.position(times)] / self.null


def stopping_curve(model: Any, y: Any = None) -> Curve | None:
    """The curve of a fitted estimator; None where its rule looked at none, as at a time that was given.

    A path that goes on from an earlier one has no time without any group: the variance of `y`, if given, then stands
    in for the error there.
    """
    curve = _looked_at(model)
    if curve is None:
        return None
    finite = np.isfinite(curve.values)  # criteria are infinite where degrees of freedom run out
    if finite.sum() < 2:
        return None
    band = None if curve.band is None else np.nan_to_num(curve.band[finite], posinf=0.0)
    times, values = curve.times[finite], curve.values[finite]
    null = None
    if curve.held_out:
        null = float(values[0]) if times[0] == 0 else None if y is None else float(np.var(y))
    return replace(curve, times=times, values=values, band=band, null=null)


def _looked_at(model: Any) -> Curve | None:
    if hasattr(model, "mse_path_"):
        mse = np.asarray(model.mse_path_, dtype=float)
        return Curve(
            label=f"mean squared error on held-out rows, mean of {mse.shape[1]} folds",
            times=np.asarray(model.times_, dtype=float),
            values=mse.mean(axis=1),
            band=standard_error(mse),
            n_folds=mse.shape[1],
            rules=dict(model.times_by_rule_),
            held_out=True,
        )
    scores = getattr(model, "scores_", None)
    if scores is None or "time" not in scores or len(scores) < 2:
        return None
    times = scores["time"].to_numpy(dtype=float)
    if "standard_error" in scores:
        mean, band = scores["mse"].to_numpy(dtype=float), scores["standard_error"].to_numpy(dtype=float)
        return Curve("mean squared error on held-out rows, mean of the folds", times, mean, band, held_out=True)
    if "mse" in scores:
        mean = scores["mse"].to_numpy(dtype=float)
        return Curve("mean squared error on held-out rows", times, mean, held_out=True)
    if "mean_square" in scores:
        return Curve("mean squared residual", times, scores["mean_square"].to_numpy(dtype=float))
    for name, label in CRITERIA.items():
        if name in scores:
            return Curve(label, times, scores[name].to_numpy(dtype=float))
    return None
