"""Problems for tests of the estimators, at weak and strong noise."""

from __future__ import annotations

import numpy as np

from covey import Groups

__all__ = ["assert_one_model", "coefficients_by_group", "noisy_problem"]


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


def coefficients_by_group(model):
    """Coefficients group after group; with overlapping groups the part of each group, from the path."""
    groups = model.groups_
    if groups.overlapping:
        return model.path_.parts[[-1]].toarray().ravel()
    return model.coef_[groups.members]


def assert_one_model(model, X, y, weight=None, squared=True):
    """Everything that a fitted estimator shows describes one and the same model; X is dense."""
    groups = model.groups_
    tight = {"rtol": 1e-9, "atol": 1e-12} if model.coef_.dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    # coefficients, groups and norms
    by_group = coefficients_by_group(model)
    np.testing.assert_allclose(model.group_norms_, groups.apart().norms(by_group), **tight)
    in_model = np.flatnonzero(groups.apart().norms(by_group)).tolist()
    assert sorted(groups.position(name) for name in model.selected_groups_) == in_model
    assert len(set(model.selected_groups_)) == len(model.selected_groups_)
    used = {int(j) for l in in_model for j in groups.lists()[l]}
    assert set(np.flatnonzero(model.coef_).tolist()) <= used
    assert (np.flatnonzero(model.group_strengths_) == in_model).all()
    parts = [
        X[:, at] @ by_group[a:b] for at, a, b in zip(groups.lists(), groups.starts[:-1], groups.starts[1:], strict=True)
    ]
    if model.standardize == "group" and model.fit_intercept and weight is None:
        np.testing.assert_allclose(model.group_strengths_, [part.std() for part in parts], rtol=1e-5, atol=1e-7)
    # predictions
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-6, atol=1e-6 * np.ptp(y))
    # the path ends in the model
    coef, intercept = model.path_.model(len(model.path_) - 1)
    np.testing.assert_allclose(coef, model.coef_, **tight)
    np.testing.assert_allclose(intercept, model.intercept_, **tight)
    np.testing.assert_allclose(model.path_.group_norms[-1], model.group_norms_, **tight)
    # candidates
    candidates = model.candidates_
    assert candidates["chosen"].any()
    if "weight" in candidates:
        assert candidates["weight"].sum() == 1 or abs(candidates["weight"].sum() - 1) < 1e-12
        assert ((candidates["weight"] > 0) == candidates["chosen"]).all()
    if not model.rule == "predict":
        assert candidates["chosen"].sum() == 1
    if not model.rule == "predict" and "recipe" in candidates:
        (chosen,) = candidates[candidates["chosen"]].itertuples()
        assert chosen.recipe == model.recipe_
        assert chosen.groups == len(model.selected_groups_)
    # tables
    table = model.group_table()
    assert table.index.tolist() == model.selected_groups_
    at = [groups.position(name) for name in model.selected_groups_]
    np.testing.assert_array_equal(table["norm"], model.group_norms_[at])
    np.testing.assert_array_equal(table["strength"], model.group_strengths_[at])
    np.testing.assert_array_equal(table["size"], groups.sizes[at])
    if model.fold_frequencies_ is not None:
        assert model.fold_frequencies_.shape == (groups.n_groups,)
        assert model.fold_frequencies_.max(initial=0) <= model.n_splits_
    # least squares where nothing was shrunk: the certificate is an orthogonal residual
    if squared and not model.shrunk_:
        q = np.ones(len(y)) / len(y) if weight is None else weight / weight.sum()
        residual = y - X @ model.coef_ - model.intercept_
        unit = np.sqrt(q @ (y - q @ y) ** 2) or 1.0
        columns = sorted(used)
        spread = np.sqrt(q @ (X[:, columns] - q @ X[:, columns]) ** 2) + 1e-300
        slack = 1e-6 if model.coef_.dtype == np.float64 else 1e-3
        np.testing.assert_allclose(X[:, columns].T @ (q * residual) / spread / unit, 0, atol=slack)
        if model.fit_intercept:
            assert abs(q @ residual) < slack * unit
