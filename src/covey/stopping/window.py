"""Stop inside the window of the convergence theorems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.discrepancy import Discrepancy
from covey.validation import positive

__all__ = ["TheoryWindow"]


@dataclass(frozen=True)
class TheoryWindow(Stopping):
    """A time between T_lb and T_ub of theorem convergence-alg-1, for a known noise level.

    The theorem's magnitudes are those of the truth. Here a pilot stands in for it: the model at which the residual
    reaches the noise (`Discrepancy`). With its magnitudes and ``epsilon = 2 sqrt(2 sigma^2 log(2p)/n)`` from the
    corollary's proof, the corrected formulas give the window; as printed it is empty (see `covey.theory.bounds`).

    Parameters
    ----------
    sigma : float
        The noise's standard deviation.
    where : {"lower", "middle", "upper"}
        The end of the window to stop at, or its geometric middle.
    """

    sigma: float
    where: Literal["lower", "middle", "upper"] = "lower"

    def choose(self, task: PathTask) -> Choice:
        """A pilot for the magnitudes, then the path to the window's time."""
        from covey.theory.bounds import bounds  # its kernels are compiled

        sigma = positive(self.sigma, "sigma")
        if self.where not in ("lower", "middle", "upper"):
            raise ValueError(f"where must be 'lower', 'middle' or 'upper', not {self.where!r}.")
        pilot = Discrepancy(sigma).choose(task)
        norms = pilot.path.group_norms[pilot.position]
        found = norms[norms > 0]
        if found.size == 0:
            return pilot
        n = round(task.n_effective)
        p = task.groups.n_columns
        epsilon = 2 * sigma * float(np.sqrt(2 * np.log(2 * p) / n))
        window = bounds(
            u_star=np.sqrt(found),
            n=n,
            p=p,
            L=task.groups.n_groups,
            sigma=sigma,
            epsilon=epsilon,
            init_scale=float(task.options.get("init_scale", 1e-6)) * np.sqrt(_spread(task)),
            step_size=pilot.path.step_size,
        )
        ends = {"lower": window.T_lb_corrected, "upper": window.T_ub_corrected}
        time = ends[self.where] if self.where in ends else float(np.sqrt(window.T_lb_corrected * window.T_ub_corrected))
        path = task.path(max_iter=min(round(time), task.max_iter), step_size=pilot.path.step_size)
        scores = pd.DataFrame(
            {"T_lb": [window.T_lb_corrected], "T_ub": [window.T_ub_corrected], "time": [path.times[-1]]}
        )
        return Choice(path, float(path.times[-1]), scores)


def _spread(task: PathTask) -> float:
    """The response's standard deviation: the path's start is given for a response of unit spread, w is not."""
    design = task.design
    return design.standard(task.y, design.weights(task.weight), centre=task.fit_intercept)[2]
