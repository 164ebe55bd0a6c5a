"""Row space, and many iterations at once, change how a path is computed, and nothing of it."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.designs import DenseDesign, as_design
from covey.engine import working_rows
from covey.engine.beginning import read_start
from covey.engine.exact import ExactPath
from covey.engine.held import HeldPath
from covey.engine.recorder import Recorder
from covey.engine.rowspace import RowSpacePath, all_awake, prefers_rows
from covey.engine.settings import read_settings
from covey.engine.working_rows import WorkingRows
from covey.preprocess import prepare
from engine_problems import LAYOUTS, make


def held_path(problem, settings, recorder, begin):
    return HeldPath(problem, settings, recorder, begin, WorkingRows.of(problem))


SETTINGS = {
    "algorithm": "single-stage", "init_scale": 0.1, "step_size": "auto", "direction_step": "auto",
    "switch_tol": "auto", "depth": 2, "group_weights": "sqrt",
}  # fmt: skip


def run(kind, X, y, groups, options, max_iter):
    own = {name: options[name] for name in options if name not in SETTINGS}
    problem, made = prepare(X, y, groups, **own)
    settings = read_settings(problem, **SETTINGS | {name: options[name] for name in options if name in SETTINGS})
    counts = []
    recorder = Recorder(problem, lambda now: counts.append(now.n_risen), None, made.names, 0)
    path = kind(problem, settings, recorder, read_start(None, problem, settings))
    status = path.run(max_iter, np.empty(0, dtype=np.int64))
    return status, np.array(recorder.times), *recorder.coefficients(), recorder.entered, np.array(counts), path.state()


def assert_same(X, y, groups, tolerance=1e-8, max_iter=80, **options):
    status, times, coefs, intercepts, entered, counts, state = run(ExactPath, X, y, groups, options, max_iter)
    largest = abs(coefs).max()
    assert largest > 0
    for kind in (RowSpacePath, held_path):
        other = run(kind, X, y, groups, options, max_iter)
        assert other[0] == status
        np.testing.assert_array_equal(other[1], times)
        assert abs(other[2] - coefs).max() <= tolerance * largest
        np.testing.assert_allclose(other[3], intercepts, rtol=tolerance, atol=tolerance * largest * np.abs(X).max())
        assert other[4] == entered
        np.testing.assert_allclose(other[5], counts, rtol=max(1e-7, tolerance))
        np.testing.assert_allclose(other[6].coef, state.coef, atol=tolerance * largest)
        np.testing.assert_allclose(other[6].log_magnitudes, state.log_magnitudes, atol=10 * tolerance)
        assert (other[6].armed, other[6].awake.tolist()) == (state.armed, state.awake.tolist())
        assert other[6].direction_step == pytest.approx(state.direction_step, rel=100 * tolerance)
    return entered


@pytest.mark.parametrize("init_scale", [1e-2, 1e-1])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("algorithm", ["single-stage", "two-stage"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_path(layout, algorithm, depth, init_scale):
    X, y = make(LAYOUTS[layout], n=50)
    # a deeper network sleeps in proportion to 1 over its start
    max_iter = 1500 if depth == 3 and init_scale == 1e-2 else 80
    assert_same(
        X, y, LAYOUTS[layout], max_iter=max_iter, algorithm=algorithm, depth=depth, init_scale=init_scale
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"standardize": "column"},
        {"standardize": False},
        {"fit_intercept": False},
        {"sample_weight": np.random.default_rng(1).integers(0, 3, 50).astype(float)},
        {"group_weights": np.linspace(0.5, 2.0, 40)},
        {"group_weights": None, "fit_intercept": False, "standardize": False},
    ],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize("init_scale", [1e-2, 1e-1])
def test_the_same_path_in_other_settings(options, init_scale):
    groups = LAYOUTS["unequal"]
    X, y = make(groups, n=50)
    assert_same(X, y, groups, init_scale=init_scale, **options)


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision(order):
    groups = LAYOUTS["unequal"]
    X, y = make(groups, n=50, dtype=np.float32)
    assert_same(np.asarray(X, order=order), y, groups, 1e-3)


def test_correlated_columns_need_substeps():
    """All columns share a factor: the curvature is about half the number of columns."""
    groups = LAYOUTS["equal"]
    X, y = make(groups, n=50)
    X += 2.0 * np.random.default_rng(2).standard_normal((50, 1))
    assert_same(X, y, groups)


def test_columns_that_do_not_vary():
    """A group of constant columns never wakes; a doubled column and a large mean change nothing."""
    groups = LAYOUTS["equal"]
    X, y = make(groups, n=50)
    X[:, 3:6] = 7.0
    X[:, 10] = X[:, 9]
    X[:, 20] += 1e3
    entered = assert_same(X, y, groups)
    assert len(entered) == groups.n_groups - 1
    assert 1 not in [l for l, _ in entered]


def test_the_product_with_a_gram_matrix_that_is_not_formed():
    groups = LAYOUTS["scattered"]
    X, y = make(groups, n=50)
    problem, _ = prepare(X, y, groups, sample_weight=np.arange(50.0))
    w = np.random.default_rng(0).standard_normal(problem.n_columns)
    expected = problem.gram_rows(list(range(groups.n_groups))).T @ w
    np.testing.assert_allclose(problem.gram_product(w), expected, atol=1e-12 * np.abs(expected).max())


class FewOperations(DenseDesign):
    """Inherits the derived product."""

    multiply = DenseDesign.__mro__[1].multiply


@pytest.mark.parametrize("p", [3, 512, 1300])
def test_multiply(p):
    X, coef = np.random.default_rng(0).standard_normal((20, p)), np.linspace(-1, 1, p)
    for design in (as_design(X), FewOperations(X)):
        np.testing.assert_allclose(design.multiply(coef), X @ coef, rtol=1e-12, atol=1e-12)
        assert design.n_passes == 1


@pytest.mark.parametrize("n", [50, 100])
def test_row_space_is_for_wide_designs(n):
    X, y = make(LAYOUTS["equal"], n=n)
    problem, _ = prepare(X, y, LAYOUTS["equal"])
    assert prefers_rows(problem) == (n == 50)


@pytest.mark.parametrize(
    ("depth", "init_scale", "expected"),
    [(2, 1e-1, True), (2, 1e-2, True), (2, 1e-4, False), (2, 1e-6, False), (3, 0.1, True), (3, 1e-2, False)],
)
def test_who_counts_as_awake_from_the_start(depth, init_scale, expected):
    X, y = make(LAYOUTS["equal"], n=50)
    problem, _ = prepare(X, y, LAYOUTS["equal"])
    assert all_awake(read_settings(problem, **SETTINGS | {"depth": depth, "init_scale": init_scale})) is expected


@pytest.mark.parametrize("most_numbers", [0, 10**6])
@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_wide_problems_hold_no_gram_matrix(engine, most_numbers, monkeypatch):
    """A small one is read once and held, a large one is read twice for every product."""
    monkeypatch.setattr(working_rows, "MOST_NUMBERS", most_numbers)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2000))
    y = X[:, :500].sum(axis=1) + rng.standard_normal(40)
    path = group_path(X, y, Groups.from_size(5, 2000), init_scale=0.1, engine=engine, max_iter=20)
    assert path.n_gram_columns == 0
    assert path.n_passes > 40 if most_numbers == 0 else path.n_passes == 1
    assert len(path.entered) == 400


@pytest.mark.parametrize("most_numbers", [0, 10**6])
def test_a_path_goes_on_in_row_space(most_numbers, monkeypatch):
    monkeypatch.setattr(working_rows, "MOST_NUMBERS", most_numbers)
    X, y = make(LAYOUTS["unequal"], n=50)
    options = {"init_scale": 0.1, "algorithm": "two-stage"}
    whole = group_path(X, y, LAYOUTS["unequal"], max_iter=60, times=[60], **options)
    half = group_path(X, y, LAYOUTS["unequal"], max_iter=30, **options)
    rest = group_path(X, y, LAYOUTS["unequal"], max_iter=60, times=[60], start=half, **options)
    # the curvature is found anew, to three digits
    assert abs(rest.coefs - whole.coefs).max() <= 1e-3 * abs(whole.coefs).max()
