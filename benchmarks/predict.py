"""One row at a time: `predict` of covey beside scikit-learn's Lasso, in ratios within one run.

    python benchmarks/predict.py

The best of many repeats of each, interleaved, after a warm-up. A classifier is set beside the same Lasso.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import timeit
from functools import partial

import numpy as np
import pandas as pd
from sklearn.linear_model import Lasso

from covey import GroupSparseClassifier, GroupSparseRegressor

CALLS, REPEATS = 10, 60


def microseconds(*functions) -> list[float]:
    """The best time of a call of each, the repeats interleaved."""
    best = [np.inf] * len(functions)
    for _ in range(REPEATS):
        for i, function in enumerate(functions):
            best[i] = min(best[i], timeit.timeit(function, number=CALLS) / CALLS * 1e6)
    return best


def main() -> None:
    print("| one row of | Lasso, us | regressor, us | ratio | classifier, us | ratio |\n" + "| --- " * 6 + "|")
    rng = np.random.default_rng(0)
    for p in (20, 300):
        X = rng.standard_normal((150, p))
        y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(150)
        for kind, rows in (("array", X), ("DataFrame", pd.DataFrame(X, columns=[f"x{j}" for j in range(p)]))):
            models = [Lasso(alpha=0.1), GroupSparseRegressor(), GroupSparseClassifier()]
            fitted = [model.fit(rows, y > 0 if k == 2 else y) for k, model in enumerate(models)]
            row = rows[:1].copy()
            peer, own, classes = microseconds(*(partial(model.predict, row) for model in fitted))
            ratios = f"{own:.0f} | {own / peer:.2f} | {classes:.0f} | {classes / peer:.2f}"
            print(f"| {kind}, {p} columns | {peer:.0f} | {ratios} |")


if __name__ == "__main__":
    main()
