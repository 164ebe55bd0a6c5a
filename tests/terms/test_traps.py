"""What looks like one thing and is another: said, not guessed."""

import numpy as np
import pandas as pd
import pytest

from covey.tables import TableError
from covey.terms import Terms

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal(N)


def remarks(**columns):
    return " ".join(Terms().fit(pd.DataFrame({"x": X, **columns})).remarks)


def test_codes_for_missing_values():
    z = X.copy()
    z[::6] = -999
    assert f"z is -999 in 10 rows, far from all other values ({np.sort(z)[10]:g} to" in remarks(z=z)
    ages = RNG.integers(20, 85, N)
    ages[::6] = 999
    assert "ages is 999 in 10 rows" in remarks(ages=ages)
    ages[::6] = 99  # somebody may be that old
    assert "ages is" not in remarks(ages=ages)
    assert "rare" not in remarks(rare=np.where(np.arange(N) == 3, -999.0, X))


def test_levels_that_differ_in_spelling_only():
    c = np.array(["red", "Red ", "blue", "BLUE", "green"])[np.arange(N) % 5]
    assert "c has levels that differ in spaces or capitals only: 'BLUE', 'blue', 'Red ', 'red'" in remarks(c=c)


def test_text_that_is_left_out_can_be_used():
    assert "Left out: 'shop' (free text). To use shop by its values, say terms={'shop': 'levels'}." in remarks(
        shop=[f"s{i % 25}" for i in range(N)]
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"({i}.50)" if i % 3 else f"{i}.50" for i in range(N)], "a number in brackets; write it with a minus"),
        ([f"{i % 24}:{i:02d}" for i in range(N)], "holds times of the day, '0:00' in row 1"),
        ([f"{i} kg" for i in range(N)], "a number with a unit"),
    ],
)
def test_numbers_in_disguise(values, words):
    with pytest.raises(TableError) as error:
        remarks(z=values)
    assert words in str(error.value)


@pytest.mark.parametrize("written", ["%d %b %Y", "%B %d, %Y", "%d-%b-%y", "%b %Y"])
def test_dates_with_names_of_months(written):
    days = pd.date_range("2019-03-01", periods=N, freq="MS" if written == "%b %Y" else "9D")
    encoding = Terms().fit(pd.DataFrame({"d": days.strftime(written)}))
    assert encoding.table()["values"].tolist() == [f"2019-03-01 to {days[-1]:%Y-%m-%d}"]


def test_a_variable_that_repeats_another_is_left_out():
    """Of two columns with the same dates, each took half of the trend, and their pair was the curve."""
    days = pd.date_range("2021-01-03", periods=N, freq="3D")
    frame = pd.DataFrame(
        {
            "day": days.strftime("%d.%m.%Y"),
            "opened": days.strftime("%b %d %Y"),
            "x": X,
            "again": X,
            "c": np.array(["u", "v", "w"])[np.arange(N) % 3],
            "d": np.array(["u", "v", "w"])[np.arange(N) % 3],
            "x_missing": np.where(np.arange(N) == 3, np.nan, X),
        }
    )
    encoding = Terms().fit(frame)
    assert encoding.dropped == {
        "opened": "the same values as day", "again": "the same values as x", "d": "the same values as c",
    }  # fmt: skip
    assert "'opened' (the same values as day)" in encoding.remarks[0]
    assert "again" not in Terms({"again": "linear"}).fit(frame).dropped  # what a user asks for is used


def test_text_in_a_column_of_numbers_says_what_may_be_missing():
    texts = np.array([f"{value:.3f}" for value in X], dtype=object)
    texts[[3, 7]] = ".", "?"
    with pytest.raises(TableError, match=r"2 of 60 values are not: '\.', '\?'\); if that means missing, read"):
        remarks(z=texts)
    texts[3] = "<0.1"  # a number after all
    with pytest.raises(TableError) as refused:
        remarks(z=texts)
    assert "na_values" not in str(refused.value)


def test_a_long_text_is_shortened_where_it_is_listed():
    c = np.array(["a", "b", "z" * 100_000])[np.arange(N) % 3]
    line = Terms().fit(pd.DataFrame({"c": c})).table()["values"][0]
    assert line.startswith("3 levels: a, b, zzz")
    assert len(line) < 200


def test_dates_without_separators():
    days = pd.date_range("2020-01-05", periods=N, freq="9D").strftime("%Y%m%d").astype(int)
    assert "day is taken as a number: if 20200105 is a date, write 2020-01-05." in remarks(day=days)
    assert "day is" not in remarks(day=days + 40)  # no 45th of January
    lines = Terms().fit(pd.DataFrame({"day": days, "x": X})).table()
    assert lines["values"][0] == f"20200105 to {days.max()}"


def test_what_is_counted_stands_beside_the_name():
    z = X.copy()
    z[::6] = np.nan
    assert "with a flag where at least 3 rows miss them: 'z' (10)." in remarks(z=z)
