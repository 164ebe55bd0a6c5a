"""The balance ``u_l^2/N - norm(v_l)^2``: conserved along the flow, drifting with the step along descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from covey.groups import Groups
from covey.paper.dynamics import Trajectory, gradient_flow, plain_descent
from covey.validation import FloatArray, as_numbers, check_scale, listed, positive, whole

# The most steps of a comparison, and the smallest fraction of a step.
MOST_STEPS, SHORTEST = 1e6, 1e-3


def balance(u: ArrayLike, v: ArrayLike, groups: Groups, *, depth: int = 2) -> FloatArray:
    """``u_l^2/N - norm(v_l)^2`` for each group: the quantity of Lemma balancing (N = 2 there).

    Leading axes, such as time, are kept.

    >>> balance([2.0], [0.0, 1.0], Groups.from_sizes([2])).tolist()
    [1.0]
    """
    u, v = _read(u, "u", groups, by_group=True), _read(v, "v", groups, by_group=False)
    return u**2 / whole(depth, "depth") - groups.norms(v) ** 2


def balance_increment(u: ArrayLike, v: ArrayLike, g: ArrayLike, groups: Groups, step: float) -> FloatArray:
    """The exact change of the balance in one step of plain descent (N = 2):

    ``step^2 (2 u_l^2 (v_l'g_l)^2 - u_l^4 norm(g_l)^2)``: second order in the step, first order over a fixed time.
    """
    u = _read(u, "u", groups, by_group=True)
    v, g = _read(v, "v", groups, by_group=False), _read(g, "g", groups, by_group=False)
    step = positive(step, "step")
    check_scale(np.array(step), "step")
    inner = np.add.reduceat(groups.to_contiguous(v * g), groups.starts[:-1], axis=-1)
    return step**2 * (2 * u**2 * inner**2 - u**4 * groups.norms(g) ** 2)


def _read(values: object, name: str, groups: object, *, by_group: bool) -> FloatArray:
    """One number per group, or per column, along the last axis."""
    if not isinstance(groups, Groups):
        raise ValueError(f"groups must be a covey.Groups, not a {type(groups).__name__}.")
    array = as_numbers(values, name)
    size, unit = (groups.n_groups, "group") if by_group else (groups.n_columns, "column")
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(f"{name} must have {size} entries, one per {unit}, not shape {array.shape}.")
    check_scale(array, name)
    return array


@dataclass(frozen=True)
class BalanceDrift:
    """The balance minus its start, `drift` (n_records, n_groups), at times `t`; `scale` is the largest ``u_l^2/N``."""

    t: NDArray[Any]
    drift: FloatArray
    scale: float

    @property
    def largest(self) -> float:
        """The largest absolute drift of any group at any time."""
        return float(np.abs(self.drift).max())

    @property
    def relative(self) -> float:
        """`largest` over `scale`."""
        return self.largest / self.scale


def balance_drift(trajectory: Trajectory) -> BalanceDrift:
    """The drift of the balance of Lemma balancing along a trajectory of the flow or of plain descent."""
    values = balance(trajectory.u, trajectory.v, trajectory.groups, depth=trajectory.depth)
    scale = float((trajectory.u**2).max()) / trajectory.depth
    return BalanceDrift(trajectory.t, values - values[0], scale)


def drift_against_step(
    X: object, y: object, groups: object, *, steps: Sequence[float] = (0.04, 0.02, 0.01, 0.005, 0.0025),
    total_time: float = 20.0, init_scale: float = 0.1, start: object = "aligned",
) -> pd.DataFrame:  # fmt: skip
    """The drift of the balance along plain descent with several step sizes, and along the flow, over the same time.

    The columns are ``dynamics`` ("descent" or "flow"), ``step`` (NaN for the flow), ``largest``, ``relative`` and
    ``final_loss``. Halving the step halves the drift.

    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(40, 12, 3, active=1, values=1.0, random_state=0)
    >>> frame = drift_against_step(data.X, data.y, data.groups, steps=(0.02, 0.01))
    >>> ratio = frame.largest[0] / frame.largest[1]
    >>> bool(1.8 < ratio < 2.2), bool(frame.relative[2] < 1e-5)
    (True, True)
    """
    runs = []
    total_time = positive(total_time, "total_time")
    for step in [positive(step, "every one of steps") for step in listed(steps, "steps")]:
        if not SHORTEST < total_time / step < MOST_STEPS:
            raise ValueError(f"A total_time of {total_time:g} in steps of {step:g} takes too many steps, or none.")
        n_steps = max(1, round(total_time / step))
        path = plain_descent(X, y, groups, init_scale=init_scale, step_size=step, start=start, n_steps=n_steps)
        runs.append(("descent", float(step), path))
    flow = gradient_flow(X, y, groups, init_scale=init_scale, t_end=total_time, start=start)
    drifts = []
    for name, step, path in [*runs, ("flow", float("nan"), flow)]:
        check_scale(path.u, "With this init_scale, u")
        drift = balance_drift(path)
        drifts.append((name, step, drift.largest, drift.relative, float(path.loss[-1])))
    return pd.DataFrame(drifts, columns=["dynamics", "step", "largest", "relative", "final_loss"])
