"""Terms: what a user may say, tables of every library, and bad input."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covey
from covey.terms import Curve, Drop, Levels, Linear, Terms

N = 60


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, N),
            "lab_a": rng.normal(size=N),
            "lab_b": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "site": rng.choice(list("abc"), N),
            "day": pd.date_range("2020-01-01", periods=N),
            "smoker": rng.random(N) < 0.5,
        }
    )


def test_exact_names_win_over_patterns_and_later_over_earlier(table):
    terms = Terms({"lab_b": Curve(knots=4), "lab*": "linear", "l*_a": "drop", "day": Drop()})
    encoding = terms.fit(table)
    assert [term.name for term in encoding.terms] == ["age", "age~", "lab_b", "lab_b~", "site", "smoker", "age~~"]
    assert encoding.dropped == {"lab_a": "as you said", "day": "as you said"}
    assert encoding.variables == tuple(table.columns)


def test_a_name_with_brackets_is_a_name():
    table = pd.DataFrame({"x[1]": np.arange(50.0), "x1": np.arange(50.0) ** 2})
    encoding = Terms({"x[1]": "linear"}).fit(table)
    assert [term.name for term in encoding.terms] == ["x[1]", "x1", "x1~"]


def test_terms_are_values(table):
    terms = Terms({"age": "linear", "site": Levels(always=True)}, pairs=[("age", "site")])
    assert terms == Terms({"age": Linear(), "site": Levels(always=True)}, pairs=[["age", "site"]])
    assert terms != Terms({"age": "linear"})
    assert repr(Terms()) == "Terms()"
    assert copy.deepcopy(terms) == terms == pickle.loads(pickle.dumps(terms))
    assert eval(repr(terms), {"Terms": Terms, "Linear": Linear, "Levels": Levels}) == terms
    assert Terms.coerce(terms) is terms
    assert Terms.coerce("auto") == Terms()
    assert Terms.coerce({"age": "linear"}) == Terms({"age": "linear"})
    assert covey.Terms is Terms


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: Terms.coerce("all"), "terms must be 'auto', a dict .* not 'all'.*groups="),
        (lambda t: Terms.coerce(3), "terms must be 'auto'"),
        (lambda t: Terms(["age"]), "must be a dict such as"),
        (lambda t: Terms({"age": "wiggly"}), "'age' must be 'auto', 'linear', .* not 'wiggly'"),
        (lambda t: Terms({3: "linear"}), "names of variables must be text, not 3"),
        (lambda t: Curve(knots=2), "knots must be at least 3, not 2"),
        (lambda t: Levels(always="yes"), "always must be True or False"),
        (lambda t: Levels(rare=0), "rare must be at least 1"),
        (lambda t: Terms({"agee": "linear"}).fit(t), "no variable 'agee'; did you mean 'age'"),
        (lambda t: Terms({"z*": "linear"}).fit(t), r"no variable that matches 'z\*'; the columns are"),
        (
            lambda t: Terms({"site": "linear"}).fit(t),
            r"'site' holds '.' in row 1 where numbers are expected.*Levels\(\)",
        ),
        (lambda t: Terms({"*": "drop"}).fit(t), "No variable of the table can be used: Left out: 'age'.* terms="),
        (lambda t: Terms().fit(t.assign(age=np.inf)), "'age' has infinite values"),
        (lambda t: Terms().fit(t.assign(age=t["age"] * 1e200)), "'age' has values up to .*change the units"),
        (lambda t: Terms().fit(t[["age", "site", "age"]]), "several columns of the same name: 'age'"),
        (lambda t: Terms().fit(t.iloc[:0]), "X is empty"),
        (lambda t: Terms().fit(t["age"]), r"not a single column: pass X.to_frame\(\)"),
        (lambda t: Terms().fit([1.0, 2.0]), "a table of rows and variables"),
        (lambda t: Terms().fit([[1.0, 2.0], [1.0]]), "a table of rows and variables"),
        (lambda t: Terms().fit(sparse.eye(3, format="csr")), "X is sparse.*groups= instead of terms="),
        (lambda t: Terms().fit(t, np.ones(3)), "sample_weight has 3 entries, but X has 60 rows"),
        (lambda t: Terms().fit(t).transform(t.drop(columns="age")), "no variable 'age', with which"),
        (lambda t: Terms().fit(t).transform(t[["age"]]), "no variables 'lab_a', 'lab_b'"),
        (lambda t: Terms().fit(t).transform(np.ones((2, 3))), "X has 3 features, but .* 6 variables"),
        (
            lambda t: Terms().fit(t).transform(t.assign(age="old")),
            "'age' holds 'old' in row 1 where numbers are expected",
        ),
        (lambda t: Terms().fit(t).transform(t.assign(lab_a=-np.inf)), "'lab_a' has infinite values"),
        (lambda t: Terms().fit(t).grid("agee"), "no variable 'agee'; did you mean 'age'"),
        (lambda t: Terms({"age": "drop"}).fit(t).encode("age", [1]), "'age' is left out: as you said"),
        (lambda t: Terms({"v": "linear"}).fit(t.assign(v=[[1]] * N)), "'v' holds lists or other objects"),
    ],
)
def test_bad_input_is_named_with_its_remedy(table, make, message):
    with pytest.raises(ValueError, match=message):
        make(table)


def test_types_of_arrow_and_polars_are_those_of_pandas():
    """Missing values and the order of levels among them."""
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": pd.Categorical(rng.choice(["small", "large"], N), categories=["small", "large"], ordered=True),
            "site": pd.Categorical(rng.choice(list("cab"), N)),
            "visit": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "share": rng.normal(size=N),
        }
    )
    table.loc[::7] = None
    dates = pyarrow.array(table["visit"]).cast(pyarrow.date32())
    arrow = pyarrow.Table.from_pandas(table).set_column(2, "visit", dates)
    sizes = polars.Series(arrow["size"].to_pylist(), dtype=polars.Enum(["small", "large"]))
    as_arrow = arrow.to_pandas(types_mapper=pd.ArrowDtype).set_axis(np.arange(N)[::-1])
    encoding = Terms().fit(table)
    X = encoding.transform(table)
    for other in (arrow, as_arrow, polars.from_arrow(arrow).with_columns(size=sizes)):
        np.testing.assert_allclose(Terms().fit(other).transform(other), X, atol=1e-12)
        np.testing.assert_array_equal(encoding.transform(other), X)
    twice = pyarrow.table([[1, 2], [3, 4]], names=["a", "a"])
    with pytest.raises(ValueError, match="several columns of the same name: 'a'; rename them"):
        Terms().fit(twice)


def test_arrays_and_lists_have_numbered_names():
    values = np.random.default_rng(0).normal(size=(N, 2))
    encoding = Terms().fit(values)
    assert encoding.variables == ("x0", "x1")
    np.testing.assert_array_equal(encoding.transform(values), Terms().fit(values.tolist()).transform(values.tolist()))
    mixed = [[1.5 * i, "ab"[i % 2]] for i in range(30)]
    assert [term.kind for term in Terms().fit(mixed).terms] == ["linear", "curve", "levels"]


def test_the_order_of_rows_and_columns_does_not_matter(table):
    encoding = Terms(pairs="auto").fit(table)
    X = encoding.transform(table)
    assert X.flags.f_contiguous
    assert X.dtype == np.float64
    mixed = table.sample(frac=1, random_state=0)[[*table.columns[::-1]]].assign(more=1)
    np.testing.assert_array_equal(encoding.transform(mixed)[np.argsort(mixed.index)], X)
    other = Terms(pairs="auto").fit(mixed)
    places = [other.column_names.index(name) for name in encoding.column_names]
    np.testing.assert_allclose(other.transform(table)[:, places], X, atol=1e-9)
    assert len(other.pairs) == len(encoding.pairs)


def test_names_of_terms_and_columns_are_unique():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "a~": rng.normal(size=N), "a~1": rng.normal(size=N)})
    table["s"], table["s=u"] = ["u=v", "w"] * (N // 2), ["v", "w"] * (N // 2)
    encoding = Terms().fit(table)
    names = [term.name for term in encoding.terms]
    assert len(set(names)) == len(names)
    assert set(table) <= set(names)
    assert len(set(encoding.column_names)) == len(encoding.column_names) == encoding.transform(table).shape[1]


def test_the_table_says_what_became_of_each_variable(table):
    lines = Terms().fit(table.assign(one=1)).table()
    assert lines["variable"].tolist() == [*table.columns, "one"]
    assert lines["kind"].tolist() == ["curve", "curve", "curve", "levels", "curve + [week]", "linear", "left out"]
    assert lines["missing"].tolist()[2] == table["lab_b"].isna().sum()


def test_a_table_that_is_not_in_memory_is_refused(table):
    frames = pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match=r"X is of dask.*groups= instead of terms="):
        covey.GroupSparseRegressor(terms="auto").fit(frames.from_pandas(table, npartitions=2), np.arange(len(table)))
