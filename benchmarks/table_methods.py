"""Methods that fit a raw table and predict another: name -> class with `fit(X, y)`, `predict(X)`, `n_terms`, `seconds`.

`predict` gives means (regression) or probabilities of class 1 (binary). Every rival treats categories and missing
values the way its users do; dates become a trend, the day of the year and the weekday for all of them. `n_terms` counts
what a reader would have to look at, and is None where there are no terms (trees, forests). `seconds` is None where the
processor time of this process is the time of the fit.
"""

from __future__ import annotations

from collections.abc import Callable
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

from rscript import run_r


def without_dates(X: pd.DataFrame) -> pd.DataFrame:
    """Each date as days, the day of the year and the weekday."""
    columns: dict[str, pd.Series] = {}
    for name in X:
        x = X[name]
        if pd.api.types.is_datetime64_any_dtype(x):
            columns[name] = (x - pd.Timestamp("2000-01-01")).dt.days.astype(float)
            columns[f"{name} day of year"] = x.dt.dayofyear.astype(float)
            columns[f"{name} weekday"] = x.dt.day_name().astype(object)
        else:
            columns[name] = x
    return pd.DataFrame(columns)


def text_columns(X: pd.DataFrame) -> list[str]:
    return [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]


def as_text(X: pd.DataFrame) -> pd.DataFrame:
    """Missing values are a level."""
    return X.astype(object).where(X.notna(), "missing").astype(str)


class Method:
    """What all methods share."""

    n_terms: int | None = None
    seconds: float | None = None

    def __init__(self, task: str) -> None:
        self.binary = task == "binary"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        raise NotImplementedError

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        raise NotImplementedError


class Scikit(Method):
    """A scikit-learn estimator on a table without dates."""

    model: Any

    def make(self, X: pd.DataFrame) -> Any:
        raise NotImplementedError

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        X = without_dates(X)
        self.model = self.make(X)
        self.model.fit(X, y)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        X = without_dates(X)
        return self.model.predict_proba(X)[:, 1] if self.binary else self.model.predict(X)


class EBM(Scikit):
    """Explainable boosting machine with its defaults, one process."""

    def make(self, X: pd.DataFrame) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        return (ExplainableBoostingClassifier if self.binary else ExplainableBoostingRegressor)(n_jobs=1)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        super().fit(X, y)
        self.n_terms = len(self.model.term_features_)
        return self


class BoostedTrees(Scikit):
    """Histogram gradient boosting, categories and missing values as such; a level that was not fitted is missing."""

    def make(self, X: pd.DataFrame) -> Any:
        levels = {name: sorted(X[name].dropna().unique()) for name in text_columns(X)}

        def with_categories(X: pd.DataFrame) -> pd.DataFrame:
            return X.assign(**{name: pd.Categorical(X[name], values) for name, values in levels.items()})

        kind = HistGradientBoostingClassifier if self.binary else HistGradientBoostingRegressor
        trees = kind(categorical_features="from_dtype", early_stopping=False, random_state=0)
        return make_pipeline(FunctionTransformer(with_categories), trees)


def one_hot() -> Any:
    """Levels of at least five rows; rarer and unseen ones together."""
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False)
    return make_pipeline(FunctionTransformer(as_text, feature_names_out="one-to-one"), encoder)


def numbers(X: pd.DataFrame) -> list[str]:
    return [name for name in X if pd.api.types.is_numeric_dtype(X[name])]


class Forest(Scikit):
    """300 trees; categories one-hot, missing numbers as such."""

    def make(self, X: pd.DataFrame) -> Any:
        columns = ColumnTransformer([("levels", one_hot(), text_columns(X))], remainder="passthrough")
        kind = RandomForestClassifier if self.binary else RandomForestRegressor
        return make_pipeline(columns, kind(300, n_jobs=1, random_state=0))


class SplineRidge(Scikit):
    """Cubic splines with five quantile knots, categories one-hot, ridge by cross-validation."""

    def make(self, X: pd.DataFrame) -> Any:
        self.n_terms = X.shape[1]
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
            if self.binary
            else RidgeCV(np.logspace(-4, 4, 33))
        )  # fmt: skip
        return make_pipeline(ColumnTransformer(steps), ridge)


class Lasso(Scikit):
    """Lines and levels, penalty by five folds."""

    def make(self, X: pd.DataFrame) -> Any:
        fill = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
        steps = [(name, fill, [name]) for name in numbers(X)] + [(name, one_hot(), [name]) for name in text_columns(X)]
        lasso = (
            LogisticRegressionCV(
                Cs=np.logspace(-2, 2, 13), cv=5, scoring="neg_log_loss", l1_ratios=(1,), solver="liblinear",
                use_legacy_attributes=False,
            )
            if self.binary
            else LassoCV(cv=5, random_state=0, max_iter=5000)
        )  # fmt: skip
        return make_pipeline(ColumnTransformer(steps), lasso)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        super().fit(X, y)
        columns, lasso = self.model
        named = zip(columns.get_feature_names_out(), np.ravel(lasso.coef_), strict=True)
        self.n_terms = len({name.split("__", 1)[0] for name, coef in named if coef != 0})
        return self


class MGCV(Method):
    """`gam(select=TRUE, method="REML")` of R's mgcv: smooths of numbers, factors, many levels as random effects.

    Tables of more than 25 terms are given to mgcv's `bam`, its version for large data: `gam` takes minutes there.
    Fitting and predicting are one call of Rscript, so `fit` keeps the rows and `predict` runs it.
    """

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        self.X, self.y = without_dates(X), y
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        fit, test, terms = gam_tables(self.X, without_dates(X))
        family = "binomial()" if self.binary else "gaussian()"
        wide = len(terms) > MOST_GAM_TERMS
        call = 'bam(method = "fREML", discrete = TRUE,' if wide else 'gam(method = "REML",'
        script = GAM.format(terms=" + ".join(terms) or "1", family=family, call=call)
        found = run_r(script, {"fit": fit.assign(y=self.y), "test": test})
        self.seconds, self.n_terms = float(found[0]), int(found[1])
        return found[2:]


def gam_tables(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Both tables with R's names and no missing values, and the terms of the formula."""
    fit, test, terms = pd.DataFrame(index=X.index), pd.DataFrame(index=X_test.index), []
    sizes = []
    for i, name in enumerate(X):
        x, x_test, at = X[name], X_test[name], f"v{i}"
        if not pd.api.types.is_numeric_dtype(x):
            x, x_test = as_text(x.to_frame())[name], as_text(x_test.to_frame())[name]
            counts = x.value_counts()
            often = counts.index[counts >= 5]
            x, x_test = x.where(x.isin(often), "other"), x_test.where(x_test.isin(often), "other")
            if "other" not in set(x):
                x_test = x_test.where(x_test != "other", counts.index[0])
            levels = sorted(x.unique())
            if len(levels) > 1:
                code = {level: f"l{j}" for j, level in enumerate(levels)}
                fit[at], test[at] = x.map(code), x_test.map(code)
                terms.append(f's({at}, bs="re")' if len(levels) > 10 else at)
                sizes.append(len(levels))
            continue
        if x.isna().any():
            flag = f"m{i}"
            fit[flag], test[flag] = x.isna().astype(float), x_test.isna().astype(float)
            terms.append(flag)
        middle = x.median()
        fit[at], test[at] = x.fillna(middle), x_test.fillna(middle)
        distinct = fit[at].nunique()
        if distinct > 8:
            terms.append(f"s({at}, k={{k}})")
        elif distinct > 1:
            terms.append(at)
    smooth = sum("{k}" in term for term in terms)
    room = (0.8 * len(X) - sum(sizes)) / max(smooth, 1)
    k = 8 if room > 8 else max(3, int(room))
    return fit, test, [term.replace("{k}", str(k)) for term in terms]


MOST_GAM_TERMS = 25
GAM = """
suppressMessages(library(mgcv))
fit <- read.csv("fit.csv", stringsAsFactors = TRUE)
test <- read.csv("test.csv")
for (name in names(test)) if (is.factor(fit[[name]])) test[[name]] <- factor(test[[name]], levels(fit[[name]]))
start <- proc.time()
model <- {call} y ~ {terms}, data = fit, family = {family}, select = TRUE)
seconds <- sum((proc.time() - start)[1:2])
edf <- sapply(model$smooth, function(s) sum(model$edf[s$first.para:s$last.para]))
terms <- length(attr(model$pterms, "term.labels")) + sum(unlist(edf) > 0.1)
writeLines(format(c(seconds, terms, predict(model, test, type = "response")), digits = 15), "out.txt")
"""


class Covey(Method):
    """covey with `terms=`; what is given beside the defaults is the variant."""

    def __init__(self, task: str, pairs: Any = "default", **settings: Any) -> None:
        super().__init__(task)
        self.pairs, self.settings = pairs, settings

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Method:
        import covey

        terms = "auto" if self.pairs == "default" else covey.Terms(pairs=self.pairs)
        kind = covey.GroupSparseClassifier if self.binary else covey.GroupSparseRegressor
        self.model = kind(terms=terms, **self.settings).fit(X, y)
        self.n_terms = len(self.model.selected_groups_)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)[:, 1] if self.binary else self.model.predict(X)


RIVALS: dict[str, Callable[[str], Method]] = {
    "spline ridge": SplineRidge,
    "lasso": Lasso,
    "boosted trees": BoostedTrees,
    "forest": Forest,
    "mgcv": MGCV,
    "EBM": EBM,
}
OURS: dict[str, Callable[[str], Method]] = {
    "covey": Covey,
    "covey-additive": lambda task: Covey(task, pairs=None),
    "covey-pairs": lambda task: Covey(task, pairs="auto"),
    "covey-predict": lambda task: Covey(task, rule="predict"),
}
METHODS = OURS | RIVALS
