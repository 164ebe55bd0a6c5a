"""Small fits of every loss, made twice: saved and loaded, in another order, with weights instead of repeated rows.

None of this depends on the size of the data, so they are as small as a fit allows; what is hard about them is their
structure: ties, copies, fewer dimensions than columns, weights of any ratio.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import covey
from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.designs.rows import REPEATED
from covey.selection import Folds, HoldOut, Size
from storage_kinds import KINDS

Rng = np.random.Generator

# Linear predictors this close, relative to their largest, are the same model. The minimum of the pinball loss is flat.
CLOSE, CLOSE_QUANTILES = 1e-4, 2e-3

# Huber's loss has no scale if a model leaves less than this share of the response's range, as where few rows have all
# of the weight.
NOISELESS = 1e-5

# Fits that were made, in this process and its children.
FITS = multiprocessing.Value("q")

LOSSES = (
    "squared", "two", "huber", "quantile", "poisson", "negative-binomial", "gamma", "tweedie", "logistic",
    "multinomial", "ordinal", "cox",
)  # fmt: skip


def _whole(rng: Rng, *shape: int) -> Any:
    return rng.integers(-1, 2, shape).astype(float)


DESIGNS: dict[str, Callable[[Rng, int, int], Any]] = {
    "gaussian": lambda rng, n, p: rng.standard_normal((n, p)),
    "binary": lambda rng, n, p: (rng.random((n, p)) < 0.3).astype(float),
    "one-hot": lambda rng, n, p: np.concatenate([np.eye(3)[rng.integers(3, size=n)] for _ in range(p // 3)], axis=1),
    "integers": lambda rng, n, p: _whole(rng, n, p),
    "duplicated rows": lambda rng, n, p: rng.integers(0, 2, (n // 2, p)).astype(float)[np.arange(n) % (n // 2)],
    "copies": lambda rng, n, p: np.tile(_whole(rng, n, p // 2), 2),
    "low rank": lambda rng, n, p: _whole(rng, n, p // 2) @ _whole(rng, p // 2, p),
}

SELECTIONS: dict[str, Callable[[], Any]] = {
    "folds": lambda: Folds(3, deals=1), "deals": lambda: Folds(3, deals=3), "held out": lambda: HoldOut(0.3),
    "ebic": lambda: "ebic", "size": lambda: Size(2),
}  # fmt: skip

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "predict": {"rule": "predict"}, "within": {"within": "columns"}, "always": {"always": [1]},
    "by column": {"standardize": "column"}, "uneven": {},
}  # fmt: skip

# Ways to store X that take no longer than an array.
STORED = ("Fortran", "CSR matrix", "CSC array", "memmap", "backed", "without columns", "torch")


def estimator(loss: str, *groups: Groups, **options: Any) -> Any:
    """An estimator of the loss; events are tied as Breslow does, for which weights are repetitions."""
    if loss == "cox":
        return GroupSparseCox(*groups, **{"ties": "breslow", **options})
    if loss in ("logistic", "multinomial", "ordinal"):
        return GroupSparseClassifier(*groups, **({"loss": "ordinal"} if loss == "ordinal" else {}), **options)
    return GroupSparseRegressor(*groups, loss="squared" if loss == "two" else loss, **options)


def respond(loss: str, eta: Any, rng: Rng, digits: int = 1) -> Any:
    """Responses of the loss's kind to linear predictors; tied where they can be."""
    kinds: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("squared", "huber", "quantile"), lambda: np.round(eta, digits)),
        "two": lambda: np.round(np.stack([eta, eta[::-1]], axis=1), digits),
        "gamma": lambda: np.round(np.exp(eta), digits) + 0.1,
        "logistic": lambda: (eta > np.median(eta)).astype(int),
        **dict.fromkeys(("multinomial", "ordinal"), lambda: np.digitize(eta, np.quantile(eta, [1 / 3, 2 / 3]))),
        "cox": lambda: np.column_stack([np.ceil(4 * rng.exponential(np.exp(-eta))), rng.random(len(eta)) < 0.8]),
    }
    return kinds.get(loss, lambda: rng.poisson(np.exp(np.clip(eta, -3, 2))).astype(float))()


def response(loss: str, X: Any, rng: Rng) -> Any:
    """Responses that depend on the first three columns."""
    return respond(loss, X[:, :3] @ np.array([1.0, -1.0, 0.7]) + 0.5 * rng.standard_normal(len(X)), rng)


def counted(model: Any) -> Any:
    """The model, which is counted as a fit that was made."""
    with FITS.get_lock():
        FITS.value += 1
    return model


@dataclass(frozen=True)
class Case:
    """What is fitted, and the way in which it is fitted again."""

    seed: int
    loss: str
    design: str
    selection: str
    options: str
    way: str
    X: Any
    y: Any
    groups: Groups
    weight: Any = None

    def __str__(self) -> str:
        return f"{self.loss}, {self.design}, {self.selection}, {self.options}, {self.way}, {self.X.shape}"

    def fit(self) -> Any:
        # the number of factors is read from some columns, so it may change with their order
        options = {"selection": SELECTIONS[self.selection](), "factors": 0, **OPTIONS[self.options]}
        model = estimator(self.loss, self.groups, **options)
        return counted(model.fit(self.X, self.y, sample_weight=self.weight))


def case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    loss, design, selection, options, way = (
        str(rng.choice(list(kinds))) for kinds in (LOSSES, DESIGNS, SELECTIONS, OPTIONS, WAYS)
    )
    if selection == "held out" and way == "rows":
        selection = "folds"  # held-out rows are chosen by their positions
    n, p = [(16, 6), (16, 18), (24, 12), (30, 6)][rng.integers(4)]
    X = DESIGNS[design](rng, n, p)
    y = response(loss, X, rng)
    groups = Groups.from_size(int(rng.choice([1, 3])), p)
    weight = 10 ** rng.uniform(0, rng.choice([1, 6, 12]), n) if options == "uneven" else None
    return Case(seed, loss, design, selection, options, way, X, y, groups, weight)


def kept(line: str) -> Case:
    """A case that failed once, from a line of `invariances.jsonl`."""
    read = json.loads(line)
    X, y = (np.array(read.pop(name), dtype=float) for name in ("X", "y"))
    weight = read.pop("weight", None)
    groups = Groups.from_size(read.pop("size"), X.shape[1])
    return Case(**read, X=X, y=y, groups=groups, weight=None if weight is None else np.array(weight))


def predictor(model: Any, X: Any) -> Any:
    """The linear predictor of rows."""
    return X @ np.atleast_2d(model.coef_).T + np.ravel(model.intercept_)[: np.atleast_2d(model.coef_).shape[0]]


def difference(one: Any, other: Any) -> float:
    """How far two predictors are apart, relative to the largest."""
    return float(np.abs(one - other).max()) / max(1.0, float(np.abs(one).max()))


def compared(case: Any, model: Any, one: Any, other: Any) -> str:
    """Empty when two models say the same of rows; otherwise how far they are apart."""
    if case.loss == "huber" and model.loss_.threshold < NOISELESS * np.ptp(case.y):
        return ""  # round-off error is the scale of the loss, and decides
    apart = difference(one, other)
    close = CLOSE_QUANTILES if case.loss == "quantile" else CLOSE
    return f"{case}: apart by {apart:.2g}" if not apart <= close else ""


def saved(case: Case, model: Any, rng: Rng) -> Any:
    """The model after saving and loading; what it shows is the same to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        covey.save(model, Path(folder) / "model.skops")
        again = covey.load(Path(folder) / "model.skops")
    assert np.array_equal(again.predict(case.X), model.predict(case.X)), "other predictions"
    assert str(again.summary()) == str(model.summary()), "another summary"
    return again


def rows(case: Case, model: Any, rng: Rng) -> Any:
    """A fit of the rows in another order."""
    order = rng.permutation(len(case.X))
    weight = None if case.weight is None else case.weight[order]
    return replace(case, X=case.X[order], y=case.y[order], weight=weight).fit()


def columns(case: Case, model: Any, rng: Rng) -> Any:
    """A fit of the columns in another order, with coefficients in the first one."""
    order = rng.permutation(case.X.shape[1])
    labels = case.groups.labels[order]
    again = Groups.from_lists([np.flatnonzero(labels == l).tolist() for l in range(case.groups.n_groups)])
    found = replace(case, X=case.X[:, order], groups=again).fit()
    found.coef_ = found.coef_[..., np.argsort(order)]
    return found


def storage(case: Case, model: Any, rng: Rng) -> Any:
    """A fit of X in other storage."""
    with tempfile.TemporaryDirectory() as folder:
        return replace(case, X=KINDS[str(rng.choice(STORED))](case.X, Path(folder))).fit()


def weights(case: Case, model: Any, rng: Rng) -> Any:
    """A fit of repeated rows, after the model itself is fitted again with weights."""
    times = rng.choice([0, 1, 2], len(case.X), p=[0.1, 0.6, 0.3])
    distinct = np.unique(np.column_stack([case.X, case.y])[times > 0], axis=0)
    if times.sum() > REPEATED * len(distinct):
        return model  # a table of a few categories: equal rows are in several folds, a weighted row is in one
    weighted = replace(case, weight=times.astype(float)).fit()
    model.coef_, model.intercept_ = weighted.coef_, weighted.intercept_
    return replace(case, X=np.repeat(case.X, times, axis=0), y=np.repeat(case.y, times, axis=0), weight=None).fit()


def units(case: Case, model: Any, rng: Rng) -> Any:
    """A fit of columns in other units, with coefficients in the first ones."""
    unit = 2.0 ** rng.integers(-30, 31, case.X.shape[1])
    found = replace(case, X=case.X * unit).fit()
    found.coef_ = found.coef_ * unit
    return found


WAYS = {way.__name__: way for way in (saved, rows, columns, storage, weights, units)}


def verdict(case: Case) -> str:
    """Empty when both fits are one model, or refused by name; otherwise what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = case.fit()
        except ValueError as refused:
            return "" if str(refused) else f"{case}: refused without a word"
        try:
            other = WAYS[case.way](case, model, np.random.default_rng([case.seed, 1]))
        except ValueError as refused:
            # other rows may lack a class
            return "" if case.way == "weights" and "class" in str(refused) else f"{case}: {refused}"
        except AssertionError as wrong:
            return f"{case}: {wrong}"
    return compared(case, model, predictor(model, case.X), predictor(other, case.X))
