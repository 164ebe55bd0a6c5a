"""GroupSparseRegressorCV: the time chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Literal

from covey.estimators.base import PathRegressor
from covey.stopping import CrossValidation
from covey.stopping.fold_errors import choose_time
from covey.validation import FloatArray

__all__ = ["GroupSparseRegressorCV"]


class GroupSparseRegressorCV(PathRegressor):
    """Group-sparse linear regression without a penalty, stopped at the time that cross-validation chooses.

    The paths of all folds share one step size, so that a time means the same in each; the model is the one at the
    chosen time of the path on all rows.

    Parameters
    ----------
    groups, algorithm, init_scale, step_size, direction_step, switch_tol, depth, group_weights, max_iter, \
fit_intercept, standardize, factors, restarts, average, engine, warm_start, verbose
        As in `GroupSparseRegressor`.
    cv : int, splitter or iterable of (train, test)
        Anything that scikit-learn takes. For grouped splitters give `fit` the rows' `split_groups`.
    rule : {"min", "1se"}
        The time of least mean error, or the earliest time within one standard error of it: fewer groups, and one model
        rather than an average.
    n_jobs : int, optional
        Folds in parallel, through joblib, whose backend may be a cluster.
    checkpoint : path, optional
        A folder in which finished folds are kept. A fit that was interrupted goes on from them when it is called again
        with the same data and settings, and gives what an undisturbed one would have given.

    Attributes
    ----------
    coef_, intercept_, n_iter_, n_factors_, average_, init_scale_, dense_network_, groups_, group_norms_, \
group_strengths_, selected_groups_, path_, n_features_in_, feature_names_in_
        As in `GroupSparseRegressor`.
    times_ : ndarray of shape (n_times,)
    mse_path_ : ndarray of shape (n_times, n_folds)
        Held-out squared error of each fold.
    best_time_ : float
        The chosen time.
    times_by_rule_ : dict
        The times that ``"min"`` and ``"1se"`` choose.

    Examples
    --------
    >>> from covey import GroupSparseRegressorCV
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(150, 300, 3, active=3, random_state=0)
    >>> model = GroupSparseRegressorCV(groups=3, rule="1se").fit(data.X, data.y)
    >>> sorted(model.selected_groups_)
    [0, 1, 2]
    >>> model.mse_path_.shape == (len(model.times_), 5)
    True
    """

    times_: FloatArray
    mse_path_: FloatArray
    best_time_: float
    times_by_rule_: dict[str, float]

    def __init__(
        self,
        groups: Any = None,
        *,
        cv: Any = 5,
        rule: Literal["min", "1se"] = "min",
        n_jobs: int | None = None,
        checkpoint: Any = None,
        algorithm: str = "single-stage",
        init_scale: float | str = "auto",
        step_size: float | str = "auto",
        direction_step: float | str = "auto",
        switch_tol: float | str = "auto",
        depth: int = 2,
        group_weights: Any = "noise",
        max_iter: int = 100_000,
        fit_intercept: bool = True,
        standardize: Any = "group",
        factors: int | str = "auto",
        restarts: int = 2,
        average: bool = True,
        engine: str = "auto",
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.cv = cv
        self.rule = rule
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.algorithm = algorithm
        self.init_scale = init_scale
        self.step_size = step_size
        self.direction_step = direction_step
        self.switch_tol = switch_tol
        self.depth = depth
        self.group_weights = group_weights
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.factors = factors
        self.restarts = restarts
        self.average = average
        self.engine = engine
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, split_groups: Any = None) -> GroupSparseRegressorCV:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as the row twice.
        split_groups : array-like of shape (n_rows,), optional
            Labels of the rows, for splitters such as GroupKFold.

        Returns
        -------
        self
        """
        task = self._pose(X, y, sample_weight)
        rule = CrossValidation(
            self.cv,
            self.rule,
            n_jobs=self.n_jobs,
            cv_groups=split_groups,
            verbose=max(0, int(self.verbose) - 1),
            checkpoint=self.checkpoint,
        )
        found = rule.search(task)
        leg = rule.best(found)
        errors = leg.errors
        self.times_, self.mse_path_ = leg.whole.times, leg.whole.mse
        self.times_by_rule_ = {"min": choose_time(errors, "min"), "1se": choose_time(errors, "1se")}
        self.best_time_ = self.times_by_rule_[self.rule]
        self._adopt(task, rule.refit(task, found))
        self._warn_if_cut_short(errors.times, errors.mean)
        return self
