"""What is saved comes back the same; what is foreign, hostile or damaged is refused before anything is created."""

import copy
import io
import json
import pickle
import re
import subprocess
import sys
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

import covey
from covey.persistence import ModelFileError, dump_bytes, import_skops
from covey.persistence.attributes import FITTED, PATH
from covey.selection import Discrepancy, HoldOut, InformationCriterion, Size


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 5)), columns=list("abcde"))
    frame["kind"] = rng.choice(["u", "v", "w"], 80)
    return frame, (frame["a"] - frame["b"] + 0.3 * rng.standard_normal(80)).to_numpy()


@pytest.fixture(scope="module")
def model(table):
    frame, y = table
    return covey.GroupSparseRegressor(groups=TERMS).fit(frame[list("abcde")], y)


TERMS = {"ab": ["a", "b"], "rest": ["c", "d", "e"]}


@pytest.mark.parametrize(
    "estimator",
    [
        covey.GroupSparseRegressor(groups=TERMS, selection=KFold(4, shuffle=True, random_state=1)),
        covey.GroupSparseRegressor(groups=covey.Groups.from_labels([7, "x", 7, 7, True]), rule="predict"),
        covey.GroupSparseRegressor(random_state=0),
        covey.GroupSparseRegressor(groups=1, selection=HoldOut(0.3, random_state=0)),
        covey.GroupSparseRegressor(groups=5, selection=InformationCriterion("bic")),
        covey.GroupSparseRegressor(groups=["p", "p", "q", "q", "q"], selection=Size(1), always=["q"]),
        covey.GroupSparseRegressor(groups=covey.TermGroups("abcde"), selection="ebic"),
        covey.GroupSparseRegressor(groups=1, selection=Discrepancy(0.5)),
    ],
    ids=lambda e: f"{type(e.groups).__name__}-{e.selection}",
)
def test_every_estimator_comes_back_the_same(estimator, table, tmp_path):
    frame, y = table
    X = frame[list("abcde")]
    estimator.fit(X, y)
    covey.save(estimator, tmp_path / "model.skops")
    same = covey.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(same.predict(X), estimator.predict(X))
    assert same.groups_ == estimator.groups_
    assert same.selected_groups_ == estimator.selected_groups_
    pd.testing.assert_frame_equal(same.group_table(), estimator.group_table())
    np.testing.assert_array_equal(same.path_.coefs.toarray(), estimator.path_.coefs.toarray())
    pd.testing.assert_frame_equal(same.candidates_, estimator.candidates_)
    np.testing.assert_array_equal(same.fold_frequencies_, estimator.fold_frequencies_)
    assert (same.recipe_, same.shrunk_, same.n_splits_) == (estimator.recipe_, estimator.shrunk_, estimator.n_splits_)


def test_a_pipeline_predicts_from_the_raw_table(table, tmp_path):
    frame, y = table
    holes = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.05)
    holes["kind"] = frame["kind"]
    columns = ColumnTransformer(
        [
            ("plain", SimpleImputer(strategy="median"), ["a", "b", "c"]),
            ("spline", make_pipeline(SimpleImputer(), SplineTransformer()), ["d"]),
            ("hot", OneHotEncoder(sparse_output=False), ["kind"]),
            ("as it is", "passthrough", []),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(columns, covey.GroupSparseRegressor(groups=covey.TermGroups(frame.columns))).fit(holes, y)
    covey.save(pipeline, tmp_path / "model.skops")
    np.testing.assert_array_equal(covey.load(tmp_path / "model.skops").predict(holes), pipeline.predict(holes))


def test_pickle_still_works(model, table):
    same = pickle.loads(pickle.dumps(model))
    assert same.groups_ == model.groups_
    assert hash(same.groups_) == hash(model.groups_)


def test_what_load_would_refuse_is_not_written(table, tmp_path):
    frame, y = table
    estimator = covey.GroupSparseRegressor(groups=lambda names: [name in "ab" for name in names])
    estimator.fit(frame[list("abcde")], y)
    with pytest.raises(ModelFileError, match="would not trust"):
        covey.save(estimator, tmp_path / "model.skops")
    estimator = covey.GroupSparseRegressor(selection=HoldOut(validation=(frame[list("abcde")], y)))
    with pytest.raises(ModelFileError, match=r"cannot be saved: selection= is or holds a table.*\.to_numpy"):
        covey.save(estimator.fit(frame[list("abcde")], y), tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="contains no covey estimator"):
        covey.save(Ridge(), tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        covey.load(tmp_path / "none.skops")


@pytest.mark.parametrize("content", [b"", b"\x80\x04N.", b"PK\x03\x04", b"column,group\na,1\n"])
def test_what_is_no_model_file(tmp_path, content):
    refuses(tmp_path, content, "not a model file")


def test_foreign_models_are_refused(tmp_path):
    import skops.io

    skops.io.dump(Ridge().fit([[0.0], [1.0]], [0, 1]), tmp_path / "ridge.skops")
    with pytest.raises(ModelFileError, match="does not contain a covey model"):
        covey.load(tmp_path / "ridge.skops")


def changed_member(content, ending, change):
    """The same file with the first member of this ending changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    name = next(name for name in members if name.endswith(ending))
    members[name] = change(members[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)
    return out.getvalue()


def rewritten(content, change):
    """The same file with its schema changed."""

    def change_schema(data):
        schema = json.loads(data)
        change(schema)
        return json.dumps(schema).encode()

    return changed_member(content, "schema.json", change_schema)


def refuses(folder, content, match, **options):
    """Assert that a file with this content is not loaded."""
    (folder / "model.skops").write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        covey.load(folder / "model.skops", **options)


def attributes(schema):
    return schema["content"]["content"]


HOSTILE = [
    {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
    {"__class__": "Popen", "__module__": "subprocess", "__loader__": "TypeNode"},
    {"__class__": "call", "__module__": "operator", "__loader__": "FunctionNode"},
]


@pytest.mark.parametrize("node", HOSTILE, ids=lambda node: node["__class__"])
def test_hostile_files_run_nothing(model, tmp_path, node):
    called = {
        "__class__": "partial",
        "__module__": "functools",
        "__loader__": "PartialNode",
        "content": {
            "func": node,
            **{
                part: {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": content}
                for part, content in (("args", f'["touch {tmp_path}/run"]'), ("kwds", "{}"), ("namespace", "null"))
            },
        },
    }

    def plant(schema):
        attributes(schema)["verbose"] = called

    refuses(tmp_path, rewritten(dump_bytes(model), plant), "does not trust")
    assert not (tmp_path / "run").exists()


def test_damaged_files_are_refused_at_every_place(model, tmp_path):
    content = dump_bytes(model)
    rng = np.random.default_rng(0)
    file = tmp_path / "model.skops"
    refused = 0
    for cut in np.linspace(1, len(content) - 1, 20).astype(int):
        file.write_bytes(content[:cut])
        with pytest.raises(ModelFileError):
            covey.load(file)
    for place in rng.integers(0, len(content), 60):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            same = covey.load(file)  # a byte of a zip file that means nothing, such as a date
        except ModelFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(same.coef_, model.coef_)
    assert refused > 40


def swap(schema):
    attributes(schema)["coef_"] = attributes(schema)["group_norms_"]


def deal_none(schema):
    attributes(schema)["n_deals_"] |= {"content": "0", "__id__": 0}


def drop_a_name(node):
    if isinstance(node, dict) and node.get("__class__") == "Groups":
        node["content"]["content"]["names"]["content"] = json.dumps('["ab"]')
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        drop_a_name(part)


@pytest.mark.parametrize(
    ("change", "words"),
    [(swap, "damaged"), (deal_none, "number of deals"), (drop_a_name, "damaged")],
    ids=["arrays that do not belong together", "folds that were dealt no times", "groups without a name"],
)
def test_what_does_not_agree_is_refused(model, tmp_path, change, words):
    refuses(tmp_path, rewritten(dump_bytes(model), change), words)


def test_saving_imports_neither_torch_nor_dask_nor_pytest():
    code = (
        "import sys; from covey.persistence import import_skops; import_skops()\n"
        "print([name for name in ('torch', 'dask', 'pytest') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def far_index(data):
    parts = dict(np.load(io.BytesIO(data)))
    parts["indices"][0] = 10**6
    out = io.BytesIO()
    np.savez(out, **parts)
    return out.getvalue()


def huge_header(data):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (10**11,)})
    return out.getvalue()


@pytest.mark.parametrize(("ending", "change"), [(".npz", far_index), (".npy", huge_header)], ids=["index", "header"])
def test_what_would_crash_the_process_is_refused(model, tmp_path, ending, change):
    refuses(tmp_path, changed_member(dump_bytes(model), ending, change), "damaged")


def test_a_file_that_inflates_is_refused_before_it_is_read(model, tmp_path):
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(2**21))
    content = changed_member(dump_bytes(model), ".npy", lambda data: zeros.getvalue())
    assert len(content) < 2**17
    refuses(tmp_path, content, r"too large.*larger largest=", largest=2**20)
    refuses(tmp_path, dump_bytes(model), "at most 100 are allowed", largest=100)


def test_one_member_that_many_objects_ask_for_counts_as_often(model, tmp_path):
    def ask_often(schema):
        attributes(schema)["verbose"] = [{"file": attributes(schema)["coef_"]["file"]}] * 1000

    refuses(tmp_path, rewritten(dump_bytes(model), ask_often), "arrays take more than", largest=120_000)


@pytest.mark.parametrize("part", ["t", "c"])
def test_splines_from_a_file_are_checked(table, tmp_path, part):
    frame, y = table
    step = SplineTransformer().fit(frame[["d"]])
    setattr(step.bsplines_[0], part, getattr(step.bsplines_[0], part)[:4].copy())
    basis = SplineTransformer().fit_transform(frame[["d"]])
    pipeline = make_pipeline(step, covey.GroupSparseRegressor(groups=1).fit(basis, y))
    refuses(tmp_path, import_skops().dumps(pipeline), "damaged")
    with pytest.raises(ModelFileError, match=r"covey\.load would refuse it"):
        covey.save(pipeline, tmp_path / "again.skops")


def test_models_that_compiled_code_trusts_are_neither_written_nor_read(table, tmp_path):
    import skops.io
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.feature_selection import SelectFromModel

    frame, y = table
    trees = SelectFromModel(RandomForestRegressor(2, random_state=0), max_features=2, threshold=-np.inf)
    pipeline = make_pipeline(trees, covey.GroupSparseRegressor()).fit(frame[list("abcde")], y)
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree"):
        covey.save(pipeline, tmp_path / "model.skops")
    skops.io.dump(pipeline, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree.*nothing was loaded"):
        covey.load(tmp_path / "model.skops")


@pytest.mark.parametrize("estimator", [covey.GroupSparseRegressor(), covey.GroupSparseClassifier(groups=2)])
def test_a_model_that_was_not_fitted_comes_back_too(estimator, tmp_path):
    covey.save(estimator, tmp_path / "model.skops")
    assert repr(covey.load(tmp_path / "model.skops")) == repr(estimator)


def test_a_file_with_attributes_of_another_version_is_refused(model, tmp_path):
    """A path that had more fields then, or a model that had fewer."""
    longer, shorter = copy.deepcopy(model), copy.deepcopy(model)
    vars(longer.path_)["step"] = 1.0
    del vars(shorter)["recipe_"]
    for other, name in ((longer, "step"), (shorter, "recipe_")):
        refuses(tmp_path, import_skops().dumps(other), f"another version of covey.*{name}")

    def with_a_type_that_is_gone(schema):
        attributes(schema)["path_"]["__class__"] = "PathState"

    refuses(
        tmp_path,
        rewritten(dump_bytes(model), with_a_type_that_is_gone),
        r"covey\.path\.PathState.*Another version of covey",
    )


def test_the_table_of_attributes_has_every_attribute_of_a_fitted_model(table):
    """What is not in the table would not be checked."""
    frame, y = table
    X, times = frame[list("abcde")], covey.survival(np.exp(y), y > -1)
    fits = (covey.GroupSparseRegressor(), y), (covey.GroupSparseClassifier(), y > 0), (covey.GroupSparseCox(), times)
    for estimator, response in fits:
        fitted = estimator.fit(X, response)
        name = f"{type(fitted).__module__}.{type(fitted).__qualname__}"
        # of several responses, and with constraints
        some = {"response_strengths_", "response_deviations_", "response_names_", "constraints_"}
        listed = {one for one in FITTED[name] if one.endswith("_")} - some
        of_terms = {"expansion_", "term_means_"}
        assert {one for one in vars(fitted) if one.endswith("_")} == listed - of_terms
        fitted = type(fitted)(terms="auto").fit(frame, response)
        assert {one for one in vars(fitted) if one.endswith("_")} == listed
        # all fields of a path are checked by their annotations; of arrays the shapes are checked, too
        arrays = {field.name for field in fields(fitted.path_) if re.search("rray", field.type)}
        assert arrays | {"n_outputs"} == set(PATH)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["squared", "poisson", "huber", "classes"])
def test_models_of_one_hot_columns_come_back(loss, seed, tmp_path):
    """Groups wake up at the same time, so that times of the path are equal."""
    rng = np.random.default_rng(seed)
    X = np.eye(40)[rng.integers(40, size=60)]
    if loss == "classes":
        model = covey.GroupSparseClassifier().fit(X, rng.integers(2, size=60))
    else:
        y = rng.poisson(2, 60) if loss == "poisson" else rng.standard_normal(60)
        model = covey.GroupSparseRegressor(loss=loss).fit(X, y)
    covey.save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(covey.load(tmp_path / "model.skops").predict(X), model.predict(X))


def test_save_refuses_what_load_refuses(model, tmp_path):
    for changes in ({"coef_": model.coef_ + 1}, {"path_": replace(model.path_, strengths=None)}):
        changed = pickle.loads(pickle.dumps(model))
        vars(changed).update(changes)
        with pytest.raises(ModelFileError, match=r"covey\.load would refuse it"):
            covey.save(changed, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [["a"], ["a", "b", "c"], [b"a", b"b"]])
def test_a_classifier_has_the_classes_of_its_coefficients(classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    model = covey.GroupSparseClassifier().fit(X, np.where(X[:, 0] > 0, "a", "b"))
    model.classes_ = np.array(classes)
    with pytest.raises(ModelFileError, match="classes_ do not belong to coef_"):
        covey.save(model, tmp_path / "model.skops")


@pytest.mark.parametrize("strata", [["p", "q"], np.array([])], ids=["list", "empty"])
def test_strata_are_an_array_of_labels(table, strata, tmp_path):
    frame, y = table
    model = covey.GroupSparseCox().fit(frame[["a", "b"]], covey.survival(np.exp(y), y > -1, strata=frame["kind"]))
    model.strata_ = strata
    with pytest.raises(ModelFileError, match="strata_ is not as it was written"):
        covey.save(model, tmp_path / "model.skops")
