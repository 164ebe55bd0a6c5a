"""Every kind of storage gives the same events and the same models."""

from itertools import pairwise

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, limit_path
from covey.designs import as_design
from covey.search import far, table
from storage_kinds import KINDS


@pytest.fixture(params=["few columns", "most groups far"])
def problem(request, monkeypatch):
    """Half of the values zero, columns of unequal scale, a rank-deficient and an interleaved group."""
    rng = np.random.default_rng(3)
    wide = request.param != "few columns"
    labels = rng.permutation(np.repeat(np.arange(80 if wide else 15), 3))
    n, p = 60, labels.size
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.uniform(-1, 1, p)
    X[rng.random((n, p)) < 0.5] = 0.0
    members = np.flatnonzero(labels == 4)
    X[:, members[2]] = X[:, members[0]] - X[:, members[1]]
    y = 1.0 + 0.3 * rng.standard_normal(n) + X[:, labels < 6] @ rng.standard_normal(18)
    if wide:
        monkeypatch.setattr(table, "NEAR_COLUMNS", 12)
        monkeypatch.setattr(far, "EVENTS_PER_CHECK", 4)
    return X, y, Groups.from_labels(labels.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_events_and_models(kind, problem, tmp_path):
    X, y, groups = problem
    dtype = "float64" if groups.n_groups > 15 else "float32"
    X = X.astype(dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    expected = limit_path(X.astype(float), y, groups, sample_weight=weight, max_groups=7)
    design = as_design(KINDS[kind](X, tmp_path))
    path = limit_path(design, y, groups, sample_weight=weight, max_groups=7)
    assert 1 <= design.n_passes <= 10  # moments, factors, and one or two for every four events and missing groups
    tolerance = 1e-8 if dtype == "float64" else 2e-3
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.times, expected.times, rtol=tolerance)
    largest = np.abs(expected.coefs).max()
    np.testing.assert_allclose(path.coefs.toarray(), expected.coefs.toarray(), atol=tolerance * largest)
    np.testing.assert_allclose(path.intercepts, expected.intercepts, atol=tolerance * largest)


@pytest.mark.parametrize("kind", KINDS)
def test_without_intercept_and_with_overlapping_groups(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 12)) < 0.5, rng.standard_normal((50, 12)), 0.0)
    y = X[:, :6].sum(axis=1) + 0.3 * rng.standard_normal(50)
    groups = Groups.from_lists([[0, 1, 2], [2, 3, 4], [4, 5, 6, 7], [8, 9, 10], [10, 11]], overlap=True)
    expected = limit_path(X, y, groups, fit_intercept=False)
    path = limit_path(KINDS[kind](X, tmp_path), y, groups, fit_intercept=False)
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.times, expected.times, rtol=1e-7)
    np.testing.assert_allclose(path.coefs.toarray(), expected.coefs.toarray(), atol=1e-7)


def test_groups_that_became_near_stay_near_when_rows_are_dealt_again(monkeypatch):
    monkeypatch.setattr(table, "NEAR_COLUMNS", 12)
    monkeypatch.setattr(table, "ALL_NEAR", 20)
    monkeypatch.setattr(far, "GROWTH", 3)
    before, deal = [], table.Table.dealt
    monkeypatch.setattr(table.Table, "dealt", lambda self, parts: before.append(self) or deal(self, parts))
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 200))
    GroupSparseRegressor().fit(X, X[:, :14] @ np.full(14, 0.4) + 2 * rng.standard_normal(120))
    assert before[0].groups.size < before[-1].groups.size < 200
    assert all(set(one.groups) <= set(other.groups) for one, other in pairwise(before))
