"""What expanded columns do, by the report: against predictions of the models themselves, and against the truth."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from covey import GroupSparseRegressor, nested_score
from covey.report import FitReport, render
from covey.report.effects import pipeline_effects

LEVELS = {"north": 2.0, "south": -1.0, "<b>east</b>": 0.0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n = 240
    frame = pd.DataFrame({"x": rng.uniform(0, 6, n), "z": rng.uniform(0, 1, n), "site": rng.choice(list(LEVELS), n)})
    y = 3 * np.sin(frame["x"]) + frame["site"].map(LEVELS) + 0.3 * rng.standard_normal(n)
    return frame, y.rename("outcome")


@pytest.fixture(scope="module")
def model(table):
    columns = ColumnTransformer(
        [
            ("curve", SplineTransformer(6, include_bias=False), ["x", "z"]),
            ("levels", OneHotEncoder(sparse_output=False), ["site"]),
        ]
    )
    return Pipeline([("columns", columns), ("model", GroupSparseRegressor(groups=[0] * 7 + [1] * 7 + [2] * 3))]).fit(
        *table
    )


@pytest.fixture(scope="module")
def nested(model, table):
    return nested_score(model, *table, 3, references=False, return_estimator=True)


@pytest.fixture(scope="module")
def effects(model, table, nested):
    return {one.name: one for one in pipeline_effects(model, table[0], nested)}


def predicted(model, frame, column, values):
    rows = pd.concat([frame.iloc[[5]]] * len(values), ignore_index=True)
    rows[column] = values
    return model.predict(rows)


def test_effects_are_differences_of_predictions(model, table, effects):
    for column in ("x", "site"):
        one = effects[column]
        predictions = predicted(model, table[0], column, one.values)
        np.testing.assert_allclose(one.effect - one.effect[0], predictions - predictions[0], atol=1e-9)


def test_curve_and_contrasts_are_near_the_truth(table, effects):
    curve, levels = effects["x"], effects["site"]
    assert curve.axes[0].kind == "number"
    truth = 3 * np.sin(curve.values)
    np.testing.assert_allclose(curve.effect, truth - 3 * np.sin(table[0]["x"]).mean(), atol=0.35)
    assert levels.axes[0].kind == "levels"
    counts = levels.axes[0].counts
    assert counts.tolist() == table[0]["site"].value_counts().tolist()
    truth = np.array([LEVELS[name] for name in levels.values])
    np.testing.assert_allclose(levels.effect, truth - np.average(truth, weights=counts), atol=0.25)
    assert counts @ levels.effect == pytest.approx(0, abs=1e-9)  # one zero for curves and levels


def test_the_band_spans_the_refits(table, nested, effects):
    assert len(nested.estimators) == 3
    for column in ("x", "site"):
        one = effects[column]
        predictions = np.array([predicted(fitted, table[0], column, one.values) for fitted in nested.estimators])
        if one.axes[0].counts is None:
            numbers = table[0][column].to_numpy()
            typical = np.quantile(numbers, (np.arange(200) + 0.5) / 200)
            means = [predicted(fitted, table[0], column, typical).mean() for fitted in nested.estimators]
            predictions = predictions - np.array(means)[:, None]
        else:
            predictions = predictions - np.average(predictions, axis=1, weights=one.axes[0].counts)[:, None]
        np.testing.assert_allclose(one.low, predictions.min(axis=0), atol=1e-9)
        np.testing.assert_allclose(one.high, predictions.max(axis=0), atol=1e-9)
        assert (one.n_in, one.n_refits) == (3, 3)


def test_only_expanded_columns_have_effects(table):
    numbers = table[0][["x", "z"]]
    plain = GroupSparseRegressor().fit(numbers, table[1])
    assert pipeline_effects(plain, numbers, None) == ()


def test_the_page_has_effects_residuals_and_escapes_levels(model, table, nested):
    report = FitReport.from_model(model, *table, nested=nested, command="covey fit '<a>.csv'")
    page = render(report)
    assert "What each term does" in page
    assert "in 3 of 3 outer folds" in page
    assert "<b>east</b>" not in page
    assert "&lt;b&gt;east&lt;/b&gt;" in page
    assert "covey fit &#39;&lt;a&gt;.csv&#39;" in page
    left = table[1] - nested.predictions
    assert f"{left.std(ddof=0):.3f}" in page
    np.testing.assert_allclose(report.residuals.fitted, model.predict(table[0]))
    assert "moves the prediction by" in page
    assert "units of <bdi>outcome</bdi>, one standard deviation" in page
