"""docs/extensions.md and `covey reproduce`: the same claims, numbers and verdicts at the quick settings.

Only the shortest experiment is run unless ``COVEY_PAGE=all``; trained networks differ from machine to machine, so of
`channels` the page is held to its claims, not to its numbers.
"""

import io
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from covey.experiments import Verdict, available, find
from covey.experiments.channels import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"
IDS = ["powers", "delta", "noise", "channels"]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def page_rows(id):
    """The rows of an experiment's table: (claim, measured, verdict)."""
    rows = [line[2:-2].split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [tuple(row[1:]) for row in rows if row[0] == id]


@pytest.mark.parametrize("id", IDS)
def test_every_extension_is_on_the_page(id):
    rows = page_rows(id)
    assert id in available()
    assert rows
    assert all(len(row) == 3 and row[2] in set(Verdict) for row in rows)


def test_page_names_every_method():
    text = PAGE.read_text(encoding="utf-8")
    assert all(method in text for method in METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS[:3] if os.environ.get("COVEY_PAGE") == "all" else ["delta"])
def test_page_has_what_the_command_prints(id):
    experiment = find(id)
    frame = experiment.run(experiment.settings("quick"), 1)
    claims = experiment.claims(pd.read_csv(io.BytesIO(frame.to_csv(index=False, float_format="%.8g").encode())))
    rows = page_rows(id)
    assert [(row[0], row[2]) for row in rows] == [(claim.claim, str(claim.verdict)) for claim in claims]
    for (_, printed, _), claim in zip(rows, claims, strict=True):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", claim.measured)
        for wanted, found in zip(NUMBER.findall(printed), NUMBER.findall(claim.measured), strict=True):
            assert float(found) == pytest.approx(float(wanted), rel=0.1, abs=0.02)
