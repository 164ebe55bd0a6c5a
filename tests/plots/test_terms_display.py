"""Panels of the effects of variables and pairs."""

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor, Terms
from covey.plots import TermsDisplay

N = 300
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.uniform(20, 60, N),
        "$cost$ {": RNG.normal(25, 4, N),
        "sex": RNG.choice(["f", "m"], N),
        "a very long name of a site that goes on": RNG.choice(
            [f"level $x_{j} of many {'w' * 40}" for j in range(20)], N
        ),
        "day": pd.Timestamp("2015-01-01") + pd.to_timedelta(RNG.integers(0, 1500, N), "D"),
        "two": RNG.integers(1, 3, N),
    }
)
SITE = TABLE.columns[3]
PAIRS = [("age", "$cost$ {"), ("age", "sex"), ("sex", "two")]
Y = (
    np.sin(TABLE["age"] / 6) + 0.1 * TABLE["$cost$ {"] + (TABLE["sex"] == "m")
    + 0.03 * (TABLE["age"] - 40) * (TABLE["$cost$ {"] - 25) + 0.05 * (TABLE["age"] - 40) * (TABLE["sex"] == "m")
    + np.sin(2 * np.pi * TABLE["day"].dt.day_of_year / 365.25) + ((TABLE["sex"] == "m") & (TABLE["two"] == 2))
)  # fmt: skip


@pytest.fixture(scope="module")
def model():
    terms = Terms({SITE: "levels"}, pairs=PAIRS)
    return GroupSparseRegressor(terms=terms, always=[SITE, "two"]).fit(TABLE, Y + 0.1 * RNG.standard_normal(N))


def test_a_panel_per_variable_and_pair(model):
    display = model.plot_terms()
    display.figure_.canvas.draw()  # warnings are errors
    titles = [ax.get_title(loc="left") for ax in display.axes_]
    assert len(titles) == len(model.fitted_terms_.parts)
    assert {"age", "sex", "day[year]", "age × sex", "sex × two"} <= set(titles)
    by_title = dict(zip(titles, display.axes_, strict=True))
    effect = model.effect("age")
    curve = next(line for line in by_title["age"].lines if len(line.get_xdata()) == 200)
    np.testing.assert_allclose(curve.get_xydata(), np.column_stack([effect.values, effect.effect]))
    assert by_title["age"].get_ylim() == by_title["day[year]"].get_ylim()
    assert by_title["age"].get_ylabel() == "effect on the prediction"
    levels = [tick.get_text() for tick in by_title["sex"].get_yticklabels()]
    assert levels == [f"{name} ({count})" for name, count in TABLE["sex"].value_counts().sort_index().items()]
    assert {text.get_text() for text in by_title["age × sex"].texts} == {"f", "m"}
    assert len(by_title["sex × two"].texts) == 4


def test_some_names_with_the_rows_and_given_axes(model):
    figure, axes = plt.subplots(1, 2)
    display = TermsDisplay.from_estimator(model, ["age", "age:$cost$ {"], X=TABLE, ax=axes)
    assert display.figure_ is figure
    dots = display.axes_[1].lines[-1].get_xydata()
    np.testing.assert_allclose(dots, TABLE[["age", "$cost$ {"]])
    text = TABLE.assign(day=TABLE["day"].dt.strftime("%d.%m.%Y"), age=TABLE["age"].astype(str))
    days = GroupSparseRegressor(terms=Terms(pairs=[("day", "age")])).fit(text[["day", "age"]], Y)
    dots = days.plot_terms(["day:age"], X=text).axes_[0].lines[-1].get_xydata()
    np.testing.assert_allclose(dots, np.column_stack([mdates.date2num(TABLE["day"]), TABLE["age"]]))
    assert TermsDisplay.from_estimator(model, "age").axes_[0].get_xlabel() == "age"
    with pytest.raises(ValueError, match="did you mean 'age'"):
        model.plot_terms(["agee"])


def test_a_pair_may_be_named_in_either_order_and_need_not_be_selected(model):
    display = model.plot_terms(["age:sex", "sex:age", "sex:day"])
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["age × sex", "sex × age", "sex × day"]
    np.testing.assert_array_equal(display.effects[0].effect, display.effects[1].effect.T)
    with pytest.raises(ValueError, match="no variable 'sex:old'"):
        model.plot_terms(["sex:old"])


def test_bands_and_outputs_are_named(model):
    display = model.plot_terms(["age", "sex"], refits=[model, model])
    assert "range of 2 refits" in display.figure_.get_supxlabel()
    classes = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))[:120]
    terms = Terms({SITE: "drop"}, pairs=[("age", "$cost$ {")])
    several = GroupSparseClassifier(terms=terms, selection="bic").fit(TABLE[:120], classes)
    names = ["age", "sex", *(part.name for part in several.fitted_terms_.parts if len(part.roots) == 2)]
    display = several.plot_terms(names)
    display.figure_.canvas.draw()
    assert len(display.axes_) == 2 + 3 * (len(names) - 2)
    assert [text.get_text() for text in display.figure_.legends[0].get_texts()] == ["0", "1", "2"]


def test_without_terms_there_is_nothing_to_draw():
    X = RNG.standard_normal((60, 3))
    with pytest.raises(ValueError, match="has no terms"):
        TermsDisplay.from_estimator(GroupSparseRegressor().fit(X, X[:, 0]))
    empty = GroupSparseRegressor(terms="auto").fit(pd.DataFrame(X), RNG.standard_normal(60))
    assert len(empty.plot_terms().axes_) == len(empty.fitted_terms_.parts)


def test_any_span_of_dates_has_ticks():
    for days in (70, 900, 4000):
        table = pd.DataFrame({"day": pd.date_range("2019-01-01", periods=60, freq=f"{days // 60}D")})
        model = GroupSparseRegressor(terms={"day": "linear"}).fit(table, np.arange(60.0))
        model.plot_terms().figure_.canvas.draw()  # warnings are errors
