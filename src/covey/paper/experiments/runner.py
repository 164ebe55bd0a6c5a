"""Run experiments one after another: table, figure and claims, stored on disk so that runs can be resumed.

For each experiment the folder ``ID/`` has ``data.csv`` (the table), ``figure.svg``, ``figure.png`` and ``run.json``,
which is written last and records the settings and code behind the table, and its checksum. A table is reused if all
of these agree; a damaged one is computed again, with a notice. Files are written under another name and moved into
place, so that a reader never sees a partial file.
"""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path

import pandas as pd

import covey
from covey.datasets import DataNotFoundError
from covey.files import write_atomically
from covey.paper.experiments import style
from covey.paper.experiments.base import Claim, Record, Scale
from covey.paper.experiments.registry import Experiment, Mode, find
from covey.paper.experiments.tasks import running, sha256


@dataclass(frozen=True)
class Outcome:
    """The outcome of one experiment: its table, figure and claims, or the problem that kept it from running."""

    experiment: Experiment
    settings: Scale
    frame: pd.DataFrame | None = None  # the table as saved
    figure: dict[str, bytes] = field(default_factory=dict)  # by format
    claims: list[Claim] = field(default_factory=list)
    seconds: float = 0.0  # the run time of the table, even if it was read from disk
    reused: bool = False  # whether the table was read from disk
    problem: str = ""  # why there is no table, and what to do
    failed: bool = False  # whether it crashed rather than lacked its data
    notices: list[str] = field(default_factory=list)


def reproduce(ids: Iterable[str], mode: Mode, folder: Path, jobs: int = 1) -> Iterator[Outcome]:
    """Run the experiments, yielding each outcome when it is ready."""
    for experiment in [find(id) for id in ids]:
        yield _reproduce_one(experiment, mode, folder / experiment.id, jobs)


def _reproduce_one(experiment: Experiment, mode: Mode, folder: Path, jobs: int) -> Outcome:
    settings = experiment.settings(mode)
    key = sha256(json.dumps([experiment.id, code_version(), asdict(settings)], sort_keys=True, default=str).encode())
    files, notices = {kind: folder / f"figure.{kind}" for kind in ("svg", "png")}, list[str]()
    saved = _load(folder, key, notices)
    if saved is not None:
        content, record = saved
    else:
        start = time.perf_counter()
        try:
            with running(experiment.id, folder / "parts" / key[:16]):
                frame = experiment.run(settings, jobs)
        except DataNotFoundError as absent:
            return Outcome(experiment, settings, problem=str(absent), notices=notices)
        except Exception as failure:  # the failure of one experiment is reported and must not stop the others
            problem = f"It failed: {type(failure).__name__}: {failure}"
            return Outcome(experiment, settings, problem=problem, failed=True, notices=notices)
        content = as_csv(frame)
        record = {
            "id": experiment.id, "key": key, "mode": mode, "settings": asdict(settings),
            "seconds": round(time.perf_counter() - start, 3), "sha256": sha256(content), "covey": covey.__version__,
            "code": code_version(),
        }  # fmt: skip
        for old in (folder / "run.json", *files.values()):
            old.unlink(missing_ok=True)
        write_atomically(folder / "data.csv", content)
        write_atomically(folder / "run.json", json.dumps(record, indent=1).encode())
        shutil.rmtree(folder / "parts", ignore_errors=True)
    # figures and claims use the table as read from the file
    frame = pd.read_csv(io.BytesIO(content))
    figure: dict[str, bytes] = {}
    with suppress(OSError):
        figure = {kind: file.read_bytes() for kind, file in files.items()}
    if not figure:
        figure = style.render(experiment.plot(frame), experiment.id)
        for kind, drawn in figure.items():
            write_atomically(files[kind], drawn)
    claims, reused = experiment.claims(frame), saved is not None
    return Outcome(experiment, settings, frame, figure, claims, record["seconds"], reused, notices=notices)


def _load(folder: Path, key: str, notices: list[str]) -> tuple[bytes, Record] | None:
    """The saved table and its record, if it is intact and belongs to these settings and this code."""
    if not (folder / "run.json").exists():
        return None
    try:
        record = json.loads((folder / "run.json").read_bytes())
        if record["key"] != key:
            return None
        content = (folder / "data.csv").read_bytes()
        if sha256(content) != record["sha256"]:
            raise ValueError("data.csv is not the file that was written")
        return content, {**record, "seconds": float(record["seconds"])}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        notices.append(f"The saved result in {folder} is damaged ({reason}); it is computed again.")
        return None


@cache
def code_version() -> str:
    """A hash of covey's source: with other code, saved tables and figures are made again."""
    root = Path(covey.__file__).parent
    files = sorted(root.rglob("*.py"))
    return sha256(b"".join(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() for file in files))


def as_csv(frame: pd.DataFrame) -> bytes:
    """A table as it is saved, with eight digits."""
    return frame.to_csv(index=False, float_format="%.8g").encode()


def write_claims(outcomes: Iterable[Outcome], folder: Path) -> pd.DataFrame:
    """Write ``claims.csv``, one row per claim, and ``claims.md``, a table without the expected results."""
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    columns = ["id", *(one.name for one in fields(Claim) if one.name != "id")]
    frame = pd.DataFrame([{**asdict(claim), "verdict": str(claim.verdict)} for claim in claims], columns=columns)
    write_atomically(folder / "claims.csv", frame.to_csv(index=False).encode())
    write_atomically(folder / "claims.md", markdown(claims).encode())
    return frame


def markdown(claims: Iterable[Claim]) -> str:
    """The claims as a Markdown table: experiment, claim, measurement and verdict."""
    lines = ["| id | claim | measured | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        cells = (cell.replace("|", "\\|") for cell in (claim.id, claim.claim, claim.measured, str(claim.verdict)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
