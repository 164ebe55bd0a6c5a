"""Searches that find the scale of a loss and the model in turn."""

import numpy as np
import pytest

from covey import GroupSparseRegressor
from covey.estimators import base
from covey.losses import Quantile
from covey.selection import Folds


def problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 12))
    return X, X[:, 0] - X[:, 4] + 0.3 * rng.standard_normal(120)


@pytest.mark.parametrize("loss", ["huber", Quantile(0.7)])
def test_a_quick_search_that_has_settled_is_the_search(loss, monkeypatch):
    X, y = problem()
    found = GroupSparseRegressor(3, loss=loss).fit(X, y)
    again, searches = base.select_scaled, []

    def in_full(problem, search, quick, *, begins):
        return again(problem, lambda one: searches.append(1) or search(one), quick, begins=False)

    monkeypatch.setattr(base, "select_scaled", in_full)
    expected = GroupSparseRegressor(3, loss=loss).fit(X, y)
    assert searches == [1]
    assert found.n_deals_ == expected.n_deals_ == 1
    assert found.coef_.tolist() == expected.coef_.tolist()
    assert found.held_out_.coefs.todense().tolist() == expected.held_out_.coefs.todense().tolist()


def test_a_quick_search_that_has_not_settled_is_made_again(monkeypatch):
    X, y = problem()
    rng = np.random.default_rng(2)
    y = y + 4 * rng.standard_normal(len(y))
    once = GroupSparseRegressor(3, loss="huber", selection=Folds(deals=1)).fit(X, y)
    assert once.n_deals_ == 1
    model = GroupSparseRegressor(3, loss="huber").fit(X, y)
    mean = GroupSparseRegressor(3, loss="huber", rule="predict").fit(X, y)
    assert model.n_deals_ > 1
    assert mean.recipe_ != model.recipe_
