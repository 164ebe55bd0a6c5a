"""Every loss through the estimators: one model, independent fits, offsets, labels, groups that are always in."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import covey
from covey import Groups, GroupSparseClassifier, GroupSparseRegressor
from covey.losses import Quantile, get_loss
from covey.selection import Folds, HoldOut, Size
from estimator_problems import assert_one_model, coded, linear_predictor
from loss_problems import KINDS, MAIN, Quadratic, estimator, grouped_problem

QUICK = [kind for kind in KINDS if kind != "quantiles"]


@parametrize_with_checks(
    [
        GroupSparseClassifier(selection=Folds(2, deals=1)),
        GroupSparseRegressor(loss="poisson", selection="bic"),
        GroupSparseRegressor(loss="huber", selection="ebic"),
    ]
)
@pytest.mark.filterwarnings("ignore:.*rows are so far outside the rows of fit")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ fits that are not covey's


def refitted(kind, X, y, model, weight):
    """Coefficients on the selected columns by scikit-learn; (n_outputs, n_columns)."""
    if kind in ("two classes", "three classes"):
        peer = LogisticRegression(C=1e9, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(X, y, weight)
        return peer.coef_ - (peer.coef_.mean(axis=0) if len(peer.coef_) > 1 else 0)
    if kind == "ordered classes":
        api = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
        rows = np.repeat(np.arange(len(y)), weight.astype(int))
        fit = api.OrderedModel(y[rows], X[rows], distr="logit").fit(method="bfgs", gtol=1e-8, maxiter=2000, disp=0)
        thresholds = fit.model.transform_threshold_params(fit.params)[1:-1]
        np.testing.assert_allclose(model.loss_.thresholds - model.intercept_, thresholds, atol=1e-6)
        return fit.params[None, : X.shape[1]]
    if kind == "several":
        return LinearRegression().fit(X, y, weight).coef_
    if kind == "proportions":
        twice = np.concatenate([weight * y, weight * (1 - y)])
        twin = LogisticRegression(C=1e9, tol=1e-12, max_iter=10_000, solver="newton-cg")
        return twin.fit(np.vstack([X, X]), np.repeat([1, 0], len(y)), twice).coef_
    if kind in ("negative-binomial", "tweedie"):
        api = pytest.importorskip("statsmodels.api")
        families, log = api.families, api.families.links.Log()
        if kind == "tweedie":
            family = families.Tweedie(var_power=model.loss_.power, link=log)
        else:
            family = families.NegativeBinomial(alpha=model.loss_.overdispersion, link=log)
        fit = api.GLM(y, api.add_constant(X), family=family, var_weights=weight).fit(tol=1e-14, maxiter=500)
        return fit.params[None, 1:]
    twin = {"poisson": PoissonRegressor, "gamma": GammaRegressor}[kind]
    return twin(alpha=0, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y, weight).coef_[None, :]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huber", "quantile", "quantiles")])
def test_coefficients_are_those_of_scikit_learn_on_the_selected_groups(kind):
    X, y, groups = grouped_problem(kind, n=200)
    rng = np.random.default_rng(0)  # the peer of ordered classes takes no weights, and has rows repeated
    weight = rng.integers(1, 4, len(y)) if kind == "ordered classes" else rng.uniform(0.5, 2, len(y))
    model = estimator(kind, groups, selection=Size(3)).fit(X, y, sample_weight=weight)
    assert set(model.selected_groups_) == {2, 7, 11}
    assert not model.shrunk_
    used = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
    expected = refitted(kind, X[:, used], y, model, weight)
    np.testing.assert_allclose(np.atleast_2d(model.coef_)[:, used], expected, atol=2e-6 * np.abs(expected).max())


def test_estimated_overdispersion_and_coefficients_are_the_joint_maximum_of_the_likelihood():
    api = pytest.importorskip("statsmodels.api")
    X, y, groups = grouped_problem("negative-binomial", n=300)
    model = GroupSparseRegressor(groups, loss="negative-binomial", selection=Size(3)).fit(X, y)
    used = np.flatnonzero(model.coef_)
    start = [model.intercept_, *model.coef_[used], model.loss_.overdispersion]
    peer = api.NegativeBinomial(y, api.add_constant(X[:, used]))
    found = peer.fit(start, method="newton", tol=1e-12, maxiter=100, disp=0).params
    np.testing.assert_allclose([model.intercept_, *model.coef_[used]], found[:-1], atol=1e-6)
    assert model.loss_.overdispersion == pytest.approx(found[-1], rel=2e-3)


@pytest.mark.parametrize("power", [1.2, 1.8])
def test_the_power_of_amounts_is_found(power):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    mean = np.exp(0.3 + 0.6 * X[:, 0] - 0.4 * X[:, 3])
    counts = rng.poisson(mean ** (2 - power) / (1.5 * (2 - power)))
    shape, unit = (2 - power) / (power - 1), 1.5 * (power - 1) * mean ** (power - 1)
    y = np.where(counts > 0, rng.gamma(np.maximum(counts, 1) * shape, unit), 0.0)
    model = GroupSparseRegressor(loss="tweedie", selection=Size(2)).fit(X, y)
    assert set(model.selected_groups_) == {0, 3}
    assert model.loss_.power == pytest.approx(power, abs=0.04)
    np.testing.assert_allclose(model.coef_[[0, 3]], [0.6, -0.4], atol=0.08)
    if power == 1.2:
        far = GroupSparseRegressor(loss="tweedie", selection=Size(2)).fit(X, 1e6 * y)
        assert far.loss_.power == pytest.approx(model.loss_.power, abs=1e-3)
        np.testing.assert_allclose(far.coef_, model.coef_, atol=1e-3)


# ------------------------------------------------------------------ offsets


@pytest.mark.parametrize("kind", ["squared", "poisson", "gamma", "huber", "several"])
def test_an_offset_stands_for_exposure(kind):
    """With a log link a response over its exposure has the weight of it (counts); elsewhere offsets shift."""
    X, y, groups = grouped_problem(kind)
    rng = np.random.default_rng(0)
    offset = rng.uniform(-1, 1, (len(y), 3) if kind == "several" else len(y))
    model = estimator(kind, groups, selection=PredefinedSplit(np.arange(len(y)) % 4))
    if kind == "poisson":
        model.set_params(selection=Size(3))
        found = clone(model).fit(X, y, offset=offset)
        used = np.flatnonzero(found.coef_)
        rates = PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-12)
        rates.fit(X[:, used], y * np.exp(-offset), np.exp(offset))
        assert not found.shrunk_
        np.testing.assert_allclose(found.coef_[used], rates.coef_, atol=1e-6)
        np.testing.assert_allclose(found.predict(X, offset), rates.predict(X[:, used]) * np.exp(offset), rtol=1e-6)
        return
    expected = clone(model).fit(X, y)
    shifted = y * np.exp(offset) if kind == "gamma" else y + offset
    found = clone(model).fit(X, shifted, offset=offset)
    assert found.recipe_ == expected.recipe_
    assert found.selected_groups_ == expected.selected_groups_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-7)
    predicted = expected.predict(X) * np.exp(offset) if kind == "gamma" else expected.predict(X) + offset
    np.testing.assert_allclose(found.predict(X, offset=offset), predicted, rtol=1e-6, atol=1e-6)
    assert found.score(X, shifted, offset=offset) == pytest.approx(expected.score(X, y), abs=1e-9)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_an_offset_of_classes_is_a_column_that_is_always_in_with_coefficient_one(kind):
    X, y, groups = grouped_problem(kind, n=150)
    rng = np.random.default_rng(0)
    offset = rng.standard_normal((150, 3) if kind == "three classes" else 150)
    model = estimator(kind, groups, selection=Size(3)).fit(X, y, offset=offset)
    eta = linear_predictor(model, X) + offset
    score = coded(model, y) - model.loss_.inverse_link(eta)
    used = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
    assert np.abs(X[:, used].T @ score).max() < 1e-5
    np.testing.assert_allclose(model.decision_function(X, offset), eta)
    np.testing.assert_array_equal(model.predict(X, offset), model.classes_[model.predict_proba(X, offset).argmax(1)])


def test_offsets_and_weights_travel_through_pipelines_and_searches():
    X, y, groups = grouped_problem("poisson")
    offset, weight = np.linspace(-1, 1, 60), np.linspace(0.5, 1.5, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GroupSparseRegressor(groups, loss="poisson", selection=Size(1))
        inner.set_fit_request(offset=True, sample_weight=True).set_score_request(offset=True, sample_weight=True)
        inner.set_predict_request(offset=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        piped = pipe.fit(X, y, offset=offset, sample_weight=weight)
        alone = clone(inner).fit(StandardScaler().fit_transform(X), y, weight, offset)
        np.testing.assert_allclose(piped[-1].coef_, alone.coef_)
        np.testing.assert_allclose(
            pipe.predict(X, offset=offset), alone.predict(StandardScaler().fit_transform(X), offset)
        )
        search = GridSearchCV(pipe, {"groupsparseregressor__selection": [Size(1), Size(2)]}, cv=KFold(3))
        search.fit(X, y, offset=offset, sample_weight=weight)
        # the first fold by hand: rows of the offset go with their rows
        train, test = next(iter(KFold(3).split(X)))
        scaler = StandardScaler().fit(X[train])
        hand = clone(inner).fit(scaler.transform(X[train]), y[train], weight[train], offset[train])
        by_hand = hand.score(scaler.transform(X[test]), y[test], weight[test], offset[test])
        assert search.cv_results_["split0_test_score"][0] == pytest.approx(by_hand)


# ------------------------------------------------------------------ the data decide


WEIGHTED = [{}, {"rule": "predict"}, {"selection": "ebic"}]


@pytest.mark.parametrize(
    ("kind", "way"), [(kind, way) for kind in QUICK for way in (WEIGHTED if kind in MAIN else WEIGHTED[:1])]
)
def test_rows_and_groups_in_another_order_in_other_units_and_repeated(kind, way):
    X, y, groups = grouped_problem(kind, "strong", n=50)
    rng = np.random.default_rng(0)
    times, order = rng.integers(0, 4, len(y)), rng.permutation(groups.n_groups)
    rows, unit = rng.permutation(np.repeat(np.arange(len(y)), times)), np.exp(rng.uniform(-4, 4, X.shape[1]))
    other = Groups.from_lists([groups.lists()[l] for l in order])
    expected = estimator(kind, groups, factors=0, **way).fit(X, y, sample_weight=times)
    found = estimator(kind, other, factors=0, **way).fit(unit * (X[rows] + 7), y[rows])
    assert found.recipe_ == expected.recipe_
    assert [int(order[l]) for l in found.selected_groups_] == expected.selected_groups_
    np.testing.assert_allclose(unit * found.coef_, expected.coef_, atol=1e-6 * np.abs(expected.coef_).max())


@pytest.mark.parametrize("factor", [1e-9, 1e9])
@pytest.mark.parametrize("kind", ["huber", "gamma", "several"])
def test_units_of_the_response(kind, factor):
    X, y, groups = grouped_problem(kind, "strong")
    expected, found = estimator(kind, groups).fit(X, y), estimator(kind, groups).fit(X, factor * y)
    assert found.recipe_ == expected.recipe_
    assert found.selected_groups_ == expected.selected_groups_
    unit = 1.0 if kind == "gamma" else factor
    np.testing.assert_allclose(found.coef_ / unit, expected.coef_, atol=1e-6 * np.abs(expected.coef_).max())
    np.testing.assert_allclose(found.predict(X), factor * expected.predict(X), rtol=1e-5, atol=1e-5 * factor)


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_names_of_classes_do_not_matter(kind):
    X, y, groups = grouped_problem(kind, "strong")
    names, codes = np.unique(y, return_inverse=True)
    model = estimator(kind, groups, selection=PredefinedSplit(np.arange(len(y)) % 3))
    expected = clone(model).fit(X, y)
    for labels in (
        codes * 2.0 - 1,
        np.array(["z", "y", "x"])[codes],
        codes == 0 if names.size == 2 else (codes + 1) % 3,
    ):
        found = clone(model).fit(X, labels)
        assert found.recipe_ == expected.recipe_
        assert found.selected_groups_ == expected.selected_groups_
        np.testing.assert_array_equal(found.predict(X) == labels, expected.predict(X) == y)
        first = [int(np.searchsorted(found.classes_, labels[codes == c][0])) for c in range(names.size)]
        np.testing.assert_allclose(found.predict_proba(X)[:, first], expected.predict_proba(X), atol=1e-6)
        assert found.predict(X).dtype == found.classes_.dtype


def test_class_weights_are_weights():
    X, y, groups = grouped_problem("three classes")
    y, weight = np.where(np.arange(len(y)) % 4 == 0, "a", y), np.random.default_rng(1).integers(1, 4, len(y))
    totals = {label: weight[y == label].sum() for label in "abc"}
    for given, factors in (
        ({"b": 3.0, "c": 2.0}, {"a": 1.0, "b": 3.0, "c": 2.0}),
        ("balanced", {label: weight.sum() / 3 / total for label, total in totals.items()}),
    ):
        by_hand = weight * np.array([factors[label] for label in y])
        expected = GroupSparseClassifier(groups, selection=Size(2)).fit(X, y, sample_weight=by_hand)
        model = GroupSparseClassifier(groups, selection=Size(2), class_weight=given)
        np.testing.assert_allclose(model.fit(X, y, sample_weight=weight).coef_, expected.coef_)
        repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(repeated.coef_, expected.coef_, atol=1e-6)


def test_a_class_that_is_one_row_repeated_is_in_every_training_set():
    """It cannot be held out without leaving training rows without it."""
    X, y, _ = grouped_problem("two classes", n=40)
    rows = np.concatenate([np.arange(40), [0, 0, 0]])
    model = GroupSparseClassifier(selection=Folds(4, deals=1)).fit(X[rows], np.concatenate([y, ["z"] * 3]))
    assert model.classes_.tolist() == ["no", "yes", "z"]
    assert model.n_splits_ == 4


def test_validation_rows_with_offsets():
    X, y, _ = grouped_problem("gamma")
    offset = np.linspace(-1, 1, len(y))
    way = HoldOut(validation=(X, y * np.exp(offset), offset))
    found = GroupSparseRegressor(loss="gamma", selection=way).fit(X, y * np.exp(offset), offset=offset)
    expected = GroupSparseRegressor(loss="gamma", selection=HoldOut(validation=(X, y))).fit(X, y)
    assert found.recipe_ == expected.recipe_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
    for model, given, lacking in ((found, None, "the rows of fit"), (expected, offset, "the validation rows")):
        with pytest.raises(ValueError, match=f"There is an offset, but not for {lacking}"):
            clone(model).fit(X, y, offset=given)


# ------------------------------------------------------------------ always


@pytest.mark.parametrize("selection", [None, Size(3)], ids=["folds", "size"])
@pytest.mark.parametrize("kind", QUICK)
def test_groups_that_are_always_in_are_not_shrunk(kind, selection):
    """The gradient in their columns is zero, however much the others are shrunk; noise is strong."""
    X, y, groups = grouped_problem(kind, "strong")
    X[:, groups.lists()[9][0]] = X[:, groups.lists()[5][0]]  # collinear: they count by their rank
    options = {} if selection is None else {"selection": selection}
    model = estimator(kind, groups, always=[5, 9], **options).fit(X, y)
    assert model.always_groups_ == [5, 9]
    assert set(model.selected_groups_) & {5, 9}
    assert_one_model(model, X, y)
    score = (
        model.loss_.on(coded(model, y), np.ones(len(y)) / len(y)).score(linear_predictor(model, X)).reshape(len(y), -1)
    )
    columns = np.concatenate([groups.lists()[5], groups.lists()[9]])
    slack = 1e-6 if not model.shrunk_ else 3e-4
    assert np.abs(X[:, columns].T @ score).max() < slack * np.abs(score).max() * np.sqrt(len(y)) * 10


def test_always_by_the_names_of_columns():
    X, y, _ = grouped_problem("two classes")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    groups = {"pair": ["x0", "x1"], **{f"x{j}": [f"x{j}"] for j in range(2, X.shape[1])}}
    model = GroupSparseClassifier(groups, always=["x3", "pair"], selection=Size(1)).fit(frame, y)
    assert {"x3", "pair"} <= set(model.selected_groups_)
    alone = GroupSparseClassifier(always=["x3"], selection=Size(1)).fit(frame, y)
    assert "x3" in alone.selected_groups_
    with pytest.raises(ValueError, match=r"'x1'.*'pair'"):
        GroupSparseClassifier(groups, always=["x1"]).fit(frame, y)
    with pytest.raises(ValueError, match="no such"):
        GroupSparseClassifier(groups, always=["no such"]).fit(frame, y)
    with pytest.raises(ValueError, match="all 2 groups"):
        GroupSparseClassifier([0, 0, 1, 1], always=[0, 1]).fit(X[:, :4], y)


# ------------------------------------------------------------------ storage


def test_a_response_in_one_column():
    X, y, groups = grouped_problem("several")
    expected = GroupSparseRegressor(groups, selection=Size(3)).fit(X, y[:, 0])
    model = GroupSparseRegressor(groups, selection=Size(3)).fit(X, y[:, :1])
    assert model.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(model.coef_[0], expected.coef_, atol=1e-7)
    assert model.path_.n_outputs == 1


def test_a_custom_loss_fits_and_is_refused_by_save_with_a_remedy(tmp_path):
    X, y, groups = grouped_problem("huber")
    model = GroupSparseRegressor(groups, loss=Quadratic()).fit(X, y)
    assert model.loss_ == Quadratic()
    with pytest.raises(ValueError, match=r"Quadratic.*save a model with a loss, recipe or splitter of your own by"):
        covey.save(model, tmp_path / "model.skops")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Quadratic"):
        get_loss(Quadratic)


@pytest.mark.parametrize(
    "names", [["no", "yes"], [3, 8], [False, True], [1.0, 2.0], ["a", "b", "c"], [-1, 0, 7]], ids=str
)
@pytest.mark.parametrize("dtype", [None, object])
def test_labels_of_any_kind_are_kept(names, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    codes = np.argsort(np.argsort(X[:, 0] + 0.5 * rng.standard_normal(60))) * len(names) // 60
    y = np.array(names, dtype=dtype)[codes]
    if dtype is object and not isinstance(names[0], str):
        pytest.skip("scikit-learn takes objects that are text alone")
    model = GroupSparseClassifier(selection=Size(1)).fit(X, y)
    assert model.classes_.tolist() == sorted(names)
    covey.save(model, tmp_path / "model.skops")
    for again in (covey.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        assert again.classes_.tolist() == sorted(names)
        assert again.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_scores_of_rows_that_no_finite_constant_fits():
    X, y, groups = grouped_problem("poisson")
    model = GroupSparseRegressor(groups, loss="poisson", selection=Size(3)).fit(X, y)
    assert np.isfinite(model.score(X[y == 0], y[y == 0]))
    for wrong in (y[:-1], np.stack([y, y], axis=1)):
        with pytest.raises(ValueError, match="y "):
            model.score(X, wrong)


@pytest.mark.parametrize("way", [{"selection": Size(2)}, {"selection": 3, "rule": "predict"}], ids=str)
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_constant_column_that_is_always_in_does_nothing(loss, way):
    X, y, groups = grouped_problem("huber")
    X[:, groups.lists()[4]] = 1.0
    model = GroupSparseRegressor(groups, loss=loss, always=[4], **way).fit(X, y)
    assert len(model.selected_groups_) >= 2
    assert 4 not in model.selected_groups_
    assert not model.path_.strengths[:, [4]].toarray().any()


@pytest.mark.parametrize("standardize", ["group", "column", "block", False])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "gamma", "binomial"])
def test_a_constant_column_without_an_intercept(loss, standardize):
    """Its penalty must not be zero: the column varies about zero."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 12))
    X[:, 3] = 1.0
    eta = X[:, 0] - X[:, 5]
    y = {
        "poisson": lambda: rng.poisson(np.exp(0.5 * eta)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(0.3 * eta)),
        "binomial": lambda: (rng.random(60) < 1 / (1 + np.exp(-eta))) + 0.0,
    }.get(loss, lambda: eta + rng.standard_normal(60))()
    options = {"loss": loss, "fit_intercept": False, "standardize": standardize}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y has only the values 0 and 1")
        model = GroupSparseRegressor(groups=3, selection=3, **options).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.candidates_["mse" if loss == "squared" else "deviance"]).all()


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_predictions_far_outside_the_rows_of_fit_are_bounded_with_a_warning(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 4))
    y = rng.poisson(np.exp(1 + X[:, 0])) + (loss == "gamma")
    model = GroupSparseRegressor(loss=loss).fit(X, y)
    inside, far = X[:3], np.array([[30.0, 0, 0, 0], [0.5, 0, 0, 0]])
    seen = model.predict(X)
    np.testing.assert_allclose(model.predict(inside), np.exp(inside @ model.coef_ + model.intercept_))
    with pytest.warns(UserWarning, match="1 of 2 rows are so far outside the rows of fit"):
        predicted = model.predict(far)
    assert predicted[0] == pytest.approx(seen.max() ** 1.5 / seen.min() ** 0.5)  # the range, and half its width
    assert predicted[1] == pytest.approx(np.exp(far[1] @ model.coef_ + model.intercept_))


@pytest.mark.parametrize("rule", ["select", "predict"])
def test_a_level_without_an_event_has_a_finite_effect_in_a_group_that_is_always_in(rule):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(80) % 4 == 0, rng.standard_normal((80, 5))])
    y = rng.poisson(np.where(X[:, 0] == 1, 0.0, np.exp(0.5 + 0.3 * X[:, 1:].sum(axis=1)))).astype(float)
    model = GroupSparseRegressor(loss="poisson", always=[0], rule=rule).fit(X, y)
    assert -8 < model.coef_[0] < -1


def test_a_summary_says_what_was_estimated():
    X, y, groups = grouped_problem("negative-binomial")
    model = GroupSparseRegressor(groups, loss="negative-binomial", selection=Size(3)).fit(X, y)
    assert f"not shrunk; the variance is mean + {model.loss_.overdispersion:.3g} mean^2." in str(model.summary())
    model = GroupSparseRegressor(groups, loss=Quantile(0.9), selection=Size(3)).fit(X, y)
    assert "predictions are quantiles: 0.9 of the rows lie below" in str(model.summary())
