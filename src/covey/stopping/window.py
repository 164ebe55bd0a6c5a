"""Stop inside the window of the convergence theorems."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.preprocess import WorkingProblem
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.discrepancy import Discrepancy
from covey.validation import FloatArray, positive

__all__ = ["TheoryWindow"]

# Directions of the pilot's groups are dependent if an eigenvalue of the Gram block is below this share of the largest.
DEPENDENT = 1e-10

# Powers of a smaller start underflow.
SMALLEST_START = 1e-100


@dataclass(frozen=True)
class TheoryWindow(Stopping):
    """A time at which the selected groups have settled and noise groups are still asleep, for a known noise level.

    The window [T_lb, T_ub] of theorem convergence-alg-1, with its corrected formulas (as printed it is empty; see
    `covey.theory.bounds`), in the coordinates of the path, so that the units of X and y do not matter. The theorem's
    magnitudes are those of the truth. A pilot fit replaces it here: least squares on the groups with which the residual
    reaches the noise (`Discrepancy`), restricted to those above the level that noise reaches in a group.

    The theorem applies only if every group is 80 times the noise. Otherwise, as on the data of the paper's figures, the
    rule warns and uses the times of isolated groups, as on an orthogonal design (`covey.theory.settle_time`,
    `covey.theory.rest_time`). If noise would wake up before the weakest group has settled, there is no window; the rule
    then raises an error that names a start that would open one, if any does.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise.
    where : {"lower", "middle", "upper"}
        The end of the window at which to stop, or its geometric mean, which is far from both ends: correlated groups
        settle later and wake up sooner than isolated ones.
    """

    sigma: float
    where: Literal["lower", "middle", "upper"] = "middle"

    def choose(self, task: PathTask) -> Choice:
        """Estimate the magnitudes with a pilot fit, then run the path to the window's time."""
        sigma = positive(self.sigma, "sigma")
        if self.where not in ("lower", "middle", "upper"):
            raise ValueError(f"where must be 'lower', 'middle' or 'upper', not {self.where!r}.")
        if (depth := task.options.get("depth", 2)) != 2:
            raise ValueError(f"The theorems behind TheoryWindow are for depth=2, not {depth}: use another rule.")
        pilot = Discrepancy(sigma).choose(task)
        found = _Found.by(pilot, task, sigma)
        if found.groups.size == 0:
            # no group exceeds the noise level
            return Choice(pilot.path, float(pilot.path.times[0]), pilot.scores)
        T_lb, T_ub, source = _window(found)
        time = {"lower": np.ceil(T_lb), "middle": np.round(np.sqrt(T_lb * T_ub)), "upper": np.floor(T_ub)}[self.where]
        if time > task.max_iter:
            raise ValueError(
                f"The window [{T_lb:.0f}, {T_ub:.0f}] lies beyond max_iter={task.max_iter}: give a larger max_iter."
            )
        path = task.path(max_iter=max(1, int(time)), step_size=pilot.path.step_size)
        scores = pd.DataFrame({"T_lb": [T_lb], "T_ub": [T_ub], "window": [source], "time": [path.times[-1]]})
        return Choice(path, float(path.times[-1]), scores)


@dataclass(frozen=True)
class _Found:
    """The estimates of the pilot fit, in working coordinates.

    Attributes
    ----------
    groups, levels : ndarray
        Groups above the noise level, and the norms of their coefficients.
    noise : ndarray, shape (n_groups,)
        The level that noise reaches in each group.
    steps : ndarray, shape (n_groups,)
        gamma of each group, including its weight.
    start, init_scale : float
        alpha in working coordinates, and as given.
    n, p
        The numbers of rows and columns.
    """

    groups: NDArray[np.intp]
    levels: FloatArray
    noise: FloatArray
    steps: FloatArray
    start: float
    init_scale: float
    n: float
    p: int

    @classmethod
    def by(cls, pilot: Choice, task: PathTask, sigma: float) -> _Found:
        from covey.network.settings import Network, read_settings

        problem = task.runner.problem
        options = {"group_weights": "noise", **Network().options()} | dict(task.options)
        names = ("algorithm", "init_scale", "step_size", "direction_step", "switch_tol", "depth", "group_weights")
        settings = read_settings(problem, update=options["update"], **{name: options[name] for name in names})
        n = task.n_effective
        noise = _group_noise(problem, sigma / problem.y_scale, n, options.get("standardize", "group"))
        woken = np.array([l for l, t in pilot.path.entered if t <= pilot.time], dtype=np.intp)
        norms = _refitted_norms(problem, woken)
        above = norms > noise[woken]
        return cls(
            woken[above], norms[above], noise, settings.gamma * settings.speeds, settings.start, options["init_scale"],
            n, problem.n_columns,
        )  # fmt: skip


def _window(found: _Found) -> tuple[float, float, str]:
    """T_lb, T_ub and their source; raises an error if there is no window."""
    from covey.theory.bounds import bounds  # its kernels are compiled
    from covey.theory.descent_times import opening_scale, rest_time, settle_time

    alpha, weakest = found.start, float(found.levels.min())
    disturbed = weakest / 20.0 + found.noise
    T_ub = min(rest_time(b, init_scale=alpha, step_size=step) for b, step in zip(disturbed, found.steps, strict=True))
    # a precision below the noise level would be pointless
    reached = float(found.noise.max())
    limits = bounds(
        np.sqrt(found.levels), n=round(found.n), p=found.p, L=found.noise.size, epsilon=reached, noise=reached,
        group_noise=reached, init_scale=alpha, step_size=float(found.steps[found.groups].min()),
    )  # fmt: skip
    if limits.zeta_corrected <= weakest and limits.T_lb_corrected <= T_ub:
        return limits.T_lb_corrected, T_ub, "theorem"
    precision = np.minimum(found.noise[found.groups], found.levels / 2)
    of_groups = list(zip(found.levels, found.steps[found.groups], precision, strict=True))
    T_lb = max(settle_time(c, init_scale=alpha, step_size=step, precision=d) for c, step, d in of_groups)
    if T_lb > T_ub:
        b, step = max(zip(disturbed, found.steps, strict=True), key=lambda pair: pair[0] * pair[1])
        opens = [opening_scale(c, b, step_size=own, noise_step=step, precision=d) for c, own, d in of_groups]
        smallest = min((scale or 0.0 for scale in opens), default=0.0) * found.init_scale / alpha
        raise ValueError(_no_window(T_lb, T_ub, weakest, float(b), smallest))
    warnings.warn(
        f"Theorem convergence-alg-1 does not apply here: the weakest group found has norm {weakest:.3g}, and 80 times "
        f"the noise is {limits.zeta_corrected:.3g} (in units of the response). TheoryWindow uses the times of isolated "
        "groups instead.",
        stacklevel=3,
    )
    return T_lb, T_ub, "orthogonal"


def _no_window(T_lb: float, T_ub: float, weakest: float, noise: float, opens: float) -> str:
    """The remedy if noise groups wake up too early; `opens` is the start that would separate them, 0 for none."""
    if opens < SMALLEST_START:
        remedy = "No start is small enough to separate them: use more rows, or 'ebic' or Discrepancy(sigma)."
    else:
        remedy = (
            f"Set init_scale={0.9 * opens:.1e} or smaller, which separates them, or use another rule such as 'ebic'."
        )
    return (
        f"There is no window: the weakest group found (norm {weakest:.3g} in units of the response) settles by "
        f"iteration {T_lb:.0f}, but a noise group (up to {noise:.3g}) may wake up at {T_ub:.0f}. {remedy}"
    )


def _refitted_norms(problem: WorkingProblem, which: NDArray[np.intp]) -> FloatArray:
    """Norms of some groups' least-squares coefficients; on a path they may still be growing."""
    if which.size == 0:
        return np.empty(0)
    K, c = problem.gram_block(which)
    w = np.linalg.lstsq(K, c, rcond=DEPENDENT)[0]
    return np.sqrt(np.add.reduceat(w * w, np.concatenate([[0], np.cumsum(problem.ranks[which])[:-1]])))


def _group_noise(problem: WorkingProblem, sigma: float, n: float, standardize: Any) -> FloatArray:
    """The level that noise may reach in each group; for orthonormal groups it is known without reading X."""
    from covey.theory.descent_times import group_noise_bound

    L, p, out = problem.ranks.size, max(problem.n_columns, 1), np.zeros(problem.ranks.size)
    for l in np.flatnonzero(problem.ranks):
        rank = float(problem.ranks[l])
        trace, largest = rank, 1.0 if standardize == "group" else rank
        if standardize != "group" and problem.design.reads_columns:
            K = problem.gram_block(np.array([l]))[0]
            trace, largest = float(np.trace(K)), float(np.linalg.eigvalsh(K)[-1])
        out[l] = group_noise_bound(sigma, n, p, L, trace, largest)
    return out
