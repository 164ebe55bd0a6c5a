"""Information criteria: fit against degrees of freedom, without held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import gammaln

from covey.losses import Loss, Squared
from covey.network import Snapshot
from covey.path import Path
from covey.stopping.base import Choice, PathTask, Stopping
from covey.stopping.monitor import Monitor, earliest_least
from covey.validation import FloatArray, positive

__all__ = ["InformationCriterion", "degrees_of_freedom"]

# The most degrees of freedom, as a share of the rows; beyond it the criteria are unreliable, and a saturated model has
# zero residual variance.
MOST_FREEDOM = 0.5

# The path ends after this many groups have risen without lowering the criterion. More than for a validation set,
# because criteria have local minima where several groups have entered but not yet grown.
PATIENCE = 10.0

SQUARED = Squared()


@dataclass(frozen=True)
class InformationCriterion(Stopping):
    r"""The time of least BIC, extended BIC or generalised cross-validation.

    With ``RSS`` the residual sum of squares, ``s`` awake groups of ``L`` and ``df`` degrees of freedom,

    - BIC: ``n log(RSS/n) + log(n) df``,
    - EBIC: BIC ``+ 2 gamma log C(L, s)``, which accounts for the choice among many groups (Chen and Chen, 2008),
    - GCV: ``(RSS/n) / (1 - df/n)^2``.

    For losses other than squared, the deviance replaces ``RSS``; if the loss has no scale parameter (classes, counts),
    it replaces ``n log(RSS/n)``.

    The degrees of freedom are those of least squares on the awake groups: their columns, plus one for an intercept. A
    group that has woken up is not shrunk, so this is exact once it has settled, and an upper bound while it grows.

    Parameters
    ----------
    criterion : {"bic", "ebic", "gcv"}
    gamma : float
        The weight of the extra term of EBIC, between 0 and 1.
    """

    criterion: Literal["bic", "ebic", "gcv"] = "ebic"
    gamma: float = 1.0

    def choose(self, task: PathTask) -> Choice:
        """Run until the criterion stops falling or half of the degrees of freedom are used, and choose its minimum."""
        if self.criterion not in ("bic", "ebic", "gcv"):
            raise ValueError(f"criterion must be 'bic', 'ebic' or 'gcv', not {self.criterion!r}.")
        positive(self.gamma, "gamma", zero=True)
        n, L = task.n_effective, task.groups.n_groups
        intercept = task.fit_intercept

        def score(mean_square: float, snapshot: Snapshot) -> float:
            df = snapshot.columns.size + float(intercept)
            return float(self.value(np.array(mean_square * n), np.array(df), np.array(snapshot.n_woken), L, n))

        monitor = Monitor(task.design.errors(task.y, task.weight), PATIENCE, L, score)
        path = task.path(stop=lambda snapshot: monitor.stop_at(snapshot) or snapshot.columns.size > MOST_FREEDOM * n)
        rss = task.residual_sums(path)
        freedom = degrees_of_freedom(path, intercept)
        value = self.value(rss, freedom, awake_counts(path), L, n)
        scores = pd.DataFrame({"time": path.times, "rss": rss, "df": freedom, self.criterion: value})
        position = earliest_least(value, unit=0.0 if self.criterion == "gcv" else n)
        return Choice(path, float(path.times[position]), scores)

    def value(
        self, rss: FloatArray, df: FloatArray, s: FloatArray, L: int, n: float, loss: Loss = SQUARED
    ) -> FloatArray:
        """The criterion, given residual sums of squares (or deviances), degrees of freedom and numbers of groups."""
        if self.criterion == "gcv":
            left = 1 - df / n
            return np.where(left > 0, rss / n / np.where(left > 0, left, 1.0) ** 2, np.inf)
        # an exact fit has no residual: the smallest positive number keeps its logarithm finite
        value = loss.criterion(np.maximum(rss, np.finfo(float).tiny) / n, n) + np.log(n) * df
        if self.criterion == "ebic":
            value = value + 2 * self.gamma * (gammaln(L + 1) - gammaln(s + 1) - gammaln(L - s + 1))
        return np.where(df < n, value, np.inf)


def awake_counts(path: Path) -> FloatArray:
    """The number of groups awake at each time."""
    woken = np.sort([t for _, t in path.entered])
    return np.searchsorted(woken, path.times, side="right").astype(float)


def degrees_of_freedom(path: Path, intercept: bool) -> FloatArray:
    """The number of distinct columns in the awake groups at each time, plus one for an intercept."""
    events = sorted((t, l) for l, t in path.entered)
    woken = np.array([t for t, _ in events])
    members, starts = path.groups.members, path.groups.starts
    own = np.concatenate([np.empty(0, dtype=np.intp), *(members[starts[l] : starts[l + 1]] for _, l in events)])
    sizes = path.groups.sizes[[l for _, l in events]] if events else np.empty(0, dtype=np.intp)
    # a column counts when the first of its groups wakes up
    group = np.repeat(np.arange(len(events)), sizes)[np.unique(own, return_index=True)[1]]
    columns = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(events)))])
    return columns[np.searchsorted(woken, path.times, side="right")] + float(intercept)
