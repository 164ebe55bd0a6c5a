"""From knockoff statistics to selected groups: the knockoff filter, and e-values over several draws."""

from __future__ import annotations

import numpy as np

from covey.validation import FloatArray

__all__ = ["LEVEL", "e_values", "filter_threshold", "largest_set"]

# The level of the filter within each of several draws, as a share of the target; any value controls the rate. A lower
# level leaves room for groups that some draws miss, but a draw then needs more groups to select any.
LEVEL = 0.75


def filter_threshold(statistics: FloatArray, fdr: float) -> float:
    """The least t at which ``(1 + #{W <= -t}) / #{W >= t}`` is at most `fdr`; infinite if there is none.

    Barber and Candès' filter with offset 1.

    >>> filter_threshold(np.array([5.0, 4, 3, 2, -1]), 0.25), filter_threshold(np.array([5.0, 4, 3, -3.5]), 0.25)
    (2.0, inf)
    """
    for t in np.unique(np.abs(statistics[statistics != 0])):
        if (1 + (statistics <= -t).sum()) / max((statistics >= t).sum(), 1) <= fdr:
            return float(t)
    return float("inf")


def e_values(draws: FloatArray, level: float) -> FloatArray:
    r"""The mean over draws of ``L 1{W_l >= T} / (1 + #{W <= -T})``, where T is the filter's threshold at a level.

    The expectations for groups without an effect add up to at most L, whatever the dependence between draws (Ren and
    Barber, 2024). Therefore the largest set with :math:`e_l \ge L / (\alpha k)` has a false discovery rate of at most
    :math:`\alpha`, for any level. For one draw at level :math:`\alpha` it is the filter's selection.

    Parameters
    ----------
    draws : ndarray, shape (n_draws, n_groups)
    level : float
    """
    total = np.zeros(draws.shape[1])
    for statistics in draws:
        t = filter_threshold(statistics, level)
        if np.isfinite(t):
            total += statistics.size * (statistics >= t) / (1 + (statistics <= -t).sum())
    return total / len(draws)


def largest_set(e: FloatArray, fdr: float) -> float:
    """The least e-value of the largest set of k groups whose e-values are all at least ``L / (fdr k)``; else infinite.

    >>> largest_set(np.array([4.0, 4.0, 0.0, 0.0]), 0.5), largest_set(np.array([4.0, 0.0, 0.0, 0.0]), 0.1)
    (4.0, inf)
    """
    order = np.sort(e)[::-1]
    k = np.arange(1, order.size + 1)
    enough = np.flatnonzero(order >= order.size / (fdr * k) * (1 - 1e-12))
    return float(order[enough[-1]]) if enough.size else float("inf")
