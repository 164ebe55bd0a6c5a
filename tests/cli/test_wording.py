"""What a message of the library tells a user of the command line to do can be done there."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import covey as library
from cli.running import covey
from covey.cli.app import app
from covey.settings.wording import OPTIONS, as_options

SOURCE = Path(library.__file__).parent
FILES = [
    "report/assets/remarks.toml",
    "report/remarks.py",
    "search/splits.py",
    "search/select.py",
    "search/criteria.py",
    "designs/rows.py",
]
PARAMETERS = "|".join(OPTIONS)


def messages(file):
    """Every text of a file that is no docstring, with what stands between braces left out."""
    if file.endswith(".toml"):
        texts = tomllib.loads((SOURCE / file).read_text())
        return [part for text in texts.values() for part in text.values() if isinstance(part, str)]
    tree = ast.parse((SOURCE / file).read_text())
    described = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, described)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in texts if text not in docstrings and " " in text]


@pytest.fixture(scope="module")
def options():
    command = typer.main.get_command(app).get_command(None, "fit")
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("file", FILES)
def test_remedies_are_options_of_the_command_line(file, options):
    texts = [as_options(text) for text in messages(file)]
    assert texts
    for text in texts:
        assert not re.search(rf"(?<![-\w])({PARAMETERS})=", text), text
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= options, text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "leave interval= out, or fit loss='squared', 'huber' or 'quantile' for intervals",
            "leave --interval out, or fit --family gaussian, huber or quantile for intervals",
        ),
        ('read the table with thousands="\'".', 'read the table with --thousands "\'".'),
        ("choose by folds (selection=5), 'ebic' or 'bic'.", "choose by folds (--selection 5), 'ebic' or 'bic'."),
        ("use selection=5 with rule='predict'.", "use --selection 5 with --rule predict."),
        ("factors=1 holds the leading one", "--factors 1 holds the leading one"),
        ("or covey.selection.Size(k).", "or size:k."),
        (
            "such as pairs=[('a', 'b')] or pairs={'with': 'b'}, or pairs=None",
            "such as --pairs a:b or --pairs with:b, or --pairs none",
        ),
        ("give random_state=3", "give --seed 3"),
        ("Give the sizes one by one with Groups.from_sizes.", "Give a file with two columns: column, group."),
        ("--selection 5 is good", "--selection 5 is good"),
        ("n_pairs must be at least 1", "--pairs must be at least 1"),
        ("kind is 'red' in 1 row", "kind is 'red' in 1 row"),
        ("lower n_first or raise max_false", "lower n_first or raise --max-false"),
    ],
    ids=str,
)
def test_parameters_become_options(text, shown):
    assert as_options(text) == shown


def test_a_missing_file_is_refused_before_the_heavy_imports(tmp_path):
    (tmp_path / "table.csv").write_text("a,y\n1,2\n")
    code = (
        "import sys\nfrom covey.cli.app import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit as end:\n"
        "    print(end.code, [m for m in ('numpy', 'pandas', 'sklearn', 'rich') if m in sys.modules])\n"
    )
    for command in (["fit", "-t", "y"], ["path", "-t", "y"], ["diagnose", "-t", "y"], ["stability", "-t", "y"]):
        given = [command[0], tmp_path / "tabel.csv", *command[1:]]
        done = subprocess.run([sys.executable, "-c", code, *map(str, given)], capture_output=True, text=True)
        assert done.stdout.strip() == "2 []", (done.stdout, done.stderr)
        assert f"Did you mean {tmp_path / 'table.csv'}?" in done.stderr


def test_names_that_would_break_a_sentence_are_quoted(tmp_path):
    rng, long = np.random.default_rng(0), "n" * 500
    X = pd.DataFrame(rng.standard_normal((60, 2)), columns=["city, state", long])
    X.assign(y=X.sum(axis=1)).to_csv(tmp_path / "t.csv", index=False)
    shown = covey("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "fit").output
    assert "'city, state' (straight)" in shown
    assert long[:100] in shown
    assert long[:101] not in shown
