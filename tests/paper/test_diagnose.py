"""The command `covey diagnose` on a table in a file."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from typer.testing import CliRunner

from covey.cli.app import app


def test_diagnose_prints_conditions_and_draws_coherence(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=["a_1", "a_2", "b_1", "b_2"])
    frame["y"] = frame["a_1"] - frame["a_2"] + 0.1 * rng.standard_normal(60)
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = ["diagnose", str(tmp_path / "data.csv"), "--target", "y", "--groups", "sep:_", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    plt.close("all")
    assert result.exit_code == 0, result.output
    assert "delta_in" in result.output
    assert "delta_out" in result.output
    assert "guarantee" in result.output
    assert (tmp_path / "coherence.png").stat().st_size > 1000


def test_diagnose_says_what_it_means_to_a_reader_who_is_no_theorist(tmp_path):
    """Independent normal columns violate the conditions too: that is chance, and a twin of a column is not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((200, 12)), columns=[f"g{i // 3}_{i % 3}" for i in range(12)])
    frame["y"] = frame["g0_0"] + 0.1 * rng.standard_normal(200)
    frame.to_csv(tmp_path / "independent.csv", index=False)
    frame.assign(g3_2=frame["g0_0"]).to_csv(tmp_path / "alike.csv", index=False)
    said = {}
    for name in ("independent", "alike"):
        command = ["diagnose", str(tmp_path / f"{name}.csv"), "--target", "y", "--groups", "_"]
        said[name] = " ".join(CliRunner().invoke(app, command, env={"COLUMNS": "200"}).output.split())
        assert "The guarantee does not apply as it stands. What this means:" in said[name]
        assert "It says nothing against a fit" in said[name]
    assert "no more alike than by chance" in said["independent"]
    assert "g0 and g3 are more alike (1" in said["alike"]


def test_diagnose_refuses_a_missing_file_with_exit_code_2(tmp_path):
    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "none.csv"), "--target", "y"])
    assert result.exit_code == 2
    assert "There is no file" in result.output
