"""Formulas: a term is a group, and what is learned from the fitted rows is kept."""

import pickle

import numpy as np
import pandas as pd
import pytest

import covey
from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival

formulaic = pytest.importorskip("formulaic")

RNG = np.random.default_rng(3)
DATA = pd.DataFrame(
    {
        "age": RNG.uniform(20, 60, 150),
        "site": RNG.choice(list("abc"), 150),
        "x1": RNG.standard_normal(150),
        "x2": RNG.standard_normal(150),
    }
)
DATA["y"] = np.sin(DATA["age"] / 6) + (DATA["site"] == "b") + 0.1 * RNG.standard_normal(150)
DATA["ill"] = np.where(DATA["y"] + RNG.logistic(size=150) / 2 > 0.5, "yes", "no")
DATA["time"], DATA["event"] = np.exp(-DATA["y"]) * RNG.exponential(size=150), RNG.uniform(size=150) < 0.8
TERMS = "bs(age, df=7) + C(site) + x1:x2"


def test_terms_are_groups_and_the_fit_is_that_of_the_columns():
    model = GroupSparseRegressor.from_formula(f"y ~ {TERMS}", DATA)
    assert model.groups_.names == ("bs(age, df=7)", "C(site)", "x1:x2")
    assert model.groups_.sizes.tolist() == [7, 2, 1]
    assert set(model.selected_groups_) == {"bs(age, df=7)", "C(site)"}
    X = np.asarray(formulaic.model_matrix(TERMS, DATA))[:, 1:]
    same = GroupSparseRegressor(groups=covey.Groups.from_sizes([7, 2, 1])).fit(X, DATA["y"])
    np.testing.assert_allclose(model.coef_, same.coef_)
    np.testing.assert_allclose(model.predict(X_of(model, DATA)), same.predict(X))


def X_of(model, data):
    return pd.DataFrame(model.formula_.get_model_matrix(data)).drop(columns="Intercept")


def test_other_rows_have_the_knots_and_levels_of_the_fitted_ones():
    model = GroupSparseRegressor.from_formula(f"y ~ {TERMS}", DATA)
    few = DATA.iloc[[4, 9]].drop(columns="y")  # without some of the sites, and with other quantiles
    np.testing.assert_allclose(model.predict(few), model.predict(DATA)[[4, 9]])
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict(few), model.predict(few))
    assert model.score(DATA, DATA["y"]) > 0.9
    model.fit(DATA[["x1", "x2", *["age"] * 8]].to_numpy(), DATA["y"])
    assert not hasattr(model, "formula_")


def test_no_constant_transformed_and_several_responses():
    model = GroupSparseRegressor.from_formula("exp(y) ~ x1 + C(site) - 1", DATA)
    assert model.intercept_ == 0
    assert model.groups_.sizes.tolist() == [1, 3] or model.groups_.sizes.tolist() == [3, 1]
    assert GroupSparseRegressor.from_formula("y + x1 ~ age + x2", DATA).coef_.shape == (2, 2)


def test_classes_and_survival_times():
    labels = GroupSparseClassifier.from_formula(f"ill ~ {TERMS}", DATA)
    assert set(labels.predict(DATA)) == {"yes", "no"}
    cox = GroupSparseCox.from_formula("survival(time, event) ~ C(site) + x1", DATA)
    X = np.asarray(formulaic.model_matrix("C(site) + x1", DATA))[:, 1:]
    same = GroupSparseCox(groups=["C(site)", "C(site)", "x1"]).fit(X, survival(DATA["time"], DATA["event"]))
    np.testing.assert_allclose(cox.predict(DATA), same.predict(X))


def test_a_table_of_polars():
    frame = pytest.importorskip("polars").DataFrame({name: DATA[name].to_numpy() for name in DATA})
    model = GroupSparseRegressor.from_formula(f"y ~ {TERMS}", frame)
    same = GroupSparseRegressor.from_formula(f"y ~ {TERMS}", DATA)
    np.testing.assert_allclose(model.predict(frame), same.predict(DATA))


@pytest.mark.parametrize(
    ("estimator", "formula", "settings", "words"),
    [
        (GroupSparseRegressor, "y", {}, "a response and terms"),
        (GroupSparseRegressor, "~ x1", {}, "has no response"),
        (GroupSparseRegressor, "y ~ 1", {}, "has no terms"),
        (GroupSparseRegressor, "y ~ nothing", {}, "names 'nothing', which the data lack: the columns are"),
        (GroupSparseRegressor, "nothing ~ x1", {}, "names 'nothing', which the data lack"),
        (GroupSparseRegressor, "y ~ x1 + + )", {}, "cannot be read"),
        (GroupSparseRegressor, "y ~ x1", {"groups": 2}, "groups is set by the formula"),
        (GroupSparseRegressor, "y ~ gap", {}, "'gap' in the formula has missing values: drop or impute"),
        (GroupSparseClassifier, "log(y) ~ x1", {}, "one column of labels"),
        (GroupSparseCox, "time ~ x1", {}, r"written survival\(time, event\)"),
        (GroupSparseCox, "survival(time, died) ~ x1", {}, "no column 'died'"),
    ],
    ids=str,
)
def test_formulas_that_cannot_be_fitted(estimator, formula, settings, words):
    with pytest.raises(ValueError, match=words):
        estimator.from_formula(formula, DATA.assign(gap=DATA["x1"].where(DATA["x1"] > 0)), **settings)


def test_arrays_and_rows_beyond_the_knots_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match="data must be a DataFrame"):
        GroupSparseRegressor.from_formula("y ~ x1", np.eye(3))
    model = GroupSparseRegressor.from_formula("y ~ bs(age, df=5)", DATA)
    with pytest.raises(ValueError, match="extrapolation='extend'"):
        model.predict(DATA.assign(age=99.0))
    with pytest.raises(ValueError, match="names 'age', which the data lack: the columns are 'x1', 'x2'"):
        model.predict(DATA[["x1", "x2"]])


def test_a_file_cannot_hold_it_and_says_so(tmp_path):
    model = GroupSparseRegressor.from_formula("y ~ x1", DATA)
    with pytest.raises(ValueError, match=r"formula.*pickle"):
        covey.save(model, tmp_path / "model.skops")
