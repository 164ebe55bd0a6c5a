"""The Python of README, guide and gallery runs as it stands and prints what is shown; names for R users exist."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import covey
import covey.report
import covey.selection

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", DOCS / "quickstart.md", DOCS / "paper.md"]
PAGES += sorted((DOCS / "guide").glob("*.md"))
# A block of Python and, where one follows at once, the block of text that shows what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def blocks(page):
    """Each block of Python with the line on which it starts and the output shown for it, or None."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        yield text[: found.start(1)].count("\n"), found.group(1), found.group(2)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    try:
        for line, source, shown in blocks(page):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                # empty lines in front, so that a traceback names the line of the page
                exec(compile("\n" * line + source, str(page), "exec"), namespace)
            assert shown is None or out.getvalue().rstrip() == shown.rstrip()
    finally:
        plt.close("all")


def test_blocks_are_found():
    found = {page: [source for _, source, _ in blocks(page)] for page in PAGES}
    assert [page.name for page, sources in found.items() if not sources] == ["index.md"]  # the guide's list of pages
    assert all(">>>" not in source for sources in found.values() for source in sources)


def test_the_first_page_shows_the_code_of_the_readme():
    (first,) = (block[1:] for block in blocks(DOCS / "index.md"))
    assert first in [block[1:] for block in blocks(ROOT / "README.md")]


EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


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


def test_the_calls_run(tmp_path):
    rng = np.random.default_rng(0)
    cars = pd.DataFrame(
        {"wt": rng.normal(3, 1, 32), "cyl": rng.choice([4, 6, 8], 32), "gear": rng.choice(list("ab"), 32)}
    )
    mpg = 37 - 5 * cars["wt"].to_numpy() + rng.normal(0, 1, 32)
    cars["gear"] = cars["gear"].astype("category")  # as a factor arrives
    model = covey.GroupSparseRegressor(terms="auto").fit(cars, mpg)
    assert "wt" in str(model.summary())
    assert model.terms_["term"].tolist()[0] == "wt"
    assert model.predict(cars).shape == (32,)
    covey.save(model, tmp_path / "model.skops")
    assert covey.load(tmp_path / "model.skops").selected_groups_ == model.selected_groups_
    labels = ["a", "a", "b"]  # a list of labels, one per column
    matrix = rng.standard_normal((32, 3))
    assert (
        covey.GroupSparseRegressor(groups=labels, selection=covey.selection.Size(1)).fit(matrix, mpg).groups_.n_groups
        == 2
    )


def test_the_names_on_the_page_exist():
    for dotted in set(re.findall(r"covey(?:\$\w+)+", (DOCS / "reticulate.md").read_text())):
        value = covey
        for name in dotted.split("$")[1:]:
            value = getattr(value, name)
