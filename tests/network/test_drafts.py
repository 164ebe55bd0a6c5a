"""A draft is handed over at once, which changes nothing; nor do room and readings of the Gram matrix."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.network import near, near_awake, stored_rows
from covey.network.draft import Draft
from covey.network.screened import ScreenedPath
from network_problems import LAYOUTS, OneByOne, Together, make


def path_of(layout, stop=None, **settings):
    groups = LAYOUTS[layout]
    X, y = make(groups)
    return group_path(X, y, groups, max_iter=400, engine="screened", stop=stop, **settings)


def assert_same_path(one, other, rtol=0.0):
    np.testing.assert_array_equal(one.times, other.times)
    np.testing.assert_allclose(one.coefs.toarray(), other.coefs.toarray(), rtol=0, atol=rtol * np.abs(one.coefs).max())
    assert one.entered == other.entered
    assert one.status == other.status


@pytest.mark.parametrize("layout", ["equal", "unequal", "scattered"])
@pytest.mark.parametrize("limit", [{}, {"n_woken": 3}, {"n_models": 9}])
@pytest.mark.parametrize("times", [None, np.arange(0, 400, 7)])
def test_rules_see_the_same_models_one_by_one_and_together(layout, limit, times):
    alone, together = OneByOne(**limit), Together(**limit)
    one, other = path_of(layout, alone, times=times), path_of(layout, together, times=times)
    assert_same_path(one, other)
    assert len(alone.seen) == len(together.seen) == len(one)
    for i, (a, b) in enumerate(zip(alone.seen, together.seen, strict=True)):
        assert (a.time, a.intercept, a.n_woken, a.n_risen) == (b.time, b.intercept, b.n_woken, b.n_risen)
        np.testing.assert_array_equal(a.columns, b.columns)
        np.testing.assert_array_equal(a.coef, b.coef)
        # and they are the models of the path
        assert a.time == one.times[i]
        shown = np.zeros(one.coefs.shape[1])
        shown[a.columns] = a.coef
        np.testing.assert_allclose(shown, one.coefs[[i]].toarray()[0], rtol=1e-12, atol=1e-14)
        # a group that wakes at this very time may be told of after the model
        assert sum(t < a.time for _, t in one.entered) <= a.n_woken <= sum(t <= a.time for _, t in one.entered)


def test_verbose_names_the_groups_that_woke_before_the_stop_only(capsys):
    path = path_of("equal", Together(n_woken=2), verbose=1)
    assert len(path.entered) == 2
    assert capsys.readouterr().out.count("woke up") == 2


@pytest.mark.parametrize("layout", ["unequal", "single"])
@pytest.mark.parametrize("settings", [{}, {"algorithm": "two-stage"}, {"times": np.arange(0, 400, 3)}])
def test_arrays_that_have_to_grow_change_nothing(layout, settings, monkeypatch):
    roomy = path_of(layout, **settings)
    monkeypatch.setattr(near_awake, "ROOM", 1)
    monkeypatch.setattr(near, "DRAFT_ROOM", 1)
    monkeypatch.setattr(stored_rows, "ROWS", 1)
    assert_same_path(path_of(layout, **settings), roomy)


@pytest.mark.parametrize("layout", ["equal", "unequal"])
def test_the_gram_matrix_may_be_read_whole_or_by_and_by(layout, monkeypatch):
    whole = path_of(layout)
    assert whole.n_gram_columns == LAYOUTS[layout].n_columns
    monkeypatch.setattr(stored_rows, "WHOLE", 0)
    parts = path_of(layout)
    assert 0 < parts.n_gram_columns < whole.n_gram_columns
    assert_same_path(parts, whole, rtol=1e-10)


def test_pieces_keep_ends_and_means():
    draft = Draft(2, 3)
    rng = np.random.default_rng(0)
    nodes, means = rng.standard_normal((8, 3)), rng.standard_normal((7, 3))
    steps = [3, 1, 4, 1, 5, 9, 2]
    t = 0
    draft.make_room(1, 3)
    draft.add(0, nodes[0], 1.0, 1)
    for i, count in enumerate(steps):
        t += count
        draft.make_room(2, 3)
        draft.add(t, nodes[i + 1], 1.0, 1, steps=count)
        draft.models[2 * draft.n_records - 1], draft.lefts[draft.n_records - 1] = means[i], nodes[i]
        # a record on the way has no part in it
        draft.add(t, rng.standard_normal(3), 1.0, 1)
    pieces = draft.pieces(3, 3)
    np.testing.assert_array_equal(pieces.steps, [8, 6, 11])
    np.testing.assert_array_equal(pieces.left, nodes[[0, 3, 5]])
    np.testing.assert_array_equal(pieces.right, nodes[[3, 5, 7]])
    np.testing.assert_allclose(pieces.mean[0], (3 * means[0] + means[1] + 4 * means[2]) / 8)
    assert ((pieces.shares >= 0) & (pieces.shares <= 1)).all()
    np.testing.assert_array_equal(draft.pieces(10, 3).steps, steps)


def test_correlations_are_those_of_the_present_model(monkeypatch):
    """A march in vain, after a sleeper that did not wake, must not leave those of an earlier node behind."""
    # of many problems one in which that happens just before a piece is accepted
    rng = np.random.default_rng(8)
    X = np.sqrt(0.5) * rng.standard_normal((60, 40)) + np.sqrt(0.5) * rng.standard_normal((60, 1))
    beta = np.zeros((8, 5))
    for j in rng.choice(8, 5, replace=False):
        beta[j] = rng.standard_normal(5)
    y = X @ beta.ravel() + rng.standard_normal(60)
    publish, gaps = ScreenedPath._publish, []

    def compare(self):
        awake = self.path.view
        gaps.append(np.abs(self.path.g[awake.columns] - (awake.c - awake.K @ awake.w)).max(initial=0.0))
        publish(self)

    monkeypatch.setattr(ScreenedPath, "_publish", compare)
    group_path(X, y, Groups.from_size(4, 40), max_iter=1500, engine="screened")
    # a group that has just joined is not in them yet
    assert len(gaps) > 1
    assert max(gaps) < 1e-4
