"""GroupSparseRegressor: numbers as responses."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from covey.designs import Design, is_table
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.reading import read_problem, read_rows
from covey.losses import Gamma, Huber, Loss, Multinomial, MultiSquared, Poisson, Squared, get_loss
from covey.losses.arrays import weighted_median
from covey.losses.offsets import read_offset
from covey.selection import Problem, Selected
from covey.selection.reading import Selection
from covey.validation import FloatArray, boolean

__all__ = ["GroupSparseRegressor"]

# Residuals below this share of the response's spread are rounding, and no scale for a loss to take.
LEAST_NOISE = 1e-6


class GroupSparseRegressor(RegressorMixin, GroupSparseEstimator):
    r"""Group-sparse linear regression: finds the few groups of columns that matter and fits them.

    Groups wake up one after another, strongest first, along the path of a diagonally grouped linear network in the
    limit of small starts; groups that turn out not to be needed are dropped again. Of all models that come of it,
    fitted by least squares and, where noise is strong, by ridges, cross-validation chooses one. That model, fitted on
    all rows, is what `coef_`, `predict`, `selected_groups_`, tables and reports describe.

    Parameters
    ----------
    groups : None, int, labels, lists, dict, callable, str or Groups
        Which columns belong together: None for each on its own (a sparse linear model), a size, one label per column,
        lists of columns (positions, or names of a DataFrame), a dictionary from names to columns, or a function of the
        column names such as `TermGroups`; or a separator such as ``"_"``, before which the group stands in a column's
        name. For sizes use ``Groups.from_sizes``.
    loss : {"squared", "huber", "poisson", "gamma", "binomial"} or Loss
        What is minimised: squared errors; Huber's loss, for responses with a few wild values; the negative
        log-likelihood of counts (log link), of positive values whose spread grows with their mean (log link), or of
        proportions (logistic). Any `covey.losses.Loss` may be given. Several responses (2-d `y`) share their groups,
        under squared loss. For classes there is `GroupSparseClassifier`.
    always : iterable
        Names of groups, or of columns that are groups of their own, that are in every model: they are neither selected
        nor shrunk, and not dropped again. Where their columns depend on each other they count by their rank.
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
        1: how far a fit is that takes longer than a second, and a line on what was chosen.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_responses, n_features)
        Of the linear predictor: with a log link, logarithms of ratios.
    intercept_ : float or ndarray of shape (n_responses,)
    loss_ : Loss
        With the threshold that was found, for Huber's.
    groups_ : Groups
    always_groups_ : list
        Names of the groups that were to be in every model.
    selected_groups_ : list
        Names of the groups with coefficients, in the order in which they woke up.
    group_norms_ : ndarray of shape (n_groups,)
        Norm of each group's coefficients, those of all responses together.
    group_strengths_ : ndarray of shape (n_groups,)
        How much each group does: with ``standardize="group"`` the standard deviation of its part of the prediction.
    recipe_ : str
        How the model was made, in words.
    shrunk_ : bool
        Whether it was shrunk by a ridge, is a mean of models, or a network's model, whose last groups may still be on
        the rise; otherwise it is least squares, or maximum likelihood, on the selected groups.
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

    def __init__(
        self,
        groups: Any = None,
        *,
        loss: Any = "squared",
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
        self.loss = loss
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
        try:
            loss = get_loss(self.loss)
        except ValueError:  # fit will say so
            return tags
        tags.target_tags.multi_output = isinstance(loss, Squared | MultiSquared)
        tags.target_tags.positive_only = isinstance(loss, Poisson | Gamma)
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, *, split_groups: Any = None
    ) -> GroupSparseRegressor:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : array-like of shape (n_rows,), or (n_rows, n_responses)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as the row twice.
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor, with a coefficient of one: the logarithm of the exposure for counts.
        split_groups : array-like of shape (n_rows,), optional
            Labels of the rows, for splitters such as GroupKFold.

        Returns
        -------
        self
        """
        loss = _read_loss(self.loss)
        design, response, weight = read_problem(self, X, y, sample_weight, loss)
        if np.ndim(response) == 2 and response.shape[1] == 1 and not isinstance(loss, Squared | MultiSquared):
            response = loss.check(column_or_1d(response, warn=True))
        several = np.ndim(response) == 2
        if several and response.shape[1] > 1:
            if not isinstance(loss, Squared | MultiSquared):
                raise ValueError(
                    f"y has {response.shape[1]} columns, and the {loss.name} loss is for one response: fit them one by "
                    "one, or use loss='squared'."
                )
            loss = MultiSquared()
            response = loss.check(response)
        elif several:
            loss, response, weight = Squared(), design.rows(response[:, 0]), design.rows(weight)
        if isinstance(loss, Squared):
            _warn_of_classes(response)
        outputs = response.shape[1] if np.ndim(response) == 2 else 1
        shift = None if offset is None else read_offset(offset, design.shape[0], outputs, loss)
        if not isinstance(loss, Squared | MultiSquared):
            # refuses a response that no finite constant fits, such as counts of zero
            loss.null(response, weight, None if shift is None else shift[:, 0])
        if shift is not None and outputs == 1:
            shift = design.rows(shift[:, 0], name="offset")
        made = self._choose(design, response, weight, shift, loss, split_groups)
        self._publish(made, design.dtype, one_output=not several)
        return self

    def _choose(self, design: Design, y: Any, weight: Any, offset: Any, loss: Loss, split_groups: Any) -> Selected:
        """The model; twice where the loss takes its scale from residuals."""
        first = loss.scaled_to(y, weight)
        if first == loss:
            return self._fit(design, y, weight, offset, loss, split_groups)
        shift = 0.0 if offset is None else offset
        plain = y - shift - weighted_median(y - shift, weight)
        first = loss.scaled_to(plain, weight)
        made = self._fit(design, y, weight, offset, first, split_groups)
        used = np.flatnonzero(made.coef.any(axis=0))
        residuals = y - shift - np.asarray(design.predict(used, made.coef[:, used], made.intercept))[:, 0]
        if weighted_median(np.abs(residuals), weight) <= LEAST_NOISE * weighted_median(np.abs(plain), weight):
            residuals = LEAST_NOISE * plain
        return self._fit(design, y, weight, offset, loss.scaled_to(residuals, weight), split_groups)

    def _select(self, problem: Problem, selection: Selection) -> Selected:
        if self.network is None:
            if self.checkpoint is not None:
                raise ValueError(
                    "checkpoint= keeps the folds of a network: give network= too, or leave checkpoint out."
                )
            return super()._select(problem, selection)
        from covey.selection.on_network import select_on_network  # the network's kernels are compiled

        if boolean(self.average, "average"):
            raise ValueError("average=True is for the default search; network= chooses one time on one path.")
        return select_on_network(
            problem, selection, self.network, self.rule, n_jobs=self.n_jobs, checkpoint=self.checkpoint,
            verbose=int(self.verbose),
        )  # fmt: skip

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Predict means.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_responses)
            A numpy array, or what the kind of X keeps its rows in.
        """
        eta = self._linear(X, offset)
        if np.ndim(self.coef_) == 1:
            eta = eta[:, 0]
        return eta if isinstance(self.loss_, Squared | MultiSquared | Huber) else self.loss_.inverse_link(eta)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The share of the deviance of the best constant that the predictions remove: R^2 for squared loss.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), or (n_rows, n_responses)
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if isinstance(self.loss_, Squared | MultiSquared) and offset is None:
            if is_table(X) or np.ndim(self.coef_) > 1:
                return float(super().score(X, y, sample_weight))
            design = read_rows(self, X)
            response, weight = design.rows(y), design.weights(sample_weight)
            used = np.flatnonzero(self.coef_)
            error = design.errors(response, weight)(used, self.coef_[None, used], np.array([self.intercept_]))[0]
            spread = design.standard(response, weight, centre=True)[2]
            return 1.0 - float(error / spread**2)
        eta = np.asarray(self._linear(X, offset))
        n, outputs = eta.shape
        eta = eta if self.loss_.vector else eta[:, 0]
        response = self.loss_.check(y)
        if response.shape != eta.shape:
            raise ValueError(f"y has shape {response.shape}, but the predictions have {eta.shape}.")
        weight = _check_sample_weight(sample_weight, eta, dtype=np.float64, ensure_non_negative=True)
        shift = None if offset is None else read_offset(offset, n, outputs, self.loss_).reshape(eta.shape)
        if isinstance(self.loss_, Squared | MultiSquared) and shift is not None:
            return float(r2_score(response - shift, eta - shift, sample_weight=weight))
        left = float(weight @ self.loss_.deviance(response, eta))
        try:
            null = self.loss_.null(response, weight, shift) + (0.0 if shift is None else shift)
        except ValueError:  # an infinite constant leaves nothing, as with counts that are all zero
            return 1.0 - left
        whole = float(weight @ self.loss_.deviance(response, np.broadcast_to(null, eta.shape)))
        return 1.0 - left / (whole or 1.0)


def _read_loss(given: Any) -> Loss:
    loss = get_loss(given)
    if isinstance(loss, Multinomial):
        raise ValueError("loss='multinomial' is for classes: use covey.GroupSparseClassifier.")
    # how many responses there are is for y to say
    return Squared() if isinstance(loss, MultiSquared) else loss


def _warn_of_classes(y: Any) -> None:
    """Say that there is a classifier where the response looks like two classes."""
    if isinstance(y, np.ndarray) and np.isin(y, (0.0, 1.0)).all() and np.ptp(y) > 0:
        warnings.warn(
            "y has the values 0 and 1 only: covey.GroupSparseClassifier fits classes, and gives probabilities.",
            UserWarning,
            stacklevel=3,
        )
