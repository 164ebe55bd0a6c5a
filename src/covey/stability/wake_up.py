"""How fast groups and their copies wake up on their joint limit path: the knockoff statistic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import as_design
from covey.designs.rows import count_rows
from covey.groups import Groups
from covey.layout import offsets
from covey.limit.posing import pose
from covey.limit.rows import Split
from covey.losses import Loss
from covey.search.paths import Near, Paths
from covey.threads import fitting_threads
from covey.validation import FloatArray

__all__ = ["signed_maximum", "wake_up_rates"]


def wake_up_rates(
    Z: FloatArray,
    copies: FloatArray,
    ranks: NDArray[np.intp],
    held: FloatArray,
    y: Any,
    weight: FloatArray,
    swapped: NDArray[np.bool_],
    group_weights: FloatArray,
    max_groups: int,
    *,
    loss: Loss,
    offset: Any = None,
    fit_intercept: bool = True,
    factors: int | str = 0,
) -> tuple[FloatArray, FloatArray]:
    """One over the time that each group and copy needs to wake up at the model that it joins; zero if it never does.

    What it accumulated earlier, before other groups woke up, does not count: a neighbour of a group with an effect
    accumulates that group's correlation, and so does the neighbour's copy.

    Parameters
    ----------
    Z, copies : ndarray, shape (n, r)
        Columns group by group.
    ranks : ndarray of int, shape (n_groups,)
    held : ndarray, shape (n, k)
        Columns that are in the model from the start.
    y, weight : array-like
        The validated response, and the weights of the rows.
    swapped : ndarray of bool, shape (n_groups,)
        Whether the copy is placed before its group. The first of two wins a tie, so a coin should decide this.
    group_weights : ndarray, shape (n_groups,)
        Weights, the same for a group and its copy.
    max_groups : int
        The number of groups and copies at which the path ends.
    loss, offset, fit_intercept, factors
        As in `covey.limit.posing.pose`.
    """
    own = offsets(ranks)
    blocks: list[FloatArray] = [held] if held.shape[1] else []
    for l in range(ranks.size):
        pair = Z[:, own[l] : own[l + 1]], copies[:, own[l] : own[l + 1]]
        blocks += pair[::-1] if swapped[l] else pair
    first = len(blocks) - 2 * ranks.size
    design = as_design(np.hstack(blocks))
    with fitting_threads(design.shape, design.on_device):
        posed = pose(
            design, y, Groups.from_sizes([block.shape[1] for block in blocks]), weight, [weight],
            [count_rows(weight)], [Split((0,))], loss=loss, offset=offset, fit_intercept=fit_intercept,
            factors=factors, group_weights=np.concatenate([np.ones(first), np.repeat(group_weights, 2)]),
        )  # fmt: skip
        paths = Paths(Near(posed), [range(first)])
        paths.advance(max_groups)
    rates = np.zeros(2 * ranks.size)
    rates[np.array(paths.groups(0)[first:], dtype=np.intp) - first] = paths.paths[0].speeds[first:]
    pairs = rates.reshape(-1, 2)
    pairs = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    return pairs[:, 0], pairs[:, 1]


def signed_maximum(own: FloatArray, copy: FloatArray) -> FloatArray:
    """The larger of the two, negative if it is the copy's; zero if they are equal.

    >>> signed_maximum(np.array([2.0, 1.0, 3.0]), np.array([1.0, 4.0, 3.0]))
    array([ 2., -4.,  0.])
    """
    return np.asarray(np.maximum(own, copy) * np.sign(own - copy))
