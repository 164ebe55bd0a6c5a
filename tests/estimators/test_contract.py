"""One contract for all ways to fit: everything that is shown describes one model."""

import pickle

import numpy as np
import pandas as pd
import pytest

import covey
from covey import Groups, GroupSparseRegressor
from covey.selection import HoldOut, Size
from estimator_problems import assert_one_model, noisy_problem

SELECTIONS = {
    "folds": lambda X, y: 5,
    "hold-out": lambda X, y: "holdout",
    "validation rows": lambda X, y: HoldOut(validation=(X[:30] + 0.1, y[:30])),
    "ebic": lambda X, y: "ebic",
    "bic": lambda X, y: "bic",
    "gcv": lambda X, y: "gcv",
    "discrepancy": lambda X, y: "discrepancy",
    "size": lambda X, y: Size(3),
}


def overlapping(X):
    p = X.shape[1]
    return Groups.from_lists([list(range(j, min(j + 4, p))) for j in range(0, p - 1, 3)], overlap=True)


GROUPS = {"apart": lambda X, groups: groups, "overlapping": lambda X, groups: overlapping(X)}


def kept(model, X, tmp_path):
    """The model after pickling, and after saving and loading."""
    covey.save(model, tmp_path / "model.covey")
    return [pickle.loads(pickle.dumps(model)), covey.load(tmp_path / "model.covey")]


def assert_equal_models(one, two, X):
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(one.group_norms_, two.group_norms_)
    assert one.intercept_ == two.intercept_
    assert one.selected_groups_ == two.selected_groups_
    assert (one.recipe_, one.shrunk_, one.n_splits_) == (two.recipe_, two.shrunk_, two.n_splits_)
    pd.testing.assert_frame_equal(one.candidates_, two.candidates_)
    pd.testing.assert_frame_equal(one.group_table(), two.group_table())
    assert (one.fold_frequencies_ is None) == (two.fold_frequencies_ is None)
    if one.fold_frequencies_ is not None:
        np.testing.assert_array_equal(one.fold_frequencies_, two.fold_frequencies_)
    assert one.path_.groups == two.path_.groups
    np.testing.assert_array_equal(one.path_.coefs.toarray(), two.path_.coefs.toarray())


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("layout", GROUPS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_selection(selection, layout, noise, tmp_path):
    X, y, groups = noisy_problem(noise)
    model = GroupSparseRegressor(GROUPS[layout](X, groups), selection=SELECTIONS[selection](X, y)).fit(X, y)
    assert_one_model(model, X, y)
    for again in kept(model, X, tmp_path):
        assert_equal_models(again, model, X)
        if selection != "validation rows" or not isinstance(again.selection, HoldOut):
            assert_one_model(again, X, y)


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", ["folds", "hold-out", "validation rows"])
def test_means(selection, noise, tmp_path):
    X, y, groups = noisy_problem(noise)
    model = GroupSparseRegressor(groups, selection=SELECTIONS[selection](X, y), rule="predict").fit(X, y)
    assert_one_model(model, X, y)
    if model.candidates_["chosen"].sum() > 1:
        assert model.shrunk_
        assert f"mean of {model.candidates_['chosen'].sum()}" in model.recipe_
    for again in kept(model, X, tmp_path):
        assert_equal_models(again, model, X)


@pytest.mark.parametrize("selection", ["folds", "hold-out", "ebic", "size"])
@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("rule", ["select", "predict"])
def test_groups_that_are_always_in(selection, noise, rule):
    X, y, groups = noisy_problem(noise)
    named = Groups.from_sizes(groups.sizes)
    model = GroupSparseRegressor(named, always=[5, 9], selection=SELECTIONS[selection](X, y), rule=rule)
    model.fit(X, y)
    assert {5, 9} <= set(model.selected_groups_)
    assert_one_model(model, X, y)
    if selection == "size":
        assert len(model.selected_groups_) == 5


@pytest.mark.parametrize("selection", ["folds", "ebic", "hold-out"])
@pytest.mark.parametrize(
    "options",
    [
        {"fit_intercept": False},
        {"standardize": "column"},
        {"standardize": "block"},
        {"standardize": False},
        {"group_weights": None},
        {"factors": 2},
        {"factors": 0},
    ],
    ids=str,
)
def test_settings(selection, options):
    for noise in ("weak", "strong"):
        X, y, groups = noisy_problem(noise)
        model = GroupSparseRegressor(groups, selection=SELECTIONS[selection](X, y), **options).fit(X, y)
        assert_one_model(model, X, y)
        if options.get("fit_intercept") is False:
            assert model.intercept_ == 0


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", ["folds", "ebic"])
def test_weights_of_rows(selection, noise):
    X, y, groups = noisy_problem(noise)
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    model = GroupSparseRegressor(groups, selection=SELECTIONS[selection](X, y)).fit(X, y, sample_weight=weight)
    assert_one_model(model, X, y, weight)
