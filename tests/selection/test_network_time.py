"""Times chosen by held-out rows: the least error, recomputed by other means; folds that continue and fail clearly."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from covey import Groups
from covey.datasets import make_group_sparse
from covey.selection import network_time
from covey.selection.network_time import FoldErrors, choose_by_folds, choose_by_holdout, time_grid
from covey.stopping import PathTask

EVERY_FIFTH = np.arange(120) % 5 == 0


def make_task(sigma=0.5, weight=None, seed=0, **options):
    data = make_group_sparse(120, 60, 3, design="gaussian", active=4, values=1.0, sigma=sigma, random_state=seed)
    weight = np.ones(120) if weight is None else weight
    return data, PathTask(data.X, data.y, data.groups, weight, {"max_iter": 100_000} | options)


def folds(task, k=5):
    return task.design.folds(k, task.y, None)


def chosen_groups(choice):
    return set(np.flatnonzero(choice.path.group_norms[choice.position]).tolist())


WAYS = {
    "holdout": lambda task: choose_by_holdout(task, EVERY_FIFTH[: len(task.y)]),
    "folds": lambda task: choose_by_folds(task, folds(task)),
    "folds, 1se": lambda task: choose_by_folds(task, folds(task), "1se"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_clear_signal_is_found(way):
    data, task = make_task()
    choice = WAYS[way](task)
    assert chosen_groups(choice) >= {0, 1, 2, 3}
    error = np.sum((choice.model[0] - data.w_star) ** 2)
    assert error < 4 * np.sum((data.oracle() - data.w_star) ** 2) + 0.05
    assert choice.time in choice.scores["time"].to_numpy()


def test_one_standard_error_selects_nothing_else():
    _, task = make_task()
    assert chosen_groups(WAYS["folds, 1se"](task)) == {0, 1, 2, 3}


@pytest.mark.parametrize("way", ["holdout", "folds"])
def test_a_plateau_does_not_stop_the_path(way):
    """A strong group and one a fiftieth of it: the second wakes up after fifty times as long."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 30))
    w = np.zeros(30)
    w[:3], w[3:6] = 50.0, 1.0
    y = X @ w + 0.5 * rng.standard_normal(120)
    task = PathTask(X, y, Groups.from_size(3, 30), np.ones(120), {"max_iter": 200_000})
    assert chosen_groups(WAYS[way](task)) >= {0, 1}


def test_validation_rows_give_the_earliest_time_near_the_least_error():
    data, task = make_task()
    X_val = np.random.default_rng(5).standard_normal((60, 60))
    y_val = X_val @ data.w_star
    choice = choose_by_holdout(task, (X_val, y_val))
    mse = np.mean((y_val[:, None] - choice.path.predict(X_val)) ** 2, axis=0)
    assert choice.path.times[np.argmax(mse <= 1.003 * mse.min())] == choice.time
    np.testing.assert_allclose(choice.scores["mse"], mse, rtol=1e-8)


def test_held_out_rows_are_used_in_the_end():
    _, task = make_task()
    choice = choose_by_holdout(task, EVERY_FIFTH)
    alone = task.on(~EVERY_FIFTH)
    null = np.mean((task.y[EVERY_FIFTH] - task.y[~EVERY_FIFTH].mean()) ** 2)
    assert choice.scores["mse"].iloc[0] == pytest.approx(null, rel=1e-9)
    settings = {"max_iter": int(choice.time), "step_size": choice.path.step_size}
    np.testing.assert_array_equal(choice.model[0], task.path(**settings).at(choice.time))
    assert not np.allclose(choice.model[0], alone.path(**settings).at(choice.time), rtol=1e-3)


def test_weights_are_repetitions():
    counts = np.random.default_rng(0).integers(0, 4, size=120)
    data, weighted = make_task(weight=counts.astype(float))
    X, y = np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts)
    repeated = PathTask(X, y, data.groups, np.ones(len(y)), weighted.options)
    a, b = choose_by_holdout(weighted, EVERY_FIFTH), choose_by_holdout(repeated, np.repeat(EVERY_FIFTH, counts))
    assert a.time == b.time
    np.testing.assert_allclose(a.model[0], b.model[0], rtol=0, atol=1e-8)


def test_rules_of_choice():
    mse = np.array([[5.0, 5.2], [2.1, 2.3], [1.9, 2.3], [2.4, 2.6], [3.0, 3.0]])
    errors = FoldErrors(np.arange(5.0), mse, 1.0)
    assert errors.choose("min") == 2.0
    assert errors.choose("1se") == 1.0  # 2.2 <= 2.1 + 0.2


def test_scores_have_a_column_per_fold():
    _, task = make_task()
    scores = choose_by_folds(task, folds(task, KFold(3))).scores
    each = scores[["fold_0", "fold_1", "fold_2"]].to_numpy()
    # the null model of the first fold
    assert each[0, 0] == pytest.approx(np.mean((task.y[:40] - task.y[40:].mean()) ** 2), rel=1e-9)
    np.testing.assert_allclose(scores["mse"], each.mean(axis=1))
    np.testing.assert_allclose(scores["standard_error"], each.std(axis=1, ddof=1) / np.sqrt(3))


def test_grid():
    grid = time_grid(10_000)
    assert grid[0] == 0
    assert grid[-1] == 10_000
    assert (np.diff(grid) >= 1).all()
    assert (np.diff(grid)[grid[1:] > 200] / grid[1:][grid[1:] > 200] < 0.03).all()


def test_a_checkpoint_continues_from_finished_folds(tmp_path, monkeypatch):
    _, task = make_task()
    whole = choose_by_folds(task, folds(task), checkpoint=tmp_path / "whole")
    run, made = network_time._run_fold, []

    def run_two(*args, **settings):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(args)
        return run(*args, **settings)

    monkeypatch.setattr(network_time, "_run_fold", run_two)
    with pytest.raises(KeyboardInterrupt):
        choose_by_folds(task, folds(task), checkpoint=tmp_path / "cut")
    monkeypatch.setattr(network_time, "_run_fold", run)
    assert len(list((tmp_path / "cut").rglob("*.json"))) == 2
    again = choose_by_folds(task, folds(task), checkpoint=tmp_path / "cut")
    assert again.time == whole.time
    np.testing.assert_array_equal(again.model[0], whole.model[0])
    np.testing.assert_array_equal(again.scores, whole.scores)


def test_folds_side_by_side_are_the_same():
    _, task = make_task()
    one, two = (choose_by_folds(task, folds(task), n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.time == two.time
    np.testing.assert_array_equal(one.scores, two.scores)


def test_bad_input_is_named():
    _, task = make_task()
    with pytest.raises(ValueError, match="patience must be above 0"):
        choose_by_holdout(task, EVERY_FIFTH, patience=0)
    with pytest.raises(ValueError, match="'min' or '1se'"):
        choose_by_folds(task, folds(task), "2se")
    with pytest.raises(ValueError, match="validation rows have 2 columns, and X has 60"):
        choose_by_holdout(task, (np.ones((5, 2)), np.ones(5)))
    empty = make_task(weight=np.r_[np.zeros(60), np.ones(60)])[1]
    with pytest.raises(ValueError, match="Fold 0 has no held-out rows of positive weight"):
        choose_by_folds(empty, folds(empty, 2))
