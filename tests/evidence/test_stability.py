"""Stability selection: the bounds by their formulas and by simulation, the splits, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config

from covey import Groups, stability_selection
from covey.datasets import make_group_sparse
from covey.evidence import expected_false
from covey.evidence.bounds import largest_first, least_threshold, tail_bound
from covey.evidence.stability import complementary_halves
from covey.plots import StabilityDisplay


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(100, 120, 3, active=4, sigma=0.5, random_state=1)


@pytest.fixture(scope="module")
def found(data):
    names = {f"pathway{l}": [3 * l, 3 * l + 1, 3 * l + 2] for l in range(40)}
    groups = Groups.from_names(names, [f"gene{j}" for j in range(120)])
    return stability_selection(data.X, data.y, groups, n_pairs=10, random_state=0)


def test_bounds_are_their_formulas():
    # Meinshausen and Buehlmann: q^2 / ((2 tau - 1) p)
    assert expected_false(10, 0.6, 100, assumption="none") == pytest.approx(100 / (0.2 * 100))
    for q, tau in ((1, 0.6), (5, 0.75), (8, 0.9), (40, 0.55)):  # the more is assumed, the lower
        assert expected_false(q, tau, 100, n_pairs=20) <= expected_false(q, tau, 100, n_pairs=20, assumption="none")
    # far below theorem 2 of Shah and Samworth, for unimodal distributions
    assert expected_false(8, 0.75, 100) < 0.5 * (8**2 / 100) / (2 * (0.5 - 0.01))


@pytest.mark.parametrize("assumption", ["none", "r-concave"])
def test_two_limits_decide_the_third(assumption):
    def bound(n_first, tau):
        return expected_false(n_first, tau, 80, n_pairs=20, assumption=assumption)

    q = largest_first(1.0, 0.75, 80, 20, assumption)
    assert bound(q, 0.75) <= 1 < bound(q + 1, 0.75)
    tau = least_threshold(1.0, q, 80, 20, assumption)
    assert tau <= 0.75
    assert bound(q, tau) <= 1 < bound(q, tau - 0.025)
    falling = [bound(8, tau) for tau in np.arange(0.55, 1.01, 0.05)]
    assert np.all(np.diff(falling) <= 0)


@pytest.mark.parametrize("r", [-0.5, -0.25])
def test_no_r_concave_distribution_has_a_larger_tail(r):
    """Random convex sequences to the power 1 / r, and the extremal ones, which attain the bound."""
    rng, n, closest = np.random.default_rng(0), 12, 0.0
    for _ in range(300):
        k = int(rng.integers(2, n + 1))
        slopes = np.sort(rng.exponential(size=k) * rng.choice([0.01, 0.1, 1, 10]))
        if rng.random() < 0.5:
            slopes = np.full(k, slopes[0])
        f = (1 + np.r_[0, np.cumsum(slopes)]) ** (1 / r)
        f /= f.sum()
        mean = float(np.arange(k + 1) @ f) / n
        least = int(rng.integers(1, k + 1))
        bound = tail_bound(mean, least, n, r)
        assert f[least:].sum() <= bound * (1 + 1e-6)
        if bound < 1:
            closest = max(closest, f[least:].sum() / bound)
            assert bound <= mean * n / least + 1e-12  # Markov
    assert closest > 0.99


def test_the_signal_is_found_and_the_threshold_steps_down(data, found):
    """Groups that every half selects leave fewer places for mistakes; the bound is that of the final selection."""
    assert set(found.selected_groups) == {f"pathway{l}" for l in data.S}
    frame = found.to_frame()
    assert frame["frequency"].is_monotonic_decreasing
    np.testing.assert_allclose(frame["frequency"].sum() * 20, (found.orders >= 0).sum())
    assert 0.4 <= found.threshold < least_threshold(1.0, found.n_first, 40, 10, "r-concave", 0.4)
    left = found.frequencies[~found.is_selected]
    assert found.chance == pytest.approx(left.mean())
    assert found.expected_false == expected_false(left.mean() * 40, found.threshold, 40, n_pairs=10) <= 1
    # what is given stays; without max_false, the bound says what it is worth
    given = stability_selection(data.X, data.y, data.groups, threshold=0.9, n_first=6, n_pairs=2, random_state=0)
    assert given.threshold == 0.9
    many = stability_selection(data.X, data.y, data.groups, n_first=36, n_pairs=2, random_state=0)
    assert many.threshold == 0.75
    assert many.expected_false > 1


def test_summary_and_plot(data, found):
    summary = str(found.summary())
    assert f"pathway{data.S[0]}" in summary
    assert "Expected number of mistakes: at most" in summary
    assert "no more often than the average group that is not selected" in summary
    assert repr(found).startswith("StabilitySelection(4 of 40 groups")
    display = StabilityDisplay.from_selection(found)
    assert {f"pathway{l}" for l in data.S} <= {text.get_text() for text in display.ax_.texts}
    beside = replace(found, always_groups=("pathway39",))  # those that are always in are not selected from
    assert StabilityDisplay.from_selection(beside).ax_.get_title(loc="left").startswith("4 of 39 groups selected")


def test_offsets_jobs_and_progress(data):
    shift, calls = 5 * data.X[:, 117], []
    plain = stability_selection(
        data.X, data.y, data.groups, n_pairs=3, random_state=0, progress=lambda *call: calls.append(call)
    )
    assert calls == [(i, 6) for i in range(1, 7)]
    with parallel_config("threading"):
        shifted = stability_selection(
            data.X, data.y + shift, data.groups, offset=shift, n_pairs=3, n_jobs=2, random_state=0
        )
    np.testing.assert_array_equal(shifted.orders, plain.orders)


def test_size_is_remarked_on_where_it_decides():
    rng = np.random.default_rng(0)
    X, y, sizes = rng.standard_normal((60, 12)), rng.standard_normal(60), Groups.from_sizes([1, 2, 3, 6])
    noise, none = (
        stability_selection(X, y, sizes, n_pairs=2, n_first=2, group_weights=weights, random_state=0)
        for weights in ("noise", None)
    )
    assert not noise.remarks
    assert "Groups have 1 to 6 columns" in none.remarks[0]


def test_mistakes_on_noise_stay_below_the_bound():
    """Without any signal everything found is a mistake."""
    mistakes, bound = [], np.inf
    for seed in range(12):
        rng = np.random.default_rng(seed)
        found = stability_selection(
            rng.standard_normal((40, 60)), rng.standard_normal(40), 2, n_pairs=10, max_false=2.0, random_state=seed
        )
        mistakes.append(len(found.selected_groups))
        bound = found.expected_false
    assert 1 < bound <= 2
    assert np.mean(mistakes) <= bound


@pytest.mark.parametrize("strata", [np.zeros(14, dtype=int), np.repeat([0, 1, 2], [5, 6, 3])], ids=["none", "three"])
def test_halves_are_complementary(strata):
    rows = np.arange(3, 14)
    halves = complementary_halves(rows, strata, 20, np.random.default_rng(0))
    assert len(halves) == 40
    for a, b in zip(halves[::2], halves[1::2], strict=True):
        assert len(a) == len(b) == 5
        assert len(np.union1d(a, b)) == 10
        assert np.isin(np.union1d(a, b), rows).all()
        counts = [np.bincount(strata[half], minlength=3) for half in (a, b)]
        assert strata.max() == 0 or np.abs(counts[0] - counts[1]).max() <= 1
    # every row is left out now and then, and in each half about as often as in the other
    counts = np.bincount(np.concatenate(halves[::2]), minlength=14)[3:]
    assert counts.min() > 0
    assert counts.max() < 20


def test_elimination_keeps_neighbours_of_true_groups_out():
    """Group 1 says nearly what group 0 says, and wakes soon after it; what it adds is noise."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((240, 60))
    X[:, 2:4] = 0.9 * X[:, :2] + np.sqrt(1 - 0.81) * X[:, 2:4]
    y = X[:, :2] @ [1.0, -1.0] + 0.5 * rng.standard_normal(240)
    found = stability_selection(X, y, 2, n_pairs=10, random_state=0)
    assert found.selected_groups == [0]
    assert found.frequencies[1] < 0.5
    (remark,) = found.remarks
    assert "0 with 1 (0.9" in remark
    assert "read each pair as one finding" in remark
    # a group that is always in cannot take the place of another
    assert not stability_selection(X, y, 2, n_pairs=10, random_state=0, always=[1]).remarks
    # rows of weight zero, where two others are alike, are not looked at
    more, weight = np.r_[X, np.tile(X[:120, :2], 30)], np.r_[np.ones(240), np.zeros(120)]
    same = stability_selection(more, np.r_[y, y[:120]], 2, n_pairs=10, random_state=0, sample_weight=weight)
    assert same.remarks == found.remarks


def test_halves_have_every_class():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 10)), np.r_[np.ones(2), np.zeros(58)]
    assert len(stability_selection(X, y, loss="binomial", n_pairs=3, n_first=2, random_state=0).orders) == 6
    with pytest.raises(ValueError, match="has 1 row of positive weight"):
        stability_selection(X, np.r_[1, np.zeros(59)], loss="binomial", n_pairs=3, random_state=0)
    with pytest.raises(ValueError, match="y has missing labels"):
        stability_selection(X, np.r_[np.nan, np.nan, y[2:]], loss="multinomial", n_pairs=3, random_state=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0.5, "assumption": "none"}, "threshold must be above 1/2"),
        ({"threshold": 1.5}, "threshold must be above 0"),
        ({"n_first": 41}, "n_first is 41, but there are 40 groups"),
        ({"n_first": 20, "threshold": 0.6, "max_false": 0.1}, "above max_false=0.1"),
        ({"n_first": 40, "threshold": None, "max_false": 0.01}, "No threshold keeps"),
        ({"n_pairs": 0}, "n_pairs must be at least 1"),
        ({"always": range(40)}, "Every group is in always"),
        ({"assumption": "normal"}, "assumption must be"),
        ({"y": np.ones(100)}, "y is 1 in every row"),
        ({"sample_weight": np.r_[1.0, 1.0, np.zeros(98)]}, "2 rows of positive weight are too few"),
    ],
)
def test_what_is_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        stability_selection(data.X, **{"y": data.y, "groups": data.groups} | settings)
