"""Real data sets with classes and counts that join the suite.

    .venv-bench/bin/python benchmarks/run_suite.py --join benchmarks/glm_data.py --only

They come with scikit-learn and statsmodels; splice and colon are looked for in the folder that `COVEY_DATA` names.
Every split takes 80% of the rows to fit and the others to test, but at most 1000 to fit and 4000 to test, drawn anew
for each split: the counts have 20 190 and 6366 rows, of which the folds of every method need not see all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from suite.families import FAMILIES
from suite.methods import lasso
from suite.paths import adelie, adelie_standardised, by
from suite.problem import Problem, folds
from suite.real_data import columns_of, genes, table, user_file

MOST_TO_FIT, MOST_TO_TEST = 1000, 4000


@dataclass
class Table:
    """Columns group after group, the name of each column's group, and a response."""

    family: str
    X: np.ndarray
    y: np.ndarray
    group_of: np.ndarray  # names


def variables(family: str, frame: pd.DataFrame, y: Any, knots: int = 0, categories: tuple[str, ...] = ()) -> Table:
    """One group per variable: one-hot categories, the variable itself, or splines where `knots` is not 0."""
    parts = {str(name): columns_of(frame[name], knots, categories) for name in frame}
    group_of = np.repeat(list(parts), [part.shape[1] for part in parts.values()])
    return Table(family, np.hstack(list(parts.values())), np.asarray(y), group_of)


def splice(pairs: bool) -> Table:
    """Splice site or not, from the letters at seven positions; with `pairs` also all two-way interactions.

    An interaction is named after its factors, "Pos.1:Pos.2", and has a column for every pair of letters that occurs.
    """
    frame = user_file("splice.csv")
    factors = frame.drop(columns="y")
    if pairs:
        crossed = {f"{a}:{b}": factors[a] + ":" + factors[b] for a, b in combinations(factors, 2)}
        factors = pd.concat([factors, pd.DataFrame(crossed)], axis=1)
    return variables("binomial", factors, frame["y"].astype(int), categories=tuple(factors))


def colon() -> Table:
    X, y, labels = genes("colon.csv", "tumour")()
    return Table("binomial", X, y.astype(int), np.array([f"gene {l}" for l in labels]))


def breast_cancer(knots: int) -> Table:
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True).frame
    return variables("binomial", frame.drop(columns="target"), frame["target"], knots)


def wine(knots: int) -> Table:
    """Three growers from 13 measurements."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame
    return variables("multinomial", frame.drop(columns="target"), frame["target"], knots)


def digits(kept: tuple[int, ...]) -> Table:
    """Digits from 64 pixels; a group is a row of the image."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    on = np.isin(y, kept)
    rows = np.repeat([f"row {i}" for i in range(8)], 8)
    return Table("multinomial" if len(kept) > 2 else "binomial", X[on], np.searchsorted(kept, y[on]), rows)


def randhie(knots: int) -> Table:
    """Visits to the doctor in the RAND health insurance experiment."""
    frame = table("randhie")
    return variables("poisson", frame.drop(columns="mdvis"), frame["mdvis"], knots)


FAIR_LEVELS = ("rate_marriage", "religious", "occupation", "occupation_husb")


def fair(knots: int) -> Table:
    """Affairs a year, not whole numbers, from eight variables; where `knots` is not 0, ratings are categories."""
    frame = table("fair")
    levels = FAIR_LEVELS if knots else FAIR_LEVELS[2:]
    return variables("poisson", frame.drop(columns="affairs"), frame["affairs"], knots, levels)


DATA: dict[str, Callable[[], Table]] = {
    "splice": lambda: splice(False),
    "splice pairs": lambda: splice(True),
    "colon": colon,
    "breast cancer raw": lambda: breast_cancer(0),
    "breast cancer splines": lambda: breast_cancer(4),
    "wine raw": lambda: wine(0),
    "wine splines": lambda: wine(4),
    "digits": lambda: digits(tuple(range(10))),
    "digits 3 or 8": lambda: digits((3, 8)),
    "randhie raw": lambda: randhie(0),
    "randhie splines": lambda: randhie(4),
    "fair raw": lambda: fair(0),
    "fair splines": lambda: fair(4),
}


def make_real(name: str, seed: int) -> Problem:
    """A split of a data set; classes have the same shares among the rows to fit and to test."""
    data = DATA[name]()
    rng = np.random.default_rng([seed, *name.encode()])
    family = FAMILIES[data.family]
    y = data.y if family.classes else data.y.astype(float)
    order = rng.permutation(len(y))
    if family.classes:  # rows of each class evenly over the order, so that any cut has about its share of them
        rank = np.empty(len(y))
        for label in np.unique(y):
            rows = order[y[order] == label]
            rank[rows] = (np.arange(rows.size) + rng.random()) / rows.size
        order = np.argsort(rank)
    n_fit = min(round(0.8 * len(y)), MOST_TO_FIT)
    fit, test = order[:n_fit], order[n_fit : n_fit + MOST_TO_TEST]
    names, labels = list(dict.fromkeys(data.group_of)), pd.factorize(data.group_of)[0]
    outputs, error = int(y.max()) + 1 if data.family == "multinomial" else 1, partial(family.error, y[test])
    return Problem(
        family, data.X[fit], y[fit], labels, data.X[test], error, folds(family, y[fit], rng), outputs=outputs,
        names=names,
    )  # fmt: skip


PROBLEMS = {name: partial(make_real, name) for name in DATA}
# real columns on scales of their own want long grids, and the first dip of their losses misleads
LONG = {"ratio": 1e-4, "least": 1e-6}
METHODS = {
    "adelie": by(adelie_standardised, **LONG),
    "adelie raw": by(adelie, **LONG),
    "lasso": partial(lasso, **LONG),
}
