"""The scikit-learn front."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from covey import Groups, GroupSparseRegressor, GroupSparseRegressorCV, TermGroups
from covey.datasets import load_diabetes_splines, make_group_sparse
from covey.stopping import AtTime, HoldOut
from search_problems import misleading

BOTH = [GroupSparseRegressor, GroupSparseRegressorCV]


@parametrize_with_checks([GroupSparseRegressor(), GroupSparseRegressorCV(cv=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(120, 60, 3, design="gaussian", active=4, values=1.0, sigma=0.5, random_state=0)


def fit(estimator, data, **options):
    seed = {"random_state": 0} if estimator is GroupSparseRegressor else {}
    return estimator(groups=data.groups, **(seed | options)).fit(data.X, data.y)


@pytest.mark.parametrize("estimator", BOTH)
def test_attributes(estimator, data):
    model = fit(estimator, data)
    assert model.coef_.shape == (60,)
    assert isinstance(model.intercept_, float)
    assert model.n_features_in_ == 60
    assert set(model.selected_groups_) >= {0, 1, 2, 3}
    np.testing.assert_allclose(model.group_norms_, data.groups.norms(model.coef_), rtol=1e-12)
    assert {l for l, norm in enumerate(model.group_norms_) if norm > 0} == set(model.selected_groups_)
    np.testing.assert_allclose(model.path_.at(model.n_iter_), model.coef_)
    np.testing.assert_allclose(model.predict(data.X), data.X @ model.coef_ + model.intercept_)
    assert model.score(data.X, data.y) > 0.9


def test_cv_attributes(data):
    model = fit(GroupSparseRegressorCV, data)
    assert model.mse_path_.shape == (len(model.times_), 5)
    assert model.best_time_ == model.times_[np.argmin(model.mse_path_.mean(axis=1))] == model.n_iter_
    assert model.times_by_rule_["1se"] <= model.best_time_
    sparser = fit(GroupSparseRegressorCV, data, rule="1se")
    assert sparser.best_time_ == sparser.times_by_rule_["1se"] == sparser.n_iter_
    assert len(sparser.selected_groups_) <= len(model.selected_groups_)


@pytest.mark.parametrize("estimator", BOTH)
def test_no_groups_is_a_sparse_linear_model(estimator):
    data = make_group_sparse(100, 40, 1, design="gaussian", active=4, values=[1, -1, 2, -2], random_state=0)
    seed = {"random_state": 0} if estimator is GroupSparseRegressor else {}
    model = estimator(**seed).fit(data.X, data.y)
    assert set(model.selected_groups_) >= {0, 1, 2, 3}
    np.testing.assert_allclose(model.coef_, data.w_star, atol=0.4)


@pytest.mark.parametrize("estimator", BOTH)
def test_data_frame_in_names_out(estimator):
    data = load_diabetes_splines()
    model = estimator(groups=data.groups).fit(data.X, data.y)
    assert model.feature_names_in_.tolist() == data.X.columns.tolist()
    assert set(model.selected_groups_) <= set(data.groups.names)
    assert {"bmi", "s5"} <= set(model.selected_groups_)
    table = model.group_table()
    assert table.index.tolist() == model.selected_groups_
    assert table["woke_up"].is_monotonic_increasing


@pytest.mark.parametrize("groups", [{"a": ["x1", "x2"], "b": ["x3"]}, [["x1", "x2"], ["x3"]], ["a", "a", "b"]])
def test_groups_by_column_names(groups):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["x1", "x2", "x3"])
    y = X["x1"] - X["x2"] + 0.1 * rng.standard_normal(60)
    model = GroupSparseRegressor(groups=groups, random_state=0).fit(X, y)
    assert model.selected_groups_[0] in ("a", 0)
    np.testing.assert_allclose(model.coef_, [1, -1, 0], atol=0.1)


@pytest.mark.parametrize("estimator", BOTH)
def test_the_intercept_and_units_are_the_users(estimator, data):
    plain = fit(estimator, data)
    shifted = clone(plain).fit(1000 * data.X + 7, 5 * data.y - 3)
    np.testing.assert_allclose(shifted.coef_, 5 * plain.coef_ / 1000, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(shifted.predict(1000 * data.X + 7), 5 * plain.predict(data.X) - 3, rtol=1e-2, atol=0.02)


def test_without_intercept(data):
    model = fit(GroupSparseRegressor, data, fit_intercept=False)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize(
    "stopping", ["holdout", "ebic", "bic", "gcv", "discrepancy", "cv", 300, AtTime(300), HoldOut(0.3)]
)
def test_every_stopping(stopping, data):
    model = fit(GroupSparseRegressor, data, stopping=stopping)
    assert set(model.selected_groups_) >= {0, 1, 2, 3}
    if stopping == 300:
        assert model.n_iter_ == 300


def test_warm_start_goes_on(data):
    whole = fit(GroupSparseRegressor, data, stopping=400)
    model = fit(GroupSparseRegressor, data, stopping=200, warm_start=True)
    half = model.coef_.copy()
    model.set_params(stopping=400).fit(data.X, data.y)
    assert model.n_iter_ == 400
    assert model.path_.times[0] >= 200
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-3, atol=1e-5)
    assert not np.allclose(half, whole.coef_, rtol=1e-3)


def test_warm_start_is_off_by_default(data):
    model = fit(GroupSparseRegressor, data, stopping=200)
    first = model.coef_.copy()
    np.testing.assert_array_equal(model.fit(data.X, data.y).coef_, first)


@pytest.mark.parametrize("estimator", BOTH)
def test_pickle_and_clone(estimator, data):
    model = fit(estimator, data)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))
    assert again.path_.groups == model.path_.groups
    assert clone(model).get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize("estimator", BOTH)
def test_float32_is_kept(estimator, data):
    options = {"random_state": 0} if estimator is GroupSparseRegressor else {}
    model = estimator(groups=3, **options).fit(data.X.astype(np.float32), data.y.astype(np.float32))
    assert model.coef_.dtype == np.float32
    assert model.predict(data.X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model.coef_, fit(estimator, data).coef_, atol=0.05)


def test_in_a_pipeline_and_a_grid_search(data):
    pipeline = make_pipeline(StandardScaler(), GroupSparseRegressor(groups=3, random_state=0))
    assert cross_val_score(pipeline, data.X, data.y, cv=3).min() > 0.8
    search = GridSearchCV(pipeline, {"groupsparseregressor__group_weights": ["sqrt", None]}, cv=3).fit(data.X, data.y)
    assert search.best_score_ > 0.8


def test_blocks_of_a_column_transformer_stay_whole():
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, n), "town": rng.choice(list("uvw"), n), "noise": rng.standard_normal(n)}
    )
    y = np.sin(frame["age"] / 10) + frame["town"].map({"u": 0.0, "v": 1.0, "w": -1.0}) + 0.1 * rng.standard_normal(n)
    columns = ColumnTransformer(
        [("spline", SplineTransformer(5), ["age", "noise"]), ("hot", OneHotEncoder(sparse_output=False), ["town"])]
    ).set_output(transform="pandas")
    model = make_pipeline(columns, GroupSparseRegressorCV(groups=TermGroups(frame.columns), rule="1se")).fit(frame, y)
    assert set(model[-1].selected_groups_) == {"age", "town"}
    assert model.score(frame, y) > 0.9
    fitted = TermGroups.from_transformer(columns)
    assert fitted == TermGroups(frame.columns)
    assert Groups.coerce(fitted, 17, model[-1].feature_names_in_).sizes.tolist() == [7, 7, 3]


@pytest.mark.parametrize("cv", [TimeSeriesSplit(3), GroupKFold(3), [(np.arange(60), np.arange(60, 120))]])
def test_any_splitter(cv, data):
    model = GroupSparseRegressorCV(groups=3, cv=cv)
    model.fit(data.X, data.y, split_groups=np.arange(120) % 6 if isinstance(cv, GroupKFold) else None)
    assert set(model.selected_groups_) >= {0, 1, 2, 3}


def test_parallel_folds_agree_bit_for_bit(data):
    one = fit(GroupSparseRegressorCV, data, cv=3)
    two = fit(GroupSparseRegressorCV, data, cv=3, n_jobs=2)
    np.testing.assert_array_equal(one.mse_path_, two.mse_path_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_summary(data, capsys):
    fit(GroupSparseRegressor, data).summary()
    printed = capsys.readouterr().out
    assert "of 20 groups selected" in printed
    assert "woke_up" in printed


def test_which_network_was_chosen_is_told(capsys):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 90))
    y = X @ rng.standard_normal(90) / np.sqrt(90) + 0.5 * rng.standard_normal(120)
    scales, dense, printed = [], [], []
    for init_scale in ("auto", 1e-6, 1e-1):
        model = GroupSparseRegressorCV(groups=3, init_scale=init_scale, restarts=1).fit(X, y)
        scales.append(model.init_scale_)
        dense.append(model.dense_network_)
        model.summary()
        printed.append(capsys.readouterr().out)
    assert scales[0] in (1e-2, 1e-1)
    assert scales[1:] == [1e-6, 1e-1]
    assert dense == [True, False, False]  # the last one was asked for
    assert f"A dense network was chosen, started from {scales[0]:g}" in printed[0]
    assert "init_scale=1e-06" in printed[0]
    assert not any("dense" in text for text in printed[1:])


def test_a_restart_is_told(capsys):
    X, y, groups, _ = misleading()
    model = GroupSparseRegressorCV(groups=groups).fit(X, y)
    (time,) = model.path_.restarted
    model.summary()
    assert f"restarted at {time:g}, stopped at iteration {model.n_iter_}\n" in capsys.readouterr().out


def test_summary_of_an_empty_model(capsys):
    rng = np.random.default_rng(0)
    GroupSparseRegressor(stopping=1).fit(rng.standard_normal((20, 3)), rng.standard_normal(20)).summary()
    assert "0 of 3 groups selected" in capsys.readouterr().out


def test_verbose_tells(data, capsys):
    fit(GroupSparseRegressor, data, verbose=2)
    printed = capsys.readouterr().out
    assert "groups awake" in printed
    assert "path to iteration" in printed


@pytest.mark.parametrize("estimator", BOTH)
def test_a_limit_that_cuts_the_path_is_said_aloud(estimator, data):
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        estimator(groups=3, max_iter=125).fit(data.X, data.y)


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_units(estimator, scale, data):
    model = fit(estimator, data)
    extreme = clone(model).fit(data.X, scale * data.y)
    np.testing.assert_allclose(extreme.coef_ / scale, model.coef_, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    "case",
    ["p = 1", "n = 3", "wide", "group larger than n", "equal columns", "y constant", "zero group", "copied group"],
)
def test_degenerate_data_give_finite_answers(estimator, case):
    rng = np.random.default_rng(0)
    X, y, groups = rng.standard_normal((30, 6)), rng.standard_normal(30), 3
    if case == "p = 1":
        X, groups = X[:, :1], 1
    elif case == "n = 3":
        X, y = X[:3], y[:3]
    elif case == "wide":
        X = rng.standard_normal((30, 600))
    elif case == "group larger than n":
        X, groups = rng.standard_normal((30, 100)), 50
    elif case == "equal columns":
        X[:] = X[:, :1]
    elif case == "y constant":
        y[:] = 4.0
    elif case == "zero group":
        X[:, :3] = 0
    elif case == "copied group":
        X[:, 3:] = X[:, :3]
    options = {"cv": 3} if estimator is GroupSparseRegressorCV else {"random_state": 0}
    model = estimator(groups=groups, **options).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X)).all()
    if case == "y constant":
        assert not model.coef_.any()
        assert model.intercept_ == pytest.approx(4.0)
    if case == "zero group":
        assert not model.coef_[:3].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 7}, "would be left over"),
        ({"groups": [1, 2]}, "2 entries, but X has 60 columns"),
        ({"groups": Groups.from_sizes([61])}, "for 61 columns, but X has 60"),
        ({"groups": TermGroups(["a"])}, "pass a DataFrame"),
        ({"stopping": "never"}, "stopping must be 'holdout'"),
        ({"stopping": True}, "stopping must be 'holdout'"),
        ({"validation_fraction": 0.0}, "between 0 and 1"),
        ({"algorithm": "three-stage"}, "algorithm must be one of"),
        ({"init_scale": 0.0}, "init_scale must be above 0"),
        ({"step_size": -1.0}, "step_size must be above 0"),
        ({"step_size": "fast"}, "step_size must be 'auto' or a number"),
        ({"depth": 1}, "depth must be at least 2"),
        ({"group_weights": [1.0]}, "there are 20 groups"),
        ({"standardize": "rows"}, "standardize must be"),
        ({"engine": "steam"}, "engine must be one of"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
    ],
)
def test_bad_parameters(options, message, data):
    with pytest.raises(ValueError, match=message):
        GroupSparseRegressor(**({"groups": 3} | options)).fit(data.X, data.y)


def test_bad_data(data):
    with pytest.raises(ValueError, match="sample_weight"):
        GroupSparseRegressor(groups=3).fit(data.X, data.y, sample_weight=-np.ones(120))
    with pytest.raises(ValueError, match="at least one non-zero"):
        GroupSparseRegressor(groups=3).fit(data.X, data.y, sample_weight=np.zeros(120))
    with pytest.raises(NotFittedError):
        GroupSparseRegressor().predict(data.X)
    with pytest.raises(ValueError, match="rule must be"):
        GroupSparseRegressorCV(rule="best").fit(data.X, data.y)
    with pytest.raises(ValueError, match="starts with none of the inputs 'a'"):
        TermGroups(["a"])(["b_1"])
    with pytest.raises(ValueError, match="fit it on a DataFrame"):
        TermGroups.from_transformer(StandardScaler())


@pytest.mark.parametrize("estimator", BOTH)
def test_strength_is_the_spread_of_a_groups_part_of_the_prediction(estimator):
    data = load_diabetes_splines()
    model = estimator(groups=data.groups, average=False).fit(data.X, data.y)
    X = data.X.to_numpy()
    for l, columns in enumerate(data.groups.lists()):
        assert model.group_strengths_[l] == pytest.approx(
            np.std(X[:, columns] @ model.coef_[columns]), rel=1e-6, abs=1e-9
        )
