"""Methods to compare a grouped model with: scikit-learn's lasso and ridge on the same columns, without groups."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import (
    GammaRegressor,
    LassoCV,
    LogisticRegressionCV,
    MultiTaskLassoCV,
    PoissonRegressor,
    RidgeCV,
    TweedieRegressor,
)
from sklearn.metrics import make_scorer, mean_tweedie_deviance
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from covey.evidence.scoring import Task
from covey.losses import (
    Binomial,
    Gamma,
    Huber,
    Loss,
    MultiQuantile,
    MultiSquared,
    NegativeBinomial,
    Poisson,
    Quantile,
    Squared,
    Tweedie,
)
from covey.search.splits import SplitsLike
from covey.threads import fitting_threads
from covey.validation import Array, FloatArray, MatrixLike, PerRow

__all__ = ["Reference", "class_means", "find_references"]

FOLDS = 5

# Penalties on columns of unit variance, for a loss summed over rows: from hardly any to one that leaves nothing.
RIDGES = np.logspace(-2, 6, 33)
# The same for a loss averaged over rows.
MEAN_RIDGES = np.logspace(-4, 2, 13)
# Inverse penalties for a loss summed over rows; larger ones only take longer if classes are separable.
INVERSE_PENALTIES = np.logspace(-4, 2, 13)


@dataclass(frozen=True)
class Reference:
    """A method to compare with, on columns of unit variance: its name in tables, a description, and the estimator."""

    key: str
    what: str
    estimator: BaseEstimator

    def means(self, task: Task, X: FloatArray, X_test: FloatArray) -> FloatArray:
        """Fit the training rows and predict the test rows."""
        scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X, sample_weight=task.weight)
        y, weight, log_link = task.y, task.weight, task.loss.log_link
        if log_link:
            # an offset means rates, weighted by a power of the exposure: 1 for counts, 0 for gamma
            exposure = np.exp(task.offset)
            y, weight = y / exposure, weight * exposure ** (2 - _power(task.loss))
        elif task.classes is None:
            y = (y - task.offset) / task.scale
        else:
            y = y.astype(int) if y.ndim == 1 else y.argmax(axis=1)
        weights = {} if isinstance(self.estimator, MultiTaskLassoCV) else {"sample_weight": weight}
        with warnings.catch_warnings(), fitting_threads(X.shape, loops=True):
            warnings.simplefilter("ignore")  # about convergence: references are used as they are
            self.estimator.fit(scaler.transform(X), y, **weights)
            if task.classes is not None:
                return class_means(self.estimator, scaler.transform(X_test), np.arange(len(task.classes)))
            mean = np.asarray(self.estimator.predict(scaler.transform(X_test)))
        if log_link:
            return mean * np.exp(task.offset_test)
        return mean.reshape(task.y_test.shape) * task.scale + task.offset_test


def find_references(
    loss: Loss, *, has_classes: bool, weighted: bool, offset: bool, seed: int
) -> tuple[list[Reference], str]:
    """The methods that scikit-learn has for a loss, and a note if some are missing."""
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    if has_classes:
        if offset:
            return [], "scikit-learn's logistic regression takes no offset, so there is no lasso or ridge"
        solver = "liblinear" if isinstance(loss, Binomial) else "saga"
        return [
            Reference("lasso", "LogisticRegressionCV with an l1 penalty", _logistic(1.0, solver, folds)),
            Reference("ridge", "LogisticRegressionCV with an l2 penalty", _logistic(0.0, "lbfgs", folds)),
        ], ""
    lasso, ridge = Reference("lasso", "LassoCV", LassoCV(cv=folds)), Reference("ridge", "RidgeCV", RidgeCV(RIDGES))
    if isinstance(loss, Squared):
        return [lasso, ridge], ""
    if isinstance(loss, Huber):
        note = "lasso and ridge have squared loss, because scikit-learn has no lasso or ridge path for Huber's loss"
        return [lasso, ridge], note
    if isinstance(loss, MultiSquared):
        if weighted:
            return [ridge], "MultiTaskLassoCV takes no weights, so there is no lasso"
        return [Reference("lasso", "MultiTaskLassoCV", MultiTaskLassoCV(cv=folds)), ridge], ""
    if isinstance(loss, Poisson | NegativeBinomial | Gamma | Tweedie):
        kinds = {1.0: PoissonRegressor(max_iter=1000), 2.0: GammaRegressor(max_iter=1000)}
        power = _power(loss)
        kind = kinds.get(power, TweedieRegressor(power=power, link="log", max_iter=1000))
        scoring = make_scorer(mean_tweedie_deviance, greater_is_better=False, power=power)
        tuned = GridSearchCV(kind, {"alpha": MEAN_RIDGES}, scoring=scoring, cv=folds)
        ridge = Reference("ridge", f"{type(kind).__name__}, its alpha by five folds", tuned)
        missing = "scikit-learn has no lasso of this loss"
        if isinstance(loss, NegativeBinomial):
            missing = "the ridge has Poisson loss, because scikit-learn has no negative binomial loss, and no lasso"
        return [ridge], missing
    if isinstance(loss, Quantile | MultiQuantile):
        return [], "scikit-learn's lasso for quantiles solves a linear programme per penalty and fold, and is left out"
    return [], f"scikit-learn has no lasso or ridge of the {loss.name} loss"


def _power(loss: Loss) -> float:
    """The power of the mean to which the variance of a response with a log link is proportional."""
    if isinstance(loss, Tweedie) and loss.power is not None:
        return loss.power
    return 2.0 if isinstance(loss, Gamma) else 1.0


def _logistic(l1_ratio: float, solver: str, folds: SplitsLike) -> LogisticRegressionCV:
    """Penalised logistic regression; the name of the penalty changed in scikit-learn 1.8."""
    recent = tuple(int(number) for number in sklearn.__version__.split(".")[:2]) >= (1, 8)
    penalty: dict[str, object] = {"l1_ratios": (l1_ratio,)} if recent else {"penalty": "l1" if l1_ratio else "l2"}
    scaling = {"intercept_scaling": 10.0} if solver == "liblinear" else {}
    return LogisticRegressionCV(
        Cs=INVERSE_PENALTIES, cv=folds, solver=solver, scoring="neg_log_loss", max_iter=200, tol=1e-3, random_state=0,
        **penalty, **scaling,
    )  # fmt: skip


def class_means(fitted: BaseEstimator, X: MatrixLike, classes: Array, **offset: PerRow) -> FloatArray:
    """Probabilities of all classes, zero for classes missing from the training rows; with two, of the second class."""
    p = np.asarray(fitted.predict_proba(X, **offset))
    shares = np.zeros((len(p), len(classes)))
    shares[:, np.searchsorted(classes, fitted.classes_)] = p
    return shares[:, 1] if len(classes) == 2 else shares
