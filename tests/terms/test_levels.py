"""Categories: centred levels, rare and unseen ones, missing values."""

import numpy as np
import pandas as pd
import pytest

from covey.terms import Levels, Terms


@pytest.fixture
def table():
    return pd.DataFrame({"site": ["a"] * 50 + ["b"] * 30 + ["c"] * 20})


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_are_centred_and_an_unseen_one_is_their_weighted_mean(table, ordered):
    weights = np.random.default_rng(0).random(100)
    if ordered:
        table["site"] = pd.Categorical(table["site"], ordered=True)
    encoding = Terms().fit(table, weights)
    X = encoding.transform(table)
    np.testing.assert_allclose(weights @ X, 0, atol=1e-12)
    effects = np.array([1.0, 5.0, -2.0])[: X.shape[1]]  # an ordered category has a line and one column of a curve
    unseen = encoding.transform(pd.DataFrame({"site": ["z", None]})) @ effects
    np.testing.assert_allclose(unseen, weights @ (X @ effects) / weights.sum(), atol=1e-12)


def test_missing_values_are_a_level(table):
    table.loc[::10, "site"] = None
    encoding = Terms().fit(table)
    assert encoding.column_names[-1] == "site=(missing)"
    assert encoding.grid("site") == ["a", "b", "c", None]
    X = encoding.encode("site", [None, "", "a"])
    np.testing.assert_allclose(X[0], [*(-np.array(encoding.variable("site").shares[:3])), 0.9])
    np.testing.assert_array_equal(X[0], X[1])
    assert X[2, 3] == pytest.approx(-0.1)


def test_several_rare_levels_are_joined(table):
    table.loc[[0, 1, 2], "site"] = ["x", "y", "y"]
    encoding = Terms().fit(table)
    category = encoding.variable("site")
    assert category.labels == ("a", "b", "c", "(other)")
    assert (category.joined, category.counts) == (("x", "y"), (47, 30, 20, 3))
    X = encoding.encode("site", ["x", "y", "z"])
    np.testing.assert_array_equal(X[0], X[1])
    assert X[0, 3] == pytest.approx(0.97)
    assert (X[2] == 0).all()
    assert encoding.grid("site") == ["a", "b", "c", "x"]
    assert "'site' (2 levels)" in encoding.remarks[0]
    assert "2 rare levels joined" in encoding.table()["remark"][0]


def test_one_rare_level_stays_and_all_stay_if_the_user_says_so(table):
    table.loc[0, "site"] = "x"
    assert Terms().fit(table).variable("site").labels == ("a", "b", "c", "x")
    table.loc[1, "site"] = "y"
    assert Terms({"site": Levels(rare=1)}).fit(table).variable("site").labels == ("a", "b", "c", "x", "y")
    assert Terms({"site": Levels(rare=25)}).fit(table).variable("site").labels == ("a", "b", "(other)")


def test_names_of_the_joined_and_the_missing_level_do_not_clash():
    texts = ["(other)"] * 20 + ["(missing)"] * 20 + ["x", "y", None]
    labels = Terms().fit(pd.DataFrame({"s": texts})).variable("s").labels
    assert labels == ("(missing)", "(other)", "((other))", "((missing))")


def test_numbers_as_levels_are_the_same_as_integers_and_as_floats():
    table = pd.DataFrame({"grade": [1, 2, 10, 2] * 10})
    encoding = Terms({"grade": "levels"}).fit(table)
    assert encoding.variable("grade").labels == ("1", "2", "10")
    with_missing = pd.DataFrame({"grade": [1.0, np.nan, 10.0]})
    X = encoding.transform(with_missing)
    np.testing.assert_array_equal(X[[0, 2]], encoding.encode("grade", ["1", 10]))
    assert (X[1] == 0).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_with_the_same_text_are_one_level(ordered):
    values = pd.Categorical([1, "1", 2, "3", ""] * 9, categories=[1, "1", 2, "3", ""], ordered=ordered)
    encoding = Terms().fit(pd.DataFrame({"s": values}))
    assert encoding.variable("s").labels[:3] == ("1", "2", "3")
    X = encoding.encode("s", values[:5])
    np.testing.assert_array_equal(X[[0, 4]], encoding.encode("s", ["1", None]))
    np.testing.assert_array_equal(X[0], X[1])


def test_categories_keep_their_order_and_unused_ones_are_no_levels():
    values = pd.Categorical(["b", "a"] * 10, categories=["c", "b", "a"])
    encoding = Terms().fit(pd.DataFrame({"s": values}))
    assert encoding.variable("s").labels == ("b", "a")


def test_rows_without_weight_are_no_rows(table):
    weights = (table["site"] != "c").to_numpy(float)
    assert Terms().fit(table, weights).variable("site").labels == ("a", "b")


def test_more_levels_than_columns_are_worth_are_joined_the_rarest_first():
    sizes = np.arange(10, 310)
    table = pd.DataFrame({"town": np.repeat([f"t{size}" for size in sizes], sizes)})
    category = Terms().fit(table).variable("town")
    assert len(category.labels) == 201
    assert category.joined == tuple(sorted(f"t{size}" for size in sizes[:100]))
    assert len(Terms({"town": Levels(rare=1)}).fit(table).column_names) == 300
