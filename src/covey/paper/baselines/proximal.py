r"""The group lasso: accelerated proximal gradient with adaptive restart on a working set of groups, and certificates.

For ``P(w) = norm(y - X w)^2/(2n) + lam sum_l omega_l norm(w_l)`` every vector ``s r`` with ``r = y - X w`` that meets
``s norm(X_l'r)/n <= lam omega_l`` for all groups is dual feasible, and

.. math::

    D(s r) = \frac{1}{2n} \left( \|y\|^2 - \|y - s r\|^2 \right) \le \min P \le P(w).

Therefore ``P(w) - D`` bounds the suboptimality, whatever method found ``w``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from covey.groups import Groups
from covey.paper.baselines.kernels import accelerated_steps
from covey.paper.baselines.units import read_group_weights
from covey.paper.dynamics.problem import as_coefficients
from covey.validation import FloatArray, as_matrix, as_response, check_scale, positive

CHECK_EVERY = 20  # steps between two checks of the duality gap; a check costs about as much as a step


@dataclass(frozen=True)
class PenalisedProblem:
    """``norm(y - X w)^2/(2n) + lam sum_l omega_l norm(w_l)``, with the columns of a group contiguous."""

    X: FloatArray
    y: FloatArray
    starts: NDArray[np.intp]
    weights: FloatArray

    def norms(self, a: FloatArray) -> FloatArray:
        return np.sqrt(np.add.reduceat(a * a, self.starts[:-1]))

    def residual(self, w: FloatArray) -> FloatArray:
        """``y - X w``, reading only columns with nonzero coefficients."""
        used = np.flatnonzero(w)
        return self.y - self.X[:, used] @ w[used]

    def rates(self, r: FloatArray) -> FloatArray:
        """``norm(X_l'r)/n`` of each group."""
        return self.norms(self.X.T @ r / self.y.size)

    def penalty_max(self) -> float:
        """The smallest penalty at which all groups are zero."""
        return float(np.max(self.rates(self.y) / self.weights))

    def values(self, w: FloatArray, penalty: float) -> tuple[float, float]:
        """The objective at ``w``, and the best dual value along its residual."""
        y, r, limits = self.y, self.residual(w), penalty * self.weights
        square = float(r @ r)
        primal = float(square / (2 * y.size) + limits @ self.norms(w))
        if square == 0.0:
            return primal, 0.0
        rates = self.rates(r)
        with np.errstate(divide="ignore"):
            most = float(np.min(np.where(rates > 0, limits / rates, np.inf)))
        s = np.clip(float(y @ r) / square, -most, most)
        # s (2 y'r - s r'r), not a difference of squares: nothing cancels near the optimum
        return primal, float(s * (2 * (y @ r) - s * square) / (2 * y.size))

    def gap(self, w: FloatArray, penalty: float) -> float:
        primal, dual = self.values(w, penalty)
        return max(primal - dual, 0.0)

    def restrict(self, keep: NDArray[np.bool_]) -> tuple[PenalisedProblem, NDArray[np.bool_]]:
        """The problem restricted to some groups, and the mask of its columns."""
        sizes = np.diff(self.starts)
        columns = np.repeat(keep, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[keep])])
        return PenalisedProblem(np.ascontiguousarray(self.X[:, columns]), self.y, starts, self.weights[keep]), columns

    @cached_property
    def gram(self) -> tuple[FloatArray, FloatArray]:
        """``X'X/n`` and ``X'y/n``, with which a step costs p^2; empty where 2 n p, with X itself, is less."""
        n, p = self.X.shape
        if p > 2 * n:
            return np.empty((0, 0)), np.empty(0)
        return np.ascontiguousarray(self.X.T @ self.X / n), self.X.T @ self.y / n

    @cached_property
    def step(self) -> float:
        """One over the largest eigenvalue of ``X'X/n``, with a margin that covers its round-off error."""
        n, p = self.X.shape
        square = self.gram[0] if p <= n else self.X @ self.X.T / n
        m = len(square)
        top = float(scipy.linalg.eigh(square, eigvals_only=True, subset_by_index=[m - 1, m - 1])[0])
        return 1 / (top * (1 + 1e-10)) if top > 0 else 1.0

    def descend(self, w: FloatArray, penalty: float, goal: float, max_iter: int) -> int:
        """Step in place until the gap is at most ``goal``; returns the number of steps."""
        z, momentum, thresholds, done = w.copy(), np.ones(1), self.step * penalty * self.weights, 0
        while done < max_iter:
            k = min(CHECK_EVERY, max_iter - done)
            accelerated_steps(self.X, self.y, *self.gram, self.starts, thresholds, self.step, w, z, momentum, k)
            done += k
            if self.gap(w, penalty) <= goal:
                break
        return done


def solve(
    problem: PenalisedProblem, penalties: FloatArray, goal: float, max_iter: int
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """The solution at each penalty with its duality gap and number of steps, each from the previous solution.

    Only a working set of groups is updated: the active ones and those that the sequential strong rule cannot discard.
    The duality gap is computed for all groups, so that a wrongly discarded one is detected and added; `goal` is the gap
    to reach.
    """
    w = np.zeros(problem.X.shape[1])
    keep = np.zeros(problem.weights.size, dtype=bool)
    working: PenalisedProblem | None = None
    columns = np.zeros(w.size, dtype=bool)
    previous = max(problem.penalty_max(), float(penalties[0]))
    W, gaps, steps = np.zeros((len(penalties), w.size)), np.zeros(len(penalties)), np.zeros(len(penalties), dtype=int)
    for k, penalty in enumerate(penalties):
        rates = problem.rates(problem.residual(w)) / problem.weights
        wanted = (rates >= 2 * penalty - previous) | (problem.norms(w) > 0)
        inner_goal, done = goal, 0
        while True:
            if (wanted & ~keep).any():
                keep |= wanted
                working, columns = problem.restrict(keep)
            if working is not None:
                inner = w[columns]
                done += working.descend(inner, penalty, inner_goal, max_iter - done)
                w[columns] = inner
            gap = problem.gap(w, penalty)
            if gap <= goal or done >= max_iter:
                break
            wanted = problem.rates(problem.residual(w)) > penalty * problem.weights
            if not (wanted & ~keep).any():
                if working is None:  # zero is optimal, up to round-off error
                    break
                inner_goal /= 10
        W[k], gaps[k], steps[k], previous = w, gap, done, float(penalty)
    return W, gaps, steps


@dataclass(frozen=True)
class Certificate:
    """The objective at a candidate solution, `primal`, and a lower bound on its minimum, `dual`.

    `kkt` is the largest violation of stationarity, relative to the penalty: on a zero group ``(norm(g_l) - lam
    omega_l)_+``, elsewhere ``norm(g_l - lam omega_l w_l/norm(w_l))``, over ``lam omega_l``.
    """

    primal: float
    dual: float
    kkt: float

    @property
    def gap(self) -> float:
        """The duality gap: the objective is at most this far above its minimum."""
        return max(self.primal - self.dual, 0.0)


def certify(
    X: object, y: object, groups: object, w: object, penalty: float, group_weights: object = "sqrt"
) -> Certificate:
    """Certify ``w`` for ``norm(y - X w)^2/(2n) + penalty sum_l omega_l norm(w_l)``.

    There is no intercept: centre X and y first if the model has one.

    >>> from covey.paper.baselines import certify
    >>> X, y = np.sqrt(2) * np.eye(2), np.sqrt(2) * np.array([3.0, 4.0])
    >>> certify(X, y, [0, 0], [2.4, 3.2], penalty=1.0, group_weights="unit").gap < 1e-12  # (1 - 1/5) times (3, 4)
    True
    """
    matrix = as_matrix(X)
    n, p = matrix.shape
    response = as_response(y, n)
    partition = Groups.coerce(groups, p)
    coef = as_coefficients(w, "w", p)
    for values, name in ((matrix, "X"), (response, "y"), (coef, "w")):
        check_scale(values, name)
    penalty, weights = positive(penalty, "penalty"), read_group_weights(group_weights, partition)
    problem = PenalisedProblem(partition.to_contiguous(matrix), response, partition.starts, weights)
    primal, dual = problem.values(partition.to_contiguous(coef), penalty)
    g, norms, limits = matrix.T @ (response - matrix @ coef) / n, partition.norms(coef), penalty * weights
    pull = np.divide(limits, norms, out=np.zeros_like(norms), where=norms > 0)[partition.labels] * coef
    off = np.where(norms > 0, partition.norms(g - pull), np.maximum(partition.norms(g) - limits, 0.0))
    return Certificate(primal, dual, float(np.max(off / limits)))
