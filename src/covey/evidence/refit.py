"""One outer fold: the fit repeated without its test rows, along with a lasso and a ridge on the same columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import linear_model
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import make_scorer, mean_tweedie_deviance
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from covey.designs import Design
from covey.estimators import GroupSparseCox
from covey.evidence.folds import Rows, take_rows
from covey.evidence.nested_result import ALONE
from covey.evidence.scoring import Response, Task
from covey.losses import Loss
from covey.search.splits import SplitsLike
from covey.selection import Size
from covey.terms.unusual import NewValuesWarning
from covey.threads import fitting_threads
from covey.validation import Array, FloatArray, MatrixLike, PerRow

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
        weights = {} if isinstance(self.estimator, linear_model.MultiTaskLassoCV) else {"sample_weight": weight}
        with warnings.catch_warnings(), fitting_threads(X.shape, loops=True):
            warnings.simplefilter("ignore")  # about convergence: references are used as they are
            self.estimator.fit(scaler.transform(X), y, **weights)
            if task.classes is not None:
                return class_means(self.estimator, scaler.transform(X_test), np.arange(len(task.classes)))
            mean = np.asarray(self.estimator.predict(scaler.transform(X_test)))
        if log_link:
            return mean * np.exp(task.offset_test)
        return mean.reshape(task.y_test.shape) * task.scale + task.offset_test


def find_references(fold: _Fold) -> tuple[list[Reference], str]:
    """The methods that scikit-learn has for the loss and the columns, if wanted, and a note if some are missing.

    The folds that tune them keep rows of one label together, as the model's folds do.
    """
    study = fold.study
    if not study.references:
        return [], ""
    if isinstance(fold.columns, Design):
        return [], "scikit-learn's lasso and ridge need all columns in memory, and are left out"
    folds: SplitsLike = KFold(FOLDS, shuffle=True, random_state=study.seed)
    loss, labels = fold.fitted.loss_, fold.given(fold.train, "split_groups").get("split_groups")
    if labels is not None:
        folds = list(GroupKFold(min(FOLDS, np.unique(labels).size)).split(labels, groups=labels))
    if study.response.classes is not None:
        if "offset" in study.given:
            return [], "scikit-learn's logistic regression takes no offset, so there is no lasso or ridge"
        solver = "liblinear" if loss.name == "binomial" else "saga"
        return [
            Reference("lasso", "LogisticRegressionCV with an l1 penalty", _logistic(1.0, solver, folds)),
            Reference("ridge", "LogisticRegressionCV with an l2 penalty", _logistic(0.0, "lbfgs", folds)),
        ], ""
    lasso = Reference("lasso", "LassoCV", linear_model.LassoCV(cv=folds))
    ridge = Reference("ridge", "RidgeCV", linear_model.RidgeCV(RIDGES, cv=None if labels is None else folds))
    if loss.name == "squared":
        return [lasso, ridge], ""
    if loss.name == "huber":
        note = "lasso and ridge have squared loss, because scikit-learn has no lasso or ridge path for Huber's loss"
        return [lasso, ridge], note
    if loss.name == "multi-squared":
        if np.ptp(study.weight) > 0:
            return [ridge], "MultiTaskLassoCV takes no weights, so there is no lasso"
        return [Reference("lasso", "MultiTaskLassoCV", linear_model.MultiTaskLassoCV(cv=folds)), ridge], ""
    if loss.name in ("poisson", "negative-binomial", "gamma", "tweedie"):
        power = _power(loss)
        kinds = {1.0: linear_model.PoissonRegressor(max_iter=1000), 2.0: linear_model.GammaRegressor(max_iter=1000)}
        kind = kinds.get(power, linear_model.TweedieRegressor(power=power, link="log", max_iter=1000))
        scoring = make_scorer(mean_tweedie_deviance, greater_is_better=False, power=power)
        tuned = GridSearchCV(kind, {"alpha": MEAN_RIDGES}, scoring=scoring, cv=folds)
        ridge = Reference("ridge", f"{type(kind).__name__}, its alpha by five folds", tuned)
        missing = "scikit-learn has no lasso of this loss"
        if loss.name == "negative-binomial":
            missing = "the ridge has Poisson loss, because scikit-learn has no negative binomial loss, and no lasso"
        return [ridge], missing
    if loss.name in ("quantile", "multi-quantile"):
        return [], "scikit-learn's lasso for quantiles solves a linear programme per penalty and fold, and is left out"
    return [], f"scikit-learn has no lasso or ridge of the {loss.name} loss"


def _power(loss: Loss) -> float:
    """The power of the mean to which the variance of a response with a log link is proportional."""
    power: float | None = getattr(loss, "power", None)
    return power or (2.0 if loss.name == "gamma" else 1.0)


def _logistic(l1_ratio: float, solver: str, folds: SplitsLike) -> BaseEstimator:
    """Penalised logistic regression; the name of the penalty changed in scikit-learn 1.8."""
    recent = tuple(int(number) for number in sklearn.__version__.split(".")[:2]) >= (1, 8)
    penalty: dict[str, object] = {"l1_ratios": (l1_ratio,)} if recent else {"penalty": "l1" if l1_ratio else "l2"}
    scaling = {"intercept_scaling": 10.0} if solver == "liblinear" else {}
    return linear_model.LogisticRegressionCV(
        Cs=INVERSE_PENALTIES, cv=folds, solver=solver, scoring="neg_log_loss", max_iter=200, tol=1e-3, random_state=0,
        **penalty, **scaling,
    )  # fmt: skip


def class_means(fitted: BaseEstimator, X: MatrixLike, classes: Array, **offset: PerRow) -> FloatArray:
    """Probabilities of all classes, zero for classes missing from the training rows; with two, of the second class."""
    p = np.asarray(fitted.predict_proba(X, **offset))
    shares = np.zeros((len(p), len(classes)))
    shares[:, np.searchsorted(classes, fitted.classes_)] = p
    return shares[:, 1] if len(classes) == 2 else shares


@dataclass(frozen=True)
class Study:
    """The data and settings that all folds share.

    `given` has those of ``sample_weight``, ``offset`` and ``split_groups`` that the caller gave. Rows are scored by
    their deviance if `by_rows`, else folds by `scorer`, or by the `score` method of the model. `references` tells
    whether lasso and ridge are fitted, and `others` are further methods to compare with, fitted to X as given.
    """

    model: BaseEstimator
    X: MatrixLike
    response: Response
    weight: FloatArray
    given: Mapping[str, Any]
    references: bool
    others: Mapping[str, BaseEstimator]
    by_rows: bool
    scorer: Callable[..., float] | None
    seed: int
    keep_models: bool = False


@dataclass(frozen=True)
class FoldResult:
    """The result of one fold: for every method its score, or the deviance of each test row, by which `loss`.

    `responses` has the squared errors of each of several responses. `what` describes the references, and `note` says
    which are missing.
    """

    test: Rows
    selected: tuple[Hashable, ...]
    model: BaseEstimator
    scores: dict[str, Any]
    predictions: FloatArray | None = None
    responses: list[dict[str, Any]] = field(default_factory=list)
    what: dict[str, str] = field(default_factory=dict)
    note: str = ""
    loss: Loss | None = None


def refit(study: Study, train: Rows, test: Rows) -> FoldResult:
    """Repeat the fit without the test rows, and score it and the methods it is compared with on these."""
    with warnings.catch_warnings():
        # that the rows of a fold have levels which the others lack is no news to the user
        warnings.simplefilter("ignore", NewValuesWarning)
        fold = _Fold(study, train, test)
        return _deviances(fold) if study.by_rows else _scores(fold)


def _deviances(fold: _Fold) -> FoldResult:
    """The deviance of the test rows for every method."""
    study, test = fold.study, fold.test
    task = Task.of(fold.fitted, study.response, study.weight, study.given.get("offset"), fold.train, test)

    def means(fitted: BaseEstimator, X: MatrixLike, **offset: PerRow) -> FloatArray:
        if task.classes is not None:
            return class_means(fitted, X, task.classes, **offset)
        return np.asarray(fitted.predict(X, **offset), dtype=float).reshape(task.y_test.shape)

    predictions = means(fold.fitted, fold.X_test, **fold.given(test, "offset"))
    null = task.null_mean()
    losses = {"model": task.deviance(predictions), "null": task.deviance(null)}
    responses = []
    if task.loss.several:
        squares = {"model": (task.y_test - predictions) ** 2, "null": (task.y_test - null) ** 2}
        responses = [{name: one[:, k] for name, one in squares.items()} for k in range(null.shape[1])]
    what = {"null": task.null_in_words}
    references, note = find_references(fold)
    for one in references:
        losses[one.key], what[one.key] = task.deviance(one.means(task, fold.columns, fold.columns_test)), one.what
    for name, fitted, X_test in fold.others():
        losses[name] = task.deviance(means(fitted, X_test))
    return fold.result(losses, predictions=predictions, responses=responses, what=what, note=note, loss=task.loss)


def _scores(fold: _Fold) -> FoldResult:
    """The score of every method by a scorer, or by its own `score` method."""
    study, fitted, y = fold.study, fold.fitted, fold.y_test
    known = fold.given(fold.test, "sample_weight", "offset")
    what, note, predictions = dict[str, str](), "", None

    def score(method: BaseEstimator, X: MatrixLike) -> float:
        return float(method.score(X, y, **known) if study.scorer is None else study.scorer(method, X, y, **known))

    scores = {"model": score(fitted, fold.X_test)}
    if study.scorer is not None:
        dummy = DummyRegressor() if study.response.classes is None else DummyClassifier(strategy="prior")
        references, note = find_references(fold)
        scaler = StandardScaler(with_mean=not sp.issparse(fold.columns))
        methods = {"null": dummy, **{one.key: make_pipeline(scaler, one.estimator) for one in references}}
        scores |= {k: score(fold.fit_other(one, fold.columns), fold.columns_test) for k, one in methods.items()}
        what = {one.key: one.what for one in references}
    elif (null := getattr(fitted, "null_score", None)) is not None:
        scores["null"], what["null"] = float(null), "chance"
    if study.scorer is None and isinstance(fitted, GroupSparseCox):
        predictions = fitted.predict(fold.X_test, **fold.given(fold.test, "offset"))
        if fitted.always_groups_:
            alone = fold.fit_model(clone(fitted).set_params(selection=Size(0), rule="select", recipes=(), within=None))
            scores[ALONE], what[ALONE] = score(alone, fold.X_test), "only what is always in"
    scores |= {name: score(method, X_test) for name, method, X_test in fold.others()}
    return fold.result(scores, predictions=predictions, what=what, note=note)


class _Fold:
    """The model fitted without the test rows of a fold, and the (transformed) rows of both kinds."""

    def __init__(self, study: Study, train: Rows, test: Rows) -> None:
        self.study, self.train, self.test = study, train, test
        self.X, self.X_test = take_rows(study.X, train), take_rows(study.X, test)
        self.y, self.y_test = take_rows(study.response.given, train), take_rows(study.response.given, test)
        self.model = last = clone(study.model)
        if isinstance(self.model, Pipeline):
            last = self.model.steps[-1][1]
            if len(self.model.steps) > 1:
                before = self.model[:-1]
                self.X = before.fit_transform(self.X, self.y)
                self.X_test = before.transform(self.X_test)
                self.model = Pipeline([*before.steps, self.model.steps[-1]])  # with `memory`, fitted steps are copies
        self.fitted = self.fit_model(last)
        self.columns, self.columns_test = self.X, self.X_test  # for methods that take a matrix
        if hasattr(self.fitted, "expansion_"):
            encoding = self.fitted.expansion_.encoding
            self.columns, self.columns_test = encoding.transform(self.X), encoding.transform(self.X_test)

    def given(self, rows: Rows, *names: str) -> dict[str, Any]:
        """Those of the named data that the caller gave, for some rows."""
        return {name: take_rows(values, rows) for name, values in self.study.given.items() if name in names}

    def fit_model(self, estimator: BaseEstimator) -> BaseEstimator:
        """Fit one of covey's estimators to the training rows."""
        given = self.given(self.train, *self.study.given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings
            return estimator.fit(self.X, self.y, **given)

    def fit_other(self, method: BaseEstimator, X: MatrixLike) -> BaseEstimator:
        """Fit a scikit-learn estimator to training rows; in a pipeline, weights are passed to the last step."""
        last, prefix = method, ""
        while isinstance(last, Pipeline):
            name, last = last.steps[-1]
            prefix += f"{name}__"
        given, weight = {}, self.study.given.get("sample_weight")
        if weight is not None and has_fit_parameter(last, "sample_weight"):
            given["sample_weight"] = weight[self.train] / weight.mean()  # a penalty is relative to them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about convergence: references are used as they are
            return clone(method).fit(X, self.y, **{prefix + name: value for name, value in given.items()})

    def others(self) -> Iterator[tuple[str, BaseEstimator, MatrixLike]]:
        """The caller's methods, fitted to X as given, with the test rows of X."""
        X, X_test = (take_rows(self.study.X, rows) for rows in (self.train, self.test))
        for name, method in self.study.others.items():
            yield name, self.fit_other(method, X), X_test

    def result(self, scores: dict[str, Any], **details: Any) -> FoldResult:
        """The scores with the selected groups, and with the model if it is kept."""
        always = set(getattr(self.fitted, "always_groups_", ()))
        selected = tuple(name for name in getattr(self.fitted, "selected_groups_", ()) if name not in always)
        return FoldResult(self.test, selected, self.model if self.study.keep_models else None, scores, **details)
