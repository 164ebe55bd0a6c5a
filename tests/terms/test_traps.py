"""What looks like one thing and is another: said, not guessed."""

import numpy as np
import pandas as pd
import pytest

from covey.tables import TableError
from covey.terms import Terms
from covey.terms.guessing import with_dates_and_codes

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
    shop = [f"s{i % 25}" for i in range(N)]
    said = "Left out: 'shop' (free text). To use shop by its values, say terms={'shop': 'levels'}."
    assert said in remarks(shop=shop)
    assert "Left out" not in remarks(z=[f"{i % 15}{'abcde'[i % 5]}" for i in range(N)])  # house numbers have no units


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"{value:.2f}".replace("-", "\u2212") for value in X], "with a dash instead of a minus"),
        ([f"({i}.50)" if i % 3 else f"{i}.50" for i in range(N)], "a number in brackets; write it with a minus"),
        ([f"{i % 24}:{i:02d}" for i in range(N)], "holds times of the day, '0:00' in row 1"),
        ([f"{i} kg" for i in range(N)], "a number with a unit"),
        (["<0.5" if i % 2 else f"{i}.1" for i in range(N)], "holds '<0.5' in row 2 below the header, a limit instead"),
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


def test_dates_in_more_than_one_format():
    days = pd.date_range("2020-01-05", periods=N, freq="9D")
    with pytest.raises(TableError, match=r"in more than one format, '2020-01-05' and '14[.]01[.]2020'; write all"):
        remarks(d=[f"{day:%Y-%m-%d}" if i % 2 == 0 else f"{day:%d.%m.%Y}" for i, day in enumerate(days)])
    texts = days.strftime("%Y-%m-%d").to_numpy(dtype=object)
    texts[[3, 7]] = "unknown"
    with pytest.raises(TableError, match=r"'unknown' in row 4 .*not a date \(2 of 60 .*na_values=\['unknown'\]"):
        remarks(d=texts)
    texts[[3, 7]] = "2020-02-30"
    with pytest.raises(TableError, match="'2020-02-30' in row 4 below the header, which is not a date"):
        remarks(d=texts)


@pytest.mark.parametrize(
    "written",
    ["{:.1f}%", "$ {:,.2f}", "{:.2f} €", "1.{:03.0f},50 €", "{:.1f}kg", "{:.1f} years", "{:.0f} °", "1'{:03.0f} CHF"],
)
def test_numbers_with_units(written):
    with pytest.raises(TableError, match="a number with a unit; write the number alone"):
        remarks(z=[written.format(i) for i in range(N)])


def test_digits_with_leading_zeros_are_codes():
    zips = np.array(["00731", "10115", "80331"])[np.arange(N) % 3]
    said = "Digits with leading zeros are codes, and their values levels: 'z'. If z is a number, say terms={'z': 'lin"
    assert said in remarks(z=zips)
    assert said in remarks(z=[None, *zips[1:]])
    assert "codes" not in remarks(z=[f"{i % 3}" for i in range(N)])
    assert "Left out: 'z' (codes)." in remarks(z=[f"{i % 20:03d}" for i in range(N)])
    encoding = Terms({"z": "linear"}).fit(pd.DataFrame({"z": zips}))
    assert encoding.table()["values"].tolist() == ["731 to 80331"]


def test_codes_are_codes_in_rows_without_leading_zeros():
    frame = pd.DataFrame({"z": ["00731"] * 3 + ["10115", "80331"] * 20})
    some = with_dates_and_codes(frame).iloc[3:]
    assert Terms().fit(some).table()["kind"].tolist() == ["levels"]
    assert with_dates_and_codes(frame.iloc[3:]).dtypes.tolist() == frame.dtypes.tolist()


def test_a_row_of_totals_is_pointed_out():
    c = np.array(["u", "v", "w"])[np.arange(N) % 3].astype(object)
    assert "last row" not in remarks(c=c)
    assert "The last row has 'Total' in 'c': if it sums up the other rows" in remarks(c=[*c[:-1], "Total"])


def test_whole_numbers_with_the_name_of_a_code():
    zips = np.array([10115, 20095, 80331])[np.arange(N) % 3]
    for name in ("plz", "ZIP code", "home_postcode"):
        said = f"{name} is taken as a number: if its values are codes, say terms={{{name!r}: 'levels'}}."
        assert said in remarks(**{name: zips})
    assert "codes" not in remarks(price=zips, zip=zips + 0.5)


def test_time_zones_are_said_to_be_read_as_utc():
    local = pd.date_range("2024-03-01", periods=N, freq="7h", tz="Europe/Berlin")
    said = "Times with a time zone are read as UTC: 'd'."
    assert said in remarks(d=local)
    assert said in remarks(d=[one.isoformat() for one in local])
    assert "UTC" not in remarks(d=local.tz_convert("UTC"), e=[one.isoformat() for one in local.tz_localize(None)])
