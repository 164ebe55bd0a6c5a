"""One contract for all kinds of storage: the same numbers give the same path, whatever holds them.

Kinds are those of `storage_kinds`.
"""

from __future__ import annotations

import numpy as np
import pytest

from covey import Groups, GroupSparseRegressor, limit_path
from covey.designs import Design, as_design
from covey.paper.theory import check_assumptions, coherence
from covey.selection import HoldOut
from storage_kinds import KINDS

# relative to the largest coefficient
TOLERANCE = {"float64": 1e-8, "float32": 1e-3}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def problem(n: int, groups: Groups, dtype: str = "float64", noise: float = 0.3):
    """Half of the values zero, columns of unequal mean and scale, a rank-deficient group, five groups of signal."""
    rng = np.random.default_rng(3)
    p = groups.n_columns
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.uniform(-1, 1, p)
    X[rng.random((n, p)) < 0.5] = 0.0
    lists = groups.lists()
    twice = max(lists[:9], key=len)
    X[:, twice[-1]] = X[:, twice[0]]
    y = 1.0 + noise * rng.standard_normal(n)
    for strength, l in zip((4.0, 3.2, 2.4, 1.8, 1.2), (1, 5, 8, 11, 15), strict=True):
        y += strength * X[:, lists[l]].sum(axis=1) / X[:, lists[l]].sum(axis=1).std()
    return X.astype(dtype), y


LAYOUTS = {
    "equal": Groups.from_size(4, 120),
    "unequal, one large": Groups.from_sizes([1, 2, 3, 4, 5] * 4 + [70]),
    "scattered": Groups.from_labels(np.random.default_rng(5).permutation(np.repeat(np.arange(30), 3)).tolist()),
    "more rows than columns": Groups.from_size(3, 60),
    "many": Groups.from_size(5, 3000),
}


def assert_same_path(path, expected, tolerance):
    largest = abs(expected.coefs).max()
    assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
    np.testing.assert_allclose(path.times, expected.times, rtol=tolerance)
    assert abs(path.coefs - expected.coefs).max() <= tolerance * largest
    np.testing.assert_allclose(path.intercepts, expected.intercepts, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize(("layout", "dtype"), [*((layout, "float64") for layout in LAYOUTS), ("equal", "float32")])
def test_the_path_is_that_of_the_dense_array(kind, dtype, layout, tmp_path):
    groups = LAYOUTS[layout]
    X, y = problem(90, groups, dtype)
    settings = {"max_groups": 6}
    expected = limit_path(X, y, groups, **settings)
    assert len(expected.entered) >= 3
    assert_same_path(limit_path(kind(X, tmp_path), y, groups, **settings), expected, TOLERANCE[dtype])


@pytest.mark.parametrize(
    "options",
    [
        {"standardize": "column"},
        {"standardize": "block"},
        {"standardize": False, "fit_intercept": False},
        {"group_weights": "sqrt"},
    ],
    ids=lambda options: " ".join(f"{value}" for value in options.values()),
)
def test_settings_and_weights(kind, options, tmp_path):
    groups = LAYOUTS["equal"]
    X, y = problem(90, groups)
    weight = np.random.default_rng(0).integers(0, 3, 90).astype(float)
    settings = {"max_groups": 8, "sample_weight": weight, **options}
    assert_same_path(limit_path(kind(X, tmp_path), y, groups, **settings), limit_path(X, y, groups, **settings), 1e-8)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_products_of_residuals(kind, dtype, tmp_path):
    X, y = problem(90, LAYOUTS["equal"], dtype)
    rng = np.random.default_rng(1)
    parts = rng.integers(0, 3, 90)
    masses = [rng.integers(0, 3, 90) * (parts != k) for k in range(3)]
    columns, which = np.array([17, 3, 60, 61, 4]), np.array([2, 0, 1, 1, 0, 2, 2])
    coefs, intercepts = rng.standard_normal((7, 5)), rng.standard_normal(7)
    stored = as_design(kind(X, tmp_path))
    weights = [stored.weights(mass) for mass in masses]
    before = stored.n_passes
    found = stored.residual_products(stored.rows(y), weights, which, columns, coefs, intercepts)
    assert stored.n_passes == before + 1
    assert found.shape == (7, X.shape[1])
    q = np.array([mass / mass.sum() for mass in masses])[which]
    expected = (q * (y - coefs @ X[:, columns].T - intercepts[:, None])) @ X
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * abs(expected).max())


@pytest.mark.parametrize("columns", [[17, 3, 60, 61, 4], []], ids=["five columns", "none"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_second_moments_of_parts(kind, dtype, columns, tmp_path):
    X, y = problem(90, LAYOUTS["equal"], dtype)
    rng = np.random.default_rng(1)
    parts, mass = rng.integers(0, 3, 90), rng.integers(0, 3, 90)
    masses = [mass * (parts == k) for k in range(3)]
    stored, columns = as_design(kind(X, tmp_path)), np.array(columns, dtype=np.intp)
    shift = rng.standard_normal(columns.size)
    before = stored.n_passes
    found = stored.gram_parts(columns, shift, stored.rows(y), [stored.weights(own) for own in masses])
    assert stored.n_passes <= before + 1
    A = np.column_stack([np.ones(90), X[:, columns].astype(float) - shift, y])
    expected = [(A.T * (own / own.sum())) @ A for own in masses]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_extremes_of_rows_that_count(kind, tmp_path):
    X, _ = problem(90, LAYOUTS["equal"])
    columns, weight = np.array([3, 0, 17]), (np.arange(90) % 4 > 0).astype(float)
    X[40, 3], X[41, 3] = 100.0, -100.0  # row 40 has weight zero
    design = as_design(kind(X, tmp_path))
    found = design.extremes(columns, design.rows(weight))
    used = X[weight > 0][:, columns]
    np.testing.assert_array_equal(found, [used.min(axis=0), used.max(axis=0)])


@pytest.mark.parametrize("noise", [0.1, 2.0], ids=["weak noise", "strong noise"])
@pytest.mark.parametrize("common", [0.0, 2.0], ids=["no factor", "a common factor"])
@pytest.mark.parametrize("options", [{}, {"selection": "holdout", "rule": "1se"}], ids=["folds", "held out"])
def test_the_default_search(kind, noise, common, options, tmp_path):
    groups = Groups.from_size(3, 96)
    rng = np.random.default_rng(11)
    X = rng.standard_normal((90, 96)) + common * rng.standard_normal((90, 1)) + rng.uniform(-1, 1, 96)
    y = X[:, 3:6].sum(axis=1) - X[:, 30:33].sum(axis=1) + X[:, 60]
    y = y / y.std() + noise * rng.standard_normal(90)
    expected = GroupSparseRegressor(groups, **options).fit(X, y)
    model = GroupSparseRegressor(groups, **options).fit(kind(X, tmp_path), y)
    assert model.recipe_ == expected.recipe_
    assert model.selected_groups_ == expected.selected_groups_
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6 * abs(expected.coef_).max())
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-6)


def test_validation_rows_of_the_same_kind(kind, tmp_path):
    groups = LAYOUTS["equal"]
    X, y = problem(90, groups)
    (tmp_path / "fit").mkdir()
    (tmp_path / "validation").mkdir()
    settings = {"groups": groups}
    dense, stored = (
        GroupSparseRegressor(**settings, selection=HoldOut(validation=(X_val, y[60:]))).fit(X_fit, y[:60])
        for X_fit, X_val in [
            (X[:60], X[60:]),
            (kind(X[:60], tmp_path / "fit"), kind(X[60:], tmp_path / "validation")),
        ]
    )
    assert stored.recipe_ == dense.recipe_
    np.testing.assert_allclose(stored.coef_, dense.coef_, atol=1e-8 * abs(dense.coef_).max())


def test_theory(kind, tmp_path):
    groups = LAYOUTS["equal"]
    X, y = problem(90, groups)
    stored = kind(X, tmp_path)
    found, expected = coherence(stored, groups), coherence(X, groups)
    np.testing.assert_allclose(found.inner, expected.inner, rtol=1e-9)
    np.testing.assert_allclose(found.outer, expected.outer, rtol=1e-9)
    report, wanted = (check_assumptions(matrix, y, groups).to_frame() for matrix in (stored, X))
    np.testing.assert_allclose(report["measured"], wanted["measured"], rtol=1e-6)


def test_missing_values_name_their_column(kind, tmp_path):
    X, y = problem(90, LAYOUTS["equal"])
    X[17, 33] = np.nan
    with pytest.raises(ValueError, match=r"missing or infinite values in column '?\D*33"):
        limit_path(kind(X, tmp_path), y, 4)


def test_columns_of_extreme_scale(kind, tmp_path):
    groups = LAYOUTS["equal"]
    X, y = problem(90, groups)
    X[:, 4:8] *= 1e-70
    X[:, 20:24] *= 1e70
    expected = limit_path(X, y, groups, max_groups=6).coefs.toarray()
    found = limit_path(kind(X, tmp_path), y, groups, max_groups=6).coefs.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


def test_the_shape_and_passes_are_known(kind, tmp_path):
    X, y = problem(90, LAYOUTS["many"])
    design = as_design(kind(X, tmp_path))
    assert isinstance(design, Design)
    assert design.shape == X.shape
    limit_path(design, y, 5, max_groups=3)
    assert design.n_passes > 0
