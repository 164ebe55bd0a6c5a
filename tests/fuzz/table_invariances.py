"""Small fits of tables of variables, made twice: rows, columns, levels and units as before, weights, files.

As `fuzz.invariances`, with `terms=` instead of `groups=`: what a variable becomes must not depend on these either.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import covey
from covey import Terms
from covey.designs.rows import REPEATED
from fuzz.invariances import SELECTIONS as ALL_SELECTIONS
from fuzz.invariances import compared, counted, estimator, respond

Rng = np.random.Generator

LOSSES = ("squared", "two", "poisson", "gamma", "logistic", "multinomial", "ordinal", "cox", "huber", "quantile")

SELECTIONS = ("folds", "deals", "ebic")

OPTIONS = ("plain", "pairs", "predict", "pairs, predict", "increasing", "positive")

LEVELS = ("c", "a", "b", "d", "north", "south", "west", "x1", "x2")

VARIABLES: dict[str, Callable[[Rng, int], Any]] = {
    "number": lambda rng, n: np.round(rng.standard_normal(n), 2),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, np.round(rng.standard_normal(n), 2)),
    "integer": lambda rng, n: rng.integers(0, 6, n),
    "flag": lambda rng, n: rng.integers(0, 2, n).astype(bool),
    "category": lambda rng, n: rng.choice(LEVELS[:4], n),
    "rare": lambda rng, n: rng.choice(LEVELS[4:], n, p=[0.4, 0.4, 0.14, 0.03, 0.03]),
    "date": lambda rng, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
}


def draw_table(rng: Rng, n: int) -> pd.DataFrame:
    """Two to five variables, of which one may repeat the one before."""
    columns: dict[str, Any] = {}
    for i in range(int(rng.integers(2, 6))):
        kind = str(rng.choice([*VARIABLES, "copy"]))
        columns[f"v{i}"] = (
            columns[f"v{i - 1}"] if kind == "copy" and i else VARIABLES.get(kind, VARIABLES["number"])(rng, n)
        )
    return pd.DataFrame(columns)


def response(loss: str, table: pd.DataFrame, rng: Rng) -> Any:
    """Responses of the loss's kind that depend on the first two variables."""
    first, second = (pd.factorize(table[name], sort=True)[0].astype(float) for name in table.columns[:2])
    eta = first / (first.std() or 1.0) - second / (second.std() or 1.0)
    eta = eta + np.sin(eta) - eta.mean() + 0.4 * rng.standard_normal(len(table))
    return respond(loss, eta, rng, digits=2)


@dataclass(frozen=True)
class Case:
    """What is fitted, and the way in which it is fitted again."""

    seed: int
    loss: str
    selection: str
    options: str
    way: str
    table: pd.DataFrame
    y: Any
    weight: Any = None

    def __str__(self) -> str:
        kinds = ", ".join(str(kind) for kind in self.table.dtypes)
        return f"{self.loss}, {self.selection}, {self.options}, {self.way}, {len(self.table)} rows of {kinds}"

    def fit(self) -> Any:
        """The model; a constraint is on the first number."""
        options: dict[str, Any] = {
            "selection": ALL_SELECTIONS[self.selection](),
            "terms": Terms(pairs="auto" if "pairs" in self.options else None),
            "rule": "predict" if "predict" in self.options else "select",
        }
        numbers = [name for name in self.table if self.table[name].dtype.kind in "fi"]
        if self.options in ("increasing", "positive") and numbers:
            options["constraints"] = {min(numbers): "increasing" if self.options == "increasing" else ">=0"}
        return counted(estimator(self.loss, **options).fit(self.table, self.y, sample_weight=self.weight))


def case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    loss, selection, options, way = (str(rng.choice(list(kinds))) for kinds in (LOSSES, SELECTIONS, OPTIONS, WAYS))
    table = draw_table(rng, int(rng.choice([30, 50])))
    return Case(seed, loss, selection, options, way, table, response(loss, table, rng))


def kept(line: str) -> Case:
    """A case that failed once, from a line of `table_invariances.jsonl`."""
    read = json.loads(line)
    return Case(**read | {"table": pd.DataFrame(read["table"]), "y": np.array(read["y"])})


def shown(model: Any, table: pd.DataFrame) -> Any:
    """What a model says of rows: decisions, probabilities or predictions."""
    says = next(name for name in ("decision_function", "predict_proba", "predict") if hasattr(model, name))
    return np.asarray(getattr(model, says)(table), dtype=float)


# Each way returns what two models say of the same rows.
Both = tuple[Any, Any]


def rows(case: Case, model: Any, rng: Rng) -> Both:
    """Rows in another order."""
    order = rng.permutation(len(case.table))
    found = replace(case, table=case.table.iloc[order].reset_index(drop=True), y=case.y[order]).fit()
    return shown(model, case.table), shown(found, case.table)


def columns(case: Case, model: Any, rng: Rng) -> Both:
    """Columns in another order, in which the first model can predict too."""
    other = case.table[rng.permutation(case.table.columns).tolist()]
    assert np.array_equal(shown(model, other), shown(model, case.table)), "other predictions for columns by name"
    return shown(model, case.table), shown(replace(case, table=other).fit(), other)


def levels(case: Case, model: Any, rng: Rng) -> Both:
    """Levels with other names, in another order."""
    names = dict(zip(LEVELS, rng.permutation([f"k{i}" for i in range(len(LEVELS))]).tolist(), strict=True))
    other = case.table.copy()
    for name in other:
        if other[name].dtype.kind not in "fibM":
            other[name] = other[name].map(names)
    return shown(model, case.table), shown(replace(case, table=other).fit(), other)


def units(case: Case, model: Any, rng: Rng) -> Both:
    """Numbers in other units, copies in the same."""
    factor, shift = (1.8, 32.0) if rng.random() < 0.5 else (2.0 ** rng.integers(-10, 11), 0.0)
    other = case.table.copy()
    for name in other:
        if other[name].dtype.kind == "f":
            other[name] = factor * other[name] + shift
    return shown(model, case.table), shown(replace(case, table=other).fit(), other)


def weights(case: Case, model: Any, rng: Rng) -> Both:
    """Weights, and repeated rows."""
    times = rng.choice([1, 2], len(case.table), p=[0.7, 0.3])
    again = np.repeat(np.arange(len(times)), times)
    repeated, y = case.table.iloc[again].reset_index(drop=True), case.y[again]
    distinct = pd.concat([repeated, pd.DataFrame(y)], axis=1).drop_duplicates()
    if len(again) > REPEATED * len(distinct):  # equal rows are in several folds, a weighted row is in one
        return 0.0, 0.0
    weighted = replace(case, weight=times.astype(float)).fit()
    return shown(weighted, case.table), shown(replace(case, table=repeated, y=y).fit(), case.table)


def saved(case: Case, model: Any, rng: Rng) -> Both:
    """The model after saving and loading."""
    with tempfile.TemporaryDirectory() as folder:
        covey.save(model, Path(folder) / "model.skops")
        again = covey.load(Path(folder) / "model.skops")
    assert str(again.summary()) == str(model.summary()), "another summary"
    assert np.array_equal(shown(again, case.table), shown(model, case.table)), "other predictions"
    return 0.0, 0.0


WAYS = {way.__name__: way for way in (rows, columns, levels, units, weights, saved)}


def verdict(case: Case) -> str:
    """Empty when both fits are one model, or refused by name; otherwise what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = case.fit()
        except ValueError as refused:
            return "" if str(refused) else f"{case}: refused without a word"
        try:
            one, other = WAYS[case.way](case, model, np.random.default_rng([case.seed, 1]))
        except (ValueError, AssertionError) as wrong:
            # of two copies the first column stays, and the other one cannot have a constraint
            return "" if case.way == "columns" and "the same values as" in str(wrong) else f"{case}: {wrong}"
    return compared(case, model, one, other)
