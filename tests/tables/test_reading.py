"""Files to tables, whatever their kind and their separators; groups from every kind of pattern."""

import gzip

import numpy as np
import pandas as pd
import pytest

import covey
import covey.tables.text
from covey.tables import TableError, find_columns, find_files, read_groups, read_table
from covey.tables.text import read_text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,2.5\n3,4\n"),
        ("t.csv", "\ufeffa,b\n1,2.5\n3,4\n"),
        ("t.csv", "a;b\n1;2.5\n3;4\n"),
        ("t.csv", "a, b\r\n1, 2.5\r\n3, 4\r\n"),
        ("t.csv", '"a","b"\n1,2.5\n3,4'),
        ("t.csv", "a|b\n1|2.5\n3|4\n"),
        ("t.tsv", "a\tb\n1\t2.5\n3\t4\n"),
        ("T.TXT", "a\tb\n1\t2.5\n3\t4\n"),
        ("t.tsv.gz", "a\tb\n1\t2.5\n3\t4\n"),
    ],
)
def test_text_of_every_kind(tmp_path, name, content):
    write = gzip.open if name.endswith(".gz") else open
    with write(tmp_path / name, "wt", newline="", encoding="utf-8") as file:
        file.write(content)
    expected = pd.DataFrame({"a": [1, 3], "b": [2.5, 4.0]})
    pd.testing.assert_frame_equal(read_table(tmp_path / name), expected)


def test_quoted_names_and_values_with_line_ends(tmp_path):
    (tmp_path / "t.csv").write_text('"a, or b",c\n"one\ntwo",1\nthree,2\n')
    frame = read_table(tmp_path / "t.csv")
    assert frame.columns.tolist() == ["a, or b", "c"]
    assert frame.iloc[0, 0] == "one\ntwo"


@pytest.mark.parametrize("longest", [100, 101, 1000])
def test_a_line_as_long_as_may_be(tmp_path, longest):
    file = tmp_path / "t.csv"
    file.write_text("a\n" + "1" * longest + "\n2\n")
    assert len(read_text(file, ".csv", longest_line=longest)) == 2
    file.write_text("a\n" + "1" * (longest + 1) + "\n2\n")
    with pytest.raises(TableError, match=f"a line of more than {longest} bytes"):
        read_text(file, ".csv", longest_line=longest)
    file.write_text("a\n" + "1\n" * longest)  # long, but not in one line
    assert len(read_text(file, ".csv", longest_line=longest)) == longest


def test_parquet_and_feather(tmp_path):
    frame = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", "y"], "c": pd.Categorical(["u", "v"])})
    frame.to_parquet(tmp_path / "t.pq")
    frame.to_feather(tmp_path / "t.arrow")
    for name in ("t.pq", "t.arrow"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)


def test_parts_are_in_order_and_columns_by_name(tmp_path):
    for i in range(12):
        part = pd.DataFrame({"i": [i], "x": [0.5]})
        (part if i % 2 else part[["x", "i"]]).to_parquet(tmp_path / f"part-{i:02d}.parquet")
    (tmp_path / "_SUCCESS").touch()  # beside the parts that Spark writes
    table = read_table(tmp_path)
    assert table["i"].tolist() == list(range(12))
    assert [file.name for file in find_files([tmp_path / "part-0[23]*"])] == ["part-02.parquet", "part-03.parquet"]


def test_columns_by_name_before_pattern():
    columns = ["x*", "x1", "x2"]
    assert find_columns("x*", columns, "--drop") == ["x*"]
    assert find_columns("x?", columns, "--drop") == columns
    with pytest.raises(TableError, match="did you mean 'x1'"):
        find_columns("x11", columns, "--drop")


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("_", ("a", "b", "c")),
        ("sep:_", ("a", "b", "c")),
        ("regex:(.)", ("a", "b", "c")),
        (["a_*", "b_?"], ("a", "b", "c")),
        (["a_*"], ("a", "b_1", "b_2", "c")),
        (["both=[ab]_*"], ("both", "c")),
        ("5", (0,)),
        ("1", ("a_1", "a_2", "b_1", "b_2", "c")),
        (None, ("a_1", "a_2", "b_1", "b_2", "c")),
    ],
)
def test_groups_from_names(spec, names):
    assert read_groups(spec, ["a_1", "a_2", "b_1", "b_2", "c"]).names == names


def test_digits_with_leading_zeros_name_a_group_and_no_size():
    assert read_groups("00731", ["00731", "00732"]).names == ("00731", "00732")
    with pytest.raises(TableError, match="'0002' is not a file, size or pattern"):
        read_groups("0002", ["00731", "00732"])


def test_a_group_file_with_and_without_a_header(tmp_path):
    file = tmp_path / "groups.csv"
    for header in ("column,group\n", ""):
        file.write_text(f"{header}a,1\nb,2\nc,1\n")
        groups = read_groups(str(file), ["a", "b", "c"])
        assert groups.labels.tolist() == [0, 1, 0]


def test_the_reader_of_the_command_line_in_python(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1,5;2\n")
    (tmp_path / "b.csv").write_text("y;x\n3;2,5\n")
    files = [str(tmp_path / "a.csv"), tmp_path / "b.csv"]
    expected = pd.DataFrame({"x": [1.5, 2.5], "y": [2, 3]})
    pd.testing.assert_frame_equal(covey.read_table(files, decimal=","), expected)
    pd.testing.assert_frame_equal(covey.read_table(str(tmp_path / "?.csv"), decimal=","), expected)
    with pytest.raises(TableError, match="sep= must be one character, tab or space, not 'ab'"):
        covey.read_table(tmp_path / "a.csv", sep="ab")
    with pytest.raises(TableError, match=r"a\.csv is given twice"):
        covey.read_table([*files, str(tmp_path / "a*.csv")])
    with pytest.raises(TableError, match="There is no file"):
        covey.read_table(tmp_path / "c.csv")


def test_a_first_line_that_is_no_header_is_shown(tmp_path):
    (tmp_path / "t.csv").write_text("# exported today\na,b\n1,2\n")
    with pytest.raises(
        TableError, match=r"in its header, '# exported today'; .* if that line is not the header, remove"
    ):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("# exported\n# today\na,b,c\n1,2,3\n")
    with pytest.raises(TableError, match=r"cannot be read .* The first line is '# exported': if that is not"):
        read_table(tmp_path / "t.csv")


def test_values_that_stand_for_missing_ones(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, None, None], "b": ["u", None, "w", "u"]})
    (tmp_path / "t.csv").write_text("a,b\n1,u\n2,?\n-999,w\n.,u\n")
    read = read_table(tmp_path / "t.csv", na_values=[".", "?", "-999"])
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    assert read["a"].dtype == float
    pd.DataFrame({"a": [1, 2, -999, -999], "b": ["u", "?", "w", "u"]}).to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet", na_values=[".", "?", "-999"])
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_leading_zeros_are_kept(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("zip,n,when,x\n00731,1,2020-01-01,0.5\n10115,,03:35,05.5\n", encoding=encoding)
    frame = read_table(tmp_path / "t.csv")
    assert frame["zip"].tolist() == ["00731", "10115"]
    assert frame.dtypes[["n", "x"]].tolist() == [np.float64, np.float64]
    (tmp_path / "t.csv").write_text('a;b\n1;"007"\n2;\n', encoding=encoding)
    assert read_table(tmp_path / "t.csv")["b"].tolist()[0] == "007"


def test_a_code_where_two_blocks_meet(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 20 + "1,0042\n")
    for size in range(1, 20):
        monkeypatch.setattr(covey.tables.text, "BLOCK", size)
        assert read_table(tmp_path / "t.csv")["b"].tolist()[-1] == "0042", size


def test_names_that_are_missing_in_the_first_line(tmp_path):
    (tmp_path / "t.csv").write_text("Person,,Result,\na,b,c,y\n1,2,3,4\n5,6,7,8\n")
    with pytest.warns(UserWarning, match="no name for 2 of its columns in the first line, 'Person,,Result,': if that"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(",a,y,\n0,1,2,\n1,3,4,\n")  # row numbers, and a column without values
    read_table(tmp_path / "t.csv")


def test_a_separator_at_the_end_of_every_line(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;\n1;2;\n3;4;\n")
    assert read_table(tmp_path / "t.csv").columns.tolist() == ["a", "b"]
    (tmp_path / "u.csv").write_text("a;b\n1;2;\n3;4;\n")
    with pytest.raises(TableError, match="lines end with a separator, which the header lacks"):
        read_table(tmp_path / "u.csv")


def test_row_names_beside_codes_are_named_as_such(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\nr1,00731,2\nr2,00732,3\n")
    with pytest.raises(TableError, match="write it without row names, or name them"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("first", [0, 1])
def test_row_numbers_without_a_name_are_not_left_out_silently(tmp_path, first):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(first, first + 9)))
    with pytest.raises(TableError, match="more values in a row than names in its header"):
        read_table(tmp_path / "t.csv")
