"""Diagonal linear networks, ``w = u^N - v^N``: plain sparsity, for comparison with the grouped network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.paper.dynamics.kernels import diagonal_steps
from covey.paper.dynamics.loop import Descent, State, Stop, check_scale, run
from covey.paper.dynamics.problem import Problem
from covey.paper.dynamics.trajectory import Trajectory
from covey.validation import FloatArray, boolean, positive, whole


def diagonal_descent(
    X: object, y: object, *, init_scale: float | FloatArray = 1e-6, step_size: float = 1e-2,
    positive_only: bool = False, weight_decay: float = 0.0, n_steps: int = 2000, record_every: int = 1, depth: int = 2,
    w_star: object = None, stop: Stop | None = None, gradient_scale: float = 1.0, reference: bool = False,
) -> Trajectory:  # fmt: skip
    r"""Minimise ``norm(y - X w)^2 / (2 n)`` over ``w = u^N - v^N``, powers by entry, by gradient descent.

    .. math::

        u \leftarrow u + \gamma N u^{N-1} \odot g, \quad v \leftarrow v - \gamma N v^{N-1} \odot g.

    The trajectory's ``u`` and ``v`` are the two factors, one entry per column; groups are of size one.

    Parameters
    ----------
    X, y, step_size, n_steps, record_every, depth, w_star, stop, gradient_scale, reference
        As in `normalized_descent`.
    init_scale : float or array of shape (p,)
        Start of both factors, so that ``w(0) = 0``.
    positive_only : bool
        Drop the negative part: ``w = u^N``.
    weight_decay : float
        Adds ``weight_decay/2 (norm(u)^2 + norm(v)^2)`` to the loss; with N = 2 that is the l1 penalty on ``w``.
    """
    problem = Problem.pose(X, y, None, w_star)
    alpha = check_scale(init_scale, problem.X.shape[1])
    method = DiagonalDescent(
        problem=problem, depth=whole(depth, "depth", least=2), alpha=alpha,
        v0=np.zeros_like(alpha) if boolean(positive_only, "positive_only") else alpha,
        gamma=positive(step_size, "step_size"), decay=positive(weight_decay, "weight_decay", zero=True),
        scale=positive(gradient_scale, "gradient_scale"),
    )  # fmt: skip
    return run(method, n_steps, record_every, stop=stop, reference=reference)


@dataclass(kw_only=True)
class DiagonalDescent(Descent):
    """Gradient descent on the factors of ``u^N - v^N``; a factor at zero stays there."""

    decay: float

    def coefficients(self, u: FloatArray, v: FloatArray) -> FloatArray:
        return u**self.depth - v**self.depth

    def step(self, state: State) -> None:
        """Both gradients at the old point."""
        u, v, N = state.u, state.v, self.depth
        g = self.scale * self.problem.correlation(self.coefficients(u, v))
        state.u = u - self.gamma * (-N * u ** (N - 1) * g + self.decay * u)
        state.v = v - self.gamma * (N * v ** (N - 1) * g + self.decay * v)

    def twin(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return diagonal_steps, (self.decay,)

    def diverged(self, state: State) -> bool:
        largest = np.maximum(np.abs(state.u), np.abs(state.v)) ** self.depth
        return not bool(np.all(largest <= self.bound))
