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

__all__ = ["ROUGH_TOLERANCE", "TOLERANCE", "Fit", "minimise"]

# The gradient of a fit is at most this share of what the response without a model would give a column of its length.
# For models that are judged and not shown a rougher one gives digits enough of the deviance, flat at its minimum.
TOLERANCE, ROUGH_TOLERANCE = 1e-9, 1e-6

MOST_STEPS = 200

# Where the minimum lies at infinity every full step adds about a constant to the predictor and takes the gradient down
# by e, again and again; near any other minimum Newton's method is faster than SHRINKS. After SLOW_STEPS slow ones in a
# row the direction is looked at (`_recedes`); a fit whose last step was slow and this FAR is not at its minimum.
SLOW_STEPS, SHRINKS, FAR = 10, 0.2, 0.05

# Steps in a row that change nothing but rounding, after which the fit has converged.
STILL_STEPS = 2

# A direction leads to infinity where the rows that move most, those within MOST of the largest move, all gain by it:
# what some of them lose is at most this SHARE of what the others gain.
MOST, SHARE = 0.1, 1e-2

# How far the predictor of the row that moves most goes where the direction is followed.
LONG_WAY = 10.0

# The share of the expected decrease that a step must reach, and how often it is halved to reach it.
DECREASE, MOST_HALVINGS = 1e-4, 60

# Added to the curvature of each column, relative to it, where columns depend on each other.
JITTER = 1e-10

EPS = float(np.finfo(float).eps)

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
    response: Response,
    A: FloatArray,
    penalty: FloatArray | None = None,
    start: FloatArray | None = None,
    tolerance: float = TOLERANCE,
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
    tolerance : float
        The gradient at the end, in units of what the response without a model would give a column of its length.
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
        # a gradient above that of the model without columns comes of a bad start, and takes its time
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
        # below, rounding of the loss is all that a step changes, and of the gradient all that is left
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
    """The largest length among 1, 1/2, ... of a step that lowers the loss enough, and the loss there; or None."""
    slope, length = float((gradient * direction).sum()), 1.0
    for _ in range(MOST_HALVINGS):
        tried = _value(response, eta + length * move, coef + length * direction, penalty)
        if tried <= value - DECREASE * length * slope + 4 * EPS * abs(value):
            return length, tried
        length /= 2
    return None


def _reach(response: Response, move: FloatArray) -> float:
    """The largest change of the predictor of a row that counts."""
    return float(np.abs(move[response.used]).max(initial=0.0))


def _recedes(response: Response, score: FloatArray, eta: FloatArray, value: float, move: FloatArray) -> bool:
    """Whether all rows that a step moves far gain by it, as they do where the minimum lies at infinity.

    Where rows do not stand apart: whether the loss is lower still a long way on.
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
    """Where the quadratic model of the loss is least, or one above the loss; `size` is that of the gradient."""
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
    """The second derivative in all coefficients, those of one output after another."""
    k, m = A.shape[1], response.n_outputs
    H = np.empty((m, k, m, k))
    for b, unit in enumerate(np.eye(m)):
        h = response.curvature_product(eta, np.broadcast_to(unit, eta.shape))
        # of outputs from this one on, in one product
        own = A.T @ (A[:, None, :] * h[:, b:, None]).reshape(len(A), -1)
        H[:, :, b, :][b:] = own.reshape(k, m - b, k).transpose(1, 0, 2)
        H[b] = H[:, :, b, :].transpose(1, 0, 2)
        if penalty is not None:
            H[b, :, b, :] += penalty
    return H.reshape(m * k, m * k)


def _factorised(K: FloatArray, squares: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solves systems with K, of which a little more than rounding may be missing."""
    K.flat[:: len(K) + 1] *= 1 + JITTER
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
