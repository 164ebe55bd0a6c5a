"""The minimiser of any loss under linear inequalities: reweight, solve under them, step back where the loss rises.

It is the counterpart of `covey.search.newton.minimise`. A point between two that keep the inequalities keeps them too,
so that shorter steps do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covey.search.arrays import host
from covey.search.constraints.cone import Rows, root
from covey.search.newton import (
    EPS,
    FAR,
    MOST_STEPS,
    ROUGH,
    SHRINKS,
    SLOW_STEPS,
    STILL_STEPS,
    TOLERANCE,
    Curvature,
    Fit,
    added,
    gradient_of,
    line_search,
    product_of,
    reach_of,
    recedes,
    times,
)
from covey.search.observations import Observations
from covey.validation import FloatArray

__all__ = ["minimise_within"]

# A start that breaks an inequality by more than this is moved to the nearest point that keeps all.
BROKEN = 1e-9


def minimise_within(
    response: Observations,
    A: Any,
    start: FloatArray,
    rows: Rows,
    penalty: FloatArray | None = None,
    *,
    eta: FloatArray | None = None,
    L: FloatArray | None = None,
    curvature: Curvature | None = None,
    rough: bool = False,
) -> Fit:
    """Minimise the total loss of ``A coef`` plus ``coef' penalty coef / 2`` under inequalities, for one output.

    Parameters are those of `covey.search.newton.minimise`; `rows` are the inequalities on the columns of A, and L is
    the Cholesky factor of the second derivative of a quadratic loss, if that is known already.
    """
    coef, curvature = start, curvature or Curvature()
    if (rows.G @ coef[:, 0] - rows.h).min(initial=0.0) < -BROKEN:
        coef, eta = rows.nearest(coef), None
    eta = product_of(A, coef) if eta is None else eta
    if len(coef) == 0:
        return Fit(coef, eta, "converged", 0)
    if response.loss.quadratic:
        if L is None:
            if not curvature.known:
                curvature.renew(response, A, eta)
            L = root(added(curvature.K, penalty))
        direction, _ = rows.step(L, coef, gradient_of(response.score(eta), A, coef, penalty))
        return Fit(coef + direction, eta + product_of(A, direction), "converged", 1)
    squares = np.full(len(coef), response.total_weight) if rough else response.weight @ np.square(host(A))
    unit = response.unit * np.sqrt(squares)[:, None]
    unit[unit == 0] = np.inf
    value, slow, still, before = response.total(eta), 0, 0, np.inf
    if penalty is not None:
        value += 0.5 * float((coef * times(penalty, coef)).sum())
    for step in range(MOST_STEPS):
        # 1. the step to the minimum of the quadratic model under the inequalities
        score = response.score(eta)
        gradient = gradient_of(score, A, coef, penalty)
        curvature.renew(response, A, eta)
        direction, left = rows.step(root(added(curvature.K, penalty)), coef, gradient)
        size, move = float((np.abs(left) / unit).max()), product_of(A, direction)
        # 2. whether it is short enough, or leads to infinity
        slow = slow + 1 if SHRINKS * before < size <= 1 else 0
        before = size
        far = slow > 0 and penalty is None and reach_of(response, move) > FAR
        if size <= TOLERANCE:
            return Fit(coef, eta, "separated" if far else "converged", step)
        if slow > SLOW_STEPS and penalty is None and recedes(response, score, eta, value, move):
            return Fit(coef, eta, "separated", step)
        # 3. shorter steps until the loss falls enough; with a bound of the second derivative if that is not soon
        found = line_search(response, eta, coef, value, gradient, direction, move, penalty)
        if response.bounded and (found is None or found[0] < 1):
            other, _ = rows.step(root(added(response.gram(eta, A, bounding=True), penalty)), coef, gradient)
            image = product_of(A, other)
            safe = line_search(response, eta, coef, value, gradient, other, image, penalty)
            if safe is not None and (found is None or safe[1] < found[1]):
                direction, move, found = other, image, safe
        if found is None:
            return Fit(coef, eta, "converged" if size <= np.sqrt(TOLERANCE) else "stalled", step)
        length, value, lowered = found[0], found[1], value - found[1]
        coef, eta = coef + length * direction, eta + length * move
        # 4. whether that step was the last
        promised = float((gradient * direction).sum())
        if rough and length == 1.0 and promised <= ROUGH * response.scale(eta) and not far:
            return Fit(coef, eta, "converged", step + 1)
        # what holds the gradient back is known up to round-off error only
        still = still + 1 if lowered <= 4 * EPS * abs(value) and size <= np.sqrt(TOLERANCE) else 0
        if still > STILL_STEPS:
            return Fit(coef, eta, "converged", step)
    return Fit(coef, eta, "separated" if slow and penalty is None else "stalled", MOST_STEPS)
