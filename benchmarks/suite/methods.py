"""The methods of the suite: name -> function from a `Problem` to a `Fit`.

A method sees the training rows (`X`, `y`, `labels`, or the raw `table`), tunes by `fold_of`, and predicts the test
rows. It raises `CannotRunError` with the reason where it does not apply. To join, write such a function and add it to
`METHODS`, here or in a file of your own (`--join FILE`); docs/suite.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from . import paths
from .paths import by, unit_columns
from .problem import CannotRunError, Fit, Method, Problem
from .r_methods import glinternet, grpreg, mgcv
from .tables import without_dates


def covey(problem: Problem, **settings: Any) -> Fit:
    """The estimator of the family, judged by the same folds or validation rows as everyone; tables as they are."""
    from sklearn.model_selection import PredefinedSplit

    import covey as library
    from covey.selection import HoldOut

    rows = problem.validation
    settings = {"selection": PredefinedSplit(problem.fold_of) if rows is None else HoldOut(validation=rows)} | settings
    if problem.table is not None:
        (X, X_test), settings = problem.table, {"terms": "auto"} | settings
    else:
        X, X_test = problem.X, problem.X_test
        labels = problem.labels if problem.names is None else np.array(problem.names)[problem.labels]
        groups = library.Groups.from_labels(labels)
        settings = {"groups": groups} | settings
    if problem.family.classes:
        model = library.GroupSparseClassifier(**settings).fit(X, problem.y.astype(int))
        mean = model.predict_proba(X_test)[:, 1 if problem.outputs == 1 else 0 :]
    elif problem.family.name == "cox":
        model = library.GroupSparseCox(always=list(problem.always), **settings).fit(X, problem.y)
        mean = model.predict(X_test)[:, None]
    else:
        loss = {"loss": "poisson"} if problem.family.name == "poisson" else {}
        model = library.GroupSparseRegressor(**settings, **loss).fit(X, problem.y)
        mean = model.predict(X_test).reshape(len(X_test), -1)
    if problem.table is not None:
        selected = [list(X).index(name) for name in model.variables_["variable"]]
    else:
        selected = [groups.position(name) for name in model.selected_groups_]
    return Fit(mean, np.array(selected, dtype=int), {"terms": len(model.selected_groups_)})


# ---------------------------------------------------------------------- references


def null(problem: Problem) -> Fit:
    """The mean response, or the shares of classes."""
    level = problem.family.outputs(problem.y, problem.outputs).mean(axis=0)
    return Fit(np.tile(level, (len(problem.X_test), 1)), np.zeros(0, dtype=int))


def oracle(problem: Problem) -> Fit:
    """Maximum likelihood on the true groups, which says how predictable the response is."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

    if problem.active is None or problem.family.name == "cox":
        raise CannotRunError("the true groups are not known" if problem.active is None else "not for survival times")
    on = np.isin(problem.labels, problem.active)
    if not on.any():
        return null(problem)
    if problem.table is not None or on.sum() >= len(problem.y) / 2:
        raise CannotRunError("the true groups have pairs, or too many columns for the rows")
    X, X_test = problem.X[:, on], problem.X_test[:, on]
    if problem.family.classes:
        probabilities = LogisticRegression(C=1e10, tol=1e-6, max_iter=10_000).fit(X, problem.y).predict_proba(X_test)
        return Fit(probabilities if problem.outputs > 1 else probabilities[:, 1:], problem.active)
    counts = problem.family.name == "poisson"
    model = PoissonRegressor(alpha=0, solver="newton-cholesky") if counts else LinearRegression()
    return Fit(model.fit(X, problem.y).predict(X_test).reshape(len(X_test), -1), problem.active)


def skglm(problem: Problem) -> Fit:
    """The solutions of adelie, more slowly: the end of the path is only computed where folds choose it."""
    if problem.table is not None:
        raise CannotRunError("takes minutes on splines and levels, for the models that adelie finds")
    return by(paths.on_unit_columns(paths.skglm), ratio=1e-2, least=1e-4)(problem)


# ---------------------------------------------------------------------- without groups, on columns of unit variance


def scikit_classifier(problem: Problem, l1: bool) -> Fit:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import PredefinedSplit

    mean, scale = unit_columns(problem.X)
    penalties = np.geomspace(1, 1e-4, 15) if l1 else np.geomspace(1e2, 1e-5, 30)
    model = LogisticRegressionCV(
        Cs=1 / (len(problem.X) * penalties), l1_ratios=(float(l1),), cv=PredefinedSplit(problem.fold_of),
        solver="saga" if l1 else "lbfgs", scoring="neg_log_loss", max_iter=200 if l1 else 2000,
        random_state=0, use_legacy_attributes=False,
    )  # fmt: skip
    model.fit((problem.X - mean) / scale, problem.y)
    probabilities = model.predict_proba((problem.X_test - mean) / scale)
    groups = None if l1 else np.unique(problem.labels)
    return Fit(probabilities if problem.outputs > 1 else probabilities[:, 1:], groups)


def poisson_ridge(problem: Problem) -> Fit:
    from sklearn.linear_model import PoissonRegressor
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    mean, scale = unit_columns(problem.X)
    search = GridSearchCV(
        PoissonRegressor(solver="newton-cholesky", max_iter=1000), {"alpha": np.geomspace(1e2, 1e-6, 30)},
        cv=PredefinedSplit(problem.fold_of), scoring="neg_mean_poisson_deviance",
    )  # fmt: skip
    model = search.fit((problem.X - mean) / scale, problem.y)
    return Fit(model.predict((problem.X_test - mean) / scale)[:, None], np.unique(problem.labels))


def lasso(problem: Problem, **grid: float) -> Fit:
    """One penalty for all coefficients: by scikit-learn where there are several classes, else by adelie, ungrouped."""
    if problem.family.name == "multinomial":
        return scikit_classifier(problem, l1=True)
    return by(paths.lasso, **grid)(problem)


def ridge(problem: Problem) -> Fit:
    if problem.family.classes:
        return scikit_classifier(problem, l1=False)
    return poisson_ridge(problem) if problem.family.name == "poisson" else by(paths.ridge)(problem)


# ---------------------------------------------------------------------- tables as they are


def on_table(make: Callable[[pd.DataFrame, bool], Any], terms: Callable[[Any], int] | None = None) -> Method:
    """A scikit-learn estimator for a table without dates; `make` is told the table and whether y has two classes."""

    def solve(problem: Problem) -> Fit:
        if problem.table is None:
            raise CannotRunError("takes variables, not groups of columns")
        X, X_test = map(without_dates, problem.table)
        binary = problem.family.classes
        model = make(X, binary)
        model.fit(X, problem.y)
        mean = model.predict_proba(X_test)[:, 1] if binary else model.predict(X_test)
        return Fit(mean[:, None], notes={} if terms is None else {"terms": terms(model)})

    return solve


def make_ebm(X: pd.DataFrame, binary: bool) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    return (ExplainableBoostingClassifier if binary else ExplainableBoostingRegressor)(n_jobs=1)


ebm = on_table(make_ebm, lambda model: len(model.term_features_))  # its defaults, one process

METHODS: dict[str, Method] = {
    "covey": covey,
    "covey predict": partial(covey, rule="predict"),
    "adelie": by(paths.adelie_standardised),
    "skglm": skglm,
    "abess": by(paths.abess),
    "group MCP": by(paths.group_mcp),
    "grpreg lasso": partial(grpreg, penalty="grLasso"),
    "grpreg MCP": partial(grpreg, penalty="grMCP"),
    "lasso": lasso,
    "ridge": ridge,
    "EBM": ebm,
    "mgcv": mgcv,
    "glinternet": glinternet,
    "null": null,
    "oracle": oracle,
}
