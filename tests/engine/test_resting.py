"""A path at rest is the model of its start, and reads nothing of X."""

import numpy as np
import pytest

from covey import group_path
from covey.engine import PathRunner
from covey.stopping.monitor import PATIENCE, Monitor
from covey.stopping.search import Kept, restart_state
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
