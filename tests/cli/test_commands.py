"""The other commands: path, demo, completion, help; and that they look right on any terminal."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from cli.running import as_json, covey, done, refused, run_of
from covey.cli.app import COMMANDS, _never_lose_an_interrupt

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((100, 6)), columns=["a_1", "a_2", "b_1", "b_2", "c_1", "c_2"])
    frame["y"] = 5 * frame["b_1"] + 2 * frame["a_2"] + 0.1 * rng.standard_normal(100)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_path_prints_the_order(table, tmp_path):
    out, plot = tmp_path / "path.csv", tmp_path / "path.svg"
    result = covey("path", table, "-t", "y", "-g", "_", "--out", out, "--plot", plot)
    plt.close("all")
    assert result.exit_code == 0, result.output
    assert result.output.index("b ") < result.output.index("a ")
    coefficients = pd.read_csv(out)
    last = coefficients[coefficients["time"] == coefficients["time"].max()].set_index("column")["coefficient"]
    assert last["b_1"] == pytest.approx(5, abs=0.1)
    assert last["a_2"] == pytest.approx(2, abs=0.1)
    assert plot.read_text().startswith("<?xml")


def test_path_as_json_stops_at_most(table):
    answer = as_json("path", table, "-t", "y", "-g", "_", "--most", 2)
    assert [row["group"] for row in answer["groups"]] == ["b", "a"]
    assert answer["groups_in_all"] == 3
    assert answer["groups"][0]["woke_up"] < answer["groups"][1]["woke_up"]


def test_path_refuses(table, tmp_path):
    refused(covey("path", table, "-t", "y", "--plot", tmp_path / "x.doc"), ".png, .svg, .pdf")
    refused(covey("path", table, "-t", "z"), "no column 'z'")
    refused(covey("path", table, "-t", "y", "--out", "-", "--json"), "--out - and --json both print")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_demo_and_its_command_by_hand(tmp_path):
    printed = done("demo", "--out", tmp_path / "demo").stdout
    found = run_of(tmp_path / "demo" / "fit")
    # Friedewald's formula, and no other measurement; every repetition of the choice finds it
    truth = {"cholesterol", "hdl", "log_triglycerides", "log_triglycerides~", "log_triglycerides~~"}
    assert {row["term"] for row in found["selected_terms"]} == truth
    selected = found["nested"]["selected"]
    assert {term for term, count in selected.items() if count == 5} == truth
    assert sum(selected.values()) <= 5 * 5 + 2
    assert all(found["nested"]["mean"] > one["mean"] for one in found["nested"]["references"].values())
    assert "cholesterol (straight), log_triglycerides (curved), hdl (straight)" in printed
    again = as_json(*shlex.split(printed.strip().splitlines()[-1])[1:], "--out", tmp_path / "again")
    # the demo has outer folds too
    without = [{name: row[name] for name in row if name != "outer_folds"} for row in found["selected_terms"]]
    assert again["selected_terms"] == without


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion(shell):
    result = covey("completion", shell)
    assert result.exit_code == 0
    assert "_COVEY_COMPLETE" in result.stdout


def test_the_shell_is_answered():
    asked = {"_COVEY_COMPLETE": "complete_bash", "COMP_WORDS": "covey fit --s", "COMP_CWORD": "2"}
    out = subprocess.run(
        [sys.executable, "-m", "covey"], env={**ENVIRONMENT, **asked}, capture_output=True, text=True, check=True
    )
    found = "--sep --start --strata --selection --standardize --seed --stability"
    assert out.stdout.split() == found.split()


def test_help_names_every_command():
    result = covey("--help")
    assert result.exit_code == 0
    assert {"fit", "predict", "stability", "path", "demo", "completion", "reproduce"} <= set(COMMANDS)
    for command in COMMANDS:
        assert f" {command} " in result.stdout
        page = done(command, "--help").stdout
        assert command == "autoencoder" or f"covey {command}" in page.split("Examples:")[1]
        assert max(map(len, page.splitlines())) <= 200
    for heading in ("Examples:", "Exit status:", "NO_COLOR"):
        assert heading in result.stdout
    assert covey().exit_code == 2
    assert covey("--version").stdout.startswith("covey ")
    module = subprocess.run(
        [sys.executable, "-m", "covey", "--version"], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert module.stdout == covey("--version").stdout


def test_help_needs_nothing_heavy():
    heavy = ["numpy", "scipy", "pandas", "sklearn", "numba", "matplotlib", "joblib", "pyarrow", "skops", "torch"]
    heavy += [place.partition(":")[0] for name, (place, _) in COMMANDS.items() if name != "fit"]  # nor another command
    code = (
        "import sys\nfrom covey.cli.app import app\n"
        "try:\n    app(['fit', '--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == "[]"


def on_a_terminal(*arguments):
    """A command in another process, whose standard error is a terminal, and the other end of that."""
    import pty

    parent, child = pty.openpty()
    command = [sys.executable, "-m", "covey", *map(str, arguments)]
    environment = {**ENVIRONMENT, "TERM": "xterm-256color", "NO_COLOR": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=child, text=True)
    os.close(child)
    return process, parent


def read_all(terminal):
    output = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while chunk := os.read(terminal, 4096):
            output += chunk
    return output


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal(table, tmp_path):
    process, terminal = on_a_terminal(
        "fit", table, "-t", "y", "-g", "_", "--out", tmp_path / "f", "--no-nested", "--selection", "bic"
    )
    output = read_all(terminal)
    process.communicate()
    assert process.returncode == 0
    assert b"fitting" in output
    assert b"\x1b[3" not in output  # NO_COLOR


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_interrupted_leaves_nothing(tmp_path):
    """The fit, in a hundred folds, is interrupted when its progress says that it has begun."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 1500))).rename(columns="x{}".format)
    frame["y"] = frame.iloc[:, :40].sum(axis=1) + 20 * rng.standard_normal(300)
    frame.to_parquet(tmp_path / "wide.parquet")
    process, terminal = on_a_terminal(
        "fit", tmp_path / "wide.parquet", "--target", "y", "--out", tmp_path / "fit", "--selection", "100"
    )
    output = b""
    while b"fitting" not in output:
        output += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    # an import that catches everything may swallow the first one; a user would press the keys again
    again = threading.Timer(8.0, process.send_signal, [signal.SIGINT])
    again.start()
    output += read_all(terminal)
    out = process.communicate()[0]
    again.cancel()
    assert process.returncode == 130, output
    assert out == ""
    assert b"Traceback" not in output
    assert b"nothing was written" in output
    assert [file.name for file in tmp_path.iterdir()] == ["wide.parquet"]


def test_fit_imports_skops_first_and_nothing_idle():
    code = (
        "import sys; from covey.cli.app import app\n"
        f"app(['fit', {os.devnull!r}, '--target', 'y'], standalone_mode=False)\n"
        "loaded = list(sys.modules)\n"
        "print(loaded.index('skops.io') < loaded.index('covey.estimators'))\n"
        "print([m for m in ('torch', 'dask', 'pytest', 'plotly', 'matplotlib', 'sympy') if m in loaded])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.split("\n")[:2] == ["True", "[]"], done.stderr


def test_an_interrupt_that_python_loses_is_sent_again(monkeypatch):
    sent = threading.Event()
    monkeypatch.setattr("_thread.interrupt_main", sent.set)
    _never_lose_an_interrupt(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert sent.wait(20)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("module", ["typer", "skops", "rich.console"])
def test_an_interrupt_among_the_imports_is_an_orderly_end(tmp_path, module):
    """The first, that of the command line, comes within the first half second; the others inside a command."""
    code = (
        "import os, signal, sys\n"
        "class Sender:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Sender())\n"
        f"sys.argv = ['covey', 'fit', {os.devnull!r}, '-t', 'y', '--out', {str(tmp_path / 'fit')!r}]\n"
        "from covey.cli import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.strip() == "Stopped; nothing was written."
    assert not list(tmp_path.iterdir())
