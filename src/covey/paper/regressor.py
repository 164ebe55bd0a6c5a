"""NetworkRegressor: the paper's method as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from covey.designs import as_design
from covey.groups import Groups
from covey.paper.dynamics import Status
from covey.paper.running import Coordinates, Descent
from covey.paper.stopping import Akaike, AtTime, Choice, TheoryWindow, by_criterion, by_discrepancy, by_rows
from covey.preprocess.factoring import Standardize
from covey.search.select import read_selection
from covey.selection import Discrepancy, Folds, HoldOut, InformationCriterion
from covey.validation import FloatArray, boolean, one_of, positive, whole

# Starts of the magnitudes. Groups of deeper networks and of the flow need a time that is a power of one over the start.
STARTS = {"shallow": 1e-6, "deep": 0.0075, "flow": 0.01}

# With the automatic step, the magnitude of the strongest group grows by this share in the first iteration. Steps on the
# magnitudes of awake groups are then stable too, as long as they are not strongly correlated.
GROWTH = 0.04


@dataclass(eq=False, repr=False)
class NetworkRegressor(RegressorMixin, BaseEstimator):
    r"""The diagonally grouped linear network of the paper, trained from a small start and stopped early.

    Minimises :math:`\frac{1}{2n}\|y - Xw\|^2` over :math:`w_l = u_l^N v_l`, with one magnitude :math:`u_l` and one
    direction :math:`v_l` per group, by gradient descent with normalised directions (Algorithms 1 and 2 of Li, Nguyen,
    Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023) or by gradient flow. Groups wake up one
    after another; the time at which training stops is the only regularisation. `covey.GroupSparseRegressor` follows the
    flow in the limit of small starts, without a time to choose.

    Parameters
    ----------
    groups : None, int, labels, lists, dict or Groups
    algorithm : 1, 2 or "flow"
        Algorithm 1 (large steps on the directions), Algorithm 2 (small steps after a switch), or gradient flow.
    stopping : int, splitter, str, AtTime, TheoryWindow, or an object of `covey.selection`
        How the time is chosen: by folds, by held-out or validation rows ("holdout", `covey.selection.HoldOut`), by an
        information criterion ("aic", "bic", "ebic", "gcv"), by the discrepancy principle ("discrepancy"), by the window
        of the convergence theorem, or by hand.
    rule : {"min", "1se"}
        With folds: the time of least error, or the earliest within one standard error of it.
    depth : int
        The power N on the magnitudes, at least 2.
    init_scale : "auto" or float
        Start of the magnitudes, alpha; "auto" is 1e-6 for depth 2, and larger for deeper networks and the flow.
    step_size : "auto" or float
        Step on the magnitudes, gamma; for the flow, its last time.
    direction_step : "auto" or float
        Step on the directions after the switch of Algorithm 2, eta; "auto" is the limit of lemma direction-bound.
    switch_tol : float
        Relative change of the magnitudes below which Algorithm 2 switches, tau.
    standardize : {"group", "column", "block", False}
        How columns are prepared; False leaves them and the response as they are, as in the paper.
    fit_intercept : bool
    max_iter : int
        The last iteration.
    random_state : int or None
        Seed for held-out rows.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,) and float
        Coefficients are zero for groups that are asleep at the chosen time.
    selected_groups_ : list
        Names of the groups that are awake, in the order in which they woke up.
    group_norms_, groups_ : ndarray of shape (n_groups,) and Groups
    time_ : float
        The chosen iteration, or time of the flow.
    scores_ : DataFrame
        The values on which the choice is based, one row per time.
    trajectory_ : Trajectory
        The run on all rows up to the chosen time, in working coordinates.
    step_size_, n_iter_, n_features_in_ : float, int and int

    Examples
    --------
    >>> from covey.datasets import make_group_sparse
    >>> from covey.paper import NetworkRegressor
    >>> data = make_group_sparse(random_state=0)
    >>> model = NetworkRegressor(groups=3).fit(data.X, data.y)
    >>> sorted(model.selected_groups_), bool(abs(model.coef_ - data.w_star).max() < 0.5)
    ([0, 1, 2], True)
    """

    groups: object = None
    _: KW_ONLY
    algorithm: Any = 1
    stopping: Any = "holdout"
    rule: str = "min"
    depth: int = 2
    init_scale: object = "auto"
    step_size: object = "auto"
    direction_step: object = "auto"
    switch_tol: float = 0.01
    standardize: Standardize = "group"
    fit_intercept: bool = True
    max_iter: int = 20_000
    random_state: int | None = None

    @classmethod
    def paper(cls, algorithm: int = 1, groups: object = None, **settings: Any) -> NetworkRegressor:
        """The printed steps of the paper's Algorithm 1 or 2, on raw columns and without an intercept.

        Groups that are asleep at the chosen time are reported as zero, as always. Other parameters, such as
        ``step_size`` (gamma, 1e-3), ``init_scale`` (alpha, 1e-6), ``direction_step`` (eta) and ``switch_tol`` (tau),
        are on the scale of the data.
        """
        one_of(algorithm, (1, 2), "algorithm")
        letter = {"standardize": False, "fit_intercept": False, "step_size": 1e-3, "init_scale": 1e-6}
        return cls(groups, algorithm=algorithm, **letter | settings)

    def fit(self, X: object, y: object, sample_weight: object = None) -> NetworkRegressor:
        """Train the network and choose when to stop."""
        Z, response = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=True)
        weight = _check_sample_weight(sample_weight, Z, dtype=np.float64, ensure_non_negative=True)
        groups = Groups.coerce(self.groups, Z.shape[1], getattr(self, "feature_names_in_", None))
        if groups.overlapping:
            raise ValueError("The network's groups must not overlap; covey.GroupSparseRegressor takes such groups.")
        coordinates = self._pose(Z, response, groups, weight)
        descent = self._descent(coordinates)
        choice = self._choose(descent, coordinates, Z, response, groups, weight)
        run = descent.run(coordinates, until=max(choice.time, 0.0))
        self.groups_, self.trajectory_, self.scores_ = groups, run.trajectory, choice.scores
        self.time_, self.step_size_, self.n_iter_ = choice.time, descent.step_size, int(run.trajectory.t[-1])
        at = int(np.searchsorted(run.times, choice.time, side="right") - 1)  # the last recorded time not after it
        self.coef_, self.intercept_ = run.coefs[at], float(run.intercepts[at])
        self.group_norms_ = groups.norms(self.coef_)
        woke = np.argmax(run.norms > 0, axis=0)
        awake = sorted(np.flatnonzero(self.group_norms_).tolist(), key=lambda l: (woke[l], -run.norms[at, l]))
        self.selected_groups_ = [groups.names[l] for l in awake]
        if run.trajectory.status is Status.DIVERGED:
            warnings.warn(run.trajectory.message, ConvergenceWarning, stacklevel=2)
        return self

    def _pose(self, X: FloatArray, y: FloatArray, groups: Groups, weight: FloatArray) -> Coordinates:
        intercept = boolean(self.fit_intercept, "fit_intercept")
        return Coordinates.of(X, y, groups, weight, self.standardize, intercept)

    def _descent(self, coordinates: Coordinates) -> Descent:
        """The settings, with automatic values computed on all rows, so that runs on some of them are comparable."""
        if self.algorithm not in (1, 2, "flow") or isinstance(self.algorithm, bool):
            raise ValueError(f"algorithm must be 1, 2 or 'flow', not {self.algorithm!r}.")
        depth, flow = whole(self.depth, "depth", least=2), self.algorithm == "flow"
        start = STARTS["flow" if flow else "shallow" if depth == 2 else "deep"]
        alpha = start if self.init_scale == "auto" else positive(self.init_scale, "init_scale")
        first = float(coordinates.correlations.max())
        if self.step_size != "auto":
            step = positive(self.step_size, "step_size")
        elif flow:
            # long enough for groups a tenth as strong as the first one to wake up
            step = 10 / (np.sqrt(depth) * (depth - 1) * alpha ** (depth - 1) * (first or 1.0))
        else:
            step = GROWTH / (depth * first) if first > 0 else 1.0
        return Descent(
            self.algorithm, alpha, step, self.direction_step, positive(self.switch_tol, "switch_tol"), depth,
            whole(self.max_iter, "max_iter"),
        )  # fmt: skip

    def _choose(
        self, descent: Descent, coordinates: Coordinates, X: FloatArray, y: FloatArray, groups: Groups,
        weight: FloatArray,
    ) -> Choice:  # fmt: skip
        rule = self.stopping
        if isinstance(rule, AtTime):
            if descent.algorithm != "flow" and rule.time > descent.max_iter:
                raise ValueError(f"AtTime({rule.time}) lies beyond max_iter={descent.max_iter}: increase max_iter.")
            return Choice(rule.time, pd.DataFrame({"time": [rule.time]}))
        if isinstance(rule, TheoryWindow):
            return rule.choose(descent, coordinates, self.fit_intercept)
        if isinstance(rule, str) and rule == "aic":
            rule = Akaike()
        else:
            try:
                rule = read_selection(rule, self.random_state)
            except ValueError as error:  # the same ways to choose, under another name
                raise ValueError(str(error).replace("selection ", "stopping ", 1)) from None
        if isinstance(rule, InformationCriterion | Akaike):
            return by_criterion(descent, coordinates, rule, self.fit_intercept)
        if isinstance(rule, Discrepancy):
            return by_discrepancy(descent, coordinates, rule, self.fit_intercept)
        if isinstance(rule, HoldOut) and rule.validation is not None:
            X_val, y_val = (np.asarray(part, dtype=float) for part in rule.validation)
            if X_val.ndim != 2 or X_val.shape[1] != X.shape[1] or y_val.shape != (len(X_val),):
                raise ValueError(f"validation must be rows of X with {X.shape[1]} columns, and their responses.")
            return by_rows(descent, [(coordinates, X_val, y_val, np.ones(len(X_val)))])
        if isinstance(rule, HoldOut):
            masks = [np.asarray(rule.mask(as_design(X), y, weight / weight.sum()))]
        elif isinstance(rule, Folds):
            masks = [np.isin(np.arange(len(y)), test) for _, test in check_cv(rule.cv).split(X, y, rule.labels)]
        else:
            raise ValueError(f"stopping={rule!r} chooses among the candidates of covey's search, not a time.")
        parts = [
            (self._pose(X[~held], y[~held], groups, weight[~held]), X[held], y[held], weight[held]) for held in masks
        ]
        return by_rows(descent, parts, one_of(self.rule, ("min", "1se"), "rule"))

    def predict(self, X: object) -> FloatArray:
        """Predict the response."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_
