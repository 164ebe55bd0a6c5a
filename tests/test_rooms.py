"""Imports go downwards only, and heavy libraries stay in their rooms."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "covey"


def rooms(part: int) -> list[str]:
    """The rooms of the tool (0) or of the paper (1) from top to bottom, as CONTRIBUTING.md lists them."""
    block = (ROOT / "CONTRIBUTING.md").read_text().split("```")[1 + 2 * part]
    return [line.split()[0] for line in block.strip().splitlines()]


def room_of(file: Path, root: Path) -> str:
    return file.relative_to(root).parts[0].removesuffix(".py")


def imports(file: Path) -> set[str]:
    """The modules that a file imports, at its top or inside a function; names imported from covey count as modules."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in ("covey", "covey.paper"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def rooms_in(names: set[str], package: str) -> set[str]:
    """The rooms of a package among the names of modules."""
    return {name.removeprefix(f"{package}.").split(".")[0] for name in names if name.startswith(f"{package}.")}


def check_order(file: Path, names: set[str], package: str, order: list[str], here: str) -> None:
    for room in rooms_in(names, package) - {here}:
        assert room in order, f"{room} is no room of CONTRIBUTING.md's map"
        assert order.index(room) > order.index(here), f"{file.name} in {here} imports upwards from {room}"


FILES = sorted(f for f in SOURCE.rglob("*.py") if f != SOURCE / "__init__.py")
PAPER = [f for f in FILES if f.is_relative_to(SOURCE / "paper") and f != SOURCE / "paper" / "__init__.py"]


# fig10 and channels train the networks of nn; the experiments import torch inside their functions only
TORCH = (
    "paper/nn", "designs/torch", "paper/experiments/fig10.py", "paper/experiments/channels.py",
    "paper/experiments/autoencoders.py",
)  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_go_downwards_and_torch_stays_in_its_rooms(file):
    names = imports(file)
    check_order(file, names, "covey", rooms(0), room_of(file, SOURCE))
    if file in PAPER:
        check_order(file, names, "covey.paper", rooms(1), room_of(file, SOURCE / "paper"))
    if "torch" in {name.partition(".")[0] for name in names}:
        assert str(file.relative_to(SOURCE)).startswith(TORCH), f"{file.name} imports torch"


def test_the_tool_never_imports_the_paper():
    """Not even by a name in a string, except where the command line looks up the paper's commands."""
    naming = {
        str(file.relative_to(SOURCE))
        for file in FILES
        if room_of(file, SOURCE) != "paper" and re.search(r"covey\.paper|\.paper\b", code_of(file))
    }
    assert naming == {"cli/app.py"}
    commands = re.findall(r"covey\.paper[\w.]*(?::\w+)?", code_of(SOURCE / "cli/app.py"))
    assert commands
    assert all(re.fullmatch(r"covey\.paper\.cli\.\w+:\w+", command) for command in commands)


def code_of(file: Path) -> str:
    """The source without docstrings and comments."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def test_the_walk_sees_imports(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("from covey.plots import A\nimport covey.search.events\ndef f():\n    from covey import cli\n")
    assert rooms_in(imports(file), "covey") == {"plots", "search", "cli"}


def test_every_room_on_the_map_is_spelt_as_in_the_source():
    assert {room_of(f, SOURCE) for f in FILES} <= set(rooms(0))
    assert {room_of(f, SOURCE / "paper") for f in PAPER} == set(rooms(1))


def test_importing_covey_is_light():
    heavy = ["torch", "dask", "plotly", "matplotlib", "typer", "rich", "sympy", "jinja2"]
    code = f"import sys, covey; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
