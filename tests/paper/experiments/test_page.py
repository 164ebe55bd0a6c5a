"""docs/reproduction.md, docs/extensions.md and `covey reproduce`: the same claims, numbers and verdicts.

The experiments that take longer than some seconds are left out unless ``COVEY_PAGE=all``. Trained networks differ from
machine to machine, so of `channels` the page is held to its claims; where it shows the full setting, it is held to the
numbers of the saved results.
"""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from experiments.toy import assert_complete

from covey.paper.experiments import Verdict, available, channels, find
from covey.paper.experiments.channels import METHODS, Settings
from covey.paper.experiments.runner import markdown

DOCS = Path(__file__).parents[3] / "docs"
SAVED = DOCS / "results" / "channels"
MARK = "<!-- claims: the table below is reproduction/claims.md -->"
QUICK = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig7", "fig8", "fig9", "fig11", "mirror", "table1"]
LONG = ["fig6", "fig12", "table2", "table3", "rates", "phase"]
EXTENSIONS = ["powers", "delta", "noise", "channels"]
ALL = os.environ.get("COVEY_PAGE") == "all"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def reproduction():
    """The rows of the table of claims: (id, claim, measured, verdict)."""
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    table = text.split(MARK)[1].strip().split("\n\n")[0].splitlines()
    assert table[0] == "| id | claim | measured | verdict |"
    return [tuple(cell.strip().replace("\\|", "|") for cell in row[1:-1].split(" | ")) for row in table[2:]]


def extensions(id):
    """The rows of an extension's table: (claim, measured, verdict)."""
    lines = (DOCS / "extensions.md").read_text(encoding="utf-8").splitlines()
    table = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    return [tuple(row[1:]) for row in table if row[0] == id]


def test_every_experiment_is_on_a_page():
    table = reproduction()
    assert all(len(row) == 4 and row[3] in set(Verdict) for row in table)
    assert {row[0] for row in table} == {*QUICK, *LONG}
    assert set(available()) == {*QUICK, *LONG, *EXTENSIONS, "fig10"}
    for id in EXTENSIONS:
        assert extensions(id)
        assert all(len(row) == 3 and row[2] in set(Verdict) for row in extensions(id))


@pytest.mark.slow
@pytest.mark.parametrize("id", [*QUICK, *([*LONG, "powers", "delta", "noise"] if ALL else [])])
def test_the_page_has_what_the_command_prints(id):
    """The same words, and numbers within a tenth: runs that are unstable differ from machine to machine."""
    experiment = find(id)
    claims = assert_complete(experiment, experiment.run(experiment.settings("quick"), 1))
    table = extensions(id) if id in EXTENSIONS else [row[1:] for row in reproduction() if row[0] == id]
    assert [(row[0], row[2]) for row in table] == [(claim.claim, str(claim.verdict)) for claim in claims]
    least = 0.02 if id in EXTENSIONS else 1e-9
    for (_, printed, _), claim in zip(table, claims, strict=True):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", claim.measured)
        for wanted, found in zip(NUMBER.findall(printed), NUMBER.findall(claim.measured), strict=True):
            assert float(found) == pytest.approx(float(wanted), rel=0.1, abs=least)
    assert markdown(claims).count("\n") == len(claims) + 2


# ---------------------------------------------------------------------------------- the saved results of `channels`


@pytest.fixture(scope="module")
def saved():
    return pd.read_csv(SAVED / "curves.csv")


@pytest.fixture(scope="module")
def about():
    return json.loads((SAVED / "about.json").read_text(encoding="utf-8"))


def test_saved_results_are_complete(saved, about):
    settings = Settings.full()
    found = saved.groupby("method")["strength"].unique()
    assert {m: set(found[m]) for m in METHODS} == {m: set(v) for m, v in settings.strengths().items()}
    runs = saved.groupby(["method", "strength", "learning_rate", "seed"]).ngroups
    networks = sum(map(len, settings.strengths().values())) * len(settings.learning_rates) * len(settings.seeds)
    assert runs == networks == about["runs"] == about["planned"]
    assert saved["channels"].max() == sum(settings.widths) == sum(about["widths"])


def test_page_has_the_claims_and_the_best_settings_of_the_saved_results(saved):
    wanted = [(claim.claim, claim.measured, str(claim.verdict)) for claim in channels.claims(saved)]
    assert extensions("channels --full") == wanted
    for method, row in channels.best_settings(saved).iterrows():
        strength = "" if method == "plain" else f"{row['strength']:g}"
        layers = ", ".join(f"{row[name]:.1f}" for name in ("first", "second", "hidden"))
        channel_count = f"{row['channels']:.1f} ± {row['error']:.1f}"
        rest = (channel_count, layers, f"{row['weights']:.0f}", f"{row['test']:.4f}")
        assert extensions(method) == [(strength, f"{row['learning_rate']:g}", *rest)]
