"""`covey predict --interval` writes what the model's `predict` returns, beside the predictions."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import covey as library
from cli.running import covey, refused


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


def predicted(table, folder, *target, options=("--groups", "1"), selection="3"):
    """The table that is written with intervals, and the model."""
    names = ["y", "z", "kind", "months", "dead", "site"]
    drop = [word for name in names if name not in target for word in ("--drop", name)]
    made = covey("fit", table, *target, *drop, *options, "--selection", selection, "--out", folder / "fit")
    assert made.exit_code == 0, made.output
    result = covey("predict", folder / "fit", table, "--interval", "0.8")
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout)), library.load(folder / "fit" / "model.skops")


def test_numbers(table, tmp_path):
    written, model = predicted(table, tmp_path, "--target", "y")
    assert list(written) == ["prediction", "lower", "upper"]
    expected = model.predict(pd.read_csv(table)[["a", "b", "c"]], interval=0.8)
    np.testing.assert_allclose(written[["lower", "upper"]].to_numpy().T, expected)
    refused(covey("predict", tmp_path / "fit", table, "--interval", "0.99"), "--interval 0.99 needs at least 99")


@pytest.mark.parametrize("options", [("--groups", "1"), ()], ids=["groups", "terms"])
def test_columns_of_the_folds_models_are_needed_too(table, tmp_path, options):
    _, model = predicted(table, tmp_path, "--target", "kind", options=options)
    # a column that some fold selects, and the model does not
    coefs = model.held_out_.coefs.toarray()
    coefs[0, -1] = 0.5
    model.held_out_ = replace(model.held_out_, coefs=sp.csr_array(coefs))
    library.save(model, tmp_path / "model.skops")
    frame = pd.read_csv(table)
    last = model.feature_names_in_[-1] if options else model.expansion_.terms[-1].variables[0]
    assert last not in model.selected_groups_
    frame.drop(columns=last).to_csv(tmp_path / "less.csv", index=False)
    assert covey("predict", tmp_path / "model.skops", tmp_path / "less.csv").exit_code == 0
    refused(covey("predict", tmp_path / "model.skops", tmp_path / "less.csv", "--interval", "0.8"), f"lacks {last!r}")


def test_several_responses(table, tmp_path):
    written, _ = predicted(table, tmp_path, "--target", "y", "--target", "z")
    assert list(written)[2:] == ["lower_y", "upper_y", "lower_z", "upper_z"]
    assert (written["lower_z"] < written["prediction_z"]).all()


def test_classes(table, tmp_path):
    written, model = predicted(table, tmp_path, "--target", "kind")
    assert list(written)[-1] == "set"
    sets = model.predict(pd.read_csv(table)[["a", "b", "c"]], interval=0.8)
    assert written["set"].tolist() == ["|".join(model.classes_[row]) for row in sets]
    assert set(written["set"]) == {"old", "new", "new|old"}


def test_survival_times(table, tmp_path):
    written, model = predicted(table, tmp_path, "--time", "months", "--event", "dead", "--strata", "site")
    frame = pd.read_csv(table)
    expected = model.predict(frame[["a", "b", "c"]], interval=0.8, strata=frame["site"].to_numpy())
    assert list(written)[-1] == "lower"
    np.testing.assert_allclose(written["lower"], expected)


def test_a_criterion_holds_out_no_rows(table, tmp_path):
    with pytest.raises(AssertionError, match="--selection bic holds out none: fit with folds, such as --selection 5"):
        predicted(table, tmp_path, "--target", "y", selection="bic")
