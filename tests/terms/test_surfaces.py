"""Curves of pairs: a curve per level, surfaces of two numbers and their details, in models and in what is shown."""

import itertools

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor, Terms
from covey.terms.expansion import Expansion

# rows far from those of the fit, or with new levels, are what many of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")

N = 400


def numbers(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, 4)), columns=["age", "bmi", "dose", "other"]), rng


def bent_by_level(kind="levels", n=N):
    """The curve of age turns around where the treatment is given, and its slope does not."""
    table, rng = numbers(n=n)
    treated = rng.integers(0, 2, n)
    table["treated"] = np.array(["no", "yes"])[treated] if kind == "levels" else treated
    mean = table["bmi"] + (2 * treated - 1) * (table["age"] ** 2 - 1)
    return table, mean.to_numpy(), mean.to_numpy() + rng.standard_normal(n)


def hilly(n=N):
    """Hills and valleys in age and bmi, beside a line in dose."""
    table, rng = numbers(n=n)
    mean = table["dose"] + 2 * np.sin(2 * table["age"]) * np.cos(2 * table["bmi"])
    return table, mean.to_numpy(), mean.to_numpy() + 0.5 * rng.standard_normal(n)


@pytest.fixture(scope="module", params=["levels", "number"])
def by_level(request):
    table, mean, y = bent_by_level(request.param)
    return table, mean, GroupSparseRegressor(terms="auto").fit(table, y)


@pytest.fixture(scope="module")
def hills():
    table, mean, y = hilly()
    return table, mean, GroupSparseRegressor(terms="auto").fit(table, y)


def test_a_curve_per_level_is_found(by_level):
    table, mean, model = by_level
    assert set(model.selected_groups_) == {"age", "treated", "age:treated", "age:treated~", "bmi"}
    assert np.mean((model.predict(table) - mean) ** 2) < 0.15  # the variance of what only the surface can say is two


def test_the_detail_of_a_surface_is_found(hills):
    table, mean, model = hills
    assert {"age:bmi", "age:bmi~", "age:bmi~~"} <= set(model.selected_groups_)
    assert not any("other" in name for name in model.selected_groups_)
    assert np.mean((model.predict(table) - mean) ** 2) < 0.15  # a surface alone leaves 0.5
    listed = model.terms_.set_index("term")
    assert listed.loc["age:bmi~~", "kind"] == "detail"
    assert listed.loc["age:bmi~~", "parents"] == ("age:bmi~",)


def test_no_detail_where_the_surface_is_enough():
    table, rng = numbers()
    y = table["dose"] + table["age"] * (table["bmi"] ** 2 - 1) + 0.5 * rng.standard_normal(N)
    model = GroupSparseRegressor(terms="auto").fit(table, y)
    assert "age:bmi~" in model.selected_groups_
    assert not any(name.endswith("~~") for name in model.selected_groups_)


def test_effects_add_up_and_are_curved_per_level(by_level):
    table, _, model = by_level
    parts = model.fitted_terms_.contributions(model.expansion_.design(table))
    np.testing.assert_allclose((model.fitted_terms_.constant + sum(parts.values()))[:, 0], model.predict(table))
    ages, levels = np.linspace(-1.5, 1.5, 7), np.unique(table["treated"])
    both = model.effect("age", "treated", at=(ages, levels), main=True).effect
    truth = np.array([-1.0, 1.0]) * (ages[:, None] ** 2 - 1)
    np.testing.assert_allclose(both, truth, atol=0.6)


def test_effects_of_a_detail_follow_the_hills(hills):
    _, _, model = hills
    at = np.linspace(-1.2, 1.2, 7)
    effect = model.effect("age", "bmi", at=(at, at), main=True)
    np.testing.assert_allclose(effect.effect, 2 * np.outer(np.sin(2 * at), np.cos(2 * at)), atol=0.8)


def test_classes():
    table, mean, _ = bent_by_level(n=800)
    y = np.random.default_rng(1).uniform(size=len(mean)) < 1 / (1 + np.exp(-1.5 * mean))
    model = GroupSparseClassifier(terms="auto").fit(table, y)
    assert "age:treated~" in model.selected_groups_
    assert "other" not in model.selected_groups_


def expansion(table, **options):
    encoding = Terms(**options).fit(table)
    return Expansion.of(encoding, encoding.transform(table))


def test_levels_with_few_rows_have_fewer_curve_columns():
    table, rng = numbers()
    sizes = {}
    for n_levels in (2, 4, 6, 10):
        table["site"] = [f"s{i}" for i in rng.permutation(np.arange(N) % n_levels)]
        found = expansion(table, pairs=[("age", "site")])
        sizes[n_levels] = [found.freedom(l) // (n_levels - 1) for l, t in enumerate(found.terms) if ":" in t.name]
    # a column per 28 rows of a level, the first one for the slope; two in the surface, three more in its detail
    assert sizes == {2: [1, 2, 3], 4: [1, 2], 6: [1, 1], 10: [1]}


def test_terms_are_products_of_their_parents_variables():
    table, rng = numbers()
    table["sex"] = rng.choice(["f", "m"], N)
    found = expansion(table)
    X, names = found.design(table), [term.name for term in found.terms]
    assert {"age:bmi", "age:bmi~", "age:bmi~~", "age:sex", "age:sex~", "age:sex~~"} <= set(names)
    # a generation adds columns to those of its ancestors: together they are as many as the products of all columns
    widths = [found.terms[names.index(f"age:bmi{ending}")].columns for ending in ("", "~", "~~")]
    assert [one.stop - one.start for one in widths] == [1, 8, 27]
    together = np.hstack([np.asarray(X.take(np.arange(one.start, one.stop))) for one in widths])
    assert np.linalg.matrix_rank(together) == 36
    # a ridge shrinks the smoothest column of a curve like the line, and wiggly ones and their products more
    rough = found.roughness
    curve = found.terms[names.index("age~")].columns
    assert rough[curve.start] == 1 < rough[curve.start + 1] < rough[curve.stop - 1]
    assert (
        rough[found.terms[names.index("age")].columns.start]
        == rough[found.terms[names.index("age:bmi")].columns.start]
        == 1
    )
    assert rough[widths[1]].max() == rough[curve.start + 1] ** 2
    late = found.structure["late"]
    assert {names[l] for l in late} == {name for name in names if name.endswith("~~")}


@pytest.mark.parametrize(("n_treated", "widths"), [(N // 2, [1, 2, 3]), (70, [1, 1]), (40, [1])])
def test_a_curve_per_value_of_a_flag_has_as_many_columns_as_its_rarer_value_has_rows_for(n_treated, widths):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 80, N), "treated": np.arange(N) < n_treated})
    found = expansion(table)
    terms = {term.name: term.columns for term in found.terms}
    pair = [terms[name] for name in ("age:treated", "age:treated~", "age:treated~~") if name in terms]
    assert [one.stop - one.start for one in pair] == widths


def test_wide_tables_have_no_details_and_then_no_surfaces(monkeypatch):
    table, _ = numbers()
    n_pairs = len(list(itertools.combinations(table, 2)))
    endings = {}
    for depth, width in ((3, 36), (2, 9), (1, 1)):
        monkeypatch.setattr("covey.terms.expansion.LISTED", n_pairs * width)
        endings[depth] = {t.name.lstrip("abcdefghijklmnopqrstuvwxyz:") for t in expansion(table).terms if ":" in t.name}
    assert endings == {3: {"", "~", "~~"}, 2: {"", "~"}, 1: {""}}
