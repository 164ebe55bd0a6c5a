"""The discrepancy principle: stop when the residual is no larger than the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from covey.network import Snapshot
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.information import InformationCriterion, degrees_of_freedom
from covey.validation import positive

__all__ = ["Discrepancy", "estimate_sigma"]


@dataclass(frozen=True)
class Discrepancy(Stopping):
    """The first time at which the mean squared residual falls to ``factor * sigma^2``.

    Parameters
    ----------
    sigma : float, optional
        The standard deviation of the noise; by default estimated on the path itself, see `estimate_sigma`.
    factor : float
        The safety factor of the principle, at least 1.
    """

    sigma: float | None = None
    factor: float = 1.0

    def choose(self, task: PathTask) -> Choice:
        """Run until the residual reaches the noise."""
        factor = positive(self.factor, "factor")
        sigma = estimate_sigma(task) if self.sigma is None else positive(self.sigma, "sigma")
        n = task.n_effective
        errors = task.design.errors(task.y, task.weight)

        def enough(snapshot: Snapshot) -> bool:
            error = errors(snapshot.columns, snapshot.coef[None, :], np.array([snapshot.intercept]))
            return float(error[0]) <= factor * sigma**2

        path = task.path(stop=enough)
        mean_square = task.residual_sums(path) / n
        below = mean_square <= factor * sigma**2
        position = int(np.argmax(below)) if below.any() else len(path) - 1
        scores = pd.DataFrame({"time": path.times, "mean_square": mean_square, "target": factor * sigma**2})
        return Choice(path, float(path.times[position]), scores)


def estimate_sigma(task: PathTask) -> float:
    """The residual standard deviation where generalised cross-validation is least, corrected for degrees of freedom."""
    chosen = InformationCriterion("gcv").choose(task)
    i = chosen.position
    freedom = degrees_of_freedom(chosen.path, task.fit_intercept)[i]
    left = max(task.n_effective - freedom, 1.0)
    return float(np.sqrt(chosen.scores["rss"].iloc[i] / left))
