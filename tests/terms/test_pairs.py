"""Which pairs are wanted, and which are of no use."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import covey
from covey import GroupSparseRegressor
from covey.terms import Pairs, Terms, expansion
from covey.terms.unusual import NewValuesWarning

N = 200


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(size=N),
            "bmi": rng.normal(size=N),
            "sex": rng.choice(["f", "m"], N),
            "site": rng.choice(list("abc"), N),
            "one": 1,
        }
    )


def named(encoding):
    return {(encoding.terms[i].name, encoding.terms[j].name) for i, j in encoding.pairs}


def test_all_pairs_of_variables_that_are_used(table):
    encoding = Terms(pairs="auto").fit(table)
    expected = set(itertools.combinations(["age", "bmi", "sex", "site"], 2))
    assert named(encoding) == expected
    assert len(encoding.pairs) == 6


def test_listed_pairs_and_pairs_with_one_variable(table):
    assert named(Terms(pairs=[("sex", "age"), ["age", "sex"]]).fit(table)) == {("age", "sex")}
    assert named(Terms(pairs={"with": "sex"}).fit(table)) == {("age", "sex"), ("bmi", "sex"), ("sex", "site")}
    two = named(Terms(pairs={"with": ["sex", "site"]}).fit(table))
    assert two == set(itertools.combinations(["age", "bmi", "sex", "site"], 2)) - {("age", "bmi")}


def test_terms_of_a_date_are_no_pair_and_can_be_named(table):
    table["date"] = pd.date_range("2020-01-01", periods=N)
    encoding = Terms(pairs="auto").fit(table)
    assert ("date", "date[week]") not in named(encoding)
    assert ("age", "date[week]") in named(encoding)
    assert len(encoding.pairs) == len(list(encoding.pairs))
    assert named(Terms(pairs=[("date[week]", "age")]).fit(table)) == {("age", "date[week]")}
    assert named(Terms(pairs=[("date", "age")]).fit(table)) == {("age", "date"), ("age", "date[week]")}


def test_categories_need_rows_in_their_cells(table):
    rng = np.random.default_rng(1)
    table["town"] = rng.choice([f"t{j}" for j in range(20)], N)
    table["region"] = table["town"].map(lambda town: str(int(town[1:]) % 3) + "r")
    encoding = Terms({"town": "levels"}, pairs="auto").fit(table)
    found = named(encoding)
    assert ("site", "town") not in found  # 60 cells
    assert ("town", "region") not in found  # nested
    assert ("sex", "town") in found
    assert ("age", "town") in found  # 10 rows a level, on average
    (remark,) = [text for text in encoding.remarks if text.startswith("Pairs left out")]
    assert (
        remark == "Pairs left out, too few rows per cell or level, or one within the other: 'site:town', 'town:region'."
    )
    assert ("site", "town") in named(Terms(pairs=[("site", "town")]).fit(table))


def test_a_slope_per_level_needs_rows(table):
    table["town"] = np.random.default_rng(1).choice([f"t{j}" for j in range(25)], N)
    encoding = Terms({"town": "levels"}).fit(table)
    assert not [pair for pair in named(encoding) if "town" in pair and "age" in pair]
    assert any("'age:town'" in text for text in encoding.remarks)
    assert ("age", "town") in named(Terms({"town": "levels"}, pairs=[("age", "town")]).fit(table))


def test_numbers_without_rows_in_common(table):
    table.loc[::2, "age"] = np.nan
    table.loc[1::2, "bmi"] = np.nan
    for pairs in ("auto", {"with": "age"}):
        encoding = Terms(pairs=pairs).fit(table)
        assert ("age", "bmi") not in named(encoding)
        assert "Pairs left out, no rows in common: 'age:bmi'." in encoding.remarks
    with pytest.raises(ValueError, match=r"\('age', 'bmi'\) has no rows in common"):
        Terms(pairs=[("age", "bmi")]).fit(table)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("age", "sexx")], r"\('age', 'sexx'\): there is no variable 'sexx'; did you mean 'sex'"),
        ([("age", "age")], r"\('age', 'age'\) is a variable with itself"),
        ([("age", "one")], "the variable 'one' is left out: constant"),
        ({"with": "trt"}, "there is no variable 'trt'; the columns are 'age', 'bmi'"),
        ({"with": "one"}, "the variable 'one' is left out"),
        ({"by": "sex"}, "pairs must be None, 'auto'"),
        ({"with": []}, "pairs must be None, 'auto'"),
        ("all", "pairs must be None, 'auto'.* not 'all'"),
        (3, "pairs must be None, 'auto'"),
        (["age"], "'age' is not a pair of names"),
        ([("age", "sex", "bmi")], r"\('age', 'sex', 'bmi'\) is not a pair"),
    ],
)
def test_bad_pairs_are_named(table, pairs, message):
    with pytest.raises(ValueError, match=message):
        Terms(pairs=pairs).fit(table)


def test_millions_of_pairs_are_described_not_stored():
    pairs = Pairs(members=tuple(range(5000)), left_out=frozenset({(3, 7)}))
    assert len(pairs) == 5000 * 4999 // 2 - 1
    assert Pairs.from_state(pairs.state()) == pairs
    few = Pairs(members=(2, 3, 5, 7), left_out=frozenset({(3, 7)}))
    assert list(few) == [(2, 3), (2, 5), (2, 7), (3, 5), (5, 7)]


def test_names_may_be_texts_of_numpy():
    names = np.array(["age", "sex"])
    assert Terms(pairs=[tuple(names)]).pairs == (("age", "sex"),)
    assert repr(Terms(pairs=[list(names)])) == "Terms(pairs=(('age', 'sex'),))"
    assert (
        repr(Terms({names[0]: "drop"}, pairs={"with": names[1]})) == "Terms({'age': Drop()}, pairs={'with': ('sex',)})"
    )


@pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")
def test_a_product_goes_on_for_a_standard_deviation_beyond_the_range():
    """New rows are often a little outside the range; far outside, the product stays where it is."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["a", "b"])
    y = (table["a"] * table["b"]).to_numpy() + 0.01 * rng.standard_normal(N)
    model = GroupSparseRegressor(terms=Terms(pairs="auto")).fit(table, y)
    assert "a:b" in model.selected_groups_
    sd = float(table["a"].std(ddof=0))
    at = [1.0, 1.0 + 0.9 * sd, 10.0, 20.0]
    near, outside, far, farther = model.predict(pd.DataFrame({"a": at, "b": 0.8})) - model.predict(
        pd.DataFrame({"a": at, "b": 0.0})
    )
    assert outside - near == pytest.approx(0.8 * 0.9 * sd, abs=0.05)
    assert far == pytest.approx(0.8 * (1 + sd), abs=0.1)
    assert farther == pytest.approx(far)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("levels", [["a", "b"], [0.0, 1.0]])
@pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")
def test_a_slope_per_level_goes_on_for_a_standard_deviation_of_the_level(levels, listed, tmp_path, monkeypatch):
    """What a level's slope would be far beyond its rows is anybody's guess: the slope of all rows goes on alone."""
    if not listed:
        monkeypatch.setattr(expansion, "LISTED", 0)
    rng = np.random.default_rng(0)
    second = rng.permutation(np.arange(N) % 2).astype(bool)
    x = np.where(second, rng.uniform(0, 1, N), rng.uniform(-10, 10, N))
    table = pd.DataFrame({"x": x, "site": np.array(levels)[second.astype(int)], "other": rng.normal(size=N)})
    y = x + 5 * second * x + 0.01 * rng.standard_normal(N)
    model = GroupSparseRegressor(terms=Terms(pairs="auto"), selection=3).fit(table, y)
    assert "x:site" in model.selected_groups_
    end = x[second].max() + x[second].std()
    at = pd.DataFrame({"x": [x[second].max(), end, 5.0, 10.0], "site": levels[1], "other": 0.0})
    first, last, far, farther = model.predict(at) - model.predict(at.assign(site=levels[0]))
    assert last - first == pytest.approx(5 * x[second].std(), rel=0.05)
    # the slope of all rows goes on, and that of the other level in its own range
    assert (far - last) / (5.0 - end) == pytest.approx((farther - far) / 5.0, rel=1e-6)
    effect = model.effect("x", "site", at=[at["x"], levels], main=True).effect
    np.testing.assert_allclose(effect[:, 1] - effect[:, 0], [first, last, far, farther], rtol=1e-9)
    covey.save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(covey.load(tmp_path / "model.skops").predict(at), model.predict(at))
    # rows of the fit are inside
    inside = GroupSparseRegressor(terms=Terms(pairs="auto"), selection=3).fit(table, y)
    inside.expansion_ = replace(inside.expansion_, within=())
    np.testing.assert_array_equal(inside.predict(table), model.predict(table))
    assert abs(inside.predict(at)[3] - model.predict(at)[3]) > 10


def test_a_combination_of_levels_that_is_new_counts_as_neither():
    """What a product of two levels would have that no row has together is anybody's guess."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    a[(a == 2) & (b == 2)] = 1
    effects = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    table = pd.DataFrame({"a": np.array(list("uvw"))[a], "b": np.array(list("xyz"))[b]})
    model = GroupSparseRegressor(terms="auto", selection=3).fit(table, effects[a, b] + 0.1 * rng.standard_normal(600))
    assert "a:b" in model.selected_groups_
    assert np.argwhere(model.effect("a", "b").empty).tolist() == [[2, 2]]
    assert np.argwhere(model.effect("b", "a", at=(["q", "z"], ["u", "w"])).empty).tolist() == [[1, 1]]
    new = pd.DataFrame({"a": ["w", "w", "u"], "b": ["z", "x", "z"]})
    with pytest.warns(NewValuesWarning, match="a:b is 'w, z' in 1 row, a combination that the fit did not have"):
        model.predict(new)
    model.predict(new[1:])  # warnings are errors
    products = model.expansion_.design(new).take(np.arange(6, 15)).reshape(3, 3, 3)
    share_a, share_b = (np.bincount(one) / 600 for one in (a, b))
    np.testing.assert_allclose(products[0], np.outer(share_a, share_b), rtol=1e-9)
    np.testing.assert_allclose(products[1], np.outer([0, 0, 1] - share_a, [1, 0, 0] - share_b), rtol=1e-9)
    np.testing.assert_allclose(products[2], np.outer([1, 0, 0] - share_a, [0, 0, 1] - share_b), rtol=1e-9)


def test_a_new_combination_with_one_of_two_values():
    rng = np.random.default_rng(1)
    two, level = rng.random(600) < 0.5, rng.integers(0, 3, 600)
    two[level == 1] = False
    table = pd.DataFrame({"two": np.where(two, 0.3, 0.1), "level": np.array(list("uvw"))[level]})
    y = two * (level - 1.0) + 0.1 * rng.standard_normal(600)
    model = GroupSparseRegressor(terms="auto", always=["two:level"], selection=3).fit(table, y)
    with pytest.warns(NewValuesWarning, match="two:level is '0.3, v' in 1 row, a combination"):
        model.predict(pd.DataFrame({"two": [0.3, 0.1], "level": "v"}))
    model.predict(table.astype({"two": np.float32}))  # warnings are errors
    assert np.argwhere(model.effect("two", "level").empty).tolist() == [[1, 1]]


def test_pairs_of_the_models_of_folds_are_bounded_within_levels():
    """Prediction intervals rest on the folds' models, some of which have a pair that the model does not have."""
    rng = np.random.default_rng(0)
    second = rng.permutation(np.arange(120) % 2).astype(bool)
    x = np.where(second, rng.uniform(0, 1, 120), rng.uniform(-10, 10, 120))
    table = pd.DataFrame({"x": x, "site": np.where(second, "b", "a")})
    y = x + 0.9 * second * x + 2 * second + rng.standard_normal(120)
    model = GroupSparseRegressor(terms="auto").fit(table, y)
    assert "x:site" not in model.selected_groups_
    assert model.groups_["x:site"][0] in model.held_out_.columns
    at = pd.DataFrame({"x": [98.0, 100.0, 8.0, 10.0], "site": list("aabb")})
    by_fold = model.held_out_.predictors(model.expansion_.design(at))
    # far beyond its own rows, each level has the slope of all rows
    np.testing.assert_allclose(by_fold[1] - by_fold[0], by_fold[3] - by_fold[2])


def test_categories_with_few_common_combinations_are_no_pair():
    """Where only the sum of two effects fits the combinations that many rows have, few rows would decide the others."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    diagonal = np.where(np.arange(600) < 20, b, a)  # 20 rows are elsewhere
    y = rng.standard_normal(600)
    named = {"a": np.array(list("uvw"))[a], "b": np.array(list("xyz"))[b], "c": np.array(list("pqr"))[diagonal]}
    encoding = Terms(pairs="auto").fit(pd.DataFrame(named | {"y": y}))
    names = [encoding.terms[l].name for l in range(4)]
    pairs = {(names[i], names[j]) for i, j in encoding.pairs}
    assert ("a", "b") in pairs
    assert ("a", "c") not in pairs


def test_bounds_count_weights_as_rows():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 2, 300)
    table = pd.DataFrame({"x": rng.normal(size=300) * (1 + site), "site": np.array(["a", "b"])[site]})
    y = table.x * (1 + 2 * site) + 0.1 * rng.standard_normal(300)
    rows = rng.integers(0, 3, 300)
    table.loc[rows == 0, "x"] *= 10  # rows of weight zero are nowhere
    fit = GroupSparseRegressor(terms="auto", selection=3)
    weighted = fit.fit(table, y, sample_weight=rows)
    new = pd.DataFrame({"x": [9.0, -9.0, 9.0], "site": ["a", "a", "b"]})
    found = weighted.predict(new)
    repeated = fit.fit(table.loc[table.index.repeat(rows)].reset_index(drop=True), np.repeat(y, rows))
    assert "x:site" in repeated.selected_groups_
    np.testing.assert_allclose(found, repeated.predict(new), rtol=1e-6)
