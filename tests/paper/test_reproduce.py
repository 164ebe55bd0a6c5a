"""`covey reproduce`: what it writes, what it says to bad input, and that it can be stopped and taken up again."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from experiments import toy
from typer.testing import CliRunner

from covey.cli.app import app

RUNNER = CliRunner()


def reproduce(*arguments):
    return RUNNER.invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "200"})


def test_one_toy_from_end_to_end(monkeypatch, tmp_path):
    toy.install(monkeypatch)
    result = reproduce("toy", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    claims = pd.read_csv(tmp_path / "claims.csv")
    assert list(claims.columns) == ["id", "claim", "expected", "measured", "verdict"]
    assert claims["verdict"].tolist() == ["holds"]
    for name in ("index.html", "toy/data.csv", "toy/figure.svg", "toy/figure.png", "toy/run.json"):
        assert (tmp_path / name).is_file()
    assert "Toys work." in result.output
    assert "1 holds; 0 holds in the code only; 0 does not hold" in result.output
    assert "kept" in reproduce("toy", "--out", tmp_path).output
    (tmp_path / "toy" / "data.csv").write_text("nonsense")
    again = reproduce("toy", "--out", tmp_path)
    assert again.exit_code == 0
    assert "notice:" in again.output


def test_an_id_given_twice_runs_once(monkeypatch, tmp_path):
    runs = toy.install(monkeypatch)
    assert reproduce("toy", "toy", "--out", tmp_path, "--full").exit_code == 0
    assert [run.repeats for run in runs] == [30]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure 2"], "did you mean 'fig2'"),
        (["xyzzy"], "There are: fig1, fig2"),
        (["fig8", "--jobs", 0], "--jobs must be"),
        (["fig8", "--out", "file/folder"], "choose another place with --out"),
    ],
    ids=["a near id", "unknown id", "no jobs", "folder that cannot be written"],
)
def test_bad_input_is_refused_before_any_work(monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    result = reproduce(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_failure_is_reported_and_sets_the_exit_code(monkeypatch, tmp_path):
    def broken(settings):
        raise ZeroDivisionError("by zero")

    toy.install(monkeypatch, "broken", run=broken)
    toy.install(monkeypatch)
    result = reproduce("broken", "toy", "--out", tmp_path)
    assert result.exit_code == 1
    assert "broken did not run: It failed: ZeroDivisionError: by zero" in result.output
    assert "Toys work." in result.output


def test_without_the_bardet_data_the_rest_runs(monkeypatch, tmp_path):
    monkeypatch.delenv("COVEY_DATA", raising=False)
    result = reproduce("table3", "fig8", "--out", tmp_path)
    assert result.exit_code == 0
    assert "table3 did not run:" in result.output
    assert "gglasso" in result.output
    assert (tmp_path / "fig8" / "data.csv").is_file()
    assert "gglasso" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("kill", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_stopped_in_the_middle_and_taken_up_again(tmp_path, kill, code):
    command = [sys.executable, "-m", "covey", "reproduce", "fig8", "fig9", "fig1", "--out", str(tmp_path)]
    command += ["--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (tmp_path / "fig9" / "run.json").exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    process.send_signal(kill)
    output = process.communicate()[0]
    assert process.returncode == code, output
    assert not (tmp_path / "index.html").exists()
    if kill == signal.SIGINT:
        assert "run the same command again to resume" in output
        assert "Traceback" not in output
        return  # what is kept of a run that had no time to end is the harder case
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    lines = {line.split()[0]: line for line in again.stdout.splitlines() if line.startswith("fig")}
    assert lines["fig8"].rstrip().endswith("kept")
    assert (tmp_path / "index.html").is_file()
    assert (tmp_path / "fig1" / "run.json").is_file()
