"""Write a fit or a selection to a folder, completely or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import covey
from covey.estimators.term_views import as_terms
from covey.files import atomic_folder, check_folder
from covey.persistence import dump_bytes
from covey.progress import enter
from covey.report import FitReport, render
from covey.search.chosen import how_chosen
from covey.settings import TableSettings, as_options
from covey.tables.spreadsheet import guarded
from covey.workflow.fit import Fit
from covey.workflow.path import coefficients_along
from covey.workflow.problem import Problem
from covey.workflow.stability import TableSelection

SHARED_FILES = frozenset({"model.skops", "path.parquet", "report.html", "run.json"})
TERM_FILES = SHARED_FILES | {"terms.csv", "rating.csv"}
GROUP_FILES = SHARED_FILES | {"groups.csv", "coefficients.csv"}
FILES = TERM_FILES | GROUP_FILES
SELECTION_FILES = frozenset({"groups.csv", "run.json"})
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "skops")


def check_out(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or holds files that are not covey's, before the work starts."""
    check_folder(folder, FILES, overwrite=overwrite)
    try:
        checksums = dict(json.loads((folder / "run.json").read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # there is no fit in it
        checksums = {}
    foreign = [
        file.name
        for file in (sorted(folder.iterdir()) if folder.exists() else ())
        if (not checksums if file.name == "run.json" else checksums.get(file.name) != _checksum(file.read_bytes()))
    ]
    if foreign:
        raise FileExistsError(
            f"{folder} contains {', '.join(foreign)}, which covey did not write in this form; move it away, or choose "
            "another folder with --out."
        )


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_fit(fit: Fit, folder: Path, *, overwrite: bool = False) -> None:
    """Write a fit to a temporary folder, then move it into place."""
    enter("writing")
    path = io.BytesIO()
    expansion = getattr(fit.estimator, "expansion_", None)
    coefficients_along(fit.shown.path_, fit.estimator._outputs(), expansion).to_parquet(path, index=False)
    if expansion is None:
        coefficients = fit.shown.coefficients()
        tables = {"coefficients.csv": _csv(coefficients), "groups.csv": _csv(fit.groups_table())}
    else:
        tables = {"terms.csv": _csv(fit.groups_table()), "rating.csv": _rating(fit.shown)}
    contents = {
        "model.skops": dump_bytes(fit.estimator),
        **tables,
        "path.parquet": path.getvalue(),
        "report.html": _report(fit).encode(),
    }
    files = {name: _checksum(content) for name, content in contents.items()}
    check_out(folder, overwrite)  # last: another command may have written it in the meantime
    _write(folder, FILES, contents, describe(fit) | {"files": files})


def write_selection(selection: TableSelection, folder: Path, *, overwrite: bool = False) -> None:
    """Write the table of groups and everything needed to repeat the run, as `write_fit` does."""
    check_folder(folder, SELECTION_FILES, overwrite=overwrite)
    contents = {"groups.csv": _csv(selection.groups_table())}
    _write(folder, SELECTION_FILES, contents, describe_selection(selection))


def _rating(estimator: BaseEstimator) -> bytes:
    """The model's rating table as CSV."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rating.csv"
        estimator.to_tables(file)
        return file.read_bytes()


def _csv(table: pd.DataFrame) -> bytes:
    return guarded(table).to_csv(index=False).encode()


def _write(folder: Path, names: Collection[str], contents: Mapping[str, bytes], about: Mapping[str, object]) -> None:
    run = json.dumps(about, indent=2, ensure_ascii=False).encode()
    with atomic_folder(folder, names) as draft:
        for name, content in {**contents, "run.json": run}.items():
            (draft / name).write_bytes(content)


def describe(fit: Fit) -> dict[str, object]:
    """A fit as plain values: its results, and everything needed to repeat it."""
    e, response, encoding, nested = fit.shown, fit.problem.response, fit.encoding, fit.nested
    intercept = np.asarray(e.intercept_, dtype=float).ravel().tolist()
    what = "groups" if encoding is None else "terms"
    score = None if nested is None else nested.as_dict()
    if score is not None and encoding is not None:
        score["verdict"] = as_terms(str(score["verdict"]))
    options = e.get_params(deep=False)
    del options["groups"], options["terms"]  # written elsewhere
    plain = {
        name: value if isinstance(value, int | float | str | None) else repr(value) for name, value in options.items()
    }
    return {
        "target": _one_or_list(response.targets),
        "family": response.family,
        "family_found": response.reason or None,
        "rows": fit.problem.n_rows,
        "events": fit.problem.n_events,
        "columns": fit.problem.X.shape[1],
        "variables": None if encoding is None else json.loads(encoding.table().to_json(orient="records")),
        what: e.groups_.n_groups,
        "model": e.recipe_,
        "shrunk": e.shrunk_,
        "chosen_by": how_chosen(e),
        f"{what}_found": len(e._found()),
        "always": [str(name) for name in e.always_groups_],
        "constraints": e.constraints_.to_dict("records") if hasattr(e, "constraints_") else None,
        f"selected_{what}": _selected(fit.groups_table()),
        "classes": [str(label) for label in e.classes_] if response.has_classes else None,
        "intercept": intercept if e._outputs() else intercept[0],
        "nested": score,
        "scores": fit.scores,
        "stability": None if fit.stability is None else fit.stability.promise(),
        "converged": fit.converged,
        "notices": list(fit.notices),
        "seed": fit.settings.seed,
        "settings": _table_settings(fit.settings)
        | {"pairs": list(fit.settings.pairs), "estimator": type(e).__name__, "options": plain},
        **_about_run(fit.problem, fit.seconds, PACKAGES),
    }


def describe_selection(selection: TableSelection) -> dict[str, object]:
    """A selection as plain values: its results, and everything needed to repeat it."""
    found, problem, settings = selection.found, selection.problem, selection.settings
    return {
        "target": list(problem.response.targets),
        "family": problem.response.family,
        "rows": problem.n_rows,
        "columns": problem.X.shape[1],
        "groups": found.n_groups,
        "method": settings.method,
        **selection.facts(),
        "promise": found.promise(),
        "remarks": list(found.remarks),
        "always": [str(name) for name in found.always_groups],
        "selected_groups": _selected(selection.groups_table()),
        "seed": settings.seed,
        "settings": _table_settings(settings),
        **_about_run(problem, selection.seconds),
    }


def _selected(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """The selected groups of a table of all groups; JSON has no NaN."""
    selected = table[table["selected"]].drop(columns="selected").astype(object)
    return selected.where(selected.notna(), None).to_dict("records")


def _one_or_list(names: Collection[str]) -> str | list[str]:
    return next(iter(names)) if len(names) == 1 else list(names)


def _table_settings(settings: TableSettings) -> dict[str, object]:
    values = {name: getattr(settings, name) for name in TableSettings.table() if name != "data"}
    return values | {"target": _one_or_list(settings.target)}


def _about_run(problem: Problem, seconds: float, packages: Collection[str] = ()) -> dict[str, object]:
    versions = {"covey": covey.__version__, "python": platform.python_version()}
    return {
        "inputs": problem.inputs,
        "versions": versions | {name: version(name) for name in packages},
        "seconds": round(seconds, 3),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _report(fit: Fit) -> str:
    problem, response = fit.problem, fit.problem.response
    shown = ("data", "target", "groups", "family", "time", "event")
    changed = {n: v for n, v in fit.settings.changed().items() if n in TableSettings.table() and n not in shown}
    settings = {
        "data": ", ".join(str(file["path"]) for file in problem.inputs),
        "sha256": ", ".join(str(file["sha256"]) for file in problem.inputs),
        "target" if response.survival is None else "survival": response.title,
        "family": f"{response.family} ({response.reason})" if response.reason else response.family,
        **({"groups": " ".join(fit.settings.groups)} if fit.settings.groups else {}),
        "seed": fit.settings.seed,
        **{name: " ".join(value) if isinstance(value, tuple) else str(value) for name, value in changed.items()},
    }
    report = FitReport.from_model(
        fit.estimator, problem.X, problem.y, sample_weight=problem.weight, offset=problem.offset,
        target=response.title, outputs=response.targets, settings=settings, nested=fit.nested or 0,
        positive=fit.positive, stability=fit.stability, command=fit.settings.command("fit", "fit"),
    )  # fmt: skip
    remarks = [replace(one, meaning=as_options(one.meaning), remedy=as_options(one.remedy)) for one in report.remarks]
    return render(replace(report, remarks=tuple(remarks), price=as_options(report.price)))
