"""What the two rules choose, when rows are dealt to folds again, and what is said about the choice."""

from dataclasses import replace

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor
from covey.search.chosen import interchangeable, price_of_sparsity
from covey.search.posed import pose
from covey.search.rules import Predict, Select
from covey.search.settings import SETTINGS
from covey.selection import Folds
from estimator_problems import noisy_problem
from search.posing import few_near, problem_with, searched, verdict_of

SIZES = [1] * 30 + [2] * 15 + [5] * 10 + [10] * 5 + [30] * 3 + [80] * 2


def mixed_sizes(seed, n=120, n_test=400):
    """Six groups of different sizes have an effect; the test rows have no noise."""
    rng, groups = np.random.default_rng(seed), Groups.from_sizes(SIZES)
    X, w = rng.standard_normal((n + n_test, groups.n_columns)), np.zeros(groups.n_columns)
    for l in rng.choice(groups.n_groups, 6, replace=False):
        w[groups[l]] = rng.standard_normal(len(groups[l])) / np.sqrt(len(groups[l]))
    y = X @ w
    y[:n] += 1.4 * rng.standard_normal(n)
    return X[:n], y[:n], X[n:], y[n:], groups


def found_in(X, y, groups, deal=0, **changes):
    problem = problem_with(X, y, groups)
    parts = Folds(5).parts(problem.design, problem.y, problem.weight, problem.loss, deal)
    return searched(pose(problem, parts, replace(SETTINGS, **changes))), problem


# ------------------------------------------------------------------ judged is delivered


@pytest.mark.parametrize("seed", range(6))
def test_a_candidate_is_as_large_on_all_rows_as_where_it_was_scored(seed):
    X, y, _, _, groups = mixed_sizes(seed)
    found, _ = found_in(X, y, groups)
    for training in found.trainings:
        for one in training.rounds:
            n = found.posed.n_rows(training.split)
            assert max(one.widths) + 1 <= SETTINGS.most_columns * n  # no group passes the limit
            assert all(width <= recipe.n_columns for recipe, width in zip(one.recipes, one.widths, strict=True))
    for recipe in (recipe for recipe in found.recipes if recipe.n_groups):
        if hasattr(recipe, "round") and hasattr(recipe, "n_columns"):
            widths = [
                one.rounds[recipe.round].widths[one.rounds[recipe.round].place[recipe]] for one in found.trainings
            ]
            assert widths[-1] <= SETTINGS.alike * np.mean(widths[:-1])


@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_models_of_groups_of_different_sizes_do_not_explode(seed, rule):
    X, y, X_test, y_test, groups = mixed_sizes(seed)
    model = GroupSparseRegressor(groups, rule=rule).fit(X, y)
    assert np.mean((model.predict(X_test) - y_test) ** 2) < np.var(y_test)


# ------------------------------------------------------------------ deals


def test_every_deal_holds_out_every_row_once_and_deals_differ():
    X, y, groups = noisy_problem("strong")
    problem = problem_with(X, y, groups)
    seen = []
    for deal in range(4):
        parts = Folds(5).parts(problem.design, problem.y, problem.weight, problem.loss, deal)
        assert sorted(k for split in parts.splits for k in split.test) == list(range(5))
        assert any(split.everything for split in parts.splits) == (deal == 0)
        seen.append(parts.labels.tolist())
    assert len({tuple(labels) for labels in seen}) == 4


@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_the_same_folds_dealt_again_give_the_same_scores(noise, far, monkeypatch):
    if far:
        few_near(monkeypatch, 10, 3)
    X, y, groups = noisy_problem(noise)
    found, problem = found_in(X, y, groups)
    before = verdict_of(found)
    parts = Folds(5).parts(problem.design, problem.y, problem.weight, problem.loss)
    found.deal_again(replace(parts, splits=parts.splits[:-1]), set(found.recipes))
    again = verdict_of(found)
    assert again.recipes == before.recipes
    np.testing.assert_allclose(again.by_split[:, 5:], before.by_split, rtol=1e-9)
    np.testing.assert_allclose(again.standard_errors, before.standard_errors, rtol=1e-6, atol=1e-12)


def test_folds_of_one_row_are_not_dealt_again():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 4))
    y = 0.5 * X[:, 0] + rng.standard_normal(20)
    assert GroupSparseRegressor(selection=10).fit(X, y).n_deals_ > 1
    assert GroupSparseRegressor(selection=20).fit(X, y).n_deals_ == 1


def test_rows_are_dealt_again_only_while_the_verdict_is_open():
    X, clear, deals = np.random.default_rng(0).standard_normal((120, 40)), [], []
    for seed in range(7):
        noise = np.random.default_rng(seed).standard_normal(120)
        clear.append(GroupSparseRegressor(4).fit(X, X[:, :4].sum(axis=1) + 0.1 * noise).n_deals_)
    assert np.median(clear) == 1
    for seed in range(6):
        open_ = np.random.default_rng(seed)
        y = 0.25 * X[:, :8].sum(axis=1) + open_.standard_normal(120)
        model = GroupSparseRegressor(4).fit(X, y)
        assert model.n_splits_ == 5 * model.n_deals_
        deals.append(model.n_deals_)
        assert GroupSparseRegressor(4, selection=Folds(5, deals=1)).fit(X, y).n_deals_ == 1
        assert GroupSparseRegressor(4, selection=Folds(5, deals=2)).fit(X, y).n_deals_ <= 2
        given = [(np.flatnonzero(np.arange(120) % 3 != k), np.flatnonzero(np.arange(120) % 3 == k)) for k in range(3)]
        assert GroupSparseRegressor(4, selection=given).fit(X, y).n_deals_ == 1
    assert max(deals) > 1
    assert max(deals) <= 8


@pytest.mark.parametrize("rule", ["select", "predict"])
def test_what_was_left_out_comes_back_where_what_was_kept_goes_astray(rule):
    """Two rows decide a coefficient; where a later deal holds out both, models with it predict them by round-off."""
    rng = np.random.default_rng(23)
    X = rng.standard_normal((40, 6))
    X[:, 5] = 1e-3 * rng.standard_normal(40)
    X[:2, 5] = 10.0, -8.0
    y = X[:, 0] + 0.5 * X[:, 1] + 0.02 * rng.standard_normal(40) + 0.3 * X[:, 5]
    model = GroupSparseRegressor(groups=1, selection=3, rule=rule).fit(X, y)
    assert model.n_deals_ > 1
    assert 0 in model.selected_groups_
    assert model.score(X, y) > 0.8


def test_a_fold_of_which_no_row_counts_has_no_error():
    """Details of curves are judged without the outermost rows; folds of one row may have no other."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    y = np.exp(2 * x[:, 0]) + 0.01 * rng.standard_normal(60)
    model = GroupSparseRegressor(terms="auto", selection=60).fit(x, y)
    folds = model.candidates_.filter(like="fold_")
    assert folds.isna().all().any()
    assert np.isfinite(model.candidates_["mse"]).all()


# ------------------------------------------------------------------ the rules


@pytest.mark.parametrize("noise", ["weak", "strong"])
def test_select_is_the_simplest_sparse_recipe_and_predict_has_all(noise):
    found, _ = found_in(*noisy_problem(noise))
    select, predict = Select(found), Predict(found)
    assert all(recipe.n_groups is not None for recipe in select.verdict.recipes)
    assert set(predict.verdict.recipes) == set(found.recipes)
    chosen = int(np.argmax(select.weights))
    assert select.verdict.near(1.0)[chosen]
    assert select.verdict.sizes[chosen] <= select.verdict.sizes[select.verdict.near(1.0)].min() * (1 + 1e-9)
    assert predict.weights.sum() == pytest.approx(1)


# ------------------------------------------------------------------ price and rivals


def test_the_price_is_what_the_best_model_of_all_groups_gains_in_the_first_deal():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    y = X @ rng.standard_normal(30) / 3 + 1.5 * rng.standard_normal(100)
    model = GroupSparseRegressor(3).fit(X, y)
    table = model.candidates_
    rows = [sum(n == k for n in np.arange(100) % 5) for k in range(5)]
    errors = table[[f"fold_{k}" for k in range(5)]].to_numpy() @ np.array(rows) / 100
    dense = table["recipe"].str.contains("on all groups").to_numpy()
    chosen = table["chosen"].to_numpy()
    expected = 1 - errors[dense].min() / errors[chosen][0]
    assert model.price_[0] == pytest.approx(expected, abs=2e-3)
    assert model.price_[1] > 0
    assert "all 10 groups predicts" in price_of_sparsity(model)
    assert price_of_sparsity(model) in str(model.summary())
    assert GroupSparseRegressor(3, rule="predict").fit(X, y).price_ is None


def test_groups_that_rows_cannot_tell_apart_are_named():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(200)
    names = {}
    for seed in range(6):
        noise = np.random.default_rng(seed).standard_normal((200, 8))
        X = noise.copy()
        X[:, 0], X[:, 1] = hidden + 0.3 * noise[:, 0], hidden + 0.3 * noise[:, 1]
        y = hidden + 2 * np.random.default_rng(100 + seed).standard_normal(200)
        model = GroupSparseRegressor().fit(X, y)
        rivals = model.rivals_
        assert rivals["groups"][0] == sorted(model.selected_groups_)
        assert rivals["without"][0] == rivals["instead"][0] == []
        for pair in interchangeable(model):
            names[frozenset(pair)] = str(model.summary())
    assert frozenset({0, 1}) in names
    assert "cannot tell which is needed: " in names[frozenset({0, 1})]
