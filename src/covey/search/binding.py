"""Which constraints bind: those that hold the selected model back from where the rows would take it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from covey.preprocess.working import noise_weights
from covey.search.cone import Rows
from covey.search.problem import Posed
from covey.validation import FloatArray, on_host

__all__ = ["binding_table"]

# A group that is left out is held back by its constraint if the part of its gradient that the constraint cuts off is
# larger than pure noise makes it for one of all constraints in so many tables.
TABLES = 20.0

# In a model, a constraint that is kept with less than this to spare, in the units of its columns, is at its limit; and
# it holds the model back if the gradient presses by more than so many standard errors.
AT_LIMIT, FELT = 1e-8, 1e-3


def binding_table(
    posed: Posed, coef: FloatArray, intercept: FloatArray, order: Sequence[int], n_rows: float
) -> pd.DataFrame:
    """One line per constraint: whether it binds, and how hard the rows press against it.

    Parameters
    ----------
    posed : Posed
    coef, intercept : ndarray, shape (1, n_columns) and (1,)
        The selected model, group by group.
    order : sequence of int
        Its groups.
    n_rows : float
        The number of rows; a row of weight two counts as two rows.

    Returns
    -------
    DataFrame
        With the columns ``name``, ``constraint``, ``selected``, ``binds`` and ``pressure``: the norm of the part of the
        gradient that the constraint cuts off, in standard errors.
    """
    cone, working = posed.cone, posed.working
    assert cone is not None
    design, inside = posed.design, set(order)
    used = np.flatnonzero(coef.any(axis=0))
    eta = np.asarray(on_host(design.predict(used, coef[:, used], intercept)), dtype=float)
    rows = posed.response.rows(np.arange(design.shape[0]))
    eta = (eta.reshape(len(eta), 1) - posed.level) / posed.scale
    score = rows.score(eta)
    correlations = np.asarray(on_host(design.correlate(np.ascontiguousarray(score.T))), dtype=float)[0]
    correlations = correlations - score.sum() * _means(posed)
    noise = rows.scale(eta) * float(rows.curvature(eta).sum()) / n_rows
    lines = []
    starts, members = working.layout.starts, working.layout.members
    for number, one in enumerate(cone.constraints):
        columns = np.concatenate([members[starts[l] : starts[l + 1]] for l in one.groups])
        gradient = np.concatenate(
            [correlations[members[starts[l] : starts[l + 1]]] @ cone.factor(l) for l in one.groups]
        )
        G, spare = cone.working_rows(number), one.A @ coef[0, columns] - one.low
        sizes = np.linalg.norm(G, axis=1)
        limit = (spare <= AT_LIMIT * sizes) & (sizes > 0)
        pressure = 0.0
        if limit.any():
            away = Rows(G[limit] / sizes[limit, None], np.zeros(np.count_nonzero(limit))).nearest(gradient[:, None])
            pressure = float(np.linalg.norm(away[:, 0] - gradient)) / np.sqrt(noise or 1.0)
        selected, least = bool(inside.intersection(one.groups)), FELT
        if not selected and pressure > 1:
            rank: FloatArray = np.array([gradient.size], dtype=float)
            least = float(noise_weights(rank, 1 / TABLES, len(cone.constraints))[0])
        lines.append((one.name, one.text, selected, pressure > least, pressure))
    return pd.DataFrame(lines, columns=["name", "constraint", "selected", "binds", "pressure"])


def _means(posed: Posed) -> FloatArray:
    """The means of the design's columns in working coordinates."""
    means = np.zeros(posed.design.shape[1])
    means[posed.working.layout.members] = posed.working.mean
    return means
