"""Tables of every library give the fit of the array, with names; groups come from names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from covey import Groups, GroupSparseCox, GroupSparseRegressor, TermGroups, limit_path, nested_score

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = X[:, 0] + X[:, 1] + 0.1 * RNG.standard_normal(60)
NAMES = ["a_1", "a_2", "b_1", "b_2", "c_1", "c_2"]


def polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def wrapped(columns):
    return pytest.importorskip("narwhals").from_native(pd.DataFrame(columns))


FRAMES = {"pandas": pd.DataFrame, "polars": polars, "pyarrow": arrow, "narwhals": wrapped}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_is_its_array_with_names(kind):
    frame = FRAMES[kind](dict(zip(NAMES, X.T.copy(), strict=True)))
    y = FRAMES[kind]({"y": Y})
    plain = GroupSparseRegressor(groups=2).fit(X, Y)
    model = GroupSparseRegressor(groups="_").fit(frame, y["y"])
    assert model.feature_names_in_.tolist() == NAMES
    assert model.groups_.names == ("a", "b", "c")
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.predict(frame), plain.predict(X), rtol=1e-10)
    path = limit_path(frame, Y, TermGroups(["a", "b", "c"]))
    assert path.groups.columns == tuple(NAMES)
    assert nested_score(GroupSparseRegressor(groups="_"), frame, y["y"], cv=3).mean > 0.9
    times = FRAMES[kind]({"time": np.exp(Y), "event": np.ones(60, dtype=bool)})
    assert "a" in GroupSparseCox(groups="_").fit(frame, times).selected_groups_


def test_a_lazy_table_is_refused():
    lazy = pytest.importorskip("polars").DataFrame({"a": Y}).lazy()
    with pytest.raises(ValueError, match=r"X is lazy, a LazyFrame: pass X.collect\(\)"):
        GroupSparseRegressor().fit(lazy, Y)


@pytest.mark.parametrize(
    ("columns", "spec", "groups"),
    [
        (["a_1_x", "a_2", "b", "_c"], "_", ("a", "b", "_c")),
        (["a__1", "a__2", "b_1"], "__", ("a", "b_1")),
        (["ax1", "ax2", "b"], "sep:x", ("a", "b")),
    ],
)
def test_groups_by_a_separator(columns, spec, groups):
    assert Groups.coerce(spec, len(columns), columns).names == groups


@pytest.mark.parametrize(
    ("columns", "spec", "words"),
    [
        (["a", "b"], "_", "no column's name holds the separator '_'; they are 'a', 'b'"),
        (None, "_", "set_output"),
        (["a", "b"], "x", "cannot be read from str 'x'"),
    ],
)
def test_separators_that_do_not_separate(columns, spec, words):
    with pytest.raises(ValueError, match=words):
        Groups.coerce(spec, 2, columns)


TABLE = pd.DataFrame({"age": np.linspace(20, 60, 80), "site": list("abcd") * 20, "sex": list("mmfff") * 16})
RESPONSE = (TABLE["site"] == "b") + 0.01 * np.cos(np.arange(80))


def transformer():
    return ColumnTransformer([("s", SplineTransformer(), ["age"]), ("h", OneHotEncoder(), ["site", "sex"])])


@pytest.mark.parametrize("threshold", [0.0, 1.0], ids=["dense", "sparse"])
def test_a_transformer_without_set_output(threshold):
    fitted = transformer().set_params(sparse_threshold=threshold).fit(TABLE)
    model = GroupSparseRegressor(groups=TermGroups.from_transformer(fitted))
    model.fit(fitted.transform(TABLE), RESPONSE)
    assert model.selected_groups_ == ["site"]
    assert model.groups_.columns == tuple(fitted.get_feature_names_out())


def test_in_a_pipeline_the_error_names_set_output():
    pipeline = make_pipeline(transformer(), GroupSparseRegressor(groups=TermGroups(TABLE.columns)))
    with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\)"):
        pipeline.fit(TABLE, RESPONSE)
    pipeline[0].set_params(sparse_threshold=0, h__sparse_output=False).set_output(transform="pandas")
    assert "site" in pipeline.fit(TABLE, RESPONSE)[-1].selected_groups_


def test_a_table_of_sparse_columns():
    fitted = OneHotEncoder().fit(TABLE[["site", "sex"]])
    names = fitted.get_feature_names_out()
    frame = pd.DataFrame.sparse.from_spmatrix(fitted.transform(TABLE[["site", "sex"]]), columns=names)
    model = GroupSparseRegressor(groups="_").fit(frame, RESPONSE)
    assert model.selected_groups_ == ["site"]
    assert model.feature_names_in_.tolist() == names.tolist()


def test_groups_of_another_transformer():
    fitted = OneHotEncoder().fit(TABLE[["site", "sex"]])
    with pytest.raises(ValueError, match="groups is for 6 columns, but X has 2"):
        GroupSparseRegressor(groups=TermGroups.from_transformer(fitted)).fit(np.eye(9, 2), np.arange(9.0))
