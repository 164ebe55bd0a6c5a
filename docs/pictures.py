"""The committed pictures of README and documentation, made again: `python docs/pictures.py`."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
IMAGES = HERE / "images"


def point() -> None:
    """Run the example and keep its figure."""
    runpy.run_path(str(HERE.parent / "examples" / "plot_point.py"))
    plt.gcf().savefig(IMAGES / "point.png", dpi=150)


def fit_report() -> None:
    """Write the report that docs/report.md shows, and photograph its first screen; needs playwright and a browser."""
    from playwright.sync_api import sync_playwright

    from covey import GroupSparseRegressor
    from covey.datasets import load_diabetes_splines
    from covey.report import fit_report

    data = load_diabetes_splines()
    model = GroupSparseRegressor(groups=data.groups).fit(data.X, data.y)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page_file = Path(folder) / "report.html"
        fit_report(model, data.X, data.y, page_file, target="progression")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1000, "height": 1560}, device_scale_factor=1.25)
        page.goto(page_file.as_uri())
        page.screenshot(path=IMAGES / "fit-report.png")
        browser.close()


def main() -> None:
    """Make both."""
    plt.switch_backend("Agg")
    point()
    fit_report()


if __name__ == "__main__":
    main()
