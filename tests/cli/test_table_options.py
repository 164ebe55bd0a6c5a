"""How a table is read: marks, missing rows, and lists of columns."""

import json

import numpy as np
import pandas as pd
import pytest

import covey as library
from cli.running import as_json, covey, done, refused, run_of
from covey.settings import TableSettings
from covey.workflow.problem import pose


@pytest.fixture(scope="module")
def frame():
    """The columns a and site matter; b does not, and 'kind, really' is a name with a comma."""
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame({"a": rng.standard_normal(n), "b": rng.standard_normal(n)})
    table["site"] = rng.choice(["north", "south", "west"], n)
    table["kind, really"] = rng.choice(["x", "y"], n)
    table["when"] = pd.date_range("2020-03-01", periods=n).astype(str)
    table["name"] = [f"p{i}" for i in range(n)]
    effect = table["site"].map({"north": 0.0, "south": 3.0, "west": -3.0})
    table["y"] = 4 * table["a"] + effect + 0.05 * np.arange(n) + 0.3 * rng.standard_normal(n)
    return table


QUICK = ["--selection", "bic"]


def predictions(model, *table):
    return as_json("predict", model, *table)["prediction"]


def selected(out):
    return {row["term"] for row in run_of(out)["selected_terms"]}


@pytest.fixture(scope="module")
def fit(frame, tmp_path_factory):
    """A fit on all columns but the dates."""
    folder = tmp_path_factory.mktemp("fit")
    frame.to_csv(folder / "table.csv", index=False)
    done("fit", folder / "table.csv", "-t", "y", "--drop", "when", "-o", folder / "fit", *QUICK)
    assert selected(folder / "fit") == {"a", "site"}
    return folder


def test_marks_of_text_make_no_difference(frame, fit, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False, sep="|", decimal=",")
    marks = ["--sep", "|", "--decimal", ","]
    done("fit", tmp_path / "t.csv", "-t", "y", *marks, "--drop", "when", "-o", tmp_path / "fit", *QUICK)
    ours = predictions(tmp_path / "fit", tmp_path / "t.csv", *marks)
    np.testing.assert_allclose(ours, predictions(fit / "fit", fit / "table.csv"), rtol=1e-9)


def test_a_separator_that_is_wrong_or_missing(frame, tmp_path):
    (tmp_path / "u.csv").write_text("a;b, c;y\n1,5;2;3\n2,5,1;2;3\n")
    refused(covey("fit", tmp_path / "u.csv", "-t", "y"), "--sep ';'", "--decimal ','")
    refused(covey("fit", tmp_path / "u.csv", "-t", "y", "--sep", "ab"), "--sep must be one character")
    frame.to_parquet(tmp_path / "t.parquet")
    refused(covey("fit", tmp_path / "t.parquet", "-t", "y", "--sep", ";"), "is for text files")


def test_all_unreadable_columns_are_listed_at_once(frame, tmp_path):
    odd = frame.assign(price=[f"{i},5" for i in range(90)], weight=[f"{i} kg" for i in range(90)], misspelt=frame["a"])
    odd["slashed"] = [f"{1 + i % 12}/12/2020" for i in range(90)]
    odd["misspelt"] = odd["misspelt"].astype(object)
    odd.loc[3, "misspelt"] = "l"
    odd.to_csv(tmp_path / "t.csv", index=False)
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit")
    assert result.exit_code == 2
    lines = {line.split("'")[1]: line for line in result.stderr.splitlines()[1:]}
    assert set(lines) == {"price", "slashed", "weight", "misspelt"}
    assert "--decimal ','" in lines["price"]
    assert "2020-12-31" in lines["slashed"]
    assert "a unit" in lines["weight"]
    assert "'l' in row 4" in lines["misspelt"]
    assert "--levels misspelt" in lines["misspelt"]
    # a matrix has neither categories nor dates
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "-g", "1", "-o", tmp_path / "fit")
    assert result.exit_code == 2
    lines = {line.split("'")[1]: line for line in result.stderr.splitlines()[1:]}
    assert set(lines) == {"price", "slashed", "weight", "misspelt", "site", "kind, really", "when", "name"}
    for name in ("site", "kind, really", "when"):
        assert "leave out --groups" in lines[name]
    assert "identifier" in lines["name"]
    assert "--drop name" in lines["name"]


def test_rows_without_a_response_are_left_out(frame, fit, tmp_path):
    holes = pd.concat([frame.head(2).assign(a=np.nan), frame.head(1).assign(y=np.nan), frame], ignore_index=True)
    holes.to_csv(tmp_path / "t.csv", index=False)
    asked = ["fit", tmp_path / "t.csv", "-t", "y", *QUICK]
    refused(covey(*asked), "'y' is missing in 1 row of 93", "--drop-missing")
    result = done(*asked, "--drop-missing", "-o", tmp_path / "fit")
    assert "left out 1 of 93 rows" in result.stderr
    assert any("left out 1" in line for line in run_of(tmp_path / "fit")["notices"])
    frame.assign(y=np.nan).to_csv(tmp_path / "none.csv", index=False)
    words = "--drop-missing leaves no row: every row lacks a value, 90 of them in 'y'. Is it the right column?"
    refused(covey("fit", tmp_path / "none.csv", "-t", "y", "--drop-missing", *QUICK), words)
    # a matrix has no missing values
    options = ["--groups", "1", "--drop", "name,when,site", "--drop", "kind, really", "-o", tmp_path / "matrix"]
    matrix = covey(*asked, "--drop-missing", *options)
    assert "left out 3 of 93 rows" in matrix.stderr
    refused(covey("predict", tmp_path / "matrix", tmp_path / "t.csv"), "missing in 'a' (2)", "--drop-missing")
    predicted = covey("predict", tmp_path / "matrix", tmp_path / "t.csv", "--drop-missing", "--json")
    assert json.loads(predicted.stdout)["rows"] == 91
    assert "left out 2 of 93 rows" in predicted.stderr


def test_predict_needs_only_the_columns_of_selected_terms(frame, fit, tmp_path):
    complete = predictions(fit / "fit", fit / "table.csv")
    frame[["site", "a"]].to_csv(tmp_path / "few.csv", index=False)
    assert predictions(fit / "fit", tmp_path / "few.csv") == pytest.approx(complete, rel=1e-12)
    frame.assign(b="text").to_csv(tmp_path / "odd.csv", index=False)
    assert predictions(fit / "fit", tmp_path / "odd.csv") == pytest.approx(complete, rel=1e-12)
    frame.rename(columns={"site": "sites"}).to_csv(tmp_path / "lacks.csv", index=False)
    refused(covey("predict", fit / "fit", tmp_path / "lacks.csv"), "lacks 'site'", "did you mean 'sites'?")


def test_a_pipeline_that_was_saved_in_python(frame, tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), library.GroupSparseRegressor(selection="bic"))
    library.save(model.fit(frame[["a", "b"]], frame["y"]), tmp_path / "model.skops")
    frame.to_csv(tmp_path / "t.csv", index=False)
    ours = predictions(tmp_path / "model.skops", tmp_path / "t.csv")
    np.testing.assert_allclose(ours, model.predict(frame[["a", "b"]]), rtol=1e-9)
    frame.drop(columns="b").to_csv(tmp_path / "t.csv", index=False)
    refused(covey("predict", tmp_path / "model.skops", tmp_path / "t.csv"), "lacks 'b'")


def test_lists_of_columns(frame, fit, tmp_path):
    options = ["--drop", "name,when,b", "--levels", "kind, really", "--always", "a,site", *QUICK]
    done("fit", fit / "table.csv", "-t", "y", "-o", tmp_path / "fit", *options)
    assert run_of(tmp_path / "fit")["always"] == ["a", "site"]
    done("fit", fit / "table.csv", "-t", "y,b", "-o", tmp_path / "two", *QUICK)
    assert run_of(tmp_path / "two")["target"] == ["y", "b"]
    refused(covey("fit", fit / "table.csv", "-t", "y", "--drop", "name,whem"), "did you mean 'when'?")


def test_path_and_stability_have_variables(fit):
    path = covey("path", fit / "table.csv", "-t", "y")
    assert "of 5 variables are awake" in path.stdout
    believed = covey("stability", fit / "table.csv", "-t", "y", "--drop", "when", "--json")
    assert {row["group"] for row in json.loads(believed.stdout)["selected_groups"]} == {"a", "site"}


def test_a_variable_has_all_columns_of_its_curve(fit):
    problem = pose(TableSettings((str(fit / "table.csv"),), ("y",)))
    names = problem.columns.columns
    assert {"a", "a~1", "b", "b~1", "site=west"} < set(names)
    for variable in ("a", "b", "site"):
        mine = [name for name in names if name.startswith((f"{variable}~", f"{variable}=")) or name == variable]
        assert [names[j] for j in problem.groups[variable]] == mine


def test_diagnose_takes_a_table_as_fit_does(fit):
    result = done("diagnose", fit / "table.csv", "-t", "y", "--curve", "b:4", "--json")
    assert {"guaranteed", "conditions"} == set(json.loads(result.stdout))
    refused(covey("diagnose", fit / "table.csv", "-t", "yy"), "no column 'yy'")
    refused(covey("diagnose", fit / "table.csv", "-t", "y", "--drop", "nam"), "did you mean 'name'?")


def test_what_stands_for_a_missing_value(frame, fit, tmp_path):
    odd = frame.assign(a=[".", "-999", *frame["a"][2:]]).drop(columns="when")
    odd.to_csv(tmp_path / "t.csv", index=False)
    refused(covey("fit", tmp_path / "t.csv", "-t", "y"), "if that means missing, read the table with --missing '.';")
    missing = ["--missing", ".", "--missing", "-999"]
    done("fit", tmp_path / "t.csv", "-t", "y", *missing, "-o", tmp_path / "fit", *QUICK)
    assert selected(tmp_path / "fit") == {"a", "site"}
    assert len(predictions(tmp_path / "fit", tmp_path / "t.csv", *missing)) == len(frame)
    told = covey("predict", tmp_path / "fit", tmp_path / "t.csv")
    assert "The fit read its table with --missing '.' --missing -999: add it" in told.stderr
    assert "UserWarning" not in told.stderr
