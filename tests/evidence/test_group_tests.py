"""Tests of groups: by hand on fixed splits, adjusted p-values by their definitions, levels, invariances, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import stats

from covey import Groups, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms, survival
from covey.evidence import GroupTests, test_groups
from covey.evidence.halves import complementary_halves, first_groups
from covey.evidence.reading import problem_of
from covey.evidence.tests_of_groups import LEAST_FIRST
from covey.plots import GroupTestsDisplay

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 90))
Y = X[:, :6] @ [1, -1, 1, 1, 0.5, -1] + RNG.standard_normal(120)
MODEL = GroupSparseRegressor(groups=3)


@pytest.fixture(scope="module")
def tests():
    return test_groups(MODEL, X, Y, n_pairs=6, random_state=3)


def f_test(y, base, X):
    base = np.column_stack([np.ones(len(y)), base])
    both = np.hstack([base, X])
    full, small = (y - A @ np.linalg.lstsq(A, y)[0] for A in (both, base))
    r, left = X.shape[1], len(y) - both.shape[1]
    return stats.f.sf((small @ small - full @ full) / r / (full @ full / left), r, left)


def test_a_split_by_hand(tests):
    problem = problem_of(MODEL, X, Y, None, None)
    halves = complementary_halves(np.arange(120), np.zeros(120, dtype=int), 6, np.random.default_rng(3))
    assert tests.raw.shape == (12, 30)
    for i in (0, 1, 7):
        chosen = first_groups(problem, halves[i], LEAST_FIRST)[:6]  # 6 of them have 18 of 60 / 3 columns
        assert set(np.flatnonzero(tests.tested[i])) == set(chosen)
        rows = halves[i ^ 1]
        assert not np.intersect1d(rows, halves[i]).size
        for l in chosen:
            others = np.concatenate([np.arange(3 * m, 3 * m + 3) for m in chosen if m != l])
            by_hand = f_test(Y[rows], X[np.ix_(rows, others)], X[rows, 3 * l : 3 * l + 3])
            assert tests.raw[i, l] == pytest.approx(by_hand, rel=1e-7)
    assert (tests.raw[~tests.tested] == 1).all()


def test_the_signal_is_found(tests):
    assert sorted(tests.selected_groups) == [0, 1]
    frame = tests.to_frame()
    assert frame["p_value"].is_monotonic_increasing
    assert frame.index[:2].isin([0, 1]).all()
    text = str(tests.summary())
    assert "2 of 30 groups have an effect, at a familywise error of 0.05" in text
    assert "at most 0.05" in text


def by_definition(tests):
    """Step-down p-values, one group after another, from the definition."""
    found, least, out = [], 0.0, np.ones(tests.groups.n_groups)
    while True:
        best = None
        for l in range(tests.groups.n_groups):
            if l in found:
                continue
            values = []
            for p, tested in zip(tests.raw, tests.tested, strict=True):
                count = sum(tested[m] for m in range(tests.groups.n_groups) if m not in found)
                values.append(p[l] * count if tested[l] else 1.0)
            q = tests.quantiles[l]
            value = sorted(values)[int(np.ceil(q * len(values) - 1e-9)) - 1] / q
            if best is None or value < best[0]:
                best = (value, l)
        if best is None or max(least, best[0]) >= 1:
            return out
        least = max(least, best[0])
        out[best[1]] = least
        found.append(best[1])


def random_tests(seed, control="fwer", n_splits=10):
    rng = np.random.default_rng(seed)
    tested = rng.random((n_splits, 7)) < (1.0 if n_splits == 1 else 0.6)
    raw = np.where(tested, rng.random((n_splits, 7)) ** 8, 1.0)
    quantiles = np.ones(7) if n_splits == 1 else rng.choice([0.1, 0.5], 7)
    return GroupTests(Groups.from_sizes([1] * 7), raw, tested, quantiles, control)


def test_adjusted_p_values_are_their_definition(tests):
    np.testing.assert_allclose(tests.p_values, by_definition(tests))
    for seed in range(5):
        one = random_tests(seed)
        np.testing.assert_allclose(one.p_values, by_definition(one))


def test_one_model_of_all_groups_has_holm_and_benjamini_hochberg():
    one = random_tests(1, n_splits=1)
    p = one.raw[0]
    order = np.argsort(p)
    holm = np.minimum(np.maximum.accumulate(p[order] * np.arange(7, 0, -1)), 1)
    np.testing.assert_allclose(one.p_values[order], holm)
    bh = np.minimum.accumulate((p[order] * 7 / np.arange(1, 8))[::-1])[::-1]
    np.testing.assert_allclose(replace(one, control="fdr").p_values[order], bh)


@pytest.mark.parametrize("control", ["fwer", "fdr"])
def test_adjusted_p_values_are_monotone_and_do_not_depend_on_the_order(control):
    for seed in range(5):
        one = random_tests(seed, control)
        p = one.p_values
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
        order = np.random.default_rng(seed).permutation(7)
        rows = np.random.default_rng(seed).permutation(10)
        moved = replace(
            one, raw=one.raw[np.ix_(rows, order)], tested=one.tested[np.ix_(rows, order)],
            quantiles=one.quantiles[order],
        )  # fmt: skip
        np.testing.assert_allclose(moved.p_values, p[order])
        smaller = replace(one, raw=np.where(np.arange(7) == 2, one.raw / 2, one.raw))
        assert smaller.p_values[2] <= p[2]
        # never below the p-value without any adjustment for the other groups
        q = one.quantiles
        alone = np.sort(one.raw, axis=0)[np.ceil(q * 10 - 1e-9).astype(int) - 1, np.arange(7)] / q
        assert (p >= np.minimum(alone, 1) - 1e-12).all() or control == "fdr"


def test_a_term_has_an_effect_if_its_child_has():
    one = replace(random_tests(2), parents={3: (1,), 5: (3,)})
    p = one.p_values
    assert p[1] <= p[3] <= p[5]


def test_units_and_the_order_of_groups_do_not_matter(tests):
    order = np.random.default_rng(1).permutation(30)
    columns = np.concatenate([np.arange(3 * l, 3 * l + 3) for l in order])
    scales = np.exp(RNG.standard_normal(90))
    moved = test_groups(MODEL, (X * scales + 5)[:, columns], 100 * Y - 7, n_pairs=6, random_state=3)
    np.testing.assert_array_equal(moved.tested, tests.tested[:, order])
    np.testing.assert_allclose(moved.p_values, tests.p_values[order], rtol=1e-5)


def test_noise_is_not_found():
    """p-values of groups without an effect are stochastically larger than uniform: the least over all groups is."""
    least = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        found = test_groups(
            MODEL, rng.standard_normal((50, 60)), rng.standard_normal(50), n_pairs=4, n_first=4, random_state=seed
        )
        least.append(np.min(found.p_values))
    # the summary shows what comes nearest
    assert found.n_selected == 0
    assert "None is selected" in str(found.summary())
    assert len(found.summary().table) == 5
    for u in (0.05, 0.2, 0.5):
        assert np.mean(np.array(least) <= u) <= u + 2 * np.sqrt(u * (1 - u) / 15)


def test_groups_that_fit_into_one_model_are_tested_on_all_rows():
    few = test_groups(MODEL, X[:, :30], Y, control="fdr")
    assert few.n_splits == 1
    assert few.tested.all()
    by_hand = [
        f_test(Y, np.delete(X[:, :30], range(3 * l, 3 * l + 3), axis=1), X[:, 3 * l : 3 * l + 3]) for l in range(10)
    ]
    np.testing.assert_allclose(few.raw[0], by_hand, rtol=1e-7)
    assert "all rows in one model" in str(few.summary())


def test_close_groups_need_most_splits():
    close = X.copy()
    close[:, 3:6] = 0.95 * X[:, :3] + 0.3 * X[:, 3:6]
    y = close[:, :3] @ [2.0, -2.0, 2.0] + RNG.standard_normal(120)
    found = test_groups(MODEL, close, y, n_pairs=5, random_state=0)
    assert found.quantiles[0] == found.quantiles[1] == 0.5
    assert found.quantiles[2] == 0.1
    assert found.selected_groups == [0]
    assert any("0 with 1" in remark for remark in found.remarks)


TABLE = pd.DataFrame({name: RNG.uniform(-2, 2, 150) for name in "abcdefghijklmn"})
ETA = np.sin(2 * TABLE["a"]) + TABLE["b"]
RESPONSES = {
    "squared": (GroupSparseRegressor, {}, ETA + 0.5 * RNG.standard_normal(150)),
    "two": (GroupSparseRegressor, {}, np.column_stack([ETA, -ETA]) + 0.5 * RNG.standard_normal((150, 2))),
    "huber": (GroupSparseRegressor, {"loss": "huber"}, ETA + 0.3 * RNG.standard_t(2, 150)),
    "poisson": (GroupSparseRegressor, {"loss": "poisson"}, RNG.poisson(np.exp(1 + ETA))),
    "gamma": (GroupSparseRegressor, {"loss": "gamma"}, RNG.gamma(3.0, np.exp(ETA))),
    "classes": (GroupSparseClassifier, {}, np.where(2 * ETA + RNG.logistic(size=150) > 0, "yes", "no")),
    "three": (GroupSparseClassifier, {}, np.digitize(2 * ETA + RNG.logistic(size=150), [-1, 1])),
    "cox": (GroupSparseCox, {}, survival(RNG.exponential(np.exp(-2 * ETA)), RNG.random(150) < 0.8)),
}


@pytest.mark.parametrize("case", RESPONSES, ids=str)
def test_every_loss(case):
    kind, options, y = RESPONSES[case]
    # more than 50 columns, too many for one model of 150 rows
    found = test_groups(kind(terms=Terms(pairs=None), **options), TABLE, y, n_pairs=4, random_state=0)
    assert found.n_splits == 8
    p = dict(zip(found.groups.names, found.p_values, strict=True))
    assert np.isfinite(found.p_values).all()
    assert p["b"] < 0.05
    assert p["a"] <= p["a~"]
    assert min(p[name] for name in "cdefghijklmn") > 0.05


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


def test_jobs_and_progress(tests):
    told = []
    with parallel_config(backend="threading"):
        found = test_groups(
            MODEL, X, Y, n_pairs=6, random_state=3, n_jobs=2, progress=lambda done, total: told.append((done, total))
        )
    np.testing.assert_array_equal(found.raw, tests.raw)
    assert told == [(i, 12) for i in range(1, 13)]


def test_separated_classes_are_a_remark():
    y = np.where(X[:, 0] + 0.05 * RNG.standard_normal(120) > 0, "a", "b")
    found = test_groups(GroupSparseClassifier(groups=3), X, y, n_pairs=3, random_state=0)
    assert np.isfinite(found.p_values).all()
    assert any("separate the responses perfectly" in remark for remark in found.remarks)


def test_few_rows_are_a_remark(tests):
    found = test_groups(MODEL, X[:40], Y[:40], n_pairs=2, random_state=0)
    assert found.tested.sum(axis=1).max() == 2
    assert any("of the groups that a half selected were left out" in remark for remark in found.remarks)
    assert not any("were left out" in remark for remark in tests.remarks)


def test_what_has_no_effect_is_not_advised():
    found = test_groups(GroupSparseClassifier(groups=3), X[:, :9], np.digitize(X[:, 0], [-0.5, 0.5]))
    assert len(found.raw) == 1  # on all rows, where n_first does nothing
    (remark,) = found.remarks
    assert "separate the responses perfectly" in remark
    assert "n_first" not in remark


def test_refusals():
    with pytest.raises(ValueError, match=r"Half of the 12 rows .* too few to test a group of 3 columns"):
        test_groups(MODEL, X[:12], Y[:12])
    with pytest.raises(ValueError, match="Every group is in always"):
        test_groups(GroupSparseRegressor(groups=45, always=[0, 1]), X, Y)
    with pytest.raises(ValueError, match="n_first is 31, but there are 30"):
        test_groups(MODEL, X, Y, n_first=31)
    with pytest.raises(ValueError, match="control"):
        test_groups(MODEL, X, Y, control="fdp")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        test_groups(MODEL, X, Y, level=5)
    with pytest.raises(ValueError, match="one of covey's estimators"):
        test_groups("model", X, Y)
    with pytest.raises(ValueError, match="leave out within="):
        test_groups(GroupSparseRegressor(groups=3, within="columns"), X, Y)
    with pytest.raises(ValueError, match=r"Half of the rows cannot be fitted\. Every count is zero"):
        test_groups(GroupSparseRegressor(groups=3, loss="poisson"), X, np.arange(120) == 0)
    with pytest.raises(ValueError, match=r"^X has missing"):
        test_groups(MODEL, np.where(np.eye(120, 90), np.nan, X), Y)
    with pytest.raises(ValueError, match="has 1 row"):
        test_groups(GroupSparseClassifier(groups=3), X, np.arange(120) == 0)


def test_the_plot_has_a_bar_per_group(tests):
    display = GroupTestsDisplay.from_tests(tests, n_bars=5)
    assert len(display.ax_.patches) == 5
    assert display.ax_.get_title(loc="left").startswith("2 of 30 groups")
    ends = [patch.get_x() for patch in display.ax_.patches]
    np.testing.assert_allclose(ends, np.maximum(tests.to_frame()["p_value"].to_numpy()[:5], 1e-12))
