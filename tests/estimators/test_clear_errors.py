"""Input that cannot be used is refused in our words: the parameter, what is wrong with it, and what to do."""

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)
LABELS = (Y > 0).astype(int)
FIRST, SECOND = np.arange(20), np.arange(20, 40)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([(FIRST, np.arange(20, 50))], "held-out rows of split 0 must lie between 0 and 39, not 20 to 49"),
        ([(FIRST, SECOND), (np.array([-1, 3]), SECOND)], "training rows of split 1 must lie between 0 and 39"),
        ([(FIRST * 1.5, SECOND)], "must be a list of positions, or a mask of 40 rows"),
        ([(np.arange(30) < 20, SECOND)], "must be a list of positions, or a mask of 40 rows"),
        ([(["a"], ["b"])], "must be a list of positions"),
        ([(FIRST.reshape(2, 10), SECOND)], "must be a list of positions"),
        ([([[1], [2, 3]], SECOND)], "must be a list of positions"),
        ([FIRST], "split 0 is not a pair"),
        ([3], "split 0 is not a pair"),
        ([(np.append(FIRST, 0), SECOND)], "name a row more than once; repeat rows by sample_weight"),
        ([(FIRST, FIRST[-1:])], "split 0 holds out rows that it trains on, 1 in all, first row 19"),
        ([], "there are none. A generator can be used only once: give a list"),
    ],
)
def test_splits(splits, message):
    with pytest.raises(ValueError, match=f"selection must give pairs of training and held-out rows.*{message}"):
        GroupSparseRegressor(selection=splits).fit(X, Y)


def test_a_generator_of_splits_is_used_once():
    model = GroupSparseRegressor(selection=(pair for pair in [(FIRST, SECOND)])).fit(X, Y)
    with pytest.raises(ValueError, match="A generator can be used only once"):
        model.fit(X, Y)


def test_masks_are_splits_too():
    mask = np.arange(40) < 20
    masks = GroupSparseRegressor(selection=[(mask, ~mask), (~mask, mask)]).fit(X, Y)
    positions = GroupSparseRegressor(selection=[(FIRST, SECOND), (SECOND, FIRST)]).fit(X, Y)
    np.testing.assert_array_equal(masks.coef_, positions.coef_)


def test_a_generator_of_groups_is_refused_before_it_is_used_up():
    model = GroupSparseRegressor(groups=2, always=(name for name in [0]))
    for _ in range(2):
        with pytest.raises(ValueError, match="always is a generator, which can be read only once: give a list"):
            model.fit(X, Y)


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan, pd.NaT])
@pytest.mark.parametrize("kind", [np.array, list, pd.Series])
def test_missing_labels(missing, kind):
    labels = np.array(["no", "yes"], dtype=object)[LABELS]
    labels[3] = missing
    with pytest.raises(ValueError, match=r"y has missing labels .* first in row 3"):
        GroupSparseClassifier().fit(X, kind(labels) if kind is not np.array else labels)


def test_missing_labels_of_nullable_types():
    for labels in (pd.Series(LABELS).astype("Int64"), pd.Series(LABELS).astype("string")):
        labels[5] = pd.NA
        with pytest.raises(ValueError, match=r"y has missing labels .* first in row 5"):
            GroupSparseClassifier().fit(X, labels)


ESTIMATORS = [
    (GroupSparseRegressor(), Y),
    (GroupSparseRegressor(loss="poisson"), np.abs(np.round(Y))),
    (GroupSparseClassifier(), LABELS),
    (GroupSparseCox(), survival(np.abs(Y) + 0.1, LABELS.astype(bool))),
]


@pytest.mark.parametrize(("model", "y"), ESTIMATORS)
@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_masked_weights_and_offsets(model, y, name):
    masked = np.ma.array(np.ones(40), mask=np.arange(40) == 3)
    with pytest.raises(ValueError, match=f"{name} is a masked array with masked values; fill them"):
        model.fit(X, y, **{name: masked})


@pytest.mark.parametrize(("model", "y"), ESTIMATORS[1:])
def test_values_whose_squares_overflow(model, y):
    large = X.copy()
    large[3, 2] = 1e200
    with pytest.raises(ValueError, match=r"X has values above 1e\+150 in column 2, whose squares overflow: change the"):
        model.fit(large, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e160, 1e308])
def test_one_value_whose_square_overflows_is_neither_missing_nor_infinite(value):
    rng = np.random.default_rng(0)
    large, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
    large[3, 1] = value
    with pytest.raises(ValueError, match="X has values in column 1 whose squares overflow beside the others: change"):
        GroupSparseRegressor(groups=1).fit(large, y)


def test_balanced_classes_have_the_same_total_weight():
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    totals = np.bincount(LABELS, weights=weight)
    by_hand = weight * (weight.sum() / (2 * totals))[LABELS]
    expected = GroupSparseClassifier(selection="ebic").fit(X, LABELS, sample_weight=by_hand)
    found = GroupSparseClassifier(selection="ebic", class_weight="balanced").fit(X, LABELS, sample_weight=weight)
    np.testing.assert_allclose(found.coef_, expected.coef_)
    repeated = np.repeat(np.arange(40), LABELS + 1)
    weighted = GroupSparseClassifier(class_weight="balanced").fit(X, LABELS, sample_weight=LABELS + 1.0)
    rows = GroupSparseClassifier(class_weight="balanced").fit(X[repeated], LABELS[repeated])
    np.testing.assert_allclose(weighted.coef_, rows.coef_, atol=1e-6)
