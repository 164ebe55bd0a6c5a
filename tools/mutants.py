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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]

# The source of each room, and the tests that speak for it.
ROOMS = {
    "theory": (["paper/theory"], ["tests/paper/theory", "tests/paper/lemmas/test_balancing.py"]),
    "dynamics": (["paper/dynamics"], ["tests/paper/dynamics"]),
    "regressor": (
        ["paper/regressor.py", "paper/running.py", "paper/stopping.py"], ["tests/paper/test_regressor.py"],
    ),
    "nn": (
        ["paper/nn/stack.py", "paper/nn/descent.py", "paper/nn/diagonal.py", "paper/nn/models.py"],
        ["tests/paper/nn/test_stack.py", "tests/paper/nn/test_descent.py", "tests/paper/nn/test_models.py"],
    ),
    "units": (
        ["paper/baselines/units.py", "paper/baselines/weight_decay.py", "preprocess/working.py"],
        ["tests/paper/baselines/test_units.py", "tests/paper/baselines/test_costs.py", "tests/test_preprocess.py"],
    ),
}  # fmt: skip

# A mutant may make a loop endless: it has this many times what the tests take by themselves, and some seconds.
PATIENCE, SECONDS = 4.0, 60.0

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Lt: ast.LtE,
    ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax")]
EXTREMES = dict(PAIRS) | {b: a for a, b in PAIRS}

# What no test of a formula can see, or need not.
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutant:
    """A change of the syntax tree of a file: the `number`-th of those that `changes` makes."""

    room: str
    file: Path
    number: int
    line: int
    change: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.change}  in  {self.text}"


def changes(tree: ast.AST) -> Iterator[ast.expr]:
    """Change one expression of the tree at a time; each is changed back when the next is asked for."""
    for node in _formulas(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
            if not any(_is_text(side) for side in ast.iter_child_nodes(node)):
                yield from _with(node, node, "op", OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Compare):
            for k, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
                if type(op) in OPERATORS and not _is_text(right):
                    yield from _with(node, node, "ops", [*node.ops[:k], OPERATORS[type(op)](), *node.ops[k + 1 :]])
        elif isinstance(node, ast.Constant) and _is_number(node):
            new = node.value + 1 if isinstance(node.value, int) else (2 * node.value if node.value else 1.0)
            yield from _with(node, node, "value", new)
        elif isinstance(node, ast.Call):
            name = "attr" if isinstance(node.func, ast.Attribute) else "id"
            if getattr(node.func, name, "") in EXTREMES:
                yield from _with(node, node.func, name, EXTREMES[getattr(node.func, name)])


def _with(shown: ast.expr, node: ast.AST, field: str, new: object) -> Iterator[ast.expr]:
    old = getattr(node, field)
    setattr(node, field, new)
    yield shown
    setattr(node, field, old)


def _formulas(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute: not annotations, messages, exceptions, imports and descriptions."""
    if isinstance(node, SKIPPED) or (isinstance(node, ast.FunctionDef) and node.name in ("__str__", "__repr__")):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _formulas(child)


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
                    source = file.read_text(encoding="utf-8")
                    for number, node in enumerate(changes(ast.parse(source))):
                        change = f"{ast.get_source_segment(source, node)}  ->  {ast.unparse(node)}"
                        text = source.splitlines()[node.lineno - 1].strip()
                        out.append(Mutant(room, file, number, node.lineno, " ".join(change.split()), text))
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
        name = str(mutant.file.relative_to(ROOT))
        file = self.folder / name
        original = file.read_text(encoding="utf-8")
        tree = ast.parse(original)
        for number, _ in enumerate(changes(tree)):
            if number == mutant.number:
                break
        try:
            file.write_text(ast.unparse(tree), encoding="utf-8")
            return self.run([*ordered(mutant), name], timeout)[0]  # its doctests last
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
        for room, (sources, tests) in ROOMS.items():
            if room in given.rooms:
                passed, seconds, said = first.run([*tests, *(f"src/covey/{name}" for name in sources)], None)
                if not passed:
                    print(f"{said}\nThe tests of {room} fail without any mutant: mend them first.")
                    return 1
                limits[room] = PATIENCE * seconds + SECONDS
                print(f"{room}: tests take {seconds:.0f} s", flush=True)
        copies.put(first)

        def alive(mutant: Mutant) -> bool:
            copy = copies.get()
            survived = copy.survives(mutant, limits[mutant.room])
            copies.put(copy)
            print(f"{'SURVIVED' if survived else 'killed  '} {mutant}", flush=True)
            return survived

        with ThreadPoolExecutor(given.jobs) as pool:
            survivors = [mutant for mutant, lives in zip(drawn, pool.map(alive, drawn), strict=True) if lives]
    print("\nsurvivors:", *survivors, sep="\n  ")
    for room in given.rooms:
        total, left = (sum(mutant.room == room for mutant in some) for some in (drawn, survivors))
        if total:
            print(f"{room:10} {total - left} of {total} killed")
    killed = len(drawn) - len(survivors)
    print(f"score: {killed} of {len(drawn)} killed ({killed / len(drawn):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
