"""Upper bounds on the expected number of groups that stability selection finds by mistake."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from covey.validation import one_of

Assumption = Literal["r-concave", "none"]
ASSUMPTIONS = ("r-concave", "none")

# Shah and Samworth's powers for the share of agreeing pairs, and for the share of half-samples.
PAIRS_CONCAVITY, HALVES_CONCAVITY = -0.5, -0.25

# The range of the shift of the extremal distributions: the first is a point mass at zero, the last uniform.
LEAST_SHIFT, MOST_SHIFT = 1e-5, 1e5

# Thresholds are multiples of one over the number of half-samples, up to rounding errors of this size.
ROUNDING = 1e-9


def expected_false(
    n_first: float, threshold: float, n_groups: int, *, n_pairs: int = 50, assumption: Assumption = "r-concave"
) -> float:
    r"""An upper bound on the expected number of groups that are selected by mistake.

    A mistake is a selected group that one half-sample selects with probability at most :math:`\theta = q / L`, that is,
    no more often than a random choice of q groups would.

    Parameters
    ----------
    n_first : float
        q, the number of groups that one half-sample selects; or :math:`\theta L` for another :math:`\theta`.
    threshold : float
        :math:`\tau`, the share of half-samples that a group needs to be selected.
    n_groups : int
        L, the number of groups.
    n_pairs : int
        B, the number of complementary pairs.
    assumption : {"r-concave", "none"}
        ``"none"``: :math:`q^2 / ((2 \tau - 1) L)`, the bound of Meinshausen and Bühlmann (2010), which Shah and
        Samworth (2013) prove for complementary pairs without further assumptions. ``"r-concave"``:
        :math:`L \min\{D(\theta^2, 2\tau - 1, B, -1/2), D(\theta, \tau, 2B, -1/4)\}`, their equation 8, if the share of
        agreeing pairs has a -1/2-concave distribution and the share of half-samples a -1/4-concave one; only this holds
        for thresholds of at most 1/2. See `tail_bound` for D.

    Examples
    --------
    >>> expected_false(10, 0.75, 200, assumption="none")
    1.0
    >>> round(expected_false(10, 0.75, 200), 3)
    0.13
    """
    tau, B = threshold, n_pairs
    one_of(assumption, ASSUMPTIONS, "assumption")
    if not (0 < tau <= 1 + ROUNDING and 0 <= n_first <= n_groups):
        raise ValueError(
            f"threshold must be above 0 and at most 1, and n_first at most n_groups: not {tau:g}, and {n_first:g} of "
            f"{n_groups}."
        )
    theta = n_first / n_groups
    plain = n_first**2 / n_groups / (2 * tau - 1) if tau > 0.5 else np.inf
    if assumption == "none":
        return float(plain)
    halves = math.ceil(2 * B * tau - ROUNDING)
    agreeing = tail_bound(theta**2, halves - B, B, PAIRS_CONCAVITY)
    return float(min(plain, n_groups * agreeing, n_groups * tail_bound(theta, halves, 2 * B, HALVES_CONCAVITY)))


@lru_cache(maxsize=4096)
def tail_bound(mean: float, least: int, n: int, r: float) -> float:
    r"""Shah and Samworth's D: the most that :math:`P(X \ge t)` can be for an r-concave X with a mean of at most `mean`.

    X takes the values 0, 1/n, ..., 1, t is ``least / n``, and r is negative: for the probabilities f, :math:`f^r` is
    convex. The largest tails belong to :math:`f_i \propto (a + i)^{1/r}` on 0, ..., k, with part of a further value
    k + 1; for every k, the shift a is searched between those that have the mean without that value and with all of it.

    >>> tail_bound(0.1, 0, 50, -0.5), round(tail_bound(0.1, 30, 50, -0.5), 4)
    (1.0, 0.031)
    """
    m = mean * n
    first = math.ceil(2 * m - ROUNDING) + 1  # below, a uniform distribution has too small a mean
    if least < first or first > n:
        return 1.0

    def weights(a: float, k: int) -> np.ndarray:
        # relative to the first value, so that no shift overflows
        return np.asarray((1 + np.arange(k + 1) / a) ** (1 / r))

    def shift(k: int) -> float:
        def too_much(log_a: float) -> float:
            f = weights(np.exp(log_a), k)
            return float(np.arange(k + 1) @ f / f.sum() - m)

        low, high = np.log(LEAST_SHIFT), np.log(MOST_SHIFT)
        if too_much(low) >= 0 or too_much(high) <= 0:
            return LEAST_SHIFT if too_much(low) >= 0 else MOST_SHIFT
        return float(np.exp(brentq(too_much, low, high)))

    def tail(a: float, k: int) -> float:
        f = weights(a, k)
        return float(1 - (k + 1 - m) * f[:least].sum() / ((k + 1 - np.arange(k + 1)) @ f))

    shifts = {k: shift(k) for k in range(max(first, least) - 1, n + 1)}
    best = tail(shifts[n], n)
    for k in range(max(first, least) - 1, n):
        ends = sorted((np.log(shifts[k + 1]), np.log(shifts[k])))
        found = minimize_scalar(lambda log_a, k=k: -tail(np.exp(log_a), k), bounds=ends, method="bounded")
        best = max(best, -float(found.fun), *(tail(np.exp(end), k) for end in ends))
    return min(best, 1.0)


def largest_first(max_false: float, threshold: float, n_groups: int, n_pairs: int, assumption: Assumption) -> int:
    """The largest number of groups that a half-sample may select for the bound to hold; at least one."""
    most = 1
    while most < n_groups and (
        expected_false(most + 1, threshold, n_groups, n_pairs=n_pairs, assumption=assumption) <= max_false
    ):
        most += 1
    return most


def least_threshold(
    max_false: float, n_first: float, n_groups: int, n_pairs: int, assumption: Assumption, least: float = 0.0
) -> float | None:
    """The least share of half-samples, from `least` on, for which the bound holds; None if there is none."""

    def holds(halves: int) -> bool:
        tau = halves / (2 * n_pairs)
        return expected_false(n_first, tau, n_groups, n_pairs=n_pairs, assumption=assumption) <= max_false

    low, high = max(math.ceil(2 * n_pairs * least - ROUNDING), 1), 2 * n_pairs
    if not holds(high):
        return None
    while low < high:  # the bound falls with the threshold
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low / (2 * n_pairs)
