"""A path at rest is the model of its start, and reads nothing of X."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.engine import PathRunner
from covey.stopping.keeping import restart_state
from covey.stopping.legs import Kept
from covey.stopping.monitor import PATIENCE, Monitor
from search_problems import misleading, split, task_of


@pytest.mark.parametrize("standardize", ["group", "column", False])
def test_a_path_at_rest_is_the_first_model_of_one_that_goes_on(standardize):
    X, y, groups, _ = misleading()
    runner = PathRunner(X, y, groups, standardize=standardize)
    begun = runner.run(max_iter=200)
    still, on = runner.run(start=begun, rest=True), runner.run(start=begun, max_iter=201)
    assert still.times.tolist() == [200]
    assert still.n_passes == 0
    np.testing.assert_allclose(still.at(200), on.at(200), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(still.intercepts[0], on.intercepts[0])
    assert still.entered == begun.entered
    # and it can be gone on from
    later, directly = runner.run(start=still, max_iter=300), runner.run(start=begun, max_iter=300)
    np.testing.assert_allclose(later.at(300), directly.at(300), rtol=1e-8, atol=1e-10)


def test_a_path_at_rest_is_judged():
    X, y, groups, _ = misleading()
    trial = split(task_of(X, y, groups))
    monitor = Monitor(trial.scorer, PATIENCE, groups.n_groups)
    path = trial.task.path(stop=monitor, start=restart_state(trial.task, Kept((3, 19), 0.0), 70, ()), rest=True)
    coef, intercept = path.model(0)
    held = trial.scorer.weight > 0
    expected = np.mean((y[held] - X[held] @ coef - intercept) ** 2)
    assert monitor.times == [70.0]
    assert monitor.errors[0] == pytest.approx(expected)


def test_a_path_that_goes_on_still_needs_an_iteration():
    X, y, groups, _ = misleading()
    path = group_path(X, y, groups, max_iter=50)
    with pytest.raises(ValueError, match="must be larger"):
        group_path(X, y, groups, start=path, max_iter=50)


def test_x_is_not_looked_at_again_where_nothing_has_moved():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4000))
    groups = Groups.from_size(4, 4000)
    y = X[:, :8] @ np.ones(8) + 0.1 * rng.standard_normal(80)
    task = task_of(X, y, groups)
    # at least squares on its groups the network rests until another one wakes
    state = restart_state(task, Kept((0, 1), 0.0), 50, ())
    settled = task.path(start=state, max_iter=51)
    assert settled.n_passes == 2  # once to prepare, once for the correlations of the start
    exact = group_path(X, y, groups, start=state, max_iter=400, engine="exact")
    again = task.path(start=state, max_iter=400)
    assert [l for l, _ in again.entered] == [l for l, _ in exact.entered]
    np.testing.assert_allclose([t for _, t in again.entered], [t for _, t in exact.entered], rtol=5e-3, atol=2)


class EnoughAhead:
    """A stop rule that never stops by itself, and keeps what it is told of what lies ahead."""

    def __init__(self, enough):
        self.enough, self.told = enough, []

    def __call__(self, snapshot):
        return False

    def look_ahead(self, prospects):
        self.told.append(prospects)
        return self.enough


def test_a_start_at_rest_is_judged_before_anything_is_read_for_a_path():
    X, y, groups, _ = misleading()
    task = task_of(X, y, groups)
    state = restart_state(task, Kept((3, 19), 0.0), 70, ())
    enough, more = EnoughAhead(True), EnoughAhead(False)
    stayed, went_on = (task.path(stop=rule, start=state, max_iter=2000) for rule in (enough, more))
    assert stayed.status == "stopped"
    assert stayed.times.tolist() == [70]
    assert stayed.n_gram_columns == 0
    # what it was told: nothing is left to settle, the group that is missing is next in line, and until when it sleeps
    (ahead,) = enough.told
    assert ahead.settling == []
    columns = [set(move.columns.tolist()) for move in ahead.next]
    assert set(groups.lists()[21].tolist()) in columns
    third = next(t for l, t in went_on.entered if l not in (3, 19))
    assert 70 < ahead.until < third
    # one that is not stopped there goes on as ever, and the other one can
    assert len(more.told) > 1
    later = task.path(start=stayed, max_iter=2000)
    assert [l for l, _ in later.entered] == [l for l, _ in went_on.entered]
    np.testing.assert_allclose(later.at(2000), went_on.at(2000), atol=1e-6)


def test_a_start_that_is_drawn_somewhere_is_run():
    X, y, groups, _ = misleading()
    task = task_of(X, y, groups)
    state = restart_state(task, Kept((3, 19), 0.3), 70, ())
    assert task.path(stop=EnoughAhead(True), start=state, max_iter=2000).n_gram_columns > 0
