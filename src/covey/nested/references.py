"""Methods to compare a grouped model with: scikit-learn's lasso and ridge on the same columns, without groups."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import (
    GammaRegressor,
    LassoCV,
    LogisticRegressionCV,
    MultiTaskLassoCV,
    PoissonRegressor,
    RidgeCV,
)
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from covey.losses import Loss
from covey.nested.judging import Task
from covey.threads import fitting_threads
from covey.validation import FloatArray

__all__ = ["Reference", "class_means", "find_references"]

FOLDS = 5

# Penalties on columns of unit variance, for a loss summed over rows: from hardly any to one that leaves nothing.
RIDGES = np.logspace(-2, 6, 33)
# The same for a loss averaged over rows.
MEAN_RIDGES = np.logspace(-4, 2, 13)
# Inverse penalties for a loss summed over rows; larger ones only take longer if classes are separable.
INVERSE_PENALTIES = np.logspace(-4, 2, 13)

# scikit-learn's ridge regressions with a log link, by the name of the loss.
LOG_LINKS = {"poisson": PoissonRegressor, "gamma": GammaRegressor}


@dataclass(frozen=True)
class Reference:
    """A method to compare with, on columns of unit variance.

    Attributes
    ----------
    key : str
        Its name in tables.
    what : str
        A description of the estimator.
    estimator : scikit-learn estimator
    """

    key: str
    what: str
    estimator: Any

    def means(self, task: Task, X: Any, X_test: Any) -> FloatArray:
        """Fit the training rows and predict the test rows."""
        sparse = sp.issparse(X)
        scaler = StandardScaler(with_mean=not sparse).fit(X, sample_weight=task.weight)
        y, weight, scale = task.y, task.weight, task.scale
        exposure = np.ones_like(y)
        if task.loss.log_link:
            # with a log link, an offset means rates; for Poisson they are weighted by exposure
            exposure = np.exp(task.offset)
            y, weight = y / exposure, weight * exposure if task.loss.name == "poisson" else weight
        elif task.classes is None:
            y = (y - task.offset) / scale
        else:
            y = y.astype(int) if y.ndim == 1 else y.argmax(axis=1)
        known = {} if isinstance(self.estimator, MultiTaskLassoCV) else {"sample_weight": weight}
        with warnings.catch_warnings(), fitting_threads(X.shape):
            warnings.simplefilter("ignore")  # about convergence: references are used as they are
            self.estimator.fit(scaler.transform(X), y, **known)
            rows = scaler.transform(X_test)
            if task.classes is not None:
                return class_means(self.estimator, rows, np.arange(len(task.classes)))
            mean = np.asarray(self.estimator.predict(rows))
        if task.loss.log_link:
            return mean * np.exp(task.offset_test)
        return mean.reshape(task.y_test.shape) * scale + task.offset_test


def find_references(
    loss: Loss, *, has_classes: bool, weighted: bool, offset: bool, seed: int
) -> tuple[list[Reference], str]:
    """The methods that scikit-learn has for a loss, and a note if some are missing."""
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    if has_classes:
        if offset:
            return [], "scikit-learn's logistic regression takes no offset, so there is no lasso or ridge"
        solver = "saga" if loss.vector else "liblinear"
        return [
            Reference("lasso", "LogisticRegressionCV with an l1 penalty", _logistic(1.0, solver, folds)),
            Reference("ridge", "LogisticRegressionCV with an l2 penalty", _logistic(0.0, "lbfgs", folds)),
        ], ""
    ridge = Reference("ridge", "RidgeCV", RidgeCV(RIDGES))
    if loss.quadratic and not loss.several:
        return [Reference("lasso", "LassoCV", LassoCV(cv=folds)), ridge], ""
    if loss.name == "huber":
        said = "lasso and ridge have squared loss, because scikit-learn has no lasso or ridge path for Huber's loss"
        return [Reference("lasso", "LassoCV", LassoCV(cv=folds)), ridge], said
    if loss.several:
        if weighted:
            return [ridge], "MultiTaskLassoCV takes no weights, so there is no lasso"
        return [Reference("lasso", "MultiTaskLassoCV", MultiTaskLassoCV(cv=folds)), ridge], ""
    if loss.name in LOG_LINKS:
        kind = LOG_LINKS[loss.name]
        scoring = f"neg_mean_{loss.name}_deviance"
        tuned = GridSearchCV(kind(max_iter=1000), {"alpha": MEAN_RIDGES}, scoring=scoring, cv=folds)
        return [Reference("ridge", f"{kind.__name__}, its alpha by five folds", tuned)], (
            "scikit-learn has no lasso of this loss"
        )
    return [], f"scikit-learn has no lasso or ridge of the {loss.name} loss"


def _logistic(l1_ratio: float, solver: str, folds: Any) -> LogisticRegressionCV:
    """Penalised logistic regression; the name of the penalty changed in scikit-learn 1.8."""
    recent = tuple(int(number) for number in sklearn.__version__.split(".")[:2]) >= (1, 8)
    penalty: dict[str, Any] = {"l1_ratios": (l1_ratio,)} if recent else {"penalty": "l1" if l1_ratio else "l2"}
    own = {"intercept_scaling": 10.0, "random_state": 0} if solver == "liblinear" else {"random_state": 0}
    return LogisticRegressionCV(
        Cs=INVERSE_PENALTIES, cv=folds, solver=solver, scoring="neg_log_loss", max_iter=200, tol=1e-3, **penalty, **own
    )


def class_means(fitted: Any, X: Any, classes: Any, **offset: Any) -> FloatArray:
    """Probabilities of all classes, zero for classes missing from the training rows; with two, of the second class."""
    p = np.asarray(fitted.predict_proba(X, **offset))
    whole = np.zeros((len(p), len(classes)))
    whole[:, np.searchsorted(classes, fitted.classes_)] = p
    return whole[:, 1] if len(classes) == 2 else whole
