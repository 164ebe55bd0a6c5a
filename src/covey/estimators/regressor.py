"""GroupSparseRegressor: one path, one rule that chooses the time."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from covey.estimators.base import PathRegressor
from covey.stopping import AtTime, CrossValidation, Discrepancy, HoldOut, InformationCriterion, Stopping

__all__ = ["GroupSparseRegressor"]


class GroupSparseRegressor(PathRegressor):
    r"""Group-sparse linear regression without a penalty.

    Gradient descent on ``norm(y - X w)^2 / (2 n)`` over ``w_l = u_l^N v_l`` with every direction ``v_l`` at unit
    norm and every magnitude ``u_l`` started tiny, stopped early. Groups wake up one after another, strongest first;
    the time of stopping is the only regularisation, and a group that has woken up is not shrunk.

    Parameters
    ----------
    groups : None, int, labels, lists, dict, callable or Groups
        Which columns belong together: None for each on its own (a sparse linear model), a size, one label per
        column, lists of columns (positions, or names of a DataFrame), a dictionary name to columns, or a function of
        the column names such as `TermGroups`. For sizes use ``Groups.from_sizes``.
    algorithm : {"single-stage", "two-stage"}
        The paper's Algorithm 1, with a smaller direction step only where the large one would oscillate, or Algorithm
        2, where the direction step of all groups is decreased once magnitudes have settled.
    init_scale : "auto" or float
        Start of every magnitude, in units of the response's standard deviation; alpha in the paper. ``"auto"`` is
        1e-6; and where the residuals show that many small groups explain something together, denser networks that
        start from 1e-2 and 1e-1 are tried on the same held-out rows.
    step_size : "auto" or float
        Step on the magnitudes, gamma; ``"auto"`` is the paper's limit for the strongest group.
    direction_step : "auto" or float
        Step on the directions after the switch, eta; ``"auto"`` is the largest stable one.
    switch_tol : "auto" or float
        Relative change of the magnitudes below which Algorithm 2 switches, tau.
    depth : int
        The power N on the magnitudes.
    group_weights : "noise", "sqrt", None or array of shape (n_groups,)
        A group's growth rate is divided by its weight (of mean one). ``"noise"`` is what noise alone would reach in a
        group of its size, so that groups of all sizes are equally likely to wake up on it; ``"sqrt"`` is the square
        root of the size, which favours small groups, and None favours large ones.
    stopping : "holdout", "ebic", "bic", "gcv", "discrepancy", "cv", int or a rule of `covey.stopping`
        How the time is chosen; an int is a fixed number of iterations.
    max_iter : int
        Where a path ends at the latest.
    fit_intercept : bool
    standardize : {"group", "column", "block", False}
        Orthonormalise the columns of each group (the method's theory wants this); or scale each column; or the columns
        of each group by one number, which keeps their variances relative to each other; or none of it. Coefficients
        are always those of the columns as given.
    factors : "auto" or int
        How many common factors of the columns to fit by themselves and take out of X, so that groups do not wake up
        for what all columns share. ``"auto"`` counts those that stand out among the eigenvalues, usually none.
    restarts : int
        How often the path is cleaned and run on, at most. The path never lets a group go; cleaning drops, by held-out
        error, the groups that the others can do without, and the network goes on from there. Like the denser networks
        of `init_scale` it needs rows that judge: held-out ones or folds; other stopping rules take the path as it is.
        With ``restarts=0``, ``factors=0`` and ``init_scale=1e-6`` this is the paper's method.
    average : bool
        Where noise is strong (more than 15% of the variance is left to the best model), predict with a mean of the
        models that the judging rows can hardly tell apart, each weighted by the exponential of its error, rather than
        with the one that was luckiest; see `average_`. Where it is weak and common factors were taken out, take least
        squares on the selected groups with the factors left in, if the judging rows cannot tell it from the best.
    engine : {"auto", "exact", "screened"}
        Step every group at every iteration, or only those that are awake.
    validation_fraction : float
        Share of the rows that ``stopping="holdout"`` holds out to choose the time. The model is then fitted on all.
    warm_start : bool
        Continue from the path of the previous fit instead of from `init_scale`.
    random_state : int, RandomState or None
        For the rows that are held out.
    verbose : int
        1: a line per path; 2: a line per group that wakes up.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        The chosen time.
    n_factors_ : int
        How many common factors were fitted. If there are any, `coef_` adds up their part and that of the groups, and
        is not sparse, unless `average_` says that they were left in; `group_norms_` and `selected_groups_` go by the
        groups' part.
    average_ : DataFrame or None
        Where `coef_` is not the model on the path, what it is the mean of: ``model``, the number of its ``groups``, its
        ``mse`` on the judging rows, its ``weight``. `path_`, `n_iter_`, `group_norms_`, `group_strengths_` and
        `selected_groups_` are those of the simplest model that the judging rows cannot tell from the best.
    init_scale_ : float
        The start scale of the network that was chosen: `init_scale`, or with ``"auto"`` 1e-6 for the sparse one, and
        1e-2 or 1e-1 for a dense one, which has all groups awake.
    dense_network_ : bool
        Whether ``init_scale="auto"`` chose a dense one.
    groups_ : Groups
    group_norms_ : ndarray of shape (n_groups,)
        Norm of each group's coefficients.
    group_strengths_ : ndarray of shape (n_groups,)
        How much each group does: with ``standardize="group"`` the standard deviation of its part of the prediction.
    selected_groups_ : list
        Names of the selected groups, in the order in which they woke up.
    path_ : Path
    scores_ : DataFrame
        What the stopping rule looked at.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    See Also
    --------
    GroupSparseRegressorCV : the time chosen by cross-validation.

    References
    ----------
    Li, Nguyen, Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023, Algorithms 1 and 2.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(150, 300, 3, active=3, random_state=0)
    >>> model = GroupSparseRegressor(groups=3, random_state=0).fit(data.X, data.y)
    >>> sorted(model.selected_groups_)
    [0, 1, 2]
    >>> bool(abs(model.coef_ - data.w_star).max() < 0.2)
    True
    """

    def __init__(
        self,
        groups: Any = None,
        *,
        algorithm: str = "single-stage",
        init_scale: float | str = "auto",
        step_size: float | str = "auto",
        direction_step: float | str = "auto",
        switch_tol: float | str = "auto",
        depth: int = 2,
        group_weights: Any = "noise",
        stopping: Any = "holdout",
        max_iter: int = 100_000,
        fit_intercept: bool = True,
        standardize: Any = "group",
        factors: int | str = "auto",
        restarts: int = 2,
        average: bool = True,
        engine: str = "auto",
        validation_fraction: float = 0.2,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.algorithm = algorithm
        self.init_scale = init_scale
        self.step_size = step_size
        self.direction_step = direction_step
        self.switch_tol = switch_tol
        self.depth = depth
        self.group_weights = group_weights
        self.stopping = stopping
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.factors = factors
        self.restarts = restarts
        self.average = average
        self.engine = engine
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GroupSparseRegressor:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as the row twice.

        Returns
        -------
        self
        """
        task = self._pose(X, y, sample_weight)
        choice = self._rule().choose(task)
        self._adopt(task, choice)
        self.scores_ = choice.scores
        if "mse" in choice.scores:
            self._warn_if_cut_short(choice.scores["time"].to_numpy(), choice.scores["mse"].to_numpy())
        return self

    def _rule(self) -> Stopping:
        stopping = self.stopping
        if isinstance(stopping, Stopping):
            return stopping
        if stopping == "holdout":
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            return HoldOut(self.validation_fraction, random_state=seed)
        if stopping in ("bic", "ebic", "gcv"):
            return InformationCriterion(stopping)
        if stopping == "discrepancy":
            return Discrepancy()
        if stopping == "cv":
            return CrossValidation()
        if isinstance(stopping, int) and not isinstance(stopping, bool):
            return AtTime(stopping)
        raise ValueError(
            "stopping must be 'holdout', 'ebic', 'bic', 'gcv', 'discrepancy', 'cv', a number of iterations or a rule "
            f"from covey.stopping, not {stopping!r}."
        )
