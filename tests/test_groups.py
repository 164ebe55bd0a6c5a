"""Groups: what is accepted, what is refused and how it is said, and the way between layouts."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import Groups


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_labels_of_a_series_keep_column_names(dtype):
    groups = Groups.from_labels(pd.Series(["x", "y", "x"], index=["c0", "c1", "c2"], dtype=dtype))
    assert groups.names == ("x", "y")
    assert groups.columns == ("c0", "c1", "c2")
    assert groups.column_name(2) == "c2"


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        (None, [1, 1, 1, 1]),
        (2, [2, 2]),
        (np.int64(4), [4]),
        (["a", "b", "a", "a"], [3, 1]),
        (np.array([5, 5, 6, 6]), [2, 2]),
        ([[0, 3], [1, 2]], [2, 2]),
        (np.array([[0, 1], [2, 3]]), [2, 2]),
        ({"a": [0], "b": [1, 2, 3]}, [1, 3]),
        (Groups.from_sizes([3, 1]), [3, 1]),
        (pd.Series(["a", "a", "b", "b"]), [2, 2]),
    ],
)
def test_coerce_reads_every_kind(given, sizes):
    assert Groups.coerce(given, 4).sizes.tolist() == sizes


def test_coerce_takes_column_names_along():
    columns = ["a", "b", "c", "d"]
    groups = Groups.coerce([["a", "d"], ["b", "c"]], 4, columns)
    assert groups["a" if "a" in groups.names else 0].tolist() == [0, 3]
    assert Groups.coerce(2, 4, columns).columns == tuple(columns)
    assert Groups.coerce(None, 4, columns).names == tuple(columns)
    assert Groups.coerce({"x": ["a", "b"], "y": ["d", "c"]}, 4, columns)["y"].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Groups.from_size(4, 10), "columns 8, 9 would be left over"),
        (lambda: Groups.from_size(0, 10), "size must be at least 1"),
        (lambda: Groups.from_size(2.0, 10), "size must be a whole number"),
        (lambda: Groups.from_size(True, 10), "size must be a whole number"),
        (lambda: Groups.from_sizes([2, 0]), "Group 1 has size 0"),
        (lambda: Groups.from_sizes([]), "sizes is empty"),
        (lambda: Groups.from_sizes([2, 3], 4), "add up to 5 columns, but there are 4"),
        (lambda: Groups.from_sizes([2, 1], 5), "columns from 3 on belong to no group"),
        (lambda: Groups.from_sizes([1.5, 2]), "whole numbers"),
        (lambda: Groups.from_labels([]), "labels is empty"),
        (lambda: Groups.from_labels("abc"), "not a single string"),
        (lambda: Groups.from_labels([1, np.nan, 2]), "label of column 1 is missing"),
        (lambda: Groups.from_labels(["a", None]), "label of column 1 is missing"),
        (lambda: Groups.from_labels(["a", pd.NA]), "label of column 1 is missing"),
        (lambda: Groups.from_labels([1.0, 2.0]), "label of column 0 is the float 1.0"),
        (lambda: Groups.from_labels([(1, 2), 3]), "label of column 0 is a tuple"),
        (lambda: Groups.from_labels(["a"], columns=["x", "y"]), "2 column names were given for 1 columns"),
        (lambda: Groups.from_lists([[0, 1], [1, 2]], 3), "overlap: column 1 is listed more than once"),
        (lambda: Groups.from_lists([[0, 0]], 1), "column 0 is listed more than once"),
        (lambda: Groups.from_lists([[0], [2]], 4), "columns 1, 3 have none"),
        (lambda: Groups.from_lists([[0]], 100), "columns 1, 2, 3, 4, 5, 6 and 93 more have none"),
        (lambda: Groups.from_lists([[0, 7]], 2), "names column 7, but there are 2 columns"),
        (lambda: Groups.from_lists([[-1, 0]], 2), "names column -1"),
        (lambda: Groups.from_lists([[0], []], 1), "Group 1 is empty"),
        (lambda: Groups.from_lists([], 1), "No groups were given"),
        (lambda: Groups.from_lists([[0.5]], 1), "whole numbers"),
        (lambda: Groups.from_lists([["a"]], 1), "pass columns="),
        (lambda: Groups.from_names({"g": ["z"]}, ["a"]), "'g' names unknown columns: 'z'"),
        (lambda: Groups.from_names({"g": ["a"]}, ["a", "b"]), "column 'b' has none"),
        (lambda: Groups.from_names({"g": "a"}, ["a"]), "write a list of columns"),
        (lambda: Groups.from_names([["a"]], ["a"]), "must be a dictionary"),
        (lambda: Groups.from_names({"g": ["a"]}, ["a", "a"]), "occurs twice"),
        (lambda: Groups.coerce([1, 2, 3], 4), "3 entries, but X has 4 columns"),
        (lambda: Groups.coerce(Groups.from_size(1, 3), 4), "for 3 columns, but X has 4"),
        (lambda: Groups.coerce("ab", 2), "cannot be read from str"),
        (lambda: Groups.coerce(2.0, 2), "cannot be read from float"),
        (lambda: Groups.coerce(True, 2), "must not be a boolean"),
        (lambda: Groups([[0]], 1, names=["a", "b"]), "2 group names were given for 1 groups"),
        (lambda: Groups([[0], [1]], 2, names=["a", "a"]), "unique; given more than once: a"),
    ],
)
def test_what_is_no_partition_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_in_another_order_than_that_of_the_groups_are_refused():
    """Groups are positions: they would take other columns than those they were made of, without a word."""
    names = ["age", "age2", "red", "green"]
    named = Groups.from_names({"age": ["age", "age2"], "colour": ["red", "green"]}, columns=names)
    labels = pd.Series(["age", "age", "colour", "colour"], index=names)
    for groups in (named, labels):
        assert Groups.coerce(groups, 4, names) == named
        with pytest.raises(ValueError, match="Column 0 of X is 'red', and column 0 of groups is 'age'"):
            Groups.coerce(groups, 4, ["red", "age", "green", "age2"])
    assert Groups.coerce(named, 4, ["num__age", "num__age2", "cat__red", "cat__green"]) == named  # names of their own
    assert Groups.coerce(pd.Series([0, 0, 1, 1]), 4, ["1", "0", "3", "2"]).sizes.tolist() == [2, 2]


def test_groups_are_frozen_values():
    groups = Groups.from_labels(["b", "a", "b"])
    with pytest.raises(AttributeError, match="frozen"):
        groups.names = ()
    with pytest.raises(ValueError, match="read-only"):
        groups.members[0] = 3
    for other in (pickle.loads(pickle.dumps(groups)), copy.deepcopy(groups), Groups.from_labels(["b", "a", "b"])):
        assert other == groups
        assert hash(other) == hash(groups)
    assert groups != Groups.from_labels(["a", "b", "a"])
    assert repr(Groups.from_size(1, 1)) == "Groups(1 group of 1 column, 1 column)"


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_layouts_are_inverse_and_norms_agree_with_numpy(labels):
    groups = Groups.from_labels(labels)
    values = np.arange(1.0, len(labels) + 1)
    np.testing.assert_array_equal(groups.from_contiguous(groups.to_contiguous(values)), values)
    expected = [np.linalg.norm(values[np.asarray(labels) == name]) for name in groups.names]
    np.testing.assert_allclose(groups.norms(values), expected, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_norms_neither_under_nor_overflow(scale):
    norms = Groups.from_sizes([2, 1]).norms(np.array([3.0, 4.0, 0.0]) * scale)
    np.testing.assert_allclose(norms, [5 * scale, 0.0], rtol=1e-14)


@pytest.mark.parametrize("given", [np.array, list], ids=["array", "list of numpy scalars"])
@pytest.mark.parametrize("labels", [np.array([3, 3, 1]), np.array(["b", "b", "a"]), np.array([True, True, False])])
def test_names_from_numpy_labels_are_python_objects(given, labels):
    groups = Groups.coerce(given(labels), 3)
    assert groups.names == tuple(dict.fromkeys(labels.tolist()))
    assert {type(name) for name in groups.names} <= {int, str, bool}


def test_a_name_that_is_unknown_is_answered_with_those_that_are_known():
    groups = Groups.from_labels(["age", "bmi", "age"])
    with pytest.raises(ValueError, match=r"always: There is no group named 'agee'\. Did you mean 'age'\?"):
        groups.positions(["agee"], "always")
    with pytest.raises(ValueError, match=r"There is no group named 'sex'\. The groups are 'age', 'bmi'\.$"):
        groups.positions(["sex"], "always")
    with pytest.raises(KeyError, match=r"The groups are 0, 1, 2, 3, 4, 5, \.\.\.\."):
        Groups.from_sizes([1] * 9).position("sex")
