"""Which rows score the models: parts of the rows, from any way to split them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from covey import GroupSparseRegressor, limit_path
from covey.designs import as_design
from covey.losses import get_loss
from covey.search.select import read_selection
from covey.search.splits import balanced_folds
from covey.selection import Discrepancy, Folds, HoldOut, InformationCriterion, Size


def response(n=53, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


# ------------------------------------------------------------------ folds along the sorted response


def test_neighbours_go_to_different_folds():
    y = response(55)
    fold = balanced_folds(y, np.ones(55), k=5)
    assert np.bincount(fold).tolist() == [11] * 5
    for block in fold[np.argsort(y)].reshape(11, 5):
        assert sorted(block) == [0, 1, 2, 3, 4]


def test_repeated_rows_stay_together_and_count_as_weights():
    y, times = response(), np.random.default_rng(2).integers(1, 4, 53)
    fold = balanced_folds(y, times.astype(float), k=5)
    np.testing.assert_array_equal(
        balanced_folds(np.repeat(y, times), np.ones(times.sum()), k=5), np.repeat(fold, times)
    )
    np.testing.assert_array_equal(fold, balanced_folds(y, np.ones(53), k=5))


def test_rows_of_weight_zero_are_in_no_fold():
    y = response()
    weight = np.where(np.arange(53) % 4 == 0, 0.0, 1.0)
    fold = balanced_folds(y, weight, k=5)
    assert (fold[weight == 0] == -1).all()
    np.testing.assert_array_equal(fold[weight > 0], balanced_folds(y[weight > 0], np.ones(39), k=5))


@pytest.mark.parametrize("n_values", [2, 8, 20])
def test_rows_with_equal_responses_go_to_different_folds(n_values):
    """A fold must not have all rows of a value: the training rows would have been chosen by their response."""
    rng = np.random.default_rng(n_values)
    X, y = rng.standard_normal((100, 3)), rng.permutation(np.arange(100) % n_values).astype(float)
    for deal in (0, 1):
        fold = Folds(5).parts(as_design(X), y, np.ones(100), deal=deal).labels
        for value in range(n_values):
            counts = np.bincount(fold[y == value], minlength=5)
            assert counts.min() >= 1
            assert counts.max() - counts.min() <= 2  # rounds of five neighbours may begin with another value


def test_no_more_folds_than_distinct_rows():
    assert np.unique(balanced_folds(np.array([3.0, 1.0, 2.0]), np.ones(3), k=5)).tolist() == [0, 1, 2]


# ------------------------------------------------------------------ parts


SPLITTERS = {
    "number": (5, None),
    "KFold": (KFold(4, shuffle=True, random_state=0), None),
    "ShuffleSplit": (ShuffleSplit(4, test_size=0.3, random_state=0), None),
    "part of the rows": (ShuffleSplit(3, test_size=0.2, train_size=0.4, random_state=0), None),
    "TimeSeriesSplit": (TimeSeriesSplit(4), None),
    "RepeatedKFold": (RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), None),
    "PredefinedSplit": (PredefinedSplit(np.r_[np.full(13, -1), np.arange(40) % 4]), None),
    "GroupKFold": (GroupKFold(3), np.arange(53) // 5),
    "pairs": ([(np.arange(20), np.arange(30, 53)), (np.arange(25, 53), np.arange(10))], None),
    "LeaveOneOut": (LeaveOneOut(), None),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_errors_of_any_splitter_are_those_of_direct_fits(name):
    """One group, so that every split has one model to fit: least squares on its training rows."""
    cv, labels = SPLITTERS[name]
    rng = np.random.default_rng(3)
    X, weight = rng.standard_normal((53, 3)), rng.integers(1, 4, 53).astype(float)
    y = X.sum(axis=1) + 0.3 * rng.standard_normal(53)
    model = GroupSparseRegressor([[0, 1, 2]], selection=cv).fit(X, y, weight, split_groups=labels)
    if name == "number":
        fold = balanced_folds(y, weight, k=5)
        pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    else:
        pairs = cv if isinstance(cv, list) else list(cv.split(X, y, labels))
    assert model.n_splits_ == len(pairs)
    row = model.candidates_[model.candidates_["recipe"] == "least squares on 1 of the first 1 groups"].iloc[0]
    squares = 0.0
    for k, (train, test) in enumerate(pairs):
        root = np.sqrt(weight[train])
        A = root[:, None] * np.column_stack([np.ones(len(train)), X[train]])
        w = np.linalg.lstsq(A, root * y[train], rcond=None)[0]
        errors = weight[test] * (y[test] - w[0] - X[test] @ w[1:]) ** 2
        assert row[f"fold_{k}"] == pytest.approx(errors.sum() / weight[test].sum())
        squares += errors.sum()
    assert row["mse"] == pytest.approx(squares / sum(weight[test].sum() for _, test in pairs))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_of_weight_zero_do_not_matter_to_any_splitter(make):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = X[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(60)
    pairs = [(np.arange(20, 60), np.arange(10)), (np.arange(10, 50), np.arange(50, 60))]
    weight = np.ones(60)
    weight[10:20] = 0.0  # all rows that train the second split and not the first
    model = GroupSparseRegressor(2, selection=pairs, factors=0).fit(make(X), y, sample_weight=weight)
    kept = np.flatnonzero(weight)
    place = {row: i for i, row in enumerate(kept)}
    fewer = [[np.array([place[i] for i in rows if i in place]) for rows in pair] for pair in pairs]
    expected = GroupSparseRegressor(2, selection=fewer, factors=0).fit(make(X[kept]), y[kept])
    assert model.recipe_ == expected.recipe_
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)


def test_folds_without_rows_are_refused():
    y = response()
    weight = np.r_[np.zeros(30), np.ones(23)]
    with pytest.raises(ValueError, match="Fold 0 has no held-out rows of positive weight"):
        Folds(KFold(3)).parts(as_design(np.zeros((53, 1))), y, weight)
    with pytest.raises(ValueError, match="Fold 0 has no training rows of positive weight"):
        Folds([(np.arange(30), np.arange(30, 53))]).parts(as_design(np.zeros((53, 1))), y, weight)


# ------------------------------------------------------------------ held out once


def test_a_share_of_the_rows_is_held_out():
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((400, 3)), response(400), rng.uniform(0.5, 2, 400)
    for fraction in (0.1, 0.5):
        parts = HoldOut(fraction).parts(as_design(X), y, weight)
        assert weight[parts.labels == 1].sum() / weight.sum() == pytest.approx(fraction, abs=0.02)
        assert set(parts.labels.tolist()) == {0, 1}
        assert [(split.train, split.test) for split in parts.splits] == [((0,), (1,)), ((0, 1), ())]
    again = HoldOut(0.5).parts(as_design(X), y, weight)
    np.testing.assert_array_equal(again.labels, parts.labels)
    other = HoldOut(0.5, random_state=1).parts(as_design(X), y, weight)
    assert (other.labels != parts.labels).any()


def held_rows(X, y, weight=None, loss="squared", **options):
    loss = get_loss(loss)
    weight = np.ones(len(y)) if weight is None else weight
    return HoldOut(**options).parts(as_design(X), loss.check(y), weight, loss).labels == 1


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_rows_held_out_do_not_depend_on_what_X_and_y_hold(loss):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 5)), response(90)
    held = held_rows(X, y, loss=loss)
    assert held.sum() == 18
    others = {
        "a constant column": (np.column_stack([np.ones(90), X]), y), "-y": (X, -y), "another y": (X, response(90, 7)),
        "other units": (1e-3 * X + 7, 3 * y - 2), "other columns": (rng.standard_normal((90, 300)), y),
        "columns in another order": (X[:, ::-1], y), "stored": (sp.csr_array(X), y),
    }  # fmt: skip
    for name, (A, b) in others.items():
        np.testing.assert_array_equal(held_rows(A, b, loss=loss), held, err_msg=name)


@pytest.mark.parametrize("n_columns", [3, 300], ids=["few columns", "one of many tells them apart"])
def test_equal_rows_are_held_out_together_wherever_they_stand(n_columns):
    rng = np.random.default_rng(1)
    X, y = np.zeros((60, n_columns)), response(60)
    X[:, 1] = rng.standard_normal(60)
    times = rng.integers(1, 4, 60)
    held = held_rows(X, y, times.astype(float))
    np.testing.assert_array_equal(held_rows(np.repeat(X, times, axis=0), np.repeat(y, times)), np.repeat(held, times))
    # copies at the end change no number of the rows before them
    again = held_rows(np.vstack([X, X]), np.r_[y, y])
    np.testing.assert_array_equal(again[:60], again[60:])
    weight = np.r_[np.zeros(20), np.ones(60)]
    shifted = held_rows(np.vstack([X[:20] + 1, X]), np.r_[y[:20], y], weight)
    np.testing.assert_array_equal(shifted[20:], held_rows(X, y))


def test_rows_that_differ_in_nothing_but_the_response_count_one_by_one():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (200, 2)).astype(float), rng.integers(0, 3, 200).astype(float)
    assert held_rows(X, y).sum() == 40
    assert held_rows(X, (y > 1).astype(float), loss="binomial").sum() == pytest.approx(40, abs=1)


def test_an_equal_share_of_every_class_is_held_out_whatever_the_classes_are_called():
    rng = np.random.default_rng(3)
    X, labels = rng.standard_normal((120, 4)), rng.choice(3, 120, p=[0.6, 0.3, 0.1])
    held = held_rows(X, np.eye(3)[labels], loss="multinomial")
    for label in range(3):
        assert held[labels == label].sum() == pytest.approx(0.2 * (labels == label).sum(), abs=0.51)
    turned = np.array([2, 0, 1])[labels]
    np.testing.assert_array_equal(held_rows(X, np.eye(3)[turned], loss="multinomial"), held)
    two = (labels > 0).astype(float)
    np.testing.assert_array_equal(held_rows(X, two, loss="binomial"), held_rows(X, 1 - two, loss="binomial"))


def test_responses_that_rounding_tells_apart_are_in_one_fold():
    y = np.r_[response(20), 0.3]
    fold = balanced_folds(np.r_[y, 0.1 + 0.2], np.ones(22), k=5)
    assert 0.1 + 0.2 != 0.3
    np.testing.assert_array_equal(fold[:-1], balanced_folds(np.r_[y, 0.3], np.ones(22), k=5)[:-1])
    assert fold[-1] == fold[-2]


def test_validation_rows_score_and_all_rows_train():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), response(40)
    X_val, y_val = rng.standard_normal((17, 3)), response(17)
    parts = HoldOut(validation=(X_val, y_val)).parts(as_design(X), y, np.ones(40))
    assert [(split.train, split.test) for split in parts.splits] == [((0,), (1,))]
    assert parts.counts == [40, 17]
    model = GroupSparseRegressor([[0, 1, 2]], selection=HoldOut(validation=(X_val, y_val))).fit(X, y)
    row = model.candidates_[model.candidates_["groups"] == 1].iloc[0]
    w = np.linalg.lstsq(np.column_stack([np.ones(40), X]), y, rcond=None)[0]
    assert row["mse"] == pytest.approx(np.mean((y_val - w[0] - X_val @ w[1:]) ** 2))


@pytest.mark.parametrize("loss", ["poisson", "binomial"])
def test_validation_rows_score_minimisers_of_any_loss(loss):
    """Not what elimination takes for them, the minimisers of a quadratic model at the end of the path."""
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((200, 6)), rng.standard_normal((100, 6))
    y, y_val = (rng.poisson(np.exp(A[:, 0] - A[:, 3] / 2)) for A in (X, X_val))
    if loss == "binomial":
        y, y_val = (y > 0).astype(float), (y_val > 0).astype(float)
    model = GroupSparseRegressor([[0, 1, 2], [3, 4, 5]], loss=loss, selection=HoldOut(validation=(X_val, y_val)))
    table = model.fit(X, y).candidates_
    known = get_loss(loss)
    mean = known.link(np.mean(y))
    path = limit_path(X, y, [[0, 1, 2], [3, 4, 5]], loss=loss, factors=0)
    for n_groups, eta in ((0, np.full(100, mean)), (2, path.predict(X_val)[:, -1])):
        unpenalised = table[(table["groups"] == n_groups) & ~table["recipe"].str.startswith("ridge")]
        expected = known.deviance(y_val, eta).mean()
        np.testing.assert_allclose(unpenalised["deviance"], expected, rtol=1e-6)


def test_validation_rows_with_columns_in_another_order_are_refused():
    """They would be scored by the coefficients of other columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    y = X["a"] + 0.1 * rng.standard_normal(60)
    same, other = (HoldOut(validation=(X[names], y)) for names in (["a", "b", "c"], ["c", "b", "a"]))
    assert "a" in GroupSparseRegressor(selection=same).fit(X, y).selected_groups_
    with pytest.raises(ValueError, match="Column 0 of X_val is 'c', and column 0 of X is 'a'"):
        GroupSparseRegressor(selection=other).fit(X, y)


class ByX:
    """Two folds by the first column."""

    def split(self, X, y=None, groups=None):
        return [(np.flatnonzero(X[:, 0] > 0), np.flatnonzero(X[:, 0] <= 0))]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (HoldOut(0.0), "between 0 and 1"),
        (HoldOut(1.0), "between 0 and 1"),
        (HoldOut(True), "between 0 and 1"),
        (HoldOut(validation=3), r"pair \(X, y\)"),
        (HoldOut(validation=(np.ones((4, 2)), np.ones(4))), "2 columns, and X has 3"),
        (HoldOut(validation=(np.ones((4, 3)), np.ones(5))), "5"),
        (HoldOut(validation=(np.full((4, 3), np.nan), np.ones(4))), "missing|NaN|finite"),
        (Folds(1), "at least 2"),
        (Folds(5, deals=0), "deals must be at least 1"),
        (ByX(), "Splitters are not given the values of X"),
        (GroupKFold(3), r"GroupKFold\(.*\) needs labels of the rows: call fit\(X, y, split_groups=labels\)"),
        (Folds(3, labels=np.zeros(29)), r"one label per row: 30, not an array of shape \(29,\)"),
        (Folds(3, labels=[None, *"ab" * 14, "a"]), "split_groups has missing labels, first in row 0"),
    ],
)
def test_bad_splits_are_named(selection, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        GroupSparseRegressor(selection=selection).fit(rng.standard_normal((30, 3)), response(30))


# ------------------------------------------------------------------ reading


def test_what_may_be_given():
    assert read_selection(np.int64(4)) == Folds(4)
    assert read_selection("gcv") == InformationCriterion("gcv")
    assert read_selection("discrepancy") == Discrepancy()
    assert read_selection(Size(2)) == Size(2)
    assert isinstance(read_selection(KFold(3)), Folds)
    assert read_selection(Folds(3), labels=[1]) == Folds(3, [1])
    assert read_selection(5, random_state=7) == read_selection(Folds(5), random_state=7) == Folds(5, None, 7)
    assert read_selection(Folds(5, random_state=2), random_state=7) == Folds(5, None, 2)
    assert read_selection("holdout", 7) == read_selection(HoldOut(), 7) == HoldOut(random_state=7)


@pytest.mark.parametrize(
    "selection", ["nonsense", None, 2.5, True, {}, object()], ids=lambda value: type(value).__name__
)
def test_nonsense_is_refused_with_what_is_allowed(selection):
    with pytest.raises(ValueError, match="'holdout', 'ebic'"):
        read_selection(selection)


@pytest.mark.parametrize("halves", [[(np.arange(15), np.arange(15, 30))], KFold(2)], ids=["pairs", "splitter"])
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_folds_that_divide_rows_of_one_label_are_refused(halves):
    X, y, labels = np.random.default_rng(0).standard_normal((30, 3)), response(30), np.repeat(list("abcdef"), 5)
    model = GroupSparseRegressor(selection=halves)
    model.fit(X, y, split_groups=labels)
    labels[15] = "c"
    with pytest.raises(ValueError, match="split 0 trains on rows with the label c of split_groups and holds out"):
        model.fit(X, y, split_groups=labels)
    model.fit(X, y, np.arange(30) != 15, split_groups=labels)  # a row of weight zero is in no fold


def test_labels_given_twice_are_refused():
    """Those of split_groups= would be left out without a word."""
    rng = np.random.default_rng(0)
    model = GroupSparseRegressor(selection=Folds(5, labels=np.arange(30) // 3))
    with pytest.raises(ValueError, match="labels twice"):
        model.fit(rng.standard_normal((30, 3)), response(30), split_groups=np.arange(30) // 2)
