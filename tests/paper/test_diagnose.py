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


def test_diagnose_refuses_a_missing_file_with_exit_code_2(tmp_path):
    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "none.csv"), "--target", "y"])
    assert result.exit_code == 2
    assert "There is no file" in result.output
