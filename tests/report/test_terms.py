"""The report of a model of terms: effects as plots, what was made of the table, and nothing unescaped."""

import re
from html import escape

import numpy as np
import pandas as pd
import pytest

from covey import GroupSparseClassifier, GroupSparseRegressor, Terms, nested_score
from covey.evidence import test_groups
from covey.report import FitReport, fit_report, render
from report.browser import check_structure, check_width, opened

N = 300
HOSTILE, LEVEL = "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, N),
            HOSTILE: rng.normal(25, 4, N),
            "sex": rng.choice(["f", "m"], N),
            "site": rng.choice([LEVEL, "b", "c"], N),
            "day": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1500, N), "D"),
            "name": [f"<b>row</b> {i}" for i in range(N)],
        }
    )
    y = (
        np.sin(table["age"] / 6) + 0.1 * table[HOSTILE] + 0.03 * (table["age"] - 40) * (table[HOSTILE] - 25)
        + (table["sex"] == "m") * (1 + 0.05 * (table["age"] - 40)) + (table["site"] == "b")
        + np.sin(table["day"].dt.day_of_year / 58.1) + 2 * ((table["sex"] == "f") & (table["site"] == "c"))
    )  # fmt: skip
    table.loc[:20, HOSTILE] = np.nan
    return table, (y + 0.1 * rng.standard_normal(N)).rename("outcome")


@pytest.fixture(scope="module")
def model(data):
    pairs = [("age", HOSTILE), ("age", "sex"), ("sex", "site")]
    return GroupSparseRegressor(terms=Terms(pairs=pairs)).fit(*data)


@pytest.fixture(scope="module")
def page(model, data):
    nested = nested_score(model, *data, 2, references=False, return_estimator=True)
    tests = test_groups(GroupSparseRegressor(terms=Terms(pairs=None)), *data)
    return render(FitReport.from_model(model, *data, nested=nested, tests=tests))


def test_sections_of_variables_and_columns(model, page):
    assert 'id="variables"' in page
    assert 'id="columns"' in page
    assert "of 6 variables</b>" in page
    assert page.count('id="term-') == 3  # age, a number, and the year
    assert "in 2 of 2 outer folds" in page
    assert "Missing values: " in page
    assert 'class="shade s' in page  # the heat map
    assert "One line per level of <bdi>sex</bdi>" in page
    assert 'class="cells"' in page
    assert "no row has both" not in page
    assert "free text" in page or "identifiers" in page
    for term in model.terms_["term"]:
        assert page.count(f'<bdi>{escape(term)}</bdi></th><td class="strength"') == 1  # listed once


def test_the_page_says_terms(page):
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    body = body[: body.index('id="repeat"')]
    text = re.sub(r"<[^>]*>", " ", body)
    assert re.findall(r".{30}\b[Gg]roups?\b.{30}", text) == []


def test_nothing_is_left_unescaped(page):
    for text in (HOSTILE, LEVEL, "<b>row</b>"):
        assert text not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script") == 2


def test_the_page_in_a_browser(page, browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page)
    for width in (1280, 390):
        with opened(browser, file) as tab:
            check_structure(tab)
            check_width(tab, width)
            assert tab.locator("#variables .map svg path.shade").count() > 3
            boxes = [one.bounding_box() for one in tab.locator("#variables .plot .area").all()]
            assert all(box["width"] > 120 and box["height"] > 120 for box in boxes)


def test_cells_of_a_pair_without_rows_are_in_brackets(data):
    rows = ~((data[0]["sex"] == "m") & (data[0]["site"] == "b"))
    table, y = data[0].loc[rows, ["sex", "site"]], data[1][rows]
    model = GroupSparseRegressor(terms="auto", always=["sex:site"]).fit(table, y)
    page = render(FitReport.from_model(model, table, y, nested=0))
    assert len(re.findall(r"<td>\([−-]?\d[^)]*\)</td>", page)) == 1
    assert "In brackets: no row has both levels." in page
    display = model.plot_terms(["sex:site"])
    assert len(display.axes_[0].texts) == 5
    assert "blank: no row has both levels" in display.figure_.get_supxlabel()


def test_classes_have_a_line_each(data, tmp_path):
    table, y = data[0][:120], data[1][:120]
    classes = np.array(["low", "<i>mid", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    model = GroupSparseClassifier(terms=Terms(pairs=[("age", HOSTILE)]), selection="bic").fit(table, classes)
    file = fit_report(model, table, classes, tmp_path / "report.html", nested=0)
    page = file.read_text()
    assert "<i>mid" not in page
    assert "line c3" in page
    assert "There are no bands" in page
    assert len(re.findall(r"Missing values: \S+, \S+, \S+\.</p>", page)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    two = GroupSparseClassifier(terms="auto", always=["sex"], selection="bic").fit(table, classes == "low")
    page = render(FitReport.from_model(two, table, classes == "low", nested=0, positive=False))
    assert "in log odds of <bdi>False</bdi> against <bdi>True</bdi>." in page
    assert "sex (always in)" in page
    assert ", plus <bdi>" not in page  # it is one of the variables


def test_a_model_without_variables(data):
    table = data[0][["age"]]
    model = GroupSparseRegressor(terms="auto").fit(table, np.random.default_rng(1).standard_normal(N))
    page = render(FitReport.from_model(model, table, data[1], nested=0))
    assert ('id="variables"' in page) == bool(model.selected_groups_)
