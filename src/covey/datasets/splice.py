"""Splice sites: seven DNA bases around a position where a gene may be cut."""

from __future__ import annotations

import io
import os
from itertools import combinations

import numpy as np
import pandas as pd

from covey.datasets.grouped import GroupedData
from covey.datasets.storage import ENVIRONMENT, find_file, sha256
from covey.groups import Groups

__all__ = ["load_splice"]

CHECKSUM = "b8bc30850993b7303e86c420c8c94a0e36eb459c3d21a770db1dab21efed56de"
HOW = (
    "The data is not part of covey. It is the data set `splice` of the R package grplasso, file data/splice.rda of the "
    "GitHub repository cran/grplasso; the Python package rdata reads it. Save it as splice.csv, column y and then the "
    f"columns Pos.1 ... Pos.7 with the letters a, c, g, t, y printed as 1.0 and 0.0, in a folder, and name it in "
    f"{ENVIRONMENT}."
)
LETTERS = "acgt"


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
    DataNotFoundError
        If the file is missing; the message says how to get it.
    ValueError
        If its SHA-256 differs.
    """
    file = find_file("splice.csv", path=path, how=HOW)
    content = file.read_bytes()
    found = sha256(content)
    if found != CHECKSUM:
        raise ValueError(f"{file} is not the expected data set: SHA-256 {found}, expected {CHECKSUM}. {HOW}")
    frame = pd.read_csv(io.BytesIO(content))
    positions = {name: _letters(frame[name]) for name in frame.columns[1:]}
    columns = {f"{name}_{letter}": own[letter] for name, own in positions.items() for letter in LETTERS}
    labels = [name for name in positions for _ in LETTERS]
    if interactions:
        for a, b in combinations(positions, 2):
            for i in LETTERS:
                columns |= {f"{a}_{i}:{b}_{j}": positions[a][i] * positions[b][j] for j in LETTERS}
            labels += [f"{a}:{b}"] * len(LETTERS) ** 2
    X = pd.DataFrame(columns)
    return GroupedData(X, frame["y"].to_numpy(dtype=float), Groups.from_labels(labels, columns=X.columns))


def _letters(column: pd.Series[str]) -> dict[str, np.ndarray]:
    return {letter: (column == letter).to_numpy(dtype=float) for letter in LETTERS}
