"""The command line that a report shows asks for the same fit again."""

import shlex

import pytest
from typer.testing import CliRunner

import covey.workflow.fit
from covey.cli.app import app
from covey.settings import FitSettings


class AskedError(Exception):
    """Carries the settings out of the command."""


SETTINGS = {
    "plain": FitSettings(("a.csv",), ("y",)),
    "terms": FitSettings(
        ("a b.csv", "c*.parquet"), ("y", "$z"), linear=("x*",), curve=("age:7", "b*"), levels=("sex",),
        pairs=("with:sex",), drop=("id",), drop_missing=True, sep=";", decimal=",", thousands=".",
        missing=("?", "-999"), weights="w",
        selection="size:3", always=("age",), seed=7, nested=False, stability=True,
    ),
    "options": FitSettings(
        ("a.csv",), ("y",), groups=("g=x*", "h_*"), family="poisson", offset="log:t", rule="predict", factors="2",
        standardize="none", group_weights="sqrt",
    ),
    "survival": FitSettings(
        ("a.csv",), time="t", event="e", event_value=("1", "2"), start="s", strata=("site",), ties="breslow"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS, ids=str)
def test_the_command_asks_for_the_same(case, monkeypatch, tmp_path):
    requested = []

    def record(settings):
        requested.append(settings)
        raise AskedError

    monkeypatch.setattr(covey.workflow.fit, "fit_table", record)
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a b.csv", "c1.parquet"):
        (tmp_path / name).touch()
    words = shlex.split(SETTINGS[case].command("fit", str(tmp_path / "out")))
    assert words[:2] == ["covey", "fit"]
    CliRunner().invoke(app, words[1:])
    assert requested == [SETTINGS[case]]
