"""Tests of groups: by hand with their controls, adjusted p-values by their definitions, invariances, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms, survival
from covey.evidence import GroupTests, effect, test_groups
from covey.evidence.reading import problem_of
from covey.plots import GroupTestsDisplay
from covey.search.ranking import ranked_groups
from covey.selection import InformationCriterion
from evidence.test_score_test import f_test as plain_f_test

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 90))
Y = X[:, :6] @ [1, -1, 1, 1, 0.5, -1] + RNG.standard_normal(120)
MODEL = GroupSparseRegressor(groups=3)


@pytest.fixture(scope="module")
def tests():
    return test_groups(MODEL, X, Y)


def f_test(y, base, X):
    return plain_f_test(y, np.column_stack([np.ones(len(y)), base]), X)


def columns(groups):
    return np.concatenate([np.arange(3 * l, 3 * l + 3) for l in groups])


def test_two_searches_by_hand():
    """Group 2 predicts group 1 and not the response, so that only the search of group 1 can find it."""
    moved = X.copy()
    moved[:, 3:6] += moved[:, 6:9]
    y = moved[:, :6] @ [1, -1, 1, 1, 0.5, -1] + RNG.standard_normal(120)
    found = test_groups(MODEL, moved, y)
    by_ebic = GroupSparseRegressor(groups=3, selection=InformationCriterion("ebic", gamma=1.0))
    selected = by_ebic.fit(moved, y).selected_groups_
    assert sorted(selected) == [0, 1]
    first = ranked_groups(problem_of(MODEL, moved, y, None, None), 12)
    assert set(np.flatnonzero(found.tested)) == {*selected, *first}
    for l in (0, 1, first[-1]):
        others = np.setdiff1d(np.arange(90), columns([l]))
        own = by_ebic.fit(moved[:, others], moved[:, columns([l])]).selected_groups_
        assert l != 1 or 1 in own  # the second of the other groups
        controls = {*selected, *(m if m < l else m + 1 for m in own)} - {l}
        by_hand = f_test(y, moved[:, columns(sorted(controls))], moved[:, columns([l])])
        assert found.raw[l] == pytest.approx(by_hand, rel=1e-7)
    assert (found.raw[~found.tested] == 1).all()


def test_common_factors_are_controls():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((100, 1))
    shared = rng.standard_normal((100, 80)) + 2 * factor
    # the response depends on the factor alone, so every column predicts it and none has an effect beside it
    found = test_groups(GroupSparseRegressor(), shared, 3 * factor[:, 0] + rng.standard_normal(100))
    assert found.n_selected == 0
    without = test_groups(GroupSparseRegressor(factors=0), shared, 3 * factor[:, 0] + rng.standard_normal(100))
    assert without.raw.min() < found.raw.min()


def test_the_signal_is_found_and_drawn(tests):
    assert sorted(tests.selected_groups) == [0, 1]
    p = tests.to_frame()["p_value"]
    assert p.is_monotonic_increasing
    assert p.index[:2].isin([0, 1]).all()
    text = str(tests.summary())
    assert "2 of 30 groups have an effect, at a familywise error of 0.05" in text
    assert "at most 0.05" in text
    ax = GroupTestsDisplay.from_tests(tests, n_bars=5).ax_
    assert ax.get_title(loc="left").startswith("2 of 30 groups")
    np.testing.assert_allclose([patch.get_x() for patch in ax.patches], np.maximum(p.to_numpy()[:5], 1e-12))


def test_p_values_are_adjusted_by_holm_and_benjamini_hochberg():
    p = np.random.default_rng(1).random(7) ** 8
    one = GroupTests(Groups.from_sizes([1] * 7), p, np.ones(7, dtype=bool), True)
    order = np.argsort(p)
    holm = np.minimum(np.maximum.accumulate(p[order] * np.arange(7, 0, -1)), 1)
    np.testing.assert_allclose(one.p_values[order], holm)
    bh = np.minimum.accumulate((p[order] * 7 / np.arange(1, 8))[::-1])[::-1]
    np.testing.assert_allclose(replace(one, control="fdr").p_values[order], bh)
    # a term has an effect if its child has
    first, *_, last = order
    child = replace(one, parents={int(first): (int(last),)}).p_values
    assert child[first] == child[last] == one.p_values[first]


@pytest.mark.parametrize("control", ["fwer", "fdr"])
def test_groups_that_are_always_in_do_not_count_among_those_that_p_values_are_adjusted_for(control):
    """They have no p-value: as hypotheses that nobody tests they would divide by more groups than there are."""
    p = np.array([0.6, 0.04, 1.0])
    alone = GroupTests(Groups.from_sizes([1] * 3), p, p < 1, True, control, 0.3)
    always = tuple(range(3, 12))
    beside = GroupTests(
        Groups.from_sizes([1] * 12), np.r_[p, np.ones(9)], np.arange(12) < 2, True, control, 0.3, always_groups=always
    )
    np.testing.assert_array_equal(beside.p_values, np.r_[alone.p_values, np.full(9, np.nan)])
    assert beside.selected_groups == [1]


def test_units_and_the_order_of_groups_do_not_matter(tests):
    order = np.random.default_rng(1).permutation(30)
    scales = np.exp(RNG.standard_normal(90))
    moved = test_groups(MODEL, (X * scales + 5)[:, columns(order)], 100 * Y - 7)
    np.testing.assert_array_equal(moved.tested, tests.tested[order])
    np.testing.assert_allclose(moved.p_values, tests.p_values[order], rtol=1e-5)


def test_noise_is_not_found():
    """p-values of groups without an effect are stochastically larger than uniform: the least over all groups is."""
    least = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        found = test_groups(MODEL, rng.standard_normal((50, 60)), rng.standard_normal(50), n_first=4)
        least.append(np.min(found.p_values))
    # the summary shows what comes nearest
    assert found.n_selected == 0
    assert "None is selected" in str(found.summary())
    assert len(found.summary().table) == 5
    for u in (0.05, 0.2, 0.5):
        assert np.mean(np.array(least) <= u) <= u + 2 * np.sqrt(u * (1 - u) / 15)


def test_groups_that_fit_into_one_model_are_tested_on_all_rows():
    few = test_groups(MODEL, X[:, :30], Y, control="fdr")
    assert few.together
    assert few.tested.all()
    by_hand = [
        f_test(Y, np.delete(X[:, :30], range(3 * l, 3 * l + 3), axis=1), X[:, 3 * l : 3 * l + 3]) for l in range(10)
    ]
    np.testing.assert_allclose(few.raw, by_hand, rtol=1e-7)
    assert "beside all others" in str(few.summary())


def test_a_group_is_not_found_in_the_place_of_one_that_it_resembles():
    rng, wrong, right = np.random.default_rng(0), 0, 0
    for _ in range(8):
        close = rng.standard_normal((120, 90))
        close[:, 3:6] = 0.95 * close[:, :3] + 0.3 * close[:, 3:6]
        found = test_groups(MODEL, close, close[:, :3] @ [2.0, -2.0, 2.0] + rng.standard_normal(120))
        right += 0 in found.selected_groups
        wrong += len(set(found.selected_groups) - {0})
    assert right == 8
    assert wrong <= 1


TABLE = pd.DataFrame({name: RNG.uniform(-2, 2, 150) for name in "abcdefghijklmn"})
ETA = np.sin(2 * TABLE["a"]) + TABLE["b"]
SQUARED = ETA + 0.5 * RNG.standard_normal(150)


@pytest.mark.parametrize(
    ("kind", "y"),
    [
        (GroupSparseRegressor, SQUARED),
        (GroupSparseClassifier, np.where(2 * ETA + RNG.logistic(size=150) > 0, "yes", "no")),
        (GroupSparseCox, survival(RNG.exponential(np.exp(-2 * ETA)), RNG.random(150) < 0.8)),
    ],
    ids=["squared", "classes", "cox"],
)
def test_a_term_is_tested_together_with_those_that_need_it(kind, y):
    # more than 50 columns, too many for one model of 150 rows
    found = test_groups(kind(terms=Terms(pairs=None)), TABLE, y)
    assert not found.together
    p = dict(zip(found.groups.names, found.p_values, strict=True))
    assert np.isfinite(found.p_values).all()
    assert p["b"] < 0.05
    assert p["a"] <= p["a~"]
    assert min(p[name] for name in "cdefghijklmn") > 0.01


def test_settings_of_the_model_are_used():
    weight = np.ones(120)
    weight[:20] = 0
    model = GroupSparseRegressor(groups={"g": [0, 1, 2], "rest": list(range(3, 9)), "one": [9]}, always=["one"])
    found = test_groups(model, X[:, :10], Y, sample_weight=weight)
    same = test_groups(model, X[20:, :10], Y[20:])
    np.testing.assert_allclose(found.p_values, same.p_values)
    assert np.isnan(found.p_values[found.groups.position("one")])
    assert "one" not in found.to_frame().index
    assert any("always in the model are not tested: one" in remark for remark in found.remarks)


@pytest.mark.parametrize(("always", "names"), [("c", ("c",)), (["c~"], ("c", "c~"))], ids=["text", "child"])
def test_what_is_always_in_is_read_as_in_fit(always, names):
    table, y, terms = TABLE[list("abcd")], SQUARED, Terms(pairs=None)
    model = GroupSparseRegressor(terms=terms, always=always, selection="bic")
    assert test_groups(model, table, y).always_groups == tuple(model.fit(table, y).always_groups_) == names
    assert tuple(effect(table, y, of="a", terms=terms, always=always).controls[: len(names)]) == names
    # a column that is a group by itself may be named, too
    one = GroupSparseRegressor(groups=[[0, 1], [2], [3]], always=["c"], selection="bic")
    assert test_groups(one, table, y).always_groups == tuple(one.fit(table, y).always_groups_) == (1,)


def test_jobs_and_progress(tests):
    told = []
    with parallel_config(backend="threading"):
        found = test_groups(MODEL, X, Y, n_jobs=2, progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(found.raw, tests.raw)
    n = int(tests.tested.sum())
    assert told == [(i, n) for i in range(1, n + 1)]


CLASSES = np.where(X[:, 0] + 0.05 * RNG.standard_normal(120) > 0, "a", "b")
WIDE = GroupSparseRegressor(groups=Groups.from_sizes([45, *[3] * 15]))


@pytest.mark.parametrize(
    ("model", "X", "y", "words", "is_missed"),
    [
        (GroupSparseClassifier(groups=3), X, CLASSES, "separate the responses perfectly", False),
        # six groups have 18 columns, and 40 rows allow for 13; a group that leaves no room at all is not found
        (MODEL, X[:40], X[:40, :18].sum(axis=1) + 0.1 * Y[:40], "tests had no room for all controls", False),
        (WIDE, X, X[:, :45].sum(axis=1) + Y, "no room for all controls", True),
        (MODEL, np.hstack([X, X[:, :3]]), Y, "Other groups repeat", True),
    ],
    ids=["separated", "few rows", "wide", "repeated"],
)
def test_remarks(tests, model, X, y, words, is_missed):
    found = test_groups(model, X, y)
    assert any(words in remark for remark in found.remarks)
    assert not any(words in remark for remark in tests.remarks)
    assert np.isfinite(found.p_values).all()
    assert not is_missed or 0 not in found.selected_groups


def test_groups_may_share_columns():
    lists = [list(range(3 * l, min(3 * l + 4, 90))) for l in range(30)]
    shared = Groups.from_lists(lists, n_columns=90, overlap=True)
    found = test_groups(GroupSparseRegressor(groups=shared), X, Y)
    assert np.isfinite(found.p_values).all()
    assert set(found.selected_groups) <= {0, 1}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": X[:8], "y": Y[:8]}, r"8 rows .* too few to test a group of 3 columns"),
        ({"model": GroupSparseRegressor(groups=45, always=[0, 1])}, "Every group is in always"),
        ({"n_first": 0}, "n_first must be"),
        ({"control": "fdp"}, "control"),
        ({"level": 5}, "level must lie between 0 and 1"),
        ({"model": "model"}, "one of covey's estimators"),
        ({"model": GroupSparseRegressor(groups=3, within="columns")}, "leave out within="),
        ({"model": GroupSparseRegressor(groups=3, loss="poisson"), "y": np.zeros(120)}, "Every count is zero"),
        ({"X": np.where(np.eye(120, 90), np.nan, X)}, r"^X has missing"),
        ({"model": GroupSparseClassifier(groups=3), "y": np.zeros(120)}, "y has only one class"),
        ({"model": GroupSparseClassifier(groups=3), "y": [None, *CLASSES[1:]]}, "y has missing labels"),
        ({"model": GroupSparseClassifier(groups=3), "y": [np.nan, *(CLASSES[1:] == "a")]}, "y has missing labels"),
        ({"model": GroupSparseClassifier(groups=3), "y": Y}, "Unknown label type: continuous"),
        ({"y": np.ones(120)}, "y is 1 in every row"),
    ],
)
def test_refusals(changed, words):
    with pytest.raises(ValueError, match=words):
        test_groups(**{"model": MODEL, "X": X, "y": Y} | changed)
