"""Limit paths as `Path` objects on the user's scale."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.limit.likelihood import SEPARATED_RIDGE
from covey.limit.lockstep import Paths
from covey.path import Path
from covey.preprocess.layout import offsets
from covey.validation import FloatArray

__all__ = ["as_path"]

MESSAGES = {
    "completed": "The path has the requested number of groups.",
    "exhausted": "Nothing is left to explain at time {time:g}.",
}
SEPARATED = (
    "From time {time:g} on, the awake groups separate the responses perfectly, so the best coefficients are infinite; "
    "models from there on have a ridge of {ridge:g}."
)


def as_path(paths: Paths, split: int, groups: Groups) -> Path:
    """The path of a split: the minimiser on the groups awake after each event."""
    posed, problem = paths.posed, paths.posed.problem
    awake, events = paths.groups(split), paths.paths[split]
    begun = len(paths.starts[split])
    knots = paths.knots(split)
    W = knots.W
    columns, coefs, intercepts = posed.to_user(awake, W, knots.levels)
    n, m, _ = coefs.shape
    starts = offsets(problem.ranks[awake])
    own = posed.outputs(W)
    # in units of each group's largest coefficient, so that squares neither overflow nor underflow
    largest = np.append(np.abs(own).max(axis=(0, 1), initial=0.0), 0.0)
    unit = np.maximum.reduceat(largest, starts[:-1]) if awake else np.empty(0)
    unit[unit == 0] = 1.0
    own = ((own / np.repeat(unit, problem.ranks[awake])) ** 2).sum(axis=1)
    squares = np.add.reduceat(np.hstack([own, np.zeros((n, 1))]), starts[:-1], axis=1) if awake else own
    times = np.array([0.0, *events.times[begun:]])
    status = "exhausted" if paths.ended else "completed"
    separated = np.flatnonzero(knots.separated)
    message = MESSAGES[status].format(time=float(times[-1]))
    if separated.size:
        time = times[separated[0]]
        status = "separated"
        message += " " + SEPARATED.format(time=float(time), ridge=SEPARATED_RIDGE)
    wide = np.concatenate([columns + output * problem.mean.size for output in range(m)])
    path = Path(
        times=times,
        coefs=_sparse(wide, coefs.reshape(n, -1), m * problem.mean.size),
        intercepts=intercepts if m > 1 else intercepts[:, 0],
        groups=groups.apart() if groups.overlapping else groups,
        entered=list(zip(awake, map(float, events.times), strict=True)),
        status=status,
        message=message,
        stepwise=True,
        strengths=_sparse(
            np.array(awake, dtype=np.intp), np.sqrt(squares) * unit * (problem.ranks[awake] > 0), problem.ranks.size
        ),
        n_outputs=m,
    )
    return path.added_up(groups) if groups.overlapping else path


def _sparse(columns: NDArray[np.intp], values: FloatArray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with these values in the given columns; zeros are not stored."""
    order = np.argsort(columns)
    own = values[:, order]
    filled = own != 0
    indices = np.broadcast_to(np.asarray(columns)[order], own.shape)[filled]
    return sp.csr_array((own[filled], indices, offsets(filled.sum(axis=1))), shape=(len(values), n_columns))
