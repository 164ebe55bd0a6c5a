"""The search with folds as judges."""

import numpy as np
import pytest

import covey
from covey import Groups, GroupSparseRegressor, GroupSparseRegressorCV
from covey.stopping import CrossValidation, fold_search
from covey.stopping.fold_errors import FoldErrors, FoldRun, align, as_run, choose_time
from search_problems import equicorrelated, misleading, task_of

TRUE = {3, 19, 21}


def fit(X, y, groups, **settings):
    return GroupSparseRegressorCV(groups, **{"cv": 4, "factors": 0, "init_scale": 1e-6, **settings}).fit(X, y)


@pytest.mark.parametrize("seed", range(3))
def test_restarts_find_the_true_groups_where_the_plain_path_has_false_ones(seed):
    X, y, groups, w = misleading(seed=seed)
    plain, cleaned = fit(X, y, groups, restarts=0), fit(X, y, groups, restarts=2)
    assert set(plain.selected_groups_) > TRUE
    assert set(cleaned.selected_groups_) == TRUE
    columns = np.concatenate([groups.lists()[l] for l in sorted(TRUE)])
    A = np.column_stack([X[:, columns], np.ones(len(y))])
    oracle = np.linalg.lstsq(A, y, rcond=None)[0][:-1]
    np.testing.assert_allclose(cleaned.coef_[columns], oracle, atol=0.02)
    assert np.sum((cleaned.coef_ - w) ** 2) < np.sum((plain.coef_ - w) ** 2)


def test_what_is_kept_of_the_errors():
    X, y, groups, _ = misleading()
    model = fit(X, y, groups)
    assert model.mse_path_.shape == (model.times_.size, 4)
    assert (np.diff(model.times_) > 0).all()
    assert np.isfinite(model.mse_path_).all()
    assert model.best_time_ in model.times_
    assert model.best_time_ == model.times_by_rule_["min"]
    assert model.path_.index(model.best_time_) >= 0


@pytest.mark.parametrize("restarts", [0, 2])
def test_the_rule_of_one_standard_error(restarts):
    X, y, groups, _ = misleading()
    model = fit(X, y, groups, restarts=restarts, rule="1se")
    mean = model.mse_path_.mean(axis=1)
    best = int(np.argmin(mean))
    limit = mean[best] + model.mse_path_[best].std(ddof=1) / np.sqrt(4)
    assert model.best_time_ == model.times_[np.flatnonzero(mean <= limit)[0]]
    assert model.best_time_ <= model.times_by_rule_["min"]
    assert model.n_iter_ == model.best_time_
    assert set(model.selected_groups_) >= TRUE


def test_folds_side_by_side_give_the_same():
    X, y, groups, _ = misleading(seed=1)
    one, two = (fit(X, y, groups, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.times_, two.times_)
    # sums of rows that lie elsewhere in memory differ in their last bits
    np.testing.assert_allclose(one.mse_path_, two.mse_path_, rtol=1e-10)


def test_checkpoints_serve_every_leg(tmp_path, monkeypatch):
    X, y, groups, _ = misleading(seed=1)
    plain, undisturbed = fit(X, y, groups), fit(X, y, groups, checkpoint=tmp_path / "other")
    np.testing.assert_allclose(undisturbed.coef_, plain.coef_, atol=1e-10)
    tmp_path = tmp_path / "own"
    honest, runs = fold_search.run_fold, []

    def counted(*args, **options):
        runs.append(args)
        return honest(*args, **options)

    monkeypatch.setattr(fold_search, "run_fold", counted)
    first = fit(X, y, groups, checkpoint=tmp_path)
    of_all = len(runs)
    names = {file.name.split("-fold")[0] for file in tmp_path.rglob("*.json")}
    assert "patience-3-restart-0" in names
    assert of_all == len(list(tmp_path.rglob("*.json")))
    runs.clear()
    again = fit(X, y, groups, checkpoint=tmp_path)
    assert not runs
    # cut off in the middle of a restart
    next(tmp_path.rglob("patience-3-restart-0-fold-2.json")).unlink()
    resumed = fit(X, y, groups, checkpoint=tmp_path)
    assert len(runs) == 1
    for model in (first, again, resumed):
        np.testing.assert_array_equal(model.coef_, undisturbed.coef_)
        np.testing.assert_array_equal(model.mse_path_, undisturbed.mse_path_)
    # other settings of the search are other work
    for other in ({"restarts": 1}, {"init_scale": 1e-5}):
        runs.clear()
        fit(X, y, groups, checkpoint=tmp_path, **other)
        assert runs


def test_checkpoints_tell_patience_apart(tmp_path):
    X, y, groups, _ = misleading(seed=1)
    task = task_of(X, y, groups, restarts=1)
    CrossValidation(3, checkpoint=tmp_path).search(task)
    kept = CrossValidation(3, patience=5.0, checkpoint=tmp_path).search(task)
    fresh = CrossValidation(3, patience=5.0).search(task)
    assert len(kept.legs) == len(fresh.legs) > 1
    for one, other in zip(kept.legs, fresh.legs, strict=True):
        np.testing.assert_array_equal(one.errors.times, other.errors.times)
        np.testing.assert_allclose(one.errors.mse, other.errors.mse, rtol=1e-10)


def test_dense_signals_are_fitted_by_a_dense_leg():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 90))
    w = rng.standard_normal(90) / np.sqrt(90)
    y = X @ w + 0.5 * rng.standard_normal(120)
    sparse, free = (fit(X, y, 3, restarts=1, init_scale=scale) for scale in (1e-6, "auto"))
    assert len(free.selected_groups_) == 30
    assert np.sum((free.coef_ - w) ** 2) < 0.6 * np.sum((sparse.coef_ - w) ** 2)


# ---------------------------------------------------------------------- errors on the common grid


def test_folds_are_cut_to_what_all_of_them_know():
    grid = np.array([0, 1, 2, 4, 8, 16])
    short = FoldRun([0.0, 1.0, 4.0], [9.0, 5.0, 3.0], 4.0, [], [])
    done = FoldRun([0.0, 2.0], [8.0, 2.0], np.inf, [], [])
    errors = align([short, done], grid, 0.5)
    np.testing.assert_array_equal(errors.times, [0, 1, 2, 4])
    np.testing.assert_array_equal(errors.mse, [[9, 8], [5, 8], [5, 2], [3, 2]])
    assert as_run([[0.0], [1.0], float("inf"), [["3", 2]], []]).entered == [(3, 2.0)]


def test_one_standard_error_of_the_folds():
    mse = np.array([[9.0, 9.0], [2.2, 2.0], [2.0, 1.0], [2.5, 2.5]])
    errors = FoldErrors(np.arange(4.0), mse, 1.0)
    assert choose_time(errors, "min") == 2.0
    assert errors.standard_error[2] == pytest.approx(0.5)
    # 1.5 + 0.5 is below 2.1
    assert choose_time(errors, "1se") == 2.0
    wider = FoldErrors(np.arange(4.0), mse + np.array([[0, 0], [0, 0], [0.2, -0.2], [0, 0]]), 1.0)
    assert choose_time(wider, "1se") == 1.0


# ---------------------------------------------------------------------- factors


@pytest.fixture(scope="module")
def common():
    """An equicorrelated design in which three of forty groups matter, and rows to judge by."""
    rng = np.random.default_rng(3)
    X, fresh = equicorrelated(rng, 150, 120), equicorrelated(rng, 1000, 120)
    w = np.zeros(120)
    w[:9] = 1.0
    return X, X @ w + rng.standard_normal(150), Groups.from_size(3, 120), w, fresh


@pytest.mark.parametrize("kind", [GroupSparseRegressor, GroupSparseRegressorCV])
def test_the_model_with_factors_is_one_on_the_columns(kind, common, tmp_path):
    X, y, groups, _, fresh = common
    seeded = {} if kind is GroupSparseRegressorCV else {"random_state": 0}
    model = kind(groups, average=False, **seeded).fit(X, y)
    assert model.n_factors_ == 1
    assert np.count_nonzero(model.coef_) == 120
    assert {0, 1, 2} <= set(model.selected_groups_)
    assert len(model.selected_groups_) < 10
    np.testing.assert_array_equal(np.flatnonzero(model.group_norms_), sorted(model.selected_groups_))
    expected = fresh @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(fresh), expected, atol=1e-10)
    np.testing.assert_allclose(model.path_.predict(fresh)[:, model.path_.index(model.n_iter_)], expected, atol=1e-8)
    covey.save(model, tmp_path / "model.covey")
    again = covey.load(tmp_path / "model.covey")
    np.testing.assert_array_equal(again.predict(fresh), model.predict(fresh))
    assert again.selected_groups_ == model.selected_groups_
    assert again.n_factors_ == 1


def test_factors_lower_the_error(common):
    X, y, groups, w, fresh = common
    errors = []
    for factors in (1, 0):
        # without factors all groups are awake by then, and each iteration is slow
        model = GroupSparseRegressor(groups, factors=factors, restarts=0, stopping=200).fit(X, y)
        errors.append(np.mean((fresh @ (model.coef_ - w) + model.intercept_) ** 2))
    assert errors[0] < errors[1] / 2


# ---------------------------------------------------------------------- parameters


@pytest.mark.parametrize("kind", [GroupSparseRegressor, GroupSparseRegressorCV])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"restarts": -1}, "restarts must be at least 0, not -1"),
        ({"restarts": 1.5}, "restarts must be a whole number, not 1.5"),
        ({"factors": "x"}, "factors must be 'auto' or a whole number of at least 0, not 'x'"),
        ({"factors": -2}, "factors must be at least 0, not -2"),
        ({"init_scale": "x"}, "init_scale must be 'auto' or a number above 0, not 'x'"),
        ({"init_scale": 0.0}, "init_scale"),
    ],
)
def test_wrong_parameters_are_named(kind, wrong, message, common):
    X, y, groups, *_ = common
    with pytest.raises(ValueError, match=message):
        kind(groups, **wrong).fit(X, y)
