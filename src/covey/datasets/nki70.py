"""Breast cancer: clinical columns, seventy genes, and the time to metastasis."""

from __future__ import annotations

import io
import os

import numpy as np
import pandas as pd

from covey.datasets.grouped import GroupedData
from covey.datasets.storage import ENVIRONMENT, find_file, sha256
from covey.groups import Groups

__all__ = ["CLINICAL", "load_nki70"]

CHECKSUM = "c63cb522aa9be49f01165df9915771172a809a640821ec29e08dc983f0e34000"
HOW = (
    "The data is not part of covey. It is the data set `nki70` of the R package penalized, file data/nki70.rda of the "
    "GitHub repository cran/penalized; the Python package rdata reads it. Save it as nki70.csv, columns time, event, "
    f"Diam, N, ER, Grade, Age and then the genes, in a folder, and name it in {ENVIRONMENT}."
)

# The clinical columns, which need no microarray.
CLINICAL = ("Diam", "N", "ER", "Grade", "Age")


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
        indicators of all levels but the first for categories) and seventy genes, each its own group; y holds the
        years to metastasis or the end of follow-up, as a structured array with the fields ``event`` and ``time``.

    Raises
    ------
    DataNotFoundError
        If the file is missing; the message says how to get it.
    ValueError
        If its SHA-256 differs.
    """
    file = find_file("nki70.csv", path=path, how=HOW)
    content = file.read_bytes()
    found = sha256(content)
    if found != CHECKSUM:
        raise ValueError(f"{file} is not the expected data set: SHA-256 {found}, expected {CHECKSUM}. {HOW}")
    frame = pd.read_csv(io.BytesIO(content))
    parts, labels = [], []
    for name in frame.columns.drop(["time", "event"]):
        own = frame[[name]]
        if not pd.api.types.is_numeric_dtype(frame[name]):
            own = pd.get_dummies(own, drop_first=True, dtype=float)
        parts.append(own)
        labels += [name] * own.shape[1]
    X = pd.concat(parts, axis=1).astype(float)
    y = np.empty(len(frame), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = frame["event"] == 1, frame["time"]
    return GroupedData(X, y, Groups.from_labels(labels, columns=X.columns))
