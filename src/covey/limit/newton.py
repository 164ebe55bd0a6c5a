"""The minimiser of a loss on some columns: damped Newton steps, certified by the gradient.

Every step solves ``(A'HA + P) d = g``, where H is the second derivative of the loss in the linear predictor. If H is
diagonal and equal for all outputs, one Cholesky factorisation is enough. If the outputs of a row interact, small
systems are formed in full; large ones are solved by conjugate gradients, preconditioned by the factorisation for the
rows' mean curvature, so that memory does not grow with the square of the number of outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from covey.limit.response import Response
from covey.validation import FloatArray

__all__ = ["ROUGH_TOLERANCE", "TOLERANCE", "Fit", "minimise"]

# The largest gradient of a converged fit, in units of the gradient that the null residuals give a perfectly aligned
# column of the same length. Models that are only scored need fewer digits: the deviance is flat at its minimum.
TOLERANCE, ROUGH_TOLERANCE = 1e-9, 1e-6

MOST_STEPS = 200

# If the minimum lies at infinity, every full step adds about a constant to the predictor and divides the gradient by e;
# near a finite minimum Newton's method shrinks it faster than SHRINKS. After SLOW_STEPS slow steps in a row, `_recedes`
# tests the direction; a fit whose last step was slow and moved a row this FAR has not reached a minimum.
SLOW_STEPS, SHRINKS, FAR = 10, 0.2, 0.05

# The fit has converged after more than this many consecutive steps that change only round-off error.
STILL_STEPS = 2

# A direction leads to infinity if the rows that move most (at least MOST times the largest move) all gain by it: the
# losses of some are at most this SHARE of the gains of the others.
MOST, SHARE = 0.1, 1e-2

# For coupled losses, `_recedes` follows the direction until some row's predictor has moved this far.
LONG_WAY = 10.0

# The share of the expected decrease that a step must achieve, and how often it is halved to do so.
DECREASE, MOST_HALVINGS = 1e-4, 60

# Added to the diagonal, relative to it, so that dependent columns leave the system positive definite.
JITTER = 1e-10

EPS = float(np.finfo(float).eps)

# Systems of up to this many unknowns are formed in full.
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
        "converged": the gradient is below the tolerance. "separated": the minimum lies at infinity, as with perfectly
        separated classes. "stalled": no step lowers the loss any further.
    n_steps : int
    """

    coef: FloatArray
    eta: FloatArray
    status: Literal["converged", "separated", "stalled"]
    n_steps: int


def minimise(
    response: Response,
    A: FloatArray,
    penalty: FloatArray | None = None,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Minimise the total loss of ``A coef`` plus ``coef' penalty coef / 2`` for every output.

    Parameters
    ----------
    response : Response
    A : ndarray, shape (n_rows, n_columns)
    penalty : ndarray, shape (n_columns, n_columns), optional
        Positive semidefinite.
    start : ndarray, shape (n_columns, n_outputs), optional
        Zero by default.
    tolerance : float
        The largest gradient at the end, in units of the gradient that the null residuals give a perfectly aligned
        column of the same length.
    """
    k, m = A.shape[1], response.n_outputs
    coef = np.zeros((k, m)) if start is None else np.array(start, dtype=float)
    eta = A @ coef
    if k == 0:
        return Fit(coef, eta, "converged", 0)
    squares = response.weight @ (A * A)
    unit = response.unit * np.sqrt(squares)[:, None]
    unit[unit == 0] = np.inf
    value, slow, still, before, reach = _value(response, eta, coef, penalty), 0, 0, np.inf, 0.0
    for step in range(MOST_STEPS):
        score = response.score(eta)
        gradient = A.T @ score
        if penalty is not None:
            gradient -= penalty @ coef
        size = float((np.abs(gradient) / unit).max())
        # a gradient larger than at the null model means a bad start, where slow steps are normal
        slow = slow + 1 if SHRINKS * before < size <= 1 else (slow if before == np.inf else 0)
        if size <= tolerance:
            return Fit(coef, eta, "separated" if slow and reach > FAR and penalty is None else "converged", step)
        direction = _direction(response, A, eta, gradient, penalty, squares, size)
        move = A @ direction
        if slow > SLOW_STEPS and penalty is None and _recedes(response, score, eta, value, move):
            return Fit(coef, eta, "separated", step)
        found = _search(response, eta, coef, value, gradient, direction, move, penalty)
        if response.bends and (found is None or found[0] < 1):  # the better of two directions
            other = _direction(response, A, eta, gradient, penalty, squares, size, bounding=True)
            image = A @ other
            safe = _search(response, eta, coef, value, gradient, other, image, penalty)
            if safe is not None and (found is None or safe[1] < found[1]):
                direction, move, found = other, image, safe
        if found is None:
            return Fit(coef, eta, "converged" if size <= np.sqrt(TOLERANCE) else "stalled", step)
        length, value, lowered = found[0], found[1], value - found[1]
        coef, eta = coef + length * direction, eta + length * move
        # a step that lowers the loss by less than its round-off error leaves only round-off error in the gradient
        still = still + 1 if lowered <= 4 * EPS * abs(value) and size <= np.sqrt(TOLERANCE) else 0
        if still > STILL_STEPS:
            return Fit(coef, eta, "converged", step)
        before, reach = (size, _reach(response, move)) if length == 1.0 else (np.inf, 0.0)
    return Fit(coef, eta, "separated" if slow and penalty is None else "stalled", MOST_STEPS)


def _search(
    response: Response,
    eta: FloatArray,
    coef: FloatArray,
    value: float,
    gradient: FloatArray,
    direction: FloatArray,
    move: FloatArray,
    penalty: FloatArray | None,
) -> tuple[float, float] | None:
    """The largest step length among 1, 1/2, ... that lowers the loss enough, and the loss there; or None."""
    slope, length = float((gradient * direction).sum()), 1.0
    for _ in range(MOST_HALVINGS):
        tried = _value(response, eta + length * move, coef + length * direction, penalty)
        if tried <= value - DECREASE * length * slope + 4 * EPS * abs(value):
            return length, tried
        length /= 2
    return None


def _reach(response: Response, move: FloatArray) -> float:
    """The largest change of the predictor among rows of positive weight."""
    return float(np.abs(move[response.used]).max(initial=0.0))


def _recedes(response: Response, score: FloatArray, eta: FloatArray, value: float, move: FloatArray) -> bool:
    """Whether all rows that a step moves far gain by it, as they do if the minimum lies at infinity.

    If the loss couples rows: whether the loss is still lower a long way along the step.
    """
    if response.loss.coupled:
        return response.total(eta + LONG_WAY / max(_reach(response, move), EPS) * move) < value
    far = np.abs(move).max(axis=1) >= MOST * _reach(response, move)
    gain = (score[far] * move[far]).sum(axis=1)
    return bool(-gain[gain < 0].sum() <= SHARE * gain[gain > 0].sum())


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
    *,
    bounding: bool = False,
) -> FloatArray:
    """The step to the minimum of the loss's quadratic model, or, if `bounding`, of one above the loss."""
    k, m = gradient.shape
    if not response.isotropic and k * m <= MOST_UNKNOWNS:
        solve = _factorised(_full_hessian(response, A, eta, penalty), np.tile(squares, m))
        return np.ascontiguousarray(solve(gradient.T.reshape(-1, 1)).reshape(m, k).T)
    K = response.gram(eta, A, bounding)
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
    """The second derivative in all coefficients, ordered output by output."""
    k, m = A.shape[1], response.n_outputs
    H = np.empty((m, k, m, k))
    for b, unit in enumerate(np.eye(m)):
        h = response.curvature_product(eta, np.broadcast_to(unit, eta.shape))
        # all outputs from this one on in one product
        own = A.T @ (A[:, None, :] * h[:, b:, None]).reshape(len(A), -1)
        H[:, :, b, :][b:] = own.reshape(k, m - b, k).transpose(1, 0, 2)
        H[b] = H[:, :, b, :].transpose(1, 0, 2)
        if penalty is not None:
            H[b, :, b, :] += penalty
    return H.reshape(m * k, m * k)


def _factorised(K: FloatArray, squares: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A solver for systems with K, which may be singular up to round-off error."""
    K.flat[:: len(K) + 1] *= 1 + JITTER
    factor, failed = dpotrf(K, lower=1)
    jitter = JITTER
    while failed:  # no row has curvature in some direction
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
        if bend <= 0:  # round-off error
            break
        x = x + (size / bend) * direction
        residual = residual - (size / bend) * image
        z = solve(residual)
        size, old = float((residual * z).sum()), size
        direction = z + (size / old) * direction
    return x if x.any() else solve(right)
