"""Models of raw tables work wherever scikit-learn's estimators do, and come back from files the same."""

import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import covey
from covey import (
    Curve,
    GroupSparseClassifier,
    GroupSparseCox,
    GroupSparseRegressor,
    Levels,
    Terms,
    nested_score,
    stability_selection,
)
from covey.evidence import knockoffs
from covey.persistence import ModelFileError, dump_bytes
from covey.selection import Folds, HoldOut

# rows far from those of the fit, or with new levels, are what many of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore::covey.terms.unusual.NewValuesWarning")

N = 160


def make_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, N),
            "dose": rng.standard_normal(N),
            "site": rng.choice(list("abc"), N),
            "seen": pd.date_range("2020-01-01", periods=N, freq="5D"),
            "none": 1.0,
        }
    )
    table.loc[::17, "dose"] = np.nan
    bent = np.sin(table["age"] / 8) + (table["site"] == "a") * (table["age"] - 40) / 10
    return table, (bent + 0.2 * rng.standard_normal(N)).to_numpy()


TABLE, Y = make_table()
TIMES = covey.survival(np.exp(-Y) + 0.1, np.arange(N) % 3 > 0)
PAIRS = Terms({"age": Curve(knots=5), "s*e": Levels(always=True)}, pairs="auto")
FEW = Folds(3, deals=1)
MODELS = {
    "dict": (GroupSparseRegressor(terms={"age": "curve", "d*": "drop"}, rule="predict", selection=FEW), Y),
    "pairs": (GroupSparseRegressor(terms=PAIRS, selection=FEW), Y),
    "pairs with one": (GroupSparseRegressor(terms=Terms(pairs={"with": "site"}), selection=FEW), Y),
    "classes": (GroupSparseClassifier(terms=Terms(pairs="auto"), selection=FEW), np.where(Y > 0, "up", "down")),
    "survival": (GroupSparseCox(terms="auto", selection=FEW), TIMES),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, y = MODELS[request.param]
    return clone(model).fit(TABLE, y), y


def test_pickle_and_file_predict_the_same(fitted, tmp_path):
    model, _ = fitted
    covey.save(model, tmp_path / "model.skops")
    new = TABLE.assign(age=TABLE["age"] + 30, site="unseen").iloc[:20]
    for same in (pickle.loads(pickle.dumps(model)), covey.load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(same.predict(TABLE), model.predict(TABLE))
        np.testing.assert_array_equal(same.predict(new), model.predict(new))
        assert same.expansion_.state() == model.expansion_.state()
        assert same.groups_ == model.groups_
        assert repr(same.terms) == repr(model.terms)
        assert str(same.summary()) == str(model.summary())


def test_grid_search_over_rules_and_terms():
    grid = {"rule": ["select", "predict"], "terms": [{"age": "drop"}, Terms(pairs="auto")]}
    found = GridSearchCV(GroupSparseRegressor(selection="holdout"), grid, cv=3, error_score="raise").fit(TABLE, Y)
    assert found.best_params_["terms"] == Terms(pairs="auto")
    assert found.best_estimator_.feature_names_in_.tolist() == list(TABLE)


def test_cross_val_score_of_a_pipeline():
    log = FunctionTransformer(lambda table: table.assign(age=np.log(table["age"])))
    model = make_pipeline(log, GroupSparseRegressor(terms=Terms(pairs=[("age", "site")]), selection=FEW))
    scores = cross_val_score(model, TABLE, Y, cv=3, error_score="raise")
    assert scores.min() > 0.8
    classes = GroupSparseClassifier(terms="auto", selection=FEW)
    assert cross_val_score(classes, TABLE, Y > 0, cv=3, error_score="raise").min() > 0.7


def test_a_pipeline_of_arrays_comes_back_from_a_file(tmp_path):
    columns = ColumnTransformer([("as it is", "passthrough", ["age", "site"])])
    model = make_pipeline(columns, GroupSparseRegressor(terms="auto")).fit(TABLE, Y)
    assert model[-1].feature_names_in_.tolist() == ["x0", "x1"]
    covey.save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(covey.load(tmp_path / "model.skops").predict(TABLE), model.predict(TABLE))


def test_refits_with_and_without_terms_leave_nothing_behind():
    numbers = TABLE[["age"]].assign(other=np.arange(N) % 7)
    model = GroupSparseRegressor(terms="auto").fit(TABLE, Y)
    model.set_params(terms=None, groups=1).fit(numbers.to_numpy(), Y)
    assert not hasattr(model, "expansion_")
    assert not hasattr(model, "feature_names_in_")
    expected = GroupSparseRegressor(groups=1).fit(numbers.to_numpy(), Y).predict(numbers.to_numpy())
    np.testing.assert_array_equal(model.predict(numbers.to_numpy()), expected)
    with pytest.raises(ValueError, match="Both terms and groups"):
        model.set_params(terms="auto").fit(TABLE, Y)
    model.set_params(groups=None).fit(TABLE, Y)
    np.testing.assert_array_equal(model.predict(TABLE), GroupSparseRegressor(terms="auto").fit(TABLE, Y).predict(TABLE))


@pytest.mark.parametrize("terms", ["auto", None])
def test_tags_say_what_a_table_may_hold(terms):
    tags = GroupSparseRegressor(terms=terms).__sklearn_tags__().input_tags
    assert tags.allow_nan == tags.categorical == tags.string == (not tags.sparse) == (terms is not None)


def test_validation_rows_are_a_raw_table():
    validation = (TABLE.iloc[:60], Y[:60])
    model = GroupSparseRegressor(terms=Terms(pairs="auto"), selection=HoldOut(validation=validation))
    model.fit(TABLE.iloc[60:], Y[60:])
    assert "age:site" in model.selected_groups_
    without = HoldOut(validation=(TABLE[["age"]].iloc[:60], Y[:60]))
    with pytest.raises(ValueError, match="no variables"):
        model.set_params(selection=without).fit(TABLE.iloc[60:], Y[60:])


def test_nested_folds_encode_their_training_rows_only():
    rare = TABLE.assign(site=np.where(np.arange(N) < 8, "rare", TABLE["site"]))
    folds = [(np.arange(8, N), np.arange(8)), (np.arange(N - 30), np.arange(N - 30, N))]
    result = nested_score(GroupSparseRegressor(terms="auto"), rare, Y, cv=folds, return_estimator=True)
    labels = [model.expansion_.encoding.variable("site").labels for model in result.estimators]
    assert labels == [("a", "b", "c"), ("a", "b", "c", "rare")]
    for model, (train, _) in zip(result.estimators, folds, strict=True):
        assert model.expansion_.encoding.variable("age").mean == pytest.approx(rare["age"].iloc[train].mean())
    assert set(result.references) == {"null", "lasso", "ridge"}


def test_nested_scores_of_raw_tables():
    model = GroupSparseRegressor(terms=Terms(pairs="auto"), selection=FEW)
    result = nested_score(model, TABLE, Y, scoring="r2", cv=3)
    assert result.mean > max(result.references["lasso"].mean, 0.9)
    rows = TABLE.to_numpy(dtype=object).tolist()
    assert nested_score(model, rows, Y, references=False, cv=3).mean > 0.9


def test_nested_scores_of_survival_times_and_of_own_references():
    model = GroupSparseCox(terms={"site": Levels(always=True)}, selection=FEW)
    assert nested_score(model, TABLE, TIMES, cv=3).mean > 0.7
    other = make_pipeline(ColumnTransformer([("age", "passthrough", ["age"])]), LinearRegression())
    result = nested_score(GroupSparseRegressor(terms="auto"), TABLE, Y, cv=3, references={"line": other})
    assert result.mean > result.references["line"].mean


def test_stability_selection_of_terms():
    terms = Terms({"s*e": Levels(always=True)}, pairs="auto")
    found = stability_selection(TABLE, Y, terms=terms, n_pairs=8, n_first=4, random_state=0)
    assert {"age", "age~", "age:site"} <= set(found.selected_groups)
    assert found.always_groups == ("site",)
    with pytest.raises(ValueError, match="Both terms and groups"):
        stability_selection(TABLE, Y, 2, terms="auto")


def test_knockoffs_copy_variables_and_refuse_pairs():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.standard_normal((N, 14)), columns=[f"v{j}" for j in range(14)]).assign(site=TABLE["site"])
    y = table.iloc[:, :10].sum(axis=1) + 0.3 * rng.standard_normal(N)
    terms = Terms({"v1*": "linear", "site": Levels(always=True)})
    found = knockoffs(table, y, terms=terms, fdr=0.2, random_state=0)
    assert found.groups.names == tuple(table.columns)
    assert found.always_groups == ("site",)
    assert {f"v{j}" for j in range(10)} <= set(found.selected_groups)
    with pytest.raises(ValueError, match="stability_selection"):
        knockoffs(table, y, terms=Terms(pairs=[("v0", "v1")]))


def forged(content, change):
    """A model file whose expansion is changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    schema = json.loads(members["schema.json"])
    node = schema["content"]["content"]["expansion_"]
    state = json.loads(json.loads(node["content"]))
    change(state)
    node["content"] = json.dumps(json.dumps(state))
    members["schema.json"] = json.dumps(schema).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    return out.getvalue()


def put(*keys, value):
    """A change that puts a value at a place in the state."""

    def change(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value

    return change


@pytest.fixture(scope="module")
def content():
    """A model file of a table with pairs."""
    return dump_bytes(GroupSparseRegressor(terms=Terms(pairs=[("age", "site")]), selection=FEW).fit(TABLE, Y))


AGE, SITE, SEEN = (("encoding", "fitted", place, 2) for place in (0, 2, 3))


@pytest.mark.parametrize(
    "change",
    [
        put(*AGE, "sd", value=0.0),
        put(*AGE, "mean", value="x"),
        put(*AGE, "mean", value=float("nan")),
        put(*AGE, "quantiles", value=[]),
        put(*AGE, "knots", value=[0.0, 0.0, 0.0, 0.0, 0.0]),
        put(*AGE, "values", value=[[1.0]]),
        put(*AGE, "name", value="other"),
        put(*AGE, "more", value=1),
        put(*SITE, "labels", value=["a", "a", "b"]),
        put(*SITE, "labels", value=["a", "b"]),
        put(*SITE, "shares", value=[0.1, 0.2]),
        put(*SITE, "other", value="z"),
        put(*SITE, "missing", value="z"),
        put(*SEEN, "seasons", 0, "period", value=0.0),
        put(*SEEN, "seasons", 0, "centres", value=[0.0, 0.0, 0.0]),
        put("encoding", "variables", value=["age"]),
        put("encoding", "variables", 1, value="age"),
        put("encoding", "dropped", value={"age": "constant"}),
        put("encoding", "fitted", 0, 1, value="formula"),
        put("encoding", "remarks", value=[1]),
        put("encoding", "pairs", "members", value=list(range(100_000))),
        put("encoding", "pairs", "listed", value=[[0, 99]]),
        put("encoding", "pairs", "listed", value=[[1, 0]]),
        put("encoding", "pairs", value={}),
        put("pairs", value=[[0, 99]]),
        put("pairs", value=[[2, 0]]),
        put("pairs", value=[]),
        put("depth", value=4),
        put("unlisted", value=[99]),
        put("unlisted", value=[0, 0]),
        put("ranges", value=[[0.0], [1.0]]),
        put("ranges", 0, 0, value=1e9),
        put("encoding", value=None),
    ],
)  # fmt: skip
def test_forged_expansions_are_refused(content, change, tmp_path):
    (tmp_path / "model.skops").write_bytes(forged(content, change))
    with pytest.raises(ModelFileError, match="damaged"):
        covey.load(tmp_path / "model.skops")
