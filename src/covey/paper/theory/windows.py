"""Time windows: when the error bound holds along a trajectory, compared with [T_lb, T_ub]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.paper.dynamics import Trajectory
from covey.paper.dynamics.problem import as_coefficients
from covey.paper.theory.bounds import Bounds
from covey.paper.theory.power import PowerBounds
from covey.validation import FloatArray, positive


@dataclass(frozen=True)
class TimeWindow:
    """The empirical window of a trajectory, and the predicted ones.

    `start` and `stop` are the first and last recorded time of the longest stretch in which both bounds hold, or None:
    ``support_error = max_{l in S} norm(w_l(t) - w*_l, inf)`` is at most `support_radius`, and ``off_error = max_{l not
    in S} norm(w_l(t), inf)`` at most `off_radius`. `predicted` is (T_lb, T_ub) as printed in the theorem, and
    `predicted_corrected` as corrected.
    """

    start: float | None
    stop: float | None
    t: NDArray[Any]
    support_error: FloatArray
    off_error: FloatArray
    support_radius: float
    off_radius: float
    predicted: tuple[float, float] | None = None
    predicted_corrected: tuple[float, float] | None = None

    @property
    def holds(self) -> NDArray[np.bool_]:
        """At each record, whether both bounds hold."""
        return (self.support_error <= self.support_radius) & (self.off_error <= self.off_radius)

    def contains(self, window: tuple[float, float]) -> bool:
        """Whether both bounds hold at every record inside ``window``, and it lies within the recorded times."""
        low, high = window
        if low > high or low < self.t[0] or high > self.t[-1]:
            return False
        inside = (self.t >= low) & (self.t <= high)
        return bool(inside.any() and self.holds[inside].all())

    def __str__(self) -> str:
        found = "never" if self.start is None else f"[{self.start:g}, {self.stop:g}]"
        lines = [f"error within {self.support_radius:.4g} on the support and {self.off_radius:.4g} off it: {found}"]
        for name, window in (("printed", self.predicted), ("corrected", self.predicted_corrected)):
            if window is not None:
                empty = " (empty)" if window[0] > window[1] else ""
                lines.append(f"  predicted, {name}: [{window[0]:.5g}, {window[1]:.5g}]{empty}")
        return "\n".join(lines)


def time_window(
    trajectory: Trajectory, w_star: ArrayLike, *, bounds: Bounds | PowerBounds | None = None,
    support_radius: float | None = None, off_radius: float | None = None,
) -> TimeWindow:  # fmt: skip
    """The times at which a trajectory meets the error bound of Theorem convergence-alg-1 (and -2, and gf-es).

        norm(w_l(t) - w*_l, inf) <= support_radius for l in S,      norm(w_l(t), inf) <= off_radius for l not in S.

    The truth `w_star` determines S. `bounds` gives the predicted windows and the default radii: ``2 zeta_corrected``
    and ``alpha``, or those for the power N, for which only the corrected window exists.

    >>> from covey.datasets import make_group_sparse
    >>> from covey.paper.dynamics import normalized_descent
    >>> data = make_group_sparse(random_state=0)
    >>> path = normalized_descent(data.X, data.y, data.groups, n_steps=1500, record_every=10)
    >>> window = time_window(path, data.w_star, support_radius=0.2, off_radius=0.01)
    >>> 300 < window.start < window.stop == 1500
    True
    """
    groups, t = trajectory.groups, trajectory.t
    truth = as_coefficients(w_star, "w_star", groups.n_columns)
    printed = corrected = None
    if bounds is not None:
        exact = bounds if isinstance(bounds, PowerBounds) else bounds.corrected
        corrected = exact.T_lb, exact.T_ub
        printed = None if isinstance(bounds, PowerBounds) else (bounds.T_lb, bounds.T_ub)
        support_radius = exact.error_radius if support_radius is None else support_radius
        off_radius = bounds.off_support_radius if off_radius is None else off_radius
    if support_radius is None or off_radius is None:
        raise ValueError("Give bounds=, or both support_radius= and off_radius=.")
    support_radius, off_radius = positive(support_radius, "support_radius"), positive(off_radius, "off_radius")

    on = (groups.norms(truth) > 0)[groups.labels]
    gap = np.abs(trajectory.w - truth)
    support_error, off_error = gap[:, on].max(axis=1, initial=0.0), gap[:, ~on].max(axis=1, initial=0.0)
    holds, start, stop = (support_error <= support_radius) & (off_error <= off_radius), None, None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(int)))
    if edges.size:
        firsts, lasts = t[edges[::2]], t[edges[1::2] - 1]
        longest = int(np.argmax(lasts - firsts))
        start, stop = float(firsts[longest]), float(lasts[longest])
    return TimeWindow(start, stop, t, support_error, off_error, support_radius, off_radius, printed, corrected)
