"""`covey autoencoder`: train, interpolate, report."""

import csv

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'covey[torch]'")

from typer.testing import CliRunner  # noqa: E402

from covey.paper.cli.autoencoder import autoencoder as app  # noqa: E402
from covey.paper.results import read  # noqa: E402

TINY = ["--synthetic", "--images", "60", "--latent", "16", "--width", "4", "--batch-size", "16", "--device", "cpu"]


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for model in ("ae", "GAE4"):
        for seed in (0, 1):
            done = call("train", model, "--out", folder, "--epochs", 1, "--seed", seed, *TINY)
            assert done.exit_code == 0, done.output
    return folder


def test_training_writes_a_checkpoint_and_a_log_and_goes_on(runs):
    again = call("train", "GAE4", "--out", runs, "--epochs", 2, "--seed", 0, *TINY)
    assert "GAE4: completed after 2 epochs" in again.output
    assert "192 parameters in the latent layers" in again.output, "3 layers x 4 groups x 4 x 4"
    with (runs / "GAE4-0" / "log.csv").open() as stream:
        assert [row["epoch"] for row in csv.DictReader(stream)] == ["1", "2"]


def test_interpolation_is_drawn(runs, tmp_path):
    done = call("interpolate", runs / "GAE4-1" / "checkpoint.pt", "--out", tmp_path / "a" / "b.png", "--synthetic")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "b.png").read_bytes()[:4] == b"\x89PNG"


def test_the_report_measures_every_checkpoint(runs, tmp_path):
    done = call("report", runs, "--out", tmp_path, "--synthetic", "--images", 60, "--device", "cpu", "--pairs", 10)
    assert done.exit_code == 0, done.output
    found = read(tmp_path)
    measured = found.loc[found["quantity"] == "midpoint_ratio", ["model", "seed"]]
    assert sorted(measured.itertuples(index=False, name=None)) == [("AE", 0), ("AE", 1), ("GAE4", 0), ("GAE4", 1)]
    assert "midpoint ratio" in done.output
    assert "±" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "CNN", "--synthetic"], "error: There is no model 'CNN'; the models are AE, VAE, GAE8, GAE4, IRMAE."),
        (["train", "GAE8", "--latent", "20", "--synthetic"], "do not both split into 8"),
        (["interpolate", "nowhere.pt", "--synthetic"], "error: There is no checkpoint nowhere.pt."),
        (["report", "nowhere", "--synthetic"], "error: There are no checkpoints in nowhere"),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_without_data_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    done = call("train", "AE")
    assert done.exit_code == 2
    assert "pip install pooch" in done.output
