"""Caveats about a selection: where its guarantee says less than it seems to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design
from covey.groups import Groups
from covey.stability.evidence import LEVEL
from covey.stability.overlap import Overlap, find_overlaps

if TYPE_CHECKING:
    from covey.stability.knockoff_result import KnockoffSelection
    from covey.stability.result import StabilitySelection

__all__ = ["close_pairs", "on_correlation", "on_knockoffs", "on_sizes", "on_the_number"]

# The most pairs that one sentence names.
MOST_NAMED = 5

# Below this distance, copies resemble their groups so much that hardly anything can be found.
NEAR = 0.1

# The number of rows used to decide whether a column has only two values.
ROWS_LOOKED_AT = 1000


def on_correlation(design: Design, groups: Groups, selected: NDArray[np.bool_], centre: bool) -> list[str]:
    """Selected groups that other groups could replace."""
    pairs = close_pairs(design, groups, np.flatnonzero(selected), centre)
    if not pairs:
        return []
    names = groups.names
    told = "; ".join(f"{names[p.group]} with {names[p.other]} ({p.correlation:.2f})" for p in pairs[:MOST_NAMED])
    more = f"; and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    return [
        f"Selected groups are strongly correlated with others: {told}{more}. Half of the rows can select one in place "
        "of the other, which the bound does not count as a mistake: read each pair as one finding."
    ]


def close_pairs(design: Design, groups: Groups, which: NDArray[np.intp], centre: bool) -> list[Overlap]:
    """Groups and the group each is most easily confused with, if the two are close."""
    if not which.size or groups.n_groups < 2:
        return []
    # a dummy response: nothing depends on it
    pairs = find_overlaps(design, np.zeros(design.shape[0]), groups, which, centre=centre).pairs
    return [pair for pair in pairs if pair.is_close]


def on_sizes(groups: Groups, always: list[int], group_weights: Any) -> list[str]:
    """A caveat if group weights favour some sizes."""
    sizes = np.delete(groups.sizes, always)
    if isinstance(group_weights, str) and group_weights == "noise":
        return []
    if sizes.min() == sizes.max():
        return []
    return [
        f"Groups have {sizes.min()} to {sizes.max()} columns, and group_weights is not 'noise': by chance alone, "
        "groups of some sizes are found more often than others, which the bound does not count as mistakes."
    ]


def on_the_number(found: StabilitySelection) -> list[str]:
    """A caveat if the number of groups per half-sample may have limited the selection."""
    if found.is_selected.sum() < found.n_first:
        return []
    return [
        f"As many groups were selected as each half of the rows may select ({found.n_first}), so there may be more: a "
        "larger max_false allows more."
    ]


def on_knockoffs(found: KnockoffSelection, design: Design) -> list[str]:
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
        two = int(sum(np.unique(column[:ROWS_LOOKED_AT]).size <= 2 for column in X.T))
        if two:
            remarks.append(
                f"{two} of {design.shape[1]} columns have two values, and normal copies match only their means and "
                "correlations: the rate holds approximately."
            )
    return remarks
