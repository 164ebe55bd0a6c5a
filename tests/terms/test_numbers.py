"""Numbers: standardised lines, flags for missing values, and curves, for any units and weights."""

import numpy as np
import pandas as pd
import pytest

from covey.terms import Curve, Terms
from covey.terms.unusual import unusual_values


def columns_of(encoding, X, name):
    return X[:, {term.name: term for term in encoding.terms}[name].columns]


@pytest.fixture
def x():
    return np.random.default_rng(0).gamma(2.0, size=300)


def test_a_line_and_a_curve_that_is_orthogonal_to_it(x):
    weights = np.random.default_rng(1).random(300)
    encoding = Terms().fit(pd.DataFrame({"x": x}), weights)
    line, curve, detail = encoding.terms
    assert (line.name, line.kind, line.parents, line.variables) == ("x", "linear", (), ("x",))
    assert (curve.name, curve.kind, curve.parents) == ("x~", "curve", (0,))
    assert (detail.name, detail.kind, detail.parents, encoding.n_mains) == ("x~~", "detail", (1,), 2)
    assert encoding.column_names == ("x", *(f"x~{j}" for j in range(1, detail.columns.stop)))
    assert curve.columns == slice(1, 9)
    assert (encoding.curve_of(0), encoding.curve_of(1), encoding.last_of(0)) == (1, None, 2)
    assert encoding.stems(0) == slice(0, 1)
    X = np.column_stack([np.ones(300), encoding.transform(pd.DataFrame({"x": x}))])
    np.testing.assert_allclose(
        X.T @ (weights[:, None] * X) / weights.sum(), np.eye(1 + detail.columns.stop), atol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, -3.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 2000.0, 1e5])
def test_units_do_not_matter(x, scale, offset):
    reference = Terms().fit(x[:, None]).transform(x[:, None])
    changed = (scale * (x + offset))[:, None]
    encoded = Terms().fit(changed).transform(changed)
    signs = np.sign((encoded * reference).sum(axis=0))
    np.testing.assert_allclose(encoded * signs, reference, atol=1e-7)


def test_beyond_the_range_the_line_goes_on_and_the_curve_stays(x):
    encoding = Terms().fit(x[:, None])
    for end, sign in ((x.max(), 1.0), (x.min(), -1.0)):
        encoded = encoding.transform((end + sign * np.arange(50.0))[:, None])
        np.testing.assert_allclose(np.diff(encoded[:, 0]), sign / x.std(), rtol=1e-9)
        np.testing.assert_array_equal(encoded[:, 1:], encoded[[0] * 50, 1:])
    inside = np.abs(encoding.transform(x[:, None])[:, 1:]).max(axis=0)
    assert (np.abs(encoding.transform([[1e9], [-1e9]])[:, 1:]) <= inside).all()


def test_a_number_that_is_mostly_zero_has_as_many_bends_as_rows_beside_zero_allow():
    for n_others, width in ((5, 0), (15, 0), (25, 1), (100, 7)):
        x = np.zeros(400)
        x[:n_others] = np.random.default_rng(0).gamma(2.0, size=n_others) + 0.1
        encoding = Terms().fit(x[:, None])
        assert len(encoding.column_names) == 1 + width
        assert np.abs(encoding.transform(x[:, None])[n_others:, 1:]).max(initial=0.0) < 1


def test_text_among_new_numbers_is_missing_and_a_column_of_text_is_refused(x):
    x[::10] = np.nan
    encoding = Terms().fit(pd.DataFrame({"x": x}))
    new = pd.DataFrame({"x": [1.5, "rotary", None, "2.5", "none"]})
    said = ["x is 'rotary', 'none' in 2 rows, where the fit had numbers: predicted as missing."]
    assert unusual_values(encoding, new, ["x"]) == said
    np.testing.assert_array_equal(encoding.transform(new), encoding.transform([[1.5], [None], [None], [2.5], [None]]))
    with pytest.raises(ValueError, match="'x' holds 'a' in row 1 where numbers are expected"):
        encoding.transform(pd.DataFrame({"x": ["a", "b"]}))


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("1,234,567", "thousands=','"),
        ("1'234.5", 'thousands="\'"'),
        ("1,5", "decimal=','"),
        ("1,234", "thousands=',' or"),
    ],
)
def test_new_numbers_with_other_marks_than_in_fit_are_not_missing(x, written, remedy):
    encoding = Terms().fit(pd.DataFrame({"x": x}))
    for values in ([written, 7.0, None], [written, written]):
        with pytest.raises(
            ValueError, match=f"'x' holds .* where numbers are expected, .*; read the table with {remedy}"
        ):
            encoding.transform(pd.DataFrame({"x": values}))


def test_missing_numbers_are_the_mean_with_a_flag(x):
    x[::10] = np.nan
    encoding = Terms().fit(x[:, None])
    X = encoding.transform(x[:, None])
    assert encoding.column_names[:2] == ("x0", "x0 missing")
    assert encoding.terms[0].columns == slice(0, 2)
    assert encoding.stems(0) == slice(0, 1)
    assert (X[::10, 0] == 0).all()
    assert (X[::10, 2:] == 0).all()
    np.testing.assert_allclose(X[:, 1], np.where(np.isnan(x), 0.9, -0.1))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    observed = X[~np.isnan(x)]
    np.testing.assert_allclose(observed.T[[0]] @ observed / len(observed), np.eye(1, X.shape[1]), atol=1e-12)
    assert "with a flag where at least 3 rows miss them: 'x0' (30)" in encoding.remarks[0]


def test_one_or_two_missing_numbers_have_no_flag(x):
    x[:2] = np.nan
    encoding = Terms().fit(x[:, None])
    assert encoding.column_names[:2] == ("x0", "x0~1")
    assert (encoding.transform(x[:, None])[:2] == 0).all()
    assert encoding.table().iloc[0][["missing", "remark"]].tolist() == [2, "missing values: the mean"]


@pytest.mark.parametrize(("distinct", "width"), [(2, 0), (3, 1), (4, 2), (12, 10)])
def test_few_distinct_values_have_few_curve_columns(distinct, width):
    x = np.arange(400) % distinct
    encoding = Terms().fit(x[:, None])
    assert len(encoding.column_names) == 1 + width
    # as many columns as distinct values fit any effect of them
    X = np.column_stack([np.ones(400), encoding.transform(x[:, None])])
    assert np.linalg.matrix_rank(X) == distinct


def test_wishes_of_the_user(x):
    table = pd.DataFrame({"x": x})
    assert len(Terms({"x": Curve(knots=4)}).fit(table).column_names) == 3
    terms = Terms({"x": Curve(always=True)}).fit(table).terms
    assert [(term.kind, term.always) for term in terms] == [("linear", True), ("curve", True), ("detail", False)]


def test_booleans_are_numbers_with_labels():
    table = pd.DataFrame({"smoker": [True, False, False, None] * 10, "two": [3.0, 9.0] * 20, "k": np.arange(40) % 9})
    encoding = Terms().fit(table)
    assert [(term.name, term.kind) for term in encoding.terms[:2]] == [("smoker", "linear"), ("two", "linear")]
    assert encoding.variable("smoker").labels == ("False", "True")
    assert encoding.grid("smoker") == ["False", "True", None]
    assert encoding.grid("two").tolist() == [3.0, 9.0]
    assert encoding.grid("k").tolist() == list(range(9))
    np.testing.assert_array_equal(
        encoding.encode("smoker", ["True", "False"]), encoding.encode("smoker", [True, False])
    )
    np.testing.assert_array_equal(encoding.encode("smoker", [1, 0]), encoding.encode("smoker", [True, False]))


def test_ordered_categories_are_numbers_with_labels():
    dtype = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    table = pd.DataFrame({"dose": pd.Categorical(["low", "mid", "high", "high"] * 20, dtype=dtype)})
    encoding = Terms().fit(table)
    assert [term.kind for term in encoding.terms] == ["linear", "curve"]
    assert encoding.grid("dose") == ["low", "mid", "high"]
    line = encoding.encode("dose", ["low", "mid", "high", "unheard of"])[:, 0]
    np.testing.assert_allclose(np.diff(line)[:2], np.diff(line)[0])
    assert line[3] == 0


def test_a_detail_needs_rows_all_over_the_range():
    rng = np.random.default_rng(0)
    kinds = {
        "normal": (rng.standard_normal(500), True),
        "few rows": (rng.standard_normal(50), False),
        "gamma": (rng.gamma(1.0, size=500), False),
        "long tail": (np.exp(1.5 * rng.standard_normal(500)), False),
        "mostly zero": (np.where(rng.random(500) < 0.9, 0.0, rng.random(500)), False),
    }
    for name, (x, expected) in kinds.items():
        encoding = Terms().fit(x[:, None])
        assert ("x0~~" in [term.name for term in encoding.terms]) == expected, name


def test_a_detail_stays_between_the_rows_about_what_it_is_on_them():
    x = np.append(np.random.default_rng(1).standard_normal(499), 5.0)
    encoding = Terms().fit(x[:, None])
    columns = encoding.terms[-1].columns
    on_rows = np.abs(encoding.transform(x[:, None])[:, columns]).max(axis=0)
    between = np.abs(encoding.transform(np.linspace(x.min(), x.max(), 2000)[:, None])[:, columns]).max(axis=0)
    assert (between <= 6 * on_rows).all()


def test_a_constant_with_missing_values_is_a_category():
    encoding = Terms().fit(pd.DataFrame({"tested": [1, None] * 20}))
    assert encoding.column_names == ("tested=1", "tested=(missing)")


def test_many_numbers_have_no_curves_unless_named():
    X = np.random.default_rng(0).normal(size=(30, 1002))
    wide = Terms({"x7": "curve"}).fit(X)
    assert [term.name for term in wide.terms if term.kind == "curve"] == ["x7~"]
    assert "1001 numbers are more than 1000 and get no curves" in wide.remarks[0]
    fewer = Terms({"x7": "curve"}).fit(X[:, :1001])
    assert sum(term.kind == "curve" for term in fewer.terms) == 1001


def test_a_number_that_is_mostly_missing_has_few_knots():
    x = np.full(400, np.nan)
    x[:30] = np.random.default_rng(0).normal(size=30)
    assert len(Terms().fit(x[:, None]).column_names) == 3
