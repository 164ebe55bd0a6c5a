"""The exponentially weighted mean of all candidates."""

from __future__ import annotations

import numpy as np

from covey.selection.judge import Verdict
from covey.validation import FloatArray

__all__ = ["mean_weights"]

# A model whose squared error is larger by this many noise variances in all, over the judging rows, counts e times less.
# With Gaussian noise the mean is then within its bounds for any set of models (Leung and Barron, 2006).
TEMPERATURE = 4.0

# Models that count less than this are left out: all of them together change the mean by less than it is known.
LEAST_WEIGHT = 2e-3


def mean_weights(verdict: Verdict, n_rows: float) -> FloatArray:
    """The weight of every recipe in the mean; they add up to one, and most are zero."""
    least = float(verdict.errors[verdict.best])
    excess = (verdict.errors - least) / (least or 1.0) * n_rows / TEMPERATURE
    weights = np.exp(-excess)
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    return np.asarray(weights / weights.sum())
