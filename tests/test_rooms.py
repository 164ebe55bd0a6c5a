"""Imports go downwards only, and heavy libraries stay in their rooms."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "covey"


def rooms() -> list[str]:
    """The rooms from top to bottom, as CONTRIBUTING.md lists them."""
    block = (ROOT / "CONTRIBUTING.md").read_text().split("```")[1]
    return [line.split()[0] for line in block.strip().splitlines()]


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(file: Path) -> set[str]:
    """The rooms of covey that a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "covey":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("covey.")}
    return found


FILES = sorted(f for f in SOURCE.rglob("*.py") if f != SOURCE / "__init__.py")


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_imports_go_downwards(file):
    order = rooms()
    here = order.index(room_of(file))
    for room in imported_rooms(file) - {room_of(file)}:
        assert room in order, f"{room} is no room of CONTRIBUTING.md's map"
        assert order.index(room) > here, f"{file.name} in {room_of(file)} imports upwards from {room}"


def test_the_walk_sees_imports(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("from covey.plots import A\nimport covey.theory.bounds\ndef f():\n    from covey import cli\n")
    assert imported_rooms(file) == {"plots", "theory", "cli"}


def test_every_room_on_the_map_is_spelt_as_in_the_source():
    present = {room_of(f) for f in FILES}
    assert present <= set(rooms())


def test_importing_covey_is_light():
    heavy = ["torch", "dask", "plotly", "matplotlib", "typer", "rich", "sympy", "jinja2"]
    code = f"import sys, covey; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# fig10 and channels train the networks of nn, and import torch inside their functions only
TORCH = (
    "nn", "batched", "designs/torch", "experiments/fig10.py", "experiments/channels.py",
)  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_torch_stays_in_its_rooms(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    if "torch" in names:
        assert str(file.relative_to(SOURCE)).startswith(TORCH), f"{file.name} imports torch"
