"""What constraints are worth and cost: true signs, wrong signs and monotone effects, beside the fit without them.

Signs: 100 rows, 400 columns in groups of 1 or 4, ten groups active, noise as strong as the signal (SNR 1), columns
independent or correlated (0.5 between neighbours). Every column of the table has its true sign as a constraint, or a
random one if it is not active. Curves: 150 rows, eight variables, four of them with monotone effects of several shapes,
given as increasing, with noise as strong as the signal or half as strong. Errors are those of the noise-free response
on new rows, relative to the fit without constraints; the table has geometric means over seeds. Times are sums of
process times after a warm-up.

    python benchmarks/constraints.py --seeds 20 --first 1000 --write
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey import GroupSparseClassifier, GroupSparseRegressor, Terms

Array = NDArray[np.float64]

N_ROWS, N_COLUMNS, N_ACTIVE, N_NEW = 100, 400, 10, 4000
SIZES, CORRELATIONS, RULES = (1, 4), (0.0, 0.5), ("select", "predict")
RESULTS = Path(__file__).parent / "results" / "constraints.md"


def draw(rng: np.random.Generator, n: int, correlation: float) -> Array:
    """Rows of an autoregressive process over the columns."""
    X = rng.standard_normal((n, N_COLUMNS))
    for j in range(1, N_COLUMNS) if correlation else ():
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def signs_problem(size: int, correlation: float, seed: int) -> tuple[Array, Array, Array, Array, dict[int, str]]:
    """Rows and their response, new rows and their noise-free response, and the signs of single columns."""
    rng = np.random.default_rng(seed)
    w = np.zeros(N_COLUMNS)
    for group in rng.choice(N_COLUMNS // size, N_ACTIVE, replace=False):
        w[group * size : (group + 1) * size] = rng.choice([-1, 1], size) * rng.uniform(0.5, 1.5, size)
    X, new = draw(rng, N_ROWS, correlation), draw(rng, N_NEW, correlation)
    signal = X @ w
    signs = np.where(w == 0, rng.choice([-1, 1], N_COLUMNS), np.sign(w))
    return X, signal + signal.std() * rng.standard_normal(N_ROWS), new, new @ w, {
        j: ">=0" if sign > 0 else "<=0" for j, sign in enumerate(signs)
    }  # fmt: skip


def timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """A fitted model and its process time."""
    begin = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - begin


def signs(first: int, n_seeds: int) -> list[str]:
    """Lines of the table of true signs."""
    lines = []
    for rule, size, correlation in product(RULES, SIZES, CORRELATIONS):
        logs, seconds, deals, n_broken = [], np.zeros(2), np.zeros(2), 0
        for seed in range(first, first + n_seeds):
            X, y, new, truth, given = signs_problem(size, correlation, seed)
            table, other = (pd.DataFrame(one, columns=[f"c{j}" for j in range(N_COLUMNS)]) for one in (X, new))
            named = {f"c{j}": what for j, what in given.items()}
            groups = np.repeat(np.arange(N_COLUMNS // size), size).tolist()
            errors = []
            for i, constraints in enumerate((None, named)):
                model, spent = timed(GroupSparseRegressor(groups, rule=rule, constraints=constraints), table, y)
                seconds[i], deals[i] = seconds[i] + spent, deals[i] + model.n_deals_ / n_seeds
                errors.append(np.mean((model.predict(other) - truth) ** 2))
            wanted = np.array([1.0 if what == ">=0" else -1.0 for what in given.values()])
            n_broken += int((model.coef_ * wanted < 0).sum())
            logs.append(np.log(errors[1] / errors[0]))
        mean, error = np.mean(logs), np.std(logs) / np.sqrt(len(logs))
        ratio = seconds[1] / seconds[0]
        lines.append(
            f"| {rule} | {size} | {correlation:g} | {np.exp(mean):.3f} | {np.exp(mean - 2 * error):.2f} to "
            f"{np.exp(mean + 2 * error):.2f} | {ratio:.2f} | {ratio * deals[0] / deals[1]:.2f} | "
            f"{deals[0]:.1f} and {deals[1]:.1f} | {n_broken} |"
        )
        print(lines[-1], flush=True)
    return lines


def classes(first: int, n_seeds: int) -> list[str]:
    """Lines of the table of true signs with two classes: errors of log odds up to their scale are correlations."""
    lines = []
    for size in SIZES:
        found, seconds, deals = [], np.zeros(2), np.zeros(2)
        for seed in range(first, first + n_seeds):
            X, y, new, truth, given = signs_problem(size, 0.0, seed)
            groups = np.repeat(np.arange(N_COLUMNS // size), size).tolist()
            columns = [f"c{j}" for j in range(N_COLUMNS)]
            table, other = pd.DataFrame(X, columns=columns), pd.DataFrame(new, columns=columns)
            named, pair = {f"c{j}": what for j, what in given.items()}, []
            for i, constraints in enumerate((None, named)):
                model, spent = timed(GroupSparseClassifier(groups, constraints=constraints), table, y > np.median(y))
                seconds[i], deals[i] = seconds[i] + spent, deals[i] + model.n_deals_ / n_seeds
                pair.append(np.mean(model.predict(other) == (truth > 0)))
            found.append(pair)
        right, ratio = np.mean(found, axis=0), seconds[1] / seconds[0]
        lines.append(
            f"| {size} | {right[0]:.3f} | {right[1]:.3f} | {ratio:.2f} | {ratio * deals[0] / deals[1]:.2f} | "
            f"{deals[0]:.1f} and {deals[1]:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def curves(first: int, n_seeds: int) -> list[str]:
    """Lines of the table of monotone effects."""
    effects = (np.tanh, lambda z: np.log1p(np.exp(2 * z)), lambda z: 0.8 * z, lambda z: (z > 0.5) * 1.5)
    lines = []
    for noise in (1.0, 0.5):
        logs, seconds = [], np.zeros(2)
        for seed in range(first, first + n_seeds):
            rng = np.random.default_rng(seed)
            Z, new = (rng.uniform(-2, 2, (n, 8)) for n in (150, N_NEW))
            signal, truth = (sum(f(X[:, j]) for j, f in enumerate(effects)) for X in (Z, new))
            y = signal + noise * np.std(signal) * rng.standard_normal(150)
            table, other = (pd.DataFrame(one, columns=[f"v{j}" for j in range(8)]) for one in (Z, new))
            errors = []
            for i, constraints in enumerate((None, {"v[0-3]": "increasing"})):
                model, spent = timed(GroupSparseRegressor(terms=Terms(pairs=None), constraints=constraints), table, y)
                seconds[i] += spent
                error = model.predict(other) - truth
                errors.append(np.mean((error - error.mean()) ** 2))
            logs.append(np.log(errors[1] / errors[0]))
        mean, error = np.mean(logs), np.std(logs) / np.sqrt(len(logs))
        lines.append(
            f"| {noise:g} | {np.exp(mean):.3f} | {np.exp(mean - 2 * error):.2f} to {np.exp(mean + 2 * error):.2f} | "
            f"{seconds[1] / seconds[0]:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines


def wrong(first: int, n_seeds: int) -> list[str]:
    """How often a strong group with the wrong sign is kept out and named."""
    out, named, false = 0, 0, 0
    for seed in range(first, first + n_seeds):
        X, y, _, _, given = signs_problem(1, 0.0, seed)
        y = y + 3 * np.std(y) * X[:, 0]
        turned = given | {0: "<=0"}
        model = GroupSparseRegressor(constraints=turned).fit(X, y)
        table = model.constraints_.set_index("name")
        out += model.coef_[0] == 0
        named += bool(table.loc["0", "binds"])
        false += int((table["binds"] & ~table["selected"]).sum()) - bool(table.loc["0", "binds"])
    line = f"| {out} of {n_seeds} | {named} of {n_seeds} | {false} |"
    print(line, flush=True)
    return [line]


PAGE = """# Constraints

`python benchmarks/constraints.py --seeds {seeds} --first {first} --write`, one thread, on two shared cores. Nothing was
tuned; the code was looked at on seeds 0 to 29.

True signs of all columns, 100 rows, 400 columns, ten active groups, SNR 1: the error of the noise-free response on new
rows, relative to the fit without constraints (geometric mean, two standard errors), the time relative to it, altogether
and per deal of the rows to folds, how often they were dealt without and with signs, and how many coefficients of all
fits have a wrong sign.

| rule | columns per group | correlation | error | from - to | time | per deal | deals | wrong |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{signs}

The same with two classes: the share of new rows whose class is right, without and with signs, and the time.

| columns per group | without | with | time | per deal | deals |
| --- | --- | --- | --- | --- | --- |
{classes}

Monotone effects of four of eight variables, 150 rows:

| noise | error | from - to | time |
| --- | --- | --- | --- |
{curves}

One strong column is given the wrong sign: how often it is kept out, how often `constraints_` says that its constraint
binds, and of how many other columns that are left out it says so, in all fits together.

| kept out | binds | others |
| --- | --- | --- |
{wrong}
"""


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write results/constraints.md")
    options = parser.parse_args()
    X, y, *_ = signs_problem(4, 0.0, 10**6)
    for model in (GroupSparseRegressor(4), GroupSparseClassifier(4)):  # compiles
        for constraints in (None, dict.fromkeys(range(100), ">=0")):
            model.set_params(constraints=constraints).fit(X, y if isinstance(model, GroupSparseRegressor) else y > 0)
    tables = {part.__name__: "\n".join(part(options.first, options.seeds)) for part in (signs, classes, curves, wrong)}
    if options.write:
        RESULTS.write_text(PAGE.format(seeds=options.seeds, first=options.first, **tables))


if __name__ == "__main__":
    main()
