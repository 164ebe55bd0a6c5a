"""Stability selection: the bounds by their formulas and by simulation, the splits, and the promise to resume."""

import numpy as np
import pytest
from joblib import parallel_config

from covey import Groups, stability_selection
from covey.datasets import make_group_sparse
from covey.plots import StabilityDisplay
from covey.stability import expected_false
from covey.stability.bounds import largest_first, least_threshold
from covey.stability.stability import _halves


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(100, 120, 3, active=4, sigma=0.5, random_state=1)


def test_bounds_are_their_formulas():
    # Meinshausen and Buehlmann: q^2 / ((2 tau - 1) p)
    assert expected_false(10, 0.6, 100, assumption="none") == pytest.approx(100 / (0.2 * 100))
    # Shah and Samworth, theorem 2, on both sides of 3/4
    assert expected_false(10, 0.7, 100, n_pairs=50) == pytest.approx(1 / (2 * (0.4 - 0.01)))
    assert expected_false(10, 0.9, 100, n_pairs=50) == pytest.approx(4 * (0.1 + 0.01) / 1.02)
    # continuous at 3/4, falling in the threshold, and never above the bound without an assumption
    assert expected_false(10, 0.75, 100) == pytest.approx(expected_false(10, 0.75 + 1e-9, 100), rel=0.02)
    grid = np.linspace(0.51, 1.0, 50)
    for q in (1, 5, 40):
        unimodal = [expected_false(q, tau, 100) for tau in grid]
        assert np.all(np.diff(unimodal) <= 1e-9)
        assert np.all(np.array(unimodal) <= [expected_false(q, tau, 100, assumption="none") + 1e-12 for tau in grid])


def test_two_limits_decide_the_third():
    q = largest_first(1.0, 0.75, 200, 50, "unimodal")
    assert expected_false(q, 0.75, 200) <= 1 < expected_false(q + 1, 0.75, 200)
    tau = least_threshold(1.0, q, 200, 50, "unimodal")
    assert tau <= 0.75
    assert expected_false(q, tau, 200) <= 1 < expected_false(q, tau - 0.01, 200)


def test_mistakes_on_noise_stay_below_the_bound():
    """Without any signal everything found is a mistake."""
    mistakes, bound = [], np.inf
    for seed in range(12):
        rng = np.random.default_rng(seed)
        found = stability_selection(
            rng.standard_normal((40, 60)), rng.standard_normal(40), 2, n_pairs=10, max_false=2.0, random_state=seed
        )
        mistakes.append(len(found.selected))
        bound = found.expected_false
    assert 1 < bound <= 2
    assert np.mean(mistakes) <= bound


def test_the_signal_is_found(data):
    found = stability_selection(data.X, data.y, data.groups, n_pairs=10, random_state=0)
    assert set(found.selected) == set(data.S.tolist())
    assert found.expected_false <= 1
    frame = found.to_frame()
    assert frame["frequency"].is_monotonic_decreasing
    np.testing.assert_allclose(frame["frequency"].sum() * 20, (found.orders >= 0).sum())


def test_halves_are_complementary():
    halves = _halves(np.arange(3, 14), 20, 5, 0)
    for a, b in zip(halves[::2], halves[1::2], strict=True):
        assert len(a) == len(b) == 5
        assert len(np.union1d(a, b)) == 10
        assert np.isin(np.union1d(a, b), np.arange(3, 14)).all()


def test_a_half_is_the_rows_themselves(data):
    """Rows of weight zero are not there: the first groups are those of the path on half of the rows."""
    from covey import group_path

    found = stability_selection(data.X, data.y, data.groups, n_pairs=2, n_first=5, random_state=3)
    for order, half in zip(found.orders, _halves(np.arange(100), 100, 2, 3), strict=True):
        path = group_path(data.X[half], data.y[half], data.groups, stop=lambda snapshot: snapshot.n_woken >= 5)
        assert [l for l, _ in path.entered[:5]] == order.tolist()


def test_parallel_and_resumed_runs_agree(data, tmp_path, monkeypatch, capsys):
    settings = {"n_pairs": 4, "random_state": 7, "n_first": 6}
    plain = stability_selection(data.X, data.y, data.groups, **settings)
    with parallel_config("threading"):
        kept = stability_selection(data.X, data.y, data.groups, n_jobs=2, checkpoint=tmp_path, verbose=1, **settings)
    np.testing.assert_array_equal(kept.orders, plain.orders)
    assert "8 of 8 half-samples" in capsys.readouterr().out
    files = sorted(tmp_path.rglob("*.json"))
    assert len(files) == 8
    files[0].write_text("[1, 2")  # damaged
    files[1].unlink()
    computed = []
    from covey.stability import stability

    honest = stability._first_groups
    monkeypatch.setattr(stability, "_first_groups", lambda *args: computed.append(1) or honest(*args))
    again = stability_selection(data.X, data.y, data.groups, checkpoint=tmp_path, **settings)
    np.testing.assert_array_equal(again.orders, plain.orders)
    assert len(computed) == 2
    # other data are other work
    stability_selection(data.X, data.y + 1e-9 * data.X[:, 0], data.groups, checkpoint=tmp_path, **settings)
    assert len(computed) == 10


def test_what_is_told(data):
    names = {f"pathway{l}": [3 * l, 3 * l + 1, 3 * l + 2] for l in range(40)}
    groups = Groups.from_names(names, [f"gene{j}" for j in range(120)])
    found = stability_selection(data.X, data.y, groups, n_pairs=5, random_state=0)
    said = str(found.summary())
    assert repr(found) == said
    assert f"pathway{data.S[0]}" in said
    assert "Expected number of mistakes: at most" in said
    display = StabilityDisplay.from_selection(found)
    assert {f"pathway{l}" for l in data.S} <= {text.get_text() for text in display.ax_.texts}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0.5}, "threshold must be above 1/2"),
        ({"threshold": None}, "threshold=None needs n_first"),
        ({"n_first": 41}, "n_first is 41, but there are 40 groups"),
        ({"n_first": 20, "max_false": 0.1}, "above max_false=0.1"),
        ({"n_first": 40, "threshold": None, "max_false": 0.01}, "No threshold keeps"),
        ({"n_pairs": 0}, "n_pairs must be at least 1"),
        ({"assumption": "r-concave"}, "assumption must be"),
        ({"checkpoint": "here"}, "checkpoint needs an int as random_state"),
        ({"sample_weight": np.r_[1.0, 1.0, np.zeros(98)]}, "2 rows of positive weight are too few"),
    ],
)
def test_what_is_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        stability_selection(data.X, data.y, data.groups, **settings)
