"""Tiny and awkward kinds of problems that join the suite.

Few rows, rows of a time series, heavy tails in X and noise, one-hot groups with rare levels, singletons, and many rows
with hundreds of active groups. The error is ``mean((X w - X w*)^2)`` over fresh rows. Settings are decided on seeds 0
to 35; results are reported on seeds 100 to 129. On one core:

    run=".venv-bench/bin/python benchmarks/run_suite.py --join benchmarks/kinds.py --only"
    $run --seeds $(seq 100 129) --methods covey adelie "group MCP" abess null
    $run --quick
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rivals import PEERS
from suite.families import FAMILIES
from suite.problem import Problem
from suite.problems import autoregressive, equal

N_TEST = 2000


def posed(rng, X, labels, active, n, snr, noise=None) -> Problem:
    """Normal coefficients on `active` groups drawn at random, noise of the given ratio, five random folds."""
    on = rng.permutation(labels.max() + 1)[:active]
    w = np.where(np.isin(labels, on), rng.standard_normal(labels.size), 0.0)
    signal = X @ w
    noise = rng.standard_normal(len(X)) if noise is None else noise / noise.std()
    y = signal + signal.std() / np.sqrt(snr) * noise
    family = FAMILIES["gaussian"]
    error = partial(family.excess, signal[n:, None])
    return Problem(family, X[:n], y[:n], labels, X[n:], error, rng.permutation(n) % 5, active=np.sort(on))


def tiny(rng) -> Problem:
    """40 rows, 400 columns in groups of 5, two active, SNR 10."""
    labels = equal(400, 5)
    return posed(rng, rng.standard_normal((40 + N_TEST, 400)), labels, 2, 40, 10.0)


def time_series(rng) -> Problem:
    """Columns and noise are AR(0.9) in time: a group is a series with its four lags; test rows follow later."""
    n, series, lags = 150, 60, 5
    steps = n + N_TEST + lags

    def walk(count):
        z = rng.standard_normal((steps, count))
        z[1:] *= np.sqrt(1 - 0.9**2)
        for t in range(1, steps):
            z[t] += 0.9 * z[t - 1]
        return z

    z = walk(series)
    lagged = [z[lags - k : steps - k, j] for j in range(series) for k in range(lags)]
    return posed(rng, np.column_stack(lagged), equal(series * lags, lags), 4, n, 5.0, walk(1)[lags:, 0])


def heavy_tails(rng) -> Problem:
    """Student's t with 2.5 degrees of freedom in X and 2.1 in the noise."""
    n, p = 150, 400
    X = rng.standard_t(2.5, (n + N_TEST, p)) / np.sqrt(5.0)
    return posed(rng, X, equal(p, 4), 5, n, 5.0, rng.standard_t(2.1, n + N_TEST))


def one_hot(rng) -> Problem:
    """60 categories of 3 to 12 levels, the rarest with a few rows or none; all levels are columns."""
    n, rows = 200, 200 + N_TEST
    parts, labels = [], []
    for l in range(60):
        levels = int(rng.integers(3, 13))
        share = 1.0 / np.arange(1, levels + 1) ** 1.5
        drawn = rng.choice(levels, rows, p=share / share.sum())
        parts.append((drawn[:, None] == np.arange(levels)).astype(float))
        labels.append(np.full(levels, l))
    return posed(rng, np.hstack(parts), np.concatenate(labels), 5, n, 3.0)


def singletons(rng) -> Problem:
    """Each column alone, AR(0.5) columns, ten active."""
    n, p = 150, 600
    return posed(rng, autoregressive(rng, n + N_TEST, p, 0.5), np.arange(p), 10, n, 5.0)


def many_active(rng) -> Problem:
    """3000 rows, 500 groups of 3, 300 of them active."""
    return posed(rng, rng.standard_normal((3000 + N_TEST, 1500)), equal(1500, 3), 300, 3000, 5.0)


KINDS: dict[str, Callable[[np.random.Generator], Problem]] = {
    "n=40 p=400": tiny,
    "time series": time_series,
    "heavy tails": heavy_tails,
    "one-hot, rare levels": one_hot,
    "singletons": singletons,
    "n=3000 p=1500 300 active": many_active,
}


def drawn(name: str, seed: int) -> Problem:
    return KINDS[name](np.random.default_rng([seed, *name.encode()]))


PROBLEMS = {name: partial(drawn, name) for name in KINDS}
METHODS = {name: PEERS[name] for name in ("adelie raw", "adelie orthonormal")}
