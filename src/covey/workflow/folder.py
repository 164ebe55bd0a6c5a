"""Write a fit to a folder, completely or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import platform
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import covey
from covey.files import check_folder, whole_folder
from covey.persistence import dump_bytes
from covey.report import FitReport, render
from covey.report.effects import term_effects
from covey.search.chosen import how_chosen
from covey.tables.spreadsheet import guarded
from covey.wording import as_options
from covey.workflow.command import command_line
from covey.workflow.fit import Fit
from covey.workflow.trace import coefficients_along

__all__ = ["FILES", "check_out", "describe", "write_fit"]

FILES = frozenset({"model.skops", "coefficients.csv", "groups.csv", "path.parquet", "report.html", "run.json"})
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "skops")


def check_out(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or holds files that are not covey's, before the work starts."""
    check_folder(folder, FILES, overwrite=overwrite)
    own = _written(folder)
    present = sorted(folder.iterdir()) if folder.exists() else []
    foreign = [
        file.name
        for file in present
        if (not own if file.name == "run.json" else own.get(file.name) != _checksum(file.read_bytes()))
    ]
    if foreign:
        raise FileExistsError(
            f"{folder} contains {', '.join(foreign)}, which covey did not write in this form; move it away, or choose "
            "another folder with --out."
        )


def _written(folder: Path) -> dict[str, str]:
    """The checksums of the files that a fit wrote to a folder; empty if there is no fit in it."""
    try:
        return dict(json.loads((folder / "run.json").read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_fit(fit: Fit, folder: Path, *, overwrite: bool = False) -> None:
    """Write a fit to a temporary folder, then move it into place."""
    check_out(folder, overwrite)
    contents = {
        "model.skops": dump_bytes(fit.model),
        "coefficients.csv": guarded(fit.coefficients_table()).to_csv(index=False).encode(),
        "groups.csv": guarded(fit.groups_table()).to_csv(index=False).encode(),
        "path.parquet": _parquet(fit),
        "report.html": _report(fit).encode(),
    }
    about = describe(fit) | {"files": {name: _checksum(content) for name, content in contents.items()}}
    contents["run.json"] = json.dumps(about, indent=2, ensure_ascii=False).encode()
    with whole_folder(folder, FILES) as draft:
        for name, content in contents.items():
            (draft / name).write_bytes(content)


def describe(fit: Fit) -> dict[str, Any]:
    """A fit as plain values: its results, and everything needed to repeat it."""
    e, problem, targets = fit.estimator, fit.problem, fit.problem.response.targets
    table = fit.groups_table().astype(object)
    table = table.where(table.notna(), None)  # JSON has no NaN
    return {
        "target": targets[0] if len(targets) == 1 else list(targets),
        "family": problem.response.family,
        "family_found": problem.response.reason or None,
        "rows": len(problem.y),
        "events": int(problem.y["event"].sum()) if problem.response.family == "cox" else None,
        "columns": problem.X.shape[1],
        "groups": problem.groups.n_groups,
        "model": e.recipe_,
        "shrunk": e.shrunk_,
        "chosen_by": how_chosen(e),
        "groups_found": fit.n_found,
        "always": [str(name) for name in e.always_groups_],
        "selected_groups": table[table["selected"]].drop(columns="selected").to_dict("records"),
        "classes": [str(label) for label in e.classes_] if problem.response.has_classes else None,
        "intercept": np.asarray(e.intercept_, dtype=float).tolist()
        if fit.outputs
        else float(np.ravel(e.intercept_)[0]),
        "confusion": None if fit.held_out is None else fit.held_out.confusion().tolist(),
        "nested": None if fit.nested is None else fit.nested.as_dict(),
        "scores": asdict(fit.scores),
        "stability": None if fit.stability is None else fit.stability.promise(),
        "converged": fit.converged,
        "notices": list(fit.notices),
        "seed": fit.settings.seed,
        "settings": {
            **{name: value for name, value in asdict(fit.settings.table).items() if name != "data"},
            "estimator": type(e).__name__,
            "options": _parameters(e),
        },
        "inputs": [asdict(file) for file in problem.inputs],
        "versions": {
            "covey": covey.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "seconds": round(fit.seconds, 3),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _parameters(estimator: Any) -> dict[str, Any]:
    """The estimator's parameters, as text where they are not plain values. Groups are written to their own file."""
    values = estimator.get_params(deep=False)
    del values["groups"]
    return {
        name: value if isinstance(value, int | float | str | None) else repr(value) for name, value in values.items()
    }


def _parquet(fit: Fit) -> bytes:
    stream = io.BytesIO()
    coefficients_along(fit.estimator.path_, fit.outputs).to_parquet(stream, index=False)
    return stream.getvalue()


def _membership(fit: Fit) -> list[tuple[str, str]]:
    """All columns of the table with their groups, in the format that ``--groups`` reads."""
    groups = fit.problem.groups
    names = [str(groups.names[l]) for l in groups.labels]
    return list(dict(zip(fit.problem.sources, names, strict=True)).items())


def _report(fit: Fit) -> str:
    table = fit.settings.table
    files = fit.problem.inputs
    response = fit.problem.response
    settings = {
        "data": ", ".join(file.path for file in files),
        "sha256": ", ".join(file.sha256 for file in files),
        "target" if response.family != "cox" else "survival": response.title,
        "family": f"{response.family} ({response.reason})" if response.reason else response.family,
        "groups": " ".join(table.groups) or "each column on its own",
        "seed": fit.settings.seed,
        **{name: " ".join(asked) for name in ("spline", "onehot", "drop", "date") if (asked := getattr(table, name))},
        **{name: " ".join(asked) for name in ("event_value", "strata") if (asked := getattr(table, name))},
        **{name: asked for name in ("start", "impute", "weights", "offset") if (asked := getattr(table, name))},
    }
    report = FitReport.from_model(
        fit.estimator, fit.problem.X, fit.problem.y, sample_weight=fit.problem.weight, offset=fit.problem.offset,
        target=response.title, outputs=response.targets, settings=settings, nested=fit.nested or 0,
        stability=fit.stability, effects=term_effects(fit.model, fit.problem.raw, fit.nested),
        command=command_line(fit.settings), membership=_membership(fit),
    )  # fmt: skip
    told = [replace(one, meaning=as_options(one.meaning), remedy=as_options(one.remedy)) for one in report.remarks]
    return render(replace(report, remarks=tuple(told)))
