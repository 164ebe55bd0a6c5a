"""Effects of named columns: refits and robust errors by hand, coverage, tables of variables, refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from covey import Groups, GroupSparseRegressor, Terms, survival
from covey.evidence import band, effect, knockoffs, stability_selection, test_groups
from covey.losses import Quantile

RNG = np.random.default_rng(0)
N = 200
X = RNG.standard_normal((N, 40))
X[:, 0] += X[:, 1] + 0.5 * X[:, 2]
Y = 0.5 * X[:, 0] + 2 * X[:, 1] + X[:, 3] + (0.5 + np.abs(X[:, 0])) * RNG.standard_normal(N)


def sandwich(A, score, curvature, clusters=None):
    """HC3, or CR1 with clusters, row by row."""
    n, k = A.shape
    bread = np.linalg.inv((A.T * curvature) @ A)
    meat = np.zeros((k, k))
    if clusters is None:
        for a, s, h in zip(A, score, curvature, strict=True):
            one = a * s / (1 - h * a @ bread @ a)
            meat += np.outer(one, one)
        return bread @ meat @ bread
    labels = np.unique(clusters)
    for label in labels:
        one = A[clusters == label].T @ score[clusters == label]
        meat += np.outer(one, one)
    return bread @ meat @ bread * labels.size / (labels.size - 1) * (n - 1) / (n - k)


@pytest.mark.parametrize("clusters", [None, np.arange(N) // 8], ids=["rows", "clusters"])
def test_the_refit_by_hand(clusters):
    found = effect(X, Y, of=[0, 5], clusters=clusters)
    assert {1, 3} <= set(found.controls)
    assert found.selected_by["response"][0] == 1
    assert set(found.controls) == {l for one in found.selected_by.values() for l in one}
    A = np.column_stack([X[:, [0, 5]], np.ones(N), X[:, found.controls]])
    coef = np.linalg.lstsq(A, Y)[0]
    np.testing.assert_allclose(found.estimates, coef[:2], rtol=1e-8)
    V = sandwich(A, Y - A @ coef, np.ones(N), clusters)[:2, :2]
    np.testing.assert_allclose(found.covariance, V, rtol=1e-7)
    df = N - A.shape[1] if clusters is None else 24
    assert found.df == df
    errors = np.sqrt(np.diag(V))
    np.testing.assert_allclose(found.intervals[:, 1], coef[:2] + stats.t.ppf(0.975, df) * errors, rtol=1e-7)
    np.testing.assert_allclose(found.p_values, 2 * stats.t.sf(np.abs(coef[:2]) / errors, df), rtol=1e-6)
    joint = stats.f.sf(coef[:2] @ np.linalg.solve(V, coef[:2]) / 2, 2, df)
    assert found.joint_p_value == pytest.approx(joint, rel=1e-6)


@pytest.mark.parametrize("loss", ["binomial", "poisson"])
def test_other_losses_by_hand(loss):
    eta = 0.8 * X[:, 0] + X[:, 1] if loss == "binomial" else 0.3 * X[:, 0] + 0.3 * X[:, 1]
    inverse = {"binomial": lambda eta: 1 / (1 + np.exp(-eta)), "poisson": np.exp}[loss]
    y = (RNG.random(N) < inverse(eta)).astype(float) if loss == "binomial" else RNG.poisson(inverse(eta)).astype(float)
    found = effect(X, y, of=0, loss=loss)
    A = np.column_stack([X[:, 0], np.ones(N), X[:, found.controls]])
    coef = np.zeros(A.shape[1])
    for _ in range(30):
        mean = inverse(A @ coef)
        curvature = mean * (1 - mean) if loss == "binomial" else mean
        coef += np.linalg.solve((A.T * curvature) @ A, A.T @ (y - mean))
    assert found.estimates[0] == pytest.approx(coef[0], rel=1e-6)
    assert found.covariance[0, 0] == pytest.approx(sandwich(A, y - mean, curvature)[0, 0], rel=1e-5)
    assert ("log odds ratio" if loss == "binomial" else "log ratio of means") in found.what
    ratio = found.to_frame()["odds_ratio" if loss == "binomial" else "rate_ratio"]
    np.testing.assert_allclose(ratio, np.exp(found.estimates))


def test_intervals_hold_where_a_plain_regression_is_confounded():
    holds, plain = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((100, 60))
        d = C[:, 0] + C[:, 1] + rng.standard_normal(100)
        y = 0.5 * d + C[:, 0] + C[:, 2] + rng.standard_normal(100)
        low, high = effect(np.column_stack([d, C]), y, of=0).intervals[0]
        holds.append(low <= 0.5 <= high)
        plain.append(np.polyfit(d, y, 1)[0])
    assert np.mean(plain) > 0.75
    assert np.mean(holds) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 25)


def test_groups_lose_the_columns_that_are_asked_for():
    table = pd.DataFrame(X, columns=[f"g{j // 4}_{j % 4}" for j in range(40)])
    found = effect(table, Y, of="g0_0", groups="_", always=["g9"])
    assert found.names == ["g0_0"]
    assert found.controls[:2] == ["g9", "g0"]
    columns = [name for name in table if name.split("_")[0] in found.controls and name != "g0_0"]
    A = np.column_stack([table["g0_0"], np.ones(N), table[columns]])
    assert found.estimates[0] == pytest.approx(np.linalg.lstsq(A, Y)[0][0], rel=1e-8)
    np.testing.assert_array_equal(effect(table, Y, of=0, groups="_", always=["g9"]).estimates, found.estimates)


def test_a_table_of_variables():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.uniform(-2, 2, (300, 6)), columns=list("abcdef"))
    table["site"] = rng.choice(["north", "south", "west"], 300)
    table["treated"] = (np.sin(2 * table["a"]) + rng.logistic(size=300) > 0).astype(int)
    y = 0.7 * table["treated"] + 2 * np.sin(2 * table["a"]) + (table["site"] == "west") + 0.5 * rng.standard_normal(300)
    found = effect(table, y, of=["treated", "site"], terms=Terms({"[ab]": "curve"}, pairs=[("a", "treated")]))
    assert found.names == ["treated", "site=south", "site=west"]
    assert {"a", "a~"} <= set(found.controls)
    truth = np.array([0.7, 0.0, 1.0])
    assert (np.abs(found.estimates - truth) < 4 * found.standard_errors).all()
    assert (found.standard_errors < 0.15).all()
    text = str(found.summary())
    assert "difference in the mean" in text
    assert "All effects are zero: p-value" in text


def test_variables_are_read_as_the_terms_read_them():
    table = pd.DataFrame(X[:, :3], columns=list("abc"))
    codes = np.arange(N) % 3
    y = Y + 2.0 * (codes == 1)
    # the first level is the first category, or the smallest number, not the first in the alphabet
    dose = pd.Categorical.from_codes(codes, ["low", "mid", "high"], ordered=True)
    found = effect(table.assign(dose=dose), y, of="dose", terms="auto")
    assert found.names == ["dose=mid", "dose=high"]
    for site in (np.array([2, 10, 100])[codes], np.array(["2", "10", "100"])[codes]):
        same = effect(table.assign(site=site), y, of="site", terms={"site": "levels"})
        assert same.names == ["site=10", "site=100"]
        np.testing.assert_allclose(same.estimates, found.estimates)
    # numbers that are written as text are numbers
    text = effect(table.assign(a=[f"{value:.17g}" for value in X[:, 0]]), y, of="a", terms="auto")
    assert text.names == ["a"]
    np.testing.assert_allclose(text.estimates, effect(table, y, of="a", terms="auto").estimates)
    with pytest.raises(ValueError, match="'day' holds dates, whose effect is not one number"):
        effect(table.assign(day=pd.date_range("2020-01-01", periods=N)), y, of="day", terms="auto")
    with pytest.raises(ValueError, match="'dose' is missing in 1 rows"):
        effect(table.assign(dose=["", *"xy" * 99, "x"]), y, of="dose", terms="auto")


def test_a_log_odds_ratio_says_whose_odds_they_are():
    """The second label in sorted order: of ill and well, nobody would think that the odds are those of being well."""
    is_ill = X[:, 1] + RNG.logistic(size=N) > 0
    of_labels = effect(X[:, :5], np.where(is_ill, "ill", "well"), of=1, loss="binomial")
    of_numbers = effect(X[:, :5], is_ill, of=1, loss="binomial")
    np.testing.assert_allclose(of_labels.estimates, -of_numbers.estimates)
    assert of_labels.remarks == ("The odds are those of 'well' against 'ill'.",)
    assert not of_numbers.remarks
    assert not effect(X[:, :5], Y, of=1).remarks


def test_neither_units_nor_rows_of_weight_zero_matter():
    found, scales = effect(X, Y, of=0), np.exp(RNG.standard_normal(40))
    other = effect(X * scales + 3, 10 * Y - 5, of=0)
    assert other.controls == found.controls
    np.testing.assert_allclose(other.estimates * scales[0], 10 * found.estimates, rtol=1e-6)
    np.testing.assert_allclose(other.standard_errors * scales[0], 10 * found.standard_errors, rtol=1e-6)
    weight = np.r_[np.ones(N), np.zeros(30)]
    same = effect(np.r_[X, X[:30] ** 2], np.r_[Y, np.ones(30)], of=0, sample_weight=weight)
    np.testing.assert_allclose(same.estimates, found.estimates)
    np.testing.assert_allclose(same.covariance, found.covariance)
    # nor the levels that only such rows have
    table = pd.DataFrame(X[:, :3], columns=list("abc")).assign(site=np.array(["n", "s", "w"])[np.arange(N) % 3])
    more = pd.concat([table, table[:30].assign(site="at first")])
    sites, same = (
        effect(rows, y, of="site", terms="auto", sample_weight=given)
        for rows, y, given in ((table, Y, None), (more, np.r_[Y, np.ones(30)], weight))
    )
    assert same.names == sites.names == ["site=s", "site=w"]
    np.testing.assert_allclose(same.covariance, sites.covariance)


def test_a_number_that_is_a_name_is_no_position():
    numbered = pd.DataFrame(X, columns=range(1, 41))
    assert effect(numbered, Y, of=1).names == [1]
    np.testing.assert_allclose(effect(numbered, Y, of=1).estimates, effect(X, Y, of=0).estimates)
    terms = pd.DataFrame(X[:, :4], columns=range(1, 5))
    assert effect(terms, Y, of=[1, 2], terms="auto").names == ["1", "2"]


def test_few_rows_beyond_a_quantile_are_remarked_on():
    said = [effect(X[:, :4], Y, of=0, loss=Quantile(level)).remarks for level in (0.5, 0.9)]
    assert [any("20 rows are beyond the quantile" in one for one in remarks) for remarks in said] == [False, True]
    said = [effect(X[:, :2], np.arange(N) % every == 0, of=0, loss="binomial").remarks for every in (10, 40)]
    assert [any("5 rows are of the rarer class" in one for one in remarks) for remarks in said] == [False, True]


def test_one_weight_for_all_rows_changes_nothing():
    table, model = pd.DataFrame(X[:, :6]), GroupSparseRegressor(3)
    of_terms, curve = GroupSparseRegressor(terms=Terms(pairs=None)), pd.DataFrame(X[:, :2], columns=list("ab"))
    plain, weighted = (
        (
            effect(table, Y, of=0, sample_weight=weight).covariance,
            test_groups(model, table, Y, sample_weight=weight).raw,
            stability_selection(table, Y, 3, n_pairs=2, random_state=0, sample_weight=weight).orders,
            knockoffs(table, Y, 3, random_state=0, sample_weight=weight).draws,
            band(of_terms, curve, Y, "a", n=5, sample_weight=weight).high,
        )
        for weight in (None, 2.0)
    )
    for one, other in zip(plain, weighted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_groups_may_overlap():
    shared = Groups.from_lists([[0, 1, 2, 3], [3, 4, 5], [5, 6]], overlap=True)
    found = effect(X[:, :7], Y, of=0, groups=shared)
    assert set(found.controls) >= {0}
    alone = effect(X[:, :7], Y, of=0, groups=[[0, 1, 2, 3], [4], [5, 6]])
    assert np.abs(found.estimates - alone.estimates)[0] < alone.standard_errors[0]


TABLE = pd.DataFrame(X[:, :5], columns=["age", "bmi", "c", "d", "e"])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"of": "agee"}, "no column 'agee'; did you mean 'age'"),
        ({"of": 7}, "no column 7: give names, or positions from 0 to 4"),
        ({"of": 1.5}, "a list of these, not 1.5"),
        ({"of": []}, "of is empty"),
        ({"of": ["age", "age"]}, "names 'age' twice"),
        ({"of": ["age", 0]}, "names 0 twice"),
        ({"of": list(TABLE)}, "names every column"),
        ({"X": X, "of": "x"}, "no column 'x'"),
        ({"of": "x", "terms": "auto"}, "no column 'x'"),
        ({"X": TABLE.assign(c=1.0), "of": "c"}, "'c' has the same value"),
        ({"X": np.column_stack([X, X[:, 0]]), "of": 0}, "is a combination of the selected controls"),
        ({"X": X[:3], "y": Y[:3], "of": [0, 5]}, r"are \d columns, too many for 3 rows"),
        ({"X": TABLE.mask(TABLE["bmi"] > 2.5), "of": "bmi", "terms": "auto"}, r"'bmi' is missing in \d rows"),
        ({"y": (TABLE["age"] > 0).astype(float), "loss": "binomial"}, "separate the responses perfectly"),
        ({"y": np.ones(N)}, "y is 1 in every row"),
        ({"clusters": [1, 2]}, "one label per row"),
        ({"clusters": np.where(np.arange(N) == 3, np.nan, np.arange(N) // 4)}, "missing labels, first in row 3"),
        ({"clusters": np.arange(N) // 50, "sample_weight": np.arange(N) >= 150}, "clusters has the same label"),
        ({"y": np.column_stack([Y, Y])}, "one response per row"),
        ({"confidence": 95}, "confidence must lie between 0 and 1"),
    ],
)
def test_refusals(changed, words):
    with pytest.raises(ValueError, match=words):
        effect(**{"X": TABLE, "y": Y, "of": "age"} | changed)


def partial_likelihood(beta, A, time, event, strata):
    """The gradient by row and the information, by a loop over events, without ties."""
    risk, rows, information = np.exp(A @ beta), np.zeros_like(A), 0.0
    for i in np.flatnonzero(event):
        at_risk = (time >= time[i]) & (strata == strata[i])
        share = np.where(at_risk, risk, 0.0) / risk[at_risk].sum()
        apart = A - share @ A
        rows[i] += apart[i]
        rows -= share[:, None] * apart
        information = information + (share[:, None] * apart).T @ apart
    return rows, information


def test_survival_times_by_hand():
    rng = np.random.default_rng(5)
    strata = np.arange(N) % 2
    death, lost = rng.exponential(np.exp(-0.5 * X[:, 0] - X[:, 1])) + strata, rng.exponential(3.0, N)
    time, event = np.minimum(death, lost), death <= lost
    table = survival(time, event, strata=strata)
    found = effect(X, table, of=0, loss="cox", clusters=np.arange(N) // 4)
    assert 1 in found.controls
    A = X[:, [0, *found.controls]]
    beta = np.zeros(A.shape[1])
    for _ in range(30):
        rows, information = partial_likelihood(beta, A, time, event, strata)
        beta += np.linalg.solve(information, rows.sum(axis=0))
    assert found.estimates[0] == pytest.approx(beta[0], rel=1e-6)
    # Lin and Wei's covariance with clusters, as of R's coxph but for the factor
    half = rows.reshape(-1, 4, A.shape[1]).sum(axis=1) @ np.linalg.inv(information)
    factor = 50 / 49 * (event.sum() - 1) / (event.sum() - A.shape[1])
    assert found.covariance[0, 0] == pytest.approx(factor * (half[:, 0] @ half[:, 0]), rel=1e-6)
    assert "log hazard ratio" in found.what
    np.testing.assert_allclose(found.to_frame()["hazard_ratio"], np.exp(found.estimates))
    # neither units nor the origin of a column matter, with and without clusters
    plain, moved = effect(X, table, of=0, loss="cox"), effect(10 * X + 50, table, of=0, loss="cox")
    assert plain.df == event.sum() - len(plain.controls) - 1
    np.testing.assert_allclose(10 * moved.intervals, plain.intervals, rtol=1e-6)
    with pytest.raises(ValueError, match="is a combination of the selected controls"):
        effect(np.column_stack([strata, X]), table, of=0, loss="cox")
    with pytest.raises(ValueError, match="y has no event"):
        effect(X, survival(time, np.zeros(N)), of=0, loss="cox")
