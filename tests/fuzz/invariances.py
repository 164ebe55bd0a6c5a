"""Small fits of every loss, made twice: saved and loaded, in another order, with weights instead of repeated rows."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import covey
from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.search.splits import REPEATED
from covey.selection import Folds, Size

Rng = np.random.Generator

# Linear predictors this close, relative to their largest, are the same model. The minimum of the pinball loss is flat.
CLOSE, CLOSE_QUANTILES = 1e-4, 2e-3

LOSSES = (
    "squared", "two", "huber", "quantile", "poisson", "negative-binomial", "gamma", "tweedie", "logistic",
    "multinomial", "ordinal", "cox",
)  # fmt: skip

DESIGNS: dict[str, Callable[[Rng, int, int], Any]] = {
    "gaussian": lambda rng, n, p: rng.standard_normal((n, p)),
    "binary": lambda rng, n, p: (rng.random((n, p)) < 0.3).astype(float),
    "one-hot": lambda rng, n, p: np.concatenate([np.eye(3)[rng.integers(3, size=n)] for _ in range(p // 3)], axis=1),
    "integers": lambda rng, n, p: rng.integers(-1, 2, (n, p)).astype(float),
    "duplicated rows": lambda rng, n, p: rng.integers(0, 2, (n // 2, p)).astype(float)[np.arange(n) % (n // 2)],
}

SELECTIONS: dict[str, Callable[[], Any]] = {
    "folds": lambda: Folds(3, deals=1), "deals": lambda: 3, "ebic": lambda: "ebic", "size": lambda: Size(2),
}  # fmt: skip


def response(loss: str, X: Any, rng: Rng) -> Any:
    """Responses of the loss's kind that depend on the first three columns; tied where they can be."""
    eta = X[:, :3] @ np.array([1.0, -1.0, 0.7]) + 0.5 * rng.standard_normal(len(X))
    if loss in ("squared", "huber", "quantile"):
        return np.round(eta, 1)
    if loss == "two":
        return np.round(np.stack([eta, eta[::-1]], axis=1), 1)
    if loss in ("poisson", "negative-binomial", "tweedie"):
        return rng.poisson(np.exp(np.clip(eta, -3, 2))).astype(float)
    if loss == "gamma":
        return np.round(np.exp(eta), 1) + 0.1
    if loss == "logistic":
        return (eta > np.median(eta)).astype(int)
    if loss in ("multinomial", "ordinal"):
        return np.digitize(eta, np.quantile(eta, [1 / 3, 2 / 3]))
    return np.column_stack([np.ceil(4 * rng.exponential(np.exp(-eta))), rng.random(len(X)) < 0.8])


def estimator(loss: str, groups: Groups, **options: Any) -> Any:
    """Of the loss; events are tied as Breslow does, for which weights are repetitions."""
    if loss == "cox":
        return GroupSparseCox(groups, ties="breslow", **options)
    if loss in ("logistic", "multinomial"):
        return GroupSparseClassifier(groups, **options)
    if loss == "ordinal":
        return GroupSparseClassifier(groups, loss=loss, **options)
    return GroupSparseRegressor(groups, loss="squared" if loss == "two" else loss, **options)


def predictor(model: Any, X: Any) -> Any:
    """The linear predictor of rows."""
    return X @ np.atleast_2d(model.coef_).T + np.ravel(model.intercept_)[: np.atleast_2d(model.coef_).shape[0]]


def difference(one: Any, other: Any) -> float:
    """How far two predictors are apart, relative to the largest."""
    return float(np.abs(one - other).max()) / max(1.0, float(np.abs(one).max()))


def case(seed: int) -> tuple[str, dict[str, str], Any, Any, Groups]:
    """What is fitted for a seed: a loss, words, X, y and groups."""
    rng = np.random.default_rng(seed)
    loss, n, p = str(rng.choice(LOSSES)), int(rng.choice([24, 40])), int(rng.choice([6, 12, 24]))
    words = {"design": str(rng.choice(list(DESIGNS))), "selection": str(rng.choice(list(SELECTIONS)))}
    words["way"] = str(rng.choice(list(WAYS)))
    X = DESIGNS[words["design"]](rng, n, p)
    return loss, words, X, response(loss, X, rng), Groups.from_size(int(rng.choice([1, 3])), p)


def saved(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """The model after saving and loading; what it shows is the same to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        covey.save(model, Path(folder) / "model.skops")
        again = covey.load(Path(folder) / "model.skops")
    assert np.array_equal(again.predict(X), model.predict(X)), "other predictions"
    assert str(again.summary()) == str(model.summary()), "another summary"
    return again


def rows(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """A fit of the rows in another order."""
    order = rng.permutation(len(X))
    return estimator(loss, groups, **options).fit(X[order], y[order])


def columns(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """A fit of the columns in another order, with coefficients in the first one."""
    order = rng.permutation(X.shape[1])
    labels = groups.labels[order]
    again = Groups.from_lists([np.flatnonzero(labels == l).tolist() for l in range(groups.n_groups)])
    found = estimator(loss, again, **options).fit(X[:, order], y)
    found.coef_ = found.coef_[..., np.argsort(order)]
    return found


def storage(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """A fit of sparse columns."""
    kind = sp.csr_array if rng.random() < 0.5 else sp.csc_array
    return estimator(loss, groups, **options).fit(kind(X), y)


def weights(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """A fit of repeated rows, after the model itself is fitted again with weights."""
    times = rng.choice([0, 1, 2], len(X), p=[0.1, 0.6, 0.3])
    distinct = np.unique(np.column_stack([X, y])[times > 0], axis=0)
    if times.sum() > REPEATED * len(distinct):
        return model  # a table of a few categories: equal rows are in several folds, a weighted row is in one
    model.fit(X, y, sample_weight=times.astype(float))
    return estimator(loss, groups, **options).fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))


def units(model: Any, loss: str, X: Any, y: Any, groups: Groups, rng: Rng, options: dict[str, Any]) -> Any:
    """A fit of columns in other units, with coefficients in the first ones."""
    unit = 2.0 ** rng.integers(-30, 31, X.shape[1])
    found = estimator(loss, groups, **options).fit(X * unit, y)
    found.coef_ = found.coef_ * unit
    return found


WAYS = {way.__name__: way for way in (saved, rows, columns, storage, weights, units)}


def verdict(seed: int) -> str:
    """Empty when both fits are one model, or refused by name; otherwise what is wrong."""
    loss, words, X, y, groups = case(seed)
    # the number of factors is read from some columns, so it may change with their order
    options = {"selection": SELECTIONS[words["selection"]](), "factors": 0}
    told = f"{loss}, {', '.join(words.values())}, {X.shape}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = estimator(loss, groups, **options).fit(X, y)
        except ValueError as refused:
            return "" if str(refused) else f"{told}: refused without a word"
        try:
            other = WAYS[words["way"]](model, loss, X, y, groups, np.random.default_rng([seed, 1]), options)
        except ValueError as refused:
            # other rows may lack a class
            return "" if words["way"] == "weights" and "class" in str(refused) else f"{told}: {refused}"
        except AssertionError as wrong:
            return f"{told}: {wrong}"
    apart = difference(predictor(model, X), predictor(other, X))
    close = CLOSE_QUANTILES if loss == "quantile" else CLOSE
    return f"{told}: apart by {apart:.2g}" if not apart <= close else ""
