"""Each rule against what it promises, recomputed by other means."""

import numpy as np
import pytest
from covey.stopping.fold_errors import FoldErrors, choose_time, time_grid
from covey.stopping.holdout import split_rows
from scipy.special import comb

from covey import Groups
from covey.datasets import make_group_sparse
from covey.stopping import (
    AtTime,
    CrossValidation,
    Discrepancy,
    HoldOut,
    InformationCriterion,
    PathTask,
    TheoryWindow,
)


def make_task(n=120, p=60, size=3, active=4, sigma=0.5, weight=None, seed=0, **options):
    data = make_group_sparse(n, p, size, design="gaussian", active=active, values=1.0, sigma=sigma, random_state=seed)
    weight = np.ones(n) if weight is None else weight
    return data, PathTask(data.X, data.y, data.groups, weight, {"max_iter": 100_000} | options)


def chosen_groups(choice):
    return set(np.flatnonzero(choice.path.group_norms[choice.position]).tolist())


ALL = {
    "holdout": HoldOut(random_state=0),
    "holdout, no refit": HoldOut(refit=False, random_state=0),
    "cv": CrossValidation(),
    "cv 1se": CrossValidation(rule="1se"),
    "bic": InformationCriterion("bic"),
    "ebic": InformationCriterion("ebic"),
    "gcv": InformationCriterion("gcv"),
    "discrepancy": Discrepancy(0.5),
    "discrepancy, estimated": Discrepancy(),
}


@pytest.mark.parametrize("name", ALL)
def test_every_rule_finds_a_clear_signal(name):
    data, task = make_task()
    choice = ALL[name].choose(task)
    w = choice.path.at(choice.time)
    assert chosen_groups(choice) >= {0, 1, 2, 3}
    assert np.sum((w - data.w_star) ** 2) < 4 * np.sum((data.oracle() - data.w_star) ** 2) + 0.05
    assert choice.time in choice.scores["time"].to_numpy() or name.startswith("cv")


@pytest.mark.parametrize("name", ["ebic", "cv 1se"])
def test_the_sparing_rules_select_nothing_else(name):
    _, task = make_task()
    assert chosen_groups(ALL[name].choose(task)) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["holdout", "cv", "ebic", "discrepancy"])
def test_a_plateau_does_not_stop_the_path(name):
    """A strong group and one a fiftieth of it: the second wakes up after fifty times as long."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    w = np.zeros(30)
    w[:3], w[3:6] = 50.0, 1.0
    y = X @ w + 0.5 * rng.standard_normal(400)
    task = PathTask(X, y, Groups.from_size(3, 30), np.ones(400), {"max_iter": 200_000})
    rule = Discrepancy(0.55) if name == "discrepancy" else ALL[name]
    assert chosen_groups(rule.choose(task)) >= {0, 1}


def test_at_time():
    _, task = make_task()
    choice = AtTime(150).choose(task)
    assert choice.time == choice.path.times[-1] == 150


def test_criteria_are_their_formulas():
    _, task = make_task()
    n, L = 120, 20
    for name in ("bic", "ebic", "gcv"):
        choice = InformationCriterion(name).choose(task)
        i = len(choice.path) // 2
        w, b = choice.path.coefs[[i]].toarray().ravel(), choice.path.intercepts[i]
        rss = np.sum((task.y - task.X @ w - b) ** 2)
        s = np.count_nonzero(choice.path.group_norms[i])
        df = 3 * s + 1
        expected = {
            "bic": n * np.log(rss / n) + np.log(n) * df,
            "ebic": n * np.log(rss / n) + np.log(n) * df + 2 * np.log(comb(L, s)),
            "gcv": rss / n / (1 - df / n) ** 2,
        }[name]
        assert choice.scores[name].iloc[i] == pytest.approx(expected, rel=1e-9)
        assert choice.scores["df"].iloc[i] == df
        # the earliest of those that are equal up to rounding
        assert choice.scores[name].iloc[choice.position] == pytest.approx(choice.scores[name].min(), abs=1e-6)
        assert choice.time <= choice.scores["time"].iloc[choice.scores[name].argmin()]


def test_discrepancy_stops_at_the_noise():
    _, task = make_task()
    choice = Discrepancy(0.5, factor=1.1).choose(task)
    below = choice.scores["mean_square"] <= 1.1 * 0.25
    assert below.iloc[-1]
    assert not below.iloc[:-1].any()


def test_the_noise_is_estimated():
    from covey.stopping.discrepancy import estimate_sigma

    values = [estimate_sigma(make_task(seed=seed)[1]) for seed in range(5)]
    assert np.mean(values) == pytest.approx(0.5, rel=0.1)


def test_hold_out_takes_the_least_validation_error():
    data, task = make_task()
    X_val = np.random.default_rng(5).standard_normal((60, 60))
    y_val = X_val @ data.w_star
    choice = HoldOut(validation=(X_val, y_val)).choose(task)
    mse = np.mean((y_val[:, None] - choice.path.predict(X_val)) ** 2, axis=0)
    assert choice.path.times[np.argmax(mse <= 1.003 * mse.min())] == choice.time
    np.testing.assert_allclose(choice.scores["mse"], mse, rtol=1e-8)


def test_hold_out_refits_on_all_rows():
    _, task = make_task()
    refitted, kept = (HoldOut(refit=refit, random_state=0).choose(task) for refit in (True, False))
    assert refitted.time == kept.time
    held = split_rows(task, 0.2, 0)
    alone = task.on(~held).path(max_iter=int(kept.time), step_size=kept.path.step_size)
    np.testing.assert_allclose(kept.path.at(kept.time), alone.at(kept.time), rtol=1e-3, atol=1e-6)
    assert not np.allclose(refitted.path.at(kept.time), kept.path.at(kept.time), rtol=1e-3)


@pytest.mark.parametrize("fraction", [0.05, 0.2, 0.5, 0.9])
def test_split_sizes(fraction):
    _, task = make_task()
    held = split_rows(task, fraction, 1)
    assert held.sum() == pytest.approx(fraction * 120, abs=1)


def test_split_is_seeded_and_differs_between_seeds():
    _, task = make_task()
    np.testing.assert_array_equal(split_rows(task, 0.3, 1), split_rows(task, 0.3, 1))
    assert not np.array_equal(split_rows(task, 0.3, 1), split_rows(task, 0.3, 2))


def test_split_says_nothing_about_the_values():
    """Over seeds, every row is held out about as often as any other."""
    _, task = make_task(n=40)
    often = np.mean([split_rows(task, 0.25, seed) for seed in range(400)], axis=0)
    assert np.abs(often - 0.25).max() < 0.1


def test_equal_rows_stay_together_and_weights_count():
    data, _ = make_task(n=40)
    twice = PathTask(np.repeat(data.X, 2, axis=0), np.repeat(data.y, 2), data.groups, np.ones(80))
    weighted = PathTask(data.X, data.y, data.groups, np.full(40, 2.0))
    held = split_rows(twice, 0.3, 4)
    np.testing.assert_array_equal(held[::2], held[1::2])
    np.testing.assert_array_equal(held[::2], split_rows(weighted, 0.3, 4))


@pytest.mark.parametrize("rule", [HoldOut(random_state=3), InformationCriterion("bic"), Discrepancy(0.5)])
def test_weights_are_repetitions(rule):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=90)
    data, weighted = make_task(n=90, weight=counts.astype(float))
    repeated = PathTask(
        np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts), data.groups, np.ones(counts.sum()),
        weighted.options,
    )  # fmt: skip
    a, b = rule.choose(weighted), rule.choose(repeated)
    assert a.time == b.time
    np.testing.assert_allclose(a.path.at(a.time), b.path.at(b.time), rtol=0, atol=1e-8)


def test_rules_of_choice():
    times = np.arange(5.0)
    mse = np.array([[5.0, 5.2], [2.1, 2.3], [1.9, 2.3], [2.4, 2.6], [3.0, 3.0]])
    errors = FoldErrors(times, mse, 1.0)
    assert choose_time(errors, "min") == 2.0
    assert choose_time(errors, "1se") == 1.0  # 2.2 <= 2.1 + 0.2


def test_folds_are_those_of_the_splitter():
    from sklearn.model_selection import KFold

    _, task = make_task()
    errors = CrossValidation(KFold(3)).search(task).legs[0].errors
    assert errors.mse.shape == (errors.times.size, 3)
    # the null model of the first fold
    assert errors.mse[0, 0] == pytest.approx(np.mean((task.y[:40] - task.y[40:].mean()) ** 2), rel=1e-9)


def test_grid():
    grid = time_grid(10_000)
    assert grid[0] == 0
    assert grid[-1] == 10_000
    assert (np.diff(grid) >= 1).all()
    assert (np.diff(grid)[grid[1:] > 200] / grid[1:][grid[1:] > 200] < 0.03).all()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (AtTime(-1), "time of AtTime must be at least 0"),
        (AtTime(1.5), "whole number"),
        (HoldOut(fraction=1.2), "between 0 and 1"),
        (HoldOut(patience=0), "patience must be above 0"),
        (InformationCriterion("aic"), "'bic', 'ebic' or 'gcv'"),
        (Discrepancy(-1.0), "sigma must be above 0"),
        (CrossValidation(rule="2se"), "'min' or '1se'"),
        (CrossValidation(cv=1), "n_splits"),
    ],
)
def test_bad_rules(rule, message):
    _, task = make_task()
    with pytest.raises(ValueError, match=message):
        rule.choose(task)


def test_rows_that_are_all_equal_cannot_be_held_out():
    task = PathTask(np.ones((6, 2)), np.ones(6), Groups.from_size(1, 2), np.ones(6))
    with pytest.raises(ValueError, match="all rows are equal"):
        HoldOut().choose(task)


def test_a_fold_without_weight_is_named():
    _, task = make_task(weight=np.r_[np.zeros(60), np.ones(60)])
    with pytest.raises(ValueError, match="Fold 0 has no held-out rows of positive weight"):
        CrossValidation(cv=2).choose(task)


def test_the_theory_window_is_the_formula_of_its_ends():
    """Strong groups on a nearly orthogonal design, where the theorem's window is not empty."""
    data = make_group_sparse(400, 12, 3, design="orthogonal", active=2, values=3.0, sigma=0.05, random_state=0)
    task = PathTask(data.X, data.y, data.groups, np.ones(400), {"max_iter": 100_000, "fit_intercept": False})
    times = {where: TheoryWindow(0.05, where).choose(task).time for where in ("lower", "middle", "upper")}
    assert times["lower"] < times["middle"] < times["upper"]
    choice = TheoryWindow(0.05).choose(task)
    assert chosen_groups(choice) == {0, 1}
    assert np.sum((choice.path.at(choice.time) - data.w_star) ** 2) < 2 * np.sum((data.oracle() - data.w_star) ** 2)
    assert choice.scores["T_lb"].iloc[0] == pytest.approx(choice.time, abs=1)


def test_the_theory_window_needs_its_numbers():
    _, task = make_task()
    with pytest.raises(ValueError, match="sigma must be above 0"):
        TheoryWindow(0.0).choose(task)
    with pytest.raises(ValueError, match="'lower', 'middle' or 'upper'"):
        TheoryWindow(0.5, "end").choose(task)
