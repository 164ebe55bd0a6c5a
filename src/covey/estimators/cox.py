"""GroupSparseCox: survival times as responses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.designs import Design
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.concordance import censoring_survival, concordance_index
from covey.estimators.formula import survival_response
from covey.estimators.intervals import fold_predictors
from covey.estimators.reading import read_problem, read_weight
from covey.estimators.steps import StepFunction
from covey.estimators.survival_bounds import Baselines, survival_bounds
from covey.groups.partition import GroupsLike
from covey.losses import Cox
from covey.losses.arrays import codes_among
from covey.losses.base import Response
from covey.losses.cox import FieldNames, read_survival
from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.search.held_out import FoldModels
from covey.search.recipes import Recipe
from covey.search.select import SelectionLike
from covey.terms.requirements import Constraints
from covey.terms.terms import TermsLike
from covey.validation import Array, FloatArray, IntArray, MatrixLike, PerRow, on_host, pandas_frame

__all__ = ["GroupSparseCox"]


class GroupSparseCox(GroupSparseEstimator):
    r"""Group-sparse Cox regression: finds the few groups of columns that matter for survival and fits them.

    The hazard of a row is :math:`h_0(t) \exp(x^\top w)`, and the loss is minus the log partial likelihood. Groups wake
    up one after another, strongest first, along the path of a diagonally grouped linear network in the limit of small
    starts; groups that turn out not to be needed are dropped again. The resulting models are fitted by maximum partial
    likelihood and with ridge penalties, and cross-validation chooses one of them: a model fitted on the training rows
    is scored by what the held-out rows add to the deviance of the training rows.

    Parameters
    ----------
    groups : None, int, labels, lists, dict, callable, str or Groups
        Which columns belong together: None for every column on its own (a sparse linear model), one size for all
        groups, one label per column, lists of columns (positions, or names of a DataFrame), a dictionary from group
        names to columns, a function of the column names such as `TermGroups`, or a separator: ``"_"`` groups columns by
        the part of their name before the first underscore. For groups of different sizes use ``Groups.from_sizes``.
    terms : None, "auto", dict or Terms
        For a table of variables instead of a matrix of columns: numbers become lines and curves, categories levels,
        dates trends and seasons, and every term is a group. ``"auto"`` decides by the values of each variable, a
        dictionary such as ``{"age": "linear", "site": "levels"}`` by name or pattern, and `covey.Terms` takes pairs of
        variables too. `predict` and `score` then take tables with the same variables. Not together with `groups`.
    within : {None, "columns"}
        ``"columns"`` selects columns within `groups`: beside groups, single columns are candidates, and columns of
        selected groups can be dropped. Groups are kept as they are unless the held-out rows prefer columns.
    ties : {"efron", "breslow"}
        How events at the same time are treated.
    constraints : dict, optional
        What is known beforehand, by the name of a variable, group or column, or a pattern such as ``"media*"``: a sign
        (``">=0"``, ``"<=0"``), bounds (``(0, 2)``), ``"increasing"``, ``"decreasing"``, ``"convex"`` or ``"concave"``,
        or a list of some of these. Every model keeps them. They are about the logarithm of the hazard. With `terms`,
        signs and bounds are those of the slope of a number, everywhere; with `groups`, those of every coefficient of a
        group, and an increasing group has coefficients that do not fall from one column to the next. Models on all
        groups are no candidates then, and variables with constraints are in no pairs.
    always : iterable
        Names of groups (or of columns that are a group by themselves) that are in every model, such as clinical
        columns; they are never selected, shrunk or dropped.
    selection : int, splitter, "holdout", "ebic", "bic", "gcv", Size, or an object of `covey.selection`
        How the model is chosen: by a number of folds or anything that scikit-learn accepts as ``cv``; on rows held out
        once (`covey.selection.HoldOut`, also with your own validation set); by an information criterion, which counts
        events; or by the number of groups (``covey.selection.Size(k)``). Folds are balanced by events and their times.
    rule : {"select", "predict"}
        What the held-out rows decide. ``"select"``: the few groups that matter, by the simplest sparse model that the
        held-out rows cannot tell from the best one (one standard error). ``"predict"``: the best prediction, the mean
        of all candidates weighted by their held-out deviance; it usually has all groups. Rows are dealt to
        folds again while it is open which model is chosen (`covey.selection.Folds` sets how often at most).
    recipes : iterable of Recipe
        Further candidates, for instance of your own: see "How to add a recipe" in the documentation.
    factors : "auto" or int
        The number of common factors of the columns to include in the model while the order of the groups is determined,
        so that groups do not wake up because of variation that all columns share. ``"auto"`` counts the factors that
        stand out, usually none. The final model contains no factors.
    group_weights : "noise", "sqrt", None or array of shape (n_groups,)
        Divisors of the groups' gradients. ``"noise"`` is the level that pure noise would reach in a group of its size,
        so that groups of all sizes are about equally likely to wake up by chance; ``"sqrt"`` is the square root of the
        size, which favours small groups; None divides by nothing, which favours large ones.
    standardize : {"group", "column", "block", False}
        How columns are prepared for the path: orthonormalised within each group, scaled to unit variance one by one,
        scaled group by group, or left as they are. Coefficients always refer to the columns as given.
    time, event, start, stratum : str
        Names of the columns of `y` if it is a table, or of the fields of a structured array. The last two are
        optional in `y`.
    random_state : int or None
        Seed for choosing held-out rows and assigning rows to folds; None means 0, so that fits are reproducible.
    verbose : int
        1 shows the progress of fits that take longer than a second, and prints a line about the chosen model.

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
    always_groups_ : list
        Names of the groups that are in every model.
    selected_groups_ : list
        Names of the groups with non-zero coefficients, strongest first (`group_strengths_`).
    group_norms_ : ndarray of shape (n_groups,)
        Norm of each group's coefficients.
    group_strengths_ : ndarray of shape (n_groups,)
        How far each group moves the log risk: with ``standardize="group"``, the standard deviation of its contribution.
    recipe_ : str
        How the model was fitted, in words.
    shrunk_ : bool
        False if the model is maximum partial likelihood on the selected groups; True if it is shrunk by a ridge or is a
        mean of models.
    candidates_ : DataFrame
        All candidates with their cross-validated errors; the chosen one is marked. Candidates that were left out after
        the first deal of the folds have the distance from the best that they had then.
    rivals_ : DataFrame or None
        The sets of groups that the held-out rows cannot tell from the best, and those that folds select, the chosen one
        first: their ``groups``, the chosen groups that they are ``without``, what they have ``instead``, the error of
        their best model and its standard error (NaN if only folds select them), and in how many ``folds`` they are
        selected. None if the model is a mean of models or no rows were held out.
    price_ : (float, float) or None
        What sparsity costs: by what share of its error the best model on all groups predicts better on held-out rows,
        and the standard error of that share; None if there was no such model, or it was chosen.
    fold_frequencies_ : ndarray of shape (n_groups,) or None
        In how many of the `n_splits_` folds each group is selected if the model is chosen without the rows held out
        there; None if there were no folds, or models on all groups were chosen.
    held_out_ : HeldOut or None
        The model without the rows of each fold, and how far these rows are from what it predicts: what
        ``predict(X, interval=0.9)`` is made of. None if no rows were held out.
    fold_hazards_ : ndarray of shape (n_folds, n_events) or None
        Cumulative baseline hazards without the rows of each fold, at the events of the baseline.
    n_splits_, n_deals_ : int
        The number of folds in all deals, and how often the rows were dealt to folds.
    predictor_range_ : ndarray of shape (2, n_outputs) or None
        The range of the linear predictor in `fit`, for losses that take its exponential. Predictions for rows that
        leave it by more than its width are bounded there, with a warning.
    path_ : Path
        The path on all rows; it ends with the chosen model.
    expansion_ : Expansion
        Only with `terms`: how a table becomes the columns of the model. Its `terms` are the groups, and the remarks of
        its `encoding` say which variables were left out, and how missing values count.
    constraints_ : DataFrame
        Only with `constraints`: the ``name`` and the ``constraint``, whether a term or group of it is ``selected``,
        whether it ``binds`` (it holds the model back, or keeps out what would be in), and the ``pressure`` of the rows
        against it, in standard errors.
    n_features_in_ : int
        The number of columns of X; with `terms`, these are its variables.
    feature_names_in_ : ndarray of str
        The names of these columns, if X has any.

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

    # columns are centred; the baseline hazard takes the place of an intercept
    fit_intercept = True
    # the name of `score`, and its value for the null model
    score_name = "concordance"
    null_score = 0.5

    _formula_response = staticmethod(survival_response)

    loss_: Cox
    strata_: Array | None
    event_times_: FloatArray
    fold_hazards_: FloatArray | None

    def __init__(
        self,
        groups: GroupsLike = None,
        *,
        terms: TermsLike = None,
        within: str | None = None,
        constraints: Constraints = None,
        ties: str = "efron",
        always: Iterable[Hashable] = (),
        selection: SelectionLike = 5,
        rule: str = "select",
        recipes: Iterable[Recipe] = (),
        factors: int | str = "auto",
        group_weights: ArrayLike | None = "noise",
        standardize: str | bool = "group",
        time: str = "time",
        event: str = "event",
        start: str = "start",
        stratum: str = "stratum",
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.terms = terms
        self.within = within
        self.constraints = constraints
        self.ties = ties
        self.always = always
        self.selection = selection
        self.rule = rule
        self.recipes = recipes
        self.factors = factors
        self.group_weights = group_weights
        self.standardize = standardize
        self.time = time
        self.event = event
        self.start = start
        self.stratum = stratum
        self.random_state = random_state
        self.verbose = verbose

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
        split_groups : array-like of shape (n_rows,), optional
            Labels that splitters such as GroupKFold use to keep rows together.

        Returns
        -------
        self
        """
        read = partial(Cox(self.ties).read, fields=FieldNames.of(self))  # type: ignore[arg-type]
        design, response, weight = read_problem(self, X, y, sample_weight, read)
        self.strata_ = response.labels
        self._fit(design, response, weight, offset, split_groups)
        return self

    def _calibrate(
        self,
        design: Design,
        folds: FoldModels | None,
        response: Response,
        weight: FloatArray,
        offset: FloatArray | None,
    ) -> None:
        eta = np.asarray(on_host(self._predictor(design)), dtype=float)[:, 0]
        self._publish_baseline(response.y, weight, eta if offset is None else eta + offset)
        self.fold_hazards_ = None
        # a row with an entry time may be one of several rows of a life
        entered = np.isfinite(response.y[:, START]).any()
        super()._calibrate(design, None if entered else folds, response, weight, offset)

    def _scored(
        self, y: FloatArray, eta: FloatArray, rows: FloatArray, held_out: NDArray[np.bool_], folds: FoldModels
    ) -> list[tuple[FloatArray, FloatArray]]:
        at = self.baseline_times_, self.baseline_strata_
        if folds.validation is not None:
            baselines = Baselines.of(self.baseline_hazards_[None, :], *at)
        else:
            weight = rows * np.maximum(held_out.sum(axis=1), 1)
            baselines = Baselines.without_folds(self.loss_, y, weight, eta, folds.trained, *at)
        self.fold_hazards_ = baselines.hazards
        # just before the time: events come before censoring at the same time
        place = np.searchsorted(self.censoring_times_, y[:, STOP], side="left")
        return baselines.scores(y, eta, rows, held_out, np.concatenate([[1.0], self.censoring_survival_])[place])

    def _publish_baseline(self, rows: FloatArray, weight: FloatArray, eta: FloatArray) -> None:
        """Breslow's estimate of every stratum's cumulative hazard, and the survival function of censoring."""
        which, increments = self.loss_.on(rows, weight).hazards(eta)
        # by stratum, earliest first
        order = np.lexsort((rows[which, STOP], rows[which, STRATUM]))
        self.baseline_times_ = rows[which[order], STOP]
        self.baseline_strata_ = rows[which[order], STRATUM].astype(int)
        self.baseline_hazards_ = increments[order]
        self.event_times_ = np.unique(self.baseline_times_)
        self.censoring_times_, self.censoring_survival_ = censoring_survival(rows, weight)

    def _coded(self, y: ArrayLike, name: str = "y") -> FloatArray:
        """Survival times of other rows, which must have events to be scored by."""
        times = read_survival(pandas_frame(on_host(y), name), name, FieldNames.of(self))
        rows = times.coded_as(self.strata_, name)
        if not rows[:, EVENT].any():
            raise ValueError(f"{name} has no event and cannot score a model: give rows with events.")
        return rows

    def predict(
        self, X: MatrixLike, offset: PerRow = None, *, at: PerRow = None, interval: float | None = None,
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
            return self._bounds(X, offset, interval, strata)
        if at is None:
            if strata is not None:
                raise ValueError("The log risk does not depend on strata: leave strata= out, or give at= or interval=.")
            return np.asarray(self._linear(X, offset))[:, 0]
        times = np.atleast_1d(np.asarray(at, dtype=float))
        if times.ndim != 1 or not (times >= 0).all():
            raise ValueError(f"at must be a list of times that are not negative, not {at!r}.")
        functions = self.predict_survival_function(X, offset, strata=strata)
        return np.array([function(times) for function in functions]).reshape(len(functions), times.size)

    def _bounds(self, X: MatrixLike, offset: PerRow, interval: float, strata: PerRow) -> FloatArray:
        check_is_fitted(self)
        if self.held_out_ is None and self.n_splits_:
            raise ValueError(
                "The model was fitted with entry times, and a bound of the survival time needs rows that are followed "
                "from time zero: fit without them."
            )
        held_out, eta = fold_predictors(self, X, offset)
        assert self.fold_hazards_ is not None
        baselines = Baselines(self.baseline_times_, self.baseline_strata_, self.fold_hazards_)
        return survival_bounds(held_out, baselines, eta[:, :, 0], self._codes(strata, len(eta)), interval)

    def predict_cumulative_hazard_function(
        self, X: MatrixLike, offset: PerRow = None, *, strata: PerRow = None, return_array: bool = False
    ) -> Array:
        """The cumulative hazard of rows, from Breslow's estimate of the baseline.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), optional
        strata : array-like of shape (n_rows,), optional
            The stratum of each row; required if the model was fitted with strata.
        return_array : bool
            Return an array of the values at `event_times_` instead of functions.

        Returns
        -------
        array of StepFunction, shape (n_rows,), or ndarray of shape (n_rows, n_times)
        """
        return self._functions(X, offset, strata, return_array, lambda hazard: hazard, 0.0)

    def predict_survival_function(
        self, X: MatrixLike, offset: PerRow = None, *, strata: PerRow = None, return_array: bool = False
    ) -> Array:
        """The probability of no event up to each time, ``exp(-cumulative hazard)``.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), optional
        strata : array-like of shape (n_rows,), optional
            The stratum of each row; required if the model was fitted with strata.
        return_array : bool
            Return an array of the values at `event_times_` instead of functions.

        Returns
        -------
        array of StepFunction, shape (n_rows,), or ndarray of shape (n_rows, n_times)
        """
        return self._functions(X, offset, strata, return_array, lambda hazard: np.exp(-hazard), 1.0)

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
        weight = read_weight(sample_weight, len(risk))
        return concordance_index(rows, risk, weight, self._event_weight(rows) if concordance == "uno" else None)

    def _event_weight(self, rows: FloatArray) -> FloatArray:
        """One over the squared probability of being uncensored at each row's time; zero if that is zero."""
        chance = StepFunction(self.censoring_times_, self.censoring_survival_, 1.0)(rows[:, STOP])
        return np.divide(1.0, chance**2, out=np.zeros(len(rows)), where=chance > 0)

    def _functions(
        self, X: MatrixLike, offset: PerRow, strata: PerRow, return_array: bool, of: Callable[[FloatArray], FloatArray],
        before: float,
    ) -> Array:  # fmt: skip
        risk = np.exp(self.predict(X, offset))
        codes = self._codes(strata, risk.size)
        bases = {code: self._baseline(code) for code in np.unique(codes).tolist()}
        if return_array:
            table = np.array([bases[code](self.event_times_) for code in codes.tolist()])
            return of(table.reshape(risk.size, -1) * risk[:, None])
        out = np.empty(risk.size, dtype=object)
        for row, code in enumerate(codes.tolist()):
            out[row] = StepFunction(bases[code].x, of(bases[code].y * risk[row]), before)
        return out

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
