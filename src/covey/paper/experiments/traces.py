"""Trajectories as tidy tables: columns ``mode, quantity, index, t, value``, one number per row.

| quantity | index | value |
| --- | --- | --- |
| ``error`` | 0 | ``norm(w - w_star)^2``, at every step |
| ``entry`` | column of the support, or `OFF` | coefficient; off the support the largest in absolute value |
| ``magnitude`` | group of the support, or `OFF` | ``norm(w_l)^(1/2)``, the paper's u; the largest off the support |
| ``direction`` | column of the support | entry of ``v_l`` |
| ``alignment`` | group of the support | inner product of ``v_l`` with the true direction |
| ``switch`` | 0 | the iteration of Algorithm 2's switch |

Rows of mode `TRUTH` hold the true values at t = 0. The modes are `TEXT` and `CODE`: the paper's algorithm as printed,
and as in the authors' code (gradients twice as large, the magnitude's gradient at the old direction).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from covey.datasets import GroupSparseData
from covey.paper.dynamics import Trajectory, normalized_descent

TEXT, CODE, TRUTH = "text", "code", "truth"
MODES = (TEXT, CODE)
OFF = -1
IN_CODE: dict[str, Any] = {"gradient_scale": 2.0, "magnitude_at": "old"}


def descend(data: GroupSparseData, mode: str = TEXT, /, **options: Any) -> Trajectory:
    """Algorithm 1 or 2 as printed or, in mode `CODE`, as in the authors' code, with its recovery error."""
    changes = IN_CODE if mode == CODE else {}
    return normalized_descent(data.X, data.y, data.groups, w_star=data.w_star, **changes, **options)


def curve(mode: str, quantity: str, index: int, t: ArrayLike, value: ArrayLike | None) -> pd.DataFrame:
    """One curve, or one number, as a tidy table."""
    t, value = np.broadcast_arrays(np.atleast_1d(t), np.atleast_1d(np.asarray(value, dtype=float)))
    return pd.DataFrame({"mode": mode, "quantity": quantity, "index": index, "t": t, "value": value})


def stack(*parts: pd.DataFrame) -> pd.DataFrame:
    """Tidy tables one below another."""
    return pd.concat(parts, ignore_index=True)


def thinned(run: Trajectory, points: int) -> slice:
    """About this many records of a run, evenly spread."""
    return slice(None, None, max(1, len(run) // points))


def errors(run: Trajectory) -> NDArray[np.floating[Any]]:
    """The recovery error at every record of a run that was given the truth."""
    if run.error is None:
        raise ValueError("The run was not given the truth.")
    return run.error


def trace(
    run: Trajectory, data: GroupSparseData, mode: str,
    quantities: tuple[str, ...] = ("entry", "magnitude", "direction", "alignment"), *, points: int = 200,
    until: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """A figure's part of a run: the error at every step, the `quantities` at about `points` records up to `until`."""
    labels, support = data.groups.labels, data.S
    on, off = (np.flatnonzero(np.isin(labels, support, invert=invert)) for invert in (False, True))
    end = len(run) - 1 if until is None else min(until, len(run) - 1)
    thin = np.unique(np.append(np.arange(0, end, max(1, end // points)), end))
    t, w = run.t[thin], run.w[thin]
    sizes = np.sqrt(data.groups.norms(w))
    v = np.divide(w, (sizes**2)[:, labels], out=np.zeros_like(w), where=w != 0)
    curves: dict[str, dict[Any, Any]] = {
        "entry": {**{j: w[:, j] for j in on}, OFF: np.abs(w[:, off]).max(axis=1)},
        "magnitude": {**{l: sizes[:, l] for l in support}, OFF: np.delete(sizes, support, axis=1).max(axis=1)},
        "direction": {j: v[:, j] for j in on},
        "alignment": {l: v[:, labels == l] @ data.v_star[labels == l] for l in support},
    }
    parts = [curve(mode, "error", 0, run.t, errors(run))]
    parts += [curve(mode, name, int(i), t, value) for name in quantities for i, value in curves[name].items()]
    if run.switch is not None:
        parts += [curve(mode, "switch", 0, run.switch, run.switch)]
    return stack(*parts)


def truth(data: GroupSparseData) -> pd.DataFrame:
    """The true entries, magnitudes and directions, and the error of least squares on the true groups."""
    on = np.flatnonzero(np.isin(data.groups.labels, data.S))
    true = {
        "entry": {j: data.w_star[j] for j in on},
        "magnitude": {l: data.u_star[l] for l in data.S},
        "direction": {j: data.v_star[j] for j in on},
        "error": {0: np.sum((data.oracle() - data.w_star) ** 2)},
        "signal": {0: np.sum(data.w_star**2)},
    }
    return stack(*(curve(TRUTH, name, int(i), 0, value) for name, one in true.items() for i, value in one.items()))
