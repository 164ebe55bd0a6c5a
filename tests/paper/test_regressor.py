"""The paper's method as an estimator: the algorithms to the letter, and every way to choose when to stop."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from covey import Groups
from covey.datasets import make_group_sparse
from covey.paper import AtTime, NetworkRegressor, TheoryWindow
from covey.paper.dynamics import normalized_descent
from covey.selection import Discrepancy, HoldOut, InformationCriterion, Size


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(random_state=0)


# a hold-out depends on the order of the rows, so that the checks of weights need another rule
@parametrize_with_checks([NetworkRegressor(stopping=AtTime(500), max_iter=2000)])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("algorithm", [1, 2])
def test_the_preset_is_the_paper_to_the_letter(data, algorithm):
    second = {"direction_step": 1e-3, "switch_tol": 0.02} if algorithm == 2 else {}
    model = NetworkRegressor.paper(algorithm, data.groups, stopping=AtTime(900), **second).fit(data.X, data.y)
    options = {"direction_step": 1e-3, "switch": 0.02} if algorithm == 2 else {}
    path = normalized_descent(
        data.X, data.y, data.groups, init_scale=1e-6, step_size=1e-3, n_steps=900, record_every=10, **options
    )
    np.testing.assert_array_equal(model.trajectory_.w, path.w)
    assert model.trajectory_.switch == path.switch
    awake = np.isin(data.groups.labels, [data.groups.position(name) for name in model.selected_groups_])
    np.testing.assert_array_equal(model.coef_[awake], path.w[-1][awake])
    assert not model.coef_[~awake].any()
    assert model.intercept_ == 0


RULES = [
    "holdout", 4, KFold(3), "aic", "ebic", "bic", "gcv", "discrepancy", Discrepancy(0.5),
    InformationCriterion("ebic", 0.5), AtTime(1200),
]  # fmt: skip


@pytest.mark.parametrize("stopping", RULES, ids=str)
def test_every_rule_stops_with_the_groups_of_the_truth(data, stopping):
    model = NetworkRegressor(3, stopping=stopping).fit(data.X, data.y)
    assert set(model.selected_groups_) == {0, 1, 2}
    assert np.abs(model.coef_ - data.w_star).max() < 0.2
    assert model.scores_["time"].iloc[0] == (1200 if isinstance(stopping, AtTime) else 0)


@pytest.mark.parametrize("settings", [{"algorithm": 2}, {"depth": 3}, {"algorithm": "flow"}, {"standardize": "column"}])
def test_every_dynamics(data, settings):
    model = NetworkRegressor(3, random_state=0, **settings).fit(data.X, data.y)
    assert set(model.selected_groups_) == {0, 1, 2}
    assert np.abs(model.coef_ - data.w_star).max() < 0.2


def test_validation_rows(data):
    X, y = data.X[:110], data.y[:110]
    rest = HoldOut(validation=(data.X[110:], data.y[110:]))
    model = NetworkRegressor(3, stopping=rest).fit(X, y)
    errors = np.mean((data.y[110:] - model.predict(data.X[110:])) ** 2)
    assert errors == pytest.approx(model.scores_["mse"][model.scores_["time"] == model.time_].iloc[0])
    assert errors <= 1.003 * model.scores_["mse"].min() * (1 + 1e-9)


@pytest.mark.parametrize("where", ["lower", "middle", "upper"])
def test_the_window_of_the_theorem(data, where):
    model = NetworkRegressor.paper(1, 3, stopping=TheoryWindow(0.5, where))
    with pytest.warns(UserWarning, match="does not apply here"):
        model.fit(data.X, data.y)
    assert set(model.selected_groups_) == {0, 1, 2}
    row = model.scores_.iloc[0]
    assert row["T_lb"] <= model.time_ + 1
    assert model.time_ <= row["T_ub"] + 1


def test_no_window_names_a_start_that_opens_one():
    data = make_group_sparse(100, 60, 3, active=2, values=0.3, sigma=0.5, random_state=0)
    with pytest.raises(ValueError, match=r"There is no window: the weakest group found .* (Set init_scale=|No start)"):
        NetworkRegressor(3, stopping=TheoryWindow(0.5), init_scale=1e-3).fit(data.X, data.y)


def test_weights_are_repetitions(data):
    weight = np.random.default_rng(0).integers(0, 3, len(data.y))
    rows = np.repeat(np.arange(len(data.y)), weight)
    model = NetworkRegressor(3, stopping=AtTime(700))
    found = clone(model).fit(data.X, data.y, sample_weight=weight)
    expected = model.fit(data.X[rows], data.y[rows])
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    assert found.intercept_ == pytest.approx(expected.intercept_)


def test_units_do_not_matter_unless_columns_are_raw(data):
    model = NetworkRegressor(3, random_state=0).fit(data.X, data.y)
    other = NetworkRegressor(3, random_state=0).fit(data.X * 1e3, data.y * 1e-5 + 4)
    np.testing.assert_allclose(other.coef_, model.coef_ * 1e-8, rtol=1e-6, atol=1e-14)
    assert other.time_ == model.time_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": 3}, "algorithm must be 1, 2 or 'flow'"),
        ({"depth": 1}, "depth must be at least 2"),
        ({"init_scale": 0}, "init_scale must be"),
        ({"step_size": -1.0}, "step_size must be"),
        ({"rule": "best", "stopping": 3}, "rule must be"),
        ({"stopping": Size(3)}, "chooses among the candidates"),
        ({"stopping": "never"}, "stopping must be"),
        ({"stopping": AtTime(10**6)}, "lies beyond max_iter"),
        ({"stopping": TheoryWindow(0.5), "depth": 3}, "depth=2"),
        ({"stopping": TheoryWindow(0.5), "init_scale": 0.5}, "init_scale=0.5 is too large for TheoryWindow"),
        ({"stopping": HoldOut(validation=(np.eye(2), [1.0, 2.0]))}, "validation must be rows of X"),
        ({"groups": Groups.from_lists([[0, 1], list(range(1, 300))], overlap=True)}, "must not overlap"),
    ],
)
def test_bad_parameters(data, options, message):
    with pytest.raises(ValueError, match=message):
        NetworkRegressor(**{"groups": 3, **options}).fit(data.X, data.y)
    with pytest.raises(ValueError, match="algorithm must be 1 or 2"):
        NetworkRegressor.paper(3)


def test_a_step_that_is_too_large_is_warned_of(data):
    model = NetworkRegressor.paper(1, 3, step_size=1.0, stopping=AtTime(300))
    with pytest.warns(UserWarning, match="diverged"):
        model.fit(data.X, data.y)
