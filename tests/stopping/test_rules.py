"""Each rule against what it promises, recomputed by other means."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import comb

from covey import Groups
from covey.datasets import make_group_sparse
from covey.path import Path
from covey.stopping import AtTime, Discrepancy, InformationCriterion, PathTask


def make_task(n=120, p=60, size=3, active=4, sigma=0.5, weight=None, seed=0, **options):
    data = make_group_sparse(n, p, size, design="gaussian", active=active, values=1.0, sigma=sigma, random_state=seed)
    weight = np.ones(n) if weight is None else weight
    return data, PathTask(data.X, data.y, data.groups, weight, {"max_iter": 100_000} | options)


def chosen_groups(choice):
    return set(np.flatnonzero(choice.path.group_norms[choice.position]).tolist())


ALL = {
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
    assert choice.time in choice.scores["time"].to_numpy()


def test_the_extended_criterion_selects_nothing_else():
    _, task = make_task()
    assert chosen_groups(ALL["ebic"].choose(task)) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["ebic", "discrepancy"])
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


@pytest.mark.parametrize("rule", [InformationCriterion("bic"), Discrepancy(0.5)])
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


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (AtTime(-1), "time of AtTime must be at least 0"),
        (AtTime(1.5), "whole number"),
        (InformationCriterion("aic"), "'bic', 'ebic' or 'gcv'"),
        (Discrepancy(-1.0), "sigma must be above 0"),
    ],
)
def test_bad_rules(rule, message):
    _, task = make_task()
    with pytest.raises(ValueError, match=message):
        rule.choose(task)


def test_a_task_prepares_its_problem_once_and_another_one_for_other_rows():
    _, task = make_task()
    assert task.design is task.design
    assert task.runner is task.runner
    half = task.on(np.arange(120) < 60)
    assert half.design is task.design
    assert half.runner is not task.runner
    assert half.n_effective == 60


def test_a_task_says_what_happens(capsys):
    data, task = make_task()
    PathTask(data.X, data.y, data.groups, task.weight, {"max_iter": 200}, verbose=2).path()
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("1 groups awake")
    assert said[-1].startswith("[covey] path to iteration 200")


def test_the_noise_is_the_residual_over_what_freedom_leaves():
    """``sqrt(rss/(n - df))`` at the least of generalised cross-validation, recomputed from the model there."""
    from covey.stopping.discrepancy import estimate_sigma

    for intercept in (True, False):
        _, task = make_task(n=60, fit_intercept=intercept)
        choice = InformationCriterion("gcv").choose(task)
        w, b = choice.model
        df = 3 * len(chosen_groups(choice)) + intercept
        rss = np.sum((task.y - task.X @ w - b) ** 2)
        assert estimate_sigma(task) == pytest.approx(np.sqrt(rss / (60 - df)), rel=1e-9)


def test_awake_groups_and_their_freedom_are_counted_at_their_times():
    """A group counts from its own time on, the time itself included."""
    from covey.stopping.information import awake_counts, degrees_of_freedom

    times = np.array([0, 5, 10, 11, 30])
    entered = [(2, 10.0), (0, 5.0), (1, 11.0)]
    path = Path(times, sp.csr_array((5, 6)), np.zeros(5), Groups.from_sizes([1, 2, 3]), entered)
    np.testing.assert_array_equal(awake_counts(path), [0, 1, 2, 3, 3])
    np.testing.assert_array_equal(degrees_of_freedom(path, False), [0, 1, 4, 6, 6])
    np.testing.assert_array_equal(degrees_of_freedom(path, True), [1, 2, 5, 7, 7])


def test_of_scores_that_are_equal_to_nine_digits_the_earliest_wins():
    from covey.stopping.monitor import earliest_least

    for size in (1e-3, 1.0, 1e3):
        scores = size * np.array([2.0, 1.0 + 5e-10, 1.0, 1.5])
        assert earliest_least(scores) == 1
        assert earliest_least(size * np.array([2.0, 1.0 + 2e-9, 1.0, 1.5])) == 2
        assert earliest_least(-size * np.array([0.5, 1.0 - 5e-10, 1.0])) == 1
    # near zero the unit says what matters
    assert earliest_least(np.array([1.0, 5e-8, 0.0]), unit=100.0) == 1
    assert earliest_least(np.array([1.0, 5e-8, 0.0]), unit=10.0) == 2
