"""What becomes of columns of every type, and what is left out."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from covey.terms import Terms

N = 60
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=N)


def kinds(column, name="v"):
    encoding = Terms().fit(pd.DataFrame({name: column, "other": NUMBERS}))
    mains = encoding.terms[: encoding.n_mains]
    return [term.kind for term in mains if term.variables == (name,)], encoding.dropped.get(name)


CURVED = ["linear", "curve"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([f"{value:.3f}" for value in NUMBERS], CURVED),
        ([str(i % 7) for i in range(N)], CURVED),
        ([Decimal(i % 5) for i in range(N)], CURVED),
        (np.arange(N) % 6, CURVED),
        (pd.array([1, 2, 3, None] * 15, dtype="Int64"), CURVED),
        (pd.to_timedelta(RNG.integers(0, 99, N), unit="h"), CURVED),
        (np.arange(1950, 1950 + N), CURVED),  # years
        (np.arange(N, dtype=float), CURVED),  # real numbers are never identifiers
        (pd.array([True, False, None] * 20, dtype="boolean"), ["linear"]),
        ([True, False, None] * 20, ["linear"]),
        (["true", "False"] * 30, ["linear"]),
        (["yes", "no"] * 30, ["levels"]),
        ([1, "a", "b"] * 20, ["levels"]),
        (pd.Categorical([1, 2, 3] * 20), ["levels"]),
        (pd.Categorical([f"level {i % 25}" for i in range(N)]), ["levels"]),
    ],
)
def test_columns_of_every_type(column, expected):
    assert kinds(column) == (expected, None)


@pytest.mark.parametrize(
    ("name", "column", "reason"),
    [
        ("v", np.full(N, 3), "constant"),
        ("v", np.full(N, 0.3) + 5e-17 * (np.arange(N) % 2), "constant"),
        ("v", ["x"] * N, "constant"),
        ("v", [datetime.date(2020, 1, 1)] * N, "constant"),
        ("v", [np.nan] * N, "all values are missing"),
        ("v", [None] * N, "all values are missing"),
        ("v", [""] * N, "all values are missing"),
        ("v", pd.Categorical([None] * N, categories=["a"]), "all values are missing"),
        ("v", np.arange(N), "number the rows"),
        ("v", np.random.default_rng(0).permutation(N) + 1, "number the rows"),
        ("patient_id", np.random.default_rng(0).permutation(5000)[:N], "number the rows"),
        ("PassengerId", np.random.default_rng(0).permutation(5000)[:N], "number the rows"),
        ("v", [f"user {i}" for i in range(N)], "identifiers"),
        ("v", [f"some text {i % 40}" for i in range(N)], "free text: 40"),
        ("v", [[1, 2]] * N, "lists or other objects"),
        ("v", 1j * np.arange(N), "lists or other objects"),
        ("v", pd.Categorical([f"level {i}" for i in range(N)]), "all of its levels are rare"),
    ],
)
def test_columns_that_are_left_out_with_a_reason(name, column, reason):
    found, said = kinds(column, name)
    assert found == []
    assert reason in said


@pytest.mark.parametrize("name", ["bid", "paid", "width", "grid", "humid"])
def test_names_that_only_end_like_identifiers(name):
    assert kinds(np.random.default_rng(0).permutation(5000)[:N], name) == (CURVED, None)


@pytest.mark.parametrize("name", ["time", "TIME", "t", "sampling_day", "age"])
def test_consecutive_numbers_may_be_a_trend(name):
    assert kinds(np.arange(1, N + 1), name) == (CURVED, None)


def test_reasons_are_said_together():
    table = pd.DataFrame({f"c{j}": np.full(N, j) for j in range(500)} | {"x": NUMBERS, "note": [[1]] * N})
    encoding = Terms().fit(table)
    assert encoding.remarks == (
        "Left out: 'c0', 'c1', 'c2', 'c3', 'c4', 'c5' and 494 more (constant); 'note' (lists or other objects).",
    )
    lines = encoding.table().set_index("variable")
    assert lines.loc["c3", "kind"] == "left out"
    assert lines.loc["c3", "remark"] == "constant"


def test_what_is_left_out_by_default_is_used_if_named():
    table = pd.DataFrame({"id": np.arange(N), "site": [f"s{i % 40}" for i in range(N)]})
    encoding = Terms({"id": "linear", "site": "levels"}).fit(table.assign(site=[f"s{i % 20}" for i in range(N)]))
    assert [term.name for term in encoding.terms] == ["id", "site"]
