"""The Python in README and guide runs as it stands, block after block, and prints what is shown below it."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", DOCS / "quickstart.md", DOCS / "paper.md"]
PAGES += sorted((DOCS / "guide").glob("*.md"))
# A block of Python and, where one follows at once, the block of text that shows what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def blocks(page):
    """Each block of Python with the line on which it starts and the output shown for it, or None."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield text[: found.start(1)].count("\n"), found.group(1), found.group(2)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    try:
        for line, source, shown in blocks(page):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                # empty lines in front, so that a traceback names the line of the page
                exec(compile("\n" * line + source, str(page), "exec"), namespace)
            assert shown is None or out.getvalue().rstrip() == shown.rstrip()
    finally:
        plt.close("all")


def test_blocks_are_found():
    found = {page: [source for _, source, _ in blocks(page)] for page in PAGES}
    assert [page.name for page, sources in found.items() if not sources] == ["index.md"]  # the guide's list of pages
    assert all(">>>" not in source for sources in found.values() for source in sources)


def test_the_first_page_shows_the_code_of_the_readme():
    (first,) = (block[1:] for block in blocks(DOCS / "index.md"))
    assert first in [block[1:] for block in blocks(ROOT / "README.md")]
