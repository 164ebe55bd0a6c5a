"""What people use instead, for numbers: name -> problem -> `Fit`; the methods themselves are the suite's."""

from __future__ import annotations

import numpy as np

from suite.methods import METHODS, lasso, null, ridge
from suite.paths import (
    abess,
    adaptive,
    adelie,
    adelie_orthonormal,
    adelie_standardised,
    by,
    group_mcp,
    group_scad,
    relaxed,
    unit_columns,
)
from suite.problem import CannotRunError, Fit, Method, Problem

OURS: dict[str, Method] = {name: METHODS[name] for name in ("covey", "covey predict")}


def least_squares(problem: Problem) -> Fit:
    """On all columns; of several solutions the one of least norm on columns of unit variance."""
    mean, scale = unit_columns(problem.X)
    coef, _, rank, _ = np.linalg.lstsq((problem.X - mean) / scale, problem.y - problem.y.mean(), rcond=1e-9)
    if rank >= len(problem.y) - 1:
        raise CannotRunError("as many independent columns as rows: least squares fits every response exactly")
    return problem.linear((coef / scale)[:, None], problem.y.mean() - mean @ (coef / scale))


PEERS: dict[str, Method] = {
    "adelie raw": by(adelie),
    "adelie orthonormal": by(adelie_orthonormal),
    "adelie standardised": by(adelie_standardised),
    "relaxed": by(relaxed(adelie_standardised)),
    "adaptive": by(adaptive),
    "group MCP": by(group_mcp),
    "group SCAD": by(group_scad),
    "abess": by(abess),
    "lasso": lasso,
    "ridge": ridge,
    "least squares": least_squares,
    "mean": null,
}
