"""Reports of classes, counts and several responses: the numbers are the model's, and held-out rows are held out."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from sklearn.metrics import log_loss

import covey
from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, nested_score, survival
from covey.evidence import ClassScores
from covey.losses import MultiQuantile, Ordinal
from covey.report import FitReport, render
from covey.report.page import shown
from covey.report.predictions import calibration_bins, class_view
from covey.report.quality import BELOW
from covey.selection import Size

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><b>", "a & \"b\" 'c'"]


def page_of(model, X, y, nested=0, **options):
    return unescape(render(FitReport.from_model(model.fit(X, y), X, y, nested=nested, **options)))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 12))
    eta = X @ np.r_[1.5, -1.0, np.zeros(6), 1.2, 0.0, 0.0, 0.0]
    scores = np.column_stack([eta, 1.5 * X[:, 8], -eta]) + rng.gumbel(size=(120, 3))
    return {
        "X": X,
        "eta": eta,
        "two": np.where(eta + rng.logistic(size=120) > 0, "yes", "no"),
        "three": np.array(HOSTILE)[scores.argmax(axis=1)],
        "exposure": rng.uniform(1, 3, 120),
        "count": rng.poisson(2 * np.exp(0.5 * eta)),
        "both": np.column_stack([eta, -eta + X[:, 9]]) + 0.5 * rng.standard_normal((120, 2)),
    }


def test_offsets_go_with_their_rows(data):
    offset = np.where(np.arange(120) % 2 == 0, 3.0, -3.0)
    labels = np.where(np.random.default_rng(1).random(120) < 1 / (1 + np.exp(-offset)), "yes", "no")
    model = GroupSparseClassifier(2, selection=Size(0)).fit(data["X"], labels, offset=offset)
    held_out = nested_score(model, data["X"], labels, offset=offset).class_scores
    assert np.ptp(held_out.probabilities[::2, 1]) < 0.1 < np.ptp(held_out.probabilities[:, 1])
    assert held_out.accuracy > 0.9


def test_calibration_is_on_the_line_where_probabilities_are_right():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    codes = (rng.random(20_000) < p).astype(int)
    bins = calibration_bins(ClassScores.of(["a", "b"], codes, np.column_stack([1 - p, p])))
    assert sum(b.n for b in bins) == 20_000
    assert [int(10 * b.predicted) for b in bins] == list(range(10))
    assert all(abs(b.observed - b.predicted) < 4 * b.error for b in bins)
    sure = ClassScores.of(["a", "b"], codes, np.column_stack([p < 0.5, p >= 0.5]))
    assert max(abs(b.observed - b.predicted) for b in calibration_bins(sure)) > 0.2
    several = ClassScores.of(["a", "b", "c"], codes, np.column_stack([1 - p, p, 0 * p]))
    assert sum(b.n for b in calibration_bins(several)) == 60_000


def test_the_numbers_of_a_classifier(data):
    model = GroupSparseClassifier(2, selection=3).fit(data["X"], data["two"])
    nested = nested_score(model, data["X"], data["two"], 2, references=False)
    test = (data["X"][:40], data["two"][:40])
    report = FitReport.from_model(model, data["X"], data["two"], nested=nested, test=test)
    scores = {score.label: score.value for score in report.scores}
    table = model.candidates_
    chosen, nothing = (table["deviance"][rows].iloc[0] for rows in (table["chosen"], table["groups"] == 0))
    assert scores["D² on validation rows"] == pytest.approx(1 - chosen / nothing)
    assert scores["Held-out D²"] == nested.mean
    assert scores["Held-out accuracy"] == nested.class_scores.accuracy
    assert scores["Accuracy on test rows"] == pytest.approx(model.score(*test))
    shares = np.where(data["two"] == "yes", np.mean(data["two"] == "yes"), np.mean(data["two"] == "no"))
    left = log_loss(data["two"], model.predict_proba(data["X"])) / -np.log(shares).mean()
    assert scores["D² on training rows"] == pytest.approx(1 - left)
    # along the path: no group misses the rarer class, the model what it misses
    along = report.along
    assert along.deviance[0] == pytest.approx(1.0, abs=1e-6)
    assert along.wrong[0] == pytest.approx(min(np.mean(data["two"] == "yes"), np.mean(data["two"] == "no")))
    assert along.deviance[-1] == pytest.approx(left)
    assert along.wrong[-1] == pytest.approx(1 - model.score(data["X"], data["two"]))


def test_what_separates_the_classes_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    model = GroupSparseClassifier(2, selection=Size(1)).fit(X, X[:, 0] > 0)
    assert "is infinite" in model.recipe_
    report = FitReport.from_model(model, X, X[:, 0] > 0, nested=0)
    (serious,) = (remark for remark in report.remarks if "perfectly separated" in remark.heading)
    assert serious.serious


def test_many_classes_stay_readable():
    rng = np.random.default_rng(0)
    classes = tuple(f"class {k}" for k in range(40))
    p = rng.dirichlet(np.ones(40), 500)
    held_out = ClassScores.of(classes, rng.integers(0, 40, 500), p)
    mistakes, counts = class_view(held_out)["mistakes"], held_out.confusion()
    assert len(mistakes) == 20
    assert [count for _, _, count in mistakes] == sorted((counts - np.diag(np.diag(counts))).ravel())[:-21:-1]
    assert all(counts[classes.index(a), classes.index(b)] == count for a, b, count in mistakes)


def test_counts_have_rate_ratios(data):
    offset = np.log(data["exposure"])
    model = GroupSparseRegressor(2, loss="poisson", selection="bic").fit(data["X"], data["count"], offset=offset)
    report = FitReport.from_model(model, data["X"], data["count"], offset=offset, sample_weight=2.0, nested=0)
    page = render(report)
    assert "rate ratio" in page
    assert "the logarithm of the rate" in page
    assert report.nested is None
    assert report.along.wrong is None
    assert report.along.deviance[-1] == pytest.approx(1 - model.score(data["X"], data["count"], offset=offset))
    assert f"deviance {report.along.deviance[-1]:.0%} of the constant" in unescape(page)


def test_a_table_per_response(data):
    frame = pd.DataFrame(data["both"], columns=["up & <b>", "down"])
    model = GroupSparseRegressor(2, selection="bic").fit(data["X"], data["both"])
    report = FitReport.from_model(model, data["X"], frame, nested=0)
    assert [part.name for part in report.responses] == list(frame.columns)
    for k, part in enumerate(report.responses):
        fitted = model.predict(data["X"])[:, k]
        left = np.sum((data["both"][:, k] - fitted) ** 2) / np.sum(
            (data["both"][:, k] - data["both"][:, k].mean()) ** 2
        )
        assert part.r2 == pytest.approx(1 - left)
        for name, strength, column, value in part.groups:
            coef = model.coef_[k, 2 * int(name) : 2 * int(name) + 2]
            assert strength == pytest.approx(model.partial_effect(data["X"], int(name))[:, k].std())
            assert value == pytest.approx(coef[np.abs(coef).argmax()])
            assert int(column) in (2 * int(name), 2 * int(name) + 1)
    page = render(report)
    assert "up &amp; &lt;b&gt;" in page
    assert "<b></th>" not in page
    with pytest.raises(ValueError, match="3 names, but the model has 2 responses"):
        FitReport.from_model(model, data["X"], data["both"], outputs=["a", "b", "c"])
    with pytest.raises(ValueError, match="positive= names a class, but the model predicts none"):
        FitReport.from_model(model, data["X"], data["both"], positive="a")


def test_a_score_of_your_own_is_called_what_it_is(data):
    classes = np.where(data["both"][:, 0] > 0, "a", "b")
    model = GroupSparseClassifier(2, selection="bic").fit(data["X"], classes)
    nested = nested_score(model, data["X"], classes, 3, scoring="roc_auc", references=False)
    report = FitReport.from_model(model, data["X"], classes, nested=nested)
    assert {score.label: score.value for score in report.scores}["Held-out roc_auc"] == nested.mean
    assert not any(BELOW in score.note for score in report.scores)  # those are shares of the deviance
    page = unescape(render(report))
    assert "roc_auc is a mean over the folds" in page
    assert "roc_auc is the share" not in page
    assert "(90% interval); that of the null model is 0.5. On rows" in page
    # of a single fold nothing is known but the score
    alone = nested_score(model, data["X"], classes, nested.splits[:1], scoring="roc_auc", references=False)
    page = unescape(render(FitReport.from_model(model, data["X"], classes, nested=alone)))
    assert "Scores of a single fold have no margin" in page
    assert "hardly predicts" not in page
    assert "± nan" not in page
    assert "<td>nan" not in page


def test_rows_of_weight_zero_are_in_no_number_of_a_report(data):
    rng, X = np.random.default_rng(1), pd.DataFrame(data["X"][:, :6], columns=list("abcdef"))
    ignored = -X.iloc[:20].assign(c=X["a"])  # there, one column repeats another
    more, weight = pd.concat([X, ignored], ignore_index=True), np.r_[np.ones(120), np.zeros(20)]
    folds = [(np.arange(120) % 3 != k, np.arange(120) % 3 == k) for k in range(3)]
    # both sides of a fold have some of them
    longer = [(np.r_[train, np.arange(20) < 5], np.r_[test, np.arange(20) >= 5]) for train, test in folds]
    for model, y in (
        (GroupSparseRegressor(selection="bic"), data["eta"] + rng.standard_normal(120)),
        (GroupSparseClassifier(selection="bic"), data["two"]),
        (GroupSparseCox(selection="bic"), survival(rng.exponential(np.exp(-data["eta"])), rng.random(120) < 0.7)),
    ):
        pages = []
        for table, response, cv, given in (
            (X, y, folds, {}), (more, np.r_[y, y[:20]], longer, {"sample_weight": weight}),
        ):  # fmt: skip
            nested = nested_score(model, table, response, cv, references=False, **given)
            report = FitReport.from_model(model.fit(table, response, **given), table, response, nested=nested, **given)
            pages.append(render(report).partition('id="path-data"')[0])
        # where there are more rows, others of them are drawn
        one, other = (re.sub(r' d="[^"]*"', "", page) for page in pages)
        assert one == other


def test_one_response_in_a_column_has_the_report_of_the_response(data):
    model, y = GroupSparseRegressor(2, selection="bic"), data["both"][:, 0]
    pages = [render(FitReport.from_model(model.fit(data["X"], one), data["X"], one)) for one in (y, y[:, None])]
    assert pages[0] == pages[1]


def test_training_scores_of_responses_know_weights_and_offsets(data):
    offset = 3 * data["X"][:, 4:6]
    known = {"sample_weight": 1 + np.arange(120) % 3, "offset": offset}
    model = GroupSparseRegressor(2, selection="bic").fit(data["X"], data["both"] + offset, **known)
    same = known | {"sample_weight": known["sample_weight"][:, None]}
    report = FitReport.from_model(model, data["X"], data["both"] + offset, **same, nested=0)
    (score,) = (one for one in report.scores if "training rows" in one.label)
    assert np.mean([part.r2 for part in report.responses]) == pytest.approx(score.value)


def test_responses_keep_their_names(data, tmp_path):
    table = pd.DataFrame(data["X"][:, :4], columns=list("abcd"))
    both = pd.DataFrame(data["both"], columns=["weight", "height"])
    model = GroupSparseRegressor(terms="auto", selection="bic").fit(table, both)
    assert list(model.terms_.filter(like="strength")) == ["strength", "strength_weight", "strength_height"]
    assert "strength_height" in str(model.summary())
    covey.save(model, tmp_path / "model.skops")
    again = covey.load(tmp_path / "model.skops")
    assert list(again.coefficients().columns[2:]) == ["coefficient_weight", "coefficient_height"]
    assert [part.name for part in FitReport.from_model(again, table, data["both"], nested=0).responses] == list(both)
    assert not hasattr(model.fit(table, data["both"]), "response_names_")  # of the earlier fit


def test_each_response_has_its_held_out_score(data):
    both = pd.DataFrame(data["both"], columns=["weight", "height"])
    model = GroupSparseRegressor(2, selection="bic").fit(data["X"], both)
    nested = nested_score(model, data["X"], both, 3, references=False)
    for k, name in enumerate(both):
        squares = (data["both"][:, k] - nested.predictions[:, k]) ** 2
        null = np.concatenate(
            [(data["both"][test, k] - data["both"][train, k].mean()) ** 2 for train, test in nested.splits]
        )
        assert nested.responses[name].mean == pytest.approx(1 - squares.sum() / null.sum())
    assert f"Each response: weight {nested.responses['weight'].mean:.3f}" in str(nested)
    page = render(FitReport.from_model(model, data["X"], both, nested=nested))
    assert f"held-out R² {nested.responses['height'].mean:.3f} ±" in page
    assert "in standard deviations of the responses" in page
    assert "Show the norm" not in page


def test_effects_on_several_responses_share_a_scale(data):
    table = pd.DataFrame(data["X"][:, :2], columns=["a", "b"])
    Y = pd.DataFrame(data["both"] * [1.0, 100.0], columns=["one", "hundred"])
    model = GroupSparseRegressor(terms="auto", selection="bic").fit(table, Y)
    page = FitReport.from_model(model, table, Y, nested=0)
    effect = page.terms.effects[0]
    raw = model.effect(effect.name, n=len(effect.effect)).effect
    np.testing.assert_allclose(effect.effect, raw / Y.std(ddof=0).to_numpy())
    assert "in standard deviations of the responses" in render(page)
    drawn = [line.get_ydata() for line in model.plot_terms(["a"]).axes_[0].lines]
    expected = model.effect("a").effect / Y.std(ddof=0).to_numpy()
    assert any(len(line) == len(expected) and np.allclose(line, expected[:, 1]) for line in drawn)


def test_the_held_out_score_keeps_labelled_rows_together(data):
    model, labels = GroupSparseRegressor(2, selection="bic").fit(data["X"], data["eta"]), np.arange(120) // 4
    report = FitReport.from_model(model, data["X"], data["eta"], split_groups=labels, nested=3)
    expected = nested_score(model, data["X"], data["eta"], 3, split_groups=labels)
    assert (report.nested.mean, report.nested.margin) == (expected.mean, expected.margin)


def test_no_held_out_rows_is_said(data):
    labels = np.where(np.arange(120) == 0, "once", data["two"])
    page = page_of(GroupSparseClassifier(2, selection="bic"), data["X"], labels, nested=3)
    assert "There is no held-out score: A class with a single row" in page
    assert "calibration-plot" not in page


def test_several_classes_of_hostile_names(data):
    model = GroupSparseClassifier(2, selection=Size(2), always=[5]).fit(data["X"], data["three"])
    report = FitReport.from_model(model, data["X"], data["three"], nested=2, target=HOSTILE[0])
    page = render(report)
    assert len(page) < 100_000
    assert "<img" not in page
    assert page.count("</script>") == 2
    for name in HOSTILE:
        assert page.count(f'<th scope="col"><bdi>{escape(name)}</bdi></th>') >= 2  # the table of mistakes, and ratios
    assert "<b>2 of 5 groups</b>, plus <bdi>5</bdi>" in page
    counts = re.findall(r'<td class="(?:hit|miss)" style="--share:[\d.]+">(\d+)</td>', page)
    assert sum(map(int, counts)) == 120
    ratios = [float(np.exp(np.float64(np.float32(value)))) for value in model.coef_[:, 0]]
    cells = "".join(f"<td>{shown(value, 4)}</td>" for value in ratios)
    assert f'<th scope="row"><bdi>0</bdi></th>{cells}</tr>' in page


def test_ordered_classes(data):
    labels = ["low <b>", "middle", "high"]
    codes = np.digitize(data["eta"][:80], [-1.0, 1.0])
    X, y = data["X"][:80, :6], np.array(labels)[codes]
    model = GroupSparseClassifier(2, loss=Ordinal(order=labels), selection=Size(1)).fit(X, y)
    report = FitReport.from_model(model, X, y, nested=2)
    page = render(report)
    assert "odds of a higher class (" in page
    assert "moves the prediction by" in page
    assert "on the scale of log odds of a higher class (<bdi>" in page
    assert "<bdi>low &lt;b&gt;</bdi> &lt; <bdi>middle</bdi> &lt; <bdi>high</bdi>" in page
    assert "rows misclassified" in page
    assert "Held-out class predictions" in page
    left = -np.log(model.predict_proba(X)[np.arange(80), codes]).sum()
    shares = np.bincount(codes) / 80
    (score,) = (one for one in report.scores if "training rows" in one.label)
    assert score.value == pytest.approx(1 + left / np.log(shares[codes]).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (MultiQuantile([0.2, 0.8]), ["predictions are quantiles: 0.2, 0.8 of the rows lie below", "quantile 0.8"]),
        ("negative-binomial", ["the variance is mean +"]),
        ("tweedie", ["mean^1"]),
    ],
    ids=str,
)
def test_a_report_says_what_was_estimated(data, loss, words):
    page = page_of(GroupSparseRegressor(2, loss=loss, selection="bic"), data["X"], data["count"], nested=2)
    assert [text for text in words if text not in page] == []
    assert ("The ridge is scikit-learn's" in page) == ("<bdi>ridge</bdi>" in page) == isinstance(loss, str)


def test_many_responses_keep_the_page_small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 90))
    Y = X[:, :3] @ rng.standard_normal((3, 30)) + 0.1 * rng.standard_normal((60, 30))
    report = FitReport.from_model(GroupSparseRegressor(3, selection=Size(5)).fit(X, Y), X, Y, nested=0)
    assert all(group.columns == () for group in report.frames.groups)
    assert len(render(report)) < 200_000


def test_units_of_several_responses_are_not_mixed(data):
    """A response in other units changes its own strengths only, and not which group is the strongest."""
    units = np.array([100.0, 0.01])
    one, other = (GroupSparseRegressor(2, selection="bic").fit(data["X"], data["both"] * by) for by in (1, units))
    np.testing.assert_allclose(other.group_strengths_, one.group_strengths_, rtol=1e-6)
    np.testing.assert_allclose(other.response_strengths_, one.response_strengths_ * units[:, None], rtol=1e-6)
    # the path too
    np.testing.assert_allclose(other.path_.strengths.toarray(), one.path_.strengths.toarray(), rtol=1e-6, atol=1e-9)
    # the strength of a group for a response is the standard deviation of what it adds to it
    name = one.selected_groups_[0]
    added = one.partial_effect(data["X"], name).std(axis=0)
    np.testing.assert_allclose(one.response_strengths_[:, one.groups_.position(name)], added, rtol=1e-6)
    table = one.group_table()
    assert "norm" not in table
    places = [one.groups_.position(group) for group in one.selected_groups_]
    assert table["strength_1"].tolist() == one.response_strengths_[1, places].tolist()
