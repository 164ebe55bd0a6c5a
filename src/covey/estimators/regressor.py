"""GroupSparseRegressor: numbers as responses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from covey.estimators.base import GroupSparseEstimator
from covey.estimators.documentation import documented
from covey.estimators.intervals import fold_predictors, interval_bounds
from covey.estimators.reading import read_problem, read_weight
from covey.losses import Loss, get_loss
from covey.losses.base import Response
from covey.progress import showing
from covey.validation import MatrixLike, PerRow, on_host, pandas_frame


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class GroupSparseRegressor(RegressorMixin, GroupSparseEstimator):
    r"""Group-sparse linear regression: finds the few groups of columns that matter and fits them.

    Groups wake up one after another, strongest first, along the path of a diagonally grouped linear network in the
    limit of small starts; groups that turn out not to be needed are dropped again. The resulting models are fitted by
    least squares and, if the noise is strong, by ridge regression, and cross-validation chooses one of them. `coef_`,
    `predict`, `selected_groups_`, tables and reports all describe this model, fitted on all rows.

    Parameters
    ----------
    $groups $terms $within $constraints
    loss : {"squared", "huber", "quantile", "poisson", "negative-binomial", "gamma", "tweedie", "binomial"} or Loss
        The loss to minimise: squared error; Huber's loss, for responses with outliers; the pinball loss, for the median
        or another quantile; or the negative log-likelihood of counts, of counts that vary more than Poisson counts, of
        positive values whose spread grows with their mean, of such values with zeros (all with a log link), or of
        proportions (logit link). Any `covey.losses.Loss` works too, such as ``Quantile(0.9)``, several quantiles as in
        ``MultiQuantile([0.1, 0.9])``, or ``Tweedie(power=1.5)``; parameters that are not given are estimated. Several
        responses (2-d `y`) share their groups and need squared loss.
        Use `GroupSparseClassifier` for classes and `GroupSparseCox` for survival times.
    $always
    $selection
        ``"discrepancy"`` is the discrepancy principle, for squared loss.
    $rule $recipes $factors $group_weights $standardize
    fit_intercept : bool
    $random_state $verbose

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_responses, n_features)
        Coefficients of the linear predictor; with a log link, log ratios.
    intercept_ : float or ndarray of shape (n_responses,)
    loss_ : Loss
        The loss, with its estimated parameters: a threshold, a scale, an overdispersion, a power.
    groups_ : Groups
    $always_groups_ $selected_groups_ $group_norms_
    $group_strengths_
    response_strengths_ : ndarray of shape (n_responses, n_groups)
        Only with several responses: the same for each of them, in its own units; `group_strengths_` is then in units of
        the responses' standard deviations.
    response_deviations_ : ndarray of shape (n_responses,)
        Only with several responses: these standard deviations.
    response_names_ : list of str
        Only with several responses: the names of the columns of y, if it is a table.
    $recipe_ $shrunk_
    $candidates_ $rivals_ $price_ $fold_frequencies_ $held_out_ $n_splits_ $predictor_range_ $path_ $expansion_
    $constraints_ $n_features_in_ $feature_names_in_

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

    loss: str | Loss = "squared"
    fit_intercept: bool = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            loss = get_loss(self.loss)
        except ValueError:  # fit will raise it
            return tags
        tags.target_tags.multi_output = loss.quadratic
        tags.target_tags.positive_only = loss.log_link
        return tags

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None, *,
        split_groups: PerRow = None,
    ) -> GroupSparseRegressor:  # fmt: skip
        """Select groups and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : array-like of shape (n_rows,), or (n_rows, n_responses)
        $sample_weight
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor with coefficient one; for counts, the logarithm of the exposure.
        $split_groups

        Returns
        -------
        self
        """
        loss = get_loss(self.loss)
        if loss.labelled and (loss.vector or loss.coupled):
            raise ValueError(f"loss={loss.name!r} is for classes: use covey.GroupSparseClassifier.")
        if loss.coupled:
            raise ValueError(f"The rows of the {loss.name} loss depend on each other: use covey.GroupSparseCox.")
        design, response, weight = read_problem(self, X, y, sample_weight, loss.read)
        one_number = response.loss.quadratic and not response.loss.vector
        if one_number and np.isin(response.y, (0.0, 1.0)).all() and np.ptp(response.y) > 0:
            warnings.warn(
                "y has only the values 0 and 1: covey.GroupSparseClassifier fits classes and predicts probabilities.",
                UserWarning,
                stacklevel=2,
            )
        problem, search = self._pose(design, response, weight, offset, split_groups)
        with showing(type(self).__name__, self.verbose):
            found = search(problem)
        return self._publish(problem, found, response)

    def predict(self, X: MatrixLike, offset: PerRow = None, *, interval: float | None = None) -> Any:
        """Predict the mean of the response, or an interval that contains the response.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,), or (n_rows, n_responses), optional
            Added to the linear predictor.
        interval : float, optional
            The share of new rows whose response shall lie in their interval, such as 0.9. The intervals are made of the
            rows that the folds held out, so that there must have been some.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_responses)
            With `interval`, two arrays of this shape: the lower and the upper ends of the intervals. They lie in the
            range of the response, and are whole numbers where all counts were.

        Examples
        --------
        >>> from covey import GroupSparseRegressor
        >>> from covey.datasets import make_group_sparse
        >>> data = make_group_sparse(150, 30, 3, active=3, random_state=0)
        >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
        >>> lower, upper = model.predict(data.X, interval=0.9)
        >>> bool(0.85 < ((lower <= data.y) & (data.y <= upper)).mean() < 0.97)
        True
        """
        if interval is not None:
            check_is_fitted(self)
            if self.loss_.outputs:
                raise ValueError(
                    f"The model predicts {', '.join(self.loss_.outputs)}, which are bounds themselves: leave interval= "
                    "out, or fit loss='squared', 'huber' or 'quantile' for intervals around one prediction."
                )
            held_out, eta = fold_predictors(self, X, offset)
            lower, upper = interval_bounds(self.loss_, held_out, eta, interval)
            return (lower[:, 0], upper[:, 0]) if np.ndim(self.coef_) == 1 else (lower, upper)
        eta = self._linear(X, offset)
        eta = eta[:, 0] if np.ndim(self.coef_) == 1 else eta
        return self.loss_.inverse_link(eta)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None) -> float:
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
        eta, loss = self._linear(X, offset), self.loss_
        response = Response(loss, loss.check(pandas_frame(on_host(y), "y")))
        eta = eta if loss.vector else eta[:, 0]
        if response.y.shape != eta.shape:
            raise ValueError(f"y has shape {response.y.shape}, but the predictions have {eta.shape}.")
        weight, shift = read_weight(sample_weight, len(eta)), response.read_offset(offset)
        shift = np.zeros_like(eta) if shift is None else shift
        if loss.quadratic:
            return float(r2_score(response.y - shift, eta - shift, sample_weight=weight))
        left = float(weight @ loss.deviance(response.y, eta))
        try:
            null = loss.null(response.y, weight, shift) + shift
        except ValueError:  # the best constant is infinite and has no deviance, as with counts that are all zero
            return 1.0 - left
        return 1.0 - left / (float(weight @ loss.deviance(response.y, null)) or 1.0)
