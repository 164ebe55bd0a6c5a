"""docs/extensions.md and `covey reproduce`: the same claims, numbers and verdicts at the quick settings.

Only the shortest experiment is run unless ``COVEY_PAGE=all``; trained networks differ from machine to machine, so of
`channels` the page is held to its claims, not to its numbers. Where it shows the full setting, it is held to the
numbers of the saved results.
"""

import io
import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from covey.paper.experiments import Verdict, available, channels, find
from covey.paper.experiments.channels import METHODS, Settings

PAGE = Path(__file__).parents[3] / "docs" / "extensions.md"
SAVED = PAGE.parent / "results" / "channels"
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


@pytest.fixture(scope="module")
def saved():
    return pd.read_csv(SAVED / "curves.csv")


def test_saved_results_are_complete(saved):
    settings, about = Settings.full(), json.loads((SAVED / "about.json").read_text(encoding="utf-8"))
    found = saved.groupby("method")["strength"].unique()
    assert {m: set(found[m]) for m in METHODS} == {m: set(v) for m, v in settings.strengths().items()}
    runs = saved.groupby(["method", "strength", "learning_rate", "seed"]).ngroups
    networks = sum(map(len, settings.strengths().values())) * len(settings.learning_rates) * len(settings.seeds)
    assert runs == networks == about["runs"] == about["planned"]
    assert saved["channels"].max() == sum(settings.widths) == sum(about["widths"])


def test_page_has_the_claims_of_the_saved_results(saved):
    wanted = [(claim.claim, claim.measured, str(claim.verdict)) for claim in channels.claims(saved)]
    assert page_rows("channels --full") == wanted


def test_page_has_the_best_settings_of_the_saved_results(saved):
    for method, row in channels.best_settings(saved).iterrows():
        strength = "" if method == "plain" else f"{row['strength']:g}"
        layers = ", ".join(f"{row[name]:.1f}" for name in ("first", "second", "hidden"))
        kept = f"{row['channels']:.1f} ± {row['error']:.1f}"
        numbers = (strength, f"{row['learning_rate']:g}", kept, layers, f"{row['weights']:.0f}", f"{row['test']:.4f}")
        assert page_rows(method) == [numbers]


def test_limits_that_the_page_names_are_those_of_the_saved_results(saved):
    """Epochs, the smallest start, the strongest D-gating, and runs with channels asleep."""
    about = json.loads((SAVED / "about.json").read_text(encoding="utf-8"))
    assert about["epochs"] == 4 < Settings.full().epochs
    whole = saved[(saved["rule"] == "ladder") & (saved["channels"] == saved["channels"].max())]
    reached = saved[(saved["rule"] == "ladder") & (saved["validation"] >= channels.target_accuracy(saved))]
    for method in ("power 2", "power 3"):
        smallest = whole[(whole["method"] == method) & (whole["strength"] == 0.125)]
        left_zero = smallest[smallest["test"] > 0.2].groupby("learning_rate").size()
        assert left_zero.to_dict() == {0.3: 2}
        assert not ((reached["method"] == method) & (reached["strength"] == 0.125)).any()
    strongest = reached[reached["strength"] == 0.01].groupby("method")["seed"].nunique()
    assert [strongest.get(method, 0) for method in ("D-gating 2", "D-gating 3")] == [0, 1]
    awake = saved[saved["rule"] == "awake"]
    assert (awake["channels"] < saved["channels"].max()).mean() == pytest.approx(0.5, abs=0.05)


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
