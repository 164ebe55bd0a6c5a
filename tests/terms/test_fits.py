"""Estimators on raw tables: numbers, categories, missing values and dates go in, and rows of any kind are predicted."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from covey import Curve, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Linear, Terms
from covey.terms.unusual import NewValuesWarning, unusual_values

# rows far from those of the fit, or with new levels, are what many of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")

N = 240


def people(n=N, seed=0):
    """A table with all kinds of variables, the effect of some of them, and a generator."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "income": np.where(rng.random(n) < 0.15, np.nan, rng.lognormal(3, 0.5, n)),
            "site": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
            "smoker": rng.random(n) < 0.4,
            "visit": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "noise": rng.normal(size=n),
            "id": np.arange(n),
        }
    )
    z = (table["age"] - 50) / 8
    season = np.sin(2 * np.pi * table["visit"].dt.day_of_year / 365.25)
    site = table["site"].map({"a": 1.5, "b": 0.0, "c": -1.0, "d": 0.0})
    return table, (z + site + 2 * season + 1.5 * table["smoker"] * z).to_numpy(), rng


def labels(eta, rng):
    return np.where(rng.logistic(size=eta.size) < 2 * eta, "yes", "no")


def survival(eta, rng):
    return np.column_stack([rng.exponential(np.exp(-eta)), rng.random(eta.size) < 0.7])


MODELS = {
    "regressor": (GroupSparseRegressor, lambda eta, rng: eta + 0.5 * rng.standard_normal(eta.size)),
    "classifier": (GroupSparseClassifier, labels),
    "cox": (GroupSparseCox, survival),
}
TRUTH = {"age", "smoker", "age:smoker", "site", "visit[year]"}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    """A model, its table and its response."""
    table, eta, rng = people(n=500 if request.param == "classifier" else N)
    model, respond = MODELS[request.param]
    y = respond(eta, rng)
    return model(terms="auto", selection=3).fit(table, y), table, y


def linear_predictor(model, table):
    return model._linear(table, None)


def test_the_terms_that_matter_are_selected(fitted):
    model, table, _ = fitted
    assert set(model.selected_groups_) == TRUTH
    assert model.n_features_in_ == table.shape[1]
    assert model.feature_names_in_.tolist() == list(table)
    assert model.expansion_.encoding.dropped == {"id": "identifiers: they number the rows"}
    assert model.group_table().index.tolist() == model.selected_groups_
    assert model.partial_effect(table, "site").shape == (len(table),)


def test_an_unseen_level_is_the_weighted_mean_of_the_known_ones(fitted):
    model, table, _ = fitted
    shares, some = table["site"].value_counts(normalize=True), table.head(30)
    wanted = sum(share * linear_predictor(model, some.assign(site=level)) for level, share in shares.items())
    for site in ("atlantis", None):
        np.testing.assert_allclose(linear_predictor(model, some.assign(site=site)), wanted, atol=1e-9)


def test_missing_values_at_predict(fitted):
    model, table, _ = fitted
    some = table.head(20)
    # nothing was missing in fit: a missing number is the mean, in its pairs too
    np.testing.assert_allclose(
        linear_predictor(model, some.assign(age=np.nan)), linear_predictor(model, some.assign(age=table["age"].mean()))
    )
    everything = pd.DataFrame({name: [None, None] for name in table})
    found = linear_predictor(model, everything)
    assert np.isfinite(found).all()
    assert found[0] == found[1]
    assert np.isfinite(linear_predictor(model, some.assign(visit=pd.NaT))).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"site": "atlantis"}, "site is 'atlantis' in 5 rows, a level that the fit did not have"),
        ({"age": 500.0}, "age is 500 in 5 rows, far from .* in the fit: predicted by extrapolation"),
        ({"age": np.nan}, "age is missing in 5 rows, and never was in the fit: predicted as its mean"),
    ],
    ids=["level", "far", "missing"],
)
@pytest.mark.filterwarnings("ignore:.*rows are so far outside")  # their predictor is bounded, too
def test_predict_warns_of_values_that_the_fit_did_not_have(fitted, changed, message):
    model, table, _ = fitted
    with pytest.warns(NewValuesWarning, match=message):
        model.predict(table.head(5).assign(**changed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table.assign(id="new", visit="2100-06-01"))  # left out in fit, and a season goes on


@pytest.mark.parametrize(
    ("usual", "unusual", "message"),
    [
        (pd.Categorical(["low", "mid", "high"] * 20, ordered=True), "huge", "is 'huge' in 3 rows, a level that"),
        ([True, False, False] * 20, 2, "is 2 in 3 rows, far from 0 to 1"),
        (pd.to_timedelta(np.arange(60) % 17, unit="h"), pd.Timedelta("9D"), "is 9 in 3 rows, far from 0 to 0.666"),
    ],
    ids=["ordered", "boolean", "duration"],
)
def test_what_is_unusual_depends_on_the_kind_of_a_variable(usual, unusual, message):
    table = pd.DataFrame({"v": usual, "x": np.arange(60.0)})
    encoding = Terms().fit(table)
    assert unusual_values(encoding, table, ["v", "x"]) == []
    (sentence,) = unusual_values(encoding, table.head(3).assign(v=unusual), ["v", "x"])
    assert message in sentence


def test_columns_are_found_by_name(fitted):
    model, table, y = fitted
    expected = model.predict(table)
    np.testing.assert_array_equal(model.predict(table[table.columns[::-1]].assign(more="text")), expected)
    np.testing.assert_array_equal(model.predict(table.drop(columns="id")), expected)  # left out in fit
    # products of other shapes may differ in the last digit
    eta = linear_predictor(model, table)
    np.testing.assert_allclose(linear_predictor(model, table.iloc[[7]]), eta[[7]], rtol=1e-12)
    shuffled = table.sample(frac=1, random_state=0)
    found = linear_predictor(model, shuffled)[np.argsort(shuffled.index)]
    np.testing.assert_allclose(found, eta, rtol=1e-12, atol=1e-12)
    assert np.isfinite(model.score(table, y))
    with pytest.raises(ValueError, match="no variable 'site', with which the model was fitted"):
        model.predict(table.drop(columns="site"))


def test_values_as_text_are_the_same(fitted):
    model, table, _ = fitted
    text = table.head(20).astype({"age": str, "smoker": str}).assign(visit=table["visit"].dt.strftime("%Y-%m-%d"))
    np.testing.assert_allclose(linear_predictor(model, text), linear_predictor(model, table.head(20)), rtol=1e-9)


def test_missing_numbers_have_an_effect_of_their_own():
    table, eta, rng = people()
    y = eta + np.where(table["income"].isna(), 4.0, 0.0) + 0.5 * rng.standard_normal(N)
    model = GroupSparseRegressor(terms="auto").fit(table, y)
    assert "income" in model.selected_groups_
    some = table.head(20)
    gap = model.predict(some.assign(income=np.nan)) - model.predict(some.assign(income=table["income"].mean()))
    np.testing.assert_allclose(gap, 4.0, atol=0.8)


def test_variables_that_are_always_in():
    table, eta, rng = people()
    y = eta + 0.5 * rng.standard_normal(N)
    for settings, always in [
        ({"terms": Terms({"noise": Linear(always=True)})}, ["noise"]),
        ({"terms": Terms({"noise": Curve(always=True)}, pairs=None)}, ["noise", "noise~"]),
        ({"terms": "auto", "always": ["noise~"]}, ["noise", "noise~"]),  # with its parents
        ({"terms": "auto", "always": ["site:noise"]}, ["site", "noise", "site:noise"]),
    ]:
        model = GroupSparseRegressor(selection=3, **settings).fit(table, y)
        assert model.always_groups_ == always
        assert set(always) <= set(model.selected_groups_)
        assert {"age", "site", "visit[year]"} <= set(model.selected_groups_)
        first = str(model.summary()).splitlines()[0]
        assert first.count("always in)") == len({"noise", "site"} & set(always))  # age and visit are findings


@pytest.mark.parametrize("selection", ["holdout", "ebic", "bic", "gcv", "discrepancy"])
def test_every_way_to_select(selection):
    table, eta, rng = people()
    model = GroupSparseRegressor(terms="auto", selection=selection).fit(table, eta + 0.5 * rng.standard_normal(N))
    assert set(model.selected_groups_) >= TRUTH
