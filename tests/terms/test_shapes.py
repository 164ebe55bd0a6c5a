"""Constraints on the effects of variables: increasing, convex and with bounded slopes, everywhere."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from covey import Curve, GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, Terms
from covey.selection import Size
from covey.terms.splines import basis, bends, slopes


def draw(seed=0, n=300):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "dose": rng.gamma(2.0, 2.0, n),
            "price": rng.uniform(1, 5, n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "site": rng.choice(list("abc"), n),
            "noise": rng.standard_normal(n),
        }
    )
    eta = np.tanh((table["age"] - 50) / 8) + 0.5 * np.sin(table["age"] / 4) + 0.04 * (table["dose"] - 4) ** 2
    eta = eta - np.log(table["price"]) + 0.3 * table["grade"].cat.codes
    return table, np.asarray(eta + 0.5 * rng.standard_normal(n)), rng


SHAPES = {"age": "increasing", "dose": ["convex"], "price": (-2, 0), "grade": ">=0", "noise": "concave"}


def responses(eta, rng):
    time = rng.exponential(np.exp(-eta))
    survival = np.array(list(zip(time < 3, np.minimum(time, 3), strict=True)), dtype=[("event", bool), ("time", float)])
    return {
        "squared": (GroupSparseRegressor(), eta),
        "huber": (GroupSparseRegressor(loss="huber"), eta),
        "binomial": (GroupSparseClassifier(), eta > np.median(eta)),
        "poisson": (GroupSparseRegressor(loss="poisson"), rng.poisson(np.exp(eta / 2))),
        "cox": (GroupSparseCox(), survival),
    }


def violations(model, table, coef=None):
    """By how much effects break the constraints of `SHAPES`, at most."""
    fitted = model.fitted_terms_
    coef = np.ravel(model.coef_) if coef is None else coef

    def effect(name, at):
        columns = model.encoding_.encode(name, at)
        first = model.encoding_.terms[model.encoding_.terms_of(name)[0]].columns.start
        return columns @ coef[first : first + columns.shape[1]]

    assert fitted is not None
    wide = np.linspace(-50, 150, 5001)
    worst = [-np.diff(effect("age", wide)).min()]
    slope = np.diff(effect("price", wide)) / np.diff(wide)
    worst += [slope.max(), -2 - slope.min(), -np.diff(effect("grade", ["low", "mid", "high"])).min()]
    for name, sign in (("dose", 1), ("noise", -1)):
        inside = np.linspace(table[name].min(), table[name].max(), 2001)
        worst.append(
            -sign * np.diff(sign * effect(name, inside), 2).min()
            if sign > 0
            else np.diff(effect(name, inside), 2).max()
        )
    return max(worst)


@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("kind", ["squared", "huber", "binomial", "poisson", "cox"])
def test_every_effect_keeps_its_shape_in_every_fold(kind, rule):
    table, eta, rng = draw()
    model, y = responses(eta, rng)[kind]
    model.set_params(terms="auto", constraints=SHAPES, rule=rule, selection=3)
    model.fit(table, y, sample_weight=rng.uniform(0.5, 2, len(table)))
    assert violations(model, table) <= 1e-12
    for one in [*np.asarray(model.held_out_.coefs.todense()), *np.asarray(model.path_.coefs.todense())]:
        assert violations(model, table, one) <= 1e-12
    assert not any(":" in term for term in model.expansion_.groups.names)


def test_without_constraints_the_same_effects_break_them():
    table, eta, _ = draw()
    model = GroupSparseRegressor(terms=Terms(pairs=None)).fit(table, eta)
    assert violations(model, table) > 1e-3


def test_a_monotone_curve_is_that_of_another_solver():
    table, eta, _ = draw()
    table = table[["age"]]
    terms = Terms({"age": Curve(knots=8, always=True)})
    model = GroupSparseRegressor(terms=terms, constraints={"age": "increasing"}, selection=Size(0)).fit(table, eta)
    number, Z = model.encoding_.variable("age"), model.encoding_.transform(table)
    inside = slopes(number.knots) @ number.values
    G = np.vstack([np.eye(1, Z.shape[1]), np.hstack([np.ones((len(inside), 1)), inside])])
    y = eta - eta.mean()
    found = minimize(
        lambda b: (0.5 * np.mean((y - Z @ b) ** 2), Z.T @ (Z @ b - y) / len(y)), np.eye(1, Z.shape[1])[0], jac=True,
        method="SLSQP", options={"ftol": 1e-16, "maxiter": 1000},
        constraints=[{"type": "ineq", "fun": lambda b: G @ b, "jac": lambda b: G}],
    )  # fmt: skip
    np.testing.assert_allclose(model.coef_, found.x, atol=1e-6)
    assert model.constraints_["binds"].tolist() == [True]
    assert "at the limit: age (increasing)" in str(model.summary())


def test_a_constraint_that_does_not_bind_changes_no_detail():
    rng = np.random.default_rng(10)
    Z = rng.uniform(-2, 2, (600, 30))
    wave = 1.2 * np.sin(7 * Z[:, 0]) * (Z[:, 0] > 0)
    y = wave + np.sin(3 * Z[:, 1]) + 1.5 * (Z[:, 2] > 0.3) + 0.3 * Z[:, 3] + rng.standard_normal(600)
    table = pd.DataFrame(Z, columns=[f"v{j}" for j in range(30)])
    free, far = (
        GroupSparseRegressor(terms=Terms(pairs=None), constraints=known).fit(table, y)
        for known in (None, {"v29": (-1e6, 1e6)})
    )
    assert "v0~~" in free.selected_groups_
    assert far.selected_groups_ == free.selected_groups_
    np.testing.assert_allclose(far.predict(table), free.predict(table), atol=1e-6)


def test_slopes_bound_the_slope_everywhere_and_bends_are_second_derivatives():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.uniform(-2, 2, 7))
    values = rng.standard_normal((7, 5))
    grid = np.linspace(knots[0] - 1, knots[-1] + 1, 20001)
    curves = basis(grid, knots) @ values
    steepness = np.diff(curves, axis=0) / np.diff(grid)[:, None]
    between = slopes(knots) @ values
    assert (steepness.max(axis=0) <= between.max(axis=0) + 1e-9).all()
    assert (steepness.min(axis=0) >= between.min(axis=0) - 1e-9).all()
    step = 1e-3
    at = np.array([basis(knots + d, knots) @ values for d in (-step, 0.0, step)])
    bend = (at[0] - 2 * at[1] + at[2]) / step**2
    np.testing.assert_allclose(bend[1:-1], (bends(knots) @ values)[1:-1], rtol=0.05, atol=0.05)


def test_dates_and_missing_values():
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=n), "x": rng.standard_normal(n)})
    table.loc[rng.random(n) < 0.1, "x"] = np.nan
    y = -np.arange(n) / 50 + np.where(table["x"].isna(), 2.0, -table["x"]) + 0.2 * rng.standard_normal(n)
    model = GroupSparseRegressor(terms=Terms(pairs=None), constraints={"day": "decreasing", "x": "<=0"}).fit(table, y)
    assert np.diff(model.effect("day").effect).max() <= 1e-12
    effect = model.effect("x")
    assert np.diff(effect.effect).max() <= 1e-12
    assert effect.missing > 1  # a flag is no slope


def test_bounds_that_exclude_zero_need_always():
    table, eta, _ = draw()
    with pytest.raises(ValueError, match=r">=1 for 'age' excludes zero.*always=\['age'\]"):
        GroupSparseRegressor(terms="auto", constraints={"age": ">=1"}).fit(table, eta)
    model = GroupSparseRegressor(
        terms=Terms(pairs=None), constraints={"age": (0.05, None)}, always=["age"], selection=3
    )
    grid = np.linspace(0, 100, 2001)
    slope = np.diff(model.fit(table, eta).effect("age", at=grid).effect) / np.diff(grid)
    assert slope.min() >= 0.05 - 1e-12


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"agee": "increasing"}, "no variable 'agee'; did you mean 'age'"),
        ({"site": "increasing"}, r"'site' is a category without an order.*ordered=True"),
        ({"site": ">=0"}, "'site' is a category without an order"),
        ({"age": ["increasing", "<=0"]}, "leaves no choice for 'age'"),
        ({"a*": "increasing", "*e": "decreasing"}, "contradict each other for 'age'"),
        ({"constant": ">=0"}, "the variable 'constant' is left out: constant"),
    ],
)
def test_wrong_constraints_are_refused(constraints, message):
    table, eta, _ = draw()
    with pytest.raises(ValueError, match=message):
        GroupSparseRegressor(terms="auto", constraints=constraints).fit(table.assign(constant=1.0), eta)


def test_pairs_of_constrained_variables_are_left_out_or_refused():
    table, eta, _ = draw()
    model = GroupSparseRegressor(terms="auto", constraints={"age": "increasing"}, selection=3).fit(table, eta)
    pairs = [name for name in model.groups_.names if ":" in name]
    assert pairs
    assert not any("age" in name for name in pairs)
    assert any("Variables with constraints are in no pairs: 'age'" in remark for remark in model.encoding_.remarks)
    for wanted in ([("age", "site")], {"with": "age"}):
        with pytest.raises(ValueError, match="pairs: 'age' has a constraint"):
            GroupSparseRegressor(terms=Terms(pairs=wanted), constraints={"age": "increasing"}).fit(table, eta)
    for pair in ("age:site", ("age", "site")):
        with pytest.raises(ValueError, match="is a pair, and pairs take no constraints"):
            GroupSparseRegressor(terms="auto", constraints={pair: ">=0"}).fit(table, eta)
