"""The report of a fit: its numbers are the model's, and the page holds them all within its limits."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covey import Groups, GroupSparseRegressor, GroupSparseRegressorCV
from covey.datasets import make_group_sparse
from covey.report import FitReport, fit_report, render, write
from covey.report.curve import stopping_curve
from covey.report.numbers import shown
from covey.report.page import escape, script_json
from covey.report.plot import LABEL_GAP, _spread, time_axis
from covey.report.traces import keep_frames
from report.pages import constructed_path, constructed_report


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(120, 60, 3, active=3, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return GroupSparseRegressorCV(groups=3, cv=3).fit(data.X, data.y)


def test_the_numbers_are_the_models(model, data):
    report = FitReport.from_model(model, data.X, pd.Series(data.y, name="yield"))
    mse = model.mse_path_.mean(axis=1)
    at = model.times_.tolist().index(model.best_time_)
    scores = {score.label: score.value for score in report.scores}
    assert scores["Held-out R²"] == pytest.approx(1 - mse[at] / mse[0])
    assert scores["R² on training rows"] == pytest.approx(model.score(data.X, data.y))
    assert report.target == "yield"
    assert report.time == model.n_iter_
    assert report.n_selected == len(model.selected_groups_)
    frames = report.frames
    assert frames.times[frames.chosen] == model.n_iter_
    assert {model.times_by_rule_["min"], model.times_by_rule_["1se"]} <= set(frames.times)
    strengths = np.array([group.strength(frames.chosen) for group in frames.groups])
    assert (np.diff(strengths) <= 0).all()
    for group in frames.groups:
        l = int(group.name)
        facts, coefs = group.at(frames.chosen)
        np.testing.assert_allclose(coefs, model.coef_[3 * l : 3 * l + 3], rtol=1e-6)
        np.testing.assert_allclose(facts[:2], [model.group_strengths_[l], model.group_norms_[l]], rtol=1e-6)
        assert facts[2:].tolist() == [(coefs > 0).sum(), (coefs < 0).sum()]


def test_settings_and_versions_are_told(model, data):
    page = render(FitReport.from_model(model, data.X, data.y, settings={"command": "covey fit <data>"}))
    for told in ("covey fit &lt;data&gt;", "init_scale", "restarts", "numpy", np.__version__, "GroupSparseRegressorCV"):
        assert told in page


def test_test_rows_lead(model, data):
    report = FitReport.from_model(model, test=(data.X[:40], data.y[:40]))
    assert [score.label for score in report.scores] == ["R² on test rows", "Held-out R²"]
    assert report.scores[0].value == pytest.approx(model.score(data.X[:40], data.y[:40]))
    assert report.n_rows is None


def test_a_pipeline_is_opened(data):
    pipeline = make_pipeline(StandardScaler(), GroupSparseRegressor(groups=3, random_state=0)).fit(data.X, data.y)
    report = FitReport.from_model(pipeline, data.X, data.y)
    assert report.estimator == "GroupSparseRegressor"
    assert report.scores[-1].value == pytest.approx(pipeline.score(data.X, data.y))


@pytest.mark.parametrize("stopping", ["holdout", "ebic", "gcv", "discrepancy", "cv", 400, 1])
def test_every_rule_has_its_page(stopping, data):
    model = GroupSparseRegressor(groups=3, stopping=stopping, random_state=0).fit(data.X, data.y)
    curve = stopping_curve(model)
    page = render(FitReport.from_model(model, data.X, data.y))
    assert (curve is None) == isinstance(stopping, int)
    assert ('id="curve-plot"' in page) == (curve is not None)
    assert (curve is not None and curve.held_out) == ("Held-out R²" in page)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_units_beyond_four_byte_floats_are_kept(unit):
    path = constructed_path(Groups.from_size(2, 20))
    large = replace(path, coefs=path.coefs * unit, strengths=path.strengths * unit)
    plain, scaled = keep_frames(path, 400.0), keep_frames(large, 400.0)
    for group, same in zip(plain.groups, scaled.groups, strict=True):
        np.testing.assert_allclose(same.coefs / unit, group.coefs, rtol=1e-6)
    page = render(replace(constructed_report(path.groups), frames=scaled))
    assert '"bytes":8' in page


def test_a_path_that_goes_on_from_an_earlier_one(data):
    model = GroupSparseRegressor(groups=3, random_state=0, stopping=300).fit(data.X, data.y)
    path = model.path_
    later = np.asarray(path.times) >= 200
    model.path_ = replace(
        path,
        times=path.times[later],
        coefs=path.coefs[later],
        intercepts=path.intercepts[later],
        strengths=path.strengths[later],
    )
    model.scores_ = pd.DataFrame({"time": model.path_.times, "mse": 0.25 * np.var(data.y)})
    report = FitReport.from_model(model, data.X, data.y)
    assert report.scores[0].label == "Held-out R²"
    assert report.scores[0].value == pytest.approx(0.75)
    assert time_axis(report.frames, report.curve).low >= 200
    assert "R² 0.750" in render(report)
    assert stopping_curve(model).r2(300.0) is None


def test_sparse_data_are_reported_like_dense(data):
    X = data.X * (np.abs(data.X) > 0.7)
    dense, sparse = (
        FitReport.from_model(GroupSparseRegressor(groups=3, random_state=0).fit(kind, data.y), kind, data.y)
        for kind in (X, sp.csr_array(X))
    )
    assert [score.value for score in sparse.scores] == pytest.approx([score.value for score in dense.scores])
    assert [remark.heading for remark in sparse.remarks] == [remark.heading for remark in dense.remarks]


def test_two_fits_give_the_same_page(model, data):
    assert render(FitReport.from_model(model, data.X, data.y)) == render(FitReport.from_model(model, data.X, data.y))


def test_what_cannot_be_reported_is_refused(model, data):
    with pytest.raises(NotFittedError):
        FitReport.from_model(GroupSparseRegressor(), data.X, data.y)
    with pytest.raises(ValueError, match="X and y go together"):
        FitReport.from_model(model, data.X)


def test_the_file_is_written_whole(model, data, tmp_path):
    file = fit_report(model, data.X, data.y, tmp_path / "new" / "report.html", title="Über y")
    assert [entry.name for entry in file.parent.iterdir()] == ["report.html"]
    assert "<title>Über y</title>" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_ten_thousand_columns_stay_below_three_megabytes(size, tmp_path):
    names = [f"a column with a name of some length, number {j}" for j in range(10_000)]
    groups = Groups.from_size(size, 10_000).with_columns(names)
    file = write(constructed_report(groups, n_times=170), tmp_path / "wide.html")
    assert file.stat().st_size < 3_000_000


def test_frames_keep_what_matters():
    path = constructed_path(Groups.from_size(2, 40), n_times=1000)
    frames = keep_frames(path, 1234.0, [17.0, 555.0])
    assert frames.times[frames.chosen] == 1234
    assert {16.0, 554.0, float(path.times[-1])} <= set(frames.times)
    assert len(frames.times) <= 205
    np.testing.assert_array_equal(
        frames.awake, [np.count_nonzero(path.strengths[[path.index(t)]].toarray()) for t in frames.times]
    )
    assert frames.n_left_out == 0


def test_of_a_wide_group_the_largest_coefficients_are_listed():
    path = constructed_path(Groups.from_size(1000, 2000))
    frames = keep_frames(path, 500.0)
    coef = path.at(500.0)
    for group in frames.groups:
        l = int(group.name)
        own = np.abs(coef[1000 * l : 1000 * l + 1000])
        listed = [int(name) for name in group.columns]
        assert len(listed) == 200
        assert listed == sorted(listed)
        assert np.abs(coef[listed]).min() >= np.sort(own)[-200]
        assert group.at(frames.chosen)[0][1] == pytest.approx(np.linalg.norm(own), rel=1e-5)


def test_escaping():
    assert escape("<a b=\"c\" d='e'>&") == "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt;&amp;"
    assert escape("\ud800\x1b") == "\ufffd\ufffd"
    assert not set("<>&\u2028\u2029") & set(script_json(["</script>", "<!--", "&", "\u2028\u2029"]))
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


def test_labels_keep_apart_and_inside():
    for tops in ([0.0, 0.0, 0.01, 0.02], [0.97, 0.98, 1.0], [0.1, 0.5, 0.9], []):
        spread = _spread(tops)
        assert np.all(np.diff(spread) >= LABEL_GAP - 1e-12)
        assert all(0 <= top <= 1 for top in spread)
    assert spread == []
    assert _spread([0.1, 0.5, 0.9]) == [0.1, 0.5, 0.9]


def test_numbers_for_people():
    cases = {12345.6: "12346", 123456789.0: "1.23e8", 0.00012345: "0.000123", -1.5: "−1.50", 999.9: "1000"}
    assert {value: shown(value) for value in cases} == cases


def test_restarts_are_told_and_lines_are_broken_there():
    whole = constructed_report(Groups.from_sizes([3, 1, 4, 2]))
    assert "restarted" not in render(whole)
    page = render(replace(whole, restarted=(200.0, 360.0)))
    assert "At iteration 200 and 360, where a dotted line stands, the path was restarted" in page
    assert page.count('class="rule restart"') == 4  # in both plots
    assert "The path was restarted at iteration 200." in page
    strongest = re.search(r'data-line="0" d="([^"]*)"', page).group(1)
    assert strongest.count("M") == 3
