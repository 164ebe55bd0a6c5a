"""Ordered classes: one coefficient for all, thresholds, offsets, sets that cover, and what cannot be."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from covey import GroupSparseClassifier
from covey.losses import Ordinal
from covey.selection import Folds, HoldOut, Size

FEW = Folds(3, deals=1)


def graded(n=300, seed=0):
    """Grades that three of twelve columns decide, as an ordered categorical."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    score = 1.5 * X[:, 0] - X[:, 4] + X[:, 5] + rng.logistic(size=n)
    codes = np.digitize(score, [-2.0, 0.0, 2.5])
    return X, pd.Series(pd.Categorical.from_codes(codes, ["poor", "fair", "good", "best"], ordered=True))


def test_one_coefficient_for_all_ordered_classes():
    X, y = graded()
    model = GroupSparseClassifier(loss="ordinal", selection=KFold(3)).fit(X, y)
    assert model.classes_.tolist() == ["poor", "fair", "good", "best"]
    assert set(model.selected_groups_) == {0, 4, 5}
    assert model.coef_.shape == (1, 12)
    np.testing.assert_allclose(model.coef_[0, [0, 4, 5]], [1.5, -1, 1], atol=0.35)
    np.testing.assert_allclose(model.loss_.thresholds - model.intercept_, [-2, 0, 2.5], atol=0.6)
    assert model.score(X, y) > 0.55
    named, turned = (
        GroupSparseClassifier(loss=Ordinal(order=order), selection=KFold(3)).fit(X, y.astype(str))
        for order in (["poor", "fair", "good", "best"], ["best", "good", "fair", "poor"])
    )
    np.testing.assert_allclose(named.predict_proba(X), model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(turned.coef_, -model.coef_, atol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(X)[:, ::-1], model.predict_proba(X), atol=1e-6)
    assert "odds_ratio" in model.coefficients()


def test_an_offset_moves_ordered_classes():
    X, y = graded()
    offset = X[:, 0]
    plain = GroupSparseClassifier(loss="ordinal", selection=Size(3)).fit(X, y)
    moved = GroupSparseClassifier(loss="ordinal", selection=Size(3)).fit(X, y, offset=offset)
    assert moved.coef_[0, 0] == pytest.approx(plain.coef_[0, 0] - 1, abs=1e-6)
    np.testing.assert_allclose(moved.predict_proba(X, offset), plain.predict_proba(X), atol=1e-6)


def test_sets_of_ordered_classes_cover_their_share_of_rows():
    found = []
    for seed in range(3):
        X, y = graded(700, seed)
        model = GroupSparseClassifier(loss="ordinal", selection=FEW).fit(X[:200], y[:200])
        sets = model.predict(X[200:], interval=0.8)
        found.append(sets[np.arange(500), y.cat.codes[200:]].mean())
    assert 0.75 < np.mean(found) < 0.87


def test_a_validation_set_of_ordered_classes():
    X, y = graded()
    model = GroupSparseClassifier(loss="ordinal", selection=HoldOut(validation=(X[200:], y[200:]))).fit(
        X[:200], y[:200]
    )
    assert {0, 4, 5} <= set(model.selected_groups_)
    assert model.fold_thresholds_.shape == (1, 3)
    assert model.predict(X, interval=0.9).shape == (300, 4)
