"""Standard input and output, pipes, files of other programs, and places that are not overwritten."""

import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cli.running import RUNNER, covey, done, refused
from covey.cli.app import app

FULL = "/dev/full"
COVEY = [sys.executable, "-m", "covey"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table and a fit of it."""
    folder, rng = tmp_path_factory.mktemp("streams"), np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "city": rng.choice(["Köln", "Nîmes"], 60)})
    frame["y"] = 2 * frame["a"] + (frame["city"] == "Köln") + 0.1 * rng.standard_normal(60)
    frame.to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", "-o", folder / "fit")
    return folder


def predicted(*arguments, **options):
    result = done("predict", *arguments, **options)
    return pd.read_csv(io.StringIO(result.stdout))["prediction"].to_numpy()


def contents(frame):
    """The same table in every format that a pipe can have."""
    parquet, feather = io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    frame.to_feather(feather)
    text = frame.to_csv(index=False)
    windows = frame.to_csv(index=False, sep=";").encode("cp1252")
    unicode = frame.to_csv(index=False, sep="\t").encode("utf-16")
    return [text.encode(), gzip.compress(text.encode()), windows, unicode, parquet.getvalue(), feather.getvalue()]


@pytest.mark.parametrize("k", range(6), ids=["csv", "gzip", "windows", "utf-16", "parquet", "feather"])
def test_a_table_from_standard_input(fitted, k):
    frame = pd.read_csv(fitted / "t.csv")
    expected = predicted(fitted / "fit", fitted / "t.csv")
    np.testing.assert_allclose(predicted(fitted / "fit", "-", input=contents(frame)[k]), expected, rtol=1e-9)


def test_a_fit_from_standard_input_is_the_same(fitted, tmp_path):
    content = (fitted / "t.csv").read_bytes()
    arguments = ["fit", "-", "-t", "y", "--no-nested", "-o", str(tmp_path / "fit")]
    assert RUNNER.invoke(app, arguments, input=content).exit_code == 0
    assert (tmp_path / "fit" / "rating.csv").read_bytes() == (fitted / "fit" / "rating.csv").read_bytes()
    refused(covey("fit", "-", "-t", "y", "-o", "-", input=content), "A folder cannot be written to standard output")
    refused(covey("predict", fitted / "fit", "-", input=b""), "- cannot be read as a table: it is empty")


def test_a_named_pipe(fitted, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["/bin/sh", "-c", f"cat '{fitted / 't.csv'}' > '{pipe}'"])
    np.testing.assert_array_equal(predicted(fitted / "fit", pipe), predicted(fitted / "fit", fitted / "t.csv"))
    assert writer.wait(timeout=10) == 0


def test_excel(fitted, tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.read_csv(fitted / "t.csv").assign(when=pd.date_range("2020", periods=60))
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    np.testing.assert_allclose(
        predicted(fitted / "fit", tmp_path / "t.xlsx"), predicted(fitted / "fit", fitted / "t.csv"), rtol=1e-9
    )
    import covey as library

    pd.testing.assert_frame_equal(library.read_table(tmp_path / "t.xlsx"), frame, check_dtype=False)
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        frame.to_excel(book, sheet_name="more", index=False)
    refused(covey("predict", fitted / "fit", tmp_path / "two.xlsx"), "several sheets with content, 'data', 'more'")


def test_text_of_windows_is_read_with_a_notice(fitted, tmp_path):
    frame = pd.read_csv(fitted / "t.csv")
    frame.to_csv(tmp_path / "t.csv", index=False, encoding="cp1252")
    result = done("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit")
    assert "Köln" in result.stdout
    assert "was read as Windows-1252" in result.stderr


def test_files_are_not_overwritten(fitted, tmp_path):
    file = tmp_path / "p.csv"
    done("predict", fitted / "fit", fitted / "t.csv", "-o", file)
    file.write_text("mine")
    refused(covey("predict", fitted / "fit", fitted / "t.csv", "-o", file), "exists already", "--overwrite")
    refused(covey("path", fitted / "t.csv", "-t", "y", "-o", file), "exists already", "--overwrite")
    assert file.read_text() == "mine"
    done("predict", fitted / "fit", fitted / "t.csv", "-o", file, "--overwrite")
    assert file.read_text() != "mine"


def test_a_column_is_kept_once_and_not_under_the_name_of_a_prediction(fitted, tmp_path):
    pd.read_csv(fitted / "t.csv").rename(columns={"y": "prediction"}).to_csv(tmp_path / "t.csv", index=False)
    kept = covey("predict", fitted / "fit", tmp_path / "t.csv", "--keep", "city", "--keep", "a,city").stdout
    assert kept.startswith("city,a,prediction\n")
    refused(covey("predict", fitted / "fit", tmp_path / "t.csv", "--keep", "prediction"), "have a column of this name")


def test_standard_output_by_name(fitted):
    default = covey("predict", fitted / "fit", fitted / "t.csv").stdout
    assert covey("predict", fitted / "fit", fitted / "t.csv", "--out", "-").stdout == default
    path = pd.read_csv(io.StringIO(covey("path", fitted / "t.csv", "-t", "y", "--out", "-").stdout))
    assert list(path.columns) == ["time", "group", "column", "coefficient"]


def test_places_that_are_no_places(fitted, tmp_path):
    refused(covey("fit", fitted / "t.csv", "-t", "y", "--out", "/"), "/ is the root of all folders")
    result = covey("fit", fitted / "t.csv", "-t", "y", "--out", tmp_path / "a" / ".." / "b")
    assert result.stdout.endswith(f"The report: {tmp_path / 'b' / 'report.html'}\n")
    done("predict", tmp_path / "b", fitted / "t.csv", "--out", tmp_path / "c" / ".." / "p.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b", "p.csv"]


def test_a_cell_that_holds_a_book(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i % 7}\n" for i in range(40)) + "z" * 5_000_000 + ",1\n")
    result = covey("fit", tmp_path / "t.csv", "-t", "y")
    refused(result, "zzz...' in row 41")
    assert len(result.stderr) < 500


def test_a_reader_that_has_seen_enough_is_no_error(fitted):
    read, write = os.pipe()
    os.close(read)
    command = [*COVEY, "predict", fitted / "fit", fitted / "t.csv"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists(FULL), reason="this system has no /dev/full")
def test_an_output_that_is_full_or_closed(fitted, tmp_path):
    fit = [*COVEY, "fit", fitted / "t.csv", "-t", "y", "--no-nested", "--out", tmp_path / "fit"]
    with open(FULL, "w") as full:
        for command, kept in ((fit, f"; {tmp_path / 'fit'} is complete."), ([*COVEY, "--version"], ".")):
            result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            assert result.returncode == 141
            expected = f"error: Standard output cannot be written: No space left on device{kept}"
            assert result.stderr.strip() == expected
    assert (tmp_path / "fit" / "report.html").is_file()
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COVEY, "predict", fitted / "fit", fitted / "t.csv"],
        capture_output=True, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr.strip()) == (
        2,
        "error: Standard output is closed: give a file with --out.",
    )


def test_a_name_wins_over_a_pattern(fitted):
    done("path", fitted / "t.csv", "-t", "y", "--curve", "*:5", "--levels", "city", "--linear", "a", "--json")
    refused(covey("path", fitted / "t.csv", "-t", "y", "--curve", "*", "--linear", "*"), "both --linear and --curve")
