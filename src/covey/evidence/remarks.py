"""Caveats about a selection: where its guarantee says less than it seems to."""

from __future__ import annotations

import math

import numpy as np

from covey.designs import Design
from covey.evidence.filter import LEVEL
from covey.evidence.overlap import find_overlaps
from covey.evidence.selections import KnockoffSelection, StabilitySelection
from covey.selection import Problem

__all__ = ["knockoff_remarks", "stability_remarks"]

# The most pairs that one sentence names.
MOST_NAMED = 5

# Below this distance, copies resemble their groups so much that hardly anything can be found.
NEAR = 0.1

# The number of rows used to decide whether a column has only two values.
ROWS_EXAMINED = 1000


def stability_remarks(found: StabilitySelection, problem: Problem) -> tuple[str, ...]:
    """Caveats if the number per half-sample, group weights or correlations may have decided the selection."""
    remarks = []
    if found.is_selected.sum() >= found.n_first:
        remarks.append(
            f"As many groups were selected as each half of the rows may select ({found.n_first}), so there may be "
            "more: a larger max_false allows more."
        )
    sizes, weights = np.delete(found.groups.sizes, problem.always), problem.options["group_weights"]
    if sizes.min() < sizes.max() and not (isinstance(weights, str) and weights == "noise"):
        remarks.append(
            f"Groups have {sizes.min()} to {sizes.max()} columns, and group_weights is not 'noise': by chance alone, "
            "groups of some sizes are found more often than others, which the bound does not count as mistakes."
        )
    pairs = _close_pairs(found, problem)
    if pairs:
        more = f"; and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
        remarks.append(
            f"Selected groups are strongly correlated with others: {'; '.join(pairs[:MOST_NAMED])}{more}. Half of the "
            "rows can select one in place of the other, which the bound does not count as a mistake: read each pair "
            "as one finding."
        )
    return tuple(remarks)


def _close_pairs(found: StabilitySelection, problem: Problem) -> list[str]:
    """Selected groups that are close to another group, which could replace them."""
    selected, names = np.flatnonzero(found.is_selected), found.groups.names
    if not selected.size or len(names) < 2:
        return []
    dummy_response = np.zeros(problem.design.shape[0])
    centre = problem.options["fit_intercept"]
    pairs = find_overlaps(problem.design, dummy_response, found.groups, selected, centre=centre).pairs
    return [f"{names[p.group]} with {names[p.other]} ({p.correlation:.2f})" for p in pairs if p.is_close]


def knockoff_remarks(found: KnockoffSelection, design: Design) -> tuple[str, ...]:
    """Caveats if little could be found, or if columns do not match the copies' assumptions."""
    remarks = []
    if found.distance < NEAR:
        remarks.append(
            f"Groups explain each other so well that copies hardly differ from them (distance {found.distance:.2f} of "
            "1), and little can be found: merge groups that carry the same information."
        )
    if not found.is_selected.any():
        level = found.fdr if found.n_draws == 1 else LEVEL * found.fdr
        remarks.append(
            f"No group is selected. At fdr={found.fdr:g} {'the filter' if found.n_draws == 1 else 'a draw'} selects at "
            f"least {math.ceil(1 / level - 1e-9)} groups or none: if fewer matter, a larger fdr or stability selection "
            "can find them."
        )
    if found.kind == "gaussian":
        X = np.asarray(design.take(np.arange(design.shape[1])))
        two = int(sum(np.unique(column[:ROWS_EXAMINED]).size <= 2 for column in X.T))
        if two:
            remarks.append(
                f"{two} of {design.shape[1]} columns have two values, and normal copies match only their means and "
                "correlations: the rate holds approximately."
            )
    return tuple(remarks)
