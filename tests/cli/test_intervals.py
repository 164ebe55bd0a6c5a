"""`covey predict --interval` writes what the model's `predict` returns, beside the predictions."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import covey as library
from cli.running import covey, done, refused


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((90, 3)), columns=["a", "b", "c"]).round(6)
    noise = rng.standard_normal((90, 2))
    frame["y"], frame["z"] = frame["a"] + noise[:, 0], frame["a"] - noise[:, 1]
    frame["kind"] = np.where(frame["a"] + rng.logistic(size=90) > 0, "old", "new")
    frame["months"], frame["dead"] = rng.exponential(np.exp(-frame["a"])), rng.random(90) < 0.7
    frame["site"] = np.arange(90) % 2
    file = tmp_path_factory.mktemp("table") / "table.csv"
    frame.to_csv(file, index=False)
    return file


NAMES = ["y", "z", "kind", "months", "dead", "site"]


def fit(table, folder, *wanted, options=("--groups", "1"), selection="3"):
    unused = ",".join(name for name in NAMES if name not in wanted)
    done("fit", table, *wanted, "--drop", unused, *options, "--selection", selection, "--out", folder / "fit")
    return library.load(folder / "fit" / "model.skops")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("--target y", ["lower", "upper"]),
        ("--target y --target z", ["lower_y", "upper_y", "lower_z", "upper_z"]),
        ("--target kind", ["set"]),
        ("--time months --event dead --strata site", ["lower"]),
    ],
    ids=["numbers", "several responses", "classes", "survival times"],
)
def test_intervals_are_those_of_the_model(table, tmp_path, wanted, names):
    model, frame = fit(table, tmp_path, *wanted.split()), pd.read_csv(table)
    written = pd.read_csv(io.StringIO(done("predict", tmp_path / "fit", table, "--interval", "0.8").stdout))
    assert list(written)[-len(names) :] == names
    strata = {"strata": frame["site"].to_numpy()} if "site" in wanted else {}
    expected = np.asarray(model.predict(frame[["a", "b", "c"]], interval=0.8, **strata))
    if names == ["set"]:
        assert written["set"].tolist() == ["|".join(model.classes_[row]) for row in expected]
        assert set(written["set"]) == {"old", "new", "new|old"}
    else:  # of several responses, both bounds of each
        expected = np.moveaxis(np.atleast_2d(expected), 0, -1).reshape(len(frame), -1)
        np.testing.assert_allclose(written[names], expected)
    if names == ["lower", "upper"]:
        refused(covey("predict", tmp_path / "fit", table, "--interval", "0.99"), "--interval 0.99 needs at least 99")


@pytest.mark.parametrize("options", [("--groups", "1"), ()], ids=["groups", "terms"])
def test_columns_of_the_folds_models_are_needed_too(table, tmp_path, options):
    model = fit(table, tmp_path, "--target", "kind", options=options)
    # a column that some fold selects, and the model does not
    coefs = model.held_out_.coefs.toarray()
    coefs[0, -1] = 0.5
    model.held_out_ = replace(model.held_out_, coefs=sp.csr_array(coefs))
    library.save(model, tmp_path / "model.skops")
    last = model.feature_names_in_[-1] if options else model.expansion_.terms[-1].variables[0]
    assert last not in model.selected_groups_
    pd.read_csv(table).drop(columns=last).to_csv(tmp_path / "less.csv", index=False)
    done("predict", tmp_path / "model.skops", tmp_path / "less.csv")
    refused(covey("predict", tmp_path / "model.skops", tmp_path / "less.csv", "--interval", "0.8"), f"lacks {last!r}")


def test_a_criterion_holds_out_no_rows(table, tmp_path):
    fit(table, tmp_path, "--target", "y", selection="bic")
    words = "--selection bic holds out none: fit with folds, such as --selection 5"
    refused(covey("predict", tmp_path / "fit", table, "--interval", "0.8"), words)
