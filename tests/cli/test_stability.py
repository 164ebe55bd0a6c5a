"""`covey stability`, and `covey fit --stability`, on a table with a known answer."""

import json

import numpy as np
import pandas as pd
import pytest

from cli.running import as_json, covey, done, refused, run_of

GENES = ["-t", "y", "-g", "_", "--drop", "case,months,dead"]


@pytest.fixture(scope="module")
def frame():
    """Genes 0 to 7 of 30 act; age does too."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((160, 60)), columns=[f"g{g}_{k}" for g in range(30) for k in "ab"])
    table["age"] = rng.uniform(20, 80, 160)
    effect = sum(table[f"g{g}_a"] - table[f"g{g}_b"] for g in range(8))
    table["y"] = effect + 0.2 * table["age"] + 0.5 * rng.standard_normal(160)
    table["months"] = rng.exponential(np.exp(-effect / 2))
    table["dead"] = rng.integers(0, 4, 160) > 0
    table["case"] = np.where(effect > 0, "yes", "no")
    return table


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_half_samples(table, tmp_path):
    arguments = [table, *GENES, "--pairs", 5, "--max-false", 6, "--always", "age"]
    result = done("stability", *arguments, "--out", tmp_path / "believed")
    assert "of 30 groups can be believed to predict y (half-samples, 160 rows)" in result.stdout
    assert "Expected number of mistakes: at most" in result.stdout
    groups = pd.read_csv(tmp_path / "believed" / "groups.csv")
    assert set(groups[groups["selected"]]["group"]) >= {f"g{g}" for g in range(8)}
    assert len(groups) == 30
    run = run_of(tmp_path / "believed")
    assert run["always"] == ["age"]
    assert run["half_samples"] == 10
    assert [row["group"] for row in run["selected_groups"]] == groups[groups["selected"]]["group"].tolist()
    refused(covey("stability", *arguments, "--out", tmp_path / "believed"), "exists already")
    again = covey("stability", *arguments, "--json")
    assert json.loads(again.stdout)["selected_groups"] == run["selected_groups"]


def test_knockoffs(table):
    result = done("stability", table, *GENES, "--method", "knockoffs", "--fdr", 0.2)
    assert "(knockoffs, 160 rows)" in result.stdout
    assert "On average at most 20%" in result.stdout
    assert "g7" in result.stdout


def test_names_are_written_so_that_no_spreadsheet_runs_them(table, tmp_path):
    renamed = pd.read_csv(table).rename(columns=lambda name: name.replace("g3_", "=g3_"))
    renamed.to_csv(tmp_path / "t.csv", index=False)
    done("stability", tmp_path / "t.csv", *GENES, "--pairs", 2, "--out", tmp_path / "out")
    found = pd.read_csv(tmp_path / "out" / "groups.csv")["group"]
    assert "'=g3" in set(found)
    assert not found.str.startswith("=").any()


def test_classes(table):
    result = covey("stability", table, "-t", "case", "-g", "_", "--drop", "y,months,dead", "--pairs", 2, "--json")
    found = json.loads(result.stdout)
    assert found["family"] == "binomial"
    assert found["groups"] == 31


def test_survival_times(table):
    columns = ["--time", "months", "--event", "dead", "--drop", "y", "--drop", "case", "-g", "_", "--ties", "breslow"]
    found = as_json("stability", table, *columns, "--pairs", 2, "--max-false", 6)
    assert found["family"] == "cox"
    assert {row["group"] for row in found["selected_groups"]} & {f"g{g}" for g in range(8)}


def test_what_is_refused(table):
    refused(covey("stability", table, *GENES, "--fdr", 0.1), "--fdr has no effect")
    refused(covey("stability", table, *GENES, "--method", "knockoffs", "--pairs", 3), "--pairs has no effect")


def test_a_fit_with_stability(table, tmp_path):
    result = done("fit", table, *GENES, "--stability", "--out", tmp_path / "fit")
    assert "half samples" in result.stdout
    groups = pd.read_csv(tmp_path / "fit" / "groups.csv").set_index("group")
    assert (groups.loc[[f"g{g}" for g in range(8)], "half_samples"] >= 0.75).all()
    assert "Which groups to believe" in (tmp_path / "fit" / "report.html").read_text()
    assert "mistakes: at most" in run_of(tmp_path / "fit")["stability"]
    # remarks name the option of the command that has it, on the console and on the page
    for text in (result.stderr, (tmp_path / "fit" / "report.html").read_text()):
        assert "a larger --max-false of covey stability allows more" in text
