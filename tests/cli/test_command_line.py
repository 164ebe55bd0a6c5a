"""The command line that a report shows asks for the same fit again."""

import shlex

import pytest
from typer.testing import CliRunner

import covey.workflow
from covey.cli.app import app
from covey.workflow import FitSettings
from covey.workflow.command import command_line
from covey.workflow.settings import TableSettings


class AskedError(Exception):
    """Carries the settings out of the command."""


SETTINGS = {
    "plain": FitSettings(TableSettings(("a.csv",), "y")),
    "terms": FitSettings(
        TableSettings(
            ("a b.csv", "c*.parquet"), ("y", "$z"), groups=("g=x*", "h_*"), spline=("age:7", "b*"), onehot=("sex",),
            drop=("id",), date=("day",), impute="median", drop_missing=True, handle_unknown="ignore", sep=";",
            decimal=",", weights="w",
        ),
        selection="size:3", always=("age",), seed=7, nested=False, stability=True,
    ),
    "options": FitSettings(TableSettings(("a.csv",), "y", family="poisson", offset="log:t"), options={"rule": "1se"}),
    "survival": FitSettings(
        TableSettings(("a.csv",), (), time="t", event="e", event_value=("1", "2"), start="s", strata=("site",))
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS, ids=str)
def test_the_command_asks_for_the_same(case, monkeypatch, tmp_path):
    seen = []

    def record(settings, told):
        seen.append(settings)
        raise AskedError

    monkeypatch.setattr(covey.workflow, "fit_table", record)
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "a b.csv", "c1.parquet"):
        (tmp_path / name).touch()
    words = shlex.split(command_line(SETTINGS[case], str(tmp_path / "out")))
    assert words[:2] == ["covey", "fit"]
    CliRunner().invoke(app, words[1:])
    (found,) = seen
    wanted = SETTINGS[case]
    assert found.table.targets == wanted.table.targets
    for name in ("selection", "always", "seed", "nested", "stability"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert dict(found.options) == dict(wanted.options)
    for name in TableSettings.__dataclass_fields__:
        if name != "target":
            assert getattr(found.table, name) == getattr(wanted.table, name), name
