"""Libraries that are not installed: the core does without them, and their use gives the pip line."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import covey
from covey.optional import EXTRAS, MissingExtraError, optional

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

WITHOUT = """
import sys
class Absent:  # as if they were not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, {source!r})
import numpy as np, covey
X = np.random.default_rng(0).standard_normal((40, 6))
model = covey.GroupSparseRegressor(groups=2).fit(X, X[:, 0] + X[:, 1])
print(model.selected_groups_)
"""


USES = {
    "plots": ("covey.plots", "covey.plots needs matplotlib", "plot"),
    "report": ("covey.report.fit_report(model, X, X[:, 0], 'r.html')", "A report needs jinja2", "report"),
    "save": ("covey.save(model, 'm.skops')", "A model in a file needs skops", "io"),
    "parquet": (
        "from covey.tables import read_table; from pathlib import Path\n"
        "Path('t.parquet').write_text('PAR1'); read_table(Path('t.parquet'))",
        "Reading t.parquet needs pyarrow",
        "parquet",
    ),
    "command": ("from covey.cli import main; main()", "error: The command line needs typer", "cli"),
    "formula": ("covey.GroupSparseRegressor.from_formula('y ~ x', {})", "A formula needs formulaic", "formula"),
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What one process without any of the libraries prints: the groups of a fit, and a line for every use."""
    code = WITHOUT.format(names=tuple(EXTRAS), source=str(Path(covey.__file__).parents[1]))
    for use, _, _ in USES.values():
        lines = "".join(f"    {line}\n" for line in use.splitlines())
        code += f"try:\n{lines}except BaseException as error:\n    print(error)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path_factory.mktemp("without")
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not PROJECT.exists(), reason="installed without its pyproject.toml")
def test_every_library_is_in_its_extra_and_not_in_the_core():
    project = tomllib.loads(PROJECT.read_text())["project"]
    name = re.compile(r"[a-z-]+")
    core = {name.match(line)[0] for line in project["dependencies"]}
    for library, extra in EXTRAS.items():
        assert library not in core
        assert any(library in line for line in project["optional-dependencies"][extra]), (library, extra)


def test_the_core_fits_without_any_of_them(printed):
    assert printed[0] == "[0]"


def test_a_use_gives_the_pip_line(printed):
    expected = [f"{what}, which is not installed: pip install 'covey[{extra}]'" for _, what, extra in USES.values()]
    assert printed[1:] == expected


def test_other_missing_modules_are_left_alone():
    with pytest.raises(ModuleNotFoundError) as caught, optional("This"):
        import no_such_library  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)
