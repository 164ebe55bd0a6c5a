"""GroupSparseRegressor: validate, pose, select, publish."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.designs import is_table
from covey.estimators.reading import read_problem, read_rows
from covey.groups import Groups
from covey.path import Path
from covey.selection import Problem, Selected, read_selection, select
from covey.validation import FloatArray, boolean

__all__ = ["GroupSparseRegressor"]


class GroupSparseRegressor(RegressorMixin, BaseEstimator):
    r"""Group-sparse linear regression: finds the few groups of columns that matter and fits them.

    Groups wake up one after another, strongest first, along the path of a diagonally grouped linear network in the
    limit of small starts; groups that turn out not to be needed are dropped again. Of all models that come of it,
    fitted by least squares and, where noise is strong, by ridges, cross-validation chooses one. That model, fitted on
    all rows, is what `coef_`, `predict`, `selected_groups_`, tables and reports describe.

    Parameters
    ----------
    groups : None, int, labels, lists, dict, callable or Groups
        Which columns belong together: None for each on its own (a sparse linear model), a size, one label per column,
        lists of columns (positions, or names of a DataFrame), a dictionary from names to columns, or a function of the
        column names such as `TermGroups`. For sizes use ``Groups.from_sizes``.
    always : iterable
        Names of groups that are in every model: they are neither selected nor shrunk.
    selection : int, splitter, "holdout", "ebic", "bic", "gcv", "discrepancy", Size, or an object of `covey.selection`
        How the model is chosen: a number of folds or anything that scikit-learn takes as ``cv``; rows held out once
        (`covey.selection.HoldOut`, also with a validation set of your own); an information criterion; the discrepancy
        principle; a number of groups (``covey.selection.Size(k)``). With `network`, rules of `covey.stopping` too.
    rule : {"min", "1se"}
        Of the models judged by held-out rows, the one in the middle of those of least error ("min": the simplest of
        those nearest to their mean, each counted by the likelihood of the held-out rows; where one is clearly best,
        that one), or the simplest within one standard error of the best ("1se"), which has fewer groups.
    average : bool
        Take the mean of the candidates itself instead, each counted by the likelihood of the held-out rows. It predicts
        a little better under strong noise and is dense; everything then describes the mean.
    network : Network, optional
        Run the paper's network from a finite start instead, and choose a time on its path. ``Network.paper()`` is the
        paper's Algorithm 1 to the letter, ``Network.paper(2)`` Algorithm 2: the printed step on raw columns, no
        weights, no factors. It decides on `standardize`, `group_weights` and `fit_intercept` itself.
    factors : "auto" or int
        How many common factors of the columns are in the model while the order of the groups is found, so that groups
        do not wake up for what all columns share. ``"auto"`` counts those that stand out, usually none. The model
        itself has no factors in it.
    group_weights : "noise", "sqrt", None or array of shape (n_groups,)
        What a group's gradient is divided by. ``"noise"`` is what noise alone would reach in a group of its size, so
        that groups of all sizes are about equally likely to wake up on it; ``"sqrt"`` is the square root of the size,
        which favours small groups, and None favours large ones.
    standardize : {"group", "column", "block", False}
        The coordinates in which the path runs: columns orthonormal within each group; or each of unit variance; or the
        columns of each group divided by one number; or as they are. Coefficients are always those of the columns as
        given.
    fit_intercept : bool
    n_jobs : int, optional
        Folds of a network in parallel, through joblib. The default search runs all folds together.
    checkpoint : path, optional
        With `network` and folds: a folder in which finished folds are kept, so that an interrupted fit goes on there.
    random_state : int or None
        For the rows that are held out, and for how neighbours are dealt to folds; None is 0, so that fits repeat.
    verbose : int
        1: a line on what was chosen.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    groups_ : Groups
    selected_groups_ : list
        Names of the groups with coefficients, in the order in which they woke up.
    group_norms_ : ndarray of shape (n_groups,)
        Norm of each group's coefficients.
    group_strengths_ : ndarray of shape (n_groups,)
        How much each group does: with ``standardize="group"`` the standard deviation of its part of the prediction.
    recipe_ : str
        How the model was made, in words.
    shrunk_ : bool
        Whether it was shrunk by a ridge, is a mean of models, or a network's model, whose last groups may still be on
        the rise; otherwise it is least squares on the selected groups.
    candidates_ : DataFrame
        Every candidate with its judged error, the chosen one marked.
    fold_frequencies_ : ndarray of shape (n_groups,) or None
        In how many folds (`n_splits_` of them) the chosen recipe has each group; None where no rows judged.
    path_ : Path
        The path on all rows; its last model is the chosen one.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    References
    ----------
    Li, Nguyen, Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023.

    Examples
    --------
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(150, 300, 3, active=3, random_state=0)
    >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> sorted(model.selected_groups_)
    [0, 1, 2]
    >>> bool(abs(model.coef_ - data.w_star).max() < 0.2)
    True
    """

    coef_: FloatArray
    intercept_: float
    groups_: Groups
    selected_groups_: list[Any]
    group_norms_: FloatArray
    group_strengths_: FloatArray
    recipe_: str
    shrunk_: bool
    candidates_: pd.DataFrame
    fold_frequencies_: Any
    n_splits_: int
    path_: Path
    n_features_in_: int

    def __init__(
        self,
        groups: Any = None,
        *,
        always: Iterable[Any] = (),
        selection: Any = 5,
        rule: str = "min",
        average: bool = False,
        network: Any = None,
        factors: int | str = "auto",
        group_weights: Any = "noise",
        standardize: Any = "group",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.always = always
        self.selection = selection
        self.rule = rule
        self.average = average
        self.network = network
        self.factors = factors
        self.group_weights = group_weights
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, split_groups: Any = None) -> GroupSparseRegressor:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as the row twice.
        split_groups : array-like of shape (n_rows,), optional
            Labels of the rows, for splitters such as GroupKFold.

        Returns
        -------
        self
        """
        if self.rule not in ("min", "1se"):
            raise ValueError(f"rule must be 'min' or '1se', not {self.rule!r}.")
        design, y, weight = read_problem(self, X, y, sample_weight)
        groups = Groups.coerce(self.groups, design.shape[1], getattr(self, "feature_names_in_", None))
        selection = read_selection(self.selection, self.random_state, split_groups)
        options = {name: getattr(self, name) for name in ("group_weights", "standardize", "fit_intercept", "factors")}
        always = groups.positions(self.always, "always")
        problem = Problem(design, y, weight, groups, always, options)
        if self.network is None:
            if self.checkpoint is not None:
                raise ValueError(
                    "checkpoint= keeps the folds of a network: give network= too, or leave checkpoint out."
                )
            made = select(problem, selection, self.rule, boolean(self.average, "average"))
        else:
            from covey.selection.on_network import select_on_network  # the network's kernels are compiled

            if boolean(self.average, "average"):
                raise ValueError("average=True is for the default search; network= chooses one time on one path.")
            made = select_on_network(
                problem, selection, self.network, self.rule, n_jobs=self.n_jobs, checkpoint=self.checkpoint,
                verbose=int(self.verbose),
            )  # fmt: skip
        self._publish(groups, made, design.dtype)
        if self.verbose:
            print(f"[covey] {len(self.selected_groups_)} of {groups.n_groups} groups: {self.recipe_}")
        return self

    def _publish(self, groups: Groups, made: Selected, dtype: Any) -> None:
        """Set everything that describes the model, from the model."""
        self.groups_ = groups
        with np.errstate(over="ignore"):
            own = made.own.astype(dtype)
        if not np.isfinite(own).all():
            own = made.own  # too large for the precision of X
        self.coef_ = groups.from_contiguous(own)
        self.intercept_ = made.intercept
        self.group_norms_ = groups.apart().norms(own)
        in_model = set(np.flatnonzero(self.group_norms_).tolist())
        self.selected_groups_ = [groups.names[l] for l in made.order if l in in_model]
        self.group_strengths_ = made.strengths
        self.recipe_, self.shrunk_ = made.recipe, made.shrunk
        self.candidates_ = made.candidates
        self.fold_frequencies_, self.n_splits_ = made.frequencies, made.n_splits
        self.path_ = made.path
        if made.path.status == "diverged":
            warnings.warn(made.path.message, ConvergenceWarning, stacklevel=3)

    def predict(self, X: Any) -> FloatArray:
        """Predict.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
            A numpy array, or what the kind of X keeps its rows in.
        """
        check_is_fitted(self)
        design = read_rows(self, X)
        used = np.flatnonzero(self.coef_)
        fitted = design.predict(used, self.coef_[None, used], np.array([self.intercept_], dtype=self.coef_.dtype))
        return fitted[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R^2 of the predictions, computed where the rows are.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if is_table(X):
            return float(super().score(X, y, sample_weight))
        design = read_rows(self, X)
        response, weight = design.rows(y), design.weights(sample_weight)
        used = np.flatnonzero(self.coef_)
        error = design.errors(response, weight)(used, self.coef_[None, used], np.array([self.intercept_]))[0]
        spread = design.standard(response, weight, centre=True)[2]
        return 1.0 - float(error / spread**2)

    def __getstate__(self) -> dict[str, Any]:
        """What is kept is plain: numbers, arrays and text, so that files of it need no pickle."""
        state = dict(super().__getstate__())
        if "candidates_" in state:
            state["candidates_"] = json.dumps(state["candidates_"].to_dict("list"))
        if "feature_names_in_" in state:
            state["feature_names_in_"] = json.dumps(state["feature_names_in_"].tolist())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "candidates_" in state:
            state["candidates_"] = pd.DataFrame(json.loads(state["candidates_"]))
        if "feature_names_in_" in state:
            state["feature_names_in_"] = np.array(json.loads(state["feature_names_in_"]), dtype=object)
        super().__setstate__(state)

    def group_table(self) -> pd.DataFrame:
        """The selected groups, in the order in which they woke up.

        Returns
        -------
        DataFrame
            Indexed by group; columns ``size``, ``strength`` (the standard deviation of its part of the prediction, with
            the default ``standardize="group"``), ``norm`` (of its coefficients), ``woke_up`` (its time on the path; NaN
            for a group of a dense model that did not wake up), and ``folds`` (in how many folds it was chosen, where
            folds judged).
        """
        check_is_fitted(self)
        woke = dict(self.path_.entered)
        chosen = [self.groups_.position(name) for name in self.selected_groups_]
        table = pd.DataFrame(
            {
                "size": self.groups_.sizes[chosen],
                "strength": self.group_strengths_[chosen],
                "norm": self.group_norms_[chosen],
                "woke_up": [float(woke.get(l, np.nan)) for l in chosen],
            },
            index=pd.Index(self.selected_groups_, name="group"),
        )
        if self.fold_frequencies_ is not None and self.n_splits_ > 1:
            table["folds"] = np.asarray(self.fold_frequencies_)[chosen]
        return table

    def summary(self, file: TextIO | None = None) -> None:
        """Print what was selected: how the model was made, and one line per group."""
        table = self.group_table()
        out = sys.stdout if file is None else file
        n_columns = int(np.count_nonzero(self.coef_))
        print(
            f"{type(self).__name__}: {len(table)} of {self.groups_.n_groups} groups selected "
            f"({n_columns} of {self.n_features_in_} columns)\nModel: {self.recipe_}"
            f"{'' if self.shrunk_ or not len(table) else '; coefficients are not shrunk'}.",
            file=out,
        )
        if len(table):
            shown = table.assign(**{name: table[name].map("{:.4g}".format) for name in ("strength", "norm", "woke_up")})
            if "folds" in shown:
                shown["folds"] = [f"{count} of {self.n_splits_}" for count in table["folds"]]
            print(shown.reset_index().to_string(index=False), file=out)
