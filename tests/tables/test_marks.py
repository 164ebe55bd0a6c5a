"""Marks in numbers: thousands and decimals are told apart where they can be, and asked for where they cannot."""

import numpy as np
import pandas as pd
import pytest

import covey
from cli.running import covey as command
from cli.running import refused
from covey.settings import as_options
from covey.tables import TableError, read_table

PRICES = [1701263, 957, 2596, 310, 44210, 8, 1057566, 12000, 999, 73004, 5100, 640]


def written(separator, mark, quoted=False, values=PRICES):
    """A table whose prices have a mark between thousands."""
    prices = [f"{value:,}".replace(",", mark) for value in values]
    lines = [f'"{price}"' if quoted else price for price in prices]
    return f"price{separator}y\n" + "".join(f"{price}{separator}{i % 5}\n" for i, price in enumerate(lines))


@pytest.mark.parametrize(
    ("content", "marks"),
    [
        (written(",", ",", quoted=True), {"thousands": ","}),
        (written(";", ","), {"thousands": ","}),
        (written(";", ","), {"decimal": "."}),
        (written(";", "."), {"thousands": "."}),
        (written(";", "."), {"decimal": ","}),
        (written(",", " "), {"thousands": "space"}),
        (written(",", "\u202f"), {"thousands": "space"}),
        (written(",", "'"), {"thousands": "'"}),
    ],
)
def test_thousands_are_read_as_they_are_meant(tmp_path, content, marks):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    assert read_table(tmp_path / "t.csv", **marks)["price"].tolist() == PRICES


def test_decimals_beside_thousands(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1.234,5;0,5\n999,25;-1.000\n12;2\n")
    expected = pd.DataFrame({"a": [1234.5, 999.25, 12], "b": [0.5, -1000, 2]})
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv", decimal=","), expected)
    (tmp_path / "q.csv").write_text('a,b\n"1,5",2\n"0,25",3\n')  # quoted, in a comma-separated file
    assert read_table(tmp_path / "q.csv", decimal=",")["a"].tolist() == [1.5, 0.25]


def test_thousands_never_turn_other_text_into_numbers(tmp_path):
    """pandas' own thousands= reads 1,5 as 15 and 12,34 as 1234."""
    (tmp_path / "t.csv").write_text("a;b\n1,5;12,34\n2,596;x\n")
    frame = read_table(tmp_path / "t.csv", thousands=",")
    assert frame["a"].tolist() == ["1,5", "2596"]
    assert frame["b"].tolist() == ["12,34", "x"]


@pytest.mark.parametrize(
    ("content", "words", "never"),
    [
        (
            written(",", ",", quoted=True),
            ["with commas between thousands", "read the table with --thousands ','"],
            "--decimal",
        ),
        (
            written(";", ",", values=PRICES[1:6] * 3 + list(range(2000, 2010))),
            ["2596 with --thousands ','", "2.596 with --decimal ','"],
            "identifier",
        ),
        (written(",", " "), ["with spaces between thousands", "--thousands 'space'"], "identifier"),
        (
            written(";", ".", values=PRICES[1:6]),
            ["holds '2.596' beside '957'", "--thousands '.' if that is 2596", "--decimal '.'"],
            "identifier",
        ),
        (
            "price;y\n" + "".join(f"{i},{i % 9}5;{i % 4}\n" for i in range(12)),
            ["a decimal comma; read the table with --decimal ','"],
            "thousands",
        ),
    ],
)
def test_the_command_line_offers_the_mark(tmp_path, content, words, never):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    result = command("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit")
    refused(result, *words)
    assert never not in result.stderr
    with pytest.raises(TableError) as error:  # the same words in Python
        covey.GroupSparseRegressor(terms="auto").fit(covey.read_table(tmp_path / "t.csv"), np.arange(len(content)))
    assert as_options(str(error.value)) == result.stderr.removeprefix("error: ").strip()


def test_a_certain_column_settles_a_doubtful_one():
    frame = pd.DataFrame({"a": [f"{1_000_000 + i:,}" for i in range(20)], "b": [f"{1000 + i:,}" for i in range(20)]})
    with pytest.raises(TableError, match="in short, thousands=',':"):
        covey.GroupSparseRegressor(terms="auto").fit(frame, np.arange(20.0))


def test_decimals_are_left_alone(tmp_path):
    """Three decimals everywhere, fewer decimals beside whole numbers, or large whole numbers: no question."""
    columns = {
        "a": ["1.250", "2.375", "3.000"],
        "b": ["1.25", "2", "3"],
        "c": ["0.125", "1", "2"],
        "d": ["1.250", "2000", "3"],
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv")["d"].tolist() == [1.25, 2000, 3]
    pd.DataFrame({"a": ["1.250", "2", "3"]}).to_csv(tmp_path / "u.csv", index=False)
    with pytest.raises(TableError, match=r"'1\.250' beside '2'"):
        read_table(tmp_path / "u.csv")
    assert read_table(tmp_path / "u.csv", decimal=".")["a"].tolist() == [1.25, 2, 3]


def test_a_target_with_marks(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{i % 7};{i},{i % 9}5\n" for i in range(12)))
    refused(
        command("fit", tmp_path / "t.csv", "-t", "y"), "The target 'y' holds '0,05', a decimal comma", "--decimal ','"
    )
    (tmp_path / "u.csv").write_text("a;y\n" + "".join(f"{i % 7};{i + 1},{i:03d}\n" for i in range(12)))
    refused(
        command("fit", tmp_path / "u.csv", "-t", "y"), "'1,000', which is 1000 with --thousands ','", "--decimal ','"
    )


@pytest.mark.parametrize("mark", [".", " ", "'"])
def test_thousands_with_a_decimal_comma_beside_smaller_numbers(tmp_path, mark):
    rows = [f"{i % 7};{i},25\n{i % 5};{i}{mark}{i:03d},50\n" for i in range(1, 20)]
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(rows))
    name = "space" if mark == " " else mark
    refused(command("fit", tmp_path / "t.csv", "-t", "y"), "and a decimal comma", "--decimal ',' and --thousands")
    read = read_table(tmp_path / "t.csv", decimal=",", thousands=name)
    assert read["y"].tolist()[:4] == [1.25, 1001.5, 2.25, 2002.5]


def test_marks_that_contradict_each_other(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1;2\n")
    refused(command("fit", tmp_path / "t.csv", "-t", "y", "--decimal", ",", "--thousands", ","), "are the same mark")
    with pytest.raises(TableError, match="thousands= must be"):
        read_table(tmp_path / "t.csv", thousands="x")


def test_predict_names_the_marks_of_the_fit(tmp_path):
    # without the mark, 5.258 is a number too, a thousand times smaller
    rng = np.random.default_rng(0)
    sizes = rng.integers(1000, 9999, 60)
    lines = [f"{size // 1000}.{size % 1000:03d};{size + 9 * rng.standard_normal():.0f}" for size in sizes]
    (tmp_path / "t.csv").write_text("size;y\n" + "\n".join(lines))
    command("fit", tmp_path / "t.csv", "--target", "y", "--thousands", ".", "--out", tmp_path / "fit", "--no-nested")
    said = command("predict", tmp_path / "fit", tmp_path / "t.csv").stderr
    assert "notice: The fit read its table with --thousands '.': add it if this one is written alike." in said
    assert "--thousands" not in command("predict", tmp_path / "fit", tmp_path / "t.csv", "--thousands", ".").stderr
