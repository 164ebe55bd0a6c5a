"""What people use on a raw table: name -> function from a problem with a table to a `Fit`.

Every rival treats categories and missing values the way its users do; dates become a trend, the day of the year and the
weekday for all of them. Of each method the number of terms is kept, what a reader would have to look at, unless there
are no terms (trees, forests). EBM, mgcv and covey are the suite's, covey with folds of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler

from suite.methods import covey, ebm, on_table
from suite.problem import Fit, Method, Problem
from suite.r_methods import mgcv
from suite.tables import as_text, is_text


def text_columns(X: pd.DataFrame) -> list[str]:
    return [name for name in X if is_text(X[name])]


def numbers(X: pd.DataFrame) -> list[str]:
    return [name for name in X if not is_text(X[name])]


def with_missing_level(X: pd.DataFrame) -> pd.DataFrame:
    return X.apply(as_text)


def one_hot() -> Any:
    """Levels of at least five rows; rarer and unseen ones together."""
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False)
    return make_pipeline(FunctionTransformer(with_missing_level, feature_names_out="one-to-one"), encoder)


def boosted_trees(X: pd.DataFrame, binary: bool) -> Any:
    """Histogram gradient boosting, categories and missing values as such; a level that was not fitted is missing."""
    levels = {name: sorted(X[name].dropna().unique()) for name in text_columns(X)}

    def with_categories(X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{name: pd.Categorical(X[name], values) for name, values in levels.items()})

    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    trees = kind(categorical_features="from_dtype", early_stopping=False, random_state=0)
    return make_pipeline(FunctionTransformer(with_categories), trees)


def forest(X: pd.DataFrame, binary: bool) -> Any:
    """300 trees; categories one-hot, missing numbers as such."""
    columns = ColumnTransformer([("levels", one_hot(), text_columns(X))], remainder="passthrough")
    kind = RandomForestClassifier if binary else RandomForestRegressor
    return make_pipeline(columns, kind(300, n_jobs=1, random_state=0))


def spline_ridge(X: pd.DataFrame, binary: bool) -> Any:
    """Cubic splines with five quantile knots, categories one-hot, ridge by cross-validation."""
    steps: list[tuple[str, Any, list[str]]] = [("levels", one_hot(), text_columns(X))]
    for name in numbers(X):
        fill = SimpleImputer(strategy="median", add_indicator=True)
        knots = np.unique(np.nanquantile(X[name], np.linspace(0, 1, 5)))
        if X[name].nunique() > 8 and len(knots) > 2:
            spline = SplineTransformer(knots=knots[:, None], extrapolation="linear", include_bias=False)
            columns = ColumnTransformer([("curve", spline, [0])], remainder="passthrough")
            steps.append((name, make_pipeline(fill, columns), [name]))
        else:
            steps.append((name, make_pipeline(fill, StandardScaler()), [name]))
    ridge = (
        LogisticRegressionCV(
            Cs=np.logspace(-3, 3, 13), cv=5, scoring="neg_log_loss", l1_ratios=(0,), max_iter=1000,
            use_legacy_attributes=False,
        )
        if binary
        else RidgeCV(np.logspace(-4, 4, 33))
    )  # fmt: skip
    return make_pipeline(ColumnTransformer(steps), ridge)


def lines_and_levels(X: pd.DataFrame, binary: bool) -> Any:
    """The lasso, its penalty by five folds."""
    fill = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    steps = [(name, fill, [name]) for name in numbers(X)] + [(name, one_hot(), [name]) for name in text_columns(X)]
    lasso = (
        LogisticRegressionCV(
            Cs=np.logspace(-2, 2, 13), cv=5, scoring="neg_log_loss", l1_ratios=(1,), solver="liblinear",
            use_legacy_attributes=False,
        )
        if binary
        else LassoCV(cv=5, random_state=0, max_iter=5000)
    )  # fmt: skip
    return make_pipeline(ColumnTransformer(steps), lasso)


def lasso_terms(model: Any) -> int:
    columns, lasso = model
    named = zip(columns.get_feature_names_out(), np.ravel(lasso.coef_), strict=True)
    return len({name.split("__", 1)[0] for name, coef in named if coef != 0})


def own_folds(problem: Problem, pairs: Any = "default", **settings: Any) -> Fit:
    from covey import Terms

    terms = "auto" if pairs == "default" else Terms(pairs=pairs)
    return covey(problem, terms=terms, selection=5, **settings)


RIVALS: dict[str, Method] = {
    "spline ridge": on_table(spline_ridge, lambda model: model[0].n_features_in_),
    "lasso": on_table(lines_and_levels, lasso_terms),
    "boosted trees": on_table(boosted_trees),
    "forest": on_table(forest),
    "mgcv": mgcv,
    "EBM": ebm,
}
OURS: dict[str, Method] = {
    "covey": own_folds,
    "covey-additive": partial(own_folds, pairs=None),
    "covey-pairs": partial(own_folds, pairs="auto"),
    "covey-predict": partial(own_folds, rule="predict"),
}
METHODS = OURS | RIVALS
