"""Whatever a table holds: a clear error, or finite columns that survive JSON."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.terms import Encoding, Terms

FLOATS = st.floats(-1e100, 1e100) | st.floats(-10, 10) | st.integers(-3, 3).map(float) | st.just(np.nan)
CELLS = FLOATS | st.text(max_size=3) | st.booleans() | st.none() | st.dates() | st.datetimes() | st.integers()
COLUMNS = st.one_of(
    *(st.lists(cell, min_size=12, max_size=12) for cell in (FLOATS, CELLS, st.text(max_size=1) | st.none())),
    st.lists(st.sampled_from(["a", "b", None]), min_size=12, max_size=12),
    st.lists(st.dates(), min_size=12, max_size=12),
    st.lists(st.datetimes() | st.none(), min_size=12, max_size=12),
)
# an outlier of more than 1e8 times the spread of the others leaves few digits to these
MODERATE = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float) | st.just(np.nan)
KINDS = st.sampled_from(["auto", "linear", "curve", "levels", "drop"])


@settings(max_examples=200, deadline=None)
@given(st.lists(COLUMNS, min_size=1, max_size=3), st.lists(KINDS, min_size=3, max_size=3), st.booleans())
def test_any_table_is_encoded_or_refused(columns, kinds, pairs):
    table = pd.DataFrame({f"v{j}": pd.Series(column, dtype=object) for j, column in enumerate(columns)})
    table = table.infer_objects()
    wishes = dict(zip(table.columns, kinds, strict=False))
    try:
        encoding = Terms(wishes, pairs="auto" if pairs else None).fit(table)
    except ValueError as error:
        if "variable" in str(error).lower() or "olumn" in str(error):
            return
        raise
    X = encoding.transform(table)
    assert np.isfinite(X).all()
    assert X.shape == (12, len(encoding.column_names))
    again = Encoding.from_state(json.loads(json.dumps(encoding.state(), allow_nan=False)))
    np.testing.assert_array_equal(again.transform(table), X)
    for name in table:
        if name not in encoding.dropped:
            assert np.isfinite(encoding.encode(name, encoding.grid(name, 20))).all()
    assert all(i < j for i, j in encoding.pairs)
    assert len(encoding.table()) == len(columns)


@settings(max_examples=200, deadline=None)
@given(st.lists(MODERATE, min_size=12, max_size=40), st.integers(0, 2**32 - 1))
def test_curves_of_any_numbers_are_orthogonal_to_the_line(numbers, seed):
    x = np.array(numbers)
    weights = np.random.default_rng(seed).random(len(x)) + 0.1
    try:
        encoding = Terms({"x0": "curve"}).fit(x[:, None], weights)
    except ValueError as error:
        if "Left out: 'x0'" in str(error):
            return
        raise
    if encoding.terms[0].kind == "levels":
        return
    observed = ~np.isnan(x)
    parts = [encoding.stems(0), *(term.columns for term in encoding.terms[1:])]
    X = encoding.transform(x[:, None])[observed]
    columns = np.column_stack([np.ones(len(X)), *(X[:, part] for part in parts)])
    shares = weights[observed] / weights[observed].sum()
    np.testing.assert_allclose(columns.T @ (shares[:, None] * columns), np.eye(columns.shape[1]), atol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 0.5])
def test_a_row_of_weight_two_counts_as_two_rows(unit):
    """For rare levels, flags of missing values, knots, details and pairs."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": rng.standard_normal(90),
            "gap": np.where(np.arange(90) < 2, np.nan, rng.standard_normal(90)),
            "flag": rng.random(90) < 0.2,
            "site": [*"aabbcc", *rng.choice(["d", "e"], 84)],
        }
    )
    times = np.full(90, 2)
    times[6:9] = 1
    weighted = Terms().fit(table, times * unit)
    again = table.loc[np.repeat(table.index, times)].reset_index(drop=True)
    repeated = Terms().fit(again)
    unweighted = Terms().fit(table)
    assert [term.name for term in weighted.terms] == [term.name for term in repeated.terms]
    assert weighted.column_names == repeated.column_names != unweighted.column_names
    assert weighted.pairs == repeated.pairs
    np.testing.assert_allclose(weighted.transform(table), repeated.transform(table), atol=1e-10)
