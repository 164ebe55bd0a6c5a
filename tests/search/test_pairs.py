"""Pairs: those that are not listed give the models of listed ones, and only interactions that exist are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms
from covey.preprocess import prepare
from covey.search import pairs as pairs_module
from covey.search.pairs import PairRates
from covey.selection import HoldOut, Size
from covey.terms import expansion

N, P = 160, 24
LINES = Terms({"*": "linear"})


def variables(n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((n, p)), columns=[f"v{j}" for j in range(p)]), rng


def interaction(X):
    return (X.v0 + X.v1 - 1.5 * X.v0 * X.v1 + X.v3 * X.v4).to_numpy()


@pytest.fixture
def unlisted(monkeypatch):
    """Fit with pairs that are not listed, a few at a time."""

    def fit(model, X, y, **options):
        with monkeypatch.context() as patch:
            patch.setattr(expansion, "LISTED", 10)
            patch.setattr(pairs_module, "GROWTH", 5)
            return type(model)(**model.get_params()).fit(X, y, **options)

    return fit


def coefficients(model):
    """The coefficients that are not zero, by the names of their terms."""
    coef = np.atleast_2d(model.coef_)
    return {name: coef[:, model.groups_[name]] for name in model.selected_groups_}


def assert_same(found, wanted):
    assert found.expansion_.unlisted
    assert not wanted.expansion_.unlisted
    assert found.selected_groups_ == wanted.selected_groups_
    assert found.recipe_ == wanted.recipe_
    for name, values in coefficients(wanted).items():
        np.testing.assert_allclose(coefficients(found)[name], values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=1e-6, atol=1e-9)
    # other losses are minimised to a few digits where models are only scored
    digits = 1e-9 if wanted.loss_.quadratic else 1e-3
    pd.testing.assert_frame_equal(found.candidates_, wanted.candidates_, rtol=digits, atol=digits)


def squared(eta, rng):
    return eta + rng.standard_normal(eta.size)


def several(eta, rng):
    return np.column_stack([eta, -2 * eta]) + rng.standard_normal((eta.size, 2))


def survival(eta, rng):
    return np.column_stack([rng.exponential(np.exp(-eta)), rng.random(eta.size) < 0.7])


CASES = {
    "squared": (GroupSparseRegressor(terms=LINES), squared),
    "strong noise": (GroupSparseRegressor(terms=LINES), lambda eta, rng: squared(eta, rng) + 3 * rng.normal(size=N)),
    "always": (GroupSparseRegressor(terms=LINES, always=["v7"]), squared),
    "weights sqrt": (GroupSparseRegressor(terms=LINES, group_weights="sqrt"), squared),
    "no intercept": (GroupSparseRegressor(terms=LINES, fit_intercept=False), squared),
    "holdout": (GroupSparseRegressor(terms=LINES, selection="holdout"), squared),
    "ebic": (GroupSparseRegressor(terms=LINES, selection="ebic"), squared),
    "a number of groups": (GroupSparseRegressor(terms=LINES, selection=Size(6)), squared),
    "several responses": (GroupSparseRegressor(terms=LINES), several),
    "binomial": (GroupSparseClassifier(terms=LINES, selection=3), lambda eta, rng: rng.logistic(size=N) < 2 * eta),
    "poisson": (
        GroupSparseRegressor(terms=LINES, loss="poisson", selection=3),
        lambda eta, rng: rng.poisson(np.exp(np.clip(eta / 2, -3, 2))),
    ),
    "cox": (GroupSparseCox(terms=LINES, selection=2), survival),
}


@pytest.mark.parametrize("case", CASES)
def test_unlisted_pairs_give_the_model_of_listed_ones(case, unlisted):
    model, response = CASES[case]
    X, rng = variables()
    y = response(interaction(X), rng)
    found = unlisted(model, X, y)
    assert_same(found, model.fit(X, y))
    assert "v0:v1" in found.selected_groups_ or case == "strong noise"
    # those that did not come near are not in the model's groups
    assert found.groups_.n_groups < P + P * (P - 1) // 2
    np.testing.assert_allclose(found.predict(X[:5]), model.predict(X[:5]), rtol=1e-6)


def test_unlisted_pairs_with_weights_and_validation_rows(unlisted):
    X, rng = variables()
    y = squared(interaction(X), rng)
    weight = rng.integers(0, 3, N)
    model = GroupSparseRegressor(terms=LINES)
    assert_same(unlisted(model, X, y, sample_weight=weight), model.fit(X, y, sample_weight=weight))
    model = GroupSparseRegressor(terms=LINES, selection=HoldOut(validation=(X[100:], y[100:])))
    assert_same(unlisted(model, X[:100], y[:100]), model.fit(X[:100], y[:100]))


def test_unlisted_pairs_beside_categories_flags_and_curves(unlisted):
    X, rng = variables()
    y = squared(interaction(X), rng)
    X = X.mask(rng.random(X.shape) < 0.05)  # no number has a single column
    X["site"] = rng.choice(list("abc"), N)
    y += np.where(X["site"] == "a", 2.0 * X["v5"].fillna(0.0), 0.0)
    model = GroupSparseRegressor(terms=Terms({"v*": "linear"}))
    found = unlisted(model, X, y)
    assert_same(found, model.fit(X, y))
    assert {"v0:v1", "v5:site"} <= set(found.selected_groups_)
    # surfaces are off, curves are not
    curved = unlisted(GroupSparseRegressor(terms="auto"), X, y + 3 * np.abs(X["v2"].fillna(0.0)))
    assert {"v2~", "v0:v1"} <= set(curved.selected_groups_)


def with_categories(p, seed):
    X, rng = variables(p=p, seed=seed)
    for j, levels in enumerate(["ab", "abc", "abc", "abcd"]):
        X[f"c{j}"] = rng.choice(list(levels), N, p=rng.dirichlet(np.full(len(levels), 5.0)))
    X["c1"] = X["c1"].mask(X["c0"] == "a", "a")  # cells without rows
    X["v2"] = X["c2"].map({"a": 0.0, "b": 1.0, "c": 3.0})  # a number with one value per level
    return X, rng


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_unlisted_pairs_of_categories(unlisted, intercept, seed):
    X, rng = with_categories(20, seed)
    mean = 2 * (X["c0"] == "a") * (X["c3"] == "b") + 1.5 * X["v5"] * (X["c2"] == "a") + X["v0"] * X["v1"]
    model = GroupSparseRegressor(terms=Terms({"v*": "linear"}), fit_intercept=intercept)
    y = squared(mean.to_numpy(), rng)
    found = unlisted(model, X, y)
    assert_same(found, model.fit(X, y))
    assert {"v5:c2", "v0:v1"} <= set(found.selected_groups_)
    assert found.groups_.n_groups < model.groups_.n_groups


@pytest.mark.parametrize("intercept", [True, False])
def test_rates_of_unlisted_pairs_are_exact_for_numbers_and_bounds_with_categories(intercept, monkeypatch):
    monkeypatch.setattr(pairs_module, "TILE", 60)
    X, rng = with_categories(8, 0)
    encoding = Terms({"v*": "linear"}).fit(X)
    columns, weight = encoding.transform(X), rng.integers(1, 3, N) / N
    listed = expansion.Expansion.of(encoding, columns)
    unlisted = replace(listed, pairs=(), unlisted=encoding.pairs.members, depth=1)
    score = rng.standard_normal((N, 2)) * weight[:, None]
    score -= intercept * np.outer(weight, score.sum(axis=0)) / weight.sum()
    working, _ = prepare(listed.on(columns), score[:, 0], listed.groups, fit_intercept=intercept, sample_weight=weight)
    weights = 1 + np.arange(200.0)  # a pair of each dimension has its own
    norms = np.sqrt(np.square(working.design.gradient_norms(working, score.T)).sum(axis=0)) / weights[working.ranks]
    exact = {term.parents: norm for term, norm in zip(listed.terms, norms, strict=True) if term.kind == "pair"}
    rates = PairRates(unlisted.on(columns), unlisted.structure["pairs"], working.q, intercept, weights)
    sums = rates.zeros()
    rates.add(sums, score, 1.0, weight)
    bounds = {pair: sums[place] for pair, place in zip(exact, rates.place(positions(unlisted, exact)), strict=True)}
    assert np.count_nonzero(sums) <= len(bounds)
    for (i, j), norm in exact.items():
        kinds = [encoding.terms[l].kind for l in (i, j)]
        if kinds == ["linear", "linear"]:
            assert bounds[i, j] == pytest.approx(norm, rel=1e-4, abs=1e-5)
        assert bounds[i, j] >= norm * (1 - 1e-4) - 1e-5
    # few bounds are far off, or many pairs would become groups in vain
    ratios = np.array([bounds[pair] / norm for pair, norm in exact.items() if norm > 1e-3])
    assert np.median(ratios) < 1.05


def positions(unlisted, pairs):
    place = {l: k for k, l in enumerate(unlisted.unlisted)}
    return [(place[i], place[j]) for i, j in pairs]


def test_all_pairs_may_become_groups(unlisted):
    X, rng = variables(p=6)
    y = squared(interaction(X), rng)
    model = GroupSparseRegressor(terms=LINES)
    assert_same(unlisted(model, X, y), model.fit(X, y))


def test_duplicates_and_constants_change_nothing(unlisted):
    X, rng = variables()
    y = squared(interaction(X), rng)
    model = GroupSparseRegressor(terms=LINES)
    names = model.fit(X, y).selected_groups_
    more = X.assign(constant=1.0, copy=X.v0, turned=-2 * X.v1 + 3)
    found = unlisted(model, more, y)
    assert found.selected_groups_ == names  # the first of equal columns wins
    assert_same(found, model.fit(more, y))


@pytest.mark.parametrize("listed", [True, False])
def test_units_and_the_order_of_columns_do_not_matter(unlisted, listed):
    X, rng = variables()
    y = squared(interaction(X), rng)
    model = GroupSparseRegressor(terms=LINES)
    wanted = model.fit(X, y)
    factors = np.exp(rng.normal(size=P) * 3) * rng.choice([-1, 1], P)
    changed = (X * factors + rng.normal(size=P) * 5)[[f"v{j}" for j in rng.permutation(P)]]
    found = unlisted(model, changed, y) if not listed else GroupSparseRegressor(terms=LINES).fit(changed, y)
    assert {frozenset(name.split(":")) for name in found.selected_groups_} == {
        frozenset(name.split(":")) for name in wanted.selected_groups_
    }
    np.testing.assert_allclose(found.predict(changed), wanted.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("terms", ["auto", LINES], ids=["curves", "lines"])
def test_an_interaction_without_main_effects_is_found_with_its_variables(terms):
    X, rng = variables(n=200, p=10)
    y = 2 * X.v2 * X.v6 + 0.5 * rng.standard_normal(200)
    found = GroupSparseRegressor(terms=terms).fit(X, y).selected_groups_
    assert set(found) == {"v2", "v6", "v2:v6"}
    assert found[0] == "v2:v6"  # strongest first


def test_an_additive_truth_has_no_pairs():
    false = []
    for seed in range(8):
        X, rng = variables(n=200, p=12, seed=seed)
        y = X.v0 + np.sin(2 * X.v1) + X.v2 - X.v3 + 0.7 * rng.standard_normal(200)
        found = GroupSparseRegressor(terms="auto").fit(X, y).selected_groups_
        assert {"v0", "v1", "v2", "v3"} <= set(found)
        false += [name for name in found if ":" in name]
    assert len(false) <= 1
