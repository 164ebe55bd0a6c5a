"""What the report of a fit says of constraints."""

import numpy as np
import pandas as pd

from covey import GroupSparseClassifier, GroupSparseRegressor
from covey.report import FitReport, render


def test_constraints_are_listed_those_that_bind_first():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((150, 12)), columns=[f"x{j}" for j in range(12)])
    y = 2 * X["x0"] + X["x1"] - X["x2"] + 0.5 * rng.standard_normal(150)
    given = {"x0": "<=0", "x1": (0, 0.5), "x2": "<=0", "x3": ">=0"}
    model = GroupSparseRegressor(constraints=given).fit(X, y)
    report = FitReport.from_model(model, X, y, nested=0)
    assert [(one.name, one.binds) for one in report.constraints][:2] == [("x1", True), ("x0", True)]
    page = render(report)
    assert "2 of 4 constraints bind" in page
    assert "The rows contradict a constraint" in page
    assert "<td>0 to 0.5</td>" in page
    free = FitReport.from_model(GroupSparseRegressor().fit(X, y), X, y, nested=0)
    assert free.constraints == ()
    assert 'id="constraints"' not in render(free)


def test_a_model_without_groups_still_says_what_was_kept_out():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((150, 3)), columns=["a", "b", "c"])
    y = 2 * X["a"] + 0.5 * rng.standard_normal(150)
    model = GroupSparseRegressor(constraints={"a": "<=0"}).fit(X, y)
    assert model.selected_groups_ == []
    said = FitReport.from_model(model, X, y, nested=0).remarks
    assert "The rows contradict a constraint" in [one.heading for one in said]


def test_effects_for_the_other_class_have_the_opposite_constraints():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((150, 3)), columns=["a", "b", "c"])
    y = np.where(X["a"] + 0.5 * rng.standard_normal(150) > 0, "yes", "no")
    model = GroupSparseClassifier(constraints={"a": ">=0"}).fit(X, y)
    report = FitReport.from_model(model, X, y, nested=0, positive="no")
    assert report.constraints[0].constraint == "<=0 for the odds of no"
