"""Limit paths as `Path` objects on the user's scale."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.limit.lockstep import Paths
from covey.path import Path
from covey.preprocess import spans
from covey.preprocess.layout import offsets
from covey.validation import FloatArray

__all__ = ["as_path"]

MESSAGES = {
    "completed": "The path has as many groups as were asked for.",
    "exhausted": "Nothing is left to explain at time {time:g}.",
}


def as_path(paths: Paths, split: int, groups: Groups) -> Path:
    """The path of a split: least squares on the groups awake after each event."""
    problem, rows = paths.posed.problem, paths.near.rows
    awake, events = paths.groups(split), paths.paths[split]
    begun = len(paths.starts[split])
    equations = paths.equations(split)
    W = _knots(equations.K, equations.c, equations.starts)[begun:]
    levels = equations.intercepts(W)
    which = np.array(awake, dtype=np.intp)
    place = {int(l): i for i, l in enumerate(paths.near.groups)}
    near = np.array([place[l] for l in awake], dtype=np.intp)
    wide = np.zeros((len(W), rows.n_columns))
    wide[:, equations.columns] = W
    own = spans(rows.starts, near)
    W = wide[:, own]
    starts = offsets(rows.ranks[near])
    columns, loadings, offset = problem.combination(awake)
    coefs = W @ loadings.T * problem.y_scale
    intercepts = problem.y_mean + (levels - W @ offset) * problem.y_scale
    norms = np.sqrt(np.add.reduceat(np.hstack([W * W, np.zeros((len(W), 1))]), starts[:-1], axis=1)) if awake else W
    times = np.array([0.0, *events.times[begun:]])
    status = "exhausted" if paths.ended else "completed"
    path = Path(
        times=times,
        coefs=_sparse(columns, coefs, problem.mean.size),
        intercepts=intercepts,
        groups=groups.apart() if groups.overlapping else groups,
        entered=list(zip(awake, map(float, events.times), strict=True)),
        status=status,
        message=MESSAGES[status].format(time=float(times[-1])),
        stepwise=True,
        strengths=_sparse(which, norms * problem.y_scale, problem.ranks.size),
    )
    return path.added_up(groups) if groups.overlapping else path


def _knots(K: FloatArray, c: FloatArray, starts: NDArray[np.intp]) -> FloatArray:
    """Least squares on the first m groups, for every m; shape (n_groups + 1, k)."""
    if c.size == 0:
        return np.zeros((starts.size, 0))
    inverse = np.linalg.inv(np.linalg.cholesky(K))
    terms = inverse * (inverse @ c)[:, None]
    total = np.vstack([np.zeros((1, c.size)), np.cumsum(terms, axis=0)])
    return np.asarray(total[starts])


def _sparse(columns: NDArray[np.intp], values: FloatArray, n_columns: int) -> sp.csr_array:
    """Rows with values in some columns, those that are zero left out."""
    order = np.argsort(columns)
    own = values[:, order]
    filled = own != 0
    indices = np.broadcast_to(np.asarray(columns)[order], own.shape)[filled]
    return sp.csr_array((own[filled], indices, offsets(filled.sum(axis=1))), shape=(len(values), n_columns))
