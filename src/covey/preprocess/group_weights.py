"""Weights that divide the groups' gradients, so that size alone does not decide which group comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from covey.validation import FloatArray

__all__ = ["noise_weights", "read_weights"]


def noise_weights(ranks: FloatArray, first: float) -> FloatArray:
    """The norm that pure noise exceeds in about `first` groups, if all groups had this dimension.

    In working coordinates, n times the squared norm of a group's correlation with noise is chi-squared with as many
    degrees of freedom as the group has dimensions. Its mean grows with the dimension faster than its spread, so weights
    by the mean (the square root of the dimension) would favour groups of one column.
    """
    distinct, position = np.unique(ranks, return_inverse=True)
    share = min(first / (ranks.size + 1), 0.5)
    return np.asarray(np.sqrt(chdtri(distinct, share))[position])


def read_weights(group_weights: Any, ranks: NDArray[Any], first: float = 1.0) -> NDArray[np.float64]:
    """Weights of mean one for groups of these dimensions: a group of weight 2 wakes half as fast.

    With "noise", they are fair to groups of all sizes until about `first` groups are awake.
    """
    if group_weights is None:
        return np.ones(ranks.size)
    if isinstance(group_weights, str):
        if group_weights not in ("noise", "sqrt"):
            raise ValueError(
                f"group_weights must be 'noise', 'sqrt', None or one number per group, not {group_weights!r}."
            )
        sizes = np.maximum(ranks, 1).astype(float)
        named = noise_weights(sizes, first) if group_weights == "noise" else np.sqrt(sizes)
        return (named / named.mean()).astype(np.float64)
    try:
        weights: NDArray[np.float64] = np.asarray(group_weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("group_weights must be 'noise', 'sqrt', None or one number per group.") from None
    if weights.shape != (ranks.size,):
        raise ValueError(f"group_weights has shape {weights.shape}; there are {ranks.size} groups.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if bad.size:
        raise ValueError(f"group_weights must be above 0 and finite; group {bad[0]} has {weights[bad[0]]:g}.")
    largest = weights.max()
    return (weights / largest) / (weights / largest).mean()
