"""Scores of class probabilities: constructed truths, weights as repeated rows, and what is said of them."""

from html import unescape

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor, nested_score
from covey.estimators.classifier import for_odds_of
from covey.evidence import ClassScores
from covey.report import FitReport, render


def two(p, positive=None, weight=None, seed=0, log_odds=lambda eta: eta):
    """Classes drawn with probabilities p, and predictions whose log odds are transformed."""
    codes = (np.random.default_rng(seed).random(p.size) < p).astype(int)
    said = 1 / (1 + np.exp(-log_odds(np.log(p / (1 - p)))))
    return ClassScores.of(["no", "yes"], codes, np.column_stack([1 - said, said]), weight, positive)


P = 1 / (1 + np.exp(-np.random.default_rng(1).normal(-2, 1, 20_000)))


@pytest.mark.parametrize(("stretch", "shift"), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0), (1.0, 1.0)])
def test_calibration_finds_by_how_much_log_odds_are_wrong(stretch, shift):
    line = two(P, log_odds=lambda eta: stretch * eta - shift).table.iloc[0]
    assert line["slope"] == pytest.approx(1 / stretch, rel=0.08)  # three standard errors
    assert line["slope"] * stretch == pytest.approx(two(P).table["slope"].iloc[0], rel=1e-5)
    if stretch == 1:
        assert line["intercept"] == pytest.approx(shift, abs=0.05)


def test_useless_and_perfect_probabilities():
    chance = ClassScores.of(["no", "yes"], np.arange(1000) % 10 == 0, np.tile([0.9, 0.1], (1000, 1)))
    line = chance.table.iloc[0]
    assert line["base_rate"] == pytest.approx(0.1)
    assert line["auc"] == 0.5
    assert line["average_precision"] == pytest.approx(0.1)
    assert line["brier"] == pytest.approx(0.09)
    assert line["lift"] == pytest.approx(1.0)
    assert np.isnan(line["slope"])  # a constant has none
    assert line["intercept"] == pytest.approx(0.0, abs=1e-9)
    codes = (np.arange(1000) % 10 == 0).astype(int)
    perfect = ClassScores.of(["no", "yes"], codes, np.eye(2)[codes])
    line = perfect.table.iloc[0]
    assert (line["auc"], line["average_precision"], line["brier"], line["lift"]) == (1, 1, 0, 10)
    assert np.isnan(line["slope"])  # infinite
    assert "Always saying no is right in 90.0%" in perfect.remark
    assert "about as often" not in perfect.remark


def test_the_other_class_mirrors_the_scores():
    yes, no = two(P).table.iloc[0], two(P, positive="no").table.iloc[0]
    assert no["base_rate"] == pytest.approx(1 - yes["base_rate"])
    for name in ("auc", "brier", "slope"):
        assert no[name] == pytest.approx(yes[name], rel=1e-5)
    assert no["intercept"] == pytest.approx(-yes["intercept"], abs=1e-6)


def test_thresholds_count_the_rows():
    scores = two(P)
    table, p, codes = scores.thresholds, scores.probabilities[:, 1], scores.codes
    assert 0.5 in table["threshold"].tolist()
    for line in table.to_dict("records"):
        above = p >= line["threshold"]
        assert line["flagged"] == pytest.approx(above.mean())
        assert line["precision"] == pytest.approx(codes[above].mean())
        assert line["recall"] == pytest.approx(above[codes == 1].mean())
        assert line["specificity"] == pytest.approx(1 - above[codes == 0].mean())
        assert line["lift"] == pytest.approx(codes[above].mean() / codes.mean())
    assert table.loc[np.isclose(table["flagged"], 0.1), "lift"].iloc[0] == pytest.approx(scores.table["lift"].iloc[0])


def test_a_weight_of_two_is_the_row_twice():
    weight = 1.0 + np.arange(400) % 2
    rows = np.repeat(np.arange(400), weight.astype(int))
    one = two(P[:400], weight=weight)
    twice = ClassScores.of(one.classes, one.codes[rows], one.probabilities[rows])
    pd.testing.assert_frame_equal(one.table, twice.table, rtol=1e-6)
    pd.testing.assert_frame_equal(one.thresholds, twice.thresholds)
    assert one.accuracy == pytest.approx(twice.accuracy)
    X = np.random.default_rng(0).standard_normal((60, 2))
    y, some = np.where(X[:, 0] > 0, "a", "b"), np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    scored = nested_score(GroupSparseClassifier(selection="bic"), X, y, 2, sample_weight=some, references=False)
    assert scored.class_scores.confusion().sum() == 40  # rows of weight zero are no rows
    assert one.remark == twice.remark


def test_more_than_two_classes_have_a_line_each():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 2, 3], 3000)
    codes = (rng.random((3000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    every = ClassScores.of(["a", "b", "c"], codes, p)
    assert every.table.index.tolist() == ["a", "b", "c"]
    assert every.thresholds.empty
    assert every.table["slope"].tolist() == pytest.approx([1, 1, 1], abs=0.15)
    chosen = ClassScores.of(["a", "b", "c"], codes, p, positive="b")
    pd.testing.assert_frame_equal(chosen.table, every.table.loc[["b"]])
    assert len(chosen.thresholds) > 5


@pytest.fixture(scope="module")
def rare():
    """135 of 2000 rows, of which the columns say a little."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    late = np.argsort(-(X[:, 0] + rng.logistic(size=2000)))[:135]
    y = np.full(2000, "ok", dtype=object)
    y[late] = "default"
    model = GroupSparseClassifier(2, selection="bic").fit(X, y.astype(str))
    return X, y.astype(str), model


def test_the_commonest_class_is_said_to_do_as_well(rare):
    X, y, model = rare
    nested = nested_score(model, X, y, 3, references=False, positive="default", return_estimator=True)
    text = str(nested)
    assert "Held-out probabilities of default, 6.8% of the rows" in text
    assert "Always saying ok is right in 93.2% of the rows, and the model's most likely class is right about as" in text
    assert "rarer class" not in text
    common = nested_score(model, X, y, 3, references=False)
    assert "scores of ok; for those of default, the rarer class, say positive='default'." in str(common)
    assert 0.6 < nested.class_scores.table["auc"].iloc[0] < 0.9
    page = unescape(render(FitReport.from_model(model, X, y, nested=common, command="covey fit table.csv -t y")))
    assert page.count("the rarer class, say --positive default.") == 1
    report = FitReport.from_model(model, X, y, nested=nested)
    page = render(report)
    assert "Always saying “ok” is right as often" in page
    assert "The positive class is <b><bdi>default</bdi></b>" in page
    assert "odds of <bdi>default</bdi> against <bdi>ok</bdi>" in page
    # one rounding: the accuracy in per cent, in the figures at the top and in the sentences
    accuracy = f"{nested.class_scores.accuracy:.1%}"
    assert f"<span>{accuracy}</span>" in page
    assert f"right about as often ({accuracy})" in page
    assert f"<span>{nested.mean:.3f}</span>" in page


def test_a_model_written_for_the_other_class_is_the_same_model(rare):
    X, _, model = rare
    turned = for_odds_of(model, "default")
    assert turned.classes_.tolist() == ["ok", "default"]
    np.testing.assert_array_equal(turned.coef_, -model.coef_)
    np.testing.assert_allclose(turned.predict_proba(X)[:, 1], model.predict_proba(X)[:, 0])
    np.testing.assert_array_equal(turned.predict(X), model.predict(X))
    np.testing.assert_array_equal(turned.path_.at(np.inf), -model.path_.at(np.inf))
    assert for_odds_of(model, "ok") is model


def test_what_positive_cannot_be(rare):
    X, y, model = rare
    with pytest.raises(ValueError, match="positive must be one of the classes 'default', 'ok', not 'late'"):
        nested_score(model, X, y, 2, positive="late")
    with pytest.raises(ValueError, match="positive= names a class"):
        nested_score(GroupSparseRegressor(2), X, X[:, 0], 2, positive="late")


def test_weights_of_classes_count_in_the_score_and_are_said_to_spoil_probabilities(rare):
    X, y, _ = rare
    model = GroupSparseClassifier(2, selection="bic", class_weight="balanced")
    nested = nested_score(model, X, y, 2, positive="default")
    assert "poor on purpose" in str(nested)
    assert not nested_score(model, X, y, 2, scoring="roc_auc", references=False).notes
    assert nested.class_scores.table["intercept"].iloc[0] < -2  # probabilities of the rare class are far too high
    # by hand: every class has half of the weight, in the model, the null model and the score
    factor = np.where(y == "default", 1000 / 135, 1000 / 1865)
    p = np.clip(nested.predictions, 1e-12, 1 - 1e-12)
    loss = -np.where(y == "ok", np.log(p), np.log(1 - p))
    assert nested.mean == pytest.approx(1 - factor @ loss / (2000 * np.log(2)), abs=2e-3)
    assert nested.mean == pytest.approx(nested.references["ridge"].mean, abs=0.05)
    report = FitReport.from_model(model.fit(X, y), X, y, nested=nested)
    on_training = next(one.value for one in report.scores if "training" in one.label)
    assert on_training == pytest.approx(nested.mean, abs=0.1)
    assert 1 - report.along.deviance[-1] == pytest.approx(on_training)


@pytest.mark.parametrize(
    ("classes", "positive"),
    [
        (["Ja", "Nein"], "Ja"), (["case", "control"], "case"), (["no", "yes"], "yes"), (["0", "1"], "1"),
        (["default", "no default"], "default"),
        # an order that somebody gave counts, and of other names the second is positive
        (["yes", "no"], "no"), (["cat", "dog"], "dog"),
    ],
)  # fmt: skip
def test_of_two_classes_the_affirmative_one_is_positive(classes, positive):
    assert ClassScores.of(np.array(classes), [0, 1, 1], np.full((3, 2), 0.5)).positive == positive


def test_a_summary_says_whose_odds_coefficients_describe_and_names_the_order_of_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    order = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(90), [-0.5, 0.5])
    two = GroupSparseClassifier().fit(X, np.where(order > 0, "Ja", "Nein"))
    assert "the odds of Nein against Ja" in str(two.summary())
    three = GroupSparseClassifier().fit(X, np.array(["low", "medium", "high"])[order])
    assert "Ordinal(order=['low', 'medium', 'high'])" in str(three.summary())


def test_a_model_without_variables_has_nothing_to_act_on():
    codes = np.repeat([0, 1], [190, 10])
    p = np.resize([0.049, 0.051], 200)  # the base rates of two folds
    scores = ClassScores.of(np.array(["no", "yes"]), codes, np.column_stack([1 - p, p]))
    assert scores.is_flat
    assert scores.thresholds.empty
    assert "Every row has about the same probabilities, so no is always the most likely class." in str(scores)
    assert "calibration" not in str(scores)
    assert "Judge this model" not in str(scores)
