"""When to stop: rules that choose a time on the network's path, which is its only regularisation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from covey.paper.running import Coordinates, Descent
from covey.paper.theory.bounds import bounds
from covey.paper.theory.times import group_noise_bound, opening_scale, rest_time, settle_time
from covey.selection import Discrepancy, InformationCriterion
from covey.validation import FloatArray, one_of, positive

# The earliest model with an error within this share of the least is chosen: later groups change the error by less than
# held-out rows can detect.
PARSIMONY = 3e-3

# A run ends once its score has not improved, by this share, until this many times the best time.
IMPROVEMENT, PATIENCE = 1e-3, 3.0

# Beyond this share of the rows as degrees of freedom, criteria are unreliable.
MOST_FREEDOM = 0.5

# Powers of a smaller start underflow.
SMALLEST_START = 1e-100


@dataclass(frozen=True)
class Choice:
    """A chosen time, and the scores it is based on, one row per time."""

    time: float
    scores: pd.DataFrame


@dataclass(frozen=True)
class AtTime:
    """The model after `time` iterations, or at this time of the flow."""

    time: float

    def __post_init__(self) -> None:
        positive(self.time, "the time of AtTime", zero=True)


class Akaike:
    """The Akaike information criterion, ``n log(RSS/n) + 2 df``."""

    criterion = "aic"

    def value(self, rss: FloatArray, df: FloatArray, s: FloatArray, L: int, n: float) -> FloatArray:
        """The criterion, as in `InformationCriterion`."""
        return np.where(df < n, n * np.log(np.maximum(rss, np.finfo(float).tiny) / n) + 2 * df, np.inf)


class Monitor:
    """Called at every record of a run; true once the score has not improved for long enough."""

    def __init__(self, scores: Callable[[FloatArray], FloatArray], coordinates: Coordinates) -> None:
        self.scores, self.first = scores, float(coordinates.correlations.max())
        self.groups = coordinates.groups
        self.best, self.best_time, self.first_wake = np.inf, 0.0, 0.0

    def __call__(self, time: float, w: FloatArray) -> bool:
        score = float(self.scores(w[None])[0])
        if score < self.best - IMPROVEMENT * abs(self.best) or not np.isfinite(self.best):
            self.best, self.best_time = score, time
        if not self.first_wake and self.groups.norms(w).max() > 0.5 * self.first:
            self.first_wake = time
        return bool(self.first_wake and time > PATIENCE * max(self.best_time, self.first_wake))


def by_rows(
    descent: Descent, folds: Sequence[tuple[Coordinates, FloatArray, FloatArray, FloatArray]], rule: str = "min"
) -> Choice:
    """The earliest time with a mean squared error on held-out rows within 0.3% of the least, or one standard error.

    A fold has the coordinates of its training rows, and X, y and weights of the others. The step is the same for all,
    so that their times are comparable.
    """
    runs = []
    for coordinates, X, y, weight in folds:
        errors = partial(_held_out_errors, coordinates, X, y, weight / weight.sum())
        run = descent.run(coordinates, stop=Monitor(errors, coordinates))
        runs.append((run.times, errors(run.W)))
    times = min((times for times, _ in runs), key=len)
    mse = np.column_stack([errors[: times.size] for _, errors in runs])
    mean = mse.mean(axis=1)
    spread = mse.std(axis=1, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else np.zeros(times.size)
    least = int(np.argmin(mean))
    slack = spread[least] if rule == "1se" else PARSIMONY * mean[least]
    table = {"time": times, "mse": mean, "standard_error": spread}
    table |= {f"fold_{k}": mse[:, k] for k in range(mse.shape[1]) if len(runs) > 1}
    return Choice(float(times[int(np.argmax(mean <= mean[least] + slack))]), pd.DataFrame(table))


def _held_out_errors(at: Coordinates, X: FloatArray, y: FloatArray, q: FloatArray, W: FloatArray) -> FloatArray:
    """The mean squared error on other rows of every model in working coordinates; q are the weights of the rows."""
    return np.array([q @ (y - X @ w - b) ** 2 for w, b in zip(*at.to_user(W), strict=True)])


def _sums(W: FloatArray, coordinates: Coordinates) -> FloatArray:
    """The residual sum of squares of every model, in working coordinates."""
    return np.array([np.sum((coordinates.y - coordinates.Z @ w) ** 2) for w in W])


def by_criterion(descent: Descent, coordinates: Coordinates, rule: Any, intercept: bool) -> Choice:
    """The time of least information criterion; degrees of freedom are the columns of the awake groups."""
    groups, n, threshold = coordinates.groups, coordinates.n, coordinates.threshold

    def table(W: FloatArray) -> dict[str, FloatArray]:
        awake = groups.norms(W) >= threshold
        rss = _sums(np.where(awake[:, groups.labels], W, 0.0), coordinates)
        df = awake @ groups.sizes + float(intercept)
        values = rule.value(rss, df, awake.sum(axis=1).astype(float), coordinates.n_groups, n)
        return {"rss": rss * coordinates.unit**2, "df": df, rule.criterion: values}

    run = descent.run(coordinates, stop=Monitor(lambda W: table(W)[rule.criterion], coordinates))
    scores = pd.DataFrame({"time": run.times, **table(run.trajectory.w)})
    scores.loc[scores["df"] > MOST_FREEDOM * n, rule.criterion] = np.inf
    return Choice(float(run.times[int(np.argmin(scores[rule.criterion]))]), scores)


def by_discrepancy(descent: Descent, coordinates: Coordinates, rule: Discrepancy, intercept: bool) -> Choice:
    """The first time at which the mean squared residual is at most ``factor * sigma^2``."""
    if rule.sigma is None:
        gcv = by_criterion(descent, coordinates, InformationCriterion("gcv"), intercept)
        row = gcv.scores[gcv.scores["time"] == gcv.time].iloc[0]
        variance = row["rss"] / max(coordinates.n - row["df"], 1.0)
    else:
        variance = rule.sigma**2
    unit = coordinates.unit**2
    target = rule.factor * variance / unit
    run = descent.run(coordinates, stop=lambda _, w: bool(_sums(w[None], coordinates)[0] <= target * coordinates.n))
    mean_square = _sums(run.W, coordinates) / coordinates.n
    below = mean_square <= target
    position = int(np.argmax(below)) if below.any() else len(below) - 1
    scores = pd.DataFrame({"time": run.times, "mean_square": mean_square * unit, "target": target * unit})
    return Choice(float(run.times[position]), scores)


@dataclass(frozen=True)
class TheoryWindow:
    """A time at which the selected groups have settled and noise groups are still asleep, for a known noise level.

    The window [T_lb, T_ub] of theorem convergence-alg-1, with its corrected formulas (as printed it is empty; see
    `covey.paper.theory.bounds`), in the coordinates of the path. The theorem's magnitudes are those of the truth; least
    squares on the groups with which the residual reaches the noise (`Discrepancy`) replaces them, restricted to groups
    above the level that noise reaches.

    The theorem applies only if every group is 80 times the noise. Otherwise, as on the data of the paper's figures, the
    rule warns and uses the times of isolated groups (`covey.paper.theory.settle_time`, `covey.paper.theory.rest_time`).
    If noise would wake up before the weakest group has settled, there is no window, and the error names a start that
    would open one, if any does.

    `sigma` is the standard deviation of the noise; `where` in the window to stop is its "lower" end, its "upper" end,
    or the "middle", their geometric mean.
    """

    sigma: float
    where: Literal["lower", "middle", "upper"] = "middle"

    def __post_init__(self) -> None:
        positive(self.sigma, "sigma")
        one_of(self.where, ("lower", "middle", "upper"), "where")

    def choose(self, descent: Descent, coordinates: Coordinates, intercept: bool) -> Choice:
        """Estimate the magnitudes with a pilot fit, then compute the window."""
        if descent.depth != 2 or descent.algorithm == "flow":
            raise ValueError("The theorems behind TheoryWindow are for Algorithms 1 and 2 with depth=2.")
        if descent.init_scale > coordinates.threshold:  # groups of noise reach a norm of alpha in the window
            raise ValueError(
                f"init_scale={descent.init_scale:g} is too large for TheoryWindow: groups of noise would count as "
                f"selected from the start. Use {0.9 * coordinates.threshold:.1e} or less."
            )
        pilot = by_discrepancy(descent, coordinates, Discrepancy(self.sigma), intercept)
        run = descent.run(coordinates, until=max(1.0, pilot.time))
        woken = np.flatnonzero(run.norms[-1, coordinates.which])
        noise = _group_noise(coordinates, self.sigma)
        columns, w = np.isin(coordinates.groups.labels, woken), np.zeros(coordinates.Z.shape[1])
        if woken.size:  # least squares: on a path groups may still be growing
            w[columns] = np.linalg.lstsq(coordinates.Z[:, columns], coordinates.y, rcond=1e-10)[0]
        levels = coordinates.groups.norms(w)[woken] / coordinates.shrink
        above = levels > noise[woken]
        if not above.any():
            return Choice(0.0, pilot.scores)
        T_lb, T_ub, source = _window(descent, coordinates, levels[above], noise)
        time = {"lower": np.ceil(T_lb), "middle": np.round(np.sqrt(T_lb * T_ub)), "upper": np.floor(T_ub)}[self.where]
        if time > descent.max_iter:
            raise ValueError(f"The window [{T_lb:.0f}, {T_ub:.0f}] is beyond max_iter={descent.max_iter}: increase it.")
        return Choice(float(time), pd.DataFrame({"T_lb": [T_lb], "T_ub": [T_ub], "window": [source], "time": [time]}))


def _window(descent: Descent, at: Coordinates, levels: FloatArray, noise: FloatArray) -> tuple[float, float, str]:
    """T_lb, T_ub and their source; raises an error if there is no window."""
    # dividing all columns by s multiplies magnitudes by sqrt(s), and divides the step by s
    shrink, weakest = at.shrink, float(levels.min())
    alpha, gamma = descent.init_scale / np.sqrt(shrink), descent.step_size / shrink
    reached = float(noise.max())
    disturbed = weakest / 20.0 + reached
    T_ub = rest_time(disturbed, init_scale=alpha, step_size=gamma)
    # a precision below the noise level would be pointless
    limits = bounds(
        np.sqrt(levels), n=at.n, p=at.Z.shape[1], L=noise.size, epsilon=reached, noise=reached,
        group_noise=reached, init_scale=alpha, step_size=gamma,
    )  # fmt: skip
    if limits.zeta_corrected <= weakest and limits.T_lb_corrected <= T_ub:
        return limits.T_lb_corrected, T_ub, "theorem"
    cases = [(float(c), min(reached, float(c) / 2)) for c in levels]
    T_lb = max(settle_time(c, init_scale=alpha, step_size=gamma, precision=d) for c, d in cases)
    if T_lb > T_ub:
        opens = [opening_scale(c, disturbed, step_size=gamma, noise_step=gamma, precision=d) or 0.0 for c, d in cases]
        start = min(opens) * np.sqrt(shrink)
        remedy = "No start is small enough to separate them: use more rows, or 'ebic' or Discrepancy(sigma)."
        if start >= SMALLEST_START:
            remedy = f"Set init_scale={0.9 * start:.1e} or smaller, which separates them, or use a rule such as 'ebic'."
        raise ValueError(
            f"There is no window: the weakest group found (norm {weakest:.3g} in working coordinates) settles by "
            f"iteration {T_lb:.0f}, but a noise group (up to {disturbed:.3g}) may wake up at {T_ub:.0f}. {remedy}"
        )
    warnings.warn(
        f"Theorem convergence-alg-1 does not apply here: the weakest group found has norm {weakest:.3g}, and 80 times "
        f"the noise is {limits.zeta_corrected:.3g} (in working coordinates). TheoryWindow uses the times of isolated "
        "groups instead.",
        stacklevel=4,
    )
    return T_lb, T_ub, "orthogonal"


def _group_noise(coordinates: Coordinates, sigma: float) -> FloatArray:
    """The level that noise may reach in each group."""
    n, L = coordinates.n, coordinates.groups.n_groups
    out = np.empty(L)
    for i, columns in enumerate(coordinates.groups.lists()):
        Z = coordinates.Z[:, columns] * coordinates.shrink
        K = Z.T @ Z / n
        largest = float(np.linalg.eigvalsh(K)[-1])
        out[i] = group_noise_bound(sigma / coordinates.unit, n, coordinates.Z.shape[1], L, float(np.trace(K)), largest)
    return out
