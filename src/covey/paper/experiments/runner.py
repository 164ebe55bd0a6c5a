"""Run experiments one after another: table, figure and claims, stored on disk so that runs can be resumed.

For each experiment the folder ``ID/`` has ``data.csv`` (the table), ``figure.svg``, ``figure.png`` and ``run.json``,
which is written last and records the settings and code behind the table, and its checksum. A table is reused if all
of these agree; a damaged one is computed again, with a notice. Files are written under another name and moved into
place, so that a reader never sees a partial file.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache, partial
from pathlib import Path

import pandas as pd

import covey
from covey.datasets import DataNotFoundError
from covey.files import write_atomically
from covey.paper.experiments import style
from covey.paper.experiments.base import Claim, Record, Scale
from covey.paper.experiments.registry import Experiment, Mode, find
from covey.paper.experiments.tasks import resumable, watched

__all__ = [
    "Outcome", "as_csv", "code_version", "look_version", "markdown", "prepare_folder", "reproduce", "sources",
    "tabulate", "write_claims",
]  # fmt: skip

ROOT = Path(covey.__file__).parent
# The module that affects only the look of figures, and packages that only re-export; tables do not depend on them.
LOOK = "covey.paper.experiments.style"
FRONT = ("covey", "covey.paper", "covey.paper.experiments", "covey.paper.experiments.registry")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one experiment: its table, figure and claims, or the problem that kept it from running."""

    experiment: Experiment
    mode: Mode
    settings: Scale
    frame: pd.DataFrame | None = None  # the table as saved
    figure: dict[str, bytes] = field(default_factory=dict)  # by format
    claims: list[Claim] = field(default_factory=list)
    seconds: float = 0.0  # the run time of the table, even if it was read from disk
    reused: bool = False  # whether the table was read from disk
    problem: str = ""  # why there is no table, and what to do
    failed: bool = False  # whether it crashed rather than lacked its data
    notices: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.experiment.id


def reproduce(
    ids: Iterable[str], mode: Mode, folder: Path, jobs: int = 1, watch: Callable[[str, int, int], object] | None = None
) -> Iterator[Outcome]:
    """Run the experiments, yielding each outcome when it is ready; ``watch(id, done, total)`` is called per repeat."""
    for experiment in [find(id) for id in ids]:
        with watched(partial(watch, experiment.id) if watch else lambda done, total: None):
            yield _reproduce_one(experiment, mode, folder / experiment.id, jobs)


def _reproduce_one(experiment: Experiment, mode: Mode, folder: Path, jobs: int) -> Outcome:
    settings = experiment.settings(mode)
    code, look = (version(experiment.module.__name__) for version in (code_version, look_version))
    key = _sha256(json.dumps([experiment.id, code, asdict(settings)], sort_keys=True, default=str).encode())
    notices: list[str] = []
    saved = _load(folder, key, notices)
    if saved is not None:
        content, record = saved
    else:
        start = time.perf_counter()
        try:
            with resumable(folder / "parts" / key[:16]):
                frame = experiment.run(settings, jobs)
        except DataNotFoundError as absent:
            return Outcome(experiment, mode, settings, problem=str(absent), notices=notices)
        except Exception as failure:  # the failure of one experiment is reported and must not stop the others
            problem = f"It failed: {type(failure).__name__}: {failure}"
            return Outcome(experiment, mode, settings, problem=problem, failed=True, notices=notices)
        content = as_csv(frame)
        record = {
            "id": experiment.id,
            "key": key,
            "mode": mode,
            "settings": asdict(settings),
            "seconds": round(time.perf_counter() - start, 3),
            "sha256": _sha256(content),
            "covey": covey.__version__,
            "code": code,
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").unlink(missing_ok=True)
        write_atomically(folder / "data.csv", content)
        # save the record before anything is drawn; it has no figure yet
        write_atomically(folder / "run.json", json.dumps(record, indent=1).encode())
        shutil.rmtree(folder / "parts", ignore_errors=True)
    # figures and claims use the table as read from the file
    frame = pd.read_csv(io.BytesIO(content))
    files = {kind: folder / f"figure.{kind}" for kind in ("svg", "png")}
    figure: dict[str, bytes] = {}
    if record.get("look") == look:
        with suppress(OSError):
            figure = {kind: file.read_bytes() for kind, file in files.items()}
    if not figure:
        figure = style.render(experiment.plot(frame), experiment.id)
        for kind, drawn in figure.items():
            write_atomically(files[kind], drawn)
        write_atomically(folder / "run.json", json.dumps({**record, "look": look}, indent=1).encode())
    claims, reused = experiment.claims(frame), saved is not None
    return Outcome(experiment, mode, settings, frame, figure, claims, record["seconds"], reused, notices=notices)


def _load(folder: Path, key: str, notices: list[str]) -> tuple[bytes, Record] | None:
    """The saved table and its record, if it is intact and belongs to these settings and this code."""
    if not (folder / "run.json").exists():
        return None
    try:
        record = json.loads((folder / "run.json").read_bytes())
        if record["key"] != key:
            return None
        content = (folder / "data.csv").read_bytes()
        if _sha256(content) != record["sha256"]:
            raise ValueError("data.csv is not the file that was written")
        return content, {**record, "seconds": float(record["seconds"])}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        notices.append(f"The saved result in {folder} is damaged ({reason}); it is computed again.")
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---------------------------------------------------------------------- the code that a table depends on


@cache
def code_version(module: str) -> str:
    """A hash of the source that a table of this experiment can depend on."""
    return _version(sources(module))


@cache
def look_version(module: str) -> str:
    """A hash of the additional source that the look of its figure depends on."""
    return _version({*sources(module), *_files(LOOK)})


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


def _version(files: set[Path]) -> str:
    parts = (str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0" for file in sorted(files))
    return _sha256(b"".join(parts))[:16]


# ---------------------------------------------------------------------- files


def as_csv(frame: pd.DataFrame) -> bytes:
    """A table as it is saved, with eight digits."""
    return frame.to_csv(index=False, float_format="%.8g").encode()


def prepare_folder(folder: Path) -> None:
    """Create the folder and check that it is writable, before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as reason:
        raise OSError(
            f"Nothing can be written to {folder} ({reason.strerror or reason}); choose another folder with --out."
        ) from None


def write_claims(outcomes: Iterable[Outcome], folder: Path) -> pd.DataFrame:
    """Write ``claims.csv``, with the expected and measured results and the verdicts, and ``claims.md``, a table."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    frame = tabulate(claims)
    write_atomically(folder / "claims.csv", frame.to_csv(index=False).encode())
    write_atomically(folder / "claims.md", markdown(claims).encode())
    return frame


def tabulate(claims: Iterable[Claim]) -> pd.DataFrame:
    """One row per claim, as in ``claims.csv``."""
    columns = ["id", *(one.name for one in fields(Claim) if one.name != "id")]
    return pd.DataFrame([{**asdict(claim), "verdict": str(claim.verdict)} for claim in claims], columns=columns)


def markdown(claims: Iterable[Claim]) -> str:
    """The claims as a Markdown table: experiment, claim, measurement and verdict."""
    lines = ["| id | claim | measured | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        cells = (cell.replace("|", "\\|") for cell in (claim.id, claim.claim, claim.measured, str(claim.verdict)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
