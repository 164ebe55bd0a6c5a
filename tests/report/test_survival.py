"""The report of survival times: curves by held-out risk, numbers at risk, hazard ratios, baseline."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from covey import GroupSparseCox, nested_score, survival
from covey.estimators.survival import kaplan_meier
from covey.report import FitReport, render
from covey.report.fitted import Fitted
from covey.report.survival import survival_part

N = 120


RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((N, 8)), columns=[f"g{j // 2}_{j % 2}" for j in range(8)])
DEATH, LOST = RNG.exponential(np.exp(X.iloc[:, 3] - X.iloc[:, 2])), RNG.exponential(2.0, N)
TIME, EVENT = np.minimum(DEATH, LOST).round(2) + 0.01, DEATH <= LOST
Y = survival(TIME, EVENT)
MODEL = GroupSparseCox([name[:2] for name in X.columns], selection="bic", always=["g3"]).fit(X, Y)


@pytest.fixture(scope="module")
def nested():
    return nested_score(MODEL, X, Y, 3)


@pytest.fixture(scope="module")
def page(nested):
    return render(FitReport.from_model(MODEL, X, Y, nested=nested, test=(X[:50], (TIME[:50], EVENT[:50]))))


@pytest.mark.parametrize("truncated", [False, True], ids=["", "entries"])
def test_kaplan_meier_is_its_definition(truncated):
    rng = np.random.default_rng(1)
    stop, event, weight = rng.integers(1, 9, 40) / 2, rng.random(40) < 0.6, rng.uniform(0.5, 2, 40)
    start = np.where(rng.random(40) < 0.5, stop - 0.5, 0.0) if truncated else np.full(40, -np.inf)
    times, left = kaplan_meier(np.column_stack([start, stop, event, np.zeros(40)]), weight)
    value, expected = 1.0, []
    for t in np.unique(stop[event]):
        at_risk = weight[(start < t) & (stop >= t)].sum()
        value *= 1 - weight[event & (stop == t)].sum() / at_risk
        expected.append(value)
    np.testing.assert_array_equal(times, np.unique(stop[event]))
    np.testing.assert_allclose(left, expected, atol=1e-12)


def test_folds_have_events_and_predict_every_row(nested):
    assert nested.measure == "concordance"
    for train, test in nested.splits:
        assert abs(EVENT[test].mean() - EVENT.mean()) < 0.05
        fitted = GroupSparseCox(MODEL.groups, selection="bic", always=["g3"]).fit(X.iloc[train], Y[train])
        np.testing.assert_allclose(nested.predictions[test], fitted.predict(X.iloc[test]))
    assert set(nested.references) == {"null", "always in"}
    assert nested.references["always in"].mean < nested.mean


def test_a_selection_of_nothing_is_said_in_words():
    """A constant column is never added to what is always in."""
    columns = X[["g1_0", "g1_1"]].assign(one=1.0)
    alone = nested_score(GroupSparseCox(always=["g1_0", "g1_1"]), columns, Y, 3)
    assert alone.verdict == "In no outer fold is anything selected besides what is always in."


@pytest.mark.filterwarnings("ignore::Warning")  # from lifelines
def test_what_is_always_in_alone_is_a_cox_model_of_its_columns(nested):
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed")
    columns = ["g3_0", "g3_1"]
    for (train, test), score in zip(nested.splits, nested.references["always in"].folds, strict=True):
        frame = X[columns].assign(time=TIME, event=EVENT)
        cox = lifelines.CoxPHFitter().fit(frame.iloc[train], "time", "event")
        risk = np.asarray(cox.predict_log_partial_hazard(frame.iloc[test]))
        assert score == pytest.approx(lifelines.utils.concordance_index(TIME[test], -risk, EVENT[test]), abs=1e-9)


def test_thirds_are_of_the_held_out_risk(nested):
    part = survival_part(Fitted(MODEL, X, Y, nested=nested))
    assert part.n_folds == 3
    assert [len(curve.stop) for curve in part.thirds] == [40, 40, 40]
    order = np.argsort(nested.predictions)
    for curve, rows in zip(part.thirds, np.split(order, 3), strict=True):
        assert sorted(curve.stop) == sorted(TIME[rows])
        assert curve.n_events == EVENT[rows].sum()
        for t in (0.0, 0.5, 2.0):
            assert curve.at_risk(t) == (TIME[rows] >= t).sum()
    # the model predicts: curves are in the order of the risk
    at = [curve.y[np.searchsorted(curve.x, 0.5)] for curve in part.thirds]
    assert at[0] > at[1] > at[2]


def test_columns_of_a_spline_have_a_curve_and_no_hazard_ratios():
    """A pipeline also passes times on, for survival."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 6, 300), "site": rng.choice(list("ab"), 300), "dose": rng.random(300)})
    time = rng.exponential(np.exp(-2 * np.sin(frame["age"]) - 2 * frame["dose"]))
    y = survival(time, np.ones(300, dtype=bool))
    columns = ColumnTransformer(
        [
            ("curve", SplineTransformer(5, include_bias=False), ["age"]),
            ("levels", OneHotEncoder(sparse_output=False), ["site"]),
            ("line", "passthrough", ["dose"]),
        ]
    )
    groups = [0] * 6 + [1] * 2 + [2]
    model = make_pipeline(columns, GroupSparseCox(groups, selection="bic")).fit(frame, y)
    part = FitReport.from_model(model, frame, y, nested=0)
    assert [one.column for one in part.survival.ratios] == ["8"]
    assert [one.name for one in part.effects if one.axes[0].kind == "number"] == ["age"]
    at = [0.1, 1.0]
    expected = [function(at) for function in model[-1].predict_survival_function(model[:-1].transform(frame))]
    np.testing.assert_allclose(model.predict(frame, at=at), expected)
    with pytest.raises(ValueError, match="give at= or interval="):
        model[-1].predict(model[:-1].transform(frame), strata=np.zeros(300))
    with pytest.raises(ValueError, match="not negative"):
        model.predict(frame, at=[-1.0])


def test_a_table_of_variables_points_at_its_curves():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 6, 200), "noise": rng.random(200)})
    y = survival(rng.exponential(np.exp(-2 * np.sin(frame["age"]))), np.ones(200, dtype=bool))
    model = GroupSparseCox(terms="auto", selection="bic").fit(frame, y)
    page = render(FitReport.from_model(model, frame, y, nested=0))
    assert 'drawn in <a href="#variables">' in page
    assert "every row has the same hazard" not in page


def test_the_page_shows_the_numbers(page, nested):
    part = survival_part(Fitted(MODEL, X, Y, nested=nested))
    table = re.search(r'<table id="at-risk">.*?</table>', page, re.DOTALL)[0]
    marks = [float(t) for t in re.findall(r'<th scope="col">([\d.]+)</th>', table)]
    rows = [list(map(int, re.findall(r"<td>(\d+)</td>", row))) for row in re.findall(r"<tr>.*?</tr>", table)[1:]]
    assert rows == [[curve.at_risk(t) for t in marks] for curve in part.thirds]
    assert f"{nested.mean:.3f} ± {nested.margin:.3f}" in page
    assert "held-out risk: in 3 outer folds" in page
    assert all(f"<bdi>{name}</bdi></b>" in page for name in ("low risk", "middle risk", "high risk"))  # not shortened
    assert f"The event happened in {EVENT.sum()} of {N} rows" in page
    assert "On 50 test rows" in page
    j = int(np.argmax(np.abs(MODEL.coef_ * X.std(ddof=0).to_numpy())))
    ratios = re.search(r'<table class="ratios".*?</table>', page, re.DOTALL)[0]
    assert f"<bdi>{X.columns[j]}</bdi>" in ratios.split("</tr>")[1]
    assert f"{np.exp(MODEL.coef_[j]):.3f}" in ratios
    assert "hazard ratio" in page
    sparse = survival_part(Fitted(MODEL, sp.csr_array(X.to_numpy()), Y, nested=nested))
    np.testing.assert_allclose([r.per_deviation for r in sparse.ratios], [r.per_deviation for r in part.ratios])
    assert "factor that multiplies the hazard" in page


def test_the_baseline_has_a_curve_for_each_stratum():
    y = survival(TIME, EVENT, strata=np.array(["<i>", "b"] * (N // 2)))
    model = GroupSparseCox(2, selection="bic").fit(X, y)
    report = FitReport.from_model(model, X, y, nested=0)
    assert [curve.name for curve in report.survival.baseline] == ["<i>", "b"]
    baseline = model.baseline()
    for curve in report.survival.baseline:
        np.testing.assert_array_equal(curve.y, baseline.loc[baseline["stratum"] == curve.name, "survival"])
    page = render(report)
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert "Each stratum has its own baseline" in page


def test_pairs_are_taken_and_without_folds_the_training_rows_are_named():
    report = FitReport.from_model(MODEL, X, (TIME, EVENT), nested=2)
    assert report.n_rows == N
    assert report.nested is not None
    alone = FitReport.from_model(MODEL, X, (TIME, EVENT), nested=0)
    assert alone.survival.n_folds == 0
    assert "fitted to these very rows" in render(alone)


def test_a_model_without_groups_has_one_curve():
    rng = np.random.default_rng(5)
    y = survival(rng.exponential(1.0, N), rng.random(N) < 0.5)
    model = GroupSparseCox(2, selection="ebic").fit(X, y)
    assert model.selected_groups_ == []
    report = FitReport.from_model(model, X, y, nested=0)
    assert [curve.name for curve in report.survival.thirds] == ["all rows"]
    page = render(report)
    assert "no thirds to compare" in page
    assert "every row has the same hazard" in page
