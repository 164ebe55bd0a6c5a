"""Details of curves: found where a curve is not enough, left out where it is, and part of a variable's effect."""

import numpy as np
import pandas as pd
import pytest

from covey import Curve, GroupSparseRegressor, Terms

N, NOISE = 400, 0.2


def wiggly(seed=0, waves=11.0):
    """Sine waves in x beside a line in z; the noise is known."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.uniform(-1, 1, N), "z": rng.standard_normal(N), "other": rng.standard_normal(N)})
    mean = np.sin(waves * table["x"]) + 0.5 * table["z"]
    return table, mean.to_numpy(), mean.to_numpy() + NOISE * rng.standard_normal(N)


@pytest.fixture(scope="module")
def fitted():
    table, mean, y = wiggly()
    return table, mean, GroupSparseRegressor(terms=Terms(pairs=None)).fit(table, y)


def test_a_detail_is_found_where_the_curve_is_not_enough(fitted):
    table, mean, model = fitted
    assert set(model.selected_groups_) == {"x", "x~", "x~~", "z"}
    # a user who names the number of knots gets these and no detail
    _, _, y = wiggly()
    without = GroupSparseRegressor(terms=Terms({"x": Curve(knots=10)}, pairs=None)).fit(table, y)
    assert set(without.selected_groups_) == {"x", "x~", "z"}
    errors = [np.mean((one.predict(table) - mean) ** 2) for one in (model, without)]
    assert errors[0] < errors[1] / 5
    kinds = model.terms_.set_index("term")["kind"]
    assert kinds["x~~"] == "detail"


def test_no_detail_where_the_curve_is_enough():
    table, _, y = wiggly(waves=3.0)
    model = GroupSparseRegressor(terms=Terms(pairs=None)).fit(table, y)
    assert set(model.selected_groups_) == {"x", "x~", "z"}


def test_the_effect_of_a_variable_has_its_detail(fitted):
    table, _, model = fitted
    at = np.linspace(-0.9, 0.9, 50)
    one = model.effect("x", at=at)
    assert one.terms == ("x", "x~", "x~~")
    truth = np.sin(11.0 * at)
    np.testing.assert_allclose(one.effect - one.effect.mean(), truth - truth.mean(), atol=4 * NOISE / np.sqrt(N / 20))
    np.testing.assert_allclose(model.contributions(table).sum(axis=1), model.predict(table))


def test_a_detail_under_another_loss():
    table, mean, _ = wiggly()
    counts = np.random.default_rng(3).poisson(np.exp(1.5 + mean))
    model = GroupSparseRegressor(terms=Terms(pairs=None), loss="poisson").fit(table, counts)
    assert {"x~~", "z"} <= set(model.selected_groups_)
    assert "other" not in model.selected_groups_


def steep(seed=1):
    """A polynomial that is steep where the rows end, in one of four normal variables."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((500, 4)), columns=list("abcd"))
    mean = table["b"] + np.polynomial.hermite_e.hermeval(table["a"].to_numpy(), [0, 0, 0.7, 0, 0.2, 0, 0.04, 0, 0.005])
    return table, mean.to_numpy(), mean.to_numpy() + 0.5 * rng.standard_normal(500)


def test_outermost_rows_that_are_held_out_do_not_cost_the_detail():
    table, mean, y = steep()
    model = GroupSparseRegressor(terms=Terms(pairs=None)).fit(table, y)
    assert set(model.selected_groups_) == {"a", "a~", "a~~", "b"}
    assert np.mean((model.predict(table) - mean) ** 2) < 0.04  # the noise of 25 columns is 0.0125
