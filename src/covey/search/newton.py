"""The minimiser of any loss on some columns: reweight, solve, step back where the loss rises.

Every step solves ``(A'HA + P) d = g``, where H is the second derivative of the loss in the linear predictor. A
quadratic loss takes one step. In fits that need few digits, ``A'HA`` is kept from step to step, and from one fit to the
next on the same columns, as long as steps with it shrink the gradient well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dpotrs

from covey.arrays import host, like
from covey.search.constraints.cone import Rows
from covey.search.curvature import JITTER, Curvature, added, factorised, solver, times
from covey.search.observations import Observations
from covey.validation import ArrayOrTensor, FloatArray

__all__ = ["Fit", "minimise"]

# The largest norm of the gradient of a converged fit, in units of the gradient that the null residuals give a perfectly
# aligned column of the same length. Not its largest entry: that depends on the order of the columns that span a group.
TOLERANCE = 1e-9

# A rough fit ends with the first full step that promises to lower the mean deviance by at most this share of the
# dispersion: Newton's method squares what is left, and models that are only scored need no more digits.
ROUGH = 5e-4

MOST_STEPS = 200

# If the minimum lies at infinity, every full step adds about a constant to the predictor and divides the gradient by e;
# near a finite minimum Newton's method shrinks it faster than SHRINKS. After SLOW_STEPS slow steps in a row, `recedes`
# tests the direction; a fit that ends with slow steps, one of which moved a row this FAR, has not reached a minimum:
# near infinity round-off error stops it at last.
SLOW_STEPS, SHRINKS, FAR = 10, 0.2, 0.05

# In rough fits a second derivative from an earlier model is used as long as a step with it shrinks the gradient to this
# share. The fit then ends with a step that promises only KEPT_ROUGH of what is enough with the present one.
KEPT_SHRINKS, KEPT_ROUGH = 0.2, 0.01

# The fit has converged after more than this many consecutive steps that change only round-off error.
STILL_STEPS = 2

# It has stalled after more than this many of them if its gradient is still large and they have to be shortened.
STALLED_STEPS = 5

# A direction leads to infinity if the rows that move most (at least MOST times the largest move) all gain by it: the
# losses of some are at most this SHARE of the gains of the others.
MOST, SHARE = 0.1, 1e-2

# For coupled losses, `recedes` follows the direction until some row's predictor has moved this far.
LONG_WAY = 10.0

# The share of the expected decrease that a step must achieve, and how often it is halved to do so.
DECREASE, MOST_HALVINGS = 1e-4, 60

EPS = float(np.finfo(float).eps)

# A start that breaks a constraint by more than this is moved to the nearest point that keeps all.
BROKEN = 1e-9


@dataclass(frozen=True)
class Fit:
    """A minimiser.

    Attributes
    ----------
    coef : ndarray, shape (n_columns, n_outputs)
    eta : array, shape (n_rows, n_outputs)
        The linear predictor, without the offset; where A lives, if the loss is computed there.
    status : str
        "converged": the gradient is below the tolerance. "separated": the minimum lies at infinity, as with perfectly
        separated classes. "stalled": no step lowers the loss any further.
    """

    coef: FloatArray
    eta: FloatArray
    status: Literal["converged", "separated", "stalled"]


def minimise(
    response: Observations,
    A: ArrayOrTensor,
    start: FloatArray,
    penalty: FloatArray | None = None,
    *,
    rows: Rows | None = None,
    eta: FloatArray | None = None,
    factor: FloatArray | None = None,
    curvature: Curvature | None = None,
    rough: bool = False,
) -> Fit:
    """Minimise the total loss of ``A coef`` plus ``coef' penalty coef / 2`` for every output.

    Every step solves the quadratic model of the loss, under the constraints if there are any, and is shortened where
    the loss rises: a point between two that keep linear inequalities keeps them too.

    Parameters
    ----------
    response : Observations
        Of rows of positive weight.
    A : array, shape (n_rows, n_columns)
        Where X lives.
    start : ndarray, shape (n_columns, n_outputs)
    penalty : ndarray, shape (n_columns, n_columns), or (n_columns,) for a diagonal matrix; optional
        Positive semidefinite.
    rows : Rows, optional
        Constraints on the coefficients of every output; outputs do not interact then.
    eta : ndarray, shape (n_rows, n_outputs), optional
        The linear predictor of the start, if it is known.
    factor : ndarray, shape (n_columns, n_columns), optional
        The Cholesky factor of the second derivative of a quadratic loss, above its diagonal, if it is known already.
    curvature : Curvature, optional
        The second derivative of the loss on these columns at an earlier model; updated.
    rough : bool
        Stop as soon as the model is good enough to be scored.
    """
    coef, response = start, response.near(A)
    quadratic = response.loss.quadratic  # its only step starts anywhere
    if rows is not None and not quadratic and (rows.G @ coef - rows.h[:, None]).min(initial=0.0) < -BROKEN:
        coef, eta = rows.nearest(coef), None
    eta = response.predictor(A, coef) if eta is None else like(eta, response.weight)
    if len(coef) == 0:
        return Fit(coef, eta, "converged")
    curvature = curvature or Curvature()
    if quadratic:
        if factor is None and not curvature.known:
            curvature.renew(response, A, eta)
        direction = _only_step(
            gradient_of(response.score(eta), A, coef, penalty), coef, penalty, rows, factor, curvature
        )
        return Fit(coef + direction, eta + response.predictor(A, direction), "converged")
    squares = np.full(len(coef), response.total_weight) if rough else host(like(response.weight, A) @ (A * A))
    unit = response.unit * np.sqrt(squares)[:, None]
    unit[unit == 0] = np.inf
    value = response.total(eta) + bend(penalty, coef)
    # residuals of numbers grow without bound in any direction
    way, still = Way(may_recede=penalty is None and not response.loss.identity_link), 0
    fresh, last, solve = True, np.inf, None
    for step in range(MOST_STEPS):
        # 1. the gradient, and whether it is small enough; what constraints hold back is no reason to go on
        score = response.score(eta)
        gradient = left = gradient_of(score, A, coef, penalty)
        if rows is not None:
            direction, left = _constrained_step(response, A, eta, penalty, curvature, rows, coef, gradient)
        with np.errstate(over="ignore"):  # on columns of 1e150
            size = float(np.linalg.norm(left / unit))
        if fresh:
            way.see(size)
        # a fit may start where another ended, far on the way to infinity: a small gradient there is no minimum
        if size <= TOLERANCE and not (step == 0 and way.may_recede):
            return Fit(coef, eta, "separated" if way.is_infinite else "converged")
        # 2. the step to the minimum of the quadratic model; whether it leads to infinity
        if rows is None:
            fresh = not rough or not curvature.known or not response.isotropic or size > KEPT_SHRINKS * last
            if fresh:
                curvature.renew(response, A, eta)
            if fresh or solve is None:
                solve = solver(response, A, eta, penalty, squares, curvature.K, size)
            direction = solve(gradient)
        last = size
        move = response.predictor(A, direction)
        if way.may_recede and way.slow > SLOW_STEPS and recedes(response, score, eta, value, move):
            return Fit(coef, eta, "separated")
        # 3. shorter steps until the loss falls enough
        found = line_search(response, eta, coef, value, gradient, direction, move, penalty)
        if found is None and not fresh:
            last = 0.0
            continue
        if response.bounded and (found is None or found[0] < 1):  # the better of two directions
            bound = added(response.gram(eta, A, bounding=True), penalty)
            if rows is None:
                other = factorised(bound, squares, JITTER)(gradient)
            else:
                other, _ = rows.step(bound, coef, gradient)
            image = response.predictor(A, other)
            safe = line_search(response, eta, coef, value, gradient, other, image, penalty)
            if safe is not None and (found is None or safe[1] < found[1]):
                direction, move, found = other, image, safe
        if found is None:
            if way.is_infinite:
                return Fit(coef, eta, "separated")
            return Fit(coef, eta, "converged" if size <= np.sqrt(TOLERANCE) else "stalled")
        length, value, lowered = found[0], found[1], value - found[1]
        coef, eta = coef + length * direction, eta + length * move
        # 4. whether that step was the last
        moved, promised = reach_of(move), float((gradient * direction).sum())
        enough = (
            (ROUGH if fresh else ROUGH * KEPT_ROUGH) * response.scale(value - bend(penalty, coef)) if rough else 0.0
        )
        if length == 1.0 and promised <= enough and not way.goes_on(moved):
            return Fit(coef, eta, "converged")
        way.go(size, moved, known=length == 1.0 and fresh)
        # a step that lowers the loss by less than its round-off error leaves only round-off error in the gradient
        still = still + 1 if lowered <= 4 * EPS * abs(value) else 0
        if still > STILL_STEPS and size <= np.sqrt(TOLERANCE):
            return Fit(coef, eta, "separated" if way.is_infinite else "converged")
        if still > STALLED_STEPS and length < 1.0:
            return Fit(coef, eta, "stalled")
        if length < 1.0:
            last = 0.0
    return Fit(coef, eta, "separated" if way.slow and way.may_recede else "stalled")


@dataclass
class Way:
    """How far a descent has come, and whether it may lead to infinity.

    Attributes
    ----------
    may_recede : bool
        Whether the minimum may lie at infinity: there is no penalty.
    slow : int
        How many steps in a row have hardly shrunk the gradient.
    size : float
        The norm of the gradient before the last step; infinite if that step says nothing about the next one.
    moved, reach : float
        How far the last step, and the farthest of the slow ones, moved a row.
    """

    may_recede: bool
    slow: int = 0
    size: float = np.inf
    moved: float = 0.0
    reach: float = 0.0

    def see(self, size: float) -> None:
        """Compare the norm of a gradient with the one before."""
        # a gradient larger than at the null model means a bad start, where slow steps are normal
        if SHRINKS * self.size < size <= 1:
            self.slow += 1
        elif self.size < np.inf:
            self.slow = 0

    @property
    def is_infinite(self) -> bool:
        """Whether slow steps have moved some row so far that the minimum must lie at infinity."""
        return self.may_recede and self.slow > 0 and self.reach > FAR

    def goes_on(self, moved: float) -> bool:
        """Whether a step that moved a row so far may be one of many on the way to infinity."""
        unknown = self.size == np.inf or moved > SHRINKS * self.moved
        return moved > FAR and (self.slow > 0 or (self.may_recede and unknown))

    def go(self, size: float, moved: float, known: bool) -> None:
        """Take a step; `known` if it was a full one with the second derivative at its start."""
        self.reach = max(self.reach if self.slow else 0.0, moved if known else 0.0)
        self.size, self.moved = size if known else np.inf, moved


def _only_step(
    gradient: FloatArray,
    coef: FloatArray,
    penalty: FloatArray | None,
    rows: Rows | None,
    factor: FloatArray | None,
    curvature: Curvature,
) -> FloatArray:
    """The step to the minimum of a quadratic loss, given its second derivative or the factor of it."""
    if rows is not None:
        K = added(curvature.K, penalty) if factor is None else factor
        return rows.step(K, coef, gradient, is_root=factor is not None)[0]
    if factor is None:
        return factorised(added(curvature.K, penalty))(gradient)
    return np.asarray(dpotrs(factor, gradient)[0])


def gradient_of(score: ArrayOrTensor, A: ArrayOrTensor, coef: FloatArray, penalty: FloatArray | None) -> FloatArray:
    gradient = host(A.T @ like(score, A))
    return gradient if penalty is None else gradient - times(penalty, coef)


def bend(penalty: FloatArray | None, coef: FloatArray) -> float:
    """What a penalty adds to the loss."""
    return 0.0 if penalty is None else 0.5 * float((coef * times(penalty, coef)).sum())


def line_search(
    response: Observations,
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
        tried = response.total(eta + length * move) + bend(penalty, coef + length * direction)
        if tried <= value - DECREASE * length * slope + 4 * EPS * abs(value):
            return length, tried
        length /= 2
    return None


def reach_of(move: ArrayOrTensor) -> float:
    """The largest change of the predictor of a row."""
    return float(abs(move).max())


def recedes(response: Observations, score: FloatArray, eta: FloatArray, value: float, move: FloatArray) -> bool:
    """Whether all rows that a step moves far gain by it, as they do if the minimum lies at infinity.

    If the loss couples rows: whether the loss is still lower a long way along the step.
    """
    if response.loss.coupled:
        return response.total(eta + LONG_WAY / max(reach_of(move), EPS) * move) < value
    score, move = host(score), host(move)
    far = np.abs(move).max(axis=1) >= MOST * np.abs(move).max()
    gain = (score[far] * move[far]).sum(axis=1)
    return bool(-gain[gain < 0].sum() <= SHARE * gain[gain > 0].sum())


def _constrained_step(
    response: Observations,
    A: ArrayOrTensor,
    eta: FloatArray,
    penalty: FloatArray | None,
    curvature: Curvature,
    rows: Rows,
    coef: FloatArray,
    gradient: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The step to the minimum of the quadratic model under constraints, and the gradient left there."""
    if not response.loss.vector:
        curvature.renew(response, A, eta)
        return rows.step(added(curvature.K, penalty), coef, gradient)
    # each output has a second derivative of its own
    grams = [added(one.gram(eta[:, [j]], A), penalty) for j, one in enumerate(response.apart)]
    return rows.step(np.stack(grams), coef, gradient)
