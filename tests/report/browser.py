"""Chromium for tests: the system's, driven by Playwright; tests skip and say why where either is not there."""

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def launched() -> Iterator:
    """A headless browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser, file: Path, *, width: int = 1280, quiet: bool = True, **options) -> Iterator:
    """A page, which must not complain and must not ask for anything but itself."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    try:
        yield page
    finally:
        context.close()
    if quiet:
        assert complaints == []
        assert set(requests) == {file.as_uri()}


def check_structure(page) -> None:
    """Every picture, heading and table has a name and its place."""
    found = page.evaluate(
        """() => ({
          lang: document.documentElement.lang,
          ids: [...document.querySelectorAll("[id]")].map(e => e.id),
          headings: [...document.querySelectorAll("h1, h2, h3")].map(e => Number(e.tagName[1])),
          images: [...document.querySelectorAll("svg:not([aria-hidden=true])")].map(e => `${e.role}: ${e.ariaLabel}`),
          buttons: [...document.querySelectorAll("button")].map(e => e.textContent.trim()),
          slider: document.querySelector("#time").labels[0].textContent,
          headers: [...document.querySelectorAll("th")].map(e => e.scope),
          mains: document.querySelectorAll("main").length,
          unseen: [...document.querySelectorAll("svg path")].filter(e => {
            const style = getComputedStyle(e);
            return style.stroke === "none" && style.fill === "none";
          }).map(e => e.outerHTML.slice(0, 80)),
        })"""
    )
    assert (found["lang"], found["mains"], found["slider"]) == ("en", 1, "Model on the path")
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["headings"][0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(found["headings"]))
    kinds = ("Line plot: ", "Scatter plot: ", "Calibration plot: ", "Heat map: ")
    assert len(found["images"]) >= 2
    assert all(image.startswith(tuple(f"img: {kind}" for kind in kinds)) for image in found["images"])
    assert found["unseen"] == []
    assert all(found["buttons"])
    assert set(found["headers"]) == {"row", "col"}


def check_width(page, width: int) -> None:
    """Nothing is wider than the window, with everything unfolded."""
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("details").evaluate_all("all => all.forEach(e => { e.open = true })")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
