r"""The penalty on coefficients that an l2 penalty on the weights of a network implies.

The cost of coefficients ``w`` is the least ``norm(weights)^2`` among all weights of the network that produce ``w``.
Penalising the weights is the same as penalising ``w`` by this cost (the explicit regularisers of the paper's related
work). It is a formula for the grouped and the diagonal network, and a convex programme for a two-layer multi-channel
linear convolutional one.

With kernels ``u_c`` of size K and output weights ``v_c`` of size D the network computes ``x'w`` for

.. math::

    w = \sum_c u_c * v_c, \qquad w_d = \sum_k Z_{k,\, d-k}, \qquad Z = \sum_c u_c v_c^\top \in \mathbb{R}^{K \times D}

(convolutions are circular). C channels can produce any Z of rank at most C, at a minimal cost of
``sum_c norm(u_c)^2 + norm(v_c)^2 = 2 norm_*(Z)``. With K channels, which always suffice, the cost of ``w`` is therefore
twice the least nuclear norm among all Z whose convolution sums are ``w``: a small semidefinite programme, and a norm.
K = 1 gives the l2 norm, K = D the l1 norm of the discrete Fourier transform over sqrt(D).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from covey.groups import Groups
from covey.validation import FloatArray, as_matrix, as_numbers, as_response, check_scale, positive, whole


def group_quasi_norm(w: object, groups: object, power: float) -> float:
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


def grouped_cost(w: object, groups: object, depth: int = 2) -> float:
    r"""The least ``norm(u)^2 + norm(v)^2`` with ``w_l = u_l^N v_l``.

    For one group of norm s, :math:`a + s^2 a^{-N}` with :math:`a = u^2` is least at :math:`a^{N+1} = N s^2`, so
    the cost is :math:`(1 + 1/N) N^{1/(N+1)} \sum_l \|w_l\|^{2/(N+1)}`: a group quasi-norm, of power 2/3 for N = 2.

    >>> round(grouped_cost([1.0, 0.0], 1), 6)  # 3 / 2^(2/3)
    1.889882
    """
    N = whole(depth, "depth")
    return (1 + 1 / N) * N ** (1 / (N + 1)) * group_quasi_norm(w, groups, 2 / (N + 1))


def diagonal_cost(w: object, depth: int = 2) -> float:
    r"""The least ``norm(u)^2 + norm(v)^2`` with ``w = u^N - v^N`` by entry: :math:`\sum_i |w_i|^{2/N}`, l1 for N = 2.

    One of the two factors is zero, but for N = 1, where each takes half of w: :math:`\sum_i w_i^2 / 2`.

    >>> diagonal_cost([3.0, -4.0])
    7.0
    """
    N = whole(depth, "depth")
    return float(np.sum(np.abs(as_numbers(w, "w")) ** (2 / N))) / (2 if N == 1 else 1)


def convolve_kernels(Z: FloatArray) -> FloatArray:
    """``w_d = sum_k Z[k, d - k]``: the convolution sums of a K x D matrix, circular.

    >>> convolve_kernels(np.outer([1.0, 2.0], [1.0, 0.0, 0.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    Z = as_numbers(Z, "Z", ndim=2)
    return sum((np.roll(row, k) for k, row in enumerate(Z)), start=np.zeros(Z.shape[1]))


def spread_kernels(q: FloatArray, K: int) -> FloatArray:
    """The adjoint of `convolve_kernels`: row k is ``q`` shifted back by k."""
    return np.stack([np.roll(q, -k) for k in range(K)])


@dataclass(frozen=True)
class NuclearNorm:
    """The least nuclear norm, the Z that attains it, and a dual value that proves it to within the gap."""

    value: float
    dual: float
    Z: FloatArray

    @property
    def gap(self) -> float:
        """How far ``value`` can be above the minimum."""
        return max(self.value - self.dual, 0.0)


def least_nuclear_norm(w: object, kernel_size: int, *, tol: float = 1e-9, max_iter: int = 20_000) -> NuclearNorm:
    """Minimise ``norm_*(Z)`` over K x D matrices with ``convolve_kernels(Z) = w``, by Douglas-Rachford splitting.

    The dual is ``max q'w`` over ``q`` whose spread has spectral norm at most 1.

    >>> from covey.paper.baselines import least_nuclear_norm
    >>> round(least_nuclear_norm([3.0, 4.0], 1).value, 6)
    5.0
    """
    target, tol = as_numbers(w, "w", ndim=1), positive(tol, "tol")
    check_scale(target, "w")
    K = _kernel_size(kernel_size, target.size)
    scale = float(np.linalg.norm(target))
    if scale == 0:
        return NuclearNorm(0.0, 0.0, np.zeros((K, target.size)))
    target = target / scale
    rho = 1 / np.sqrt(K)  # about the size of the singular values sought
    X = spread_kernels(target, K) / K
    value, dual, Y = np.inf, 0.0, X
    for _ in range(whole(max_iter, "max_iter")):
        short = target - convolve_kernels(X)
        Y = X + spread_kernels(short, K) / K  # K is the operator times its adjoint
        Z = shrink_singular_values(2 * Y - X, rho)
        q = short / (K * rho)
        value = float(np.linalg.norm(Y, "nuc"))
        dual = max(dual, float(q @ target) / max(1.0, float(np.linalg.norm(spread_kernels(q, K), 2))))
        if value - dual <= tol * value:
            break
        X = X + Z - Y
    return NuclearNorm(scale * value, scale * dual, scale * Y)


def nuclear_regression(
    X: object, y: object, kernel_size: int, penalty: float, *, tol: float = 1e-9, max_iter: int = 20_000
) -> NuclearNorm:
    r"""Minimise ``norm(y - X w)^2/(2n) + penalty norm_*(Z)`` with ``w`` the convolution sums of Z.

    This is the problem that the network with weight decay solves. ``value`` is the objective, ``dual`` a lower bound.
    """
    X = as_matrix(X)
    n, D = X.shape
    y = as_response(y, n)
    check_scale(X, "X")
    check_scale(y, "y")
    K, lam, tol = _kernel_size(kernel_size, D), positive(penalty, "penalty"), positive(tol, "tol")
    if not X.any():
        raise ValueError("X contains only zeros.")
    step = n / (K * float(np.linalg.norm(X, 2)) ** 2)
    Z: FloatArray = np.zeros((K, D))
    ahead, t = Z, 1.0
    value, dual = np.inf, 0.0
    for _ in range(whole(max_iter, "max_iter")):
        g = X.T @ (y - X @ convolve_kernels(ahead)) / n
        new = shrink_singular_values(ahead + step * spread_kernels(g, K), step * lam)
        uphill = float(np.sum((ahead - new) * (new - Z))) > 0
        t_next = 1.0 if uphill else (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead = new if uphill else new + (t - 1) / t_next * (new - Z)
        Z, t = new, t_next
        r = y - X @ convolve_kernels(Z)
        value = float(r @ r) / (2 * n) + lam * float(np.linalg.norm(Z, "nuc"))
        steepest = float(np.linalg.norm(spread_kernels(X.T @ r / n, K), 2))
        s = min(1.0, lam / steepest) if steepest > 0 else 1.0
        dual = max(dual, s * float(2 * (y @ r) - s * (r @ r)) / (2 * n))
        if value - dual <= tol * max(value, np.finfo(float).tiny):
            break
    return NuclearNorm(value, dual, Z)


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """The trained network: minimises ``norm(y - X w)^2/(2n) + weight_decay/2 sum_c (norm(u_c)^2 + norm(v_c)^2)``.

    `kernel_size` is K, and `channels` C, by default K, which always suffices; training ends at a gradient of norm
    `tol`.

    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(30, 12, 3, active=1, values=1.0, random_state=0)
    >>> trained = ConvolutionalNetwork(3, weight_decay=0.1).fit(data.X, data.y, random_state=0)
    >>> least = 2 * least_nuclear_norm(trained.coef, 3).value
    >>> bool(abs(trained.cost / least - 1) < 1e-4)
    True
    """

    kernel_size: int
    channels: int | None = None
    weight_decay: float = 0.1
    tol: float = 1e-9

    def fit(self, X: object, y: object, random_state: int | None = None) -> TrainedNetwork:
        """Train from small random weights by L-BFGS on the gradients of both layers."""
        X = as_matrix(X)
        n, D = X.shape
        y = as_response(y, n)
        K = _kernel_size(self.kernel_size, D)
        C = K if self.channels is None else whole(self.channels, "channels")
        lam = positive(self.weight_decay, "weight_decay")
        start = 0.1 * np.random.default_rng(random_state).standard_normal((K + D) * C)

        def layers(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            return weights[: K * C].reshape(K, C), weights[K * C :].reshape(D, C)

        def objective(weights: FloatArray) -> tuple[float, FloatArray]:
            U, V = layers(weights)
            r = y - X @ convolve_kernels(U @ V.T)
            G = -spread_kernels(X.T @ r / n, K)
            value = float(r @ r) / (2 * n) + lam / 2 * float(weights @ weights)
            return value, np.concatenate([(G @ V).ravel(), (G.T @ U).ravel()]) + lam * weights

        options = {"maxiter": 20_000, "maxfun": 40_000, "gtol": self.tol, "ftol": 0.0, "maxcor": 30}
        result = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        U, V = layers(result.x)
        return TrainedNetwork(U, V, float(result.fun))


@dataclass(frozen=True)
class TrainedNetwork:
    """Kernels U (K x C), output weights V (D x C), and the objective reached."""

    U: FloatArray
    V: FloatArray
    objective: float

    @property
    def coef(self) -> FloatArray:
        """``w = sum_c u_c * v_c``."""
        return convolve_kernels(self.U @ self.V.T)

    @property
    def cost(self) -> float:
        """``sum_c norm(u_c)^2 + norm(v_c)^2``."""
        return float(np.sum(self.U**2) + np.sum(self.V**2))


def shrink_singular_values(A: FloatArray, threshold: float) -> FloatArray:
    """The proximal map of ``threshold norm_*``."""
    left, s, right = scipy.linalg.svd(A, full_matrices=False)
    return (left * np.maximum(s - threshold, 0.0)) @ right


def _kernel_size(kernel_size: object, D: int) -> int:
    K = whole(kernel_size, "kernel_size")
    if K > D:
        raise ValueError(f"kernel_size must be at most the {D} columns, not {K}.")
    return K
