"""How far a default fit travels: files of covey that it goes through, how deep its calls nest, and how many there are.

python benchmarks/walk.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import covey


def problems() -> dict[str, Callable[[], Any]]:
    """A default fit of each estimator, 120 x 60 in groups of three."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 60))
    eta = X[:, :6].sum(axis=1)
    y = eta + 2 * rng.standard_normal(120)
    classes = (eta + rng.logistic(size=120) > 0).astype(int)
    times, events = rng.exponential(np.exp(-eta / 2)), rng.random(120) < 0.7
    return {
        "regression": lambda: covey.GroupSparseRegressor(groups=3).fit(X, y),
        "several responses": lambda: covey.GroupSparseRegressor(groups=3).fit(X, np.column_stack([y, -eta])),
        "classes": lambda: covey.GroupSparseClassifier(groups=3).fit(X, classes),
        "survival": lambda: covey.GroupSparseCox(groups=3).fit(X, covey.survival(times, events)),
    }


def walk(fit: Callable[[], Any]) -> tuple[set[str], int, int]:
    """The files, the depth and the number of covey's calls in one fit."""
    home, files, deepest, calls = covey.__path__[0], set[str](), 0, 0

    def trace(frame: Any, event: str, arg: Any) -> None:
        nonlocal deepest, calls
        if event != "call" or not frame.f_code.co_filename.startswith(home):
            return
        files.add(frame.f_code.co_filename[len(home) + 1 :])
        calls += 1
        depth, at = 0, frame
        while at is not None:
            depth += at.f_code.co_filename.startswith(home)
            at = at.f_back
        deepest = max(deepest, depth)

    fit()  # imports and caches
    sys.setprofile(trace)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return files, deepest, calls


if __name__ == "__main__":
    print("| default fit | files | depth | calls |\n| --- | --- | --- | --- |")
    for name, fit in problems().items():
        files, deepest, calls = walk(fit)
        print(f"| {name} | {len(files)} | {deepest} | {calls} |")
        if "--files" in sys.argv:
            print("\n".join(sorted(files)))
