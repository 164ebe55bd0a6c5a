"""docs/reproduction.md and `covey reproduce`: the same claims, numbers and verdicts at the quick settings.

The experiments that take longer than some seconds are left out unless ``COVEY_PAGE=all``.
"""

import io
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from covey.paper.experiments import Verdict, available, find
from covey.paper.experiments.claim import markdown

PAGE = Path(__file__).parents[3] / "docs" / "reproduction.md"
MARK = "<!-- claims: the table below is reproduction/claims.md -->"
QUICK = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig7", "fig8", "fig9", "fig11", "mirror", "table1"]
LONG = ["fig6", "fig12", "table2", "table3", "rates", "phase"]
ELSEWHERE = ["fig10", "powers", "delta", "noise", "channels"]

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def page_rows():
    """The rows of the table: (id, claim, measured, verdict)."""
    table = PAGE.read_text(encoding="utf-8").split(MARK)[1].strip().split("\n\n")[0].splitlines()
    assert table[0] == "| id | claim | measured | verdict |"
    return [tuple(cell.strip().replace("\\|", "|") for cell in row[1:-1].split(" | ")) for row in table[2:]]


def assert_alike(printed, measured):
    """The same words, and numbers within a tenth: runs that are unstable differ from machine to machine."""
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", measured)
    for wanted, found in zip(map(float, NUMBER.findall(printed)), map(float, NUMBER.findall(measured)), strict=True):
        assert found == pytest.approx(wanted, rel=0.1, abs=1e-9)


def test_every_experiment_is_on_the_page():
    rows = page_rows()
    assert all(len(row) == 4 and row[3] in set(Verdict) for row in rows)
    assert {row[0] for row in rows} == set(QUICK + LONG)
    assert set(available()) - set(ELSEWHERE) <= {row[0] for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("id", QUICK + (LONG if os.environ.get("COVEY_PAGE") == "all" else []))
def test_the_page_has_what_the_command_prints(id):
    experiment = find(id)
    frame = experiment.run(experiment.settings("quick"), 1)
    saved = pd.read_csv(io.BytesIO(frame.to_csv(index=False, float_format="%.8g").encode()))
    claims = experiment.claims(saved)
    rows = [row for row in page_rows() if row[0] == id]
    assert [row[1] for row in rows] == [claim.claim for claim in claims]
    assert [row[3] for row in rows] == [str(claim.verdict) for claim in claims]
    for row, claim in zip(rows, claims, strict=True):
        assert_alike(row[2], claim.measured)
    assert markdown(claims).count("\n") == len(claims) + 2
