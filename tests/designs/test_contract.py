"""One contract for all kinds of storage: the same numbers give the same model, whatever holds them.

Kinds are those of `storage_kinds`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, limit_path
from covey.designs import DenseDesign, Design, Models, as_design
from covey.designs.rows import row_keys
from covey.paper.theory import check_assumptions
from covey.preprocess import prepare
from covey.selection import Folds, HoldOut
from storage_kinds import COUNT_KINDS, KINDS, nearest_counts

# relative to the largest number
TOLERANCE = {"float64": 1e-8, "float32": 1e-3}


ALL_KINDS = KINDS | COUNT_KINDS


@pytest.fixture(params=ALL_KINDS)
def kind(request):
    return ALL_KINDS[request.param]


@pytest.fixture
def held(request, kind):
    """Turns an array into one that the kind holds."""
    return np.copy if request.node.callspec.params["kind"] in KINDS else nearest_counts


@pytest.fixture
def holds_all(held):
    if held is not np.copy:
        pytest.skip("holds counts only")


def matrix(n: int, p: int, dtype: str = "float64", held=np.copy) -> np.ndarray:
    """Half of the values zero, columns of unequal mean and scale, two columns equal."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2.0, p) + rng.uniform(-1, 1, p)
    X[rng.random((n, p)) < 0.5] = 0.0
    X[:, 8] = X[:, 6]
    return held(X).astype(dtype)


# ---------------------------------------------------------------------- models

# scattered columns, and a last group that is too large for a Gram block
SCATTERED = np.random.default_rng(5).permutation(np.repeat(np.arange(8), 3))
N, GROUPS = 130, Groups.from_labels([*SCATTERED.tolist(), *[8] * 66])


def signal(X: np.ndarray) -> np.ndarray:
    """Two groups matter."""
    eta = X[:, GROUPS.lists()[2]].sum(axis=1) - X[:, GROUPS.lists()[5]].sum(axis=1)
    return 1.5 * (eta - eta.mean()) / eta.std()


def several(eta, rng):
    return np.column_stack([eta, -2 * eta]) + 0.3 * rng.standard_normal((eta.size, 2))


def survival(eta, rng):
    return np.column_stack([rng.exponential(np.exp(-eta)), rng.random(eta.size) < 0.7])


# how rows are dealt is the same for every loss
FEW = Folds(2, deals=1)
FITS = {
    "squared": (GroupSparseRegressor(GROUPS), lambda eta, rng: eta + 0.3 * rng.standard_normal(eta.size)),
    "squared, strong noise, held-out rows": (
        GroupSparseRegressor(GROUPS, selection="holdout"),
        lambda eta, rng: eta + 1.5 * rng.standard_normal(eta.size),
    ),
    "squared, without held-out rows": (
        GroupSparseRegressor(GROUPS, selection="ebic", factors=0),
        lambda eta, rng: eta + 0.3 * rng.standard_normal(eta.size),
    ),
    "binomial": (
        GroupSparseClassifier(GROUPS, selection=FEW),
        lambda eta, rng: np.where(rng.logistic(size=eta.size) < eta, "a", "b"),
    ),
    "poisson": (GroupSparseRegressor(GROUPS, loss="poisson", selection=FEW), lambda eta, rng: rng.poisson(np.exp(eta))),
    "several responses": (GroupSparseRegressor(GROUPS), several),
    "cox": (GroupSparseCox(GROUPS, selection=FEW), survival),
    "multinomial": (
        GroupSparseClassifier(GROUPS, selection=HoldOut()),
        lambda eta, rng: np.argmax(np.stack([eta, -eta, 0 * eta]) + rng.gumbel(size=(3, eta.size)), axis=0),
    ),
}


@cache
def dense_fit(loss, held=np.copy):
    X = matrix(N, GROUPS.n_columns, held=held)
    model, response = FITS[loss]
    y = response(signal(X), np.random.default_rng(0))
    weight = np.random.default_rng(1).integers(1, 3, N).astype(float)
    return X, y, weight, type(model)(**model.get_params()).fit(X, y, sample_weight=weight)


# every loss for one kind of each class; the others have one fit with folds and one with held-out rows
EVERY_LOSS = ("Fortran", "CSR matrix", "memmap", "torch", "torch on a GPU", "Dask", "PLINK")
EACH = [(kind, loss) for kind in ALL_KINDS for loss in (FITS if kind in EVERY_LOSS else list(FITS)[:2])]


@pytest.mark.parametrize(("kind", "loss"), EACH, indirect=["kind"])
def test_a_fit_is_that_of_the_dense_array(kind, held, loss, tmp_path):
    X, y, weight, expected = dense_fit(loss, held)
    stored = kind(X, tmp_path)
    model = type(expected)(**expected.get_params()).fit(stored, y, sample_weight=weight)
    assert expected.selected_groups_
    assert model.recipe_ == expected.recipe_
    assert model.selected_groups_ == expected.selected_groups_
    if loss.startswith("squared"):
        np.testing.assert_allclose(model.candidates_.iloc[:, 2], expected.candidates_.iloc[:, 2], rtol=1e-6)
    largest = abs(expected.coef_).max()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6 * largest)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-6 * max(largest, 1.0))
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    found, wanted = getattr(model, predict)(stored), getattr(expected, predict)(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * abs(wanted).max())
    assert model.score(stored, y) == pytest.approx(expected.score(X, y), abs=1e-6)


# more columns than are near at the start; passes of a first deal, and of every further one
WIDE = Groups.from_size(3, 1200)
PASSES = {"squared": (12, 4), "several responses": (12, 4)}


@pytest.mark.parametrize("loss", ["squared", "binomial", "poisson", "several responses", "cox"])
def test_far_groups_of_a_streamed_matrix(loss, tmp_path):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((160, 1200))
    eta = X[:, :6].sum(axis=1) - X[:, 600:606].sum(axis=1)
    given, response = FITS[loss]
    y = response(2 * eta / eta.std(), rng)
    design, selection = KINDS["memmap"](X, tmp_path), 5 if loss == "squared" else FEW
    expected, model = (
        type(given)(**given.get_params() | {"groups": WIDE, "selection": selection}).fit(matrix, y)
        for matrix in (X, design)
    )
    assert model.recipe_ == expected.recipe_
    assert model.selected_groups_
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6 * abs(expected.coef_).max())
    first, further = PASSES.get(loss, (16, 4))
    assert design.n_passes <= first + further * (model.n_deals_ - 1)


def test_ridges_on_all_columns_of_a_streamed_matrix(tmp_path, monkeypatch):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((80, 1200))
    y = X @ rng.standard_normal(1200) / 30 + rng.standard_normal(80)
    design = KINDS["memmap"](X, tmp_path)
    expected, model = (GroupSparseRegressor(WIDE, rule="predict").fit(matrix, y) for matrix in (X, design))
    assert expected.candidates_["recipe"].str.contains("on all groups").any()
    assert model.candidates_["recipe"].tolist() == expected.candidates_["recipe"].tolist()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6 * abs(expected.coef_).max())
    monkeypatch.setattr("covey.search.dense.MOST_STREAMED", 1000)
    with pytest.warns(UserWarning, match=r"too large to be read for ridges on all 1200 columns.*rule='select'"):
        GroupSparseRegressor(WIDE, rule="predict", selection=HoldOut()).fit(design, y)


def test_paths_without_orthonormal_groups(kind, held, tmp_path):
    X, y, weight, _ = dense_fit("squared", held)
    design = as_design(kind(X, tmp_path))
    assert isinstance(design, Design)
    assert (design.shape, design.dtype, design.n_passes) == (X.shape, X.dtype, 0)
    for standardize in ("column", "block", False):
        settings = {"sample_weight": weight, "standardize": standardize, "fit_intercept": bool(standardize)}
        design.n_passes = 0
        path, expected = (limit_path(Z, y, GROUPS, max_groups=5, **settings) for Z in (design, X))
        assert 0 < design.n_passes < 8
        assert [l for l, _ in path.entered] == [l for l, _ in expected.entered]
        largest = abs(expected.coefs).max()
        np.testing.assert_allclose(path.coefs.toarray(), expected.coefs.toarray(), atol=1e-8 * largest)


@cache
def fits_with_a_common_factor(held):
    """With weak noise, and with strong noise."""
    rng = np.random.default_rng(11)
    X = held(rng.standard_normal((90, 96)) + 2.0 * rng.standard_normal((90, 1)) + rng.uniform(-1, 1, 96))
    eta = X[:, 3:6].sum(axis=1) - X[:, 30:33].sum(axis=1) + X[:, 60]
    responses = [eta / eta.std() + noise * rng.standard_normal(90) for noise in (0.1, 2.0)]
    return X, [(y, GroupSparseRegressor(3, selection=FEW).fit(X, y)) for y in responses]


def test_a_common_factor_of_all_columns(kind, held, tmp_path):
    X, fits = fits_with_a_common_factor(held)
    stored = kind(X, tmp_path)
    for y, expected in fits:
        model = GroupSparseRegressor(3, selection=FEW).fit(stored, y)
        assert model.recipe_ == expected.recipe_
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6 * abs(expected.coef_).max())


def test_validation_rows_of_the_same_kind(kind, held, tmp_path):
    X, y, _, _ = dense_fit("squared", held)
    (tmp_path / "fit").mkdir()
    (tmp_path / "validation").mkdir()
    dense, stored = (
        GroupSparseRegressor(GROUPS, selection=HoldOut(validation=(X_val, y[100:]))).fit(X_fit, y[:100])
        for X_fit, X_val in [
            (X[:100], X[100:]),
            (kind(X[:100], tmp_path / "fit"), kind(X[100:], tmp_path / "validation")),
        ]
    )
    assert stored.recipe_ == dense.recipe_
    np.testing.assert_allclose(stored.coef_, dense.coef_, atol=1e-7 * abs(dense.coef_).max())


def test_columns_of_extreme_scale(kind, holds_all, tmp_path):
    X, y, _, _ = dense_fit("squared")
    X = X.copy()
    X[:, 4:8] *= 1e-140
    X[:, 20:24] *= 1e140
    found, expected = (limit_path(Z, y, GROUPS, max_groups=4).coefs.toarray() for Z in (kind(X, tmp_path), X))
    scale = abs(X).max(axis=0)
    np.testing.assert_allclose(found * scale, expected * scale, rtol=1e-5, atol=1e-5)


def test_missing_values_name_their_column(kind, holds_all, tmp_path):
    X, y, _, _ = dense_fit("squared")
    X = X.copy()
    X[17, 33] = np.nan
    with pytest.raises(ValueError, match=r"missing or infinite values in column '?\D*33"):
        limit_path(kind(X, tmp_path), y, GROUPS)


@pytest.mark.parametrize("kind", ["CSR matrix", "memmap", "torch"], indirect=True)
def test_theory(kind, tmp_path):
    X = matrix(90, 40)
    y = X[:, :8].sum(axis=1) + 0.3 * np.random.default_rng(0).standard_normal(90)
    found, wanted = (check_assumptions(Z, y, Groups.from_size(4, 40)).to_frame() for Z in (kind(X, tmp_path), X))
    np.testing.assert_allclose(found["measured"], wanted["measured"], rtol=1e-6)


# ---------------------------------------------------------------------- operations

COLUMNS = np.array([17, 3, 60, 61, 4])


@pytest.fixture(params=TOLERANCE)
def designs(request, kind, held, tmp_path):
    """The stored design, the same numbers in double precision, and the tolerance of products."""
    X = matrix(90, 120, request.param, held)
    return as_design(kind(X, tmp_path)), X.astype(float), TOLERANCE[request.param]


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(abs(expected).max(initial=0.0), 1e-300))


def test_columns_and_products(designs):
    design, X, tolerance = designs
    rng = np.random.default_rng(1)
    R, coefs, intercepts = rng.standard_normal((3, 90)), rng.standard_normal((2, 5)), np.arange(2.0)
    before = design.n_passes
    close(design.correlate(R), R @ X, tolerance)
    assert design.n_passes == before + 1
    np.testing.assert_array_equal(design.take(COLUMNS), X[:, COLUMNS])
    assert design.take(COLUMNS).dtype == np.float64
    there = design.device_columns(COLUMNS)
    assert design.on_device or isinstance(there, np.ndarray)
    np.testing.assert_array_equal(there.cpu() if design.on_device else there, X[:, COLUMNS])
    for some in (COLUMNS, COLUMNS[:0]):
        fitted = design.predict(some, coefs[:, : some.size], intercepts)
        assert isinstance(fitted, np.ndarray)
        close(fitted, X[:, some] @ coefs[:, : some.size].T + intercepts, 1e-6)
    close(design.largest(), abs(X).max(axis=0), 1e-12)


def test_moments(designs):
    design, X, tolerance = designs
    rng = np.random.default_rng(2)
    y, weight = rng.standard_normal(90), rng.integers(0, 3, 90)
    weight[31:62] = 0  # a chunk of the Dask array
    q, members, starts = weight / weight.sum(), rng.permutation(120), np.array([0, 1, 5, 50, 120])
    scale = np.exp2(rng.integers(-3, 3, 120))
    for centre in (True, False):
        found, wanted = (
            one.moments(y, q, members, starts, centre=centre, scale=scale) for one in (design, DenseDesign(X))
        )
        for name in ("mean", "variance", "correlation", "blocks"):
            close(getattr(found, name), getattr(wanted, name), min(tolerance, 1e-6))
        np.testing.assert_array_equal(found.block_starts, wanted.block_starts)


def test_products_of_residuals(designs):
    (design, X, tolerance), m = designs, 2
    rng = np.random.default_rng(1)
    parts = rng.integers(0, 3, 90)
    weights = [rng.integers(0, 3, 90) * (parts != k) / 90 for k in range(3)]
    which, y = np.array([2, 0, 1, 1, 0, 2, 2]), rng.standard_normal((90, m))
    coefs, intercepts = rng.standard_normal((7, m, 5)), rng.standard_normal((7, m))
    expected = [
        (weights[part] * (y - X[:, COLUMNS] @ B.T - level).T) @ X
        for part, B, level in zip(which, coefs, intercepts, strict=True)
    ]
    before = design.n_passes
    found = design.residual_products(Models(y, weights, which, COLUMNS, coefs, intercepts))
    assert design.n_passes == before + 1
    assert found.dtype == design.dtype
    close(found, np.array(expected), tolerance)


def test_second_moments_of_parts(designs):
    design, X, _ = designs
    rng = np.random.default_rng(1)
    parts, mass = rng.integers(0, 3, 90), rng.integers(0, 3, 90) / 90
    weights = [mass * (parts == k) for k in range(3)]
    for columns, y in ((COLUMNS, rng.standard_normal((90, 2))), (COLUMNS[:0], rng.standard_normal(90))):
        shift, before = rng.standard_normal(columns.size), design.n_passes
        found = design.gram_parts(columns, shift, y, weights)
        assert design.n_passes <= before + 1
        A = np.column_stack([np.ones(90), X[:, columns] - shift, y])
        np.testing.assert_allclose(found, [(A.T * w) @ A for w in weights], rtol=1e-10, atol=1e-10)


def test_extremes_triangles_and_keys(kind, held, tmp_path):
    X = matrix(90, 120)
    weight = (np.arange(90) % 4 > 0).astype(float)
    X[40, 3], X[41, 3] = 100.0, -100.0  # row 40 has weight zero
    X[:, 17] = np.arange(90) > 50  # the first blocks of rows have one of its values only
    X[40, 17] = 0.5
    X = held(X)
    design, columns = as_design(kind(X, tmp_path)), np.array([3, 0, 17])
    used = X[weight > 0][:, columns]
    two = [np.unique(column).size <= 2 for column in used.T]
    assert two[2]
    np.testing.assert_array_equal(design.extremes(columns, weight), [used.min(axis=0), used.max(axis=0), two])
    q, mean, gain = weight / weight.sum(), np.arange(3.0), np.array([1.0, 2.0, 4.0])
    R, single = design.triangles(q, [columns, columns[:1]], [mean, mean[:1]], [gain, gain[:1]])
    Z = (X[:, columns] - mean) * gain
    np.testing.assert_allclose(R.T @ R, (Z.T * q) @ Z, rtol=1e-10, atol=1e-12)
    assert single.shape == (1, 1)
    np.testing.assert_array_equal(row_keys(design, columns), row_keys(DenseDesign(X), columns))


def test_norms_of_gradients(designs):
    design, X, tolerance = designs
    rng = np.random.default_rng(4)
    groups = Groups.from_labels(rng.permutation(np.repeat(np.arange(40), 3)).tolist())
    y, R = rng.standard_normal(90), rng.standard_normal((4, 90))
    problem, _ = prepare(design, y, groups)
    expected, _ = prepare(X, y, groups)
    assert problem.ranks.tolist() == expected.ranks.tolist()
    found = design.gradient_norms(problem, R - R.mean(axis=1, keepdims=True))
    Z = expected.working_columns(np.arange(40))
    wanted = [expected.group_norms(Z.T @ (r - r.mean())) for r in R]
    close(found, np.array(wanted), max(tolerance, 1e-8))
