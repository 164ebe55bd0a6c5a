"""Dates: a trend, and the seasons that the span of the data allows."""

import json

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseRegressor, nested_score
from covey.tables import TableError
from covey.terms import Encoding, Terms
from covey.terms.unusual import NewValuesWarning


def fit(dates, **settings):
    return Terms(**settings).fit(pd.DataFrame({"d": dates}))


def names(encoding):
    return [term.name for term in encoding.terms]


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (pd.date_range("2020-01-01", periods=900, freq="D"), ["d", "d~", "d[year]", "d[week]"]),
        (pd.date_range("2020-01-01", periods=900, freq="B"), ["d", "d~", "d[year]", "d[week]"]),
        (pd.date_range("2020-01-01", periods=20, freq="D"), ["d", "d[week]"]),
        (pd.date_range("2020-01-01", periods=10, freq="D"), ["d"]),
        (pd.date_range("2020-01-01", periods=80, freq="h"), ["d", "d~", "d[day]"]),
        (pd.date_range("2020-01-01", periods=20, freq="h"), ["d"]),
        (pd.date_range("2010-01-01", periods=60, freq="MS"), ["d", "d~", "d[year]"]),
        (pd.date_range("2010-01-01", periods=60, freq="ME"), ["d", "d~", "d[year]"]),
        (pd.date_range("2010-01-01", periods=40, freq="QS"), ["d", "d~", "d[year]"]),
        (pd.date_range("1960-01-01", periods=60, freq="YS"), ["d", "d~"]),
        (pd.date_range("2010-01-04", periods=40, freq="7D"), ["d", "d~"]),
        (pd.date_range("2020-01-01", periods=2000, freq="7h"), ["d", "d~", "d[day]", "d[week]"]),
        (pd.period_range("2010-01", periods=60, freq="M"), ["d", "d~", "d[year]"]),
    ],
)
def test_the_span_decides_on_the_seasons(dates, expected):
    if len(dates) == 2000:
        assert dates[-1] - dates[0] < pd.Timedelta(days=730)
    encoding = fit(dates)
    assert names(encoding) == expected
    X = encoding.transform(pd.DataFrame({"d": dates}))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    kinds = {"d": "linear", "d~": "curve", "d[year]": "season", "d[day]": "season", "d[week]": "levels"}
    assert [term.kind for term in encoding.terms] == [kinds[name] for name in expected]
    assert all(term.variables == ("d",) for term in encoding.terms)


def test_the_seasons_are_what_they_are_called():
    dates = pd.date_range("2018-01-01", periods=1500, freq="D")
    encoding = fit(dates)
    year, week = encoding.terms[2], encoding.terms[3]
    X = encoding.transform(pd.DataFrame({"d": dates}))
    assert encoding.column_names[year.columns] == ("d[year] sin1", "d[year] cos1", "d[year] sin2", "d[year] cos2")
    np.testing.assert_allclose(X[0, year.columns], X[1461, year.columns], atol=0.01)
    monday = X[dates.day_of_week == 0][:, week.columns]
    assert encoding.column_names[week.columns][0] == "d[week]=Mon"
    assert (monday[:, 0] > 0).all()
    assert (monday[:, 1:] < 0).all()


def test_text_and_dates_are_the_same():
    dates = pd.date_range("2018-01-01", periods=100, freq="D")
    from_dates = fit(dates)
    from_text = fit(dates.strftime("%Y-%m-%d"))
    X = from_dates.transform(pd.DataFrame({"d": dates}))
    np.testing.assert_array_equal(from_text.transform(pd.DataFrame({"d": dates})), X)
    np.testing.assert_array_equal(from_dates.transform(pd.DataFrame({"d": dates.strftime("%Y-%m-%d")})), X)
    np.testing.assert_array_equal(from_dates.transform(pd.DataFrame({"d": dates.tz_localize("UTC")})), X)
    np.testing.assert_array_equal(from_dates.transform(pd.DataFrame({"d": dates.date})), X)


def test_missing_dates_are_flagged_and_have_no_season():
    dates = pd.Series(pd.date_range("2018-01-01", periods=1000, freq="D"))
    dates[::10] = pd.NaT
    encoding = fit(dates)
    X = encoding.transform(pd.DataFrame({"d": dates}))
    assert encoding.column_names[1] == "d missing"
    assert (X[::10, 0] == 0).all()
    assert (X[::10, 2:] == 0).all()
    np.testing.assert_allclose(X[::10, 1], 0.9)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)


def test_a_date_may_be_a_line_or_a_curve_only():
    dates = pd.date_range("2018-01-01", periods=1000, freq="D")
    assert names(fit(dates, variables={"d": "linear"})) == ["d"]
    assert names(fit(dates, variables={"d": "curve"})) == ["d", "d~"]


def test_what_is_drawn_and_said():
    dates = pd.date_range("2018-01-01", periods=1000, freq="D")
    encoding = fit(dates)
    grid = encoding.grid("d", 11)
    assert (grid[0], grid[-1]) == (dates[0], dates[-1])
    line = encoding.table().iloc[0]
    assert (line["kind"], line["values"]) == ("curve + [year] + [week]", "2018-01-01 to 2020-09-26")


@pytest.mark.parametrize("name", ["d", "year", "curve", "day [local]"])
def test_the_name_of_a_date_does_not_change_what_becomes_of_it(name):
    dates = pd.DataFrame({name: pd.date_range("2018-01-01", periods=1000, freq="D")})
    assert Terms().fit(dates).table()["kind"].tolist() == ["curve + [year] + [week]"]


@pytest.mark.parametrize("written", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%Y/%m/%d", "%d-%m-%Y %H:%M"])
def test_dates_of_other_countries_are_read_where_only_one_order_is_possible(written):
    days = pd.date_range("2020-01-01", periods=900, freq="D")
    theirs, iso = fit(days.strftime(written).to_series(index=range(900))), fit(days)
    assert names(theirs) == names(iso)
    table = pd.DataFrame({"d": days[:5].strftime(written)})  # ambiguous by themselves
    again = Encoding.from_state(json.loads(json.dumps(theirs.state())))
    np.testing.assert_array_equal(again.transform(table), iso.transform(pd.DataFrame({"d": days[:5]})))
    later = pd.DataFrame({"d": days[:5].strftime("%Y-%m-%d")})  # of another program
    np.testing.assert_array_equal(again.transform(later), again.transform(table))
    with pytest.raises(TableError, match=f"write them like {pd.Timestamp('2026-05-31').strftime(written)}"):
        again.transform(pd.DataFrame({"d": ["yesterday"]}))


def test_dates_of_two_orders_are_refused():
    days = pd.date_range("2010-01-01", periods=60, freq="MS")
    with pytest.raises(TableError, match="the day or the month may come first; write them as 2020-12-31"):
        fit(days.strftime("%d/%m/%Y").to_series())


def test_predict_warns_of_new_days_of_the_week_and_of_dates_far_away():
    days = pd.bdate_range("2018-01-01", periods=300)
    y = 0.02 * np.arange(300) + 2.0 * (days.day_of_week == 2) + 0.1 * np.random.default_rng(0).standard_normal(300)
    model = GroupSparseRegressor(terms="auto", selection="bic").fit(pd.DataFrame({"d": days}), y)
    assert {"d", "d[week]"} <= set(model.selected_groups_)
    with pytest.warns(NewValuesWarning) as found:
        model.predict(pd.DataFrame({"d": ["2018-02-03", "2100-01-01", None]}))
    assert [str(one.message).partition(",")[0] for one in found] == [
        "d is missing in 1 row", "d is 2100-01-01 in 1 row", "d[week] is 'Sat' in 1 row"
    ]  # fmt: skip


def test_a_fold_does_not_lose_the_order_of_days_and_months():
    days = pd.date_range("2010-01-01", periods=60, freq="MS").to_series(index=range(60)) + pd.Timedelta(0)
    days[7] += pd.Timedelta(days=20)  # the only row that shows the order
    table, y = pd.DataFrame({"d": days.dt.strftime("%d/%m/%Y")}), np.arange(60.0)
    model = GroupSparseRegressor(terms="auto", selection="bic")
    assert nested_score(model, table, y, 3, references=False).mean > 0.9


@pytest.mark.parametrize("n_dates", [80, 2])
def test_the_slope_of_a_rating_table_is_per_day(n_dates):
    """Two dates have a line between them, as many have; two numbers have a line of the table each."""
    which = np.arange(80) % n_dates
    days = pd.date_range("2020-01-01", periods=80, freq="3D")[which]
    table, y = pd.DataFrame({"d": days}), 0.01 * which + 1e-4 * np.random.default_rng(0).standard_normal(80)
    model = GroupSparseRegressor(terms={"d": "linear"}).fit(table, y)
    tables = model.to_tables()
    (line,) = tables["d"].to_dict("records")
    since = (days - line["from"]) / pd.Timedelta("1D")
    points = tables["constant"]["points"][0] + line["points"] + line["slope"] * since
    np.testing.assert_allclose(points, model.predict(table), atol=1e-9)
