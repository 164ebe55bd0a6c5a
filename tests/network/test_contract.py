"""One contract for both engines, over designs, layouts and algorithms: the same path."""

import numpy as np
import pytest

from covey import Groups, group_path
from network_problems import LAYOUTS, make

ALGORITHMS = ["single-stage", "two-stage"]


def assert_same_path(exact, screened, coef_tol=1e-3, time_tol=0.005):
    names = [l for l, _ in exact.entered]
    assert [l for l, _ in screened.entered][: len(names)] == names or len(names) >= len(screened.entered)
    common = min(len(exact.entered), len(screened.entered))
    assert common >= max(len(exact.entered), len(screened.entered)) - 1  # one may enter in the last iteration
    for (l, t), (k, s) in zip(exact.entered[:common], screened.entered[:common], strict=True):
        assert l == k
        assert abs(t - s) <= max(2, time_tol * t)
    a, b = exact.at(exact.times[-1]), screened.at(screened.times[-1])
    np.testing.assert_allclose(b, a, atol=coef_tol * np.abs(a).max())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_screened_follows_exact(layout, algorithm):
    X, y = make(LAYOUTS[layout])
    paths = [
        group_path(X, y, LAYOUTS[layout], algorithm=algorithm, engine=engine, max_iter=500)
        for engine in ("exact", "screened")
    ]
    assert len(paths[0].entered) >= 4
    assert_same_path(*paths)


@pytest.mark.parametrize("standardize", ["column", "block", False])
def test_screened_follows_exact_in_other_coordinates(standardize):
    X, y = make(LAYOUTS["unequal"])
    paths = [
        group_path(X, y, LAYOUTS["unequal"], engine=engine, max_iter=300, standardize=standardize)
        for engine in ("exact", "screened")
    ]
    assert_same_path(*paths)


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_storage_does_not_matter(order, dtype):
    groups = LAYOUTS["scattered"]
    X, y = make(groups, dtype=dtype)
    if order == "strided":
        wide = np.zeros((X.shape[0] * 2, X.shape[1] * 2), dtype=dtype)
        wide[::2, ::2] = X
        stored = wide[::2, ::2]
    else:
        stored = np.asarray(X, order=order)
    reference = group_path(X.astype(np.float64), y, groups, max_iter=300, times=[100, 200, 300])
    path = group_path(stored, y, groups, max_iter=300, times=[100, 200, 300])
    tolerance = 1e-8 if dtype == np.float64 else 1e-3
    scale = np.abs(reference.coefs).max()
    assert np.abs(path.coefs - reference.coefs).max() <= tolerance * scale


def test_far_groups_change_nothing():
    """Wide enough that most groups are only checked now and then."""
    rng = np.random.default_rng(3)
    n, p = 100, 4000
    X = rng.standard_normal((n, p))
    y = X[:, 5:10] @ np.ones(5) * 2 + X[:, 50:55] @ np.ones(5) + 1.5 * rng.standard_normal(n)
    groups = Groups.from_size(5, p)
    exact = group_path(X, y, groups, engine="exact", max_iter=620, algorithm="single-stage")
    screened = group_path(X, y, groups, engine="screened", max_iter=620, algorithm="single-stage", tol=1e-4)
    assert len(exact.entered) > 8
    assert_same_path(exact, screened, 3e-3)
    assert screened.n_passes < 12


def test_error_falls_with_tol():
    X, y = make(LAYOUTS["equal"], noise=2.0, n=100)
    times = np.arange(120, 400, 20)
    exact = group_path(X, y, LAYOUTS["equal"], engine="exact", max_iter=400, times=times)
    errors = []
    for tol in (1e-2, 1e-3, 1e-4, 1e-5):
        path = group_path(X, y, LAYOUTS["equal"], engine="screened", max_iter=400, times=times, tol=tol)
        errors.append(np.abs(path.coefs - exact.coefs).max() / np.abs(exact.coefs).max())
    assert errors[2] < 0.5 * errors[1]
    assert errors[3] < 0.5 * errors[2]
    assert errors[3] < 1e-3


def test_deeper_networks_agree_too():
    X, y = make(LAYOUTS["equal"])
    paths = [
        group_path(X, y, LAYOUTS["equal"], engine=engine, depth=3, init_scale=0.03, max_iter=1500, tol=1e-5)
        for engine in ("exact", "screened")
    ]
    assert len(paths[0].entered) >= 2
    assert_same_path(*paths, coef_tol=1e-2, time_tol=0.01)
