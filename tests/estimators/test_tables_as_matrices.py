"""A table that is no matrix of numbers is refused with its columns and the remedy, as on the command line."""

import numpy as np
import pandas as pd
import pytest

import covey
from covey.tables import TableError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((60, 3)), columns=["a", "b", "c"])
Y = X["a"] + 0.1 * RNG.standard_normal(60)
HOLES = X.mask(np.arange(180).reshape(60, 3) % 50 == 0)

CASES = {
    "identifiers": (
        X.assign(id=[f"P{i:05d}" for i in range(60)]),
        "Column 'id' holds text, 'P00000'",
        r"X.drop(columns=['id'])",
    ),
    "categories": (X.assign(sex=["m", "f"] * 30), "Column 'sex' holds text with 2", "give terms='auto'"),
    "dates": (X.assign(when=pd.date_range("2020", periods=60)), "Column 'when' holds dates", "give terms='auto'"),
    "dates alone": (pd.DataFrame({"when": pd.date_range("2020", periods=60)}), "'when' holds dates", "terms='auto'"),
    "durations": (X.assign(b=pd.to_timedelta(np.arange(60), unit="D")), "'b' holds durations", "in one unit"),
    "names twice": (pd.concat([X, X[["a"]]], axis=1), "columns of the same name: 'a'", "rename"),
    "missing": (
        HOLES,
        "missing in 'a' (2), 'b' (1), 'c' (1), so that 4 of 60 rows have NaN",
        "X.dropna(), fill them in",
    ),
    "all missing": (X.assign(b=np.nan), "All values are missing in 'b'", "X.drop(columns=['b'])"),
    "infinite": (X.assign(b=np.inf), "infinite in 'b'", "X.drop(columns=['b'])"),
    "thousands": (X.assign(b=[f"{v:,}" for v in range(990, 1050)]), "1000 with thousands=','", "decimal=','"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_keeps_a_table_from_being_a_matrix(case):
    table, *words = CASES[case]
    with pytest.raises(TableError) as error:
        covey.GroupSparseRegressor().fit(table, Y)
    for word in words:
        assert word in str(error.value)
    if case != "infinite":
        with pytest.raises(TableError) as other:
            covey.stability_selection(table, Y)
        assert str(other.value) == str(error.value)


def test_rows_to_predict_and_arrays():
    model = covey.GroupSparseRegressor(selection="bic").fit(X, Y)
    with pytest.raises(TableError, match=r"missing in 'a' \(2\)"):
        model.predict(HOLES)
    with pytest.raises(TableError, match=r"missing in 'column 0' \(2\), .* rows with X\[~np.isnan"):
        covey.GroupSparseRegressor().fit(HOLES.to_numpy(), Y)
    with pytest.raises(TableError, match=r"'column 1' holds text with 2 different values, 'm' in row 1.*terms='auto'"):
        covey.GroupSparseRegressor().fit(X[["a"]].assign(sex=["m", "f"] * 30).to_numpy(), Y)


@pytest.mark.parametrize("kind", [str, object, list])
def test_text_in_an_array_is_named_with_its_column(kind):
    rows = [[1, "x"], [2, "y"], [3, "x"]] * 20
    given = rows if kind is list else np.array(rows, dtype=kind)
    with pytest.raises(TableError, match=r"'column 1' holds text with 2 different values.*encode it"):
        covey.GroupSparseRegressor().fit(given, Y)


def test_all_columns_of_a_formula():
    data = X.rename(columns={"b": "b b", "c": "c.1"}).assign(y=Y)
    model = covey.GroupSparseRegressor.from_formula("y ~ .", data, selection="bic")
    assert model.groups_.names == ("a", "b b", "c.1")
    np.testing.assert_allclose(model.predict(data), Y, atol=0.5)
    crossed = covey.GroupSparseRegressor.from_formula("y ~ .:a - a", data.drop(columns="c.1"), selection="bic")
    assert set(crossed.groups_.names) == {"b b:a"}
    censored = data.assign(time=np.exp(-Y), dead=1).drop(columns="y")
    assert (
        covey.GroupSparseCox.from_formula("survival(time, dead) ~ .", censored, selection="bic").groups_.n_groups == 3
    )
