"""Problems for tests of the estimators, at weak and strong noise."""

from __future__ import annotations

import numpy as np
import pytest

from covey import Groups, GroupSparseClassifier, GroupSparseCox
from covey.losses import Cox, Squared
from covey.losses.cox import read_survival

__all__ = ["assert_one_model", "coded", "linear_predictor", "noisy_problem"]


def noisy_problem(noise: str, n: int = 80, n_groups: int = 25, seed: int = 0):
    """Groups of 1 to 4 correlated columns, three of them with signal; a hundredth or most of the variance is noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, n_groups)
    groups = Groups.from_sizes(sizes)
    p = groups.n_columns
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    signal = sum(X[:, groups.lists()[l]] @ rng.choice([-1.0, 1.0], groups.sizes[l]) for l in (2, 7, 11))
    signal = signal / signal.std()
    return X, 1.0 + signal + {"weak": 0.1, "strong": 1.2}[noise] * rng.standard_normal(n), groups


def linear_predictor(model, X):
    """What the model says of rows, from its coefficients alone."""
    eta = X @ np.atleast_2d(model.coef_).T + np.atleast_1d(model.intercept_)
    return eta if model.loss_.vector else eta[:, 0]


def coded(model, y):
    """The response as the loss reads it."""
    if isinstance(model, GroupSparseCox):
        return read_survival(y).rows
    if not isinstance(model, GroupSparseClassifier):
        return model.loss_.check(y)
    codes = np.searchsorted(model.classes_, y)
    if model.classes_.size == 2 or model.loss_.coupled:
        return codes.astype(float)
    return np.eye(model.classes_.size)[codes]


def assert_one_model(model, X, y, weight=None):
    """Everything that a fitted estimator shows describes one and the same model; X is dense."""
    groups, path, tight = model.groups_, model.path_, {"rtol": 1e-9, "atol": 1e-12}
    # coefficients by group, the parts of overlapping ones from the path; their norms and strengths
    by_group = np.atleast_2d(model.coef_)[:, groups.members]
    if groups.overlapping:
        by_group = path.parts[[-1]].toarray().reshape(path.n_outputs, -1)
    norms = np.linalg.norm([groups.apart().norms(one) for one in by_group], axis=0)
    np.testing.assert_allclose(model.group_norms_, norms, **tight)
    in_model = np.flatnonzero(norms).tolist()
    assert sorted(groups.position(name) for name in model.selected_groups_) == in_model
    assert np.flatnonzero(model.group_strengths_).tolist() == in_model
    used = sorted({int(j) for l in in_model for j in groups.lists()[l]})
    assert set(np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0)).tolist()) <= set(used)
    if isinstance(model.loss_, Squared | Cox) and model.standardize == "group" and model.fit_intercept:
        pieces = zip(groups.lists(), np.split(by_group[0], groups.starts[1:-1]), strict=True)
        strengths = [(X[:, at] @ coef).std() for at, coef in pieces]
        if weight is None:
            np.testing.assert_allclose(model.group_strengths_, strengths, rtol=1e-5, atol=1e-7)
    # the path ends in the model
    coef, intercept = path.model(len(path) - 1)
    np.testing.assert_allclose(np.atleast_2d(coef), np.atleast_2d(model.coef_), **tight)
    np.testing.assert_allclose(intercept, np.squeeze(model.intercept_), **tight)
    np.testing.assert_allclose(path.group_norms[-1], model.group_norms_, **tight)
    assert np.isfinite(path.coefs.data).all()
    # predictions
    eta = linear_predictor(model, X)
    close = {"rtol": 1e-9, "atol": 1e-9 * max(1, np.abs(eta).max())}
    np.testing.assert_allclose(path.predict(X)[:, -1], eta, **close)
    if isinstance(model, GroupSparseClassifier):
        np.testing.assert_allclose(model.decision_function(X), eta, **close)
        chances = model.predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), chances, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), model.classes_[chances.argmax(axis=1)])
        assert model.score(X, y) == np.mean(model.predict(X) == y)
    else:
        mean = eta if isinstance(model, GroupSparseCox) else model.loss_.inverse_link(eta)
        np.testing.assert_allclose(model.predict(X), mean, **close)
    # candidates
    candidates = model.candidates_
    assert candidates["chosen"].any()
    if "weight" in candidates:
        assert candidates["weight"].sum() == pytest.approx(1, abs=1e-12)
        assert ((candidates["weight"] > 0) == candidates["chosen"]).all()
    if model.rule != "predict":
        (chosen,) = candidates[candidates["chosen"]].itertuples()
        assert chosen.groups == len(in_model)
        # where the maximum is at infinity a small ridge takes its place
        assert "recipe" not in candidates or chosen.recipe == model.recipe_ or "is infinite" in model.recipe_
    # tables
    table, at = model.group_table(), [groups.position(name) for name in model.selected_groups_]
    assert table.index.tolist() == model.selected_groups_
    if path.n_outputs == 1:
        np.testing.assert_array_equal(table["norm"], model.group_norms_[at])
    np.testing.assert_array_equal(table["strength"], model.group_strengths_[at])
    np.testing.assert_array_equal(table["size"], groups.sizes[at])
    if model.fold_frequencies_ is not None:
        assert model.fold_frequencies_.shape == (groups.n_groups,)
        assert model.fold_frequencies_.max(initial=0) <= model.n_splits_
    # a minimum where nothing was shrunk: the certificate is a gradient of zero
    if not model.shrunk_:
        q = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
        score = model.loss_.on(coded(model, y), q / q.sum()).score(eta).reshape(len(X), -1)
        unit = X[:, used].std(axis=0)[:, None] * score.std() * len(X) if used else 1.0
        assert np.abs(X[:, used].T @ score / unit).max(initial=0) < 1e-6
        if model.fit_intercept:
            assert np.abs(score.sum(axis=0)).max() < 1e-6 * len(X) * score.std()
