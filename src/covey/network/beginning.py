"""The beginning of a path: the start scale, or the end of another path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.layout import offsets, spans
from covey.network.awake import AwakeGroups, unit_groups
from covey.network.near_awake import AwakeView
from covey.network.settings import Settings, direction_to_user, direction_to_working
from covey.network.switching import Switch
from covey.path import Path, PathState
from covey.preprocess import WorkingProblem
from covey.validation import FloatArray

__all__ = ["Beginning", "ending", "read_start"]

# The smallest logarithm of a magnitude whose powers do not underflow.
SMALLEST_LOG = -90.0


@dataclass(frozen=True)
class Beginning:
    """The first state of a run, in working coordinates.

    Attributes
    ----------
    time : int
    log_u : ndarray, shape (n_groups,)
    v : ndarray, shape (r,)
        Unit directions: of the awake groups, and of all once directions are frozen.
    awake : ndarray of int
        Groups awake from the start, in order.
    eta, armed
        As in `Switch`.
    entered : tuple of (group, time)
        Groups that have woken up before.
    """

    time: int
    log_u: FloatArray
    v: FloatArray
    awake: NDArray[np.intp]
    eta: float = 0.0
    armed: bool = False
    entered: tuple[tuple[int, float], ...] = ()


def read_start(start: Any, problem: WorkingProblem, settings: Settings) -> Beginning:
    """Read ``start=``."""
    c, starts = problem.correlation, problem.starts
    L = problem.ranks.size
    v = unit_groups(c, starts)
    if start is None:
        return Beginning(0, np.full(L, np.log(settings.start)), v, np.empty(0, dtype=np.intp))
    state = start.state if isinstance(start, Path) else start
    if not isinstance(state, PathState):
        raise ValueError(f"start must be a Path made by group_path, or a PathState, not {type(start).__name__}.")
    p = problem.mean.size
    if state.coef.shape != (p,) or state.log_magnitudes.shape != (L,):
        raise ValueError(
            f"start belongs to a problem of {state.coef.size} columns in {state.log_magnitudes.size} groups; "
            f"this one has {p} columns in {L} groups."
        )
    log_u = np.maximum(state.log_magnitudes.astype(float), SMALLEST_LOG)
    awake = np.asarray(state.awake, dtype=np.intp)
    awake = awake[problem.ranks[awake] > 0]
    if state.directions is not None:
        v = unit_groups(problem.from_user(np.arange(L), state.directions), starts)
    w, own, first = problem.from_user(awake, state.coef), spans(starts, awake), offsets(problem.ranks[awake])
    sizes = np.sqrt(np.add.reduceat(w * w, first[:-1])) if awake.size else np.empty(0)
    up = sizes > 0
    log_u[awake[up]] = np.log(sizes[up]) / settings.depth
    of_up = np.repeat(up, problem.ranks[awake])
    v[own[of_up]] = unit_groups(w, first)[of_up]
    eta = direction_to_working(problem, state.direction_step)
    return Beginning(state.time, log_u, v, awake, eta, state.armed, state.entered)


def ending(
    problem: WorkingProblem,
    time: int,
    awake: AwakeGroups | AwakeView,
    which: list[int],
    log_magnitudes: FloatArray,
    switch: Switch,
    v: FloatArray,
    entered: list[tuple[int, float]],
) -> PathState:
    """The final state of an engine, on the user's scale."""
    coef = np.zeros(problem.mean.size)
    groups = np.array(which, dtype=np.intp)
    columns = problem.layout.members[spans(problem.layout.starts, groups)]
    coef[columns] = problem.models_to_user(groups, awake.w[None, :])[0][0]
    directions = None
    if switch.frozen:
        directions = problem.to_columns(v)
    return PathState(
        time=time, coef=coef, awake=groups, log_magnitudes=log_magnitudes,
        entered=tuple(entered), direction_step=direction_to_user(problem, switch.eta), directions=directions,
        armed=switch.armed,
    )  # fmt: skip
