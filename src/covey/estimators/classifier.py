"""GroupSparseClassifier: classes as responses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import column_or_1d

from covey.designs import Design
from covey.estimators.base import GroupSparseEstimator
from covey.estimators.documentation import documented
from covey.estimators.formula import column_response
from covey.estimators.intervals import class_scores, class_sets, fold_predictors
from covey.estimators.reading import read_problem, read_weight
from covey.losses import Loss, Ordinal
from covey.losses.base import Response
from covey.losses.classes import ClassLoss, read_labels
from covey.losses.ordinal import known_order
from covey.progress import showing
from covey.search.held_out import FoldModels
from covey.search.splits import MissingClassError
from covey.summary import Summary
from covey.tables.complaint import listed
from covey.terms.levels import spelt_alike
from covey.terms.requirements import opposite_text
from covey.validation import Array, FloatArray, MatrixLike, PerRow, on_host

# What is accepted as ``class_weight=``; the keys are labels of any one type.
ClassWeight: TypeAlias = Mapping[Any, float] | str | None


def class_weight_of_rows(class_weight: ClassWeight, classes: Array, codes: Any, weight: FloatArray) -> FloatArray:
    """The factor by which `class_weight` multiplies the weight of each row; `codes` are positions in `classes`."""
    factor = np.asarray(compute_sample_weight(class_weight, classes[codes]))
    if isinstance(class_weight, str):  # "balanced", by weight
        totals = np.bincount(codes, weights=weight)
        factor = (weight.sum() / (totals.size * np.where(totals > 0, totals, 1.0)))[codes]
    if not (np.isfinite(factor).all() and factor.min() >= 0):
        raise ValueError(f"class_weight must not be negative, infinite or missing: {class_weight!r}.")
    return factor


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class GroupSparseClassifier(ClassifierMixin, GroupSparseEstimator):
    r"""Group-sparse logistic regression: finds the few groups of columns that distinguish the classes and fits them.

    The loss is minus the log-likelihood, :math:`\frac{1}{n} \sum_i \log(1 + e^{\eta_i}) - y_i \eta_i` for two classes,
    and :math:`\frac{1}{n} \sum_i \log \sum_k e^{\eta_{ik}} - \eta_{i y_i}` for more. Groups wake up one after
    another, strongest first, along the path of a diagonally grouped linear network in the limit of small starts; groups
    that turn out not to be needed are dropped again. The resulting models are fitted by maximum likelihood and with
    ridge penalties, and cross-validated deviance chooses one of them. A group is in the model for all classes or none.

    If the selected groups separate the classes perfectly, the maximum-likelihood estimate is infinite, and the fit has
    a ridge of 0.001 (`separated_ridge` of `covey.search.settings.Settings`) instead. So it has if they separate the
    classes without the rows of a fold.

    Parameters
    ----------
    $groups $terms $within
    $constraints
        They are about the odds of ``classes_[1]``, and there must be two classes.
    loss : {"multinomial", "ordinal"} or Ordinal
        ``"ordinal"`` is for classes with an order, such as grades: one coefficient per column, which moves the odds of
        a higher class (cumulative logits, proportional odds). The order is that of an ordered pandas categorical or of
        numbers; ``covey.losses.Ordinal(order=["low", "middle", "high"])`` gives it for any labels.
    $always
    $selection
        Folds are stratified by class.
    $rule $recipes $factors $group_weights $standardize
    fit_intercept : bool
    class_weight : dict, "balanced" or None
        Weights of the classes, which multiply the weights of their rows; "balanced" gives every class the same total.
    $random_state $verbose

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with ``loss="ordinal"`` from the lowest to the highest.
    coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) with more than two classes
        Coefficients of the linear predictor: log odds ratios. With two classes they are for ``classes_[1]``; with more,
        for each class relative to the geometric mean of all, so that they add up to zero over the classes. With
        ``loss="ordinal"`` there is one row, for the odds of a higher class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    loss_ : Loss
        `covey.losses.Binomial`, `covey.losses.Multinomial`, or `covey.losses.Ordinal` with its ``thresholds``.
    fold_thresholds_ : ndarray of shape (n_folds, n_classes - 1) or None
        Only with ``loss="ordinal"``: the thresholds of the models of `held_out_`.
    groups_ : Groups
    $always_groups_ $selected_groups_ $group_norms_
    $group_strengths_ $recipe_ $shrunk_
    $candidates_ $rivals_ $price_ $fold_frequencies_ $held_out_ $n_splits_ $predictor_range_ $path_ $expansion_
    $constraints_ $n_features_in_ $feature_names_in_

    References
    ----------
    Li, Nguyen, Hegde and Wong, "Implicit Regularization for Group Sparsity", ICLR 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from covey import GroupSparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 60))
    >>> y = np.where(X[:, :3].sum(axis=1) + rng.logistic(size=200) > 0, "ill", "well")
    >>> model = GroupSparseClassifier(groups=3).fit(X, y)
    >>> model.selected_groups_, model.classes_.tolist(), model.predict_proba(X).shape
    ([0], ['ill', 'well'], (200, 2))
    """

    loss: str | Loss = "multinomial"
    fit_intercept: bool = True
    class_weight: ClassWeight = None

    classes_: Any = field(init=False)
    loss_: ClassLoss = field(init=False)
    fold_thresholds_: FloatArray | None = field(init=False)

    _formula_response = staticmethod(column_response)

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None, *,
        split_groups: PerRow = None,
    ) -> GroupSparseClassifier:  # fmt: skip
        """Select groups and fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or any kind of design
        y : array-like of shape (n_rows,)
            Labels of any kind; with ``loss="ordinal"``, an ordered pandas categorical or numbers, unless the loss has
            an order.
        $sample_weight
        offset : array-like of shape (n_rows,), or (n_rows, n_classes) with more than two classes, optional
            Added to the linear predictor with coefficient one.
        $split_groups

        Returns
        -------
        self
        """
        design, response, weight = read_problem(self, X, y, sample_weight, self._read)
        self.classes_ = response.labels
        texts = [label for label in self.classes_.tolist() if isinstance(label, str)]
        if texts and (alike := spelt_alike(texts)):
            warnings.warn(f"y has classes that differ in spaces or capitals only: {listed(alike)}.", stacklevel=2)
        if self.class_weight is not None:
            codes = response.loss.classes(response.y)
            weight = weight * class_weight_of_rows(self.class_weight, self.classes_, codes, weight)
        try:
            problem, search = self._pose(design, response, weight, offset, split_groups)
            with showing(type(self).__name__, self.verbose):
                found = search(problem)
        except MissingClassError as error:
            label = self.classes_[error.position : error.position + 1].tolist()[0]
            raise ValueError(f"Class {label!r} {error.rest}") from None
        return self._publish(problem, found, response)

    def _read(self, y: ArrayLike, name: str = "y", classes: Array | None = None) -> Response:
        """Labels in the form that the loss takes; `classes` are those of an earlier response."""
        loss = Ordinal() if isinstance(self.loss, str) and self.loss == "ordinal" else self.loss
        if isinstance(loss, str) and loss == "multinomial":
            return read_labels(y, name, classes)
        if not isinstance(loss, Ordinal):
            raise ValueError(
                "loss must be 'multinomial' (for two classes, too), 'ordinal' or a covey.losses.Ordinal, not "
                f"{self.loss!r}."
            )
        if not self.fit_intercept:
            raise ValueError("loss='ordinal' has thresholds in the place of an intercept: leave fit_intercept out.")
        return loss.read(y, name, classes)

    def _coded(self, y: ArrayLike, name: str = "y") -> FloatArray:
        return self._read(y, name, self.classes_).y

    def _calibrate(
        self, design: Design, folds: FoldModels | None, response: Response, weight: FloatArray,
        offset: FloatArray | None,
    ) -> None:  # fmt: skip
        self.fold_thresholds_ = None
        if isinstance(self.loss_, Ordinal):
            eta = self._predictor(design)[:, 0]
            eta = eta if offset is None else eta + offset
            self.loss_ = self.loss_.with_thresholds(response.y, eta, weight)
        super()._calibrate(design, folds, response, weight, offset)

    def _scored(
        self, y: FloatArray, eta: FloatArray, rows: FloatArray, held_out: NDArray[np.bool_], folds: FoldModels
    ) -> list[tuple[FloatArray, FloatArray]]:
        if isinstance(self.loss_, Ordinal):
            fitted = [self.loss_]
            if folds.validation is None:
                weight = rows * np.maximum(held_out.sum(axis=1), 1)
                fitted = [
                    self.loss_.with_thresholds(y, eta[:, k, 0], weight * trained)
                    for k, trained in enumerate(folds.trained.T)
                ]
            self.fold_thresholds_ = np.array([loss.thresholds for loss in fitted])
        return super()._scored(y, eta, rows, held_out, folds)

    def _misfit(self, y: FloatArray, eta: FloatArray, fold: int) -> FloatArray:
        """The probability that the class is a more likely one."""
        codes = np.asarray(self.loss_.classes(y))
        return class_scores(self._fold_loss(fold).probabilities(eta))[np.arange(len(codes)), codes]

    def _fold_loss(self, fold: int) -> ClassLoss:
        """The loss of a fold's model, which has its own thresholds."""
        if self.fold_thresholds_ is None or not isinstance(self.loss_, Ordinal):
            return self.loss_
        return replace(self.loss_, thresholds=tuple(self.fold_thresholds_[fold].tolist()))

    def decision_function(self, X: MatrixLike, offset: PerRow = None) -> FloatArray:
        """The linear predictor: the log odds of ``classes_[1]`` or of a higher class, or one column per class.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
        """
        eta = self._linear(X, offset)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict_proba(self, X: MatrixLike, offset: PerRow = None) -> FloatArray:
        """The probability of every class.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        eta = self._linear(X, offset)
        return self.loss_.probabilities(eta)

    def predict_log_proba(self, X: MatrixLike, offset: PerRow = None) -> FloatArray:
        """The logarithm of the probability of every class, without underflow.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        eta = self._linear(X, offset)
        return self.loss_.log_probabilities(eta)

    def predict(self, X: MatrixLike, offset: PerRow = None, *, interval: float | None = None) -> Any:
        """The most likely class, or a set of classes that contains the class.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional
        interval : float, optional
            The share of new rows whose class shall be in their set, such as 0.9. The sets are made of the rows that the
            folds held out, so that there must have been some.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels. With `interval`, an array of bool of shape (n_rows, n_classes) that says which classes are in the
            set of each row; the columns are in the order of `classes_`.

        Examples
        --------
        >>> import numpy as np
        >>> from covey import GroupSparseClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((300, 6))
        >>> y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.5 * rng.gumbel(size=(300, 3)), axis=1)]
        >>> model = GroupSparseClassifier().fit(X[:200], y[:200])
        >>> sets = model.predict(X[200:], interval=0.9)
        >>> [model.classes_[row].tolist() for row in sets[3:6]]
        [['a'], ['a'], ['b', 'c']]
        """
        if interval is not None:
            held_out, eta = fold_predictors(self, X, offset)
            p = np.stack([self._fold_loss(k).probabilities(eta[:, k]) for k in range(eta.shape[1])], axis=1)
            return class_sets(held_out, p, interval)
        eta = self._linear(X, offset)
        return self.classes_[self.loss_.log_probabilities(eta).argmax(axis=1)]

    def summary(self) -> Summary:
        """As for other responses; it also says whose odds are described, and if classes seem to have an order.

        Returns
        -------
        Summary
        """
        found: Summary = super().summary()
        order = [] if isinstance(self.loss_, Ordinal) else known_order(self.classes_.tolist())
        hint = f"The classes seem to have an order, which is ignored: loss=covey.losses.Ordinal(order={order}) uses it."
        return replace(found, notes=(*found.notes, hint)) if order else found

    def _odds_in_words(self) -> str:
        """Whose odds the coefficients describe; empty if there is a row of them for every class."""
        first, *others = (str(label) for label in self.classes_)
        if isinstance(self.loss_, Ordinal):
            return f"the odds of a higher class ({' < '.join([first, *others])})"
        return f"the odds of {others[0]} against {first}" if len(others) == 1 else ""

    def _ending(self, n_selected: int) -> str:
        odds = self._odds_in_words() if n_selected else ""
        return super()._ending(n_selected) + (f"; they describe {odds}" if odds else "")

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, offset: PerRow = None) -> float:
        """The accuracy: the share of rows whose class is predicted correctly.

        Parameters
        ----------
        X : array-like or any kind of design, of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional

        Returns
        -------
        float
        """
        predicted = self.predict(X, offset)
        labels = column_or_1d(on_host(y))
        if len(labels) != len(predicted):
            raise ValueError(f"y has {len(labels)} entries, but X has {len(predicted)} rows.")
        return float(accuracy_score(labels, predicted, sample_weight=read_weight(sample_weight, len(predicted))))


def for_odds_of(model: BaseEstimator, label: object) -> BaseEstimator:
    """The same model with coefficients, effects and path for the odds of a class, which comes last in `classes_`.

    An estimator's coefficients are for ``classes_[1]``, the second in sorted order, as scikit-learn's scorers take for
    granted; where effects are shown, the reader's positive class is clearer. The model itself is returned if there is
    nothing to change: for that class, more than two classes, or another kind of response.
    """
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        turned = for_odds_of(last, label)
        return model if turned is last else Pipeline([*model.steps[:-1], (name, turned)])
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) != 2 or label is None or classes.tolist()[1] == label:
        return model
    turned, path = copy(model), model.path_
    turned.classes_ = classes[::-1]
    turned.coef_, turned.intercept_ = -model.coef_, -model.intercept_
    turned.path_ = replace(
        path, coefs=-path.coefs, intercepts=-path.intercepts, parts=None if path.parts is None else -path.parts
    )
    if model.predictor_range_ is not None:
        turned.predictor_range_ = -model.predictor_range_[::-1]
    if hasattr(model, "constraints_"):
        table = model.constraints_
        texts = [f"{opposite_text(text)} for the odds of {classes[0]}" for text in table["constraint"]]
        turned.constraints_ = table.assign(constraint=texts)
    if hasattr(model, "term_means_"):
        turned.term_means_ = -model.term_means_
    return turned
