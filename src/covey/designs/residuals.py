"""Residuals of several linear models on some rows, and second moments of some columns in several parts of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESIDUALS", "part_grams", "weighted_residuals"]

Array = NDArray[Any]

# The number of residuals, or of entries of columns, that are held at a time (16 MiB).
RESIDUALS = 2**21


def weighted_residuals(
    own: Array, y: Array, weights: Sequence[Array], which: Array, coefs: Array, intercepts: Array
) -> NDArray[np.float64]:
    """``weights[which[j]] (y - own coefs[j] - intercepts[j])`` for every model j; shape (n_models, n_rows).

    ``own`` holds the models' columns of these rows, in any precision; residuals are in double precision.
    """
    R = np.asarray(np.asarray(coefs, dtype=np.float64) @ own.T, dtype=np.float64)
    R += np.asarray(intercepts)[:, None]
    np.subtract(y, R, out=R)
    if len(weights) == 1:
        R *= weights[0]
    else:
        R *= np.stack(list(weights))[which]
    return R


def part_grams(own: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
    """``A' diag(w) A`` with ``A = [1, own - shift, y]`` for every w; shape (n_parts, k + 2, k + 2)."""
    A = np.empty((own.shape[0], own.shape[1] + 2))
    A[:, 0], A[:, -1] = 1.0, y
    np.subtract(own, shift, out=A[:, 1:-1])
    out = np.zeros((len(weights), A.shape[1], A.shape[1]))
    for w, into in zip(weights, out, strict=True):
        used = np.flatnonzero(w)
        part = A[used] * np.sqrt(w[used])[:, None]
        # BLAS computes only half of a matrix times its own transpose
        np.matmul(part.T, part, out=into)
    return out
