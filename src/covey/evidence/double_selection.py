"""Double selection: controls of the response and of the columns, and the effects in a refit with robust errors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from joblib import delayed
from numpy.typing import NDArray
from scipy import stats

from covey.evidence.reading import columns_of, observations_on, read_share
from covey.evidence.score_test import independent_columns
from covey.groups.checks import plural
from covey.losses import Binomial, Loss, Quantile, Squared
from covey.losses.risk_sets import STRATUM
from covey.progress import Progress, finished
from covey.search.criteria import InformationCriterion
from covey.search.newton import minimise
from covey.search.observations import Observations
from covey.search.problem import Problem
from covey.search.select import select
from covey.summary import Summary
from covey.validation import FloatArray, PerRow, read_row_labels, some

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

# How controls are selected: inclusively, because what both searches leave out biases the effect; but for the response
# not so that among many columns some are selected that follow its noise, which biases it too. Controls of the columns
# cannot do that: too many of them only make the interval wider.
CRITERION, COLUMN_CRITERION = InformationCriterion("ebic", gamma=0.5), InformationCriterion("ebic", gamma=0.25)

# Refits with more columns per row than this get a remark, and cluster-robust intervals from fewer clusters.
MANY_COLUMNS, FEW_CLUSTERS = 1 / 3, 20

# Quantiles with fewer rows beyond them get a remark: of 200 rows, intervals of 95% for the 0.9 quantile hold in 85%.
FEW_BEYOND = 50

# The same of two classes with fewer rows of the rarer one: of 300 rows with 5, intervals of 95% hold in 89%.
FEW_RARE = 10


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
            f"Effect given {plural(len(self.controls), 'control')}{controls}.",
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


def double_selection(
    problem: Problem,
    names: Sequence[Hashable],
    D: FloatArray,
    clusters: PerRow = None,
    confidence: float = 0.95,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Effects:
    """The effects of columns D given the controls, which are the groups of `problem`: see `covey.evidence.effect`."""
    confidence, loss = read_share(confidence, "confidence"), problem.loss
    if loss.vector or (loss.coupled and not loss.survival):
        raise ValueError(
            f"Effects are for one response per row, and the loss is {loss.name}: give responses one by one, or "
            "one class against the others."
        )
    rows = np.flatnonzero(problem.weight > 0)
    y = np.asarray(problem.y)[rows]
    for name, d in zip(names, D[rows].T, strict=True):
        if not np.isfinite(d).all():
            raise ValueError(f"of: column {name!r} has missing or infinite values: drop these rows, or impute them.")
        if np.ptp(d) == 0:
            raise ValueError(f"of: column {name!r} has the same value in every row, so it has no effect to estimate.")
    labels = None if clusters is None else read_row_labels(clusters, len(problem.weight), "clusters")[rows]
    if labels is not None and np.ptp(labels) == 0:
        raise ValueError("clusters has the same label in every row: leave it out.")
    # criteria would count rows by their weights
    searched = replace(problem, weight=(problem.weight > 0).astype(float))
    tasks = [delayed(select)(replace(searched, y=d, loss=Squared(), offset=None), COLUMN_CRITERION) for d in D.T]
    found = [one.groups for one in finished(tasks, "search", n_jobs, progress, total=len(tasks) + 1)]
    # the response is searched with the effects of the columns as an offset: their noise would hide its controls
    effects = _refit(problem, names, D, _union(problem, found), rows).effects
    shift = D @ effects if problem.offset is None else problem.offset + D @ effects
    found.insert(0, select(replace(searched, offset=shift), CRITERION).groups)
    if progress is not None:
        progress(len(tasks) + 1, len(tasks) + 1)
    controls = _union(problem, found)
    refit = _refit(problem, names, D, controls, rows)
    covariance, df = robust_covariance(refit.response, refit.A, refit.eta, labels)
    remarks, n_columns, m = [], refit.A.shape[1], len(names)
    known_by, what = refit.response.n_informative, "events" if loss.survival else "rows"
    if n_columns > MANY_COLUMNS * known_by:
        remarks.append(f"The refit has {n_columns} columns for {known_by} {what}: intervals are approximations.")
    if labels is not None and df + 1 < FEW_CLUSTERS:
        remarks.append(f"There are {df + 1} clusters: with fewer than {FEW_CLUSTERS}, intervals are often too short.")
    if isinstance(loss, Quantile) and (beyond := min(loss.level, 1 - loss.level) * rows.size) < FEW_BEYOND:
        remarks.append(f"About {beyond:.0f} rows are beyond the quantile: with so few, intervals are often too short.")
    if isinstance(loss, Binomial) and (rare := min(y.sum(), rows.size - y.sum())) < FEW_RARE:
        remarks.append(f"About {rare:.0f} rows are of the rarer class: with so few, intervals are often too short.")
    known = problem.groups.names
    by = dict(zip(["response", *names], [[known[l] for l in one] for one in found], strict=True))
    return Effects(
        list(names), refit.effects, covariance[:m, :m] / np.outer(refit.spread, refit.spread), df, confidence,
        loss, [known[l] for l in controls], by, rows.size, None if labels is None else df + 1, tuple(remarks),
        refit.influence,
    )  # fmt: skip


def _union(problem: Problem, found: list[list[int]]) -> list[int]:
    return list(dict.fromkeys([*problem.always, *(l for one in found for l in one)]))


@dataclass(frozen=True)
class _Refit:
    """The response fitted on the columns, divided by their spread, and then on the controls, without a penalty."""

    response: Observations
    A: FloatArray
    eta: FloatArray
    effects: FloatArray
    spread: FloatArray

    @property
    def influence(self) -> FloatArray:
        """How much the noise of each row, in units of its standard deviation, moves each effect."""
        K = self.response.gram(self.eta, self.A)
        moved = np.linalg.solve(K, self.A.T)[: self.spread.size] * np.sqrt(self.response.curvature(self.eta))
        return np.asarray(moved / self.spread[:, None])


def _refit(
    problem: Problem, names: Sequence[Hashable], D: FloatArray, controls: list[int], rows: NDArray[np.intp]
) -> _Refit:
    D, C, constants = D[rows], columns_of(problem, controls)[rows], np.ones((rows.size, 1))
    if problem.loss.survival:  # the response says nothing of what is the same for all rows of a stratum
        strata = np.asarray(problem.y)[rows, STRATUM]
        constants = np.asarray(strata[:, None] == np.unique(strata), dtype=float)
    B = independent_columns(np.hstack([constants, C]))
    spread, response = D.std(axis=0), observations_on(problem, rows)
    n_columns, n_informative = B.shape[1] + D.shape[1], response.n_informative
    if n_informative <= n_columns:
        what = "events" if problem.loss.survival else "rows"
        raise ValueError(
            f"The columns of of and the selected controls are {n_columns} columns, too many for {n_informative} "
            f"{what}: give more rows or fewer columns."
        )
    for k, name in enumerate(names):
        others = independent_columns(np.hstack([B, np.delete(D, k, axis=1)]))
        if not independent_columns(D[:, [k]], others).shape[1]:
            raise ValueError(
                f"of: column {name!r} is a combination of the selected controls and the other columns of of, so its "
                "effect given them cannot be estimated: leave out what repeats it."
            )
    if not problem.loss.has_intercept:
        Q = independent_columns(constants)
        D, B = D - Q @ (Q.T @ D), independent_columns(C, Q)
    A = np.hstack([D / spread, B])
    fit = minimise(response, A, np.zeros((A.shape[1], 1)))
    if fit.status != "converged":
        raise ValueError(
            f"{names[0]!r} and the selected controls separate the responses perfectly, so effects are infinite: give "
            "more rows, or put rare classes together."
        )
    return _Refit(response, A, fit.eta, fit.coef[: D.shape[1], 0] / spread, spread)


def robust_covariance(
    response: Observations, A: FloatArray, eta: FloatArray, clusters: NDArray[np.intp] | None = None
) -> tuple[FloatArray, int]:
    """The covariance of the coefficients of a fit, and its degrees of freedom.

    Without clusters HC3: rows count with their residual divided by one minus their leverage. With clusters, scores are
    added up within them first, and the number of clusters replaces that of rows (CR1). For survival times these are
    Lin and Wei's score residuals, and events are counted in the place of rows.
    """
    n, k = response.n_informative, A.shape[1]
    inverse = np.linalg.inv(response.gram(eta, A))
    scores = response.score_by_row(eta, A)
    if clusters is None:
        left = 1 - response.curvature(eta) * ((A @ inverse) * A).sum(axis=1)
        scores = np.divide(scores, left[:, None], out=np.zeros_like(scores), where=left[:, None] > 1e-10)
        df, factor = n - k, 1.0
    else:
        codes = np.unique(clusters, return_inverse=True)[1]
        sums = np.zeros((int(codes.max()) + 1, k))
        np.add.at(sums, codes, scores)
        scores, df = sums, len(sums) - 1
        factor = len(sums) / df * (n - 1) / (n - k)
    half = scores @ inverse
    return factor * (half.T @ half), df
