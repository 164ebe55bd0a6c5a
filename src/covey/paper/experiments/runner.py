"""Run experiments one after another: table, figure and claims, stored on disk so that runs can be resumed.

For each experiment the folder ``ID/`` has ``data.csv`` (the table), ``figure.svg``, ``figure.png`` and ``run.json``,
which is written last and records the settings and code that made the table, and its checksum. A table is reused if all
of these agree; a damaged one is computed again, with a notice. Files are written under another name and moved into
place, so that a reader never sees a partial file.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import covey
from covey.datasets import DataNotFoundError
from covey.files import write_atomically
from covey.paper.experiments import style
from covey.paper.experiments.claim import Claim, markdown, tabulate
from covey.paper.experiments.parallel import keeping, watched
from covey.paper.experiments.registry import Experiment, Mode, find
from covey.paper.experiments.versions import code_version, look_version

__all__ = ["Outcome", "prepare_folder", "reproduce", "write_claims"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one experiment.

    Attributes
    ----------
    frame : DataFrame or None
        The table as saved; None if the experiment could not run. `problem` then says why and what to do, and `failed`
        whether it crashed rather than lacked its data.
    figure : dict
        The bytes of the figure, by format.
    seconds : float
        The run time of the table, even if it was read from disk.
    reused : bool
        Whether the table was read from disk.
    notices : list of str
        Notices for the user.
    """

    experiment: Experiment
    mode: Mode
    settings: Any
    frame: pd.DataFrame | None = None
    figure: dict[str, bytes] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    seconds: float = 0.0
    reused: bool = False
    problem: str = ""
    failed: bool = False
    notices: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.experiment.id


def reproduce(
    ids: Iterable[str], mode: Mode, folder: Path, jobs: int = 1, watch: Callable[[str, int, int], Any] | None = None
) -> Iterator[Outcome]:
    """Run the experiments, yielding each outcome when it is ready; ``watch(id, done, total)`` is called per repeat."""
    experiments = [find(id) for id in ids]
    for experiment in experiments:
        teller = (lambda done, total, id=experiment.id: watch(id, done, total)) if watch else (lambda done, total: None)
        with watched(teller):
            yield _reproduce_one(experiment, mode, folder / experiment.id, jobs)


def _reproduce_one(experiment: Experiment, mode: Mode, folder: Path, jobs: int) -> Outcome:
    settings = experiment.settings(mode)
    key = _key(experiment, settings)
    notices: list[str] = []
    saved = _load(folder, key, notices)
    reused = saved is not None
    if saved is None:
        start = time.perf_counter()
        parts = folder / "parts" / key[:16]
        try:
            with keeping(parts):
                frame = experiment.run(settings, jobs)
        except DataNotFoundError as absent:
            return Outcome(experiment, mode, settings, problem=str(absent), notices=notices)
        except Exception as failure:  # the failure of one experiment is reported and must not stop the others
            problem = f"It failed: {type(failure).__name__}: {failure}"
            return Outcome(experiment, mode, settings, problem=problem, failed=True, notices=notices)
        seconds = time.perf_counter() - start
        content = frame.to_csv(index=False, float_format="%.8g").encode()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").unlink(missing_ok=True)
        write_atomically(folder / "data.csv", content)
    else:
        content, seconds = saved
    # figures and claims use the table as read from the file
    frame = pd.read_csv(io.BytesIO(content))
    record = {
        "id": experiment.id,
        "key": key,
        "mode": mode,
        "settings": asdict(settings),
        "seconds": round(seconds, 3),
        "sha256": hashlib.sha256(content).hexdigest(),
        "covey": covey.__version__,
        "code": code_version(experiment.module.__name__),
    }
    if not reused:
        # save the table before anything is drawn; it has no figure yet
        write_atomically(folder / "run.json", json.dumps(record, indent=1).encode())
        shutil.rmtree(folder / "parts", ignore_errors=True)
    figure = _figure(experiment, frame, folder, reused)
    record["look"] = look_version(experiment.module.__name__)
    write_atomically(folder / "run.json", json.dumps(record, indent=1).encode())
    return Outcome(
        experiment, mode, settings, frame, figure, experiment.claims(frame), seconds, reused, notices=notices
    )


def _load(folder: Path, key: str, notices: list[str]) -> tuple[bytes, float] | None:
    """The saved table and its run time, if it is intact and was made with these settings and this code."""
    if not (folder / "run.json").exists():
        return None
    try:
        record = json.loads((folder / "run.json").read_bytes())
        if record["key"] != key:
            return None
        content = (folder / "data.csv").read_bytes()
        if hashlib.sha256(content).hexdigest() != record["sha256"]:
            raise ValueError("data.csv is not the file that was written")
        return content, float(record["seconds"])
    except (OSError, ValueError, KeyError, TypeError) as reason:
        notices.append(f"The saved result in {folder} is damaged ({reason}); it is made again.")
        return None


def _figure(experiment: Experiment, frame: pd.DataFrame, folder: Path, reused: bool) -> dict[str, bytes]:
    """The figure's bytes: from disk if nothing has changed, otherwise drawn and saved."""
    files = {kind: folder / f"figure.{kind}" for kind in ("svg", "png")}
    if reused and all(file.is_file() for file in files.values()):
        try:
            if json.loads((folder / "run.json").read_bytes()).get("look") == look_version(experiment.module.__name__):
                return {kind: file.read_bytes() for kind, file in files.items()}
        except (OSError, ValueError):
            pass
    figure = style.render(experiment.plot(frame), experiment.id)
    for kind, content in figure.items():
        write_atomically(files[kind], content)
    return figure


def _key(experiment: Experiment, settings: Any) -> str:
    version = code_version(experiment.module.__name__)
    text = json.dumps([experiment.id, version, asdict(settings)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------------- files


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
