"""Small problems for the network's tests, and rules that stop a path."""

from __future__ import annotations

import numpy as np

from covey import Groups
from covey.network import StopRule

__all__ = ["LAYOUTS", "OneByOne", "Together", "make"]


def _scattered() -> Groups:
    labels = np.repeat(np.arange(40), 3)
    return Groups.from_labels(np.random.default_rng(5).permutation(labels).tolist())


LAYOUTS = {
    "equal": Groups.from_size(3, 120),
    "unequal": Groups.from_sizes([1, 2, 3, 4, 5] * 8),
    "scattered": _scattered(),
    "single": Groups.from_size(1, 120),
}


def make(groups: Groups, n: int = 150, noise: float = 0.5, seed: int = 0, dtype: type = np.float64):
    """A design of unequal means and scales, a response of four groups of clearly different strength."""
    rng = np.random.default_rng(seed)
    p = groups.n_columns
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.uniform(-3, 3, p)
    y = np.full(n, 2.0) + noise * rng.standard_normal(n)
    for strength, l in zip((4.0, 3.0, 2.2, 1.6), (1, 7, 12, 20), strict=True):
        Z = X[:, groups.lists()[l]]
        Z = Z - Z.mean(axis=0)
        signal = Z @ rng.choice([-1.0, 1.0], Z.shape[1])
        y += strength * signal / signal.std()
    return X.astype(dtype), y


class OneByOne(StopRule):
    """A stop rule that keeps what it is shown, and stops once enough groups have woken up."""

    def __init__(self, n_woken=10**9, n_models=10**9):
        self.n_woken, self.n_models, self.seen = n_woken, n_models, []

    def stop_at(self, snapshot):
        self.seen.append(snapshot)
        return snapshot.n_woken >= self.n_woken or len(self.seen) >= self.n_models


class Together(OneByOne):
    """The same rule with an answer of its own for many models at once."""

    def stop_among(self, snapshots):
        for i in range(len(snapshots)):
            if self.stop_at(snapshots[i]):
                return i
        return len(snapshots)
