"""GroupSparseCox: survival times as responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.designs import Design
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.documentation import documented
from covey.estimators.formula import survival_response
from covey.estimators.intervals import fold_predictors
from covey.estimators.reading import read_problem, read_weight
from covey.estimators.survival import (
    StepFunction,
    concordance_index,
    cumulated,
    event_scores,
    fold_hazards,
    kaplan_meier,
    survival_bounds,
)
from covey.losses import Cox
from covey.losses.base import Response
from covey.losses.cox import FieldNames, read_survival
from covey.losses.responses import codes_among
from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.progress import showing
from covey.search.held_out import FoldModels
from covey.validation import Array, FloatArray, IntArray, MatrixLike, PerRow, on_host, pandas_frame


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class GroupSparseCox(GroupSparseEstimator):
    r"""Group-sparse Cox regression: finds the few groups of columns that matter for survival and fits them.

    The hazard of a row is :math:`h_0(t) \exp(x^\top w)`, and the loss is minus the log partial likelihood. Groups wake
    up one after another, strongest first, along the path of a diagonally grouped linear network in the limit of small
    starts; groups that turn out not to be needed are dropped again. The resulting models are fitted by maximum partial
    likelihood and with ridge penalties, and cross-validation chooses one of them: a model fitted on the training rows
    is scored by what the held-out rows add to the deviance of the training rows.

    Parameters
    ----------
    $groups $terms $within
    ties : {"efron", "breslow"}
        How events at the same time are treated.
    $constraints
        They are about the logarithm of the hazard.
    always : iterable
        Names of groups (or of columns that are a group by themselves) that are in every model, such as clinical
        columns; they are never selected, shrunk or dropped.
    $selection
        Information criteria count events, and folds are balanced by events and their times.
    $rule $recipes $factors $group_weights $standardize
    time, event, start, stratum : str
        Names of the columns of `y` if it is a table, or of the fields of a structured array. The last two are
        optional in `y`.
    $random_state $verbose

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Log hazard ratios.
    intercept_ : float
        Makes the log risk zero for a row at the means of all columns; it has no other effect.
    loss_ : Loss
        `covey.losses.Cox`.
    strata_ : ndarray or None
        Labels of the strata.
    event_times_ : ndarray of shape (n_times,)
        All distinct event times.
    groups_ : Groups
    $always_groups_ $selected_groups_ $group_norms_
    group_strengths_ : ndarray of shape (n_groups,)
        How far each group moves the log risk: with ``standardize="group"``, the standard deviation of its contribution.
    $recipe_ $shrunk_
    $candidates_ $rivals_ $price_ $fold_frequencies_ $held_out_
    fold_hazards_ : ndarray of shape (n_folds, n_events) or None
        Cumulative baseline hazards without the rows of each fold, at the events of the baseline.
    $n_splits_ $predictor_range_ $path_ $expansion_ $constraints_ $n_features_in_ $feature_names_in_

    References
    ----------
    Li, Nguyen, Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023; van Houwelingen, Bruinsma,
    Hart, van 't Veer and Wessels, "Cross-validated Cox regression on microarray gene expression data", 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from covey import GroupSparseCox, survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 60))
    >>> death, lost = rng.exponential(np.exp(-X[:, :3].sum(axis=1))), rng.exponential(2.0, 200)
    >>> y = survival(np.minimum(death, lost), death <= lost)
    >>> model = GroupSparseCox(groups=3).fit(X, y)
    >>> model.selected_groups_, bool(model.score(X, y) > 0.75)
    ([0], True)
    """

    ties: str = "efron"
    time: str = "time"
    event: str = "event"
    start: str = "start"
    stratum: str = "stratum"

    loss_: Cox = field(init=False)
    strata_: Array | None = field(init=False)
    event_times_: FloatArray = field(init=False)
    fold_hazards_: FloatArray | None = field(init=False)

    # columns are centred; the baseline hazard takes the place of an intercept
    fit_intercept = True
    # the name of `score`, and its value for the null model
    score_name = "concordance"
    null_score = 0.5

    _formula_response = staticmethod(survival_response)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None, *,
        split_groups: PerRow = None,
    ) -> GroupSparseCox:  # fmt: skip
        """Select groups and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : structured array, table or pair of arrays
            Times and events: the result of `covey.survival`, which may include entry times and strata;
            scikit-survival's structured array of (event, time); a DataFrame with the columns `time` and `event`, and
            optionally `start` and `stratum`; or a pair of arrays (time, event). With times alone, every row has an
            event.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as repeating the row, except that a row is not tied with itself.
        offset : array-like of shape (n_rows,), optional
            Added to the log risk with coefficient one.
        $split_groups

        Returns
        -------
        self
        """
        read = partial(Cox(self.ties).read, fields=FieldNames.of(self))  # type: ignore[arg-type]
        design, response, weight = read_problem(self, X, y, sample_weight, read)
        self.strata_ = response.labels
        problem, search = self._pose(design, response, weight, offset, split_groups)
        with showing(type(self).__name__, self.verbose):
            found = search(problem)
        return self._publish(problem, found, response)

    def _calibrate(
        self, design: Design, folds: FoldModels | None, response: Response, weight: FloatArray,
        offset: FloatArray | None,
    ) -> None:  # fmt: skip
        rows, eta = response.y, self._predictor(design)[:, 0]
        # Breslow's estimate of every stratum's hazard: by stratum, earliest first
        which, increments = self.loss_.on(rows, weight).hazards(eta if offset is None else eta + offset)
        order = np.lexsort((rows[which, STOP], rows[which, STRATUM]))
        self.baseline_times_ = rows[which[order], STOP]
        self.baseline_strata_ = rows[which[order], STRATUM].astype(int)
        self.baseline_hazards_ = increments[order]
        self.event_times_ = np.unique(self.baseline_times_)
        self.censoring_times_, self.censoring_survival_ = kaplan_meier(rows, weight, of_censoring=True)
        self.fold_hazards_ = None
        # a row with an entry time may be one of several rows of a life
        entered = np.isfinite(rows[:, START]).any()
        super()._calibrate(design, None if entered else folds, response, weight, offset)

    def _scored(
        self, y: FloatArray, eta: FloatArray, rows: FloatArray, held_out: NDArray[np.bool_], folds: FoldModels
    ) -> list[tuple[FloatArray, FloatArray]]:
        times, strata = self.baseline_times_, self.baseline_strata_
        if folds.validation is not None:
            self.fold_hazards_ = cumulated(self.baseline_hazards_[None, :], strata)
        else:
            weight = rows * np.maximum(held_out.sum(axis=1), 1)
            self.fold_hazards_ = fold_hazards(self.loss_, y, weight, eta, folds.trained, times, strata)
        # just before the time: events come before censoring at the same time
        place = np.searchsorted(self.censoring_times_, y[:, STOP], side="left")
        uncensored = np.concatenate([[1.0], self.censoring_survival_])[place]
        return event_scores(self.fold_hazards_, times, strata, y, eta, rows, held_out, uncensored)

    def _coded(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Survival times of other rows, which must have events to be scored by."""
        times = read_survival(pandas_frame(on_host(y), name), name, FieldNames.of(self))
        rows = times.coded_as(self.strata_, name)
        if not rows[:, EVENT].any():
            raise ValueError(f"{name} has no event and cannot score a model: give rows with events.")
        return rows

    def predict(
        self, X: MatrixLike, offset: PerRow = None, *, at: ArrayLike | None = None, interval: float | None = None,
        strata: PerRow = None,
    ) -> FloatArray:  # fmt: skip
        """The log risk: the log hazard relative to a row at the means of all columns; or survival at some times.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), optional
        at : array-like of shape (n_times,), optional
            Times, for the probability of no event up to each of them, as `predict_survival_function` has it. A pipeline
            passes them on: ``pipeline.predict(X, at=[1, 2, 5])``.
        interval : float, optional
            The share of new rows whose time shall not be before their bound, such as 0.9. The bounds are made of the
            rows that the folds held out, so that there must have been some. Events are weighted by the inverse
            probability of being uncensored by then, which must not depend on the columns of X.
        strata : array-like of shape (n_rows,), optional
            Only with `at` or `interval`: the stratum of each row; required if the model was fitted with strata.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_times) with `at`
            The log risk, or the probabilities. With `interval`, the time that the share of rows live at least; at most
            the last time of an event in `fit`.
        """
        if at is not None and interval is not None:
            raise ValueError(
                "Give at= for survival at some times, or interval= for bounds of the survival time, not both."
            )
        if interval is not None:
            check_is_fitted(self)
            if self.held_out_ is None and self.n_splits_:
                raise ValueError(
                    "The model was fitted with entry times, and a bound of the survival time needs rows that are "
                    "followed from time zero: fit without them."
                )
            held_out, eta = fold_predictors(self, X, offset)
            assert self.fold_hazards_ is not None
            baseline = self.fold_hazards_, self.baseline_times_, self.baseline_strata_
            return survival_bounds(held_out, *baseline, eta[:, :, 0], self._codes(strata, len(eta)), interval)
        if at is None:
            if strata is not None:
                raise ValueError("The log risk does not depend on strata: leave strata= out, or give at= or interval=.")
            return self._linear(X, offset)[:, 0]
        times = np.atleast_1d(np.asarray(at, dtype=float))
        if times.ndim != 1 or not (times >= 0).all():
            raise ValueError(f"at must be a list of times that are not negative, not {at!r}.")
        functions = self.predict_survival_function(X, offset, strata=strata)
        return np.array([function(times) for function in functions]).reshape(len(functions), times.size)

    def predict_cumulative_hazard_function(
        self, X: MatrixLike, offset: PerRow = None, *, strata: PerRow = None, return_array: bool = False
    ) -> Array:
        """The cumulative hazard of rows, from Breslow's estimate of the baseline.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), optional
        $strata $return_array

        Returns
        -------
        array of StepFunction, shape (n_rows,), or ndarray of shape (n_rows, n_times)
        """
        risk = np.exp(self.predict(X, offset))
        codes = self._codes(strata, risk.size)
        bases = {code: self._baseline(code) for code in np.unique(codes).tolist()}
        if return_array:
            table = np.array([bases[code](self.event_times_) for code in codes.tolist()])
            return table.reshape(risk.size, -1) * risk[:, None]
        functions = [
            StepFunction(bases[k].x, bases[k].y * one, 0.0) for k, one in zip(codes.tolist(), risk, strict=True)
        ]
        return np.array(functions, dtype=object)

    def predict_survival_function(
        self, X: MatrixLike, offset: PerRow = None, *, strata: PerRow = None, return_array: bool = False
    ) -> Array:
        """The probability of no event up to each time, ``exp(-cumulative hazard)``.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), optional
        $strata $return_array

        Returns
        -------
        array of StepFunction, shape (n_rows,), or ndarray of shape (n_rows, n_times)
        """
        hazards = self.predict_cumulative_hazard_function(X, offset, strata=strata, return_array=return_array)
        if return_array:
            return np.exp(-hazards)
        return np.array([StepFunction(hazard.x, np.exp(-hazard.y), 1.0) for hazard in hazards], dtype=object)

    def baseline(self) -> pd.DataFrame:
        """The cumulative hazard and the survival of a row at the means of all columns.

        Returns
        -------
        DataFrame
            Columns ``time``, ``cumulative_hazard`` and ``survival``; with strata, ``stratum`` comes first.
        """
        check_is_fitted(self)
        parts = []
        for code in range(1 if self.strata_ is None else self.strata_.size):
            hazard = self._baseline(code)
            frame = pd.DataFrame({"time": hazard.x, "cumulative_hazard": hazard.y, "survival": np.exp(-hazard.y)})
            if self.strata_ is not None:
                frame.insert(0, "stratum", self.strata_[code])
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None, *,
        concordance: str = "harrell",
    ) -> float:  # fmt: skip
        """The concordance: how often the row of higher predicted risk has its event first; 0.5 is chance, 1 perfect.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        y : structured array, table or pair of arrays
            As in `fit`. Rows are compared within their strata.
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional
        concordance : {"harrell", "uno"}
            Harrell's, or Uno's, which weights events by the inverse probability of censoring (estimated in `fit`), so
            that it does not depend on the amount of censoring.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if concordance not in ("harrell", "uno"):
            raise ValueError(f"concordance must be 'harrell' or 'uno', not {concordance!r}.")
        risk = self.predict(X, offset)
        rows = self._coded(y)
        if len(rows) != len(risk):
            raise ValueError(f"y has {len(rows)} entries, but X has {len(risk)} rows.")
        event_weight = None
        if concordance == "uno":  # one over the squared probability of being uncensored at each row's time, if any
            chance = StepFunction(self.censoring_times_, self.censoring_survival_, 1.0)(rows[:, STOP])
            event_weight = np.divide(1.0, chance**2, out=np.zeros(len(rows)), where=chance > 0)
        return concordance_index(rows, risk, read_weight(sample_weight, len(risk)), event_weight)

    def _baseline(self, code: int) -> StepFunction:
        at = self.baseline_strata_ == code
        return StepFunction(self.baseline_times_[at], np.cumsum(self.baseline_hazards_[at]), 0.0)

    def _codes(self, strata: PerRow, n_rows: int) -> IntArray:
        """The position of each row's stratum."""
        if self.strata_ is None:
            if strata is not None:
                raise ValueError("strata were given, but the model was fitted without strata: leave them out.")
            return np.zeros(n_rows, dtype=int)
        if strata is None:
            raise ValueError(
                "The model was fitted with strata, and hazards differ between them: give strata=, one per row."
            )
        labels = np.asarray(strata)
        if labels.shape != (n_rows,):
            raise ValueError(f"strata has shape {labels.shape}, but X has {n_rows} rows.")
        known = labels.astype(self.strata_.dtype) if self.strata_.dtype.kind == "U" else labels
        return codes_among(known, self.strata_, "strata has the label")
