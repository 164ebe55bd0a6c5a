"""The minimiser of a loss on some columns: damped Newton steps, certified by the gradient.

Every step solves ``(A'HA + P) d = g`` with H the second derivative of the loss in the linear predictor. Where H is one
number per row this is one Cholesky factorisation, whatever the number of outputs. Where the outputs of a row depend on
each other, small systems are formed whole; large ones are solved by conjugate gradients with the factorisation for the
rows' mean curvature as preconditioner, so that nothing large has the size of outputs squared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from covey.limit.response import Response
from covey.validation import FloatArray

__all__ = ["Fit", "minimise"]

# The gradient of a fit is at most this share of what the response without a model would give a column of its length.
TOLERANCE = 1e-9

MOST_STEPS = 100

# Full steps that shrink the gradient by less than SHRINKS, when so many have been made: Newton's method is faster than
# that unless the minimum lies at infinity, where every step adds a constant to the predictor.
SLOW_STEPS, SHRINKS = 10, 0.2

# The share of the expected decrease that a step must reach, and how often it is halved to reach it.
DECREASE, MOST_HALVINGS = 1e-4, 40

# Added to the curvature of each column, relative to it, where columns depend on each other.
JITTER = 1e-10

# Systems of up to this many unknowns are formed whole.
MOST_UNKNOWNS = 400

# Conjugate gradients end at this share of the first residual, or at the root of the gradient's size if that is less.
INEXACT, MOST_PRODUCTS = 0.1, 50


@dataclass(frozen=True)
class Fit:
    """A minimiser.

    Attributes
    ----------
    coef : ndarray, shape (n_columns, n_outputs)
    eta : ndarray, shape (n_rows, n_outputs)
        The linear predictor, without the offset.
    status : str
        "converged": the gradient is below the tolerance. "separated": the minimum lies at infinity, as it does where
        classes can be told apart without error. "stalled": no step lowers the loss any more.
    n_steps : int
    """

    coef: FloatArray
    eta: FloatArray
    status: Literal["converged", "separated", "stalled"]
    n_steps: int


def minimise(
    response: Response, A: FloatArray, penalty: FloatArray | None = None, start: FloatArray | None = None
) -> Fit:
    """Minimise the total loss of ``A coef`` plus half of ``coef' penalty coef`` of every output.

    Parameters
    ----------
    response : Response
    A : ndarray, shape (n_rows, n_columns)
    penalty : ndarray, shape (n_columns, n_columns), optional
        A positive semidefinite form.
    start : ndarray, shape (n_columns, n_outputs), optional
        Zero by default.
    """
    k, m = A.shape[1], response.n_outputs
    coef = np.zeros((k, m)) if start is None else np.array(start, dtype=float)
    eta = A @ coef
    if k == 0:
        return Fit(coef, eta, "converged", 0)
    squares = response.weight @ (A * A)
    unit = response.unit * np.sqrt(squares)
    value, slow, before = _value(response, eta, coef, penalty), 0, np.inf
    for step in range(MOST_STEPS):
        gradient = A.T @ response.score(eta)
        if penalty is not None:
            gradient -= penalty @ coef
        size = float((np.abs(gradient).max(axis=1) / np.where(unit > 0, unit, np.inf)).max())
        if size <= TOLERANCE:
            return Fit(coef, eta, "converged", step)
        slow += size > SHRINKS * before
        if slow > SLOW_STEPS and penalty is None:
            return Fit(coef, eta, "separated", step)
        direction = _direction(response, A, eta, gradient, penalty, squares, size)
        move, slope = A @ direction, float((gradient * direction).sum())
        length = 1.0
        for _ in range(MOST_HALVINGS):
            tried = _value(response, eta + length * move, coef + length * direction, penalty)
            if tried <= value - DECREASE * length * slope + 4 * np.finfo(float).eps * abs(value):
                break
            length /= 2
        else:
            return Fit(coef, eta, "converged" if size <= np.sqrt(TOLERANCE) else "stalled", step)
        coef, eta, value = coef + length * direction, eta + length * move, tried
        before = size if length == 1.0 else np.inf
    return Fit(coef, eta, "separated" if penalty is None else "stalled", MOST_STEPS)


def _value(response: Response, eta: FloatArray, coef: FloatArray, penalty: FloatArray | None) -> float:
    total = response.total(eta)
    return total if penalty is None else total + 0.5 * float((coef * (penalty @ coef)).sum())


def _direction(
    response: Response,
    A: FloatArray,
    eta: FloatArray,
    gradient: FloatArray,
    penalty: FloatArray | None,
    squares: FloatArray,
    size: float,
) -> FloatArray:
    """Where the quadratic model of the loss is least; `size` is that of the gradient."""
    k, m = gradient.shape
    if not response.isotropic and k * m <= MOST_UNKNOWNS:
        solve = _factorised(_full_hessian(response, A, eta, penalty), np.tile(squares, m))
        return np.ascontiguousarray(solve(gradient.T.reshape(-1, 1)).reshape(m, k).T)
    B = A * np.sqrt(response.curvature(eta))[:, None]
    K = B.T @ B  # of a matrix with its own transpose BLAS forms half
    if penalty is not None:
        K += penalty
    solve = _factorised(K, squares)
    if response.isotropic:
        return solve(gradient)

    def product(direction: FloatArray) -> FloatArray:
        made = A.T @ response.curvature_product(eta, A @ direction)
        return made if penalty is None else made + penalty @ direction

    return _conjugate_gradients(product, solve, gradient, min(INEXACT, np.sqrt(size)))


def _full_hessian(response: Response, A: FloatArray, eta: FloatArray, penalty: FloatArray | None) -> FloatArray:
    """The second derivative in all coefficients, those of one output after another."""
    k, m = A.shape[1], response.n_outputs
    H = np.empty((m, k, m, k))
    for b in range(m):
        unit = np.zeros((1, m))
        unit[0, b] = 1.0
        h = response.curvature_product(eta, np.broadcast_to(unit, eta.shape))
        for a in range(b, m):
            H[a, :, b, :] = (A * h[:, a, None]).T @ A
            H[b, :, a, :] = H[a, :, b, :].T
        if penalty is not None:
            H[b, :, b, :] += penalty
    return H.reshape(m * k, m * k)


def _factorised(K: FloatArray, squares: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solves systems with K, of which a little more than rounding may be missing."""
    K[np.diag_indices(len(K))] += JITTER * np.diag(K)
    factor, failed = dpotrf(K, lower=1)
    jitter = JITTER
    while failed:  # no row of any curvature is left in some direction
        jitter *= 100
        factor, failed = dpotrf(K + np.diag(jitter * np.where(squares > 0, squares, 1.0)), lower=1)
    return lambda right: np.asarray(dpotrs(factor, right, lower=1)[0])


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    solve: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    share: float,
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
        if bend <= 0:  # rounding
            break
        x = x + (size / bend) * direction
        residual = residual - (size / bend) * image
        z = solve(residual)
        size, old = float((residual * z).sum()), size
        direction = z + (size / old) * direction
    return x if x.any() else solve(right)
