"""Many iterations in one call: nobody can tell, whatever the batches are and wherever the path stops."""

from dataclasses import replace

import numpy as np
import pytest

from covey import group_path
from covey.engine import held, working_rows
from covey.engine.awake import largest_eigenvalue
from covey.engine.beginning import read_start
from covey.engine.descent import awake_eigenvalue, gram_product, wake
from covey.engine.exact import ExactPath
from covey.engine.held import HeldPath
from covey.engine.recorder import Recorder
from covey.engine.settings import read_settings
from covey.engine.working_rows import WorkingRows
from covey.preprocess import prepare
from engine_problems import LAYOUTS, OneByOne, Together, make


def path_of(layout, n=60, **settings):
    X, y = make(LAYOUTS[layout], n=n)
    return group_path(X, y, LAYOUTS[layout], engine="exact", **{"max_iter": 150, "init_scale": 1e-2} | settings)


def reference_of(monkeypatch, *args, **settings):
    """The same path, iteration by iteration in Python."""
    with monkeypatch.context() as patch:
        patch.setattr(working_rows, "MOST_NUMBERS", 0)
        return path_of(*args, **settings)


def assert_same(one, other, tolerance=1e-9):
    np.testing.assert_array_equal(one.times, other.times)
    assert one.entered == other.entered
    assert one.status == other.status
    largest = abs(one.coefs).max()
    assert largest > 0 or len(one) == 1
    assert abs(one.coefs - other.coefs).max() <= tolerance * largest
    assert abs(one.strengths - other.strengths).max() <= tolerance * abs(one.strengths).max()
    a, b = one.state, other.state
    assert (a.time, a.entered, a.armed, a.awake.tolist()) == (b.time, b.entered, b.armed, b.awake.tolist())
    np.testing.assert_allclose(a.coef, b.coef, atol=tolerance * largest)
    np.testing.assert_allclose(a.log_magnitudes, b.log_magnitudes, atol=10 * tolerance)
    assert a.direction_step == pytest.approx(b.direction_step, rel=tolerance)
    assert (a.directions is None) == (b.directions is None)


@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize(
    "settings", [{}, {"algorithm": "two-stage"}, {"times": np.arange(0, 150, 7)}, {"depth": 3, "init_scale": 0.1}]
)
@pytest.mark.parametrize("limit", [{}, {"n_woken": 9}, {"n_models": 1}, {"n_models": 17}])
def test_a_rule_stops_where_it_would_have(n, settings, limit, monkeypatch):
    """Asked about one model after another, as the path comes to them, or about many: the same answer and state."""
    rules = [kind(**limit) for kind in (OneByOne, OneByOne, Together)]
    expected = reference_of(monkeypatch, "unequal", n, stop=rules[0], **settings)
    for rule in rules[1:]:
        assert_same(path_of("unequal", n, stop=rule, **settings), expected)
        assert [now.time for now in rule.seen] == [now.time for now in rules[0].seen]
        for a, b in zip(rule.seen, rules[0].seen, strict=True):
            np.testing.assert_array_equal(a.columns, b.columns)
            assert a.n_woken == b.n_woken
            assert a.n_risen == pytest.approx(b.n_risen, rel=1e-7)
            np.testing.assert_allclose(a.coef, b.coef, atol=1e-9 * np.abs(b.coef).max(initial=1e-9))


@pytest.mark.parametrize("algorithm", ["single-stage", "two-stage"])
@pytest.mark.parametrize(("batch", "room"), [(1, 40), (7, 40), (1000, 1), (1000, 5)])
def test_batches_change_nothing(algorithm, batch, room, monkeypatch):
    whole = path_of("scattered", algorithm=algorithm)
    monkeypatch.setattr(held, "BATCH", batch)
    monkeypatch.setattr(held, "ROOM", room)
    assert_same(path_of("scattered", algorithm=algorithm), whole, tolerance=1e-12)


def test_a_path_goes_on_where_a_rule_stopped_it():
    """What ran past the stop has left no trace."""
    whole = path_of("equal", init_scale=0.1, max_iter=80, times=[80])
    begun = path_of("equal", init_scale=0.1, stop=OneByOne(n_models=31))
    assert begun.state.time == 30
    rest = path_of("equal", init_scale=0.1, max_iter=80, times=[80], start=begun)
    # the curvature is found anew, to three digits
    assert abs(rest.coefs - whole.coefs).max() <= 1e-3 * abs(whole.coefs).max()


def test_wake_ups_are_told_up_to_the_stop(capsys):
    path = path_of("equal", stop=Together(n_woken=5), verbose=1)
    assert 5 <= len(path.entered) < 40
    assert capsys.readouterr().out.count("woke up") == len(path.entered)


@pytest.mark.parametrize("gamma", [1e4, 1e9])
def test_divergence_ends_a_path_at_the_last_good_iteration(gamma):
    X, y = make(LAYOUTS["equal"], n=60)
    problem, made = prepare(X, y, LAYOUTS["equal"], standardize=False)
    settings = read_settings(
        problem, algorithm="single-stage", init_scale=0.1, step_size="auto", direction_step="auto", switch_tol="auto",
        depth=2, group_weights=None,
    )  # fmt: skip
    settings = replace(settings, gamma=gamma)
    ends = []
    for kind in (ExactPath, lambda *args: HeldPath(*args, WorkingRows.of(problem))):
        recorder = Recorder(problem, None, None, made.names, 0)
        path = kind(problem, settings, recorder, read_start(None, problem, settings))
        ends.append((path.run(100, np.empty(0, dtype=np.int64)), recorder.times, path.state()))
    (status, times, state), (other_status, other_times, other) = ends
    assert status == other_status == "diverged"
    assert times == other_times
    assert state.time == other.time
    np.testing.assert_allclose(other.coef, state.coef, rtol=1e-6, atol=1e-9 * np.abs(state.coef).max())


def test_nothing_to_explain():
    X, _ = make(LAYOUTS["equal"], n=60)
    path = group_path(X, np.full(60, 3.0), LAYOUTS["equal"], engine="exact", max_iter=20)
    assert path.status == "exhausted"
    assert path.times.tolist() == [0]


# ---------------------------------------------------------------------- pieces


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 12])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_products(n, scale):
    rng = np.random.default_rng(n)
    A, x, out = rng.standard_normal((n, 15)), rng.standard_normal(15) * scale, np.full(15, np.nan)
    gram_product(A, n, 15, True, x, out)
    np.testing.assert_allclose(out, A.T @ (A @ x), atol=1e-12 * scale)
    K, out = np.zeros((15, 15)), np.full(15, np.nan)
    K[:n, :n] = A.T[:n] @ A[:, :n]
    gram_product(K, n, n, False, x, out)
    np.testing.assert_allclose(out[:n], K[:n, :n] @ x[:n], atol=1e-12 * scale)
    assert np.isnan(out[n:]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 50, 1000])
def test_groups_wake_in_order_of_their_strength(size):
    """Of equals the first; those that are asleep for good, or below, do not; the order before stays as it was."""
    rng = np.random.default_rng(size)
    u = rng.integers(1, 12, size + 2) / 10.0
    asleep, order = np.ones(size + 2, dtype=bool), np.full(size + 2, -1)
    asleep[[0, size + 1]], order[:1] = False, size + 1
    expected = [l for l in np.argsort(-u, kind="stable").tolist() if 0 < l <= size and u[l] ** 2 >= 0.36]
    n_awake = wake(u, 2, 0.36, asleep, order, 1)
    assert order[:n_awake].tolist() == [size + 1, *expected]
    assert set(np.flatnonzero(~asleep).tolist()) == {0, size + 1, *expected}
    assert wake(u, 2, 0.36, asleep, order, n_awake) == n_awake


@pytest.mark.parametrize("wide", [True, False])
def test_the_curvature_of_the_awake_groups(wide):
    """Found as in the reference, when groups are added to those that were there."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((12, 30))
    A = Z if wide else Z.T @ Z
    starts, order = np.arange(0, 31, 3), rng.permutation(10)
    block, columns = np.full((A.shape[0], 30), np.nan), np.empty(30, dtype=np.intp)
    x, y, filled, known, vector = np.empty(30), np.empty(30), 0, 0, np.empty(0)
    for n_awake in (2, 3, 10):
        value, filled = awake_eigenvalue(
            A, wide, starts, order, known, n_awake, block, filled, columns, x, y
        )  # fmt: skip
        own = Z[:, np.concatenate([np.arange(3 * l, 3 * l + 3) for l in order[:n_awake]])]
        vector = np.append(vector, [1 / np.sqrt(3 * a + 3) for a in range(known, n_awake) for _ in range(3)])
        expected, vector = largest_eigenvalue(lambda b, own=own: own.T @ (own @ b), vector)
        known = n_awake
        assert filled == 3 * n_awake
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(x[:filled], vector, rtol=1e-10)
