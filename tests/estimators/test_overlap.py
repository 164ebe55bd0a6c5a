"""Overlapping groups are groups of copied columns whose coefficients add up."""

import pickle

import numpy as np
import pandas as pd
import pytest

from covey import Groups, GroupSparseRegressor
from covey.plots import GroupPathDisplay
from covey.selection import Discrepancy

P = 60
# consecutive groups of five share two columns
LISTS = [list(range(a, min(a + 5, P))) for a in range(0, P - 2, 3)]
GROUPS = Groups.from_lists(LISTS, overlap=True)
MEMBERS = np.concatenate(LISTS)
APART = Groups.from_sizes(GROUPS.sizes)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, P)) + 0.5
    latent = np.zeros(MEMBERS.size)
    for l in (3, 4, 11):  # the first two share columns
        latent[GROUPS.starts[l] : GROUPS.starts[l + 1]] = rng.choice([-1.0, 1.0], len(LISTS[l]))
    return X, X[:, MEMBERS] @ latent + 0.3 * rng.standard_normal(100)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"selection": 3, "rule": "select"},
        {"selection": "ebic"},
        {"rule": "predict"},
        {"selection": Discrepancy(0.3)},
    ],
    ids=str,
)
def test_the_estimator_is_that_of_a_copy(data, settings):
    X, y = data
    model = GroupSparseRegressor(GROUPS, factors=0, **settings).fit(X, y)
    copied = GroupSparseRegressor(APART, factors=0, **settings).fit(np.take(X, MEMBERS, axis=1), y)
    assert model.recipe_ == copied.recipe_
    assert model.selected_groups_ == copied.selected_groups_
    np.testing.assert_allclose(model.coef_, GROUPS.from_contiguous(copied.coef_), atol=1e-8)
    np.testing.assert_allclose(model.group_norms_, copied.group_norms_, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), copied.predict(np.take(X, MEMBERS, axis=1)), atol=1e-8)


def test_a_table_with_names(data):
    X, y = data
    table = pd.DataFrame(X, columns=[f"gene{j}" for j in range(P)])
    named = {f"pathway{l}": [f"gene{j}" for j in members] for l, members in enumerate(LISTS)}
    groups = Groups.from_names(named, table.columns, overlap=True)
    model = GroupSparseRegressor(groups, selection="ebic").fit(table, y)
    assert {"pathway3", "pathway4", "pathway11"} <= set(model.selected_groups_)
    # a sleeping group is not listed as selected because a neighbour has its columns
    assert not {"pathway2", "pathway5", "pathway10"} & set(model.selected_groups_)
    text = str(model.summary())
    n_columns = len({j for name in model.selected_groups_ for j in groups[name]})
    assert f"({n_columns} of {P} columns)" in text
    assert "pathway11" in text
    display = GroupPathDisplay.from_estimator(model)
    assert "pathway11" in {text.get_text() for text in display.ax_.texts}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
