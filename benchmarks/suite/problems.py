"""The problems of the suite: name -> function from a seed to a `Problem`.

Simulated problems have one truth each: a seed draws rows, not groups, so that selections of different seeds can be
compared. Test rows are fresh. Of real data a seed draws the split into rows to fit and rows to test. To join, write
such a function and add it to `PROBLEMS`, here or in a file of your own (`--join FILE`); docs/suite.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from . import survival
from .families import FAMILIES
from .problem import Problem, folds
from .raw_tables import Table
from .real_data import DATA, Data, columns_of, some_rows, user_file
from .real_data import table as statsmodels_table
from .tables import from_table, table_problem

N_TEST = 2000
TEST_SHARE = 0.2


# ---------------------------------------------------------------------- columns


def autoregressive(rng: np.random.Generator, rows: int, p: int, rho: float) -> np.ndarray:
    X = rng.standard_normal((rows, p))
    if rho:
        X[:, 1:] *= np.sqrt(1 - rho * rho)
        for j in range(1, p):
            X[:, j] += rho * X[:, j - 1]
    return X


def levels(rng: np.random.Generator, rows: int, counts: np.ndarray) -> np.ndarray:
    """One-hot columns of categories whose levels get rarer and rarer."""
    parts = []
    for count in counts:
        share = 1.0 / np.arange(1, count + 1) ** 1.5
        drawn = rng.choice(count, rows, p=share / share.sum())
        parts.append((drawn[:, None] == np.arange(count)).astype(float))
    return np.hstack(parts)


def equal(p: int, size: int) -> np.ndarray:
    return np.repeat(np.arange(p // size), size)


# ---------------------------------------------------------------------- simulated problems


def simulated(
    name: str, family_name: str, n: int, labels: np.ndarray, active: int, strength: float,
    draw: Callable[[np.random.Generator, int], np.ndarray],
) -> Callable[[int], Problem]:  # fmt: skip
    """Normal coefficients on `active` groups; `strength` is the standard deviation of the linear predictor.

    Noise has variance 1 where the response is a number.
    """
    family = FAMILIES[family_name]

    def make(seed: int) -> Problem:
        truth, rng = np.random.default_rng(list(name.encode())), np.random.default_rng([seed, *name.encode()])
        on = np.sort(truth.permutation(labels[-1] + 1)[:active])
        columns = np.isin(labels, on)
        X = draw(rng, n + N_TEST)
        eta = X[:, columns] @ truth.standard_normal(int(columns.sum()))
        eta = (eta - eta.mean())[:, None] * (strength / (eta.std() or 1.0))
        y = drawn(rng, family_name, eta)
        y_test = y[n:]
        return Problem(
            family, X[:n], y[:n], labels, X[n:], lambda mean: family.error(y_test, mean), folds(family, y[:n], rng),
            active=on,
        )  # fmt: skip

    return make


def drawn(rng: np.random.Generator, family: str, eta: np.ndarray) -> np.ndarray:
    """Responses of one output, given true linear predictors."""
    mean = FAMILIES[family].mean(eta)[:, 0]
    if family == "binomial":
        return (rng.random(len(mean)) < mean).astype(float)
    return rng.poisson(mean).astype(float) if family == "poisson" else mean + rng.standard_normal(len(mean))


def survival_times(seed: int) -> Problem:
    """300 rows, 40 groups of five, four of them active, half of the times censored."""
    n, labels, truth, rng = 300, equal(200, 5), np.random.default_rng(5), np.random.default_rng([seed, 5])
    active = np.sort(truth.permutation(40)[:4])
    columns = np.isin(labels, active)
    X = autoregressive(rng, n + N_TEST, 200, 0.5)
    eta = X[:, columns] @ truth.standard_normal(int(columns.sum()))
    y = survival.drawn(rng, eta * (1.5 / eta.std()), 0.5)
    return survival.problem_of(X, y, labels, n, partial(survival.COX.error, y[n:]), active=active)


def curves_and_pairs(seed: int) -> Problem:
    """20 variables, five of them categories: a line, a curve, levels, a product of two numbers, a slope by level."""
    n, rng = 400, np.random.default_rng([seed, *b"curves and pairs"])
    rows = n + N_TEST
    numbers = autoregressive(rng, rows, 15, 0.3)
    texts = np.array(list("abcd"), dtype=object)[rng.integers(0, 4, (rows, 5))]
    step = np.select([texts[:, 0] == "a", texts[:, 0] == "b"], [1.0, -1.0], 0.0)
    mean = numbers[:, 0] + np.sin(2 * numbers[:, 3]) * 1.4 + step
    mean = mean + numbers[:, 6] * numbers[:, 9] + np.where(texts[:, 2] == "c", 1.5, 0.0) * numbers[:, 12]
    frame = pd.DataFrame({f"x{j}": numbers[:, j] for j in range(15)} | {f"c{j}": texts[:, j] for j in range(5)})
    table: Table = (frame, mean + rng.standard_normal(rows), "regression")
    active = np.array([0, 3, 6, 9, 12, 15, 17])
    return from_table(table, np.arange(n), np.arange(n, rows), rng, active=active)


# ---------------------------------------------------------------------- real data


def real(name: str, family_name: str, load: Callable[[], Data]) -> Callable[[int], Problem]:
    """A fifth of the rows are test rows."""
    family = FAMILIES[family_name]

    def make(seed: int) -> Problem:
        X, y, labels = load()
        rng = np.random.default_rng([seed, *name.encode()])
        test, fit = np.split(rng.permutation(len(y)), [round(TEST_SHARE * len(y))])
        y_test = y[test]
        return Problem(
            family, X[fit], y[fit], labels, X[test], lambda mean: family.error(y_test, mean), folds(family, y[fit], rng)
        )

    return make


def encoded_frame(frame: pd.DataFrame, y: pd.Series, categories: tuple[str, ...], knots: int = 4) -> Data:
    parts = [columns_of(frame[name], knots, categories) for name in frame]
    labels = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    return np.hstack(parts), y.to_numpy(dtype=float), labels


def splice() -> Data:
    """Splice site or not, from the letters at seven positions; at most 600 rows, drawn once."""
    frame = some_rows(user_file("splice.csv"))
    return encoded_frame(frame.drop(columns="y"), frame["y"], tuple(frame.columns))


def doctor_visits() -> Data:
    """Visits in the RAND health insurance experiment; 800 of 20 190 rows, drawn once."""
    frame = statsmodels_table("randhie").sample(800, random_state=0).reset_index(drop=True)
    return encoded_frame(frame.drop(columns="mdvis"), frame["mdvis"], ())


COUNTS = np.array([3, 4, 5, 6, 8, 10, 12, 3, 4, 5] * 4)
PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "few strong groups": simulated(
        "few strong groups", "gaussian", 200, equal(500, 5), 5, 2.0, lambda rng, n: autoregressive(rng, n, 500, 0.5)
    ),
    "ten weak groups": simulated(
        "ten weak groups", "gaussian", 200, equal(500, 5), 10, 1.0, lambda rng, n: autoregressive(rng, n, 500, 0.8)
    ),
    "every group a little": simulated(
        "every group a little", "gaussian", 200, equal(200, 5), 40, 1.0, lambda rng, n: autoregressive(rng, n, 200, 0.5)
    ),
    "rare levels": simulated(
        "rare levels", "gaussian", 300, np.repeat(np.arange(40), COUNTS), 4, 1.4, lambda rng, n: levels(rng, n, COUNTS)
    ),
    "only noise": simulated(
        "only noise", "gaussian", 200, equal(300, 5), 0, 0.0, lambda rng, n: autoregressive(rng, n, 300, 0.5)
    ),
    "two classes": simulated(
        "two classes", "binomial", 400, equal(500, 5), 5, 3.0, lambda rng, n: autoregressive(rng, n, 500, 0.5)
    ),
    "counts": simulated(
        "counts", "poisson", 400, equal(500, 5), 5, 1.0, lambda rng, n: autoregressive(rng, n, 500, 0.5)
    ),
    "survival times": survival_times,
    "curves and pairs": curves_and_pairs,
    "bardet": real("bardet", "gaussian", DATA["bardet"]),
    "diabetes splines": real("diabetes splines", "gaussian", DATA["diabetes splines"]),
    "splice": real("splice", "binomial", splice),
    "doctor visits": real("doctor visits", "poisson", doctor_visits),
    "hitters": lambda seed: table_problem("hitters", seed),
    "concrete": lambda seed: table_problem("concrete", seed),
    "titanic": lambda seed: table_problem("titanic", seed),
}
