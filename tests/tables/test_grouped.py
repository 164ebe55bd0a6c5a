"""Tables and groups from files: what is read, and how what cannot be read is refused."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from covey.cli.app import app
from covey.tables import TableError, read_groups, read_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=["a_1", "a_2", "b_1", "b_2"])
    frame["y"] = frame["a_1"] - frame["a_2"] + 0.1 * rng.standard_normal(60)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def test_csv_and_tsv(table, tmp_path):
    frame = read_table(table)
    assert frame.shape == (60, 5)
    frame.to_csv(tmp_path / "data.tsv.gz", index=False, sep="\t")
    pd.testing.assert_frame_equal(read_table(tmp_path / "data.tsv.gz"), frame)


def test_groups_of_every_kind(table, tmp_path):
    columns = ["a_1", "a_2", "b_1", "b_2"]
    pairs = tmp_path / "groups.csv"
    pd.DataFrame({"column": columns[::-1], "group": ["B", "B", "A", "A"]}).to_csv(pairs, index=False)
    assert read_groups(None, columns).n_groups == 4
    assert read_groups("2", columns).sizes.tolist() == [2, 2]
    assert read_groups("sep:_", columns).names == ("a", "b")
    assert read_groups("regex:(.)_", columns).names == ("a", "b")
    assert read_groups(str(pairs), columns).names == ("A", "B")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("column,group\na,1\n", "gives no group to: 'b'"),
        ("column,group\na,1\nb,1\nc,2\n", "names columns that the data lack: 'c'"),
        ("column\na\n", "must have two columns"),
    ],
)
def test_bad_group_files(tmp_path, content, message):
    path = tmp_path / "groups.csv"
    path.write_text(content)
    with pytest.raises(TableError, match=message):
        read_groups(str(path), ["a", "b"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere.csv", "is not a file"),
        ("regex:(", "is not a regular expression"),
        ("regex:z(.)", "does not match the start of column 'a'"),
    ],
)
def test_bad_group_patterns(spec, message):
    with pytest.raises(TableError, match=message):
        read_groups(spec, ["a", "b"])


def test_diagnose(table, tmp_path):
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["diagnose", str(table), "--target", "y", "--groups", "sep:_", "--out", str(out)])
    plt.close("all")
    assert result.exit_code == 0, result.output
    assert "delta_out" in result.output
    assert "guarantee" in result.output
    assert (out / "coherence.png").stat().st_size > 1000


def test_diagnose_as_json(table):
    result = CliRunner().invoke(app, ["diagnose", str(table), "--target", "y", "--groups", "2", "--json"])
    answer = json.loads(result.output)
    assert {"guaranteed", "conditions"} == set(answer)
    assert {"delta_in", "delta_out"} <= {c["condition"] for c in answer["conditions"]}


def test_diagnose_refuses_with_exit_code_2(tmp_path):
    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "none.csv"), "--target", "y"])
    assert result.exit_code == 2
    assert "There is no file" in result.output
