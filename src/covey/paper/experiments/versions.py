"""The code that a table depends on: the experiment's file and all covey modules that it imports, directly or not."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

__all__ = ["code_version", "look_version", "sources"]

ROOT = Path(__file__).parents[2]
# The module that affects only the look of figures, and packages that only re-export; tables do not depend on them.
LOOK = "covey.paper.experiments.style"
FRONT = ("covey", "covey.paper", "covey.paper.experiments", "covey.paper.experiments.registry")


@cache
def code_version(module: str) -> str:
    """A hash of the source that a table of this experiment can depend on."""
    return _hash(sources(module))


@cache
def look_version(module: str) -> str:
    """A hash of the additional source that the look of its figure depends on."""
    return _hash({*sources(module), *_files(LOOK)})


def sources(module: str) -> set[Path]:
    """The files of a module and of the covey modules that it imports, directly or indirectly."""
    found: set[Path] = set()
    waiting, visited = [module], {LOOK, *FRONT}
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        for file in _files(name):
            found.add(file)
            waiting += _imports(file)
    return found


def _files(name: str) -> list[Path]:
    """The file of a covey module; empty for a name that is not a module."""
    if not name.startswith("covey."):
        return []
    path = ROOT.joinpath(*name.split(".")[1:])
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


def _imports(file: Path) -> list[str]:
    """The names that a file imports, at its top or inside a function; names imported from a package may be modules."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def _hash(files: set[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
