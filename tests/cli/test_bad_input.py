"""What cannot be fitted is refused in one line with a remedy, exit code 2, and nothing half-written."""

import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.running import covey, refused

NAMES = "a,y\n" + "".join(f"{i},p{i % 40}\n" for i in range(80))
MIXED = "a,y\n" + "".join(f"{i},{i % 7}\n" for i in range(80)) + "red,2\n"
IDENTIFIERS = "id,y\n" + "".join(f"p{i},{i % 7}\n" for i in range(80))
GOOD = "a_1,a_2,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 7 - i % 5}\n" for i in range(40))


def fit(tmp_path, content, *more, name="table.csv"):
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        file.write_text(content)
    return covey("fit", file, "--target", "y", "--out", tmp_path / "fit", *more)


CASES = {
    "no file": (None, "There is no file"),
    "empty file": ("", "it is empty"),
    "header only": ("a,y\n", "has no rows"),
    "names twice": ("a,a,y\n1,2,3\n", "columns of the same name: 'a'; rename"),
    "two header lines": (
        "u,,v,\na,b,c,y\n1,2,3,4\n",
        "no column 'y' for --target",
        "if the first line is not the header",
    ),
    "percentages": (
        "a,y\n" + "".join(f"{i % 7},{i}.5%\n" for i in range(40)),
        "'y' holds '0.5%', a number with a unit",
    ),
    "no header": ("1,2\n3,4\n5,6\n", "no column 'y' for --target", "if the first line is not the header, add one"),
    "total": (
        "a,b,y\n" + "".join(f"a{i % 3},{i},{i % 7}\n" for i in range(60)) + "a0,Total,9\n",
        "'b' holds 'Total' in row 61",
        "if the last row sums up the others, delete it",
    ),
    "no target": ("a,b\n1,2\n3,4\n", "no column 'y' for --target", "the columns are 'a', 'b'"),
    "other separator": ("a:y\n1:2\n3:4\n", "the columns are 'a:y'", "give the separator with --sep"),
    "constant target": ("a,y\n1,2\n3,2\n", "'y' is 2 in every row"),
    "misspelt target": ("a,y\n1,1\n2,l\n3,2\n", "Column 'y' holds 'l' in row 2", "needs a number in every row"),
    "names as target": (NAMES, "'y' holds text with 40 different values", "--family multinomial"),
    "rare class": ("a,y\n1,low\n2,low\n3,high\n", "'y' is 'high' in a single row", "combine rare classes"),
    "one class": ("a,y\n1,low\n2,low\n", "'y' is low in every row"),
    "missing class": ("a,y\n1,low\n2,\n3,high\n4,low\n", "'y' is missing in 1 row of 4"),
    "missing target": ("a,y\n1,\n2,1\n3,2\n", "'y' is missing in 1 row of 3"),
    "one value": (
        "a,y\n1,1\n2,\n3,1\n4,1\n",
        "'y' is missing in 1 row of 4 and 1.0 in all others",
        "write a word such as no",
    ),
    "no target at all": ("a,y\n1,\n2,\n3,\n", "'y' is missing in every row: is it the right column?"),
    "other capitals": ("a,Y\n1,1\n2,3\n", "no column 'y' for --target; did you mean 'Y'?"),
    "infinite target": ("a,y\n1,inf\n2,1\n", "'y' is infinite in row 1"),
    "hundreds of digits": ("a,y\n" + "1,2\n" * 5 + f"3,{'9' * 400}\n", "'y' is infinite in row 6"),
    "target alone": ("y\n1\n2\n", "No column is left"),
    "mixed types": (MIXED, "Column 'a' holds 'red' in row 81", "--levels a", "--drop a"),
    "identifiers": (IDENTIFIERS, "No variable of the table can be used", "'id' (identifiers", "--levels id"),
    "one level": ("a,y\nx,1\nx,2\nx,3\n", "No variable of the table can be used", "'a' (constant)"),
    "no value": ("a,y\n,1\n,2\n,3\n", "No variable of the table can be used", "'a' (all values are missing)"),
    "infinite": ("a,y\n1,1\ninf,2\n3,3\n", "'a' has infinite values"),
    "row names": ("a,y\nr1,1,1\nr2,5,2\n", "more values in a row than names"),
    "ragged": ("a,y\n1,2\n3,4,5,6\n", "cannot be read as a table", "line 3"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "not UTF-8 text"),
    "one row": ("a,y\n1,2\n", "The table has 1 row; a fit needs at least 2."),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tables(tmp_path, case):
    content, *words = CASES[case]
    refused(fit(tmp_path, content), *words)
    assert not (tmp_path / "fit").exists()
    assert len(list(tmp_path.iterdir())) == (content is not None)


MATRICES = {
    "infinite": ("a,y\n1,1\ninf,2\n3,3\n", "infinite in 'a'"),
    "missing": ("a,b,y\n1,,1\n2,5,2\n,6,3\n", "missing in 'a' (1), 'b' (1)", "leave out --groups"),
    "no value": ("a,b,y\n1,,1\n2,,2\n3,,1\n", "All values are missing in 'b'", "--drop"),
    "row numbers": (",a,y\n0,1,1\n1,5,2\n", "column without a name", "--drop 'Unnamed: 0'"),
}


@pytest.mark.parametrize("case", MATRICES, ids=str)
def test_matrices(tmp_path, case):
    content, *words = MATRICES[case]
    refused(fit(tmp_path, content, "--groups", "1"), *words)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.parquet", b"PAR1 nonsense", "cannot be read as Parquet"),
        ("t.feather", b"nonsense", "cannot be read as Feather"),
        ("t.xlsx", b"PK", "cannot be read as Excel"),
        ("t.ods", b"PK", "unknown extension"),
        ("t.csv.gz", b"nonsense", "cannot be read as a table"),
        ("t.csv.gz", gzip.compress(GOOD.encode())[:-20], "cannot be read as a table"),
    ],
)
def test_damaged_files(tmp_path, name, content, words):
    refused(fit(tmp_path, content, name=name), words)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("column,group\na_1,1\n", "gives no group to: 'a_2', 'b'"),
        ("column,group\na_1,1\na_2,1\nb,2\nz,2\n", "names columns that the data lack: 'z'"),
        ("column,group\na_1,1\na_2,1\nb,2\nb,1\n", "more than once: 'b'"),
        ("column,group\na_1,1\na_2,\nb,2\n", "has no group beside: 'a_2'"),
        ("column,group,why\na_1,1,x\n", "must have two columns"),
    ],
)
def test_group_files(tmp_path, groups, words):
    (tmp_path / "groups.csv").write_text(groups)
    refused(fit(tmp_path, GOOD, "--groups", tmp_path / "groups.csv"), words)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--groups", "2"], "--groups 2: Groups of 2 do not divide 3 columns"),
        (["--groups", "nowhere.csv"], "is not a file, size or pattern"),
        (["--groups", "c_*"], "matches no column"),
        (["--groups", "a_*", "--groups", "*_1"], "into both 'a' and '*_1'"),
        (["--groups", "."], "no column's name holds the separator '.'"),
        (["--groups", "regex:(a)_"], "does not match the start of column 'b'"),
        (["--groups", "regex:a"], "has no parentheses"),
        (["--groups", "regex:("], "not a regular expression"),
        (["--groups", "1", "--linear", "b"], "--linear is for tables of variables"),
        (["--groups", "1", "--pairs", "auto"], "--pairs is for tables of variables"),
        (["--curve", "c"], "--curve 'c' matches no column"),
        (["--curve", "b:2"], "at least 3 knots"),
        (["--curve", "b", "--levels", "b"], "both --curve and --levels"),
        (["--linear", "y"], "'y' is the column of --target"),
        (["--levels", "a_3"], "did you mean 'a_"),
        (["--pairs", "b:c"], "--pairs b:c: there is no variable 'c'"),
        (["--pairs", "b"], "is not a pair such as age:sex"),
        (["--pairs", "b:b"], "--pairs b:b is a variable with itself"),
        (["--pairs", "b:y"], "--pairs b:y: 'y' is the column of --target"),
        (["--pairs", "with:c"], "--pairs with:c: there is no variable 'c'"),
        (["--pairs", "auto,b:a_1"], "--pairs auto cannot be combined with 'b:a_1'"),
        (["--drop", "b", "--pairs", "b:a_1"], "'b' is the column of --drop"),
        (["--drop", "zzz"], "--drop 'zzz' matches no column"),
        (["--weights", "w"], "--weights: there is no column 'w'"),
        (["--weights", "y"], "--weights 'y' must not be negative, but is -2 in row 8"),
        (["--factors", "1"], "--factors has no effect without --groups"),
    ],
)
def test_options(tmp_path, more, words):
    refused(fit(tmp_path, GOOD, *more), words)


def test_parts_of_different_tables(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    (tmp_path / "b.csv").write_text("b,y\n1,2\n")
    refused(
        covey("fit", tmp_path / "*.csv", "-t", "y", "-o", tmp_path / "fit"), "do not belong to one table", "'a'", "'b'"
    )
    (tmp_path / "empty").mkdir()
    refused(covey("fit", tmp_path / "empty", "-t", "y"), "contains no .parquet file")
    refused(covey("fit", tmp_path / "x*.csv", "-t", "y"), "No file matches")


def test_names_twice_and_dates_in_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1.0, 2.0]] * 3, names=["a", "a", "y"]), tmp_path / "t.parquet")
    refused(covey("fit", tmp_path / "t.parquet", "-t", "y"), "columns of the same name: 'a'")
    pd.DataFrame({"when": pd.date_range("2020", periods=9), "y": np.arange(9.0)}).to_parquet(tmp_path / "u.parquet")
    refused(covey("fit", tmp_path / "u.parquet", "-t", "y", "-g", "1"), "Column 'when' holds dates", "--drop")


def test_a_line_without_end(tmp_path):
    """Two gigabytes without a line end, sparse on the disk: refused after reading a small part."""
    file = tmp_path / "endless.csv"
    with open(file, "wb") as stream:
        stream.write(b"a,y\n1,2\n")
        stream.truncate(2**31)
    if file.stat().st_blocks * 512 > 2**20:
        pytest.skip("this file system has no sparse files")
    refused(covey("fit", file, "-t", "y", "-o", tmp_path / "fit"), "a line of more than 67108864 bytes")


def test_a_folder_without_permission(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere: permissions mean nothing to root")
    refused(fit(tmp_path, GOOD, "--out", locked / "fit"), "Permission denied")
    assert not list(locked.iterdir())


def test_a_disk_that_is_read_only(tmp_path, monkeypatch):
    def fails(self, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", fails)
    refused(fit(tmp_path, GOOD), "Read-only file system", "--out")


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    write = Path.write_bytes

    def fails(self, data):
        if self.name == "path.parquet":
            write(self, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", fails)
    refused(fit(tmp_path, GOOD.encode()), "No space left on device", "free some space")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_usage(tmp_path):
    assert covey("fit").exit_code == 2
    assert covey("fit", "x.csv").exit_code == 2
    assert covey("nonsense").exit_code == 2
    assert covey("fit", "x.csv", "--target", "y", "--ties", "magic").exit_code == 2
