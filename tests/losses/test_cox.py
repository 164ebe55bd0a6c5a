"""The partial likelihood: against its definition, finite differences, lifelines and scikit-survival."""

import itertools

import numpy as np
import pytest

from covey.losses import Cox, survival
from covey.losses.cox import read_survival
from covey.losses.risk_sets import Segments

CASES = list(itertools.product(("efron", "breslow"), (False, True), (1, 6), (False, True), (False, True)))
IDS = [
    f"{ties}{'-truncated' * cut}{'-strata' * (strata > 1)}{'-tied' * tied}{'-weighted' * weighted}"
    for ties, cut, strata, tied, weighted in CASES
]  # fmt: skip


def times(truncated, strata, tied, weighted, n=50, seed=0):
    """Rows of (start, stop, event, stratum), and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    stop = rng.exponential(size=n)
    if tied:
        stop = np.ceil(4 * stop) / 4
    start = np.full(n, -np.inf)
    if truncated:
        # some enter at the very time of an event: they are not at risk at it
        start = np.where(
            rng.random(n) < 0.5, np.floor(4 * stop * rng.uniform(0, 0.9, n)) / 4 - 0.25 * (not tied), -np.inf
        )
        start = np.where(start < stop, start, -np.inf)
    rows = np.column_stack([start, stop, rng.random(n) < 0.6, rng.integers(0, strata, n)]).astype(float)
    weight = rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weighted else np.ones(n)
    return rows, weight, 1.5 * rng.standard_normal(n)


def by_definition(rows, eta, weight, ties):
    """A sum over strata, event times and tied events."""
    total = 0.0
    for stratum in np.unique(rows[:, 3]):
        stratum_rows = (rows[:, 3] == stratum) & (weight > 0)
        for time in np.unique(rows[stratum_rows & (rows[:, 2] > 0), 1]):
            at_risk = stratum_rows & (rows[:, 0] < time) & (rows[:, 1] >= time)
            tied = stratum_rows & (rows[:, 1] == time) & (rows[:, 2] > 0)
            r, d = weight * np.exp(eta), int(tied.sum())
            for k in range(d):
                share = k / d if ties == "efron" else 0.0
                total += weight[tied].sum() / d * np.log(r[at_risk].sum() - share * r[tied].sum())
            total -= (weight * eta)[tied].sum()
    return total


@pytest.mark.parametrize(("ties", "truncated", "strata", "tied", "weighted"), CASES, ids=IDS)
def test_definition_and_derivatives(ties, truncated, strata, tied, weighted):
    rows, weight, eta = times(truncated, strata, tied, weighted)
    on, n = Cox(ties).on(rows, weight), len(eta)
    assert on.total(eta) == pytest.approx(by_definition(rows, eta, weight, ties), rel=1e-12)
    assert on.values(eta).sum() == pytest.approx(on.total(eta), rel=1e-12)
    steps = 1e-5 * np.eye(n)
    slopes = [by_definition(rows, eta + u, weight, ties) - by_definition(rows, eta - u, weight, ties) for u in steps]
    np.testing.assert_allclose(on.score(eta), -np.array(slopes) / 2e-5, atol=2e-8)
    H = np.array([on.score(eta - u) - on.score(eta + u) for u in steps]) / 2e-5
    np.testing.assert_allclose(on.curvature(eta), np.diag(H), atol=1e-7)
    A = np.random.default_rng(1).standard_normal((n, 3))
    np.testing.assert_allclose(on.gram(eta, A), A.T @ H @ A, atol=1e-6)
    np.testing.assert_allclose(on.curvature_product(eta, A[:, 0]), H @ A[:, 0], atol=1e-7)
    # several models at once, and a constant changes nothing
    np.testing.assert_allclose(on.total(np.stack([eta, eta + 7.0], axis=1)), on.total(eta), rtol=1e-12)
    np.testing.assert_allclose(on.score(np.stack([eta, eta + 7.0], axis=1))[:, 1], on.score(eta), atol=1e-12)
    assert on.deviance(eta) > 0
    np.testing.assert_allclose(on.score(eta)[weight == 0], 0)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_rows_of_weight_one(ties):
    rows, weight, eta = times(True, 3, True, False)
    loss, on = Cox(ties), Cox(ties).on(rows, weight)
    np.testing.assert_allclose(loss.value(rows, eta).sum(), on.total(eta))
    np.testing.assert_allclose(loss.residual(rows, eta), on.score(eta))
    np.testing.assert_allclose(loss.curvature(rows, eta), on.curvature(eta))
    np.testing.assert_allclose(loss.deviance(rows, eta).sum(), on.deviance(eta))
    np.testing.assert_allclose(loss.residual(rows, eta).sum(), 0, atol=1e-12)


@pytest.mark.parametrize(("ties", "tied"), [("breslow", True), ("efron", False), ("efron", True)])
@pytest.mark.parametrize("truncated", [False, True])
def test_score_residuals_are_derivatives_in_the_weights(ties, tied, truncated):
    rows, weight, eta = times(truncated, 2, tied, True)
    A = np.random.default_rng(1).standard_normal((len(rows), 2))
    found = Cox(ties).on(rows, weight).score_by_row(eta, A)
    np.testing.assert_allclose(found.sum(axis=0), A.T @ Cox(ties).on(rows, weight).score(eta), atol=1e-9)
    if ties == "efron" and tied:
        return  # tied events share the mean of their weights
    for i in np.flatnonzero(weight > 0)[::7]:
        more, less = (weight + step * (np.arange(len(rows)) == i) for step in (1e-5, -1e-5))
        change = (Cox(ties).on(rows, more).score(eta) - Cox(ties).on(rows, less).score(eta)) @ A / 2e-5
        np.testing.assert_allclose(found[i], weight[i] * change, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("truncated", [False, True])
def test_huge_predictors(truncated):
    """A long way out nothing overflows, and the loss is what its largest terms make it."""
    rows, weight, eta = times(truncated, 2, True, False, n=80)
    eta = 500 * eta
    on = Cox().on(rows, weight)
    total = 0.0
    for stratum in (0.0, 1.0):
        stratum_rows = rows[:, 3] == stratum
        for time in np.unique(rows[stratum_rows & (rows[:, 2] > 0), 1]):
            at_risk = stratum_rows & (rows[:, 0] < time) & (rows[:, 1] >= time)
            tied = stratum_rows & (rows[:, 1] == time) & (rows[:, 2] > 0)
            lead, d = eta[at_risk].max(), int(tied.sum())
            leads = lead == eta[tied].max()
            total += sum(lead + (np.log1p(-k / d) if leads else 0.0) for k in range(d)) - eta[tied].sum()
    assert on.total(eta) == pytest.approx(total, abs=1e-6 * abs(total))
    for derivative in (
        on.score(eta),
        on.curvature(eta),
        on.gram(eta, np.eye(80)[:, :4]),
        on.curvature_product(eta, eta / 500),
    ):
        assert np.isfinite(derivative).all()


def test_sums_over_risk_sets_that_all_but_cancel():
    """Almost all of the risk entered after the event: the difference of two cumulative sums has no digits left."""
    rows = np.array([[0.0, 1.0, 1, 0], [0.0, 5.0, 0, 0], [2.0, 6.0, 1, 0], [2.0, 7.0, 0, 0]])
    eta = np.array([0.0, 0.0, 45.0, 45.0])
    on = Cox().on(rows, np.ones(4))
    assert on.total(eta) == pytest.approx(2 * np.log(2), rel=1e-12)
    np.testing.assert_allclose(on.score(eta), [0.5, -0.5, 0.5, -0.5], atol=1e-12)


@pytest.mark.parametrize("lengths", [[7], [1, 1, 1], [5, 1, 9, 2, 2, 30]], ids=str)
def test_segments(lengths):
    values = np.random.default_rng(0).standard_normal((sum(lengths), 2))
    segments, parts = Segments(np.array(lengths)), np.split(values, np.cumsum(lengths)[:-1])
    np.testing.assert_allclose(segments.cumulative(values), np.concatenate([np.cumsum(p, axis=0) for p in parts]))
    reverse = np.concatenate([np.cumsum(p[::-1], axis=0)[::-1] for p in parts])
    np.testing.assert_allclose(segments.cumulative(values, reverse=True), reverse)
    np.testing.assert_allclose(np.exp(segments.cumulative(np.log(np.abs(values)), logs=True)),
                               np.concatenate([np.cumsum(np.abs(p), axis=0) for p in parts]))  # fmt: skip
    far = np.where(np.arange(len(values))[:, None] % 2, 900.0, -900.0) + values
    expected = np.concatenate([np.logaddexp.accumulate(p, axis=0) for p in np.split(far, np.cumsum(lengths)[:-1])])
    np.testing.assert_allclose(segments.cumulative(far, logs=True), expected)


# ------------------------------------------------------------------ what users give

BAD = {
    "NaN": (([1.0, np.nan], [1, 0]), "missing or infinite; row 1"),
    "negative": (([1.0, -2.0], [1, 0]), "must not be negative; row 1 has -2"),
    "event 2": (([1.0, 2.0], [1, 2]), "must be 0 or 1, or boolean; row 1 has 2.*such as event == 2"),
    "text": ((["a", "b"], [1, 0]), "must hold numbers"),
    "event in words": (
        ([1.0, 2.0], ["dead", "alive"]),
        "holds 'dead', 'alive': say which value is the event, such as event == 'dead'",
    ),
    "complex": (([1j, 2.0], [1, 0]), r"time must hold numbers, not \[1j, 2.0\]"),
    "lengths": (([1.0, 2.0, 3.0], [1, 0]), "event has shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_times(case):
    given, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        survival(*given)


def test_bad_entries_and_strata():
    with pytest.raises(ValueError, match="start of y must lie before the time; row 1 has 2"):
        survival([1.0, 2.0], [1, 1], start=[0.0, 2.0])
    with pytest.raises(ValueError, match="start of y must not be negative"):
        survival([1.0, 2.0], [1, 1], start=[0.0, -1.0])
    with pytest.raises(ValueError, match="strata is missing in row 1"):
        survival([1.0, 2.0], [1, 1], strata=["a", None])
    with pytest.raises(ValueError, match="ties must be 'efron' or 'breslow'"):
        Cox("exact")
    with pytest.raises(ValueError, match="There is no event"):
        Cox().null(read_survival(survival([1.0, 2.0], [0, 0])).rows, np.ones(2))


def test_forms_of_one_response():
    pandas = pytest.importorskip("pandas")
    time, event = np.array([3.0, 1.0, 2.0]), np.array([True, False, True])
    expected = read_survival(survival(time, event)).rows
    theirs = np.array(list(zip(event, time, strict=True)), dtype=[("cens", bool), ("weeks", float)])
    table = pandas.DataFrame({"time": time, "event": event.astype(int), "age": 1.0})
    for given in (theirs, table, (time, event), [time, event.astype(float)], np.column_stack([time, event])):
        np.testing.assert_array_equal(read_survival(given).rows, expected)
    assert read_survival(time).rows[:, 2].all()
    with pytest.raises(ValueError, match="no column 'time', but 'weeks', 'dead'"):
        read_survival(pandas.DataFrame({"weeks": time, "dead": event.astype(int)}))
    with pytest.raises(ValueError, match="has shape"):
        read_survival(np.ones((3, 3)))


def test_strata_keep_their_codes():
    fit = read_survival(survival([1.0, 2.0, 3.0], strata=["a", "b", "c"]))
    other = read_survival(survival([1.0, 2.0], strata=["c", "a"]))
    assert other.coded_as(fit.labels)[:, 3].tolist() == [2.0, 0.0]
    with pytest.raises(ValueError, match="stratum 'd', which no row of fit has"):
        read_survival(survival([1.0], strata=["d"])).coded_as(fit.labels)
    with pytest.raises(ValueError, match="has no strata, but the rows of fit had strata"):
        read_survival(survival([1.0])).coded_as(fit.labels)
