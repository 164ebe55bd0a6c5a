"""What a loss reads: the response as it is fitted, the loss that fits it, its labels, and how folds are balanced."""

import numpy as np
import pandas as pd
import pytest

from covey import survival
from covey.losses import Binomial, Cox, Huber, Multinomial, MultiSquared, Poisson, Squared
from covey.losses.classes import read_labels

Y = np.array([0.5, 2.0, 3.0, 1.0])


@pytest.mark.parametrize("loss", [Squared(), MultiSquared()], ids=repr)
def test_the_columns_of_y_decide_how_many_responses_there_are(loss):
    one, column, two = loss.read(list(Y)), loss.read(Y[:, None]), loss.read(pd.DataFrame({"a": Y, "b": -Y}))
    assert (one.loss, one.columns, one.n_outputs) == (Squared(), False, 1)
    assert (column.loss, column.columns, column.n_outputs) == (Squared(), True, 1)
    assert (two.loss, two.columns, two.n_outputs) == (MultiSquared(), True, 2)
    np.testing.assert_array_equal(column.y, Y)
    np.testing.assert_array_equal(two.y, np.column_stack([Y, -Y]))


@pytest.mark.parametrize("loss", [Poisson(), Huber()], ids=repr)
def test_other_losses_are_for_one_response(loss):
    np.testing.assert_array_equal(loss.read(Y[:, None]).y, Y)
    with pytest.raises(ValueError, match=f"y has 2 columns, and the {loss.name} loss is for one response: fit them"):
        loss.read(np.column_stack([Y, Y]))


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (["1", "2"], "holds text, and must hold numbers. For classes use covey.GroupSparseClassifier"),
        (["1", "2", "n/a?"], r"holds text, 'n/a\?' in row 2 \(1 of 3 values\), and must hold numbers"),
        (np.array(["1", 2.0], dtype=object), "holds text"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "must hold numbers, not datetime64"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "masked array"),
        (pd.Series([1, None], dtype="Int64"), "missing or infinite values, first in row 1"),
        ([[1.0], [2.0, 3.0]], "must hold numbers"),
        (iter([1.0, 2.0]), "can be read only once"),
    ],
)
@pytest.mark.parametrize("loss", [Squared(), Poisson()], ids=repr)
def test_what_holds_no_numbers_is_refused(loss, y, match):
    with pytest.raises(ValueError, match=match):
        loss.read(y)


def test_labels():
    two, three = read_labels(["no", "yes", "no"]), read_labels(pd.Series([7, 3, 5]))
    assert two.loss == Binomial()
    assert three.loss == Multinomial()
    assert two.y.tolist() == [0.0, 1.0, 0.0]
    assert three.y.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert (two.labels.tolist(), three.labels.tolist()) == (["no", "yes"], [3, 5, 7])
    assert (two.n_outputs, three.n_outputs, two.columns) == (1, 3, True)
    other = read_labels([5, 5], "y_val", three.labels)
    assert other.y.tolist() == [[0, 1, 0]] * 2
    with pytest.raises(ValueError, match="y_val has the label 4, which no row of fit has"):
        read_labels([4], "y_val", three.labels)


@pytest.mark.parametrize(
    ("response", "weight", "match"),
    [
        (Poisson().read([0.0, 0.0]), [1, 1], "Every count is zero"),
        (Binomial().read([0.2, 0.0, 0.0]), [0, 1, 1], "Every row is of class 0"),
        (read_labels(["a", "a"]), [1, 1], "y has only one class, 'a', and a classifier needs two"),
        (read_labels(["a", "b"]), [0, 1], "y has only one class, 'b'"),
        (read_labels(["a", "b", "c"]), [1, 0, 1], "All rows of class 'b' have weight zero"),
        (Cox().read(survival([1.0, 2.0], [0, 0])), [1, 1], "y has no event"),
        (Cox().read(survival([1.0, 1.0, 2.0], [1, 1, 0])), [1, 1, 1], "All 2 events of y are at time 1"),
        (Cox().read(survival([1.0, 2.0], [1, 0], strata=["a", "b"])), [1, 1], "Stratum 'b' of y has no event"),
    ],
)
def test_responses_that_no_model_fits(response, weight, match):
    with pytest.raises(ValueError, match=match):
        response.loss.check_estimable(response, np.array(weight, dtype=float))


def test_offsets_have_the_shape_of_the_predictor():
    assert Poisson().read(Y).read_offset(None) is None
    assert Poisson().read(Y).read_offset(np.zeros((4, 1))).shape == (4,)
    assert Squared().read(np.column_stack([Y, Y])).read_offset(np.zeros(4)).shape == (4, 2)
    with pytest.raises(ValueError, match="with 3 classes it needs one column per class"):
        read_labels(["a", "b", "c"]).read_offset(np.zeros(3))


def test_what_folds_are_balanced_by():
    weight = np.ones(4)
    np.testing.assert_array_equal(Poisson().balance(Y, weight), Y)
    units = MultiSquared().balance(np.column_stack([Y, 1e6 * Y]), weight)
    np.testing.assert_allclose(units, 2 * (Y - Y.mean()) / Y.std())
    assert Multinomial().balance(np.eye(3)[[2, 0]], weight[:2]).tolist() == [2.0, 0.0]
    times = Cox().read(survival([5.0, 4.0, 3.0], [0, 1, 1])).y
    assert Cox().balance(times, weight[:3]).tolist() == [0.0, 2.0, 1.0]


def test_classes_are_not_proportions():
    assert Binomial().classes(np.array([0.0, 1.0])).tolist() == [0, 1]
    assert Binomial().classes(np.array([0.0, 0.5])) is None
    assert Multinomial().classes(np.eye(3)[[2, 0]]).tolist() == [2, 0]
    assert Poisson().classes(np.array([0.0, 1.0])) is None


def test_a_class_thought_impossible_has_a_finite_deviance():
    bound = -2 * np.log(np.finfo(float).eps)
    assert Binomial().deviance_at_mean(np.array([1.0]), np.array([0.0])) == pytest.approx(bound)
    assert Multinomial().deviance_at_mean(np.eye(2)[[0]], np.array([[0.0, 1.0]])) == pytest.approx(bound)
    np.testing.assert_allclose(Squared().deviance_at_mean(Y, Y + 1), 1.0)
