"""What notebooks and terminals show of models, paths, data and results."""

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseRegressor, limit_path
from covey.datasets import make_group_sparse
from covey.summary import Summary

DATA = make_group_sparse(80, 60, 3, active=2, random_state=0)


@pytest.fixture(scope="module")
def model():
    return GroupSparseRegressor(groups=DATA.groups, selection=3).fit(DATA.X, DATA.y)


def test_a_fitted_model_is_shown_by_its_summary(model):
    page = model._repr_html_()
    assert page == model.summary()._repr_html_() == model._repr_mimebundle_()["text/html"]
    assert "<table" in page
    assert all(f"<td>{name}</td>" in page for name in model.selected_groups_)
    assert repr(model.summary()) == str(model.summary())
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_one_that_is_not_fitted_is_shown_as_scikit_learn_does():
    page = GroupSparseRegressor()._repr_html_()
    assert "sk-container" in page
    assert GroupSparseRegressor()._repr_mimebundle_().keys() == {"text/plain", "text/html"}


def test_long_models_are_cut_and_names_are_harmless():
    table = pd.DataFrame({"group": [f"<b>{l}" for l in range(33)]})
    summary = Summary(("A & B",), table, ("Note.",), "group_table()")
    assert str(summary).count("<b>") == 20
    assert "... and 13 more groups: group_table() has all of them." in str(summary)
    page = summary._repr_html_()
    assert "<b>" not in page
    assert "A &amp; B" in page
    assert page.count("&lt;b&gt;") == 20


def test_descriptions_are_short(model):
    assert repr(DATA).startswith("GroupSparseData(X: 80 x 60, y: 80, w_star: 60, groups=Groups(20 groups of 3 columns")
    path = limit_path(DATA.X, DATA.y, DATA.groups)
    woke = len(dict(path.entered))
    assert repr(path) == f"Path({len(path)} models, {woke} of 20 groups woke up, {path.status})"
    assert all(len(repr(one)) < 200 for one in (DATA, path, model.path_, model.groups_))
    assert np.isfinite(path.times).all()
