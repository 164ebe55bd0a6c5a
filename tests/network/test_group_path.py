"""The public call: equivariances, records, stopping, continuing, bad input, degenerate data."""

import itertools

import numpy as np
import pytest

from covey import Groups, group_path
from covey.designs import as_design
from covey.path import PathState
from covey.stopping.monitor import PATIENCE, Monitor
from network_problems import LAYOUTS, make

EQUAL = LAYOUTS["equal"]


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


# ---------------------------------------------------------------------- equivariances


def test_permuting_columns_permutes_coefficients():
    X, y = make(EQUAL)
    order = np.random.default_rng(1).permutation(120)
    groups = Groups.from_labels(EQUAL.labels[order].tolist())
    a = group_path(X, y, EQUAL, max_iter=300, times=[300])
    b = group_path(X[:, order], y, groups, max_iter=300, times=[300])
    assert relative(b.at(300), a.at(300)[order]) < 1e-8


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e6, 1e150])
def test_scaling_y_scales_coefficients(scale):
    X, y = make(EQUAL)
    a = group_path(X, y, EQUAL, max_iter=300, times=[100, 300])
    b = group_path(X, y * scale, EQUAL, max_iter=300, times=[100, 300])
    assert relative(b.at(300) / scale, a.at(300)) < 1e-9
    assert relative(b.intercepts / scale, a.intercepts) < 1e-9


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
@pytest.mark.parametrize("standardize", ["group", "column", False])
def test_scaling_X_scales_coefficients(scale, standardize):
    X, y = make(EQUAL)
    a = group_path(X, y, EQUAL, max_iter=200, times=[200], standardize=standardize)
    b = group_path(X * scale, y, EQUAL, max_iter=200, times=[200], standardize=standardize)
    assert relative(b.at(200) * scale, a.at(200)) < 1e-8


def test_shifting_changes_only_the_intercept():
    X, y = make(EQUAL)
    a = group_path(X, y, EQUAL, max_iter=300, times=[300])
    b = group_path(X + 1e3, y - 7, EQUAL, max_iter=300, times=[300])
    assert relative(b.at(300), a.at(300)) < 1e-6
    np.testing.assert_allclose(b.predict(X + 1e3), a.predict(X) - 7, atol=1e-6)


def test_recombining_a_group_changes_no_prediction():
    X, y = make(EQUAL)
    mix = np.random.default_rng(0).standard_normal((3, 3))
    other = X.copy()
    other[:, 3:6] = X[:, 3:6] @ mix
    a = group_path(X, y, EQUAL, max_iter=300, times=[300])
    b = group_path(other, y, EQUAL, max_iter=300, times=[300])
    np.testing.assert_allclose(a.predict(X), b.predict(other), atol=1e-8)


def test_sample_weights_are_repeated_rows():
    X, y = make(EQUAL)
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    for engine in ("exact", "screened"):
        a = group_path(X, y, EQUAL, sample_weight=counts, max_iter=250, times=[250], engine=engine)
        b = group_path(
            np.repeat(X, counts, axis=0), np.repeat(y, counts), EQUAL, max_iter=250, times=[250], engine=engine
        )
        assert relative(a.at(250), b.at(250)) < 1e-8


# ---------------------------------------------------------------------- what a path holds


def test_times_are_recorded_as_asked():
    X, y = make(EQUAL)
    times = [0, 10, 150, 151, 300]
    for engine in ("exact", "screened"):
        path = group_path(X, y, EQUAL, times=times, max_iter=300, engine=engine)
        assert path.times.tolist() == times
        assert path.coefs.shape == (5, 120)
        assert path.coefs[[0]].nnz == 0
    assert path.group_norms.shape == (5, 40)


def test_sleeping_groups_are_exactly_zero():
    X, y = make(EQUAL)
    path = group_path(X, y, EQUAL, max_iter=250)
    woken = dict(path.entered)
    norms = path.group_norms
    for l in range(40):
        assert (norms[path.times < woken.get(l, np.inf), l] == 0).all()
    assert len(path) < 100


def test_a_path_can_be_continued():
    X, y = make(EQUAL, noise=1.0)
    for algorithm in ("single-stage", "two-stage"):
        for engine in ("exact", "screened"):
            settings = {"algorithm": algorithm, "engine": engine, "max_iter": 600}
            whole = group_path(X, y, EQUAL, times=[600], **settings)
            first = group_path(X, y, EQUAL, **(settings | {"max_iter": 350}))
            rest = group_path(X, y, EQUAL, start=first, times=[600], **settings)
            assert relative(rest.at(600), whole.at(600)) < 2e-3
            assert [l for l, _ in rest.entered] == [l for l, _ in whole.entered]


def test_starting_from_chosen_groups():
    X, y = make(EQUAL)
    coef = np.zeros(120)
    coef[3:6] = np.linalg.lstsq(X[:, 3:6] - X[:, 3:6].mean(axis=0), y - y.mean(), rcond=None)[0]
    state = PathState(time=0, coef=coef, awake=np.array([1]), log_magnitudes=np.full(40, np.log(1e-6)))
    path = group_path(X, y, EQUAL, start=state, max_iter=200)
    np.testing.assert_allclose(path.at(0), coef, atol=1e-8)
    assert path.entered[0][0] == 1


# ---------------------------------------------------------------------- stopping


def monitor(X, y, n_groups):
    return Monitor(as_design(X).errors(y, np.ones(len(y))), PATIENCE, n_groups)


def test_validation_ends_the_path():
    X, y = make(EQUAL, noise=1.0)
    held_out, y_held_out = make(EQUAL, noise=1.0)
    stop = monitor(held_out[100:], y_held_out[100:], EQUAL.n_groups)
    path = group_path(X[:100], y[:100], EQUAL, stop=stop)
    assert path.status == "stopped"
    assert stop.times == path.times.tolist()
    predicted = path.predict(X[100:])
    errors = np.mean((y[100:, None] - predicted) ** 2, axis=0)
    np.testing.assert_allclose(stop.errors, errors, rtol=1e-8)
    assert {1, 7, 12, 20} <= set(np.flatnonzero(path.groups.norms(path.at(stop.best_time))))


def test_plateaus_do_not_stop_a_path():
    """A weak group wakes ten times later than the strong one; nothing changes in between."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    y = 10 * X[:, 0] + 1.0 * X[:, 5] + 0.1 * rng.standard_normal(400)
    stop = monitor(X[300:], y[300:], 20)
    path = group_path(X[:300], y[:300], None, stop=stop)
    assert {0, 5} <= set(np.flatnonzero(path.at(stop.best_time)))


def test_snapshots_only_append_columns():
    X, y = make(EQUAL)
    seen = []
    group_path(X, y, EQUAL, max_iter=300, stop=lambda snapshot: seen.append(snapshot) or False)
    for a, b in itertools.pairwise(seen):
        assert b.time > a.time
        assert b.columns[: a.columns.size].tolist() == a.columns.tolist()
        assert b.n_woken >= a.n_woken


# ---------------------------------------------------------------------- degenerate data


def degenerate():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12))
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    zero, twin, constant = X.copy(), X.copy(), X.copy()
    zero[:, 3:6] = 0
    twin[:, 3:6] = X[:, :3]
    constant[:, 1] = 5
    return {
        "one column": (X[:, :1], y, 1),
        "two rows": (X[:2], y[:2], 3),
        "wide": (rng.standard_normal((5, 300)), y[:5], 3),
        "groups larger than n": (rng.standard_normal((8, 40)), y[:8], 20),
        "very large group": (rng.standard_normal((20, 150)), y[:20], 150),
        "all columns equal": (np.repeat(X[:, :1], 12, axis=1), y, 3),
        "y constant": (X, np.full(30, 3.0), 3),
        "y zero": (X, np.zeros(30), 3),
        "zero group": (zero, y, 3),
        "duplicate group": (twin, y, 3),
        "constant column": (constant, y, 3),
        "all zero": (np.zeros((30, 12)), y, 3),
        "noiseless": (X, X[:, 0], 3),
        "integers": (rng.integers(0, 3, (30, 12)), y, 3),
    }


@pytest.mark.parametrize("engine", ["exact", "screened"])
@pytest.mark.parametrize("standardize", ["group", "column", False])
@pytest.mark.parametrize("case", degenerate())
def test_degenerate_data_give_finite_answers(case, standardize, engine):
    X, y, size = degenerate()[case]
    path = group_path(X, y, size, engine=engine, standardize=standardize, max_iter=300)
    assert np.isfinite(path.coefs.data).all()
    assert np.isfinite(path.intercepts).all()
    assert path.status != "diverged"
    if case in ("y constant", "y zero", "all zero"):
        assert path.coefs.nnz == 0
        assert path.status == "exhausted"
        np.testing.assert_allclose(path.intercepts, y.mean())


def test_duplicate_groups_share_the_work():
    X, y, size = degenerate()["duplicate group"]
    path = group_path(X, y, size, max_iter=300)
    assert {l for l, _ in path.entered} >= {0, 1}
    np.testing.assert_allclose(path.at(300)[:3], path.at(300)[3:6], rtol=1e-6)


# ---------------------------------------------------------------------- bad input

BAD = {
    "nan": ({"X": "nan"}, r"missing or infinite values in column 7"),
    "inf": ({"X": "inf"}, r"missing or infinite values in column 7"),
    "text": ({"X": "text"}, r"must hold numbers"),
    "one dimension": ({"X": "flat"}, r"two dimensions"),
    "empty": ({"X": "empty"}, r"empty"),
    "y length": ({"y": np.zeros(3)}, r"y has 3 entries, but X has 60 rows"),
    "y nan": ({"y": np.full(60, np.nan)}, r"y has missing or infinite values"),
    "groups": ({"groups": [0, 1]}, r"groups has 2 entries, but X has 12 columns"),
    "algorithm": ({"algorithm": "three-stage"}, r"algorithm must be one of"),
    "engine": ({"engine": "fast"}, r"engine must be one of"),
    "standardize": ({"standardize": "yes"}, r"standardize must be"),
    "init_scale": ({"init_scale": 0.0}, r"init_scale must be above 0"),
    "step_size": ({"step_size": "big"}, r"step_size must be 'auto' or a number"),
    "direction_step": ({"algorithm": "single-stage", "direction_step": 0.1}, r"applies after the switch"),
    "depth": ({"depth": 1}, r"depth must be at least 2"),
    "max_iter": ({"max_iter": 2.5}, r"max_iter must be a whole number"),
    "tol": ({"tol": -1.0}, r"tol must be above 0"),
    "weights": ({"group_weights": [1.0, 2.0]}, r"group_weights has shape \(2,\); there are 4 groups"),
    "weights sign": ({"group_weights": [1.0, 2.0, -1.0, 1.0]}, r"group_weights must be above 0"),
    "sample weights": ({"sample_weight": np.full(60, -1.0)}, r"sample_weight must not be negative"),
    "no sample weight": ({"sample_weight": np.zeros(60)}, r"sample_weight is zero in every row"),
    "times": ({"times": [-1]}, r"times must be finite and not negative"),
    "start": ({"start": "there"}, r"start must be a Path"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    changes, message = BAD[case]
    X = np.random.default_rng(0).standard_normal((60, 12))
    kinds = {"nan": np.nan, "inf": np.inf}
    kind = changes.get("X")
    if kind in kinds:
        X[3, 7] = kinds[kind]
    elif kind == "text":
        X = X.astype(str).astype(object)
        X[0, 0] = "a"
    elif kind == "flat":
        X = X.ravel()
    elif kind == "empty":
        X = X[:0]
    arguments = {"y": np.arange(60.0), "groups": 3} | {k: v for k, v in changes.items() if k != "X"}
    with pytest.raises(ValueError, match=message):
        group_path(X, **arguments)


@pytest.mark.parametrize("engine", ["exact", "screened"])
@pytest.mark.parametrize("mean", [1e4, 1e6, 1e8])
def test_columns_far_from_zero_are_as_good_as_centred_ones(mean, engine):
    X, y = make(EQUAL)
    settings = {"max_iter": 250, "times": [250], "engine": engine}
    near, far = group_path(X, y, EQUAL, **settings), group_path(X + mean, y, EQUAL, **settings)
    # adding the mean rounds X itself to this share
    np.testing.assert_allclose(far.at(250), near.at(250), atol=1e3 * mean * np.finfo(float).eps)
