"""Which constraints bind: those that hold the selected model back from where the rows would take it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from covey.layout import offsets, spans
from covey.preprocess.factoring import block_diagonal
from covey.preprocess.working import noise_weights
from covey.search.constraints.cone import Rows
from covey.search.posed import Posed
from covey.validation import FloatArray, on_host

__all__ = ["binding_table"]

# A group that is left out is held back by its constraint if the part of its gradient that the constraint cuts off is
# larger than pure noise makes it for one of all constraints in so many tables.
TABLES = 20.0

# In a model, a constraint that is kept with less than this to spare, in the units of its columns, is at its limit; and
# it holds the model back if the gradient presses by more than so many standard errors.
AT_LIMIT, FELT = 1e-8, 1e-3


def binding_table(posed: Posed, coef: FloatArray, intercept: FloatArray, n_rows: float) -> pd.DataFrame:
    """One line per constraint: whether it binds, and how hard the rows press against it.

    Parameters
    ----------
    posed : Posed
    coef, intercept : ndarray, shape (n_outputs, n_columns) and (n_outputs,)
        The selected model, group by group.
    n_rows : float
        The number of rows; a row of weight two counts as two rows.

    Returns
    -------
    DataFrame
        With the columns ``name``, ``constraint``, ``selected``, ``binds`` and ``pressure``: the norm of the part of the
        gradient that the constraint cuts off, over all outputs, in standard errors.
    """
    cone, working = posed.cone, posed.working
    assert cone is not None
    design = posed.design
    used = np.flatnonzero(coef.any(axis=0))
    eta = np.asarray(on_host(design.predict(used, coef[:, used], intercept)), dtype=float)
    rows = posed.response.rows(np.arange(design.shape[0]))
    eta, m = (eta.reshape(len(eta), -1) - posed.level) / posed.scale, len(coef)
    score = rows.score(eta)
    correlations = np.asarray(on_host(design.correlate(np.ascontiguousarray(score.T))), dtype=float)
    layout = working.layout
    by_group = correlations[:, layout.members].T - np.outer(working.mean, score.sum(axis=0))
    gradient = np.asarray(block_diagonal(working.factors, layout.sizes, working.ranks).T @ by_group)
    unit = np.sqrt(rows.scale(rows.total(eta)) / m * float(rows.curvature(eta).sum()) / n_rows) or 1.0
    # groups that are left out are at zero, where their cones are known
    products = gradient.copy()
    cone.project(products, np.arange(working.ranks.size), working.starts)
    cut_off = np.linalg.norm([working.group_norms(one) for one in (gradient - products).T], axis=0) / unit
    groups = [l for one in cone.constraints for l in one.groups]
    firsts = offsets([len(one.groups) for one in cone.constraints])
    ranks = m * np.maximum(np.add.reduceat(working.ranks[groups], firsts[:-1]), 1.0)
    noise, lines = noise_weights(ranks, 1 / TABLES, len(ranks)), []
    inside = set(np.repeat(np.arange(working.ranks.size), layout.sizes)[coef[:, layout.members].any(axis=0)].tolist())
    for number, one in enumerate(cone.constraints):
        selected = not inside.isdisjoint(one.groups)
        if selected or len(one.groups) > 1:
            b = coef[:, layout.members[cone.columns(number)]]
            at = spans(working.starts, np.array(one.groups))
            G, spare = cone.working_rows(number), b @ one.A.T - one.low
            each = [_pressure(G, spare[o], gradient[at, o]) for o in range(m)]
            pressure = float(np.linalg.norm(each)) / unit
        else:
            pressure = float(cut_off[one.groups[0]])
        lines.append((one.name, one.text, selected, bool(pressure > (FELT if selected else noise[number])), pressure))
    return pd.DataFrame(lines, columns=["name", "constraint", "selected", "binds", "pressure"])


def _pressure(G: FloatArray, spare: FloatArray, gradient: FloatArray) -> float:
    """The norm of what inequalities that have nothing to spare cut off from a gradient."""
    sizes = np.linalg.norm(G, axis=1)
    limit = (spare <= AT_LIMIT * sizes) & (sizes > 0)
    held = Rows(G[limit] / sizes[limit, None], np.zeros(np.count_nonzero(limit)))
    return float(np.linalg.norm(held.nearest(gradient[:, None])[:, 0] - gradient))
