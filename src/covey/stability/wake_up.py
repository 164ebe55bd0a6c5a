"""The statistic of a group beside its copy: which of the two wakes up first, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.limit import limit_path
from covey.preprocess.layout import offsets
from covey.validation import FloatArray

__all__ = ["signed_maximum", "wake_up_rates"]


def wake_up_rates(
    Z: FloatArray,
    copies: FloatArray,
    ranks: NDArray[np.intp],
    held: FloatArray,
    y: Any,
    swapped: NDArray[np.bool_],
    weights: FloatArray,
    max_groups: int,
    **options: Any,
) -> tuple[FloatArray, FloatArray]:
    """One over the time at which each group wakes up, and each copy, on the limit path of both; zero for never.

    Parameters
    ----------
    Z, copies : ndarray, shape (n, r)
        Group after group.
    ranks : ndarray of int, shape (n_groups,)
    held : ndarray, shape (n, k)
        Columns that are in the model from the start.
    y : array-like
    swapped : ndarray of bool, shape (n_groups,)
        Where the copy stands before its group. What stands first wins a tie, so that a coin has to decide.
    weights : ndarray, shape (n_groups,)
        Of groups and copies alike.
    max_groups : int
        Where the path ends.
    **options
        Of `covey.limit_path`.
    """
    own = offsets(ranks)
    blocks: list[FloatArray] = [held] if held.shape[1] else []
    for l in range(ranks.size):
        pair = Z[:, own[l] : own[l + 1]], copies[:, own[l] : own[l + 1]]
        blocks += pair[::-1] if swapped[l] else pair
    first = len(blocks) - 2 * ranks.size
    groups = Groups.from_sizes([block.shape[1] for block in blocks])
    path = limit_path(
        np.hstack(blocks), y, groups, always=range(first), max_groups=first + max_groups,
        group_weights=np.concatenate([np.ones(first), np.repeat(weights, 2)]), **options,
    )  # fmt: skip
    rates = np.zeros(2 * ranks.size)
    for place, time in path.entered[first:]:
        rates[place - first] = 1 / time
    pairs = rates.reshape(-1, 2)
    pairs = np.where(swapped[:, None], pairs[:, ::-1], pairs)
    return pairs[:, 0], pairs[:, 1]


def signed_maximum(own: FloatArray, copy: FloatArray) -> FloatArray:
    """The larger of both, negative where it is the copy's; zero where they are equal.

    >>> signed_maximum(np.array([2.0, 1.0, 3.0]), np.array([1.0, 4.0, 3.0]))
    array([ 2., -4.,  0.])
    """
    return np.asarray(np.maximum(own, copy) * np.sign(own - copy))
