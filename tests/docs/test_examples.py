"""Every example of the gallery runs as a script, without a screen, and draws something."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_example_runs_and_draws(example, tmp_path, monkeypatch):
    if "covey.paper.nn" in example.read_text():
        pytest.importorskip("torch")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(example), run_name="__main__")
        assert plt.get_fignums(), "an example has a picture"
        for number in plt.get_fignums():
            plt.figure(number).savefig(tmp_path / f"{number}.png")
    finally:
        plt.close("all")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gene_expression", {"gene03", "gene11", "gene17"}), ("splice_sites", {"Pos.2", "Pos.3", "Pos.5"})],
)
def test_data_that_are_absent_have_a_stand_in(name, expected, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COVEY_DATA", str(tmp_path))
    matplotlib.use("Agg")
    (example,) = (file for file in EXAMPLES if file.stem == f"plot_{name}")
    try:
        found = runpy.run_path(str(example))
    finally:
        plt.close("all")
    assert "simulated" in capsys.readouterr().out
    selected = set(found["model"].selected_groups_)
    assert selected == expected if name == "splice_sites" else selected >= expected


def test_there_are_enough_of_them():
    titles = [file.read_text().split('"""')[1].strip().splitlines()[0] for file in EXAMPLES]
    assert len(EXAMPLES) >= 8
    assert len(set(titles)) == len(titles)
