"""Selection within groups: single columns where they are better, groups where these are as good."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import covey
from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor

N, SIZE, N_GROUPS = 160, 8, 12


def problem(per_group, noise=0.3, seed=0, n=N):
    """Rows, and a response that depends on some columns of the first two groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, SIZE * N_GROUPS))
    w = np.zeros(X.shape[1])
    w[:per_group] = w[SIZE : SIZE + per_group] = rng.choice([-1.0, 1.0], per_group)
    return X, X @ w + noise * rng.standard_normal(n), w


def test_columns_within_groups():
    X, y, w = problem(2)
    model = GroupSparseRegressor(groups=SIZE, within="columns").fit(X, y)
    assert np.flatnonzero(model.coef_).tolist() == np.flatnonzero(w).tolist()
    assert sorted(model.selected_groups_) == [0, 1]
    assert model.group_table()["columns"].tolist() == [2, 2]
    assert "2 of 8" in str(model.summary())
    assert "(4 of 96 columns)" in str(model.summary())
    today = GroupSparseRegressor(groups=SIZE).fit(X, y)
    assert np.linalg.norm(model.coef_ - w) < 0.7 * np.linalg.norm(today.coef_ - w)


@pytest.mark.parametrize("rule", ["select", "predict"])
def test_groups_that_matter_as_one_stay_as_they_are(rule):
    X, y, w = problem(SIZE)
    today = GroupSparseRegressor(groups=SIZE, rule=rule).fit(X, y)
    model = clone(today).set_params(within="columns").fit(X, y)
    assert np.linalg.norm(model.coef_ - w) <= 1.02 * np.linalg.norm(today.coef_ - w)
    if rule == "select":
        np.testing.assert_allclose(model.coef_, today.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.group_strengths_, today.group_strengths_, rtol=1e-6, atol=1e-10)


def test_what_is_published_is_about_groups(tmp_path):
    X, y, _ = problem(3, noise=1.0)
    names = [f"g{l}" for l in range(N_GROUPS)]
    model = GroupSparseRegressor(groups=np.repeat(names, SIZE), within="columns").fit(X, y)
    assert model.groups_ == Groups.from_labels(np.repeat(names, SIZE))
    assert model.group_norms_.shape == model.fold_frequencies_.shape == (N_GROUPS,)
    norms = np.linalg.norm(model.coef_.reshape(N_GROUPS, SIZE), axis=1)
    np.testing.assert_allclose(model.group_norms_, norms)
    parts = (X.reshape(N, N_GROUPS, SIZE) * model.coef_.reshape(N_GROUPS, SIZE)).sum(axis=2)
    np.testing.assert_allclose(model.group_strengths_, parts.std(axis=0), rtol=1e-6, atol=1e-10)
    assert set(model.rivals_["groups"].sum()) <= set(names)
    assert model.candidates_["groups"].max() <= N_GROUPS
    assert model.path_.groups == model.groups_
    np.testing.assert_array_equal(model.path_.model(len(model.path_) - 1)[0], model.coef_)
    assert model.path_.strengths.shape == (len(model.path_), N_GROUPS)
    np.testing.assert_allclose(model.partial_effect(X, "g0"), parts[:, 0] - parts[:, 0].mean(), atol=1e-10)
    covey.save(model, tmp_path / "model.skops")
    same = covey.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(same.group_table(), model.group_table())


def test_other_losses_and_several_responses():
    X, y, w = problem(1, noise=0.1, n=240)
    for model, response in (
        (GroupSparseClassifier(groups=SIZE), y > 0),
        (GroupSparseCox(groups=SIZE), covey.survival(np.exp(-y), np.ones(len(y), dtype=bool))),
        (GroupSparseRegressor(groups=SIZE, loss="huber"), y),
        (GroupSparseRegressor(groups=SIZE), np.column_stack([y, -y + 0.1 * np.sin(np.arange(len(y)))])),
    ):
        fitted = model.set_params(within="columns", selection=3).fit(X, response)
        assert set(np.flatnonzero(w)) <= set(np.flatnonzero(np.atleast_2d(fitted.coef_).any(axis=0)))
        assert np.atleast_2d(fitted.coef_).any(axis=0).sum() <= 5


def test_always_groups_are_not_divided():
    X, y, w = problem(2)
    model = GroupSparseRegressor(groups=SIZE, within="columns", always=[5]).fit(X, y)
    assert (model.coef_[5 * SIZE : 6 * SIZE] != 0).all()
    assert np.flatnonzero(np.delete(model.coef_, np.s_[5 * SIZE : 6 * SIZE])).tolist() == np.flatnonzero(w).tolist()


def test_groups_of_one_column_have_nothing_within():
    X, y, _ = problem(2)
    plain, within = (GroupSparseRegressor(within=one).fit(X, y) for one in (None, "columns"))
    np.testing.assert_array_equal(plain.coef_, within.coef_)
