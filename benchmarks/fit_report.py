"""The report of a fit at its widest: size of the file, time to write it, and how long the slider takes to answer.

    python benchmarks/fit_report.py

Answers are measured in Chromium (needs playwright and the system's chromium): from the slider's event to the layout of
everything that follows it, over 15 positions from end to end.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from covey import Groups
from covey.report import write

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from report.pages import constructed_path, constructed_report

ANSWERS = """() => {
  const slider = document.querySelector("#time");
  return Array.from({ length: 15 }, (_, i) => {
    const start = performance.now();
    slider.value = 20 + 70 * i;
    slider.dispatchEvent(new Event("input"));
    document.body.offsetHeight;
    return performance.now() - start;
  });
}"""
CASES = {
    "2000 groups of 5, all awake": (Groups.from_size(5, 10_000), {}),
    "2000 groups of 5, 300 awake": (Groups.from_size(5, 10_000), {"n_awake": 300}),
    "10000 single columns, all awake": (Groups.from_size(1, 10_000), {}),
    "one group of 10000": (Groups.from_size(10_000, 10_000), {}),
}


def main() -> None:
    print(f"{'10 000 columns':<34} {'MB':>5} {'write s':>8} {'answer ms':>10} {'worst':>6} {'with all rows':>14}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (groups, options) in CASES.items():
            report = constructed_report(groups, constructed_path(groups, n_times=200, **options))
            start = time.perf_counter()
            file = write(report, Path(folder) / "report.html")
            wrote = time.perf_counter() - start
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(file.as_uri())
            folded = page.evaluate(ANSWERS)
            page.evaluate("() => document.querySelector('#more').click()")
            unfolded = page.evaluate(ANSWERS)
            page.close()
            print(
                f"{name:<34} {file.stat().st_size / 1e6:>5.2f} {wrote:>8.2f} {statistics.median(folded):>10.1f} "
                f"{max(folded):>6.0f} {statistics.median(unfolded):>14.0f}"
            )
        browser.close()


if __name__ == "__main__":
    main()
