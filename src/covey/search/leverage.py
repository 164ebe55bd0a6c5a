"""Rows that the others say nothing about: held out, they do not show how good a model is.

A detail of a curve follows its variable to the outermost rows. Without such a row nobody knows where the curve goes
there: the errors of a few of them, which are a matter of chance, would outweigh all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.arrays import host
from covey.search.problem import Split
from covey.search.table import Table
from covey.validation import FloatArray

__all__ = ["predictable"]

# Directions in which the training rows hardly vary count as varying by this share of the largest variation.
SMALLEST = 1e-10


def predictable(table: Table, split: Split, rows: NDArray[np.intp], groups: Sequence[int]) -> NDArray[np.bool_]:
    """Whether the training rows of a split say where each row should be: see `Settings.predictable`.

    Parameters
    ----------
    table : Table
        With rows of X, not compressed ones, and with these groups among the near ones.
    split : Split
    rows : ndarray of int
    groups : sequence of int
    """
    response = table.on_split(split)[0]
    most, one_row = table.posed.settings.predictable, response.total_weight / table.posed.n_rows(split)
    known = np.ones(len(rows), dtype=bool)
    for group in groups:
        near = [table.place[l] for l in (*table.posed.ancestors(group), group)]
        A = np.column_stack([response.one, host(table.Z[:, table.columns(near)])])
        known &= _variances(A, response.weight / one_row, rows) <= most
    return known


def _variances(A: FloatArray, weight: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    """The variance of predictions by least squares on the weighted rows, in units of the noise."""
    values, vectors = np.linalg.eigh(A.T @ (weight[:, None] * A))
    axes = vectors / np.sqrt(np.maximum(values, SMALLEST * values[-1]))
    return np.square(A[rows] @ axes).sum(axis=1)
