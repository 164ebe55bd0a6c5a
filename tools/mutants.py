"""A mutation run over the rooms of the paper: change one operator or number at a time, and see whether a test fails.

    make mutants                                           # 300 mutants, about two hours on two cores
    python tools/mutants.py --count 40 --rooms theory      # a sample of one room

Sites are found in the syntax tree (arithmetic, comparisons, `and` and `or`, `min` and `max`, numbers), never in
docstrings, annotations, messages or exceptions, and drawn with a seed. Each mutant is written into a copy of the
source tree, and the room's tests run there until the first failure. A mutant is killed when a test fails or does not
come to an end; survivors are listed, to be killed by a test that computes the formula, or understood to change nothing.
The last line is the score. Nothing here is part of `make test`.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]

# The source of each room, and the tests that speak for it.
ROOMS = {
    "theory": (["paper/theory"], ["tests/paper/theory"]),
    "dynamics": (["paper/dynamics"], ["tests/paper/dynamics"]),
    "regressor": (
        ["paper/regressor.py", "paper/running.py", "paper/stopping.py"], ["tests/paper/test_regressor.py"],
    ),
    "nn": (
        ["paper/nn/stack.py", "paper/nn/descent.py", "paper/nn/diagonal.py", "paper/nn/models.py",
         "paper/nn/networks.py"],
        ["tests/paper/nn/test_stack.py", "tests/paper/nn/test_descent.py", "tests/paper/nn/test_models.py"],
    ),
    "units": (
        ["paper/baselines/units.py", "paper/baselines/weight_decay.py", "preprocess/working.py"],
        ["tests/paper/baselines/test_units.py", "tests/paper/baselines/test_costs.py", "tests/test_preprocess.py"],
    ),
}  # fmt: skip

# A mutant may make a loop endless: it has this many times what the tests take by themselves, and some seconds.
PATIENCE, SECONDS = 4.0, 60.0

ARITHMETIC = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*")}
COMPARISON = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}  # fmt: skip
LOGIC = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
EXTREMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
}


@dataclass(frozen=True)
class Mutant:
    """Characters `start` to `end` of a file, replaced by `text`."""

    room: str
    file: Path
    line: int
    start: int
    end: int
    text: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.before}  ->  {self.after}"

    def apply(self, source: str) -> str:
        """The mutated source."""
        return source[: self.start] + self.text + source[self.end :]


def sites(room: str, file: Path) -> list[Mutant]:
    """All mutants of one file."""
    source = file.read_text(encoding="utf-8")
    offsets = [0]
    for text in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(text))
    lines = source.splitlines()
    found: list[Mutant] = []

    def place(line: int, column: int) -> int:
        # columns of the syntax tree count bytes
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def add(node: ast.AST, start: int, end: int, text: str) -> None:
        line = source.count("\n", 0, start) + 1
        old = lines[line - 1]
        at = start - offsets[line - 1]
        found.append(
            Mutant(room, file, line, start, end, text, old.strip(), (old[:at] + text + old[at + end - start :]).strip())
        )

    def between(node: ast.AST, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        start, end = place(left.end_lineno, left.end_col_offset), place(right.lineno, right.col_offset)
        at = source.find(old, start, end)
        if at >= 0:
            add(node, at, at + len(old), new)

    class Walk(ast.NodeVisitor):
        def visit_BinOp(self, node: ast.BinOp) -> None:
            if type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
                between(node, node.left, node.right, *ARITHMETIC[type(node.op)])
            self.generic_visit(node)

        def visit_Compare(self, node: ast.Compare) -> None:
            left = node.left
            for op, right in zip(node.ops, node.comparators, strict=True):
                if type(op) in COMPARISON and not _is_text(right):
                    between(node, left, right, *COMPARISON[type(op)])
                left = right
            self.generic_visit(node)

        def visit_BoolOp(self, node: ast.BoolOp) -> None:
            between(node, node.values[0], node.values[1], *LOGIC[type(node.op)])
            self.generic_visit(node)

        def visit_Constant(self, node: ast.Constant) -> None:
            if _is_number(node):
                start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
                new = node.value + 1 if isinstance(node.value, int) else (2 * node.value if node.value else 1.0)
                add(node, start, end, repr(new))

        def visit_Call(self, node: ast.Call) -> None:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in EXTREMES:
                end = place(node.func.end_lineno, node.func.end_col_offset)
                add(node, end - len(name), end, EXTREMES[name])
            self.generic_visit(node)

        # what no test of a formula can see, or need not
        def visit_Raise(self, node: ast.Raise) -> None: ...
        def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...
        def visit_Import(self, node: ast.Import) -> None: ...
        def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            if node.name in ("__str__", "__repr__"):
                return
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
            for statement in node.body:
                self.visit(statement)

        def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
            if node.value is not None:
                self.visit(node.value)

        def visit_Subscript(self, node: ast.Subscript) -> None:
            self.visit(node.value)
            self.visit(node.slice)

    Walk().visit(ast.parse(source))
    return found


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and not _is_number(node))


def all_sites(rooms: list[str]) -> list[Mutant]:
    """All mutants of some rooms."""
    out = []
    for room in rooms:
        for name in ROOMS[room][0]:
            path = ROOT / "src" / "covey" / name
            for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
                if file.name != "__init__.py":
                    out += sites(room, file)
    return out


class Copy:
    """A copy of the source tree in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests", "conftest.py", "pyproject.toml", "docs", "README.md"):
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("_build", "generated", "gallery"))
            else:
                shutil.copy2(source, target)

    def run(self, tests: list[str], timeout: float | None) -> tuple[bool, float, str]:
        """Whether all tests pass, how long it took, and the end of what was said."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        begin = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return False, time.perf_counter() - begin, "no end"
        return done.returncode == 0, time.perf_counter() - begin, done.stdout.decode(errors="replace")[-2000:]

    def survives(self, mutant: Mutant, timeout: float) -> bool:
        """Whether the room's tests pass with the mutant in place."""
        file = self.folder / mutant.file.relative_to(ROOT)
        original = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutant.apply(original), encoding="utf-8")
            own = str(mutant.file.relative_to(ROOT))  # its doctests
            return self.run([*ordered(mutant), own], timeout)[0]
        finally:
            file.write_text(original, encoding="utf-8")


def ordered(mutant: Mutant) -> list[str]:
    """The room's test files, those that name the mutated module first: the run ends at the first failure."""
    files: list[Path] = []
    for name in ROOMS[mutant.room][1]:
        path = ROOT / name
        files += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    stem = mutant.file.stem
    files.sort(key=lambda file: (stem not in file.stem, stem not in file.read_text(encoding="utf-8")))
    return [str(file.relative_to(ROOT)) for file in files]


def main() -> int:
    """Draw mutants, try them, print the survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="*", choices=list(ROOMS), default=list(ROOMS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the drawn mutants and do nothing")
    given = parser.parse_args()
    every = all_sites(given.rooms)
    drawn = random.Random(given.seed).sample(every, min(given.count, len(every)))
    if given.list:
        print("\n".join(map(str, drawn)))
        return 0
    print(f"{len(drawn)} of {len(every)} mutants, seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Copy] = Queue()
        for k in range(given.jobs):
            copies.put(Copy(Path(folder) / str(k)))
        first, limits = copies.get(), {}
        for room in given.rooms:
            doctests = [f"src/covey/{name}" for name in ROOMS[room][0]]
            passed, seconds, said = first.run([*ROOMS[room][1], *doctests], None)
            if not passed:
                print(f"{said}\nThe tests of {room} fail without any mutant: mend them first.")
                return 1
            limits[room] = PATIENCE * seconds + SECONDS
            print(f"{room}: tests take {seconds:.0f} s", flush=True)
        copies.put(first)

        def one(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                survived = copy.survives(mutant, limits[mutant.room])
            finally:
                copies.put(copy)
            print(f"{'SURVIVED' if survived else 'killed  '} {mutant}", flush=True)
            return survived

        with ThreadPoolExecutor(given.jobs) as pool:
            survived = list(pool.map(one, drawn))
    print("\nsurvivors:")
    for mutant, alive in zip(drawn, survived, strict=True):
        if alive:
            print(f"  {mutant}")
    for room in given.rooms:
        own = [alive for mutant, alive in zip(drawn, survived, strict=True) if mutant.room == room]
        if own:
            print(f"{room:10} {len(own) - sum(own)} of {len(own)} killed")
    print(f"score: {len(drawn) - sum(survived)} of {len(drawn)} killed ({1 - sum(survived) / len(drawn):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
