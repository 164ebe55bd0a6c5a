r"""The penalty on coefficients that an l2 penalty on a network's weights implies.

The cost of coefficients ``w`` is the least ``norm(weights)^2`` among all weights of the network that produce ``w``.
Penalising the weights is the same as penalising ``w`` by this cost (the explicit regularisers of the paper's related
work).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.groups import Groups
from covey.validation import as_numbers, positive, whole

__all__ = ["diagonal_cost", "group_quasi_norm", "grouped_cost"]


def group_quasi_norm(w: Any, groups: Any, power: float) -> float:
    """``sum_l norm(w_l)^power``: the group norm for power 1; for smaller powers a quasi-norm that favours few groups.

    >>> group_quasi_norm([3.0, 4.0, 1.0], [0, 0, 1], 1.0)
    6.0
    """
    coef = as_numbers(w, "w", ndim=1)
    with np.errstate(over="ignore"):
        total = float(np.sum(Groups.coerce(groups, coef.size).norms(coef) ** positive(power, "power")))
    if not np.isfinite(total):
        raise ValueError(f"w is too large for power={power:g}: the sum overflows.")
    return total


def grouped_cost(w: Any, groups: Any, depth: int = 2) -> float:
    r"""The least ``norm(u)^2 + norm(v)^2`` with ``w_l = u_l^N v_l``.

    For one group of norm s, :math:`a + s^2 a^{-N}` with :math:`a = u^2` is least at :math:`a^{N+1} = N s^2`, so
    the cost is :math:`(1 + 1/N) N^{1/(N+1)} \sum_l \|w_l\|^{2/(N+1)}`: a group quasi-norm, of power 2/3 for N = 2.

    >>> round(grouped_cost([1.0, 0.0], 1), 6)  # 3 / 2^(2/3)
    1.889882
    """
    N = whole(depth, "depth")
    return (1 + 1 / N) * N ** (1 / (N + 1)) * group_quasi_norm(w, groups, 2 / (N + 1))


def diagonal_cost(w: Any, depth: int = 2) -> float:
    r"""The least ``norm(u)^2 + norm(v)^2`` with ``w = u^N - v^N`` by entry: :math:`\sum_i |w_i|^{2/N}`, l1 for N = 2.

    >>> diagonal_cost([3.0, -4.0])
    7.0
    """
    return float(np.sum(np.abs(as_numbers(w, "w")) ** (2 / whole(depth, "depth"))))
