"""Fold scores by hand: scikit-learn's cross_val_score of the model and of its dummies, on the same folds."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covey import GroupSparseClassifier, GroupSparseRegressor, nested_score
from covey.evidence.refit import FOLDS, RIDGES
from covey.selection import Folds

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 12))
ETA = 1.5 * X[:, :3].sum(axis=1)
RESPONSES = {
    "squared": ETA + 2 * RNG.standard_normal(90),
    "poisson": RNG.poisson(np.exp(0.4 * ETA)),
    "gamma": RNG.gamma(2.0, np.exp(0.4 * ETA)) + 1e-3,
    "two classes": np.where(ETA + RNG.logistic(size=90) > 0, "yes", "no"),
    "three classes": np.array(["a", "b", "c"])[np.digitize(ETA + RNG.logistic(size=90), [-1.0, 1.0])],
}
SCORERS = {
    "squared": "neg_mean_squared_error",
    "poisson": "neg_mean_poisson_deviance",
    "gamma": "neg_mean_gamma_deviance",
    "two classes": "neg_log_loss",
    "three classes": "neg_log_loss",
}


def model_of(case):
    options = {"groups": 3, "selection": Folds(2, deals=1)}
    return GroupSparseClassifier(**options) if "classes" in case else GroupSparseRegressor(loss=case, **options)


@pytest.mark.parametrize("case", RESPONSES, ids=str)
def test_folds_are_those_of_cross_val_score(case):
    y, model = RESPONSES[case], model_of(case)
    result = nested_score(model, X, y, 3, references=False)
    folds = StratifiedKFold if "classes" in case else KFold
    cv = folds(3, shuffle=True, random_state=0)
    for ours, theirs in zip(result.splits, cv.split(X, y), strict=True):
        np.testing.assert_array_equal(ours[1], theirs[1])
    dummy = DummyClassifier(strategy="prior") if "classes" in case else DummyRegressor()
    left, null = (cross_val_score(m, X, y, cv=cv, scoring=SCORERS[case]) for m in (model, dummy))
    np.testing.assert_allclose(result.folds, 1 - left / null, rtol=1e-9, atol=1e-12)
    sizes = [len(test) for _, test in result.splits]
    assert result.mean == pytest.approx(1 - np.dot(left, sizes) / np.dot(null, sizes), rel=1e-9)
    assert result.measure == ("R^2" if case == "squared" else "D^2")


def test_predictions_are_those_of_cross_val_predict():
    y = RESPONSES["squared"]
    result = nested_score(model_of("squared"), X, y, references=False)
    np.testing.assert_allclose(result.predictions, cross_val_predict(model_of("squared"), X, y, cv=result.splits))
    means = cross_val_predict(DummyRegressor(), X, y, cv=result.splits)
    expected = 1 - np.sum((y - result.predictions) ** 2) / np.sum((y - means) ** 2)
    assert result.mean == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("case", "scoring"), [("squared", "r2"), ("three classes", "accuracy")], ids=["r2", "accuracy"]
)
def test_a_scorer_gives_cross_val_score_itself(case, scoring):
    y, model = RESPONSES[case], model_of(case)
    result = nested_score(model, X, y, 3, scoring=scoring, references=False)
    by_hand = cross_val_score(model, X, y, cv=result.splits, scoring=scoring)
    np.testing.assert_allclose(result.folds, by_hand)
    assert result.mean == pytest.approx(by_hand.mean())
    assert result.margin == pytest.approx(2.92 * np.sqrt((1 / 3 + 1 / 2) * by_hand.var(ddof=1)), rel=1e-3)
    assert result.measure == scoring
    # of folds that share rows, more do not tell much more
    often = nested_score(model, X, y, ShuffleSplit(8, test_size=30, random_state=0), scoring=scoring, references=False)
    assert often.margin == pytest.approx(1.895 * np.sqrt((1 / 8 + 1 / 2) * often.folds.var(ddof=1)), rel=1e-3)


@pytest.mark.parametrize("labels", [None, np.repeat(np.arange(30), 3)], ids=["", "labels"])
def test_lasso_and_ridge_are_scikit_learns(labels):
    """The folds that tune them keep labelled rows together, as those that choose the model."""
    y = RESPONSES["squared"]
    result = nested_score(model_of("squared"), X, y, 3, split_groups=labels)
    for k, (train, test) in enumerate(result.splits):
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        if labels is not None:
            folds = list(GroupKFold(FOLDS).split(train, groups=labels[train]))
        null = np.sum((y[test] - y[train].mean()) ** 2)
        tuned = {"lasso": LassoCV(cv=folds), "ridge": RidgeCV(RIDGES, cv=None if labels is None else folds)}
        for name, method in tuned.items():
            fitted = make_pipeline(StandardScaler(), method).fit(X[train], y[train])
            left = np.sum((y[test] - fitted.predict(X[test])) ** 2)
            assert result.references[name].folds[k] == pytest.approx(1 - left / null, rel=1e-6)
    np.testing.assert_array_equal(result.references["null"].folds, 0)


def test_an_offset_of_counts_is_their_exposure():
    """Counts with exposures are rates weighted by them, and the reference fits those."""
    offset = np.log(RNG.uniform(1, 3, 90))
    y = RNG.poisson(np.exp(offset + 0.4 * ETA))
    model = model_of("poisson")
    result = nested_score(model, X, y, 3, offset=offset)
    assert set(result.references) == {"null", "ridge"}
    assert result.notes == ("scikit-learn has no lasso of this loss",)
    for (train, test), score in zip(result.splits, result.folds, strict=True):
        mean = model.fit(X[train], y[train], offset=offset[train]).predict(X[test], offset=offset[test])
        null = np.exp(offset[test]) * y[train].sum() / np.exp(offset[train]).sum()
        y_test = y[test]

        def deviance(m, y=y_test):
            return 2 * np.sum(np.where(y > 0, y * np.log(np.maximum(y, 1) / m), 0) - (y - m))

        assert score == pytest.approx(1 - deviance(mean) / deviance(null), rel=1e-9)
