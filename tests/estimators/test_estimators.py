"""The scikit-learn front."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from covey import Groups, GroupSparseClassifier, GroupSparseRegressor, TermGroups
from covey.datasets import make_group_sparse
from covey.selection import Size
from estimator_problems import noisy_problem

# Held-out rows are chosen by their positions, and these checks put the repeated rows in another order.
BY_POSITION = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "held-out rows are chosen by position",
)


@parametrize_with_checks(
    [
        GroupSparseRegressor(),
        GroupSparseRegressor(selection="ebic"),
        GroupSparseRegressor(selection=3, rule="predict"),
        GroupSparseRegressor(selection="holdout"),
    ],
    expected_failed_checks=lambda model: BY_POSITION if model.selection == "holdout" else {},
)
@pytest.mark.filterwarnings("ignore:y has only the values 0 and 1")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_group_sparse(120, 60, 3, design="gaussian", active=4, values=1.0, sigma=0.5, random_state=0)


def fit(data, **options):
    return GroupSparseRegressor(groups=data.groups, **options).fit(data.X, data.y)


def test_the_active_groups_are_found_and_not_shrunk(data):
    model = fit(data)
    assert model.coef_.shape == (60,)
    assert isinstance(model.intercept_, float)
    assert model.n_features_in_ == 60
    assert set(model.selected_groups_) >= {0, 1, 2, 3}
    assert model.score(data.X, data.y) > 0.9
    assert not model.shrunk_
    assert abs(model.coef_ - data.w_star).max() < 0.3


def test_masks_are_splits_too(data):
    mask = np.arange(120) < 60
    masks = [(mask, ~mask), (~mask, mask)]
    positions = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in masks]
    np.testing.assert_array_equal(fit(data, selection=masks).coef_, fit(data, selection=positions).coef_)


def test_another_seed_deals_rows_otherwise():
    X, y, groups = noisy_problem("strong")
    first, other = (GroupSparseRegressor(groups, random_state=seed).fit(X, y) for seed in (None, 1))
    assert not np.allclose(first.candidates_["fold_0"].iloc[0], other.candidates_["fold_0"].iloc[0])


def test_the_summary_says_how_the_model_was_made(data):
    model = fit(data)
    text = str(model.summary())
    assert f"{len(model.selected_groups_)} of 20 groups selected" in text
    assert f"Model: {model.recipe_}; coefficients are not shrunk." in text
    assert "5 of 5" in text
    X, y, groups = noisy_problem("strong")
    shrunk = GroupSparseRegressor(groups, rule="predict").fit(X, y)
    assert shrunk.shrunk_
    text = str(shrunk.summary())
    assert f"Model: {shrunk.recipe_}; coefficients are shrunk." in text
    empty = str(fit(data, selection=Size(0)).summary())
    assert "0 of 20 groups selected" in empty
    assert "Model: no group" in empty


def test_verbose_tells_what_was_chosen(data, capsys):
    model = fit(data, verbose=1)
    assert f"{len(model.selected_groups_)} of 20 groups: {model.recipe_}" in capsys.readouterr().out


CASES = {
    "one column": lambda rng, X, y: (X[:, :1], y, 1),
    "three rows": lambda rng, X, y: (X[:3], y[:3], 3),
    "two rows": lambda rng, X, y: (X[:2], y[:2], 3),
    "wide": lambda rng, X, y: (rng.standard_normal((30, 600)), y, 3),
    "group larger than n": lambda rng, X, y: (rng.standard_normal((30, 100)), y, 50),
    "equal columns": lambda rng, X, y: (np.repeat(X[:, :1], 6, axis=1), y, 3),
    "zero group": lambda rng, X, y: (X * [0, 0, 0, 1, 1, 1], y, 3),
    "no column varies": lambda rng, X, y: (np.ones((30, 6)), y, 3),
    "copied group": lambda rng, X, y: (X[:, [0, 1, 2, 0, 1, 2]], X[:, 0] + 0.1 * y, 3),
    "equal rows": lambda rng, X, y: (np.repeat(X[:1], 30, axis=0), y, 3),
    "y of two values": lambda rng, X, y: (X, (y > 0).astype(float), 3),
    "one row differs": lambda rng, X, y: (X, np.eye(30)[0], 3),
    "exact": lambda rng, X, y: (X, X[:, 0] - X[:, 1], 3),
}


@pytest.mark.filterwarnings("ignore:y has only the values 0 and 1")
@pytest.mark.parametrize("options", [{}, {"rule": "predict"}, {"selection": "ebic"}], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_degenerate_data_give_finite_answers(case, options):
    rng = np.random.default_rng(0)
    X, y, groups = CASES[case](rng, rng.standard_normal((30, 6)), rng.standard_normal(30))
    model = GroupSparseRegressor(groups=groups, **options).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X)).all()
    if case == "zero group":
        assert not model.coef_[:3].any()
    if case in ("equal rows", "no column varies"):
        assert model.selected_groups_ == []
    if case == "copied group" and options.get("rule") != "predict":
        assert len(model.selected_groups_) == 1
    if case == "exact":
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
        assert options.get("rule") == "predict" or model.selected_groups_ == [0]


def test_small_arrays_take_a_shorter_way_to_the_same_answer(data):
    model = GroupSparseRegressor(3).fit(data.X, data.y)
    row = data.X[:1]
    np.testing.assert_array_equal(model.predict(row), model.predict(row.tolist()))
    np.testing.assert_allclose(model.predict(row), model.predict(np.asfortranarray(data.X))[:1], rtol=1e-12)
    for bad in (np.where(np.arange(row.size) == 2, np.nan, row), row[:, 1:], row[:0], row[0], row * np.inf, row + 1j):
        with pytest.raises(ValueError) as error:
            model.predict(bad)
        if np.isrealobj(bad) and bad.ndim == 2:
            with pytest.raises(ValueError, match=re.escape(str(error.value).splitlines()[0])):
                model.predict(pd.DataFrame(bad).to_numpy(dtype=object))
    named = GroupSparseRegressor(3).fit(pd.DataFrame(data.X).rename(columns=str), data.y)
    with pytest.warns(UserWarning, match="valid feature names"):
        named.predict(row)


def test_coefficients_have_names_and_one_order_holds_everywhere(data):
    X = pd.DataFrame(data.X).rename(columns=lambda j: f"x{j}")
    model = GroupSparseRegressor(3).fit(X, data.y)
    table = model.coefficients()
    assert table["column"].tolist() == ["(intercept)", *X.columns]
    assert table["group"].iloc[1:].tolist() == [model.groups_.names[l] for l in model.groups_.labels]
    prediction = table["coefficient"].iloc[0] + X @ table["coefficient"].iloc[1:].to_numpy()
    np.testing.assert_allclose(prediction, model.predict(X), rtol=1e-9)
    strengths = model.group_table()["strength"].to_numpy()
    assert (np.diff(strengths) <= 0).all()
    assert model.group_table().index.tolist() == model.selected_groups_
    overlapping = (
        GroupSparseRegressor(Groups.from_lists([[0, 1], [1, 2]], 3, overlap=True), selection="bic")
        .fit(data.X[:, :3], data.y)
        .coefficients()
    )
    assert overlapping["group"].tolist() == [None, "0", "0, 1", "1"]


def test_coefficients_of_classes_and_of_terms():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 60, 120), "site": rng.choice(list("ab"), 120)})
    y = np.where(table["age"] + 5 * rng.standard_normal(120) > 40, "old", "young")
    model = GroupSparseClassifier(terms="auto", selection="bic").fit(table, y)
    found = model.coefficients()
    assert found.columns.tolist() == ["column", "term", "coefficient", "odds_ratio"]
    assert found["term"].iloc[1:].isin(model.selected_groups_).all()
    several = (
        GroupSparseClassifier(selection="bic").fit(table[["age"]], np.digitize(table["age"], [30, 45])).coefficients()
    )
    assert [name for name in several if name.startswith("coefficient")] == [
        "coefficient_0",
        "coefficient_1",
        "coefficient_2",
    ]


def test_a_model_whose_likelihood_is_infinite_has_one_name():
    X = np.random.default_rng(0).standard_normal((60, 6))
    model = GroupSparseClassifier().fit(X, X[:, 0] > 0)
    assert "is infinite" in model.recipe_
    assert model.candidates_.query("chosen")["recipe"].tolist() == [model.recipe_]


def test_blocks_of_a_column_transformer_stay_whole():
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 80, n), "town": rng.choice(list("uvw"), n), "noise": rng.standard_normal(n)}
    )
    y = np.sin(frame["age"] / 10) + frame["town"].map({"u": 0.0, "v": 1.0, "w": -1.0}) + 0.1 * rng.standard_normal(n)
    columns = ColumnTransformer(
        [("spline", SplineTransformer(5), ["age", "noise"]), ("hot", OneHotEncoder(sparse_output=False), ["town"])]
    ).set_output(transform="pandas")
    model = make_pipeline(columns, GroupSparseRegressor(groups=TermGroups(frame.columns))).fit(frame, y)
    assert set(model[-1].selected_groups_) == {"age", "town"}
    assert model.score(frame, y) > 0.9
    fitted = TermGroups.from_transformer(columns)
    assert fitted == TermGroups(frame.columns)
    assert Groups.coerce(fitted, 17, model[-1].feature_names_in_).sizes.tolist() == [7, 7, 3]


def test_a_transformer_that_is_named_after_a_variable_does_not_take_the_columns_of_others():
    frame = pd.DataFrame({"region": list("nsew") * 5, "sex": list("fmmff") * 4})
    columns = ColumnTransformer([("region", OneHotEncoder(sparse_output=False), ["region", "sex"])]).fit(frame)
    groups = TermGroups(frame.columns)(columns.get_feature_names_out())
    assert groups == ["region"] * 4 + ["sex"] * 2
    assert TermGroups(["sex", "x"])(["sex__x", "x_0"]) == ["sex", "x"]  # no prefix, but a level that begins with _
