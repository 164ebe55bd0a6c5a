"""Fits under constraints: against other solvers, and every model of every split keeps them."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear, minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, load, save, stability_selection
from covey.evidence import band, test_groups
from covey.losses import MultiQuantile, Quantile
from covey.selection import Folds, Size


def draw(seed=0, n=120, n_groups=12, size=3, noise=1.0):
    """Columns that are correlated within and between groups, three of which matter, and a linear predictor."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_groups * size)) + 0.7 * rng.standard_normal((n, 1))
    w = np.zeros(n_groups * size)
    w[: 3 * size] = rng.choice([-1.0, 1.0], 3 * size) * rng.uniform(0.3, 1.0, 3 * size)
    return X, w, X @ w + noise * rng.standard_normal(n), rng


def survival(eta, rng):
    time = rng.exponential(np.exp(-eta / 2))
    censored = rng.exponential(np.median(time) * 3, eta.size)
    return np.array(
        list(zip(time <= censored, np.minimum(time, censored), strict=True)), dtype=[("event", bool), ("time", float)]
    )


def responses(eta, rng):
    return {
        "squared": (GroupSparseRegressor(), eta),
        "binomial": (GroupSparseClassifier(), rng.random(eta.size) < 1 / (1 + np.exp(-eta))),
        "poisson": (GroupSparseRegressor(loss="poisson"), rng.poisson(np.exp(np.clip(eta / 3, -3, 3)))),
        "cox": (GroupSparseCox(), survival(eta, rng)),
    }


def negative_log_likelihood(kind, y, Z):
    """The mean negative log-likelihood of coefficients (the intercept first, except for Cox) and its gradient."""
    n = len(Z)
    if kind == "cox":
        order = np.argsort(-y["time"], kind="stable")
        Z, event = Z[order], y["event"][order]

        def cox(b):
            eta = Z @ b
            risk = np.exp(eta)
            total, sums = np.cumsum(risk), np.cumsum(risk[:, None] * Z, axis=0)
            value = (np.log(total) - eta)[event].sum()
            return value / n, ((sums / total[:, None]) - Z)[event].sum(axis=0) / n

        return cox
    A = np.column_stack([np.ones(n), Z])

    def plain(b):
        eta = A @ b
        if kind == "squared":
            return 0.5 * np.mean((y - eta) ** 2), A.T @ (eta - y) / n
        if kind == "binomial":
            return np.mean(np.logaddexp(0, eta) - y * eta), A.T @ (1 / (1 + np.exp(-eta)) - y) / n
        return np.mean(np.exp(eta) - y * eta), A.T @ (np.exp(eta) - y) / n

    return plain


def solved(kind, y, X, columns, rows, low):
    """The minimiser on some columns under ``rows @ coef >= low``, by scipy."""
    scale = X[:, columns].std(axis=0)
    first = 0 if kind == "cox" else 1
    objective = negative_log_likelihood(kind, y, X[:, columns] / scale)
    A = np.hstack([np.zeros((len(rows), first)), rows / scale])
    start = np.zeros(first + len(columns))
    found = minimize(
        objective, start, jac=True, method="SLSQP", options={"ftol": 1e-15, "maxiter": 1000},
        constraints=[{"type": "ineq", "fun": lambda b: A @ b - low, "jac": lambda b: A}],
    )  # fmt: skip
    return found.x[first:] / scale


@pytest.mark.parametrize("kind", ["squared", "binomial", "poisson", "cox"])
@pytest.mark.parametrize("seed", [0, 1])
def test_coefficients_on_equal_supports_are_those_of_another_solver(kind, seed):
    X, _, eta, rng = draw(seed, n=300)
    model, y = responses(eta, rng)[kind]
    signs = {l: ">=0" if l % 2 else "<=0" for l in range(3)} | {3: (-0.1, 0.05), 4: "increasing"}
    model.set_params(groups=3, constraints=signs, selection=Size(5), always=[3, 4]).fit(X, y)
    columns = np.flatnonzero(np.repeat(np.isin(np.arange(12), model.selected_groups_), 3))
    rows, low = [], []
    for i, j in enumerate(columns):
        unit = np.eye(len(columns))[i]
        if j < 9:
            rows.append(unit if (j // 3) % 2 else -unit)
            low.append(0.0)
        elif j < 12:
            rows += [unit, -unit]
            low += [-0.1, -0.05]
        elif j in (13, 14):
            rows.append(unit - np.eye(len(columns))[i - 1])
            low.append(0.0)
    expected = solved(kind, y, X, columns, np.array(rows), np.array(low))
    assert not model.shrunk_
    np.testing.assert_allclose(model.coef_.ravel()[columns], expected, atol=1e-6, rtol=1e-6)
    binding = model.constraints_.set_index("name")["binds"]
    assert binding.loc[["3", "4"]].any()


def kept(coef, size=3):
    """Whether the constraints of `LIMITS` are kept to 1e-12 by coefficients of groups of three columns."""
    first, second, third, fourth, rest = coef[:3], coef[3:6], coef[6:9], coef[9:12], coef[12:]
    return (
        first.min() >= -1e-12 and second.max() <= 1e-12 and np.diff(third).min() >= -1e-12
        and fourth.min() >= -0.2 - 1e-12 and fourth.max() <= 0.1 + 1e-12 and rest.min() >= -1e-12
    )  # fmt: skip


LIMITS = {0: ">=0", 1: "<=0", 2: "increasing", 3: (-0.2, 0.1)} | dict.fromkeys(range(4, 12), ">=0")


@pytest.mark.parametrize("rule", ["select", "predict"])
@pytest.mark.parametrize("kind", ["squared", "binomial", "poisson", "cox"])
def test_every_model_of_every_fold_keeps_the_constraints(kind, rule):
    X, _, eta, rng = draw(3, n=150, noise=2.0)
    model, y = responses(eta, rng)[kind]
    model.set_params(groups=3, constraints=LIMITS, rule=rule, selection=Folds(3, deals=1))
    model.fit(X, y, sample_weight=rng.uniform(0.5, 2.0, len(X)))
    assert kept(np.ravel(model.coef_))
    for one in np.asarray(model.path_.coefs.todense()):
        assert kept(one)
    for one in np.asarray(model.held_out_.coefs.todense()):
        assert kept(one)


@pytest.mark.parametrize("rule", ["select", "predict"])
def test_several_responses_keep_signs_and_shapes_each(rule):
    X, _, eta, rng = draw(7, n=100)
    Y = np.column_stack([eta, -eta, X[:, 0] - X[:, 5] + rng.standard_normal(100)]) * [1.0, 1e3, 1e-3]
    signs = {0: ">=0", 1: "<=0", 2: "increasing"} | dict.fromkeys(range(4, 12), ">=0")
    model = GroupSparseRegressor(3, constraints=signs, rule=rule, selection=Folds(3, deals=1)).fit(X, Y)
    for coefs in (model.coef_, model.path_.coefs.todense(), model.held_out_.coefs.todense()):
        for one in np.asarray(coefs).reshape(-1, 3, 36):
            in_units = one / [[1.0], [1e3], [1e-3]]
            in_units[:, 9:12] = 0.0  # free
            assert all(kept(each) for each in in_units)
    assert model.constraints_.set_index("name").loc["0", "binds"]


def test_several_responses_have_the_coefficients_that_each_has_alone():
    X, _, eta, rng = draw(8, n=150, n_groups=4)
    Y = np.column_stack([eta, 50 * (X[:, 0] + rng.standard_normal(150))])
    signs = {"*": ">=0", 2: ["increasing", ">=0"]}
    model = GroupSparseRegressor(3, constraints=signs, always=[0, 1, 2], selection=Size(1)).fit(X, Y)
    # increments of the third group have signs
    T = np.eye(12)
    T[6:9, 6:9] = np.tril(np.ones((3, 3)))
    for y, coef in zip(Y.T, model.coef_, strict=True):
        expected = T @ lsq_linear((X - X.mean(axis=0)) @ T, y - y.mean(), (0, np.inf), method="bvls", tol=1e-15).x
        np.testing.assert_allclose(coef, expected, atol=1e-9 * np.std(y))


def test_several_quantiles_keep_the_constraints_each():
    X, _, eta, _ = draw(9, n=120, n_groups=6)
    limits = {0: ">=0", 1: "<=0", 2: "increasing", 3: (-0.2, 0.1), 4: ">=0", 5: ">=0"}
    loss = MultiQuantile([0.2, 0.8])
    model = GroupSparseRegressor(3, loss=loss, constraints=limits, selection=Folds(3, deals=1)).fit(X, eta)
    for one in (*model.coef_, *np.asarray(model.path_.coefs.todense()).reshape(-1, 18)):
        assert kept(one)
    model.set_params(selection=Size(2), always=[0, 3]).fit(X, eta)
    each = [GroupSparseRegressor(3, loss=Quantile(q, model.loss_.scale), constraints=limits) for q in (0.2, 0.8)]
    for one, coef in zip(each, model.coef_, strict=True):
        groups = [l for l in model.selected_groups_ if l not in (0, 3)]
        one.set_params(always=[0, 3, *groups], selection=Size(0)).fit(X, eta)
        np.testing.assert_allclose(one.coef_, coef, atol=1e-6)


def test_a_group_with_the_wrong_sign_stays_out_and_its_constraint_binds():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 6)), columns=["price", "media1", "media2", "a", "b", "c"])
    y = 2 * X["price"] + X["media1"] - X["a"] + 0.5 * rng.standard_normal(200)
    model = GroupSparseRegressor(constraints={"price": "<=0", "media*": ">=0"}).fit(X, y)
    assert set(model.selected_groups_) == {"media1", "a"}
    table = model.constraints_.set_index("name")
    assert table["binds"].to_dict() == {"price": True, "media1": False, "media2": False}
    assert table["pressure"]["price"] > 5
    assert "price (<=0)" in str(model.summary())
    assert GroupSparseRegressor().fit(X, y).selected_groups_[0] == "price"


def test_constraints_that_do_not_bind_change_nothing():
    X, _, eta, _ = draw(1, n=200, noise=0.5)
    free = GroupSparseRegressor(3).fit(X, eta)
    wide = GroupSparseRegressor(3, constraints={"*": (-50, 50)}).fit(X, eta)
    assert wide.selected_groups_ == free.selected_groups_
    np.testing.assert_allclose(wide.coef_, free.coef_, atol=1e-8)
    assert not wide.constraints_["binds"].any()


def test_columns_that_repeat_others_may_go_the_other_way():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 2))
    X = np.column_stack([x[:, 0], -x[:, 0], x[:, 1]])
    model = GroupSparseRegressor(constraints={"*": ">=0"}).fit(X, -x[:, 0] + 0.1 * rng.standard_normal(100))
    assert model.selected_groups_ == [1]
    assert model.coef_[1] > 0.9


def test_bounds_that_exclude_zero_are_for_groups_that_are_always_in():
    X, _, eta, _ = draw(2)
    with pytest.raises(ValueError, match=r"1 to 2 for 5 excludes zero.*always=\[5\]"):
        GroupSparseRegressor(3, constraints={5: (1, 2)}).fit(X, eta)
    for kind, (model, y) in responses(eta, np.random.default_rng(1)).items():
        model.set_params(groups=3, constraints={5: (1, 2)}, always=[5], selection=3).fit(X, y)
        inside = np.ravel(model.coef_)[15:18]
        assert inside.min() >= 1, kind
        assert inside.max() <= 2, kind


def test_a_column_of_a_group_and_a_list():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((150, 8)), columns=[f"{g}_{j}" for g in "ab" for j in range(4)])
    y = X.to_numpy() @ np.array([-1, 0.2, 2, 0.5, 1, 1, 1, 1.0]) + 0.1 * rng.standard_normal(150)
    model = GroupSparseRegressor("_", constraints={"a_0": ">=0", "b": ["increasing", "concave", (None, 0.9)]}).fit(X, y)
    coef = pd.Series(model.coef_, X.columns)
    assert coef["a_0"] == 0.0
    assert coef["a_2"] > 1.5
    assert np.diff(coef[4:]).min() >= -1e-12
    assert np.diff(coef[4:], 2).max() <= 1e-12
    assert coef[4:].max() <= 0.9
    assert model.constraints_["constraint"].tolist() == [">=0", "increasing, concave, <=0.9"]
    assert model.constraints_["binds"].all()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"prise": "<=0"}, "no group or column 'prise'; did you mean 'price'"),
        ({"x*": "<=0"}, "no group or column that matches 'x[*]'"),
        ({"p*": "<=0", "*e": ">=0"}, r"patterns 'p\*' and '\*e' contradict each other for 'price'"),
        ({"price": (2, 0)}, r"'price': the bounds \(2, 0\) are reversed: give \(0, 2\)"),
        ({"price": (1, 1)}, "leave one value: give a fixed effect as an offset"),
        ({"price": [">=0", "<=0"]}, "leaves no choice"),
        ({"price": ["increasing", "decreasing"]}, "cannot be both increasing and decreasing"),
        ({"price": ["convex", "concave"]}, "cannot be both convex and concave"),
        ({"price": "convex"}, "'price' has 1 column, and 'convex' needs at least 3"),
        ({"price": "positive"}, "must be '>=0', '<=0', bounds such as"),
        ({"price": (1, "a")}, "must be '>=0', '<=0', bounds such as"),
        ({"price": []}, "an empty list"),
        ({"price": [0, None]}, r"bounds are a tuple: give \(0, None\)"),
        ({"price": 0}, "must be '>=0', '<=0', bounds such as"),
        (["price"], "constraints must be a dict such as"),
    ],
)  # fmt: skip
def test_wrong_constraints_are_refused(constraints, message):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((40, 3)), columns=["price", "media", "dose"])
    with pytest.raises(ValueError, match=message):
        GroupSparseRegressor(constraints=constraints).fit(X, X["price"])


def test_an_exact_name_settles_what_patterns_disagree_about():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 2)), columns=["price", "dose"])
    model = GroupSparseRegressor(constraints={"p*": "<=0", "*e": ">=0", "price": ">=0"}).fit(X, X["price"])
    assert model.selected_groups_ == ["price"]


def test_they_are_cloned_searched_and_saved(tmp_path):
    X, _, eta, _ = draw(0, n=80)
    model = GroupSparseRegressor(3, constraints={0: ">=0", 3: (0, 2)}, selection=3)
    assert clone(model).constraints == model.constraints
    search = GridSearchCV(model, {"constraints": [None, {"*": ">=0"}]}, cv=2).fit(X, eta)
    assert search.best_params_["constraints"] is None  # half of the true signs are negative
    fitted = model.fit(X, eta)
    save(fitted, tmp_path / "model.skops")
    other = load(tmp_path / "model.skops")
    pd.testing.assert_frame_equal(other.constraints_, fitted.constraints_)
    assert other.constraints == fitted.constraints
    np.testing.assert_array_equal(other.coef_, fitted.coef_)
    fitted.set_params(constraints=None).fit(X, eta)
    assert not hasattr(fitted, "constraints_")


def test_far_groups_and_compressed_rows_give_the_same_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1500))
    y = X[:, :4] @ [2.0, -2.0, 1.5, 1.0] + 0.5 * rng.standard_normal(60)
    model = GroupSparseRegressor(constraints={"*": ">=0"}).fit(X, y)
    assert 1 not in model.selected_groups_
    assert model.coef_.min() >= 0
    assert {0, 2} <= set(model.selected_groups_)
    tall = rng.standard_normal((4000, 12))
    y = tall @ np.tile([1.0, -1.0, 0.0], 4) + rng.standard_normal(4000)
    model = GroupSparseRegressor(constraints={"*": ">=0"}).fit(tall, y)
    assert set(model.selected_groups_) == {0, 3, 6, 9}


def test_half_samples_select_under_constraints():
    X, _, _, rng = draw(n=120, n_groups=60, size=1)
    y = 2 * X[:, 0] + 2 * X[:, 1] + rng.standard_normal(120)
    turned = {0: "<=0"}
    assert 0 not in stability_selection(X, y, constraints=turned, n_pairs=2, random_state=0).selected_groups
    tests = test_groups(GroupSparseRegressor(constraints=turned), X, y)
    assert tests.p_values[0] == 1
    assert "two-sided" in tests.remarks[0]


def test_a_band_refuses_constraints():
    X, _, y, _ = draw()
    with pytest.raises(ValueError, match="set_params\\(constraints=None\\)"):
        band(GroupSparseRegressor(terms="auto", constraints={"*": "increasing"}), pd.DataFrame(X), y, of=0)


def test_constraints_that_keep_everything_out_leave_the_null_model():
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((60, 6)))
    y = -X.sum(axis=1) + 0.1 * rng.standard_normal(60)
    for rule in ("select", "predict"):
        model = GroupSparseRegressor(6, constraints={0: ["<=0", "convex"]}, rule=rule).fit(X, -y)
        assert not model.coef_.any()
        np.testing.assert_allclose(model.predict(X), -y.mean())
