"""Events of the limit path against the definition, computed directly."""

import numpy as np
import pytest

from covey import Groups, limit_path
from search.limit_reference import mixed_problem, refit, simulate

SETTINGS = {
    "default": {},
    "equal weights": {"group_weights": None},
    "weights by size": {"group_weights": "sqrt"},
    "weights given": {"group_weights": [1, 9, 2, 3, 0.5, 1, 4, 1, 1, 0.2]},
    "without intercept": {"intercept": False},
    "unit columns": {"standardize": "column"},
    "one number per group": {"standardize": "block"},
    "columns as they are": {"standardize": False},
}


def assert_events(path, expected, X, rtol=1e-8):
    groups, times, fits = expected
    assert [l for l, _ in path.entered] == groups
    np.testing.assert_allclose([t for _, t in path.entered], times, rtol=rtol)
    np.testing.assert_allclose(path.predict(X).T, fits, rtol=rtol, atol=rtol * np.abs(fits).max())


def run(X, y, lists, *, intercept=True, awake=(), most=None, **options):
    return limit_path(
        X, y, Groups.from_lists(lists), fit_intercept=intercept, always=list(awake), max_groups=most, **options
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["", "rows weighted"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_events_are_those_of_the_definition(setting, weighted):
    X, y, lists = mixed_problem()
    options = dict(SETTINGS[setting])
    if weighted:
        options["sample_weight"] = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    expected = simulate(X, y, lists, **options)
    assert len(expected[0]) == len(lists)
    assert_events(run(X, y, lists, **options), expected, X)


@pytest.mark.parametrize("seed", range(1, 6))
def test_wide_problems_run_until_the_rows_are_exhausted(seed):
    rng = np.random.default_rng(seed)
    n, lists = 25, [list(range(3 * l, 3 * l + 3)) for l in range(30)]
    X = rng.standard_normal((n, 90)) + rng.standard_normal((n, 1))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(n)
    expected = simulate(X, y, lists)
    path = run(X, y, lists)
    assert path.status == "exhausted"
    assert len(expected[0]) == 8  # 24 columns and the intercept are as many as the rows
    assert_events(path, expected, X, 1e-6)
    np.testing.assert_allclose(path.predict(X)[:, -1], y, atol=1e-7)


def test_a_response_that_few_groups_explain_ends_the_path():
    X, y, lists = mixed_problem(noise=0.0)
    expected = simulate(X, y, lists)
    assert {1, 4, 6} <= set(expected[0]) < set(range(len(lists)))
    path = run(X, y, lists)
    assert path.status == "exhausted"
    assert_events(path, expected, X)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("y", [np.zeros(60), np.full(60, 2.5)], ids=["zero", "constant"])
def test_a_response_without_variation_wakes_nothing(y, intercept):
    X, _, lists = mixed_problem()
    path = run(X, y, lists, intercept=intercept)
    if intercept or not y.any():
        assert path.entered == []
        assert path.status == "exhausted"
        np.testing.assert_allclose(path.predict(X)[:, 0], y, atol=1e-12)
    else:
        assert_events(path, simulate(X, y, lists, intercept=False), X)


def test_groups_that_are_awake_from_the_start():
    X, y, lists = mixed_problem()
    path = limit_path(X, y, Groups.from_lists(lists), always=[8, 3, 8])
    expected = simulate(X, y, lists, awake=[8, 3])
    assert path.entered[:2] == [(8, 0.0), (3, 0.0)]
    assert_events(path, expected, X)


def test_the_path_goes_on_from_the_groups_of_an_earlier_one_at_time_zero():
    """A start is a model, not a state: what sleeping groups had added up before is forgotten."""
    X, y, lists = mixed_problem()
    first = run(X, y, lists, most=3)
    again = limit_path(X, y, Groups.from_lists(lists), always=[l for l, _ in first.entered])
    np.testing.assert_allclose(again.predict(X)[:, 0], first.predict(X)[:, -1], rtol=1e-10)
    assert again.times[0] == 0


def test_equal_groups_wake_in_the_order_in_which_they_stand():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9))
    X[:, 6:9] = X[:, 3:6] @ rng.standard_normal((3, 3))  # the same span, other columns
    X[:, 0:3] = rng.standard_normal((40, 3))
    y = X[:, 3:6].sum(axis=1) + 0.1 * rng.standard_normal(40)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        lists = [list(range(3 * l, 3 * l + 3)) for l in order]
        path = run(X, y, lists)
        twins = [lists.index([3, 4, 5]), lists.index([6, 7, 8])]
        assert path.entered[0][0] == min(twins)


def test_a_group_that_repeats_an_awake_one_never_wakes():
    """At least squares its gradient is zero for ever; what it had added up before does not wake it either."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    X[:, 9:12] = X[:, 0:3] @ rng.standard_normal((3, 3))
    y = X[:, :6] @ rng.standard_normal(6) + rng.standard_normal(40)
    lists = [list(range(3 * l, 3 * l + 3)) for l in range(4)]
    path = run(X, y, lists)
    assert [l for l, _ in path.entered].count(3) + [l for l, _ in path.entered].count(0) == 1
    assert path.status == "exhausted"
    assert_events(path, simulate(X, y, lists), X)


def test_a_group_that_shares_directions_with_awake_ones_brings_only_the_others():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 9))
    X[:, 6] = X[:, 0] + X[:, 1]
    X[:, 7] = X[:, 3] - X[:, 2]
    y = X @ rng.standard_normal(9) + 0.1 * rng.standard_normal(40)
    lists = [list(range(3 * l, 3 * l + 3)) for l in range(3)]
    path = run(X, y, lists)
    assert len(path.entered) == 3
    assert_events(path, simulate(X, y, lists), X)


def test_constant_columns_and_groups_of_them_never_wake():
    X, y, lists = mixed_problem()
    X[:, lists[2]] = [1.0, -2.0, 0.0, 1e9]
    path = run(X, y, lists)
    assert 2 not in dict(path.entered)
    assert (path.coefs[:, lists[2]].toarray() == 0).all()
    assert_events(path, simulate(X, y, lists), X)


def test_overlapping_groups_are_groups_of_copies():
    X, y, _ = mixed_problem()
    X = X[:, :15]
    lists = [[0, 1, 2], [2, 3, 4], [4, 5, 6, 7], [0, 8, 9], [12, 13, 14], [10, 11, 12]]
    path = limit_path(X, y, Groups.from_lists(lists, overlap=True))
    copies = X[:, [j for members in lists for j in members]]
    ends = np.cumsum([len(members) for members in lists])
    apart = [list(range(end - len(members), end)) for members, end in zip(lists, ends, strict=True)]
    assert_events(path, simulate(copies, y, apart), X)
    np.testing.assert_allclose(path.parts @ copies.T, path.coefs @ X.T, atol=1e-9)


def test_single_columns_are_the_ungrouped_path():
    X, y, _ = mixed_problem()
    path = limit_path(X, y)
    assert_events(path, simulate(X, y, [[j] for j in range(X.shape[1])]), X)


def test_one_group_is_least_squares():
    X, y, _ = mixed_problem()
    path = limit_path(X, y, [list(range(X.shape[1]))])
    coef, intercept = refit(X, y, range(X.shape[1]), np.ones(len(y)) / len(y), True)
    assert len(path) == 2
    np.testing.assert_allclose(path.predict(X)[:, 1], X @ coef + intercept, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
@pytest.mark.parametrize("what", ["y", "X", "one group", "sample weights"])
def test_units_change_no_event(what, scale):
    X, y, lists = mixed_problem()
    plain = run(X, y, lists, sample_weight=np.ones(60))
    unit, weight = np.ones(X.shape[1]), np.ones(60)
    if what in ("X", "one group"):
        unit[slice(None) if what == "X" else lists[4]] = scale
    if what == "sample weights":
        weight *= scale
    factor = scale if what == "y" else 1.0
    path = run(X * unit, y * factor, lists, sample_weight=weight)
    assert [l for l, _ in path.entered] == [l for l, _ in plain.entered]
    np.testing.assert_allclose(path.times, plain.times, rtol=1e-8)
    largest = np.abs(plain.coefs).max()
    np.testing.assert_allclose(path.coefs.toarray() * unit / factor, plain.coefs.toarray(), atol=1e-8 * largest)


def test_the_path_ends_with_so_many_groups():
    X, y, lists = mixed_problem()
    complete = run(X, y, lists)
    for most in (0, 1, 4):
        path = run(X, y, lists, most=most)
        assert path.status == "completed"
        assert path.entered == complete.entered[:most]
        np.testing.assert_array_equal(path.times, complete.times[: most + 1])


def test_strengths_are_standard_deviations_of_the_groups_parts():
    X, y, lists = mixed_problem()
    path = run(X, y, lists)
    for position in (1, 3, len(path) - 1):
        coef = path.coefs[[position]].toarray().ravel()
        expected = [(X[:, members] @ coef[members]).std() for members in lists]
        np.testing.assert_allclose(path.strengths[[position]].toarray().ravel(), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_groups": -1}, "max_groups"),
        ({"max_groups": 1.5}, "max_groups"),
        ({"always": ["nonsense"]}, "nonsense"),
        ({"group_weights": "nonsense"}, "group_weights"),
        ({"group_weights": [1.0]}, "10 groups"),
        ({"group_weights": [1.0] * 9 + [0.0]}, "above 0"),
        ({"standardize": "nonsense"}, "standardize"),
        ({"factors": -1}, "factors"),
        ({"factors": "nonsense"}, "factors"),
        ({"sample_weight": np.zeros(60)}, "weight"),
        ({"sample_weight": -np.ones(60)}, "weight"),
        ({"sample_weight": np.ones(59)}, "59"),
    ],
)
def test_bad_input_is_named(options, message):
    X, y, lists = mixed_problem()
    with pytest.raises((ValueError, KeyError), match=message):
        limit_path(X, y, Groups.from_lists(lists), **options)
