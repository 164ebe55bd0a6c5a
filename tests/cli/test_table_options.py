"""How a table is read: marks, dates, missing rows, lists of columns, and categories that a fit has not seen."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.running import covey, refused


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


def coefficients(out):
    return pd.read_csv(out / "coefficients.csv").set_index("column")["coefficient"]


def selected(out):
    return {row["group"] for row in json.loads((out / "run.json").read_text())["selected_groups"]}


@pytest.fixture(scope="module")
def fit(frame, tmp_path_factory):
    """A fit on the columns a, b and site."""
    folder = tmp_path_factory.mktemp("fit")
    frame.to_csv(folder / "table.csv", index=False)
    options = ["--drop", "name,when", "--drop", "kind, really", "--onehot", "site", "-o", folder / "fit"]
    result = covey("fit", folder / "table.csv", "-t", "y", *options, *QUICK)
    assert result.exit_code == 0, result.output
    assert selected(folder / "fit") == {"a", "site"}
    return folder


def test_marks_of_text_make_no_difference(frame, fit, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False, sep="|", decimal=",")
    options = ["--drop", "name,when,b", "--drop", "kind, really", "--onehot", "site", "-o", tmp_path / "fit"]
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "--sep", "|", "--decimal", ",", *options, *QUICK)
    assert result.exit_code == 0, result.output
    ours, theirs = coefficients(tmp_path / "fit"), coefficients(fit / "fit")
    np.testing.assert_allclose(ours, theirs[ours.index], rtol=1e-9)
    marks = ["--sep", "|", "--decimal", ","]
    predicted = covey("predict", tmp_path / "fit", tmp_path / "t.csv", *marks, "-t", "y", "--json")
    assert json.loads(predicted.stdout)["r2"] > 0.8


def test_a_table_with_decimal_commas_is_told_how_to_be_read(frame, tmp_path):
    frame[["a", "b", "y"]].to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    result = covey("fit", tmp_path / "t.csv", "-t", "b", "-o", tmp_path / "fit")
    assert result.exit_code == 2
    assert "--decimal ," in result.stderr
    (tmp_path / "u.csv").write_text("a;b, c;y\n1,5;2;3\n2,5,1;2;3\n")
    refused(covey("fit", tmp_path / "u.csv", "-t", "y"), "--sep ';'", "--decimal ,")
    (tmp_path / "v.csv").write_text("a,y\n1,2\n")
    refused(covey("fit", tmp_path / "v.csv", "-t", "y", "--decimal", ","), "cannot be the decimal mark too")
    refused(covey("fit", tmp_path / "v.csv", "-t", "y", "--sep", "ab"), "--sep must be one character")
    frame.to_parquet(tmp_path / "t.parquet")
    refused(covey("fit", tmp_path / "t.parquet", "-t", "y", "--sep", ";"), "are for text")


def test_all_unreadable_columns_are_listed_at_once(frame, tmp_path):
    odd = frame.assign(price=[f"{i},5" for i in range(90)], german="31.12.2020", weight="5 kg", misspelt=1.0)
    odd["misspelt"] = odd["misspelt"].astype(object)
    odd.loc[3, "misspelt"] = "l"
    odd.to_csv(tmp_path / "t.csv", index=False)
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit")
    assert result.exit_code == 2
    lines = {line.split("'")[1]: line for line in result.stderr.splitlines()[1:]}
    assert set(lines) == {"site", "kind, really", "when", "name", "price", "german", "weight", "misspelt"}
    assert "--onehot site" in lines["site"]
    assert "--onehot 'kind, really'" in lines["kind, really"]
    assert "--date when" in lines["when"]
    assert "identifier" in lines["name"]
    assert "--drop name" in lines["name"]
    assert "--onehot" not in lines["name"]
    assert "--decimal ," in lines["price"]
    assert "2020-12-31" in lines["german"]
    assert "a unit" in lines["weight"]
    assert "'l' in row 4" in lines["misspelt"]
    assert "--date when --drop name" in result.stderr.splitlines()[0]


def test_identifiers_are_no_categories(fit):
    table = fit / "table.csv"
    refused(covey("fit", table, "-t", "y", "--onehot", "name"), "an identifier or free text", "--drop name")
    refused(covey("fit", table, "-t", "y", "--onehot", "a"), "as a number, without --onehot")


def test_dates_are_days_since_the_earliest(frame, tmp_path):
    frame[["a", "when", "y"]].to_csv(tmp_path / "t.csv", index=False)
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "--date", "when", "-o", tmp_path / "fit", *QUICK)
    assert result.exit_code == 0, result.output
    frame.assign(when=np.arange(90.0))[["a", "when", "y"]].to_csv(tmp_path / "n.csv", index=False)
    assert covey("fit", tmp_path / "n.csv", "-t", "y", "-o", tmp_path / "n", *QUICK).exit_code == 0
    np.testing.assert_allclose(coefficients(tmp_path / "fit"), coefficients(tmp_path / "n"), rtol=1e-9)
    # later rows are counted from the first day of the fit, and not from their own
    frame[["a", "when", "y"]].tail(5).to_csv(tmp_path / "new.csv", index=False)
    predicted = json.loads(covey("predict", tmp_path / "fit", tmp_path / "new.csv", "--json").stdout)["prediction"]
    c = coefficients(tmp_path / "fit")
    by_hand = c["(intercept)"] + c["a"] * frame["a"].tail(5) + c["when"] * np.arange(85, 90)
    np.testing.assert_allclose(predicted, by_hand, rtol=1e-9)
    assert c["when"] > 0
    refused(covey("fit", tmp_path / "t.csv", "-t", "y", "--date", "a"), "already holds numbers")


def test_rows_with_missing_values_are_left_out(frame, fit, tmp_path):
    holes = pd.concat([frame.head(2).assign(a=np.nan), frame.head(1).assign(y=np.nan), frame], ignore_index=True)
    holes.to_csv(tmp_path / "t.csv", index=False)
    options = ["--drop", "name,when,b", "--drop", "kind, really", "--onehot", "site", *QUICK]
    result = covey("fit", tmp_path / "t.csv", "-t", "y", "--drop-missing", "-o", tmp_path / "fit", *options)
    assert result.exit_code == 0, result.output
    assert "left out 3 of 93 rows" in result.stderr
    ours, theirs = coefficients(tmp_path / "fit"), coefficients(fit / "fit")
    np.testing.assert_allclose(ours, theirs[ours.index], rtol=1e-9)
    assert any("left out 3" in line for line in json.loads((tmp_path / "fit" / "run.json").read_text())["notices"])
    filled = covey(
        "fit", tmp_path / "t.csv", "-t", "y", "--drop-missing", "--impute", "mean", "-o", tmp_path / "f", *options
    )
    assert "left out 1 of 93 rows" in filled.stderr
    refused(covey("predict", fit / "fit", tmp_path / "t.csv"), "missing in 'a' (2)", "--drop-missing")
    predicted = covey("predict", fit / "fit", tmp_path / "t.csv", "--drop-missing", "--json")
    assert json.loads(predicted.stdout)["rows"] == 91
    assert "left out 2 of 93 rows" in predicted.stderr


def test_predict_needs_only_the_columns_of_selected_terms(frame, fit, tmp_path):
    complete = json.loads(covey("predict", fit / "fit", fit / "table.csv", "--json").stdout)["prediction"]
    frame[["site", "a"]].to_csv(tmp_path / "few.csv", index=False)
    few = covey("predict", fit / "fit", tmp_path / "few.csv", "--json")
    assert json.loads(few.stdout)["prediction"] == pytest.approx(complete, rel=1e-12)
    frame.assign(b="text").to_csv(tmp_path / "odd.csv", index=False)
    odd = covey("predict", fit / "fit", tmp_path / "odd.csv", "--json")
    assert json.loads(odd.stdout)["prediction"] == pytest.approx(complete, rel=1e-12)
    frame.rename(columns={"site": "sites"}).to_csv(tmp_path / "lacks.csv", index=False)
    refused(covey("predict", fit / "fit", tmp_path / "lacks.csv"), "lacks 'site'", "did you mean 'sites'?")


def test_categories_that_the_fit_has_not_seen(frame, fit, tmp_path):
    new = frame.head(6).copy()
    new.loc[[0, 3], "site"] = "east"
    new.to_csv(tmp_path / "new.csv", index=False)
    refused(covey("predict", fit / "fit", tmp_path / "new.csv"), "holds 'east'", "--handle-unknown ignore")
    ignored = covey("predict", fit / "fit", tmp_path / "new.csv", "--handle-unknown", "ignore", "--json")
    c = coefficients(fit / "fit")
    predicted = json.loads(ignored.stdout)["prediction"]
    assert predicted[0] == pytest.approx(c["(intercept)"] + c["a"] * new["a"][0])
    assert "'east'" in ignored.stderr
    assert "2 rows" in ignored.stderr
    options = ["--drop", "name,when,b", "--drop", "kind, really", "--onehot", "site", "-o", tmp_path / "fit", *QUICK]
    assert covey("fit", fit / "table.csv", "-t", "y", "--handle-unknown", "ignore", *options).exit_code == 0
    assert covey("predict", tmp_path / "fit", tmp_path / "new.csv").exit_code == 0
    refused(covey("predict", tmp_path / "fit", tmp_path / "new.csv", "--handle-unknown", "error"), "holds 'east'")
    numbers = ["--drop", "name,when,site", "--drop", "kind, really"]
    refused(covey("fit", fit / "table.csv", "-t", "y", "--handle-unknown", "ignore", *numbers), "--onehot")


def test_lists_of_columns(frame, fit, tmp_path):
    options = ["--drop", "name,when,b", "--onehot", "site", "--onehot", "kind, really", "--always", "a,site", *QUICK]
    result = covey("fit", fit / "table.csv", "-t", "y", "-o", tmp_path / "fit", *options)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "fit" / "run.json").read_text())["always"] == ["a", "site"]
    both = ["--drop", "name,when,site", "--drop", "kind, really", *QUICK]
    assert covey("fit", fit / "table.csv", "-t", "y,b", "-o", tmp_path / "two", *both).exit_code == 0
    assert json.loads((tmp_path / "two" / "run.json").read_text())["target"] == ["y", "b"]
    refused(covey("fit", fit / "table.csv", "-t", "y", "--drop", "name,whem"), "did you mean 'when'?")


def test_diagnose_takes_a_table_as_fit_does(fit):
    options = ["--drop", "name", "--drop", "kind, really", "--onehot", "site", "--date", "when", "--spline", "b:4"]
    result = covey("diagnose", fit / "table.csv", "-t", "y", *options, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert {"guaranteed", "conditions"} == set(json.loads(result.stdout))
    refused(covey("diagnose", fit / "table.csv", "-t", "yy"), "no column 'yy'")
    refused(covey("diagnose", fit / "table.csv", "-t", "y", "--drop", "nam"), "did you mean 'name'?")
