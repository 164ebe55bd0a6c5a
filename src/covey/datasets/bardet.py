"""The Bardet-Biedl gene-expression data of the paper's last table."""

from __future__ import annotations

import io
import os

import pandas as pd

from covey.datasets.grouped import GroupedData
from covey.datasets.storage import ENVIRONMENT, find_file, sha256
from covey.groups import Groups

__all__ = ["load_bardet"]

CHECKSUM = "7ac7f4425beeaba70ae95e0f808cc254fd55705f6a046edd7c30ac19d8ef99f9"
HOW = (
    "The data is not part of covey. It is the data set `bardet` of the R package gglasso 1.6, file data/bardet.rda of "
    "the GitHub repository cran/gglasso; the Python package rdata reads it. Save it as bardet.csv, column TRIM32 (the "
    "response `y`) and then the 100 columns of `x` named gene01_b1 ... gene20_b5, values in full precision, in a "
    f"folder, and name the folder in {ENVIRONMENT}."
)


def load_bardet(path: str | os.PathLike[str] | None = None) -> GroupedData:
    """Read the mammalian-eye microarray data of Scheetz et al. (2006), as prepared by Yang and Zou (2015).

    Expression of TRIM32 in 120 rats, and 20 genes expanded into 5 B-splines each: raw bases, neither centred nor
    scaled. One group per gene.

    Parameters
    ----------
    path : path, optional
        The file; by default ``bardet.csv`` in the folder named by the environment variable `COVEY_DATA`.

    Returns
    -------
    GroupedData
        120 rats; X holds 20 genes expanded into 5 raw B-splines each, grouped by gene; y is the expression of TRIM32.

    Raises
    ------
    DataNotFoundError
        If the file is missing; the message says how to get it.
    ValueError
        If its SHA-256 differs, so that results would not match the paper's data.
    """
    file = find_file("bardet.csv", path=path, how=HOW)
    content = file.read_bytes()
    found = sha256(content)
    if found != CHECKSUM:
        raise ValueError(f"{file} is not the expected data set: SHA-256 {found}, expected {CHECKSUM}. {HOW}")
    frame = pd.read_csv(io.BytesIO(content))
    X = frame.drop(columns="TRIM32")
    groups = Groups.from_labels([name.partition("_")[0] for name in X.columns], columns=X.columns)
    return GroupedData(X, frame["TRIM32"].to_numpy(dtype=float), groups)
