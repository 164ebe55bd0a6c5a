"""Margins of linear classifiers in group norms, which a network maximises once it separates two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from covey.groups import Groups
from covey.losses import Binomial
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, column_names, positive

# Beyond this, log(1 + exp(-m)) equals exp(-m) to the last bit.
FAR = 40.0


@dataclass(frozen=True)
class Margins:
    """Margins of one classifier, or one per row of several.

    `size` is the group norm of the coefficients, ``(sum_l norm(w_l)^q)^(1/q)``, and `margin` the least of ``s_i <x_i,
    w>`` over rows, per unit of `size`; negative if a row is misclassified. `smoothed` is the same with a soft minimum:
    ``m`` with ``log(1 + exp(-m))`` the total loss of all rows. It is never above `margin`, and at most about
    ``log(n) / size`` below it once the loss is small. In the L2,1 norm (``q = 1``) no classifier has a margin above
    any entry of `bound`, which is None for other norms.
    """

    size: FloatArray
    margin: FloatArray
    smoothed: FloatArray
    bound: FloatArray | None


def margins(X: object, y: object, groups: object, coef: object, *, power: float = 1.0) -> Margins:
    r"""Margins of the classifiers ``sign(<x, w>)`` in the norm :math:`(\sum_l \|w_l\|^q)^{1/q}`.

    With :math:`s_i = \pm 1` the class of row i, the margin is :math:`\min_i s_i x_i^\top w` over the norm of w. At
    :math:`q = 1`, the L2,1 norm, every set of weights :math:`p_i \ge 0` that add up to one bounds the margin of every
    classifier:

    .. math::

        \max_{\sum_l \|w_l\| \le 1} \min_i s_i x_i^\top w \;\le\; \max_l \Big\| \sum_i p_i s_i x_{i,l} \Big\|,

    with equality for the best weights. The weights used here are the weights of the rows in the gradient of the
    logistic loss at w, so that a network close to the maximum margin certifies it.

    Parameters
    ----------
    y : array of shape (n,)
        Classes 0 and 1.
    coef : array of shape (p,) or (n_models, p)
        ``w`` of one classifier or several, such as ``trajectory.w``; the result has numbers or arrays accordingly.
    power : float
        q, above 0 and at most 1. The normalised network of depth N corresponds to ``2/N``, the plain one to
        ``2/(N + 1)`` (docs/theory.md); below 1 the problem is not convex.

    References
    ----------
    Lyu and Li, "Gradient descent maximizes the margin of homogeneous neural networks", ICLR 2020 (arXiv 1906.05890),
    for the smoothed margin.

    Examples
    --------
    >>> from covey.paper.theory import margins
    >>> X = np.array([[3.0, 4.0, 1.0], [-3.0, -4.0, 1.0]])
    >>> found = margins(X, [1, 0], [[0, 1], [2]], [30.0, 40.0, 0.0])
    >>> print(found.margin, found.bound)
    5.0 5.0
    """
    matrix = as_matrix(X)
    n, p = matrix.shape
    partition = Groups.coerce(groups, p, column_names(X))
    classes = Binomial().check(as_response(y, n))
    if not np.isin(classes, (0, 1)).all():
        raise ValueError("y must hold the classes 0 and 1: a proportion has no margin.")
    if not positive(power, "power") <= 1:
        raise ValueError(f"power must be above 0 and at most 1, not {power!r}.")
    W = as_numbers(coef, "coef", finite=False)
    if W.ndim not in (1, 2) or W.shape[-1] != p or not np.isfinite(W).all():
        raise ValueError(f"coef must hold {p} finite numbers, or rows of that length, not shape {W.shape}.")
    A = (2 * classes - 1)[:, None] * matrix
    by_row = W @ A.T
    size = (partition.norms(W) ** power).sum(axis=-1) ** (1 / power)
    if not (size > 0).all():
        raise ValueError("coef has an all-zero classifier, which has no margin: leave it out.")
    bound = None
    if power == 1:
        log_weights = -np.logaddexp(0.0, by_row)
        weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
        bound = partition.norms(weights @ A).max(axis=-1) / weights.sum(axis=-1)
    return Margins(size, by_row.min(axis=-1) / size, _soft_minimum(by_row) / size, bound)


def _soft_minimum(m: FloatArray) -> FloatArray:
    """The number whose logistic loss equals the sum over the last axis of m."""
    near = np.minimum(m, FAR)
    total = logsumexp(np.where(m < FAR, np.log(np.logaddexp(0.0, -near)), -m), axis=-1)
    loss = np.exp(total)
    with np.errstate(divide="ignore"):
        return np.where(total < -FAR, -total, -loss - np.log(-np.expm1(-loss)))
