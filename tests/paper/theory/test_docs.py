"""docs/theory.md and limit.md: examples run; the table of the first names every label and only files that exist."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "theory.md"
LABELS = [
    "non-commuting", "not-mf", "balancing", "warm-up-init", "gf-es", "convergence-alg-1", "subgaussian-noise",
    "convergence-alg-2", "dir-not-change", "gf-error", "gf-convergence", "monotonicity", "direction-bound-optimal",
    "bounded-updates", "phase1", "phase2-convergence", "phase2-boundness", "noise-bound", "bounding-max-noise",
    "direction-bound", "phase2-boundness-small",
]  # fmt: skip


@pytest.mark.parametrize("page", [PAGE, ROOT / "docs" / "limit.md"], ids=lambda page: page.stem)
def test_examples_run(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert tried >= 15
    assert failed == 0


def table():
    lines = PAGE.read_text().split("## Every lemma and theorem")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    return rows[2:]


def test_every_label_has_a_row_with_a_verdict():
    rows = table()
    named = [re.split(r"[ ,]", row[0])[1] for row in rows]
    assert sorted(named) == sorted(LABELS)
    assert {row[3] for row in rows} == {"holds", "corrected"}
    for row in rows:
        assert row[3] == "holds" or len(row[4].strip("| ")) > 3


def test_named_files_exist():
    named = set(re.findall(r"tests/[\w/]+\.py", PAGE.read_text()))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
