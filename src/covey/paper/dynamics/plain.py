"""Gradient descent without weight normalisation (the paper's figure 7), with an optional explicit l2 penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from covey.losses import Loss
from covey.paper.dynamics.kernels import plain_steps
from covey.paper.dynamics.loop import Descent, State, Stop, check_directions, check_scale, read_clock, run
from covey.paper.dynamics.problem import Problem
from covey.paper.dynamics.trajectory import Trajectory
from covey.validation import FloatArray, positive, whole


def plain_descent(
    X: object, y: object, groups: object, *, init_scale: float | FloatArray = 1e-3, step_size: float = 0.05,
    start: object = "zero", weight_decay: float = 0.0, n_steps: int = 8000, record_every: int = 1, depth: int = 2,
    w_star: object = None, stop: Stop | None = None, gradient_scale: float = 1.0, loss: str | Loss = "squared",
    offset: ArrayLike | None = None, clock: Literal["steps", "loss"] = "steps", reference: bool = False,
) -> Trajectory:  # fmt: skip
    r"""Minimise ``norm(y - X w)^2 / (2 n)`` over ``w_l = u_l^N v_l`` by gradient descent on ``u`` and ``v`` together.

    .. math::

        u_l \leftarrow u_l + \gamma (N u_l^{N-1} v_l^\top g_l - \lambda u_l), \quad
        v_l \leftarrow v_l + \gamma (u_l^N g_l - \lambda v_l),

    both at the old point. ``norm(v_l)`` is not kept at one. Along the flow, ``u_l^2/N - norm(v_l)^2`` is conserved
    (lemma balancing); here it drifts in proportion to the step.

    Parameters
    ----------
    X, y, groups, init_scale, n_steps, record_every, w_star, stop, gradient_scale, loss, offset, clock, reference
        As in `normalized_descent`.
    depth : int
        The power N, at least 1: ``w_l = u_l v_l`` is depth 1.
    step_size : float
        One step for both layers.
    start : "zero", "small", "aligned" or array of shape (p,)
        Directions at t = 0: zero (the paper's choice, which works), ``init_scale`` times the unit direction with equal
        entries (which works only by luck), along ``X_l'y/n`` and balanced, ``norm(v_l)^2 = u_l^2/N`` (the choice of
        theorem gf-es), or an array.
    weight_decay : float
        Adds ``weight_decay/2 (norm(u)^2 + norm(v)^2)`` to the loss: the explicit penalty of the paper's related work.
    """
    problem = Problem.pose(X, y, groups, w_star, loss, offset)
    depth = whole(depth, "depth", least=1)
    alpha = check_scale(init_scale, problem.groups.n_groups)
    method = PlainDescent(
        problem=problem, depth=depth, alpha=alpha, v0=read_plain_start(start, problem, alpha, depth),
        gamma=positive(step_size, "step_size"), decay=positive(weight_decay, "weight_decay", zero=True),
        scale=positive(gradient_scale, "gradient_scale"), clock=read_clock(clock, problem.row_loss, depth + 1),
    )  # fmt: skip
    return run(method, n_steps, record_every, stop=stop, reference=reference)


def read_plain_start(start: object, problem: Problem, alpha: FloatArray, depth: int) -> FloatArray:
    """Directions at t = 0, from a name or an array."""
    groups = problem.groups
    if not isinstance(start, str):
        return check_directions(start, groups, unit=False)
    size = alpha[groups.labels]
    if start == "zero":
        return np.zeros(groups.n_columns)
    if start == "small":
        return size / np.sqrt(groups.sizes[groups.labels])
    if start == "aligned":
        g = problem.correlation(np.zeros(groups.n_columns))
        norms = groups.norms(g)[groups.labels]
        return size / np.sqrt(depth) * np.divide(g, norms, out=np.zeros_like(g), where=norms > 0)
    raise ValueError(f"start must be 'zero', 'small', 'aligned' or an array, not {start!r}.")


@dataclass(kw_only=True)
class PlainDescent(Descent):
    """Gradient descent on both layers."""

    decay: float

    def step(self, state: State) -> None:
        """Both gradients at the old point."""
        u, v = state.u, state.v
        gradient_u, gradient_v = self.gradients(u, v)
        state.u = u - self.gamma * (gradient_u + self.decay * u)
        state.v = v - self.gamma * (gradient_v + self.decay * v)

    def twin(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return plain_steps, (self.decay,)
