"""The knockoff statistic: how fast groups and their copies wake up on their joint limit path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import as_design
from covey.evidence.columns import Columns
from covey.groups import Groups
from covey.layout import offsets
from covey.limit.lockstep import Near, Paths
from covey.limit.posing import pose
from covey.limit.rows import Split
from covey.threads import fitting_threads
from covey.validation import FloatArray

__all__ = ["signed_maximum", "wake_up_rates"]


def wake_up_rates(
    columns: Columns,
    copies: FloatArray,
    y: Any,
    weight: FloatArray,
    swapped: NDArray[np.bool_],
    group_weights: FloatArray,
    max_groups: int,
    **options: Any,
) -> tuple[FloatArray, FloatArray]:
    """One over the time that each group and copy needs to wake up at the model that it joins; zero if it never does.

    What it accumulated earlier, before other groups woke up, does not count: a neighbour of a group with an effect
    accumulates that group's correlation, and so does the neighbour's copy.

    Parameters
    ----------
    columns : Columns
    copies : ndarray, shape (n, r)
    y, weight : array-like
        The validated response, and the weights of the rows.
    swapped : ndarray of bool, shape (n_groups,)
        Whether the copy is placed before its group. The first of two wins a tie, so a coin should decide this.
    group_weights : ndarray, shape (n_groups,)
        Weights, the same for a group and its copy.
    max_groups : int
        The number of groups and copies at which the path ends.
    **options
        ``loss``, ``offset``, ``fit_intercept`` and ``factors``, as in `covey.limit.posing.pose`.
    """
    n_groups, starts = columns.ranks.size, offsets(columns.ranks)
    blocks: list[FloatArray] = [columns.held] if columns.held.shape[1] else []
    n_held = len(blocks)
    for l in range(n_groups):
        span = slice(starts[l], starts[l + 1])
        pair = columns.Z[:, span], copies[:, span]
        blocks += pair[::-1] if swapped[l] else pair
    design = as_design(np.hstack(blocks))
    with fitting_threads(design.shape, design.on_device):
        posed = pose(
            design, y, Groups.from_sizes([block.shape[1] for block in blocks]), weight, [weight],
            [design.count(weight)], [Split((0,))],
            group_weights=np.concatenate([np.ones(n_held), np.repeat(group_weights, 2)]), **options,
        )  # fmt: skip
        paths = Paths(Near(posed), [range(n_held)])
        paths.advance(max_groups)
    rates = np.zeros(2 * n_groups)
    rates[np.array(paths.groups(0)[n_held:], dtype=np.intp) - n_held] = paths.paths[0].speeds[n_held:]
    pairs = rates.reshape(-1, 2)
    pairs = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    return pairs[:, 0], pairs[:, 1]


def signed_maximum(group: FloatArray, copy: FloatArray) -> FloatArray:
    """The larger of the two, negative if it is the copy's; zero if they are equal.

    >>> signed_maximum(np.array([2.0, 1.0, 3.0]), np.array([1.0, 4.0, 3.0]))
    array([ 2., -4.,  0.])
    """
    return np.asarray(np.maximum(group, copy) * np.sign(group - copy))
