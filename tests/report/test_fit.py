"""The report of a fit: its numbers are the model's, and the page holds them all within its limits."""

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covey.evidence
import covey.report
from covey import Groups, GroupSparseRegressor, nested_score
from covey.datasets import make_group_sparse
from covey.report import FitReport, fit_report, render, write
from covey.report.drawing import LABEL_GAP, spread
from covey.report.page import page as html_page
from covey.report.page import script_json
from covey.report.path import PATH_END, keep_frames, positions, time_axis
from covey.report.quality import BELOW, Score
from covey.report.remarks import Remark
from covey.search.chosen import judged
from covey.selection import Folds, Size
from report.pages import constructed_limit_path, constructed_path, constructed_report


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(120, 60, 3, active=3, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return GroupSparseRegressor(groups=3, selection=3).fit(data.X, data.y)


def test_the_numbers_are_the_models(model, data):
    report = FitReport.from_model(model, data.X, pd.Series(data.y, name="yield"), nested=0)
    table = model.candidates_
    chosen, nothing = (table["mse"][rows].iloc[0] for rows in (table["chosen"], table["groups"] == 0))
    scores = {score.label: score.value for score in report.scores}
    assert scores["R² on validation rows"] == pytest.approx(1 - chosen / nothing)
    assert scores["R² on training rows"] == pytest.approx(model.score(data.X, data.y))
    assert report.target == "yield"
    assert model.recipe_ in report.model
    assert report.n_selected == len(model.selected_groups_)
    frames = report.frames
    assert frames.times[frames.chosen] == model.path_.times[-1]
    strengths = np.array([group.strength(frames.chosen) for group in frames.groups])
    assert (np.diff(strengths) <= 0).all()
    for group in frames.groups:
        l = int(group.name)
        facts, coefs = group.at(frames.chosen)
        np.testing.assert_allclose(coefs, model.coef_[3 * l : 3 * l + 3], rtol=1e-6)
        np.testing.assert_allclose(facts[:2], [model.group_strengths_[l], model.group_norms_[l]], rtol=1e-6)
        assert facts[2:].tolist() == [(coefs > 0).sum(), (coefs < 0).sum()]
        assert group.folds == model.fold_frequencies_[l]


def test_test_rows_lead_and_a_pipeline_is_opened(model, data):
    test = data.X[:40], data.y[:40]
    report = FitReport.from_model(model, test=test)
    assert [score.label for score in report.scores] == ["R² on test rows", "R² on validation rows"]
    assert report.scores[0].value == pytest.approx(model.score(*test))
    assert report.n_rows is None
    pipeline = make_pipeline(StandardScaler(), GroupSparseRegressor(groups=3)).fit(data.X, data.y)
    report = FitReport.from_model(pipeline, data.X, data.y, nested=0, test=test)
    assert report.estimator == "GroupSparseRegressor"
    assert report.scores[0].value == pytest.approx(pipeline.score(*test))
    assert report.scores[-1].value == pytest.approx(pipeline.score(data.X, data.y))


def test_the_page_is_written_completely_and_the_same_every_time(model, data, tmp_path):
    options = {"nested": 0, "title": "Über y", "settings": {"command": "covey fit <data>"}}
    file = fit_report(model, data.X, data.y, tmp_path / "new" / "report.html", **options)
    assert [entry.name for entry in file.parent.iterdir()] == ["report.html"]
    page = file.read_text(encoding="utf-8")
    assert page == render(FitReport.from_model(model, data.X, data.y, **options))
    wanted = ("<title>Über y</title>", "covey fit &lt;data&gt;", "random_state", "selection", np.__version__)
    assert [text for text in wanted if text not in page] == []


def test_nothing_selected_and_nothing_to_choose_from(data):
    y = np.random.default_rng(5).standard_normal(len(data.y))
    report = FitReport.from_model(GroupSparseRegressor(groups=3, selection=Size(0)).fit(data.X, y), data.X, y, nested=0)
    assert report.n_selected == 0
    page = render(replace(report, judged=None))
    assert "the same prediction for every row" in page
    assert "There was nothing to choose from." in page


def test_what_cannot_be_reported_is_refused(model, data):
    with pytest.raises(NotFittedError):
        FitReport.from_model(GroupSparseRegressor(), data.X, data.y)
    with pytest.raises(ValueError, match="X and y go together"):
        FitReport.from_model(model, data.X)
    for name, made_by in (("tests", "test_groups"), ("stability", "stability_selection")):
        with pytest.raises(ValueError, match=rf"{name} must be a result of covey.*{made_by}, not int"):
            FitReport.from_model(model, data.X, data.y, nested=0, **{name: 3})


CHOICES = {
    "hold-out": {"selection": "holdout"},
    "criterion": {"selection": "ebic"},
    "discrepancy": {"selection": "discrepancy"},
    "size": {"selection": Size(2), "always": [7]},
    "mean": {"rule": "predict"},
    "columns": {"standardize": "column", "rule": "select"},
    "overlap": {
        "groups": Groups.from_lists([*([3 * l, 3 * l + 1, 3 * l + 2] for l in range(20)), [0, 3]], overlap=True)
    },
}


@pytest.mark.parametrize("case", CHOICES, ids=str)
def test_every_way_to_choose_has_its_page(case, data):
    model = GroupSparseRegressor(**{"groups": 3, **CHOICES[case]}).fit(data.X, data.y)
    chosen_by = judged(model)
    report = FitReport.from_model(model, data.X, data.y, nested=0)
    page = render(report)
    assert 'id="judged-plot"' in page
    assert (chosen_by.null is not None) == ("R² on validation rows" in page)
    assert escape(model.recipe_) in page
    shown_groups = [group for group in report.frames.groups if group.strength(report.frames.chosen) > 0]
    assert {group.name for group in shown_groups} == set(map(str, model.selected_groups_))
    for group in shown_groups:
        norm = model.group_norms_[model.groups_.position(int(group.name))]
        assert group.at(report.frames.chosen)[0][1] == pytest.approx(norm, rel=1e-6)


@pytest.mark.parametrize(
    ("rule", "said"), [("select", "Outer folds: in how many of 2"), ("predict", "Folds: in how many of 3")]
)
def test_the_folds_in_which_groups_are_counted_are_named(rule, said, data):
    model = GroupSparseRegressor(groups=3, rule=rule, selection=Folds(3, deals=1)).fit(data.X, data.y)
    assert said in render(FitReport.from_model(model, data.X, data.y, nested=2))


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_units_beyond_four_byte_floats_are_kept(unit):
    path = constructed_path(Groups.from_size(2, 20))
    large = replace(path, coefs=path.coefs * unit, strengths=path.strengths * unit)
    plain, scaled = keep_frames(path), keep_frames(large)
    for group, same in zip(plain.groups, scaled.groups, strict=True):
        np.testing.assert_allclose(same.coefs / unit, group.coefs, rtol=1e-6)
    page = render(replace(constructed_report(path.groups), frames=scaled))
    assert '"bytes":8' in page


def test_sparse_data_are_reported_like_dense(data):
    X = data.X * (np.abs(data.X) > 0.7)
    dense, sparse = (
        FitReport.from_model(GroupSparseRegressor(groups=3).fit(kind, data.y), kind, data.y, nested=0)
        for kind in (X, sp.csr_array(X))
    )
    assert [score.value for score in sparse.scores] == pytest.approx([score.value for score in dense.scores])
    assert [remark.heading for remark in sparse.remarks] == [remark.heading for remark in dense.remarks]


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_ten_thousand_columns_stay_below_one_and_a_half_megabytes(size, tmp_path):
    names = [f"a column with a name of some length, number {j}" for j in range(10_000)]
    groups = Groups.from_size(size, 10_000).with_columns(names)
    report = replace(
        constructed_report(groups, constructed_path(groups, n_times=170)),
        membership=tuple((str(l), *(names[j][:9] for j in members)) for l, members in enumerate(groups.lists())),
    )
    file = write(report, tmp_path / "wide.html")
    assert file.stat().st_size < 1_500_000


def test_frames_keep_what_matters():
    path = constructed_path(Groups.from_size(2, 40), n_times=1000)
    frames = keep_frames(path)
    assert frames.times[frames.chosen] == path.times[-1]
    assert len(frames.times) <= 205
    np.testing.assert_array_equal(
        frames.awake, [np.count_nonzero(path.strengths[[path.index(t)]].toarray()) for t in frames.times]
    )
    assert frames.n_left_out == 0


def test_of_a_limit_path_every_event_is_kept_and_the_model_stands_apart():
    path = constructed_limit_path(Groups.from_sizes([3, 1, 4, 2]))
    frames = keep_frames(path)
    assert frames.times.tolist() == path.times.tolist()
    x = positions(frames, time_axis(frames))
    assert x[-1] == 1
    assert x[-2] == pytest.approx(PATH_END)


def test_of_a_wide_group_the_largest_coefficients_are_listed():
    path = constructed_path(Groups.from_size(1000, 2000))
    frames = keep_frames(path)
    coef = path.at(path.times[-1])
    for group in frames.groups:
        l = int(group.name)
        sizes = np.abs(coef[1000 * l : 1000 * l + 1000])
        listed = [int(name) for name in group.columns]
        assert len(listed) == 200
        assert listed == sorted(listed)
        assert np.abs(coef[listed]).min() >= np.sort(sizes)[-200]
        assert group.at(frames.chosen)[0][1] == pytest.approx(np.linalg.norm(sizes), rel=1e-5)


def test_escaping():
    assert "<title>\ufffd\ufffd &lt;b&gt;&amp;" in html_page("\ud800\x1b <b>&")
    assert not set("<>&\u2028\u2029") & set(script_json(["</script>", "<!--", "&", "\u2028\u2029"]))
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


def test_templates_trust_only_what_covey_wrote():
    folder = Path(covey.report.__file__).parent / "templates"
    trusted = {
        (file.name, value) for file in folder.iterdir() for value in re.findall(r"(\S+)\|safe", file.read_text())
    }
    assert trusted == {
        ("page.html", "style"),
        ("page.html", "script"),
        ("fit.html", "data"),
        ("reproduction.html", "section.about"),
        ("macros.html", 'class="sr">drawn</span>\''),
    }


def test_hostile_text_stays_text_everywhere():
    text = "<img src=x>\"'&</script>\ud800\x00"
    report = constructed_report(Groups.from_labels([text, text, "b"], columns=[text, "<i>", "<u>"]))
    words = "title estimator target model how_chosen strength_label command effect unpenalised strength_unit no_nested"
    others = {
        "always": (text,), "scores": (Score(text, 0.5, text),), "remarks": (Remark(text, text, text, True),),
        "settings": {text: text}, "membership": ((text, text),), "judged": replace(report.judged, label=text),
    }  # fmt: skip
    page = render(replace(report, **dict.fromkeys(words.split(), text), **others))
    assert page.encode()
    assert not re.search("<(img|i|u)>|<img|[\x00\ud800]", page)
    assert page.count("</script>") == 2


def test_labels_keep_apart_and_inside():
    for tops in ([0.0, 0.0, 0.01, 0.02], [0.97, 0.98, 1.0], [0.1, 0.5, 0.9], []):
        moved = spread(tops)
        assert np.all(np.diff(moved) >= LABEL_GAP - 1e-12)
        assert all(0 <= top <= 1 for top in moved)
    assert moved == []
    assert spread([0.1, 0.5, 0.9]) == [0.1, 0.5, 0.9]


def test_columns_of_selected_groups_are_counted_also_where_a_coefficient_is_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    X[:, 2] = 0.0  # a constant column of a group that matters
    model = GroupSparseRegressor(3, selection=Size(1)).fit(X, X[:, 0] + 0.1 * rng.standard_normal(80))
    assert np.count_nonzero(model.coef_) == 2
    assert "(3 of 6 columns)" in str(model.summary())
    report = FitReport.from_model(model, X, X[:, 0], nested=0)
    assert report.n_selected_columns == 3


def test_an_optimistic_score_below_the_held_out_one_is_explained():
    data = make_group_sparse(80, 12, 3, random_state=0)
    model = GroupSparseRegressor(3, selection=3).fit(data.X, data.y)
    nested = nested_score(model, data.X, data.y, 3, references=False)
    for mean, explained in ((2.0, True), (-2.0, False)):
        report = FitReport.from_model(model, data.X, data.y, nested=replace(nested, mean=mean))
        notes = [score.note for score in report.scores if "validation" in score.label or "training" in score.label]
        assert [BELOW in note for note in notes] == [explained] * 2


def test_tests_of_groups_have_a_section(data, model):
    tests = covey.evidence.test_groups(model, data.X, data.y)
    page = render(FitReport.from_model(model, data.X, data.y, nested=0, tests=tests))
    section = page.split('id="tests-heading"')[1].split("</section>")[0]
    assert f"<b>{tests.n_selected} of 20 groups</b>" in section
    assert escape(tests.promise()) in section
    for name, line in tests.to_frame().query("selected").iterrows():
        assert re.search(rf"<bdi>{name}</bdi>.*?{line.p_value:.2g}", section, re.S)
    assert 'id="tests-heading"' not in render(FitReport.from_model(model, data.X, data.y, nested=0))
