"""One outer fold: the whole fit repeated without its test rows, along with the methods it is compared with."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from covey.estimators import GroupSparseCox
from covey.losses import Loss
from covey.nested.folds import Rows, part
from covey.nested.judging import Response, Task
from covey.nested.references import class_means, find_references
from covey.nested.result import ALONE
from covey.selection import Size
from covey.validation import FloatArray

__all__ = ["FoldResult", "Given", "refit", "rescore"]

Scorer = Callable[..., float]


@dataclass(frozen=True)
class Given:
    """The data and settings that all folds share.

    Attributes
    ----------
    model : estimator or Pipeline
    take : callable
        Takes rows of X.
    response : Response
    weight : ndarray, shape (n_rows,)
    weighted : bool
        Whether weights were given.
    offset, split_groups : array-like or None
    references : bool
        Whether lasso and ridge are fitted.
    others : mapping of str to estimator
        Further methods to compare with, fitted to X as given.
    seed : int
    keep : bool
        Whether the fitted models are kept.
    """

    model: Any
    take: Callable[[Rows], Any]
    response: Response
    weight: FloatArray
    weighted: bool
    offset: Any
    split_groups: Any
    references: bool
    others: Mapping[str, Any]
    seed: int
    keep: bool = False


@dataclass(frozen=True)
class FoldResult:
    """The result of one fold.

    Attributes
    ----------
    test : ndarray of int
    means : ndarray or None
        The model's predictions of the test rows.
    losses : dict
        For every method, the deviance of each test row; empty if only scores are known.
    scores : dict
        The score of every method; empty if losses are known.
    selected : tuple
        Names of the selected groups.
    what : dict
        A description of each reference.
    note : str
        Why references are missing, if any are.
    loss : Loss or None
        The loss that was used for `losses`.
    fitted : estimator or Pipeline, or None
        The model fitted without the test rows, if it is kept.
    """

    test: Rows
    means: FloatArray | None
    losses: dict[str, FloatArray]
    scores: dict[str, float]
    selected: tuple[Any, ...]
    what: dict[str, str] = field(default_factory=dict)
    note: str = ""
    loss: Loss | None = None
    fitted: Any = None


def refit(given: Given, train: Rows, test: Rows) -> FoldResult:
    """Repeat the fit without the test rows, and score every method by their deviance."""
    fitted, X, X_test, whole = _fit(given, train, test)
    response = given.response
    task = Task.of(fitted.loss_, response, given.weight, given.offset, train, test)
    shift = {} if given.offset is None else {"offset": part(given.offset, test)}
    means = (
        np.asarray(fitted.predict(X_test, **shift), dtype=float).reshape(task.y_test.shape)
        if response.classes is None
        else class_means(fitted, X_test, response.classes, **shift)
    )
    losses = {"model": task.deviance(means), "null": task.deviance(task.null_mean())}
    what = {"null": "the mean of the training rows" if response.classes is None else "the shares of the classes"}
    note = ""
    if given.references:
        found, note = find_references(
            task.loss, has_classes=response.classes is not None, weighted=given.weighted,
            offset=given.offset is not None, seed=given.seed,
        )  # fmt: skip
        for reference in found:
            losses[reference.key] = task.deviance(reference.means(task, X, X_test))
            what[reference.key] = reference.what
    for name, other in given.others.items():
        made, rows = _fit_plain(other, given, given.take(train), train), given.take(test)
        mean = made.predict(rows) if response.classes is None else class_means(made, rows, response.classes)
        losses[name], what[name] = task.deviance(mean), ""
    return FoldResult(test, means, losses, {}, _selected(fitted), what, note, task.loss, whole)


def rescore(given: Given, scorer: Scorer | None, train: Rows, test: Rows) -> FoldResult:
    """Repeat the fit without the test rows; score all methods with a scorer, or the model with its own `score`."""
    fitted, X, X_test, whole = _fit(given, train, test)
    y = part(given.response.given, test)
    counted = {"sample_weight": given.weight[test]} if given.weighted else {}
    if scorer is None:
        if given.offset is not None:
            counted["offset"] = part(given.offset, test)
        scores, what = {"model": float(fitted.score(X_test, y, **counted))}, {}
        null = getattr(fitted, "null_score", None)
        if null is not None:
            scores["null"], what["null"] = float(null), "chance"
        if not isinstance(fitted, GroupSparseCox):
            return FoldResult(test, None, {}, scores, _selected(fitted), what, fitted=whole)
        if fitted.always_groups_:
            alone = _fit_last(clone(fitted).set_params(selection=Size(0), rule="min", average=False), given, X, train)
            scores[ALONE] = float(alone.score(X_test, y, **counted))
            what[ALONE] = "only the groups that are always in"
        shift = {name: value for name, value in counted.items() if name == "offset"}
        means = fitted.predict(X_test, **shift)
        return FoldResult(test, means, {}, scores, _selected(fitted), what, fitted=whole)
    scores = {"model": float(scorer(fitted, X_test, y, **counted))}
    has_classes, what, note = given.response.classes is not None, {"null": ""}, ""
    methods: dict[str, Any] = {"null": DummyClassifier(strategy="prior") if has_classes else DummyRegressor()}
    if given.references:
        found, note = find_references(
            fitted.loss_, has_classes=has_classes, weighted=given.weighted, offset=False, seed=given.seed
        )
        scaler = StandardScaler(with_mean=not sp.issparse(X))
        methods |= {one.key: make_pipeline(scaler, one.estimator) for one in found}
        what |= {one.key: one.what for one in found}
    for name, method in methods.items():
        made = _fit_plain(method, given, X, train)
        scores[name] = float(scorer(made, X_test, y, **counted))
    for name, method in given.others.items():
        made = _fit_plain(method, given, given.take(train), train)
        scores[name], what[name] = float(scorer(made, given.take(test), y, **counted)), ""
    return FoldResult(test, None, {}, scores, _selected(fitted), what, note, fitted=whole)


def _fit(given: Given, train: Rows, test: Rows) -> tuple[Any, Any, Any, Any]:
    """The fitted estimator, its (transformed) training and test rows, and the whole model if it is kept."""
    model = clone(given.model)
    X, X_test = given.take(train), given.take(test)
    last = whole = model
    if isinstance(model, Pipeline):
        last = model.steps[-1][1]
        if len(model.steps) > 1:
            before = model[:-1]
            X = before.fit_transform(X, part(given.response.given, train))
            X_test = before.transform(X_test)
            whole = Pipeline([*before.steps, model.steps[-1]])  # with `memory`, the fitted steps are copies
    return _fit_last(last, given, X, train), X, X_test, whole if given.keep else None


def _fit_last(last: Any, given: Given, X: Any, train: Rows) -> Any:
    """Fit one of covey's estimators to (transformed) training rows."""
    extra = {
        "sample_weight": part(given.weight, train) if given.weighted else None,
        "offset": part(given.offset, train),
        "split_groups": part(given.split_groups, train),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings
        last.fit(
            X,
            part(given.response.given, train),
            **{name: value for name, value in extra.items() if value is not None},
        )
    return last


def _fit_plain(method: Any, given: Given, X: Any, train: Rows) -> Any:
    """Fit a scikit-learn estimator; in a pipeline, weights are passed to the last step."""
    made, last, prefix = clone(method), method, ""
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    weighted = given.weighted and has_fit_parameter(last, "sample_weight")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence: references are used as they are
        return made.fit(
            X,
            part(given.response.given, train),
            **({f"{prefix}sample_weight": given.weight[train]} if weighted else {}),
        )


def _selected(fitted: Any) -> tuple[Any, ...]:
    always = set(getattr(fitted, "always_groups_", ()))
    return tuple(name for name in getattr(fitted, "selected_groups_", ()) if name not in always)
