"""What the report of a fit says of constraints."""

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor
from covey.report import FitReport, render


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((100, 5)), columns=list("abcde"))
    return X, 2 * X["a"] + X["b"] - X["c"] + 0.5 * rng.standard_normal(100)


def test_constraints_are_listed_those_that_bind_first(data):
    given = {"a": "<=0", "b": (0, 0.5), "c": "<=0", "d": ">=0"}
    report = FitReport.from_model(GroupSparseRegressor(constraints=given).fit(*data), *data, nested=0)
    assert [(one.name, one.binds) for one in report.constraints][:2] == [("b", True), ("a", True)]
    page = render(report)
    assert "2 of 4 constraints bind" in page
    assert "The rows contradict a constraint" in page
    assert "<td>0 to 0.5</td>" in page
    free = FitReport.from_model(GroupSparseRegressor().fit(*data), *data, nested=0)
    assert free.constraints == ()
    assert 'id="constraints"' not in render(free)


def test_a_model_without_groups_still_says_what_was_kept_out(data):
    X, y = data[0][["a", "d"]], data[0]["a"] + 0.1 * data[0]["e"]
    model = GroupSparseRegressor(constraints={"a": "<=0"}).fit(X, y)
    assert model.selected_groups_ == []
    said = FitReport.from_model(model, X, y, nested=0).remarks
    assert "The rows contradict a constraint" in [one.heading for one in said]


def test_effects_for_the_other_class_have_the_opposite_constraints(data):
    X, y = data[0][["a", "d"]], np.where(data[0]["a"] + 0.5 * data[0]["e"] > 0, "yes", "no")
    model = GroupSparseClassifier(constraints={"a": ">=0"}).fit(X, y)
    report = FitReport.from_model(model, X, y, nested=0, positive="no")
    assert report.constraints[0].constraint == "<=0 for the odds of no"
