"""The command line that a report shows asks for the same fit again."""

import shlex

import pytest
import typer
from typer.testing import CliRunner

import covey.workflow
from covey.cli.app import app
from covey.settings import FitSettings, PredictSettings, StabilitySettings


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

    monkeypatch.setattr(covey.workflow, "fit_table", record)
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a b.csv", "c1.parquet"):
        (tmp_path / name).touch()
    words = shlex.split(SETTINGS[case].command("fit", str(tmp_path / "out")))
    assert words[:2] == ["covey", "fit"]
    CliRunner().invoke(app, words[1:])
    assert requested == [SETTINGS[case]]


@pytest.mark.parametrize(
    ("name", "settings", "others"),
    [
        ("fit", FitSettings, {"out", "overwrite", "as_json"}),
        ("stability", StabilitySettings, {"out", "overwrite", "as_json"}),
        ("predict", PredictSettings, {"out", "overwrite", "as_json"}),
    ],
)
def test_a_command_has_the_options_of_its_table(name, settings, others):
    command = typer.main.get_command(app).get_command(None, name)
    parameters = {one.name: one for one in command.params}
    assert parameters.keys() - others == settings.table().keys()
    for option in parameters.keys() - others:
        entry = settings.table()[option]
        assert parameters[option].help == entry.help
        assert entry.positional or entry.flag in parameters[option].opts


def test_what_the_options_set():
    settings = FitSettings(("a.csv",), ("y",), factors="2", standardize="none", group_weights="none", rule="predict")
    assert settings.parameters() == {
        "always": (), "class_weight": (), "constraints": (), "factors": 2, "group_weights": None, "random_state": 0,
        "rule": "predict", "selection": 5, "standardize": False,
    }  # fmt: skip
