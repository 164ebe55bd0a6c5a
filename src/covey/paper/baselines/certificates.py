r"""Bound the suboptimality of a group-lasso solution from the solution alone.

For ``P(w) = norm(y - X w)^2/(2n) + lam sum_l omega_l norm(w_l)`` every vector ``s r`` with ``r = y - X w`` that meets
``s norm(X_l'r)/n <= lam omega_l`` for all groups is dual feasible, and

.. math::

    D(s r) = \frac{1}{2n} \left( \|y\|^2 - \|y - s r\|^2 \right) \le \min P \le P(w).

Therefore ``P(w) - D`` bounds the suboptimality, whatever method found ``w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.groups import Groups
from covey.paper.baselines.units import read_group_weights
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, check_scale, positive

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True)
class Certificate:
    """Bounds for a candidate solution.

    Attributes
    ----------
    primal, dual : float
        The objective, and a lower bound on its minimum.
    kkt : float
        The largest violation of stationarity, relative to the penalty: on a zero group
        ``(norm(g_l) - lam omega_l)_+``, elsewhere ``norm(g_l - lam omega_l w_l/norm(w_l))``, over ``lam omega_l``.
    """

    primal: float
    dual: float
    kkt: float

    @property
    def gap(self) -> float:
        """The duality gap: the objective is at most this far above its minimum."""
        return max(self.primal - self.dual, 0.0)


def certify(X: Any, y: Any, groups: Any, w: Any, penalty: float, group_weights: Any = "sqrt") -> Certificate:
    """Certify ``w`` for ``norm(y - X w)^2/(2n) + penalty sum_l omega_l norm(w_l)``.

    There is no intercept: centre X and y first if the model has one.

    Examples
    --------
    >>> import numpy as np
    >>> from covey.paper.baselines import certify
    >>> X, y = np.sqrt(2) * np.eye(2), np.sqrt(2) * np.array([3.0, 4.0])
    >>> certify(X, y, [0, 0], [2.4, 3.2], penalty=1.0, group_weights="unit").gap < 1e-12  # (1 - 1/5) times (3, 4)
    True
    """
    matrix = as_matrix(X)
    n, p = matrix.shape
    response = as_response(y, n)
    partition = Groups.coerce(groups, p)
    coef = as_numbers(w, "w")
    for values, name in ((matrix, "X"), (response, "y"), (coef, "w")):
        check_scale(values, name)
    if coef.shape != (p,):
        raise ValueError(f"w must hold {p} numbers, one per column of X, not shape {coef.shape}.")
    limits = positive(penalty, "penalty") * read_group_weights(group_weights, partition)

    r = response - matrix @ coef
    g = matrix.T @ r / n
    norms, rates = partition.norms(coef), partition.norms(g)
    primal = float(r @ r / (2 * n) + limits @ norms)
    dual = dual_value(response, r, rates, limits)
    pull = np.divide(limits, norms, out=np.zeros_like(norms), where=norms > 0)[partition.labels] * coef
    off = np.where(norms > 0, partition.norms(g - pull), np.maximum(rates - limits, 0.0))
    return Certificate(primal, dual, float(np.max(off / limits)))


def dual_value(y: FloatArray, r: FloatArray, rates: FloatArray, limits: FloatArray) -> float:
    """The best dual value along the residual; ``rates`` are ``norm(X_l'r)/n``, ``limits`` are ``lam omega_l``."""
    square = float(r @ r)
    if square == 0.0:
        return 0.0
    with np.errstate(divide="ignore"):
        most = float(np.min(np.where(rates > 0, limits / rates, np.inf)))
    s = np.clip(float(y @ r) / square, -most, most)
    # s (2 y'r - s r'r), not a difference of squares: nothing cancels near the optimum
    return float(s * (2 * (y @ r) - s * square) / (2 * y.size))
