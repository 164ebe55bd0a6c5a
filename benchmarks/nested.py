"""How often is the score on fresh rows within the 90% interval of the nested score?

    python benchmarks/nested.py                  # seeds 4000 to 4199, reported in results/nested.md
    python benchmarks/nested.py --bundled        # nested scores of data that come with scikit-learn: reported too
    python benchmarks/nested.py --first 0        # seeds below 400, on which the interval was decided
    ... --each                                   # a line per problem

A problem is drawn for every seed: numbers, two classes, counts or three responses; 10 to 100 groups of 1 to 5 columns,
of which one to eight matter (none in every fifth problem), or, for odd seeds, half of them; 80 to 400 rows; columns
that are independent or AR(0.7). `covey.nested_score` is compared with the score of the model that is fitted to all
rows, on 20 000 fresh ones. Beside covey's interval stands the plain one: 1.645 times the
spread of the folds over the root of their number. On one core, ten minutes.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from covey import GroupSparseClassifier, GroupSparseRegressor, TermGroups, nested_score
from covey.datasets import load_diabetes_splines
from covey.evidence.refit import class_means
from covey.evidence.scoring import Task, pooled, read_response

FRESH = 20_000
ROUNDING = 1e-9
KINDS = ("numbers", "numbers", "classes", "counts", "responses")


@dataclass(frozen=True)
class Drawn:
    """A problem: training rows first, then the fresh ones."""

    what: str
    X: Any
    y: Any
    n: int
    model: Any


def draw(seed: int, dense: bool) -> Drawn:
    """The problem of a seed; its kind goes round, everything else is drawn."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, size = int(rng.choice([80, 150, 400])), int(rng.choice([1, 3, 5]))
    n_groups = int(rng.choice([10, 40, 100]))
    p, correlated = n_groups * size, bool(rng.integers(2))
    X = rng.standard_normal((n + FRESH, p))
    if correlated:
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.49) * X[:, j]
    # the kinds go round in fives, and in each round another one is pure noise
    noise = seed % len(KINDS) == (seed // len(KINDS)) % len(KINDS)
    active = n_groups // 2 if dense else 0 if noise else int(rng.integers(1, 9))
    outputs = 3 if kind == "responses" else 1
    w = np.zeros((p, outputs))
    w[: active * size] = rng.standard_normal((active * size, outputs))
    eta = X @ w
    spread = eta.std(axis=0)
    # the share of the variance that can be explained
    share = rng.uniform(0.3, 0.8)
    eta = np.where(spread > 0, eta / np.where(spread > 0, spread, 1), 0) * np.sqrt(share / (1 - share))
    if kind == "classes":
        y: Any = rng.random(len(eta)) < 1 / (1 + np.exp(-2 * eta[:, 0]))
        y = np.where(y, "b", "a")
        model: Any = GroupSparseClassifier(groups=size)
    elif kind == "counts":
        y = rng.poisson(np.exp(0.5 + 0.5 * eta[:, 0]))
        model = GroupSparseRegressor(groups=size, loss="poisson")
    else:
        y = eta + rng.standard_normal(eta.shape)
        y = y if outputs > 1 else y[:, 0]
        model = GroupSparseRegressor(groups=size)
    what = f"{kind}, {active} of {n_groups} groups of {size}, {n} rows{', AR(0.7)' if correlated else ''}"
    return Drawn(what, X, y, n, model)


def fresh_score(drawn: Drawn) -> float:
    """Of the model that is fitted to all training rows, on the fresh rows."""
    n = drawn.n
    model = drawn.model.fit(drawn.X[:n], drawn.y[:n])
    response = read_response(drawn.y, hasattr(model, "classes_"), True)
    train, test = np.arange(n), np.arange(n, len(drawn.X))
    task = Task.of(model.loss_, response, np.ones(len(drawn.X)), None, train, test)
    X = drawn.X[n:]
    mean = model.predict(X) if response.classes is None else class_means(model, X, response.classes)
    return pooled(task.deviance(mean), task.deviance(task.null_mean()), np.ones(FRESH))


def bundled() -> None:
    """Nested scores of data that come with scikit-learn, beside lasso and ridge on the same columns."""
    diabetes = load_diabetes(as_frame=True, scaled=False)
    frame, y = diabetes.data, diabetes.target
    splines, cancer = load_diabetes_splines(), load_breast_cancer()
    smooth = SplineTransformer(n_knots=4, knots="quantile", include_bias=False, extrapolation="linear")
    others = frame.drop(columns="s2")
    columns = ColumnTransformer([("spline", smooth, [c for c in others if c != "sex"])], remainder="passthrough")
    ldl = make_pipeline(columns.set_output(transform="pandas"), GroupSparseRegressor(groups=TermGroups(others.columns)))
    problems = {
        "diabetes, progression, ten columns as they are": (GroupSparseRegressor(), frame, y),
        "diabetes, progression, splines": (GroupSparseRegressor(splines.groups), splines.X, splines.y),
        "diabetes, LDL from the other measurements, splines": (ldl, others, frame["s2"]),
        "breast cancer, mean, error and worst of ten measurements": (
            GroupSparseClassifier(np.tile(np.arange(10), 3)), cancer.data, cancer.target,
        ),
    }  # fmt: skip
    print("| data | covey | lasso | ridge | whether groups help |\n| --- | --- | --- | --- | --- |")
    for name, (model, X, response) in problems.items():
        score = nested_score(model, X, response)
        lasso, ridge = score.references["lasso"], score.references["ridge"]
        cells = " | ".join(
            f"{one.mean:.{score.digits}f} ± {one.margin:.{score.digits}f}" for one in (score, lasso, ridge)
        )
        print(f"| {name} | {cells} | {score.verdict} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=4000, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many problems")
    parser.add_argument("--each", action="store_true", help="print every problem")
    parser.add_argument("--bundled", action="store_true", help="data that come with scikit-learn instead")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.bundled:
        bundled()
        return
    problems = []
    for seed in range(given.first, given.first + given.count):
        drawn = draw(seed, dense=bool(seed % 2))
        nested = nested_score(drawn.model, drawn.X[: drawn.n], drawn.y[: drawn.n], references=False)
        fresh, plain = fresh_score(drawn), 1.645 * float(nested.folds.std(ddof=1) / np.sqrt(nested.n_folds))
        # a model of no groups is the null model in every fold, and both scores are zero up to rounding
        away = abs(nested.mean - fresh) - ROUNDING
        problems.append(
            {
                "kind": drawn.what.split(",")[0],
                "which groups matter": "half" if seed % 2 else "none" if " 0 of" in drawn.what else "few",
                "rows": f"{drawn.n} rows",
                "models": "no group anywhere" if nested.margin == 0 and away < 0 else "some group",
                "holds": away <= nested.margin,
                "plain holds": abs(float(nested.folds.mean()) - fresh) - ROUNDING <= plain,
                "margin": nested.margin,
                "nested less fresh": nested.mean - fresh,
            }
        )
        if given.each:
            low, high = nested.interval
            print(f"{seed} {drawn.what}: {low:.3f} to {high:.3f}, fresh rows {fresh:.3f}", flush=True)
    frame = pd.DataFrame(problems)
    print("| problems | number | interval holds | plain interval holds | mean margin | nested less fresh |")
    print("| --- | --- | --- | --- | --- | --- |")
    figures = ["holds", "plain holds", "margin", "nested less fresh"]
    parts = [("all", frame)]
    for column in ("kind", "which groups matter", "rows", "models"):
        parts += [(name, part) for name, part in frame.groupby(column)]
    for name, part in parts:
        holds, plain, margin, away = part[figures].mean()
        print(f"| {name} | {len(part)} | {holds:.1%} | {plain:.1%} | {margin:.3f} | {away:+.3f} |")


if __name__ == "__main__":
    main()
