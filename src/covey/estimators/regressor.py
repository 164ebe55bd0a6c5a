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
from covey.designs.rows import standard_response
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.reading import read_problem, read_rows
from covey.losses import Gamma, Huber, Loss, Multinomial, MultiSquared, Poisson, Squared, get_loss
from covey.losses.arrays import weighted_median
from covey.losses.offsets import read_offset
from covey.validation import FloatArray, as_response, as_sample_weight

__all__ = ["GroupSparseRegressor"]

# Residuals below this share of the response's spread are round-off error, and useless as the scale of a loss.
LEAST_NOISE = 1e-6


class GroupSparseRegressor(RegressorMixin, GroupSparseEstimator):
    r"""Group-sparse linear regression: finds the few groups of columns that matter and fits them.

    Groups wake up one after another, strongest first, along the path of a diagonally grouped linear network in the
    limit of small starts; groups that turn out not to be needed are dropped again. The resulting models are fitted by
    least squares and, if the noise is strong, by ridge regression, and cross-validation chooses one of them. `coef_`,
    `predict`, `selected_groups_`, tables and reports all describe this model, fitted on all rows.

    Parameters
    ----------
    groups : None, int, labels, lists, dict, callable, str or Groups
        Which columns belong together: None for every column on its own (a sparse linear model), one size for all
        groups, one label per column, lists of columns (positions, or names of a DataFrame), a dictionary from group
        names to columns, a function of the column names such as `TermGroups`, or a separator: ``"_"`` groups columns by
        the part of their name before the first underscore. For groups of different sizes use ``Groups.from_sizes``.
    loss : {"squared", "huber", "poisson", "gamma", "binomial"} or Loss
        The loss to minimise: squared error; Huber's loss, for responses with outliers; or the negative log-likelihood
        of counts (log link), of positive values whose spread grows with their mean (log link), or of proportions (logit
        link). Any `covey.losses.Loss` works too. Several responses (2-d `y`) share their groups and need squared loss.
        Use `GroupSparseClassifier` for classes and `GroupSparseCox` for survival times.
    always : iterable
        Names of groups (or of columns that are a group by themselves) that are in every model; they are never selected,
        shrunk or dropped. Linearly dependent columns among them count by their rank.
    selection : int, splitter, "holdout", "ebic", "bic", "gcv", "discrepancy", Size, or an object of `covey.selection`
        How the model is chosen: by a number of folds or anything that scikit-learn accepts as ``cv``; on rows held out
        once (`covey.selection.HoldOut`, also with your own validation set); by an information criterion; by the
        discrepancy principle; or by the number of groups (``covey.selection.Size(k)``).
    rule : {"min", "1se"}
        Which of the models compared on held-out rows is chosen. ``"min"``, for prediction: the simplest of the models
        closest to the mean of all, where models are weighted by the likelihood of the held-out rows (if one model is
        clearly best, that one). ``"1se"``, for fewer groups: the simplest model within one standard error of the best.
    average : bool
        Return the mean of all candidates, weighted by the likelihood of the held-out rows, instead of one of them. It
        predicts a little better under strong noise, but is dense; all attributes then describe the mean.
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
    fit_intercept : bool
    random_state : int or None
        Seed for choosing held-out rows and assigning rows to folds; None means 0, so that fits are reproducible.
    verbose : int
        1 shows the progress of fits that take longer than a second, and prints a line about the chosen model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_responses, n_features)
        Coefficients of the linear predictor; with a log link, log ratios.
    intercept_ : float or ndarray of shape (n_responses,)
    loss_ : Loss
        The loss; for Huber's loss, with its estimated threshold.
    groups_ : Groups
    always_groups_ : list
        Names of the groups that are in every model.
    selected_groups_ : list
        Names of the groups with non-zero coefficients, in the order in which they woke up.
    group_norms_ : ndarray of shape (n_groups,)
        Norm of each group's coefficients, over all responses.
    group_strengths_ : ndarray of shape (n_groups,)
        How far each group moves the prediction: with ``standardize="group"``, the standard deviation of its
        contribution.
    recipe_ : str
        How the model was made, in words.
    shrunk_ : bool
        False if the model is least squares (or maximum likelihood) on the selected groups; True if it is shrunk by a
        ridge or is a mean of models.
    candidates_ : DataFrame
        All candidates with their cross-validated errors; the chosen one is marked.
    fold_frequencies_ : ndarray of shape (n_groups,) or None
        In how many of the `n_splits_` folds the chosen recipe selects each group; None if there were no folds.
    path_ : Path
        The path on all rows; it ends with the chosen model.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has column names.

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
        factors: int | str = "auto",
        group_weights: Any = "noise",
        standardize: Any = "group",
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.loss = loss
        self.always = always
        self.selection = selection
        self.rule = rule
        self.average = average
        self.factors = factors
        self.group_weights = group_weights
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            loss = get_loss(self.loss)
        except ValueError:  # fit will raise it
            return tags
        tags.target_tags.multi_output = isinstance(loss, Squared | MultiSquared)
        tags.target_tags.positive_only = isinstance(loss, Poisson | Gamma)
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, *, split_groups: Any = None
    ) -> GroupSparseRegressor:
        """Select groups and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : array-like of shape (n_rows,), or (n_rows, n_responses)
        sample_weight : array-like of shape (n_rows,), optional
            A weight of two is the same as repeating the row.
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor with coefficient one; for counts, the logarithm of the exposure.
        split_groups : array-like of shape (n_rows,), optional
            Labels that splitters such as GroupKFold use to keep rows together.

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
            loss, response = Squared(), np.ascontiguousarray(response[:, 0])
        if isinstance(loss, Squared):
            _warn_of_classes(response)
        outputs = response.shape[1] if np.ndim(response) == 2 else 1
        shift = None if offset is None else read_offset(offset, design.shape[0], outputs, loss)
        if not isinstance(loss, Squared | MultiSquared):
            # refuses a response that no finite constant fits, such as counts of zero
            loss.null(response, weight, None if shift is None else shift[:, 0])
        if shift is not None and outputs == 1:
            shift = shift[:, 0]
        if loss.scaled_to(response, weight) != loss:
            loss = self._scaled(loss, design, response, weight, shift, split_groups)
        made = self._fit(design, response, weight, shift, loss, split_groups)
        self._publish(made, design.dtype, one_output=not several)
        return self

    def _scaled(self, loss: Loss, design: Design, y: Any, weight: Any, offset: Any, split_groups: Any) -> Loss:
        """A loss with the scale of the residuals of a first model, selected with the scale of the response."""
        shift = 0.0 if offset is None else offset
        plain = y - shift - weighted_median(y - shift, weight)
        made = self._fit(design, y, weight, offset, loss.scaled_to(plain, weight), split_groups)
        used = np.flatnonzero(made.coef.any(axis=0))
        residuals = y - shift - design.predict(used, made.coef[:, used], made.intercept)[:, 0]
        if weighted_median(np.abs(residuals), weight) <= LEAST_NOISE * weighted_median(np.abs(plain), weight):
            residuals = LEAST_NOISE * plain
        return loss.scaled_to(residuals, weight)

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Predict the mean of the response.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_responses)
            A numpy array, or the array type in which X stores its rows.
        """
        eta = self._linear(X, offset)
        if np.ndim(self.coef_) == 1:
            eta = eta[:, 0]
        return eta if isinstance(self.loss_, Squared | MultiSquared | Huber) else self.loss_.inverse_link(eta)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """The share of the best constant's deviance that the predictions explain: R^2 for squared loss.

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
            response, weight = as_response(y, design.shape[0]), as_sample_weight(sample_weight, design.shape[0])
            used = np.flatnonzero(self.coef_)
            fitted = design.predict(used, self.coef_[None, used], np.array([self.intercept_]))[:, 0]
            spread = standard_response(response, weight, centre=True)[2]
            # in units of the spread: squares of a large response overflow
            return 1.0 - float(weight @ ((response - fitted) / spread) ** 2)
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
        except ValueError:  # the best constant is infinite and has no deviance, as with counts that are all zero
            return 1.0 - left
        whole = float(weight @ self.loss_.deviance(response, np.broadcast_to(null, eta.shape)))
        return 1.0 - left / (whole or 1.0)


def _read_loss(given: Any) -> Loss:
    loss = get_loss(given)
    if isinstance(loss, Multinomial):
        raise ValueError("loss='multinomial' is for classes: use covey.GroupSparseClassifier.")
    # y determines the number of responses
    return Squared() if isinstance(loss, MultiSquared) else loss


def _warn_of_classes(y: Any) -> None:
    """Point to the classifier if the response looks like two classes."""
    if isinstance(y, np.ndarray) and np.isin(y, (0.0, 1.0)).all() and np.ptp(y) > 0:
        warnings.warn(
            "y has only the values 0 and 1: covey.GroupSparseClassifier fits classes and predicts probabilities.",
            UserWarning,
            stacklevel=3,
        )
