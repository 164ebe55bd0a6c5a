"""The Python in README and guide runs as it stands: block after block, each page by itself."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def blocks(page):
    """Each block of Python with the line on which it starts."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text[: found.start(1)].count("\n"), found.group(1)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    try:
        for line, source in blocks(page):
            # empty lines in front, so that a traceback names the line of the page
            exec(compile("\n" * line + source, str(page), "exec"), namespace)
    finally:
        plt.close("all")


def test_blocks_are_found():
    found = {page: [source for _, source in blocks(page)] for page in PAGES}
    assert [page.name for page, sources in found.items() if not sources] == ["index.md"]  # the guide's list of pages
    assert all(">>>" not in source for sources in found.values() for source in sources)


def test_the_first_page_shows_the_code_of_the_readme():
    (source,) = (source for _, source in blocks(ROOT / "docs" / "index.md"))
    assert source in [source for _, source in blocks(ROOT / "README.md")]
