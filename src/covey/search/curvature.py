"""The second derivative of the loss in the coefficients, and systems of equations with it.

If it is diagonal in the rows and equal for all outputs, one Cholesky factorisation is enough. If the outputs of a row
interact, small systems are formed in full; large ones are solved by conjugate gradients, preconditioned by the
factorisation for the rows' mean curvature, so that memory does not grow with the square of the number of outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from covey.arrays import host, like
from covey.search.observations import Observations, weighted_gram
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["JITTER", "Curvature", "Solver", "added", "factorised", "solver", "times"]

Solver = Callable[[FloatArray], FloatArray]

# Added to the diagonal, relative to it, so that dependent columns leave the system positive definite.
JITTER = 1e-10

# Systems of up to this many unknowns are formed in full.
MOST_UNKNOWNS = 400

# Conjugate gradients end at this share of the first residual, or at the root of the gradient's size if that is less.
INEXACT, MOST_PRODUCTS = 0.1, 50


class Curvature:
    """``A'HA`` at a recent model, for fits on the same columns."""

    def __init__(self) -> None:
        self.K: FloatArray = np.empty((0, 0))
        self._weight: FloatArray | None = None

    @property
    def known(self) -> bool:
        """Whether it has been computed."""
        return len(self.K) > 0

    def renew(self, response: Observations, A: ArrayOrTensor, eta: FloatArray) -> None:
        """Compute it at a model."""
        if response.loss.coupled:
            self.K = response.gram(eta, A)
        else:
            self._weight = response.curvature(eta)
            self.K = weighted_gram(A, self._weight)

    def extend(self, A: ArrayOrTensor) -> None:
        """Take in the columns of A that come after those known."""
        if not self.known or len(self.K) == A.shape[1]:
            return
        if self._weight is None:
            self.K = np.empty((0, 0))
            return
        k, K = len(self.K), np.empty((A.shape[1], A.shape[1]))
        border = host(A.T @ (A[:, k:] * like(self._weight[:, None], A)))
        K[:k, :k], K[:, k:], K[k:, :k] = self.K, border, border[:k].T
        self.K = K

    def truncate(self, n_columns: int) -> None:
        """Keep the first columns."""
        self.K = self.K[:n_columns, :n_columns]


def times(penalty: FloatArray, coef: FloatArray) -> FloatArray:
    return penalty @ coef if penalty.ndim == 2 else penalty[:, None] * coef


def added(K: FloatArray, penalty: FloatArray | None) -> FloatArray:
    """A copy of K plus the penalty."""
    if penalty is None:
        return K.copy()
    if penalty.ndim == 2:
        return K + penalty
    K = K.copy()
    K.flat[:: len(K) + 1] += penalty
    return K


def solver(
    response: Observations,
    A: ArrayOrTensor,
    eta: FloatArray,
    penalty: FloatArray | None,
    squares: FloatArray,
    K: FloatArray,
    size: float,
) -> Solver:
    """A solver for the second derivative in all coefficients; K is its part for every output alone."""
    if response.loss.vector and response.apart:  # each output has a second derivative of its own
        grams = (one.gram(eta[:, [j]], A) for j, one in enumerate(response.apart))
        solves = [factorised(added(gram, penalty), squares, JITTER) for gram in grams]
        return lambda right: np.hstack([solve(one[:, None]) for solve, one in zip(solves, right.T, strict=True)])
    if response.isotropic:
        return factorised(added(K, penalty), squares, JITTER)
    m = response.n_outputs
    if A.shape[1] * m <= MOST_UNKNOWNS:
        full = factorised(_full_hessian(response, host(A), eta, penalty), np.tile(squares, m), JITTER)
        return lambda right: np.ascontiguousarray(full(right.T.reshape(-1, 1)).reshape(right.shape[::-1]).T)
    near = factorised(added(K, penalty), squares, JITTER)

    def product(direction: FloatArray) -> FloatArray:
        image = host(A.T @ like(response.curvature_product(eta, response.predictor(A, direction)), A))
        return image if penalty is None else image + times(penalty, direction)

    return lambda right: _conjugate_gradients(product, near, right, min(INEXACT, np.sqrt(size)))


def _full_hessian(response: Observations, A: FloatArray, eta: FloatArray, penalty: FloatArray | None) -> FloatArray:
    """The second derivative in all coefficients, ordered output by output."""
    k, m = A.shape[1], response.n_outputs
    H = np.empty((m, k, m, k))
    for b, unit in enumerate(np.eye(m)):
        h = response.curvature_product(eta, np.broadcast_to(unit, eta.shape))
        # all outputs from this one on in one product
        block = A.T @ (A[:, None, :] * h[:, b:, None]).reshape(len(A), -1)
        H[:, :, b, :][b:] = block.reshape(k, m - b, k).transpose(1, 0, 2)
        H[b] = H[:, :, b, :].transpose(1, 0, 2)
        if penalty is not None:
            H[b, :, b, :] += penalty if penalty.ndim == 2 else np.diag(penalty)
    return H.reshape(m * k, m * k)


def factorised(K: FloatArray, squares: FloatArray | None = None, jitter: float = 0.0) -> Solver:
    """A solver for systems with K, which may be singular up to round-off error."""
    if jitter:
        K.flat[:: len(K) + 1] *= 1 + jitter
    factor, failed = dpotrf(K, lower=1)
    scale = np.maximum(np.diag(K), 0.0) if squares is None else squares
    jitter = jitter or JITTER
    while failed:  # no row has curvature in some direction
        jitter *= 100
        factor, failed = dpotrf(K + np.diag(jitter * np.where(scale > 0, scale, 1.0)), lower=1)
    return lambda right: np.asarray(dpotrs(factor, right, lower=1)[0])


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], solve: Solver, right: FloatArray, share: float
) -> FloatArray:
    """Solve ``product(x) = right`` up to a share of the first residual, with `solve` as an approximate inverse."""
    x, residual = np.zeros_like(right), right.copy()
    z = solve(residual)
    direction, size = z, float((residual * z).sum())
    first = size
    for _ in range(MOST_PRODUCTS):
        if size <= share**2 * first:
            break
        image = product(direction)
        bend = float((direction * image).sum())
        if bend <= 0:  # round-off error
            break
        x = x + (size / bend) * direction
        residual = residual - (size / bend) * image
        z = solve(residual)
        size, old = float((residual * z).sum()), size
        direction = z + (size / old) * direction
    return x if x.any() else solve(right)
