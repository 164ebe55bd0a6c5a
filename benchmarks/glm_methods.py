"""Rivals and covey as functions from a problem with classes, counts or several responses to a `Fit`.

adelie and skglm: `glm_paths.py`. abess chooses its number of groups itself on simulated data, by the same folds and the
held-out likelihood, or by an information criterion; on real data its own folds fail where a column is constant in one
of them, so that the number is chosen outside, as the penalties are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glm_paths import (
    abess_model,
    abess_path,
    adelie_groups,
    adelie_single,
    by_folds,
    on_unit_columns,
    sizes,
    skglm_path,
    unit_columns,
)
from glm_problems import Fit, GlmProblem

LONG = (1e-4, 1e-6)  # real columns on scales of their own want long grids, and the first dip of their losses misleads


def skglm(problem: GlmProblem) -> Fit:
    if problem.family.name not in ("binomial", "poisson"):
        raise NotImplementedError("skglm has no groups for several classes or responses")
    return by_folds(problem, skglm_path)


def abess(problem: GlmProblem, **choice: Any) -> Fit:
    """Best subset of groups; abess chooses how many, by a criterion or, with `cv`, by everyone's folds."""
    used = problem.independent
    _, inside = np.unique(problem.labels[used], return_inverse=True)
    if "cv" in choice:
        choice["cv_score"] = "test_loss"  # its default for binary classes is the area under the curve
    model = abess_model(problem)(support_size=sizes(problem.X, inside), group=inside, thread=1, **choice)
    folds = {"cv_fold_id": problem.fold_of} if "cv" in choice else {}
    model.fit(problem.X[:, used], problem.y, **folds)
    coef = np.zeros((problem.labels.size, problem.outputs))
    coef[used] = model.coef_.reshape(used.size, -1)
    mean = problem.family.mean(problem.X_test @ coef + np.reshape(model.intercept_, (1, -1)))
    return Fit(mean, np.unique(problem.labels[np.any(coef != 0, axis=1)]))


# ---------------------------------------------------------------------- without groups, on columns of unit variance


def scikit_classifier(problem: GlmProblem, X: np.ndarray, X_test: np.ndarray, l1: bool) -> Fit:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import PredefinedSplit

    penalties = np.geomspace(1, 1e-4, 15) if l1 else np.geomspace(1e2, 1e-5, 30)
    model = LogisticRegressionCV(
        Cs=1 / (len(X) * penalties), l1_ratios=(float(l1),), cv=PredefinedSplit(problem.fold_of),
        solver="saga" if l1 else "lbfgs", scoring="neg_log_loss", max_iter=200 if l1 else 2000,
        random_state=0, use_legacy_attributes=False,
    )  # fmt: skip
    probabilities = model.fit(X, problem.y).predict_proba(X_test)
    return Fit(probabilities if problem.outputs > 1 else probabilities[:, 1:])


def poisson_ridge(problem: GlmProblem, X: np.ndarray, X_test: np.ndarray) -> Fit:
    from sklearn.linear_model import PoissonRegressor
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    search = GridSearchCV(
        PoissonRegressor(solver="newton-cholesky", max_iter=1000), {"alpha": np.geomspace(1e2, 1e-6, 30)},
        cv=PredefinedSplit(problem.fold_of), scoring="neg_mean_poisson_deviance",
    )  # fmt: skip
    return Fit(search.fit(X, problem.y).predict(X_test)[:, None])


def l1(problem: GlmProblem) -> Fit:
    """One penalty for all coefficients: by scikit-learn where there are several classes, else by adelie, ungrouped."""
    if problem.family.name != "multinomial":
        return by_folds(problem, on_unit_columns(adelie_single), *LONG)
    mean, scale = unit_columns(problem.X)
    return scikit_classifier(problem, (problem.X - mean) / scale, (problem.X_test - mean) / scale, l1=True)


def ridge(problem: GlmProblem) -> Fit:
    mean, scale = unit_columns(problem.X)
    X, X_test = (problem.X - mean) / scale, (problem.X_test - mean) / scale
    if problem.family.classes:
        return scikit_classifier(problem, X, X_test, l1=False)
    return poisson_ridge(problem, X, X_test)


# ---------------------------------------------------------------------- references and covey


def oracle(problem: GlmProblem) -> Fit:
    """Maximum likelihood on the true groups."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

    on = np.isin(problem.labels, problem.active)
    X, X_test, name = problem.X[:, on], problem.X_test[:, on], problem.family.name
    if problem.family.classes:
        probabilities = LogisticRegression(C=1e10, tol=1e-6, max_iter=10_000).fit(X, problem.y).predict_proba(X_test)
        return Fit(probabilities if problem.outputs > 1 else probabilities[:, 1:], problem.active)
    model = PoissonRegressor(alpha=0, solver="newton-cholesky") if name == "poisson" else LinearRegression()
    return Fit(model.fit(X, problem.y).predict(X_test).reshape(len(X_test), -1), problem.active)


def null(problem: GlmProblem) -> Fit:
    """The mean response, or the shares of classes."""
    level = problem.family.outputs(problem.y, problem.outputs).mean(axis=0)
    return Fit(np.tile(level, (len(problem.X_test), 1)), np.zeros(0, dtype=int))


def covey(problem: GlmProblem, **settings: Any) -> Fit:
    """The estimator of the family, judged by the same folds as the rivals."""
    from sklearn.model_selection import PredefinedSplit

    import covey as library

    labels = problem.labels if problem.names is None else np.array(problem.names)[problem.labels]
    groups = library.Groups.from_labels(labels)
    settings = {"groups": groups, "selection": PredefinedSplit(problem.fold_of)} | settings
    if problem.family.classes:
        model = library.GroupSparseClassifier(**settings).fit(problem.X, problem.y.astype(int))
        mean = model.predict_proba(problem.X_test)[:, 1 if problem.outputs == 1 else 0 :]
    else:
        loss = {"loss": "poisson"} if problem.family.name == "poisson" else {}
        model = library.GroupSparseRegressor(**settings, **loss).fit(problem.X, problem.y)
        mean = model.predict(problem.X_test).reshape(len(problem.X_test), -1)
    return Fit(mean, np.array([groups.position(name) for name in model.selected_groups_], dtype=int))


Method = Callable[[GlmProblem], Fit]
OURS: dict[str, Method] = {"covey": covey, "covey predict": lambda problem: covey(problem, rule="predict")}
CRITERIA: dict[str, Method] = {
    "abess gic": lambda problem: abess(problem, ic_type="gic"),
    "abess ebic": lambda problem: abess(problem, ic_type="ebic"),
}
ABESS: dict[str, Method] = {"abess cv": lambda problem: abess(problem, cv=5), **CRITERIA}
SIMULATED: dict[str, Method] = {
    "adelie": lambda problem: by_folds(problem, adelie_groups),
    "skglm": skglm,
    **ABESS,
    "oracle": oracle,
    "null": null,
    **OURS,
}
REAL: dict[str, Method] = {
    "adelie raw": lambda problem: by_folds(problem, adelie_groups, *LONG),
    "adelie standardised": lambda problem: by_folds(problem, on_unit_columns(adelie_groups), *LONG),
    "abess cv": lambda problem: by_folds(problem, abess_path, 1.0, 1.0),
    **CRITERIA,
    "l1": l1,
    "ridge": ridge,
    "null": null,
    **OURS,
}
TIMED: dict[str, Method] = {
    "covey": covey,
    "adelie": SIMULATED["adelie"],
    # the shorter path of adelie's own cross-validation; where it matters, its end is not the end that folds choose
    "adelie short": lambda problem: by_folds(problem, adelie_groups, 1e-1, 1e-1),
    "skglm": skglm,
    **ABESS,
}
