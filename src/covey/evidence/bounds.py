"""Upper bounds on the expected number of groups that stability selection finds by mistake."""

from __future__ import annotations

from typing import Literal

import numpy as np

__all__ = ["Assumption", "expected_false", "largest_first", "least_threshold"]

Assumption = Literal["unimodal", "none"]


def expected_false(
    n_first: int, threshold: float, n_groups: int, *, n_pairs: int = 50, assumption: Assumption = "none"
) -> float:
    r"""An upper bound on the expected number of groups that are selected by mistake.

    A mistake is a selected group that one half-sample selects with probability at most :math:`\theta = q / L`, that is,
    no more often than a random choice of q groups would.

    Parameters
    ----------
    n_first : int
        q, the number of groups that one half-sample selects.
    threshold : float
        The share of half-samples that a group needs to be selected, above 1/2.
    n_groups : int
        L, the number of groups.
    n_pairs : int
        B, the number of complementary pairs.
    assumption : {"none", "unimodal"}
        ``"none"``: :math:`q^2 / ((2 \tau - 1) L)`, the bound of Meinshausen and Bühlmann (2010), which Shah and
        Samworth (2013) prove for complementary pairs without further assumptions. ``"unimodal"``:
        :math:`C(\tau, B) q^2 / L`, their theorem 2, if the share of agreeing pairs has a unimodal distribution for
        every mistake.

    Examples
    --------
    >>> expected_false(10, 0.75, 200)
    1.0
    >>> round(expected_false(10, 0.75, 200, assumption="unimodal"), 3)
    0.51
    """
    tau, B = threshold, n_pairs
    by_chance = n_first**2 / n_groups
    plain = by_chance / (2 * tau - 1) if tau > 0.5 else np.inf
    if assumption == "none":
        return float(plain)
    theta = n_first / n_groups
    if tau > 0.75:
        return float(min(plain, by_chance * 4 * (1 - tau + 1 / (2 * B)) / (1 + 1 / B)))
    if tau > min(0.5 + theta**2, 0.5 + 1 / (2 * B) + 0.75 * theta**2) and 2 * tau - 1 > 1 / (2 * B):
        return float(min(plain, by_chance / (2 * (2 * tau - 1 - 1 / (2 * B)))))
    return float(plain)


def largest_first(max_false: float, threshold: float, n_groups: int, n_pairs: int, assumption: Assumption) -> int:
    """The largest number of groups that a half-sample may select for the bound to hold; at least one."""
    most = 1
    while most < n_groups and (
        expected_false(most + 1, threshold, n_groups, n_pairs=n_pairs, assumption=assumption) <= max_false
    ):
        most += 1
    return most


def least_threshold(
    max_false: float, n_first: int, n_groups: int, n_pairs: int, assumption: Assumption
) -> float | None:
    """The least share of half-samples for which the bound holds; None if there is none."""
    for agreeing in range(n_pairs + 1, 2 * n_pairs + 1):
        tau = agreeing / (2 * n_pairs)
        if expected_false(n_first, tau, n_groups, n_pairs=n_pairs, assumption=assumption) <= max_false:
            return tau
    return None
