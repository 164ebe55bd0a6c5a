"""Effects of groups over their variables, and how often folds chose each group."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, TermGroups, nested_score, survival
from covey.plots import CandidatesDisplay, FrequencyDisplay, GroupPathDisplay, PartialEffectDisplay
from covey.selection import Size

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.uniform(20, 60, 120), "site": RNG.choice(list("abc"), 120)})
SHAPE = np.sin(TABLE["age"] / 8)
Y = SHAPE + 2.0 * (TABLE["site"] == "b") + 0.01 * RNG.standard_normal(120)


@pytest.fixture(scope="module")
def pipeline():
    columns = ColumnTransformer(
        [("s", SplineTransformer(7), ["age"]), ("h", OneHotEncoder(sparse_output=False), ["site"])]
    ).set_output(transform="pandas")
    return make_pipeline(columns, GroupSparseRegressor(groups=TermGroups(TABLE.columns))).fit(TABLE, Y)


def test_a_spline_is_the_curve_that_the_rows_came_from(pipeline):
    display = PartialEffectDisplay.from_estimator(pipeline, TABLE, "age")
    x, effect = display.ax_.lines[0].get_data()
    assert (np.diff(x) >= 0).all()
    np.testing.assert_allclose(effect, np.sin(x / 8) - SHAPE.mean(), atol=0.05)
    assert display.ax_.get_xlabel() == "age"
    assert display.ax_.get_ylabel() == "effect on the prediction"


def test_a_category_has_a_dot_per_level(pipeline):
    display = PartialEffectDisplay.from_estimator(pipeline, TABLE)  # the strongest
    _, effect = display.ax_.lines[0].get_data()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["a", "b", "c"]
    np.testing.assert_allclose(effect[1] - effect[[0, 2]], 2.0, atol=0.05)


def test_missing_values_of_a_category_are_a_level(pipeline):
    site = TABLE["site"].where(TABLE["site"] != "c")
    display = PartialEffectDisplay.from_estimator(pipeline, TABLE, "site", values=site)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["a", "b", "missing"]
    expected = PartialEffectDisplay.from_estimator(pipeline, TABLE, "site").ax_.lines[0].get_data()[1]
    np.testing.assert_array_equal(display.ax_.lines[0].get_data()[1], expected)


def test_effects_add_up_to_the_prediction(pipeline):
    X = pipeline[:-1].transform(TABLE)
    total = sum(pipeline[-1].partial_effect(X, name) for name in ("age", "site"))
    np.testing.assert_allclose(total, pipeline.predict(TABLE) - pipeline.predict(TABLE).mean())


def test_formulas_and_every_estimator():
    pytest.importorskip("formulaic")
    data = TABLE.assign(y=Y, label=np.where(Y > 1, "high", "low"))
    model = GroupSparseRegressor.from_formula("y ~ bs(age, df=7) + C(site)", data)
    assert PartialEffectDisplay.from_estimator(model, data, "bs(age, df=7)").ax_.get_xlabel() == "age"
    X = RNG.standard_normal((120, 3))
    three = GroupSparseClassifier().fit(X, np.digitize(X[:, 0] + 0.5 * RNG.standard_normal(120), [-0.5, 0.5]))
    display = PartialEffectDisplay.from_estimator(three, X, 0)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1", "2"]
    two = GroupSparseClassifier().fit(X, np.where(X[:, 0] > 0, "ill", "well"))
    assert PartialEffectDisplay.from_estimator(two, X, 0).ax_.get_ylabel() == "effect on the log odds of well"
    both = pd.DataFrame({"height": X[:, 0], "weight": X[:, 0] + X[:, 1]})
    legend = PartialEffectDisplay.from_estimator(GroupSparseRegressor().fit(X, both), X, 0).ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["height", "weight"]
    cox = GroupSparseCox().fit(X, survival(RNG.exponential(np.exp(-2 * X[:, 0])), np.ones(120, dtype=bool)))
    drawn = PartialEffectDisplay.from_estimator(cox, X, 0).ax_
    assert drawn.get_ylabel() == "effect on the log risk"
    np.testing.assert_allclose(np.polyfit(*drawn.lines[0].get_data(), 1)[0], cox.coef_[0])
    sparse = PartialEffectDisplay.from_estimator(cox, sp.csr_array(X), 0).ax_
    np.testing.assert_array_equal(sparse.lines[0].get_data(), drawn.lines[0].get_data())


def test_frequencies_are_those_of_the_folds(pipeline):
    model = pipeline[-1]
    display = FrequencyDisplay.from_estimator(model)
    lengths = {
        tick.get_text(): bar.get_width()
        for tick, bar in zip(display.ax_.get_yticklabels(), display.ax_.patches, strict=True)
    }
    assert lengths == dict(zip(model.groups_.names, model.fold_frequencies_, strict=True))
    assert display.ax_.get_xlabel() == "folds, of 5"
    X = RNG.standard_normal((60, 3))
    score = nested_score(GroupSparseRegressor(selection=3), X, X[:, 1], cv=2, references={})
    (bar,) = FrequencyDisplay.from_score(score).ax_.patches
    assert bar.get_width() == score.n_folds == 2


def test_dollars_in_names_are_no_formulas():
    X = pd.DataFrame(RNG.standard_normal((60, 2)), columns=["$_per_$", "b"])
    model = GroupSparseRegressor().fit(X, X["$_per_$"] + 0.1 * RNG.standard_normal(60))
    for display in (FrequencyDisplay, GroupPathDisplay):
        display.from_estimator(model).figure_.draw_without_rendering()
    PartialEffectDisplay.from_estimator(model, X, "$_per_$").figure_.draw_without_rendering()


def test_only_some_bars_are_drawn():
    display = FrequencyDisplay({f"g{l}": 1 + l % 3 for l in range(30)}, 5, ["g0"]).plot(n_bars=7)
    assert len(display.ax_.patches) == 7
    assert "23 more" in display.ax_.get_title(loc="left")


def test_what_cannot_be_drawn_says_why(pipeline):
    X = RNG.standard_normal((40, 4))
    plain = GroupSparseRegressor(groups=2, selection=Size(1)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="no folds to count"):
        FrequencyDisplay.from_estimator(plain)
    for display in (FrequencyDisplay, CandidatesDisplay, GroupPathDisplay):
        display.from_estimator(pipeline)
        with pytest.raises(ValueError, match="LinearRegression is not an estimator that this display accepts"):
            display.from_estimator(LinearRegression())
        with pytest.raises(ValueError, match="GroupSparseCox is not fitted: call fit first"):
            display.from_estimator(make_pipeline(GroupSparseCox()))
    with pytest.raises(ValueError, match="give values="):
        PartialEffectDisplay.from_estimator(plain, X, 0)
    with pytest.raises(ValueError, match="LinearRegression is not an estimator that this display accepts"):
        PartialEffectDisplay.from_estimator(LinearRegression().fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match="use plot_terms of the model"):
        PartialEffectDisplay.from_estimator(GroupSparseRegressor(terms="auto").fit(TABLE, Y), TABLE, "age")
    with pytest.raises(ValueError, match="values has 3 entries, but X has 40 rows"):
        PartialEffectDisplay.from_estimator(plain, X, 0, values=[1, 2, 3])
