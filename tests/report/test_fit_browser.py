"""The report of a fit in a real browser: the slider, what follows it, and that it is readable and safe everywhere."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covey import Groups
from covey.report import write
from covey.report.page import shown, time
from covey.report.remarks import Remark
from covey.tables import read_groups
from report.browser import check_structure, check_width, opened
from report.pages import constructed_path, constructed_report

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!-- \u2028 \" ' & -->",
    "\u202eright-to-left \x00",
)


@pytest.fixture(scope="module")
def report():
    return constructed_report(Groups.from_sizes([3, 1, 4, 2] * 3))


@pytest.fixture(scope="module")
def file(report, tmp_path_factory):
    return write(report, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def tab(browser, file):
    with opened(browser, file) as page:
        yield page


@pytest.fixture
def page(tab, file):
    """The report as it opens; a tab of its own would be another process."""
    tab.goto(file.as_uri())
    return tab


def table(page) -> list[list[str]]:
    """The rows in sight: rank, group, strength, norm, columns, wake-up time, folds, signs."""
    rows = page.locator("#group-table > tbody > tr:visible")
    return [[cell.strip() for cell in row.split("\t")] for row in rows.evaluate_all(ROWS)]


ROWS = """rows => rows.map(row => [...row.cells].map(cell =>
    (cell.querySelector("summary") ?? cell).textContent).join("\\t"))"""


def expected(report, frame: int) -> list[list[str]]:
    """The same rows from the numbers of the report."""
    awake = [group for group in report.frames.groups if group.strength(frame) > 0]
    awake.sort(key=lambda group: -group.strength(frame))
    rows = []
    for rank, group in enumerate(awake, start=1):
        (strength, norm, plus, minus), coefs = (values.tolist() for values in group.at(frame))
        signs = " ".join(filter(None, [f"+{plus:g}" if plus else "", f"−{minus:g}" if minus else ""]))
        signs = shown(coefs[0], 4) if group.size == 1 else signs
        folds = f"{group.folds} of {report.n_folds}"
        facts = [shown(strength), shown(norm), str(group.size), time(group.woke), folds, signs]
        rows.append([str(rank), group.name, *facts])
    return rows


def frame_of(page, report) -> int:
    """The frame that the readout describes."""
    text = page.locator("#readout").inner_text()
    if text.startswith("The fitted model"):
        return report.frames.chosen
    return report.frames.times.tolist().index(float(re.search(r"Time ([\d.]+)", text).group(1)))


@pytest.mark.parametrize("scripts", [True, False], ids=["", "without scripts"])
def test_the_page_opens_at_the_fitted_model(browser, report, file, scripts):
    with opened(browser, file, java_script_enabled=scripts) as page:
        assert frame_of(page, report) == report.frames.chosen
        assert table(page) == expected(report, report.frames.chosen)
        assert page.locator("#time").is_visible() == scripts
        norms = page.locator("#group-table .norm")
        assert not any(norms.evaluate_all("all => all.map(e => e.checkVisibility())"))
        page.locator("#show-norm").check()
        assert norms.first.is_visible()


def test_keys_move_the_slider_and_the_table_follows(page, report):
    frames = report.frames
    page.locator("#time").focus()
    for key, frame in [
        ("ArrowLeft", frames.chosen - 1),
        ("PageDown", frames.chosen - 11),
        ("ArrowRight", frames.chosen - 10),
        ("Home", 0),
        ("End", frames.chosen),
    ]:
        page.keyboard.press(key)
        assert frame_of(page, report) == frame
        assert table(page) == expected(report, frame)
        assert page.locator("#no-group").is_visible() == (frame == 0)
        assert page.locator("#time").get_attribute("aria-valuetext") == page.locator("#readout").inner_text()


def test_the_mouse_moves_it_on_the_slider_and_in_the_plot(page, report):
    frames = set()
    for place in ("#time", "#path-plot .area"):
        page.locator(place).scroll_into_view_if_needed()
        box = page.locator(place).bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.5 * box["width"], middle)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], middle, steps=4)
        page.mouse.up()
        frame = frame_of(page, report)
        frames.add(frame)
        assert table(page) == expected(report, frame)
        page.get_by_role("button", name="The fitted model").click()
        assert frame_of(page, report) == report.frames.chosen
    # one time lies on one vertical line: slider and plot agree, up to a frame
    assert max(frames) - min(frames) <= 1


def test_the_model_is_marked_in_both_plots(page, report):
    places = page.evaluate(
        """() => [".cursor", "#path-plot [data-dot]:not([hidden])", "#path-plot .area"].map(selector => {
            const box = document.querySelector(selector).getBoundingClientRect();
            return selector.endsWith("area") ? box.right : box.x + box.width / 2 })"""
    )
    assert np.ptp(places) < 1.5
    share = float(page.evaluate("() => parseFloat(document.querySelector('.dot.chosen').style.left)"))
    assert share == pytest.approx(100 * report.judged.at / report.n_groups, abs=0.01)


def test_coefficients_within_a_group_follow(page, report):
    page.locator("#group-table summary").first.click()
    page.locator("#time").press("ArrowLeft")
    frame = report.frames.chosen - 1
    group = next(group for group in report.frames.groups if group.size > 1)
    coefs = page.locator("#group-table details[open] .coefs td:nth-child(2)").all_inner_texts()
    assert coefs == [shown(value, 4) for value in group.at(frame)[1].tolist()]


def test_many_groups_are_folded_and_unfolded(browser, tmp_path):
    groups = Groups.from_size(1, 90)
    report = constructed_report(groups, constructed_path(groups, n_times=250))
    with opened(browser, write(report, tmp_path / "many.html")) as page:
        assert len(table(page)) == 40
        page.get_by_role("button", name="Show all").click()
        assert table(page) == expected(report, report.frames.chosen)


def test_hostile_names_are_text(browser, tmp_path):
    groups = Groups.from_labels([name for name in HOSTILE for _ in range(2)], columns=HOSTILE * 2)
    first, second, third, _ = HOSTILE
    texts = {"title": first, "target": second, "settings": {first: second}}
    report = replace(constructed_report(groups), **texts, remarks=(Remark(first, second, third, True),))
    readable = [name.replace("\x00", "\ufffd") for name in HOSTILE]
    with opened(browser, write(report, tmp_path / "hostile.html")) as page:
        assert page.title() == first
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        names = page.locator("#group-table > tbody > tr > th bdi").evaluate_all("all => all.map(e => e.textContent)")
        assert sorted(names) == sorted(readable)
        columns = page.locator(".coefs bdi").evaluate_all("all => all.map(e => e.textContent)")
        assert set(columns) == set(readable)
        for key in ("Home", "End", "ArrowLeft"):
            page.locator("#time").press(key)
        assert len(table(page)) == len(HOSTILE)


def saved(page, button: str, folder: Path) -> Path:
    """The file that a button gives."""
    with page.expect_download() as found:
        page.locator(button).click()
    file = folder / found.value.suggested_filename
    found.value.save_as(file)
    return file


def test_the_table_is_saved_as_it_is_shown_and_no_spreadsheet_runs_it(browser, tmp_path):
    names = ["=1+1", "@sum(a)", "-2", 'a "b", c', "plain"]
    constructed = constructed_report(Groups.from_labels(names, columns=[f"{name}x" for name in names]))
    report = replace(constructed, membership=tuple((name, f"{name}x") for name in names))
    with opened(browser, write(report, tmp_path / "save.html"), quiet=False) as page:
        page.locator("#time").press("ArrowLeft")
        table = pd.read_csv(saved(page, "#save", tmp_path), encoding="utf-8-sig")
        groups_file = saved(page, "#save-groups", tmp_path)
    frame = report.frames.chosen - 1
    awake = sorted((g for g in report.frames.groups if g.strength(frame) > 0), key=lambda g: -g.strength(frame))
    guard = {"=1+1": "'=1+1", "@sum(a)": "'@sum(a)"}
    assert table["group"].tolist() == [guard.get(group.name, group.name) for group in awake]
    np.testing.assert_allclose(table["strength"], [group.strength(frame) for group in awake], rtol=1e-6)
    assert table["folds"].tolist() == [group.folds for group in awake]
    # the groups are read back as they were
    columns = [f"{name}x" for name in names]
    again = read_groups(str(groups_file), columns)
    assert [again.names[l] for l in again.labels] == names


def test_the_page_may_fetch_nothing_and_run_nothing_else(browser, file):
    with opened(browser, file, quiet=False) as page:
        fetched = page.evaluate("() => fetch('https://example.org').then(() => 'fetched', () => 'refused')")
        assert fetched == "refused"
        page.evaluate("() => { document.body.innerHTML += '<img src=x onerror=\"window.harmed = true\">' }")
        page.wait_for_timeout(100)
        assert page.evaluate("() => window.harmed") is None


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark"), (1280, "light")])
def test_it_fits_every_width_light_and_dark(browser, file, width, scheme):
    with opened(browser, file, color_scheme=scheme) as page:
        check_structure(page)
        check_width(page, width)
        paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        # nothing that can be pressed is too small for a finger (WCAG 2.5.8)
        sizes = page.locator("button:visible, input:visible").evaluate_all(
            "all => all.map(e => { const box = e.getBoundingClientRect(); return Math.min(box.width, box.height) })"
        )
        assert min(sizes) >= 24


def test_printed_it_is_light_complete_and_without_controls(browser, report, file):
    with opened(browser, file, color_scheme="dark") as page:
        pdf = page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        page.emulate_media(media="print")
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("#time").is_hidden()
        coefficients = page.locator(".coefs").evaluate_all("all => all.filter(e => e.checkVisibility()).length")
        wide = [g for g in report.frames.groups if g.size > 1 and g.strength(report.frames.chosen) > 0]
        assert coefficients == len(wide)


def test_everything_is_reached_by_tab_and_focus_is_visible(page):
    wanted = page.locator("a[href]:visible, button:visible, input:visible, summary:visible").count()
    reached = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => { const e = document.activeElement; return e.outerHTML.slice(0, 80) }"))
        assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert len(set(reached)) > 1
    assert any('id="time"' in html for html in reached)
    assert page.evaluate("() => document.activeElement.tagName") != "BODY"
