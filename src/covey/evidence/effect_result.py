"""Effects: estimates with intervals and tests, and what they are estimates of."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from covey.losses import Loss
from covey.summary import Summary
from covey.validation import FloatArray, some

__all__ = ["Effects"]

# The most controls that a summary names.
MOST_NAMES = 12

# What a coefficient is, by the name of the loss, and what it is not.
OTHERWISE = "with other controls it would be another number, and it is not a difference in"
WHAT = {
    "squared": "the difference in the mean of the response",
    "huber": "the difference in the centre of the response",
    "quantile": "the difference in the quantile of the response",
    **dict.fromkeys(("poisson", "negative-binomial", "gamma", "tweedie"), "a log ratio of means"),
    "binomial": "a log odds ratio",
    "cox": "a log hazard ratio",
}
WHAT_NOT = {"binomial": f": {OTHERWISE} probabilities", "cox": f": {OTHERWISE} survival times"}


@dataclass(frozen=True, repr=False)
class Effects:
    """The result of `covey.evidence.effect`.

    Attributes
    ----------
    names : list
        The columns whose effects were asked for; levels of a category as ``site=b``.
    estimates : ndarray, shape (n_effects,)
    covariance : ndarray, shape (n_effects, n_effects)
        Of the estimates, robust to noise of unequal variance or to dependence within clusters.
    df : int
        The degrees of freedom of Student's t distribution for intervals and tests.
    confidence : float
        The coverage of `intervals`.
    loss : Loss
    controls : list
        The groups or terms in the refit, those that are always in first.
    selected_by : dict
        Which controls were selected for the response (key ``"response"``) and for each of the columns.
    n_rows : int
    n_clusters : int or None
    remarks : tuple of str
        Caveats.
    influence : ndarray, shape (n_effects, n_rows), or None
        How much the noise of each row, in units of its standard deviation, moves each effect.
    """

    names: list[Hashable]
    estimates: FloatArray
    covariance: FloatArray
    df: int
    confidence: float
    loss: Loss
    controls: list[Hashable]
    selected_by: dict[Hashable, list[Hashable]]
    n_rows: int
    n_clusters: int | None = None
    remarks: tuple[str, ...] = ()
    influence: FloatArray | None = None

    @property
    def what(self) -> str:
        """What is estimated, in words."""
        name = self.loss.name
        if name not in WHAT:
            return "the coefficient of the column in the linear predictor, given the controls"
        return f"{WHAT[name]} per unit of the column, given the controls{WHAT_NOT.get(name, '')}"

    @property
    def standard_errors(self) -> FloatArray:
        """Robust standard errors."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def intervals(self) -> FloatArray:
        """Lower and upper ends; shape (n_effects, 2)."""
        margin = stats.t.ppf((1 + self.confidence) / 2, self.df) * self.standard_errors
        return np.stack([self.estimates - margin, self.estimates + margin], axis=1)

    @property
    def p_values(self) -> FloatArray:
        """For the hypothesis that an effect is zero, one by one: not adjusted for their number."""
        return np.asarray(2 * stats.t.sf(np.abs(self.estimates) / self.standard_errors, self.df))

    @property
    def joint_p_value(self) -> float:
        """For the hypothesis that all effects are zero, by an F test."""
        m = len(self.estimates)
        statistic = float(self.estimates @ np.linalg.solve(self.covariance, self.estimates)) / m
        return float(stats.f.sf(statistic, m, self.df))

    def to_frame(self) -> pd.DataFrame:
        """A row per effect: the estimate, its standard error, the interval and the p-value.

        If the exponential of an effect has a name, such as "odds ratio", it has a column.
        """
        low, high = self.intervals.T
        table = {
            "effect": self.estimates, "standard_error": self.standard_errors, "low": low, "high": high,
            "p_value": self.p_values,
        }  # fmt: skip
        if self.loss.effect is not None:
            table[self.loss.effect.replace(" ", "_")] = np.exp(self.estimates)
        return pd.DataFrame(table, index=pd.Index(self.names, name="column"))

    def summary(self) -> Summary:
        """What was estimated, given which controls, and the table; ``print`` it, or let a notebook show it."""
        table = self.to_frame().map("{:.3g}".format).reset_index()
        controls = f": {some(self.controls, MOST_NAMES)}" if self.controls else ""
        rows = f"{self.n_rows} rows" + (f" in {self.n_clusters} clusters" if self.n_clusters else "")
        head = (
            f"Effect given {len(self.controls)} selected controls{controls}.",
            f"It is {self.what}. {rows}; standard errors are robust, intervals have a confidence of "
            f"{self.confidence:.0%}.",
        )
        joint = (f"All effects are zero: p-value {self.joint_p_value:.2g}.",) if len(self.names) > 1 else ()
        return Summary(head, table, (*joint, *(f"Note: {one}" for one in self.remarks)), "to_frame()", "effects")

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}: {value:.3g} +- {error:.2g}"
            for name, value, error in zip(self.names, self.estimates, self.standard_errors, strict=True)
        )
        return f"Effects({shown}; {len(self.controls)} controls)"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
