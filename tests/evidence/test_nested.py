"""What a nested score takes, refuses and says."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, nested_score, survival
from covey.evidence.nested_result import MethodScore, NestedScore
from covey.evidence.scoring import row_margin
from covey.losses import MultiQuantile, Ordinal, Quantile
from covey.selection import Folds

RNG = np.random.default_rng(1)
X = RNG.standard_normal((80, 12))
Y = 2 * X[:, :3].sum(axis=1) + RNG.standard_normal(80)
MODEL = GroupSparseRegressor(3, selection=3)


def test_choosing_is_repeated_without_the_test_rows():
    """A row that is far off changes the models of all folds but that in which it is tested."""
    base = nested_score(MODEL, X, Y, 4, references=False)
    (fold,) = (k for k, (_, test) in enumerate(base.splits) if 7 in test)
    wild = Y.copy()
    wild[7] += 100
    other = nested_score(MODEL, X, wild, 4, references=False)
    for k, (_, test) in enumerate(base.splits):
        same = np.array_equal(base.predictions[test], other.predictions[test])
        assert same == (k == fold)


def test_kinds_of_tables_and_jobs_agree():
    weight = 1.0 + np.arange(80) % 2
    expected = nested_score(MODEL, X, Y, 3, sample_weight=weight)
    for kind in (pd.DataFrame(X), sp.csr_array(X), X.tolist()):
        result = nested_score(MODEL, kind, Y, 3, sample_weight=weight)
        assert result.mean == pytest.approx(expected.mean, rel=1e-6)
        assert result.references["ridge"].mean == pytest.approx(expected.references["ridge"].mean, rel=1e-3)
    with parallel_config("threading"):
        jobs = nested_score(MODEL, X, Y, 3, sample_weight=weight, n_jobs=2)
    np.testing.assert_array_equal(jobs.folds, expected.folds)


def test_a_pipeline_is_fitted_within_each_fold():
    far = X * 10.0 ** np.arange(12) + 5
    scaled = nested_score(make_pipeline(StandardScaler(), MODEL), far, Y, 3)
    plain = nested_score(MODEL, X, Y, 3)
    np.testing.assert_allclose(scaled.folds, plain.folds, rtol=1e-6)
    assert scaled.references["lasso"].mean == pytest.approx(plain.references["lasso"].mean, abs=1e-6)


def test_several_responses_do_not_depend_on_units():
    Z = np.column_stack([Y, X[:, 3] + RNG.standard_normal(80)])
    one = nested_score(MODEL, X, Z, 3)
    other = nested_score(MODEL, X, Z * [1.0, 1000.0], 3)
    np.testing.assert_allclose(one.folds, other.folds, rtol=1e-6)
    assert one.references["lasso"].what == "MultiTaskLassoCV"
    assert one.references["lasso"].mean == pytest.approx(other.references["lasso"].mean, rel=1e-3)


@pytest.mark.parametrize("loss", ["huber", "gamma", "binomial"])
def test_every_loss_says_what_it_is_compared_with(loss):
    y = {"huber": Y, "gamma": np.exp(Y / 3), "binomial": 1 / (1 + np.exp(-Y))}[loss]
    result = nested_score(GroupSparseRegressor(3, loss=loss, selection=Folds(3, deals=1)), X, y, 2)
    assert result.mean > 0.3
    assert result.notes
    assert ("lasso" in result.references) == (loss == "huber")


def test_references_of_your_own():
    result = nested_score(MODEL, X, Y, 3, references={"least squares": LinearRegression()})
    assert list(result.references) == ["null", "lasso", "ridge", "least squares"]
    assert 0.5 < result.references["least squares"].mean < 1
    assert result.table().loc["least squares", "model_above"] == pytest.approx(
        result.mean - result.references["least squares"].mean
    )


class Concordant(BaseEstimator):
    """An estimator whose response is no number: it scores itself."""

    score_name, null_score = "concordance", 0.5

    def fit(self, X, y):
        self.selected_groups_ = ["a"]
        return self

    def score(self, X, y):
        return float(np.mean(y["time"] > 1))


def test_an_estimator_may_score_itself():
    y = np.array([(True, t) for t in np.linspace(0, 3, 80)], dtype=[("event", bool), ("time", float)])
    result = nested_score(Concordant(), X, y, 4)
    assert result.measure == "concordance"
    np.testing.assert_allclose(result.folds, [np.mean(y["time"][test] > 1) for _, test in result.splits])
    assert result.references["null"].mean == 0.5
    assert result.frequencies == {"a": 4}
    assert "concordance on rows that took no part" in str(result)


def of(mean, other, error, name="lasso"):
    one = MethodScore(other, 0.05, np.full(5, other), mean - other, error)
    null = MethodScore(0.0, 0.0, np.zeros(5), mean, 0.05)
    return NestedScore(mean, 0.05, np.full(5, mean), {"null": null, name: one}, "R^2", [])


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (of(0.5, 0.4, 0.02), "in groups helps: R^2 is 0.100 ± 0.020 above that of the lasso"),
        (of(0.5, 0.4, 0.02), "which leaves 1.2 times the error"),
        (
            of(0.5, 0.49, 0.02),
            "A lasso of single columns predicts as well (the difference is 0.010 ± 0.020)",
        ),
        (of(0.4, 0.5, 0.02), "The lasso, which does not know the groups, predicts better: its R^2 is higher by 0.100"),
        (of(0.03, -0.1, 0.02), "no better than the null model"),
        (of(0.5, 0.4, 0.02, "trees"), "The model predicts best: R^2 is 0.100 ± 0.020 above that of 'trees', the best"),
        (of(0.5, 0.49, 0.02, "trees"), "'trees' predicts as well (the difference is 0.010 ± 0.020)."),
        (of(0.4, 0.5, 0.02, "trees"), "'trees' predicts better: its R^2 is higher by 0.100"),
    ],
    ids=["better", "error", "alike", "worse", "nothing", "best", "as well", "your own"],
)
def test_the_verdict(result, words):
    assert words in result.verdict
    assert result.verdict in str(result)


def test_plain_values_and_text():
    result = nested_score(MODEL, X, Y, 3)
    values = result.as_dict()
    assert values["folds"] == result.folds.tolist()
    assert values["references"]["ridge"]["what"] == "RidgeCV"
    lines = str(result).splitlines()
    assert lines[0].startswith("R^2 on rows that took no part in choosing or fitting the model (3 outer folds;")
    assert len(lines) == 6
    assert result.frequencies[0] == 3


def test_survival_times_are_scored_by_concordance():
    rng = np.random.default_rng(0)
    death, lost = rng.exponential(np.exp(-X[:, :3].sum(axis=1))), rng.exponential(3.0, 80)
    y = survival(np.minimum(death, lost), death <= lost)
    model = GroupSparseCox(3, selection="bic")
    result = nested_score(model, X, y, 3)
    assert (result.measure, result.references["null"].mean) == ("concordance", 0.5)
    frame = pd.DataFrame({"time": y["time"], "event": y["event"]})
    np.testing.assert_allclose(nested_score(model, X, frame, 3).folds, result.folds)
    np.testing.assert_allclose(nested_score(model, X, (y["time"], y["event"]), 3).folds, result.folds)


def test_the_verdict_on_terms_speaks_of_terms():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(80), "b": rng.choice(["u", "v"], 80)})
    y = table["a"] + 0.5 * rng.standard_normal(80)
    said = nested_score(GroupSparseRegressor(terms="auto", selection="bic"), table, y).verdict
    assert "terms" in said
    assert "groups" not in said


HALVES = [(np.arange(40, 80), np.arange(40)), (np.arange(40), np.arange(40, 80))]


def test_a_weight_of_two_is_the_row_twice_in_the_score():
    both = np.r_[np.arange(40), np.arange(80, 120)]
    weight = np.where(np.arange(80) < 40, 2.0, 1.0)
    model = GroupSparseRegressor(3, selection="bic")
    one = nested_score(model, X, Y, HALVES, sample_weight=weight, references=False)
    twice = [(np.arange(40, 80), both), (both, np.arange(40, 80))]
    two = nested_score(model, np.r_[X, X[:40]], np.r_[Y, Y[:40]], twice, references=False)
    np.testing.assert_allclose(one.folds, two.folds, rtol=1e-7)
    assert one.mean == pytest.approx(two.mean, rel=1e-7)


def test_folds_count_rows_by_weight_as_fit_does():
    weight = 2 + np.arange(80) % 2  # five rows for two
    model = GroupSparseRegressor(3, selection="bic")
    result = nested_score(model, X, Y, 3, sample_weight=weight, references=False, return_estimator=True)
    for (train, _), fitted in zip(result.splits, result.estimators, strict=True):
        by_hand = clone(model).fit(X[train], Y[train], sample_weight=weight[train])
        np.testing.assert_allclose(fitted.candidates_["bic"], by_hand.candidates_["bic"])
    # one weight for all rows counts them, too
    result = nested_score(model, X, Y, 3, sample_weight=2.5, references=False, return_estimator=True)
    by_hand = clone(model).fit(X[result.splits[0][0]], Y[result.splits[0][0]], sample_weight=2.5)
    np.testing.assert_allclose(result.estimators[0].candidates_["bic"], by_hand.candidates_["bic"])


def test_rows_tested_more_often_count_once():
    """The score is that of the mean deviance of every row; one fold is enough for an interval."""
    base = nested_score(MODEL, X, Y, HALVES, references=False)
    more = nested_score(MODEL, X, Y, [*HALVES, HALVES[0], HALVES[0]], references=False)
    assert more.mean == pytest.approx(base.mean)
    once = nested_score(MODEL, X, Y, [(np.arange(80) >= 40, np.arange(80) < 40)], references=False)
    assert once.mean == nested_score(MODEL, X, Y, HALVES[:1], references=False).mean
    assert once.interval[0] < once.mean < once.interval[1]
    assert np.isnan(once.predictions[40:]).all()


def margin(loss, fold, units=None, **options):
    null = np.ones(loss.size)
    return row_margin(loss, null, null, fold, np.arange(loss.size) if units is None else units, ratio=0.25, **options)


def test_the_margin_of_independent_rows():
    """1.645 times the standard error of a mean with Nadeau and Bengio's correction, if nothing else is the matter."""
    fold, loss = np.arange(4000) % 5, RNG.standard_normal(4000)
    loss -= (np.bincount(fold, loss) / 800)[fold]  # no fold is better than another
    plain = loss.std(ddof=1) / np.sqrt(4000)
    assert margin(loss, fold) == pytest.approx(1.645 * plain * 1.5, rel=1e-3)
    assert margin(loss, fold, beside=loss) == 0


def test_the_margin_is_wider_if_folds_differ_or_few_rows_decide():
    fold, loss = np.arange(100) % 5, RNG.standard_normal(100)
    assert margin(loss + fold, fold) > 2 * margin(loss, fold)
    tail = np.where(np.arange(100) < 3, 30.0, loss)
    assert margin(tail, 0 * fold) > 1.3 * 1.5 * tail.std(ddof=1) / 10


def test_the_margin_does_not_depend_on_how_often_rows_are_tested():
    fold, rows, loss = np.arange(60) % 4, np.arange(60), RNG.standard_normal(60)
    tests = (np.r_[loss, loss], np.ones(120), np.full(120, 0.5), np.r_[fold, fold + 4], np.r_[rows, rows])
    assert row_margin(*tests, ratio=0.25, n_deals=2.0) == pytest.approx(margin(loss, fold))


def test_a_number_of_inner_folds_keeps_labelled_rows_together():
    labels = np.repeat(np.arange(20), 4)
    model = GroupSparseRegressor(3, selection=4)
    result = nested_score(model, X, Y, 4, split_groups=labels, references=False)
    same = nested_score(
        clone(model).set_params(selection=GroupKFold(4)), X, Y, 4, split_groups=labels, references=False
    )
    np.testing.assert_array_equal(result.folds, same.folds)
    with pytest.raises(ValueError, match="does not keep rows of one split_groups label together"):
        nested_score(GroupSparseRegressor(3, selection="holdout"), X, Y, 4, split_groups=labels)
    with pytest.raises(ValueError, match="the same label in every row"):
        model.fit(X, Y, split_groups=np.zeros(80))
    assert len(model.fit(X, Y, split_groups=np.arange(80) % 3).fold_frequencies_) == 4
    assert model.n_splits_ == 3  # as many as there are labels


class ByResponse:
    """Folds of neighbours in the response."""

    def split(self, X, y=None, groups=None):
        rows = np.argsort(y).reshape(4, -1)
        return [(np.delete(rows, k, axis=0).ravel(), rows[k]) for k in range(4)]


def test_a_splitter_of_outer_folds_gets_the_response():
    result = nested_score(GroupSparseRegressor(3, selection="ebic"), X, Y, ByResponse(), references=False)
    for (_, test), (_, expected) in zip(result.splits, ByResponse().split(X, Y), strict=True):
        np.testing.assert_array_equal(np.sort(test), np.sort(expected))


def test_labelled_rows_stay_together_and_are_one_observation():
    labels = np.repeat(np.arange(20), 4)
    model = GroupSparseRegressor(3, selection=GroupKFold(3))
    for train, test in nested_score(model, X, Y, 4, split_groups=labels, references=False).splits:
        assert not set(labels[train]) & set(labels[test])
    # the same as if each row of a label had their mean
    delta, fold = RNG.standard_normal(80), np.arange(80) // 16
    by_label = np.repeat(np.bincount(labels, delta) / 4, 4)
    assert margin(delta, fold, labels) == pytest.approx(margin(by_label, fold, labels))


@pytest.mark.parametrize(
    ("loss", "shift", "words"),
    [
        ("poisson", "exposure", "one rate for all rows"),
        ("poisson", None, "the mean of the training rows"),
        (MultiQuantile([0.2, 0.8]), None, "the quantiles of the training rows"),
        (Quantile(0.8), None, "the quantile of the training rows"),
        ("huber", None, "the robust centre of the training rows"),
        ("squared", "column", "the offset, plus the best constant of the training rows"),
    ],
)
def test_the_null_model_is_named_for_what_it_is(loss, shift, words):
    offset = {"exposure": np.log(np.random.default_rng(0).uniform(0.5, 3, 80)), "column": X[:, 5], None: None}[shift]
    y = Y if loss == "squared" else np.random.default_rng(1).poisson(np.exp(0.3 * Y))
    model = GroupSparseRegressor(3, loss=loss, selection="bic")
    result = nested_score(model, X, y, 2, offset=offset, references=False)
    assert result.references["null"].what.startswith(words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cv": 1}, "at least 2"),
        ({"cv": 100}, "too few for 100 folds"),
        ({"cv": [(np.arange(80), np.arange(5))]}, "tests rows that it also trains on"),
        ({"cv": [(np.arange(79), [-1])]}, "positions from 0 to 79"),
        ({"cv": [(np.arange(79), [80])]}, "positions from 0 to 79"),
        ({"split_groups": [None, *"ab" * 39, "a"]}, "split_groups has missing labels, first in row 0"),
        ({"offset": 1.0}, r"offset has shape \(\), but X has 80 rows"),
        ({"references": ["ridge"]}, "True, False or a dictionary of estimators"),
        ({"references": {"trees": 3}}, "True, False or a dictionary of estimators"),
        ({"model": GroupSparseRegressor}, "model must be an estimator"),
        ({"y": np.where(Y > 0, "a", "b")}, "y holds text.*covey.GroupSparseClassifier"),
        ({"offset": np.zeros(80), "scoring": "r2"}, "scoring= cannot be combined with an offset"),
        ({"split_groups": np.arange(80) % 3}, "3 different labels"),
        ({"y": Y[:-1]}, "y has 79 entries, but X has 80 rows"),
        ({"model": GroupSparseRegressor(3, selection=HALVES)}, "lists rows of the whole table"),
        ({"model": GroupSparseClassifier(3), "y": np.r_[["once"], np.where(Y[1:] > 0, "a", "b")]}, "single row"),
    ],
)
def test_refused(options, words):
    with pytest.raises(ValueError, match=words):
        nested_score(**{"model": MODEL, "X": X, "y": Y} | options)


def test_a_fold_whose_training_rows_lack_a_class_is_scored_like_every_other():
    """Neither the null model nor the model knows the class: both give it a probability of zero, which is bounded."""
    rng = np.random.default_rng(0)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0, "a", "b").astype(object)
    y[60:] = "z"
    splits = [(np.arange(60), np.arange(60, 80)), (np.arange(20, 80), np.arange(20))]
    result = nested_score(GroupSparseClassifier(3, selection="bic"), X, y, splits, references=False)
    shares = np.array([np.mean(y[20:] == label) for label in "abz"])
    p, true = result.predictions[:20], ["abz".index(label) for label in y[:20]]
    null, left = -np.log(shares[true]).sum(), -np.log(p[np.arange(20), true]).sum()
    assert result.folds[1] == pytest.approx(1 - left / null)
    assert result.folds[0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(result.predictions[60:, 2], 0)


def test_ordered_classes_have_one_offset():
    """The null model has the thresholds that are best at the offset; classes are named in another order than theirs."""
    rng = np.random.default_rng(0)
    offset = 3 * X[:, 5]
    codes = np.digitize(offset + X[:, 0] + rng.logistic(size=80), [-1.5, 1.5])
    y = pd.Series(pd.Categorical.from_codes(codes, ["low", "mid", "high"], ordered=True))
    model = GroupSparseClassifier(3, loss="ordinal", selection="bic")
    result = nested_score(model, X, y, 2, offset=offset, references=False)
    for (train, test), score in zip(result.splits, result.folds, strict=True):
        p = [np.log(result.predictions[i, [1, 2, 0][codes[i]]]) for i in test]
        alone = Ordinal().with_thresholds(codes[train], offset[train], np.ones(len(train)))
        null = np.log(alone.probabilities(offset[test, None])[np.arange(len(test)), codes[test]])
        assert score == pytest.approx(1 - np.sum(p) / null.sum(), rel=1e-9)


def test_references_of_your_own_beside_an_estimator_that_scores_itself():
    rng = np.random.default_rng(0)
    y = survival(rng.exponential(np.exp(-X[:, :3].sum(axis=1))), np.ones(80, dtype=bool))
    weight = 1.0 + np.arange(80) % 2
    other = GroupSparseCox(1, selection="bic")
    model = GroupSparseCox(3, selection=3, always=[2], within="columns")
    result = nested_score(model, X, y, 3, sample_weight=weight, references={"single columns": other})
    assert list(result.references) == ["null", "always in", "single columns"]
    for (train, test), score in zip(result.splits, result.references["single columns"].folds, strict=True):
        alone = clone(other).fit(X[train], y[train], sample_weight=weight[train] / weight.mean())
        assert score == pytest.approx(alone.score(X[test], y[test], sample_weight=weight[test]))
