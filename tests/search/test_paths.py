"""Paths of several splits: near groups at every event and far ones now and then give the events of all groups."""

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, limit_path
from covey.losses import Binomial, Squared
from covey.search.paths import Paths
from covey.search.table import Table
from search.posing import few_near, in_folds


def correlated(n=40, n_groups=60, seed=0):
    """AR(0.8) columns in groups of 1 to 3, so that groups overtake each other."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_groups)
    p = int(sizes.sum())
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    w = np.where(rng.random(p) < 0.15, rng.standard_normal(p), 0.0)
    return X, X @ w + 0.5 * rng.standard_normal(n), Groups.from_sizes(sizes)


def in_weighted_folds(X, y, groups):
    return in_folds(X, y, groups, weight=np.random.default_rng(1).uniform(0.5, 2, len(y)))


def events(paths):
    return [(paths.groups(s), path.times) for s, path in enumerate(paths.paths)]


@pytest.mark.parametrize("per_check", [1, 3, 12])
@pytest.mark.parametrize("columns", [1, 8, 30])
@pytest.mark.parametrize("seed", [0, 1])
def test_events_of_several_splits(columns, per_check, seed, monkeypatch):
    X, y, groups = correlated(seed=seed)
    everything = Paths(Table(in_weighted_folds(X, y, groups)), [[], [3], [], [5, 2]])
    everything.advance(12)
    expected = events(everything)
    few_near(monkeypatch, columns, per_check)
    table = Table(in_weighted_folds(X, y, groups))
    assert not table.all_near
    begun = table.groups.size
    paths = Paths(table, [[], [3], [], [5, 2]])
    paths.advance(12)
    assert table.groups.size > begun
    assert np.unique(table.groups).size == table.groups.size
    assert paths.n_events() == everything.n_events()
    for (got, times), (wanted, at) in zip(events(paths), expected, strict=True):
        n = min(len(got), len(wanted))  # if nothing is left to explain on one split, others may have gone on
        assert got[:n] == wanted[:n]
        np.testing.assert_allclose(times[:n], at[:n], rtol=1e-9)


def test_the_rest_of_a_path_is_the_same_whether_it_is_run_at_once_or_in_pieces(monkeypatch):
    X, y, groups = correlated()
    few_near(monkeypatch, 8, 3)
    at_once, pieces = (Paths(Table(in_weighted_folds(X, y, groups)), [[]] * 4) for _ in range(2))
    at_once.advance(10)
    for target in (1, 2, 5, 9, 10):
        pieces.advance(target)
    for (got, times), (wanted, at) in zip(events(pieces), events(at_once), strict=True):
        assert got[:10] == wanted[:10]
        np.testing.assert_allclose(times[:10], at[:10], rtol=1e-9)


def test_exhausted_rows_end_the_path_also_when_most_groups_are_far(monkeypatch):
    X, y, groups = correlated(n=20)
    expected = limit_path(X, y, groups)
    few_near(monkeypatch, 5, 4)
    path = limit_path(X, y, groups)
    assert path.status == expected.status == "exhausted"
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.times, expected.times, rtol=1e-6)


def test_common_factors_are_in_the_model_for_far_groups_too(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, groups = correlated()
    X = X + 2 * rng.standard_normal((40, 1)) @ rng.uniform(0.5, 1.5, (1, X.shape[1]))
    expected = limit_path(X, y, groups, factors=2, max_groups=10)
    assert [l for l, _ in expected.entered] != [l for l, _ in limit_path(X, y, groups, max_groups=10).entered]
    few_near(monkeypatch, 8, 3)
    path = limit_path(X, y, groups, factors=2, max_groups=10)
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.coefs.toarray(), expected.coefs.toarray(), atol=1e-8)


def test_x_is_read_once_per_check_and_not_per_event_or_split(monkeypatch):
    few_near(monkeypatch, 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3000))
    y = X[:, :6].sum(axis=1) + 0.3 * rng.standard_normal(40)
    posed = in_weighted_folds(X, y, Groups.from_size(3, 3000))
    paths, design = Paths(Table(posed), [[]] * 4), posed.design
    before = design.n_passes
    paths.advance(1)
    first = design.n_passes - before
    before = design.n_passes
    paths.advance(2)
    assert 1 <= first <= 3  # the check, and one more for every time that a group was missing
    assert design.n_passes - before <= 3


def test_a_missing_group_is_found_where_it_would_have_woken(monkeypatch):
    """Column 200 has no correlation with y until column 0 has taken its part out."""
    rng = np.random.default_rng(0)
    n = 60
    Q = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, 50))]))[0][:, 1:]
    weak = Q[:, 30:40] @ rng.standard_normal((10, 160))
    X = np.column_stack([Q[:, :40], weak, Q[:, 0] - 0.8 * Q[:, 45]])
    y = Q[:, 0] + 1.25 * Q[:, 45] + Q[:, 1:41] @ np.linspace(0.3, 0.01, 40)
    assert abs(np.corrcoef(X[:, 200], y)[0, 1]) < 0.01
    expected = limit_path(X, y, max_groups=6)
    assert expected.entered[0][0] == 0
    assert 200 in dict(expected.entered)
    few_near(monkeypatch, 6, 12)
    path = limit_path(X, y, max_groups=6)
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.times, expected.times, rtol=1e-9)
    np.testing.assert_allclose(path.coefs.toarray(), expected.coefs.toarray(), atol=1e-9)


@pytest.mark.parametrize("seed", [0, 4, 8], ids=["weak noise", "strong noise", "two rounds"])
def test_a_search_with_many_rows_scores_all_rounds_alike_however_many_groups_are_near(seed, monkeypatch):
    """Many rows are compressed, to other combinations of them if groups become near between two rounds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((900, 120))
    X[:, 1:] += 0.7 * X[:, :-1]
    noise = rng.choice([0.5, 2.0, 6.0])
    y = X[:, :60] @ (0.3 * rng.standard_normal(60)) + noise * rng.standard_normal(900)
    all_near = GroupSparseRegressor(groups=2).fit(X, y)
    few_near(monkeypatch, 20, growth=10)
    found = GroupSparseRegressor(groups=2).fit(X, y)
    assert found.selected_groups_ == all_near.selected_groups_
    np.testing.assert_allclose(found.coef_, all_near.coef_, atol=1e-10)
    np.testing.assert_allclose(found.candidates_["mse"], all_near.candidates_["mse"], rtol=1e-8)
    np.testing.assert_allclose(found.candidates_["standard_error"], all_near.candidates_["standard_error"], atol=1e-6)


def test_a_split_with_nothing_left_to_explain_does_not_end_the_others():
    rng = np.random.default_rng(3)
    X, groups = rng.standard_normal((60, 10)), Groups.from_size(2, 10)
    y = X[:, 0] + 2 * X[:, 1]
    y[::3] += X[::3, 6:8].sum(axis=1) + 0.1 * rng.standard_normal(20)  # the rows of the first fold
    table = Table(in_folds(X, y, groups))
    paths = Paths(table, [[]] * 4)
    paths.advance(3)
    assert (paths.exhausted, paths.ended, paths.n_events()) == ({0}, False, 3)
    assert paths.groups(0) == [0]
    assert [set(paths.groups(s)[:2]) for s in (1, 2, 3)] == [{0, 3}] * 3
    rows = np.arange(5)
    predicted = paths.predictors(0, rows, 0, 3)[:, 0]
    np.testing.assert_array_equal(predicted[:, 2:], predicted[:, [1, 1]])
    assert abs(predicted[:, 1] - predicted[:, 0]).max() > 0.1
    assert paths.width_after(2) == 4
    paths.end_at(4)
    assert [len(paths.groups(s)) for s in range(4)] == [1, 2, 2, 2]
    assert paths.knots(0).exhausted
    assert not paths.knots(3).exhausted


@pytest.mark.parametrize("loss", [Squared(), Binomial()], ids=lambda loss: loss.name)
def test_a_level_without_training_rows_is_predicted_alike_in_any_order_of_levels(loss):
    rng = np.random.default_rng(4)
    level = rng.integers(0, 3, 90)
    level[np.arange(90) % 3 > 0] %= 2  # the last level is in the first fold only
    number = rng.standard_normal(90)
    eta = np.array([-1.0, 1.0, 0.0])[level] + number
    y = eta + 0.5 * rng.standard_normal(90) if loss.quadratic else (rng.logistic(size=90) < eta).astype(float)

    def predicted(order):
        dummies = np.eye(3)[level]
        X = np.column_stack([number, (dummies - dummies.mean(axis=0))[:, order]])
        table = Table(in_folds(X, y, Groups.from_sizes([1, 3]), loss=loss))
        paths = Paths(table, [[]] * 4)
        paths.advance(2)
        assert paths.active(0).deficient
        # rows that are compressed are rotated, which keeps the squares of predictions
        return np.square(paths.predictors(0, np.flatnonzero(table.labels == 0), 0, 2)).sum(axis=0)

    first = predicted([0, 1, 2])
    for order in ([2, 1, 0], [1, 2, 0]):
        np.testing.assert_allclose(predicted(order), first, atol=1e-6)
