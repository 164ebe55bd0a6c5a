"""The parts of an experiment: settings at two scales, claims with verdicts, and selections from its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from covey.validation import FloatArray

Value = TypeVar("Value")
Record = dict[str, Any]


class Verdict(StrEnum):
    """The outcome of a measurement."""

    HOLDS = "holds"
    CODE_ONLY = "holds in the code only"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Claim:
    """One row of ``claims.csv``: the claim in our words, what was measured, and the verdict.

    `expected` is the result that would confirm it. The thresholds are ours, since the paper states none, and were set
    after seeing earlier runs. `id`, the figure or table that makes the claim, is filled in by the registry.
    """

    claim: str
    expected: str
    measured: str
    verdict: Verdict
    id: str = ""


Claims = Iterator[Claim]


def judge(text: object, code: object = False) -> Verdict:
    """The verdict on a claim: whether it holds with the paper's text and, failing that, with the authors' code.

    >>> judge(True), judge(False, True), judge(False)
    (<Verdict.HOLDS: 'holds'>, <Verdict.CODE_ONLY: 'holds in the code only'>, <Verdict.FAILS: 'does not hold'>)
    """
    return Verdict.HOLDS if text else Verdict.CODE_ONLY if code else Verdict.FAILS


@dataclass(frozen=True)
class Scale:
    """The base class of settings: the defaults are the full ones, and `scaled` fields have a quick value as well."""

    @classmethod
    def quick(cls) -> Self:
        """Few repeats: seconds or minutes."""
        return cls(**{one.name: one.metadata["quick"] for one in fields(cls) if "quick" in one.metadata})

    @classmethod
    def full(cls) -> Self:
        return cls()


def scaled(full: Value, *, quick: Value) -> Value:
    """A field of `Scale` with one value for the full run and one for the quick run."""
    found: Any = field(default=full, metadata={"quick": quick})
    return found


def where(frame: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The part of a table in which every named column has the given value."""
    return frame[np.logical_and.reduce([frame[column] == value for column, value in values.items()])]


def mean_and_error(values: object) -> tuple[float, float]:
    """The mean of repeats and its standard error; zero for a single repeat."""
    v = np.asarray(values, dtype=float)
    return float(v.mean()), float(v.std(ddof=1) / np.sqrt(v.size)) if v.size > 1 else 0.0


def choose(coefs: FloatArray, intercepts: FloatArray, X_val: FloatArray, y_val: FloatArray) -> int:
    """The model with the least error on validation rows, by its position; models are rows of coefficients."""
    return int(np.argmin(np.mean((y_val[:, None] - X_val @ coefs.T - intercepts) ** 2, axis=0)))
