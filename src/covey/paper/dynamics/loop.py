"""The one loop under every descent: a method supplies its start, its step, the step's compiled twin and its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.groups import Groups
from covey.losses import Loss
from covey.paper.dynamics.kernels import DIVERGED, SWITCH, T
from covey.paper.dynamics.problem import Problem, as_coefficients
from covey.paper.dynamics.trajectory import Status, Trajectory
from covey.validation import FloatArray, as_numbers, boolean, one_of, whole

# A compiled call cannot be interrupted, so it gets at most about this many multiplications (a fraction of a second).
WORK_PER_CALL = 2e8

# The most records of a run, each with all magnitudes and directions; and the largest start whose powers are finite.
MOST_RECORDS, LARGEST_START = 10**8, 1e10

# Below this, the loss, its gradient and their ratio approach the limits of float64.
LEAST_LOSS = 1e-290

# Called with a time and the coefficients at each record; a true result ends the run.
Stop = Callable[[int, FloatArray], bool]


@dataclass
class State:
    """The mutable state: magnitudes, directions, and the log shared with the kernels."""

    u: FloatArray
    v: FloatArray
    log: NDArray[np.int64] = field(default_factory=lambda: np.array([0, -1, 0, 0]))
    underflow: bool = False

    @property
    def t(self) -> int:
        return int(self.log[T])

    @property
    def switch(self) -> int | None:
        """When the direction step was decreased."""
        return int(self.log[SWITCH]) if self.log[SWITCH] >= 0 else None

    @property
    def diverged(self) -> bool:
        return bool(self.log[DIVERGED])


def pace(loss: float, order: int) -> float:
    r"""The factor ``1 / (L max(1, log(1/L))^(2 - 2/k))`` on every gradient with ``clock="loss"``, L the current loss.

    On separable classes the loss and its gradient tend to zero: gradient descent slows down, and margins grow like the
    logarithm of the number of steps. Dividing by L is gradient descent on ``log L``. For a predictor that is
    homogeneous of order k in the factors, ``log(1/L)`` is of order ``rho^k``, with rho the norm of the factors, and the
    curvature of ``log L`` is of order ``rho^(2k - 2)``. The second factor cancels that curvature: a step that is stable
    at the start stays stable, and margins grow linearly.

    `order` is k: N for the normalised network, whose directions keep their norm, and N + 1 for the plain one.
    """
    return float(1 / (loss * max(1.0, -np.log(loss)) ** (2 - 2 / order)))


@dataclass(kw_only=True)
class Descent(ABC):
    """A gradient method on the factors of ``w``, from the magnitudes `alpha` and the directions `v0`."""

    problem: Problem
    depth: int
    alpha: FloatArray
    v0: FloatArray
    gamma: float
    scale: float
    clock: int | None = None  # the order of `pace`
    last_loss: float = np.inf

    @abstractmethod
    def step(self, state: State) -> None:
        """One iteration in plain numpy, as the paper writes it."""

    @abstractmethod
    def twin(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The compiled twin of `step`, and the arguments that only this method has."""

    def advance(self, state: State, k: int) -> None:
        steps, more = self.twin()
        steps(
            *self.data, self.problem.groups.labels, state.u, state.v, state.log, k, self.depth, self.gamma, self.scale,
            self.bound, *more,
        )  # fmt: skip

    def coefficients(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """``w_l = u_l^N v_l``; the last axis runs over columns."""
        return u[..., self.problem.groups.labels] ** self.depth * v

    def gradients(self, u: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The loss's gradients in u and in v."""
        N, groups = self.depth, self.problem.groups
        g = self.drive(self.coefficients(u, v))
        in_u = np.array([-N * u[l] ** (N - 1) * (v[G] @ g[G]) for l, G in enumerate(groups.lists())])
        return in_u, -(u[groups.labels] ** N) * g

    def drive(self, w: FloatArray) -> FloatArray:
        """The negative gradient in w, times the scale and the pace of the clock."""
        if self.clock is None:
            return self.scale * self.problem.correlation(w)
        problem, eta = self.problem, self.problem.predictor(w)
        self.last_loss = float(problem.row_loss.value(problem.y, eta).mean())
        g = problem.X.T @ problem.row_loss.residual(problem.y, eta) / problem.n
        return self.scale * pace(self.last_loss, self.clock) * g

    def diverged(self, state: State) -> bool:
        """Whether the factors have left any sensible range."""
        return not bool((np.abs(state.u) ** self.depth <= self.bound).all() and (np.abs(state.v) <= self.bound).all())

    @cached_property
    def bound(self) -> float:
        """Larger coefficients have diverged: ten orders of magnitude above the scale of the data."""
        return 1e10 * max(1.0, float(np.abs(self.problem.X.T @ self.problem.y).max()) / self.problem.n)

    @cached_property
    def data(self) -> tuple[FloatArray, ...]:
        """``X``, ``y``, ``K`` and ``c`` of the kernels."""
        return self.problem.X, self.problem.y, *self.problem.gram()


def run(
    method: Descent, n_steps: int, record_every: int = 1, *, stop: Stop | None = None, reference: bool = False
) -> Trajectory:
    """Iterate, recording every `record_every` steps and the last one; in numpy if `reference` or for other losses."""
    n_steps = whole(n_steps, "n_steps", least=0)
    record_every = min(whole(record_every, "record_every"), max(n_steps, 1))
    if n_steps // record_every > MOST_RECORDS:
        raise ValueError(f"n_steps={n_steps} makes too many records: give a larger record_every.")
    if stop is not None and not callable(stop):
        raise ValueError(f"stop must be a function of a time and the coefficients, not a {type(stop).__name__}.")
    problem = method.problem
    advance = _advance_in_numpy if boolean(reference, "reference") or not problem.row_loss.quadratic else _advance
    times = np.unique(np.append(np.arange(0, n_steps + 1, record_every), n_steps))
    state = State(method.alpha.copy(), method.v0.copy())
    U, V = np.empty((times.size, state.u.size)), np.empty((times.size, state.v.size))
    U[0], V[0] = state.u, state.v
    recorded, status = 1, Status.COMPLETED
    for t in times[1:]:
        advance(method, state, int(t) - state.t)
        if state.diverged:
            status = Status.DIVERGED
            break
        times[recorded], U[recorded], V[recorded] = state.t, state.u, state.v
        recorded += 1
        if stop is not None and stop(int(t), method.coefficients(state.u, state.v)):
            status = Status.STOPPED
            break
        if state.underflow:
            break
    U, V = U[:recorded], V[:recorded]
    W = method.coefficients(U, V)
    return Trajectory(
        times[:recorded], U, V, W, problem.loss(W), problem.error(W), problem.groups, method.depth, state.switch,
        status, _message(status, state),
    )  # fmt: skip


def _advance_in_numpy(method: Descent, state: State, k: int) -> None:
    with np.errstate(all="ignore"):
        for _ in range(k):
            method.step(state)
            state.log[T] += 1
            state.log[DIVERGED] = method.diverged(state)
            state.underflow = method.last_loss < LEAST_LOSS
            if state.diverged or state.underflow:
                return


def _advance(method: Descent, state: State, k: int) -> None:
    longest = max(1, int(WORK_PER_CALL / (4 * method.problem.X.size)))
    while k > 0 and not state.diverged:
        method.advance(state, min(k, longest))
        k -= longest


def _message(status: Status, state: State) -> str:
    if status is Status.DIVERGED:
        return (
            f"The iterates diverged at step {state.t}: a step is too large. Decrease step_size (or direction_step "
            "after a switch); the record ends at the last finite iterate."
        )
    if status is Status.STOPPED:
        return f"Stopped by the caller at step {state.t}."
    if state.underflow:
        return f"The loss fell below {LEAST_LOSS:g} at step {state.t}, near the limit of float64: the run ends there."
    return f"Ran {state.t} steps."


def check_directions(v: object, groups: Groups, *, unit: bool) -> FloatArray:
    """Check a start for the directions: one finite number per column and, if `unit`, unit norm in each group."""
    directions = as_coefficients(v, "start", groups.n_columns).copy()
    if unit:
        norms = groups.norms(directions)
        off = int(np.argmax(np.abs(norms - 1)))
        if abs(norms[off] - 1) > 1e-6:
            raise ValueError(
                f"start must have unit norm in every group; group {groups.names[off]!r} has norm {norms[off]:.6g}. "
                "Divide each group by its norm."
            )
        directions /= norms[groups.labels]
    return directions


def check_scale(init_scale: object, n: int, name: str = "init_scale") -> FloatArray:
    """Check the start of the magnitudes: one positive number for all, or one per magnitude."""
    scale = as_numbers(init_scale, name, finite=False)
    if scale.ndim > 1 or (scale.ndim == 1 and scale.size != n):
        raise ValueError(f"{name} must be one number or {n} of them, not shape {scale.shape}.")
    if not np.isfinite(scale).all() or (scale <= 0).any():
        raise ValueError(f"{name} must be above 0 and finite, not {init_scale!r}.")
    if (scale > LARGEST_START).any():
        raise ValueError(f"{name} must be at most {LARGEST_START:g}: the method starts near zero.")
    return np.full(n, 1.0) * scale


def read_clock(clock: object, loss: Loss, order: int) -> int | None:
    """Read ``clock=``: "steps", which gives None, or "loss", which gives the order."""
    if one_of(clock, ("steps", "loss"), "clock") == "steps":
        return None
    if loss.name != "binomial":
        raise ValueError(
            f"clock='loss' is for separable classes, where the loss tends to zero at infinity; the {loss.name} loss "
            "has its minimum elsewhere. Use loss='binomial', or clock='steps'."
        )
    return order
