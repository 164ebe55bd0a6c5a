"""Real data sets with their groups."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import SplineTransformer

from covey.datasets.storage import ENVIRONMENT, find_file
from covey.groups import Groups
from covey.summary import brief
from covey.validation import FloatArray, whole

LETTERS = "acgt"
MOST_KNOTS = 442

# For each file: the R package with the data, the columns to save, and the SHA-256 of the file.
SOURCES = {
    "bardet": (
        "gglasso 1.6",
        "column TRIM32 (the response `y`) and then the 100 columns of `x` named gene01_b1 ... gene20_b5, values in "
        "full precision",
        "7ac7f4425beeaba70ae95e0f808cc254fd55705f6a046edd7c30ac19d8ef99f9",
    ),
    "nki70": (
        "penalized",
        "columns time, event, Diam, N, ER, Grade, Age and then the genes",
        "c63cb522aa9be49f01165df9915771172a809a640821ec29e08dc983f0e34000",
    ),
    "splice": (
        "grplasso",
        "column y and then the columns Pos.1 ... Pos.7 with the letters a, c, g, t, y printed as 1.0 and 0.0",
        "b8bc30850993b7303e86c420c8c94a0e36eb459c3d21a770db1dab21efed56de",
    ),
}


@dataclass(frozen=True, repr=False)
class GroupedData:
    """A table, a response, and the groups of the columns.

    Attributes
    ----------
    X : DataFrame
    y : ndarray
    groups : Groups
    """

    X: pd.DataFrame
    y: FloatArray
    groups: Groups

    __repr__ = brief


def load_bardet(path: str | os.PathLike[str] | None = None) -> GroupedData:
    """Read the mammalian-eye microarray data of Scheetz et al. (2006), as prepared by Yang and Zou (2015).

    Parameters
    ----------
    path : path, optional
        The file; by default ``bardet.csv`` in the folder named by the environment variable `COVEY_DATA`.

    Returns
    -------
    GroupedData
        120 rats; X holds 20 genes expanded into 5 raw B-splines each, neither centred nor scaled, grouped by gene; y is
        the expression of TRIM32.

    Raises
    ------
    DataNotFoundError
        If the file is missing; the message says how to get it.
    ValueError
        If its SHA-256 differs, so that results would not match the paper's data.
    """
    frame = _read("bardet", path)
    X = frame.drop(columns="TRIM32")
    return GroupedData(X, frame["TRIM32"].to_numpy(dtype=float), Groups.from_separator("_", X.columns))


def load_nki70(path: str | os.PathLike[str] | None = None) -> GroupedData:
    """Read the breast cancer data of van 't Veer and others (2002), as in the R package penalized.

    Parameters
    ----------
    path : path, optional
        The file; by default ``nki70.csv`` in the folder named by the environment variable `COVEY_DATA`.

    Returns
    -------
    GroupedData
        144 patients. X has the clinical variables ``Diam``, ``N``, ``ER``, ``Grade`` and ``Age`` (one group each, with
        indicators of all levels but the first for categories) and seventy genes, one group each; y holds the years to
        metastasis or the end of follow-up, as a structured array with the fields ``event`` and ``time``.

    Raises
    ------
    DataNotFoundError, ValueError
        As `load_bardet`.
    """
    frame = _read("nki70", path)
    parts, labels = [], []
    for name in frame.columns.drop(["time", "event"]):
        columns = frame[[name]]
        if not pd.api.types.is_numeric_dtype(frame[name]):
            columns = pd.get_dummies(columns, drop_first=True, dtype=float)
        parts.append(columns)
        labels += [name] * columns.shape[1]
    X = pd.concat(parts, axis=1).astype(float)
    y = np.empty(len(frame), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = frame["event"] == 1, frame["time"]
    return GroupedData(X, y, Groups.from_labels(labels, columns=X.columns))


def load_splice(path: str | os.PathLike[str] | None = None, *, interactions: bool = False) -> GroupedData:
    """Read the splice sites of Yeo and Burge (2004), as in the R package grplasso: is there a splice site or not?

    Parameters
    ----------
    path : path, optional
        The file; by default ``splice.csv`` in the folder named by the environment variable `COVEY_DATA`.
    interactions : bool
        Add a group for every pair of positions, with one column per pair of letters.

    Returns
    -------
    GroupedData
        400 sequences; X has an indicator for each letter at each of seven positions, grouped by position (``Pos.1`` to
        ``Pos.7``, pairs ``Pos.1:Pos.2``); y is 1 for a splice site and 0 otherwise, in half of the rows each.

    Raises
    ------
    DataNotFoundError, ValueError
        As `load_bardet`.
    """
    frame = _read("splice", path)
    positions = list(frame.columns[1:])
    X = pd.get_dummies(frame[positions].astype(pd.CategoricalDtype(list(LETTERS))), dtype=float)
    labels = [name for name in positions for _ in LETTERS]
    if interactions:
        pairs: dict[str, pd.Series] = {}
        for a, b in combinations(positions, 2):
            pairs |= {f"{a}_{i}:{b}_{j}": X[f"{a}_{i}"] * X[f"{b}_{j}"] for i in LETTERS for j in LETTERS}
            labels += [f"{a}:{b}"] * len(LETTERS) ** 2
        X = pd.concat([X, pd.DataFrame(pairs)], axis=1)
    return GroupedData(X, frame["y"].to_numpy(dtype=float), Groups.from_labels(labels, columns=X.columns))


def load_diabetes_splines(n_knots: int = 5) -> GroupedData:
    """Disease progression of 442 patients after one year, with ten variables, each expanded into cubic B-splines.

    The data come with scikit-learn. There is one group per variable, with knots at quantiles and without the last basis
    function, which the intercept already spans; sex, which has two values, stays one column.

    Parameters
    ----------
    n_knots : int
        Knots per variable, at least 2; a group then has ``n_knots + 1`` columns.

    Examples
    --------
    >>> from covey.datasets import load_diabetes_splines
    >>> data = load_diabetes_splines()
    >>> data.X.shape, data.groups.names
    ((442, 55), ('age', 'sex', 'bmi', 'bp', 's1', 's2', 's3', 's4', 's5', 's6'))
    """
    n_knots = whole(n_knots, "n_knots", least=2)
    if n_knots > MOST_KNOTS:
        raise ValueError(f"n_knots must be at most {MOST_KNOTS}, as many as there are rows, not {n_knots}.")
    raw = load_diabetes(as_frame=True, scaled=False)
    parts = []
    for _, column in raw.data.items():
        if column.nunique() > 2:
            splines = SplineTransformer(n_knots=n_knots, degree=3, knots="quantile", include_bias=False)
            parts.append(splines.set_output(transform="pandas").fit_transform(column.to_frame()))
        else:
            parts.append((column == column.max()).astype(float).to_frame())
    X = pd.concat(parts, axis=1)
    return GroupedData(X, raw.target.to_numpy(dtype=float), Groups.from_separator("_", X.columns))


def _read(name: str, path: str | os.PathLike[str] | None) -> pd.DataFrame:
    """Read one of the files of `SOURCES`, if it is the right one: with other data, results would not be comparable."""
    package, columns, checksum = SOURCES[name]
    how = (
        f"The data is not part of covey. It is the data set `{name}` of the R package {package}, file data/{name}.rda "
        f"of the GitHub repository cran/{package.split()[0]}; the Python package rdata reads it. Save it as "
        f"{name}.csv, {columns}, in a folder, and name the folder in {ENVIRONMENT}."
    )
    file = find_file(f"{name}.csv", path=path, how=how)
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(f"{file} is not the expected data set: SHA-256 {found}, expected {checksum}. {how}")
    return pd.read_csv(io.BytesIO(content))
