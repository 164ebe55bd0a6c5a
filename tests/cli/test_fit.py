"""`covey fit` and `covey predict` on tables with a known answer."""

import hashlib
import html
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import covey as library
from cli.running import as_json, covey, done, refused, run_of
from covey import nested_score
from covey.datasets import make_group_sparse
from covey.progress import listening
from covey.settings import FitSettings
from covey.tables import read_table
from covey.workflow import folder
from covey.workflow.fit import fit_table
from covey.workflow.folder import TERM_FILES, write_fit


@pytest.fixture(scope="module")
def frame():
    """Gene 2 and the shape of `age` matter, and so does `kind`; nothing else does."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.standard_normal((240, 9)), columns=[f"gene{g}_{k}" for g in (1, 2, 3) for k in ("a", "b", "c")]
    )
    table["age"] = rng.uniform(20, 80, 240)
    table["kind"] = rng.choice(["red", "green", "blue"], 240)
    table["id"] = [f"p{i}" for i in range(240)]
    shape = 2 * np.cos(table["age"] / 10)
    levels = table["kind"].map({"red": 1.0, "green": -1.0, "blue": 0.0})
    table["y"] = 3 * table["gene2_a"] - 2 * table["gene2_c"] + shape + levels + 0.3 * rng.standard_normal(240)
    return table


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    file = tmp_path_factory.mktemp("table") / "table.csv"
    frame.to_csv(file, index=False)
    return file


SETTINGS = ["--target", "y"]
MATRIX = ["--target", "y", "--groups", "regex:(gene.)_", "--drop", "id,kind,age"]


@pytest.fixture(scope="module")
def printed_and_fitted(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "fit"
    result = done("fit", table, *SETTINGS, "--rule", "select", "--out", out)
    return result.stdout, out


@pytest.fixture(scope="module")
def fitted(printed_and_fitted):
    return printed_and_fitted[1]


def test_the_folder(fitted, table, frame):
    assert {file.name for file in fitted.iterdir()} == TERM_FILES
    terms = pd.read_csv(fitted / "terms.csv").set_index("term")
    assert set(terms.index[terms["selected"]]) == {"gene2_a", "gene2_c", "age", "age~", "kind"}
    assert terms.index[0] == "gene2_a"  # strongest first
    assert terms.loc["age~", ["kind", "variables", "parents"]].tolist() == ["curve", "age", "age"]
    assert terms.loc["kind", ["kind", "size"]].tolist() == ["levels", 3]
    run = run_of(fitted)
    assert run["inputs"][0]["sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()
    assert {one["variable"]: one["kind"] for one in run["variables"]}["id"] == "left out"
    assert len(run["selected_terms"]) == run["terms_found"] == 5
    assert run["settings"]["options"]["rule"] == "select"
    assert run["versions"]["covey"] == library.__version__
    assert run["converged"] is True
    assert run["settings"]["options"]["verbose"] == 0
    assert run["scores"]["held_out_r2"] is None
    assert run["scores"]["chosen_r2"] > 0.97
    assert "<title" in (fitted / "report.html").read_text()
    path = pd.read_parquet(fitted / "path.parquet")
    last = path[path["time"] == path["time"].max()].dropna()
    assert set(last["term"]) == {"gene2_a", "gene2_c", "age", "age~", "kind"}
    assert {"gene2_a", "age~1"} < set(last["column"])


def test_what_became_of_each_column_is_printed(printed_and_fitted):
    printed, _ = printed_and_fitted
    assert "Left out: 'id' (identifiers" in printed
    assert "3 levels: blue, green, red" in printed
    said = "4 of 12 variables predict y (240 rows): gene2_a (straight), gene2_c (straight), age (curved), kind."
    assert said in printed


def test_options_about_variables(table, tmp_path):
    asked = ["fit", table, *SETTINGS, "--selection", "bic", "--json", "--out", tmp_path / "fit"]
    options = ["--linear", "gene*", "--curve", "age:4", "--levels", "kind", "--pairs", "age:kind,gene1_a:gene2_a"]
    answer = json.loads(covey(*asked, *options).stdout)
    kinds = {one["variable"]: one["kind"] for one in answer["variables"]}
    assert kinds["gene1_a"] == "linear"
    assert kinds["age"] == "curve"
    model = library.load(tmp_path / "fit" / "model.skops")
    names = [term.name for term in model.expansion_.terms]
    assert {"age:kind", "gene1_a:gene2_a"} < set(names)
    assert model.groups_.sizes[names.index("age~")] == 2
    beside = json.loads(covey(*asked, "--pairs", "with:kind", "--overwrite").stdout)
    # ten numbers with line, curve and detail, a category, ten pairs with their surfaces
    assert beside["terms"] == 3 * 10 + 1 + 2 * 10
    alone = json.loads(covey(*asked, "--pairs", "none", "--overwrite").stdout)
    assert alone["terms"] == 3 * 10 + 1


def test_predict_from_the_raw_table(fitted, table, frame, tmp_path):
    result = done("predict", fitted, table, "--target", "y", "--keep", "id", "--out", tmp_path / "p.parquet")
    assert "R^2 0.9" in result.stderr
    predicted = pd.read_parquet(tmp_path / "p.parquet")
    assert predicted.columns.tolist() == ["id", "prediction"]
    np.testing.assert_allclose(predicted["prediction"], library.load(fitted / "model.skops").predict(frame))
    to_stdout = covey("predict", fitted / "model.skops", table)
    printed = pd.read_csv(pd.io.common.StringIO(to_stdout.stdout))
    np.testing.assert_allclose(printed["prediction"], predicted["prediction"])
    answer = as_json("predict", fitted, table, "--target", "y")
    assert answer["rows"] == 240
    assert answer["r2"] > 0.97
    assert len(answer["prediction"]) == 240


def test_predict_refuses_what_the_model_does_not_know(fitted, frame, tmp_path):
    other = tmp_path / "other.csv"
    frame.drop(columns="gene2_a").to_csv(other, index=False)
    refused(covey("predict", fitted, other), "lacks 'gene2_a'")
    frame.assign(gene2_a="much").to_csv(other, index=False)
    refused(covey("predict", fitted, other), "'gene2_a' holds 'much'")
    frame.to_csv(other, index=False)
    refused(covey("predict", tmp_path / "nowhere", other), "There is no")
    refused(covey("predict", other, other), "not a model file, or it is damaged")
    refused(covey("predict", fitted, other, "--target", "yy"), "no column 'yy'", "did you mean 'y'")
    refused(covey("predict", fitted, other, "--out", tmp_path / "p.xlsx"), ".csv, .tsv, .parquet, .feather")


def test_predict_says_what_is_new_in_a_table(fitted, frame, tmp_path):
    model = library.load(fitted / "model.skops")
    known = np.array([model.predict(frame.head(1).assign(kind=kind))[0] for kind in ("red", "green", "blue")])
    shares = np.array([(frame["kind"] == kind).mean() for kind in ("red", "green", "blue")])
    new = frame.head(7).assign(extra=1)[[*frame.columns[::-1], "extra"]]
    new.loc[0, "kind"] = "violet"
    new["age"] = new["age"].astype(object)
    new.loc[3, "age"] = np.nan
    new.loc[4, "age"] = "old"
    new.to_csv(tmp_path / "new.csv", index=False)
    result = covey("predict", fitted, tmp_path / "new.csv", "--json")
    assert "kind is 'violet' in 1 row, a level that the fit did not have" in result.stderr
    assert "age is missing in 1 row" in result.stderr
    assert "notice: age is 'old' in 1 row, where the fit had numbers" in result.stderr
    assert "The model was fitted without 'extra': ignored." in result.stderr
    predicted = json.loads(result.stdout)["prediction"]
    assert predicted[0] == pytest.approx(known @ shares)  # the mean of the known levels
    assert np.isfinite(predicted).all()
    np.testing.assert_allclose(predicted[5], model.predict(frame)[5])


def test_missing_values_are_allowed_without_groups(frame, tmp_path):
    holes = frame.copy()
    holes.loc[::9, "gene1_a"] = np.nan
    holes.loc[::11, "age"] = np.nan
    holes.loc[::30, "kind"] = None
    holes.to_csv(tmp_path / "holes.csv", index=False)
    refused(covey("fit", tmp_path / "holes.csv", *MATRIX), "missing in 'gene1_a' (27)", "leave out --groups")
    result = done("fit", tmp_path / "holes.csv", *SETTINGS, "--selection", "bic", "--out", tmp_path / "fit")
    assert "Missing values are a level: 'kind'" in result.stdout
    assert covey("predict", tmp_path / "fit", tmp_path / "holes.csv").stderr == ""


def test_what_is_always_in(table, tmp_path):
    wanted = ["fit", table, *MATRIX, "--selection", "size:1", "--out", tmp_path / "fit"]
    answer = as_json(*wanted, "--always", "gene1")
    assert {row["group"] for row in answer["selected_groups"]} == {"gene1", "gene2"}
    refused(covey(*wanted, "--always", "gene4", "--overwrite"), "no group or column 'gene4'", "did you mean 'gene")
    # a column that is a group by itself, beside a group
    alone = ["gene3_*" if word.startswith("regex") else word for word in map(str, wanted)]
    answer = as_json(*alone, "--always", "gene1_a,gene3", "--overwrite")
    assert answer["always"] == ["gene1_a", "gene3"]
    assert {row["group"] for row in answer["selected_groups"] if row["always"]} == {"gene1_a", "gene3"}
    wanted = ["fit", table, *SETTINGS, "--selection", "size:1", "--out", tmp_path / "terms"]
    answer = as_json(*wanted, "--always", "gene1_a,kind")
    assert {row["term"] for row in answer["selected_terms"]} == {"gene1_a", "kind", "gene2_a"}
    refused(covey(*wanted, "--always", "kin", "--overwrite"), "no variable 'kin'", "did you mean 'kind'")
    refused(covey(*wanted, "--always", "id", "--overwrite"), "'id' is left out: identifiers")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--selection", "bic", "--rule", "select"], ["--rule has no effect with --selection bic"]),
        (["--selection", "size:3", "--rule", "predict"], ["--rule has no effect with --selection size:3"]),
        (["--selection", "sometimes"], ["not sometimes", "holdout", "size:3"]),
        (["--selection", "1"], ["at least 2 folds"]),
        (["--factors", "many"], ["factors"]),
    ],
    ids=" ".join,
)
def test_options_without_effect_are_refused(table, tmp_path, options, words):
    refused(covey("fit", table, *MATRIX, *options, "--out", tmp_path / "fit"), *words)
    assert not (tmp_path / "fit").exists()


def test_a_fit_that_does_not_converge_is_exit_code_3_with_the_result(table, tmp_path, monkeypatch):
    fit = library.GroupSparseRegressor.fit

    def warns(self, *given, **options):
        warnings.warn("Give rule='predict'.", ConvergenceWarning, stacklevel=1)
        return fit(self, *given, **options)

    monkeypatch.setattr(library.GroupSparseRegressor, "fit", warns)
    result = covey("fit", table, *SETTINGS, "--selection", "bic", "--out", tmp_path / "fit")
    assert result.exit_code == 3, result.output
    assert "notice: Give --rule predict." in result.stderr
    run = run_of(tmp_path / "fit")
    assert run["converged"] is False
    assert run["notices"][-1] == "Give --rule predict."


@pytest.mark.parametrize("counts", [np.arange(240) % 3, 2 + np.arange(240) % 2], ids=["0 to 2", "2 and 3"])
def test_weights_are_like_repeated_rows(frame, counts, tmp_path):
    plain = frame[["gene1_a", "gene2_a", "gene2_c", "y"]]
    plain.assign(w=counts).to_csv(tmp_path / "weighted.csv", index=False)
    plain.loc[plain.index.repeat(counts)].to_csv(tmp_path / "repeated.csv", index=False)
    asked = ["--target", "y", "--groups", "1", "--selection", "bic"]
    ours = as_json("fit", tmp_path / "weighted.csv", *asked, "--weights", "w", "--out", tmp_path / "a")
    theirs = as_json("fit", tmp_path / "repeated.csv", *asked, "--out", tmp_path / "b")
    assert ours["rows"] == np.count_nonzero(counts)  # those of weight zero take no part
    assert ours["intercept"] == pytest.approx(theirs["intercept"], rel=1e-8)
    assert ours["scores"]["train_r2"] == pytest.approx(theirs["scores"]["train_r2"], rel=1e-8)
    weighted, repeated = (library.load(tmp_path / name / "model.skops").candidates_["bic"] for name in "ab")
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8)  # of the same number of rows


def test_a_folder_is_replaced_only_when_asked(fitted, table, tmp_path):
    fitted = shutil.copytree(fitted, tmp_path / "fit")
    asked = ["fit", table, *SETTINGS, "--selection", "size:1", "--out"]
    before = (fitted / "run.json").read_text()
    refused(covey(*asked, fitted), "exists already", "--overwrite")
    assert (fitted / "run.json").read_text() == before
    done(*asked, fitted, "--overwrite")
    assert len(run_of(fitted)["selected_terms"]) == 1
    (fitted / "notes.txt").write_text("mine")
    refused(covey(*asked, fitted, "--overwrite"), "other files (notes.txt)")
    (fitted / "notes.txt").unlink()
    (fitted / "report.html").write_text("mine")
    refused(covey(*asked, fitted, "--overwrite"), "report.html, which covey did not write")
    (fitted / "report.html").unlink()
    (fitted / "run.json").write_text('{"mine": true}')
    refused(covey(*asked, fitted, "--overwrite"), "run.json")
    refused(covey(*asked, table), "is a file")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit"]


def test_hostile_names_are_text(tmp_path):
    rng = np.random.default_rng(1)
    evil = ["<img src=x onerror=alert(1)>", "[red]x[/red]", "\x1b[2J\x07", "a__b", "=cmd()|' /C calc'!A0", "ü 名"]
    frame = pd.DataFrame(rng.standard_normal((60, 6)), columns=evil)
    frame["y y"] = frame.sum(axis=1) + 0.1 * rng.standard_normal(60)
    frame.to_csv(tmp_path / "evil.csv", index=False)
    result = done("fit", tmp_path / "evil.csv", "--target", "y y", "--out", tmp_path / "fit")
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert "[red]x[/red]" in result.output
    assert "<img" not in (tmp_path / "fit" / "report.html").read_text()
    model = library.load(tmp_path / "fit" / "model.skops")
    assert set(model.selected_groups_) == set(evil)
    done("fit", tmp_path / "evil.csv", "--target", "y y", "--groups", "1", "--out", tmp_path / "matrix")
    # what a spreadsheet would run is written with an apostrophe before it, and read without
    for name, column in (("fit/terms", "term"), ("matrix/groups", "group"), ("matrix/coefficients", "column")):
        cells = pd.read_csv(tmp_path / f"{name}.csv", dtype=str).to_numpy().ravel()
        assert not [cell for cell in cells if str(cell).startswith("=")]
        assert evil[4] in read_table(tmp_path / f"{name}.csv")[column].tolist()
    covey("predict", tmp_path / "fit", tmp_path / "evil.csv", "--keep", evil[4], "--out", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().startswith("'=cmd")
    assert read_table(tmp_path / "p.csv")[evil[4]].tolist() == pytest.approx(frame[evil[4]].tolist())


def test_a_place_that_cannot_be_written_is_refused_before_the_fit(table, tmp_path, monkeypatch):
    monkeypatch.setattr("covey.workflow.fit.fit_table", lambda *_: pytest.fail("the fit has begun"))
    (tmp_path / "file").touch()
    refused(covey("fit", table, *SETTINGS, "--out", tmp_path / "file" / "fit"), "is not a folder")
    if Path("/proc/self").exists():
        refused(covey("fit", table, *SETTINGS, "--out", "/proc/fit"), "/proc")
    monkeypatch.setattr("covey.workflow.predict.predict_table", lambda *_: pytest.fail("the prediction has begun"))
    refused(covey("predict", tmp_path, table, "--out", tmp_path / "file" / "p.csv"), "is not a folder")


def test_a_folder_that_another_command_wrote_meanwhile_is_not_replaced(table, tmp_path, monkeypatch):
    fit, out, report = (
        fit_table(FitSettings((str(table),), ("y",), selection="bic", nested=False)),
        tmp_path / "fit",
        folder._report,
    )

    def slow(fit):
        monkeypatch.setattr(folder, "_report", report)
        write_fit(fit, out)
        return report(fit)

    monkeypatch.setattr(folder, "_report", slow)
    with pytest.raises(FileExistsError, match="exists already"):
        write_fit(fit, out)


def test_what_is_held_out_took_no_part_in_choosing(tmp_path):
    """A smooth term that no straight line has: the nested score by hand, beside a lasso on the same columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (90, 4)), columns=["a", "b", "c", "d"])
    frame["y"] = np.cos(4 * frame["a"]) + 0.2 * rng.standard_normal(90)
    frame.to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "fit"
    result = done("fit", tmp_path / "table.csv", "-t", "y", "--selection", "3", "--nested", "-o", out)
    run = run_of(out)
    model = library.load(out / "model.skops")
    score = nested_score(clone(model), frame.drop(columns="y"), frame["y"])
    assert run["nested"]["folds"] == pytest.approx(score.folds)
    assert run["scores"]["held_out_r2"] == pytest.approx(score.mean)
    assert run["scores"]["held_out_margin"] == pytest.approx(score.margin)
    assert run["nested"]["selected"]["a~"] == 5
    heard = []
    with listening(lambda text, share: heard.append(text)):
        fit_table(FitSettings((str(tmp_path / "table.csv"),), ("y",), selection="bic"))
    stages = list(dict.fromkeys(text.partition(":")[0] for text in heard))
    assert stages == ["reading", "fitting", *(f"outer fold {k} of 5" for k in range(1, 6))]
    scores = {name: one["mean"] for name, one in run["nested"]["references"].items()}
    assert scores.keys() == {"null", "lasso", "ridge"}
    assert scores["lasso"] > 0.7
    for line in str(score).splitlines()[1:2]:
        assert line.split() in [printed.split() for printed in result.stdout.splitlines()]
    assert "Not held out, so optimistic: R^2" in result.stdout
    page = (out / "report.html").read_text()
    assert "Score on held-out rows" in page
    assert run["nested"]["verdict"] in html.unescape(page)


def test_console_and_report_say_what_sparsity_costs_in_options(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((100, 12))).rename(columns="x{}".format)
    frame["y"] = frame["x0"] * 2 + frame.sum(axis=1) / 4 + 1.5 * rng.standard_normal(100)
    frame.to_csv(tmp_path / "table.csv", index=False)
    result = done("fit", tmp_path / "table.csv", "-t", "y", "--groups", "1", "-o", tmp_path / "fit")
    page = (tmp_path / "fit" / "report.html").read_text()
    for text in (result.stdout, page):
        assert "all 12 groups predict" in text
        assert "rule='" not in text


def test_outer_folds_warn_of_the_split_whatever_chose_the_model(tmp_path):
    data = make_group_sparse(60, 60, 3, active=3, sigma=3, random_state=0)
    table = pd.DataFrame(data.X, columns=[f"g{j // 3}_{j % 3}" for j in range(60)]).assign(y=data.y)
    table.to_csv(tmp_path / "t.csv", index=False)
    said = done("fit", tmp_path / "t.csv", "-t", "y", "-g", "_", "--selection", "bic", "--nested", "-o", tmp_path / "o")
    assert "The selection depends on the split: g14 is in only 1 of 5 repetitions of the choice." in said.stdout
    assert "was repeated in 5 outer folds: g14 is in only 1 of 5" in (tmp_path / "o" / "report.html").read_text()
