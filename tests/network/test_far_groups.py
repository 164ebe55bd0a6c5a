"""Checks of the far groups between pieces of the screened path."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.network import screened
from covey.network.near import NearPath
from covey.path import PathState

GROUPS = Groups.from_size(5, 300)


@pytest.fixture
def problem(monkeypatch):
    """Correlated columns, of which a fifth is near."""
    monkeypatch.setattr(screened, "FEW_COLUMNS", 60)
    rng = np.random.default_rng(0)
    X = np.sqrt(0.4) * rng.standard_normal((100, 1)) + np.sqrt(0.6) * rng.standard_normal((100, 300))
    w = np.zeros(300)
    w[:40] = rng.standard_normal(40)
    return X, X @ w + rng.standard_normal(100)


def least_squares_start(X, y, awake):
    """A start from least squares on some groups."""
    columns = np.concatenate([GROUPS.lists()[l] for l in awake])
    coef = np.zeros(300)
    coef[columns] = np.linalg.lstsq(X[:, columns] - X[:, columns].mean(axis=0), y - y.mean(), rcond=None)[0]
    entered = tuple((l, 1.0) for l in awake)
    return PathState(100, coef, np.array(awake, dtype=np.intp), np.full(60, np.log(1e-6)), entered)


def test_groups_that_join_in_a_piece_without_iterations_are_seen_at_the_next_check(problem, monkeypatch):
    """A march that is given up before its first node makes no iteration, but groups may have joined before it."""
    X, y = problem
    settings = {"max_iter": 1000, "engine": "screened", "start": least_squares_start(X, y, (0, 1, 2, 3, 4))}
    expected = group_path(X, y, GROUPS, **settings)
    advance, joined = NearPath.advance, []

    def given_up_at_first(self, horizon, joins):
        if joined:
            return advance(self, horizon, joins)
        joined.extend(self.draft.joined.tolist())
        assert not self.draft.steps.any()
        return "running"

    monkeypatch.setattr(NearPath, "advance", given_up_at_first)
    path = group_path(X, y, GROUPS, **settings)
    assert len(joined) == 5
    assert len(expected.entered) > 10
    assert path.entered == expected.entered
    np.testing.assert_allclose(path.at(1000), expected.at(1000), atol=1e-8)
