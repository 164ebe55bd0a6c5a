"""Raw tables for methods that take matrices, and problems made of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from .families import FAMILIES
from .problem import Problem, folds
from .raw_tables import TABLES, Table, split
from .real_data import columns_of

KNOTS = 5


def is_text(x: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(x) or pd.api.types.is_datetime64_any_dtype(x))


def as_text(x: pd.Series) -> pd.Series:
    """Missing values are a level."""
    return x.astype(object).where(x.notna(), "missing").astype(str)


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


def variables_of(X: pd.DataFrame) -> np.ndarray:
    """The variable of X that each column of `without_dates(X)` was made from."""
    dates = [pd.api.types.is_datetime64_any_dtype(X[name]) for name in X]
    return np.repeat(np.arange(X.shape[1]), np.where(dates, 3, 1))


def encoded(X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Columns and their groups, one group per variable: levels, splines, and a flag where a number is missing."""
    parts, labels = [], []
    for variable, name in zip(variables_of(X), plain := without_dates(X), strict=True):
        x = plain[name]
        if is_text(x):
            blocks = [columns_of(as_text(x), 0, (name,))]
        else:
            blocks = [columns_of(x.fillna(x.median()), KNOTS, ())]
            if x.isna().any():
                blocks.append(x.isna().to_numpy(dtype=float)[:, None])
        parts += blocks
        labels += [variable] * sum(block.shape[1] for block in blocks)
    return np.hstack(parts), np.array(labels)


@cache
def read(name: str) -> Table:
    return TABLES[name]()


def from_table(table: Table, fit: np.ndarray, test: np.ndarray, rng: np.random.Generator, **known: object) -> Problem:
    """A problem whose methods may take the table as it is, or its variables encoded."""
    frame, y, task = table
    family = FAMILIES["gaussian" if task == "regression" else "binomial"]
    X, labels = encoded(frame)
    tables = tuple(frame.iloc[rows].reset_index(drop=True) for rows in (fit, test))
    y_test = y[test]
    return Problem(
        family, X[fit], y[fit], labels, X[test], lambda mean: family.error(y_test, mean), folds(family, y[fit], rng),
        names=list(frame), table=tables, **known,
    )  # fmt: skip


def table_problem(name: str, seed: int) -> Problem:
    """A split of a raw table."""
    fit, test = split(name, len(read(name)[1]), seed)
    return from_table(read(name), fit, test, np.random.default_rng([seed, *name.encode()]))
