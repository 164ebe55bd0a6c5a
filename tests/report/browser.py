"""Chromium for tests: the system's, driven by Playwright; tests skip and say why where either is not there."""

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
