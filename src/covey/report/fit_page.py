"""The HTML page of a fit: its sections, each a template with its data, the numbers for the slider, and the file."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from covey.evidence.selections import GroupSelection
from covey.files import write_atomically
from covey.report.choice import judged_plot
from covey.report.effects import effect_view, terms_view
from covey.report.fit import FitReport
from covey.report.page import page, script_json, template, time
from covey.report.path import path_view, positions, strength_axis, time_axis
from covey.report.predictions import class_view, residual_view
from covey.report.survival import survival_view
from covey.settings import as_options
from covey.validation import MatrixLike, PerRow

# Table rows shown before "show all". fit.css hides the rest by position, under `tr:nth-child`.
MOST_SHOWN = 40

# The most characters of column and group names that a page holds for the file of groups.
MOST_LETTERS = 150_000

# Groups in the tables of stability and tests: how many besides the selected ones, and the most altogether.
UNSELECTED, MOST_LISTED = 5, 50

View = dict[str, object]


def fit_report(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, path: str | os.PathLike[str], **options: Any
) -> Path:
    """Write the report of a fitted model to a file.

    Parameters
    ----------
    model, X, y
        As in `FitReport.from_model`.
    path : path
        The HTML file.
    **options
        Further parameters of `FitReport.from_model`.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from covey import GroupSparseRegressor
    >>> from covey.datasets import make_group_sparse
    >>> from covey.report import fit_report
    >>> data = make_group_sparse(random_state=0)
    >>> model = GroupSparseRegressor(groups=3).fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit_report(model, data.X, data.y, f"{folder}/report.html").name
    'report.html'
    """
    template("fit.html")  # a missing library is reported before the fit is repeated
    return write(FitReport.from_model(model, X, y, **options), path)


def write(report: FitReport, path: str | os.PathLike[str]) -> Path:
    """Write the page of a report to a file, completely or not at all: see `covey.report.fit_report`."""
    file = Path(path)
    write_atomically(file, render(report).encode())
    return file


def render(report: FitReport) -> str:
    """The report as one self-contained HTML page: see `covey.report.fit_report`, which also writes it."""
    readouts = _readouts(report)
    sections = [(id, heading.replace("groups", f"{report.noun}s"), view(report)) for id, heading, view in SECTIONS]
    return page(
        report.title,
        styles=("fit.css",),
        script="fit.js",
        name="fit.html",
        report=report,
        readout=readouts[-1],
        sections=[section for section in sections if section[2] is not None],
        data=script_json(_data(report, readouts)),
    )


def _groups(report: FitReport) -> View:
    """The strongest group's strength, and its name if that serves as the example."""
    frames = report.frames
    strongest = frames.groups[0].strength(frames.chosen) if frames.groups else 0.0
    return {"strongest": strongest, "example": frames.groups[0].name if strongest and report.moves else ""}


def _evidence(found: GroupSelection | None, figure: str, worst: float, text: str) -> View | None:
    """The selected groups of a result and the next ones: name, size, a figure, and whether it is selected."""
    if found is None:
        return None
    frame = found.to_frame()
    n_selected = int(frame["selected"].sum())
    listed = frame[frame[figure] != worst].head(min(n_selected + UNSELECTED, MOST_LISTED))
    lines = zip(listed.index, listed["size"], listed[figure].map(text.format), listed["selected"], strict=True)
    return {"n_selected": n_selected, "groups": list(lines), "n_more": n_selected - MOST_LISTED}


def _constraints(report: FitReport) -> View | None:
    """The constraints that bind, and the first of the others."""
    if not report.constraints:
        return None
    n_binding = sum(one.binds for one in report.constraints)
    return {"n_binding": n_binding, "shown": report.constraints[: max(n_binding, UNSELECTED)][:MOST_LISTED]}


def _classes(report: FitReport) -> View | None:
    scores = None if report.nested is None else report.nested.class_scores
    if scores is None:
        return None
    # a report of the command line speaks of its options
    return {**class_view(scores), "remark": as_options(scores.remark) if report.command else scores.remark}


# Every section: its template, its heading, and a function that returns the template's data, or None to leave it out.
SECTIONS: tuple[tuple[str, str, Callable[[FitReport], View | None]], ...] = (
    ("variables", "What each variable does", lambda report: terms_view(report.terms)),
    ("columns", "What was made of the table", lambda report: {} if report.terms else None),
    ("path", "Along the path", lambda report: path_view(report.frames, report.along)),
    ("groups", "Selected groups", _groups),
    ("constraints", "Constraints", _constraints),
    ("effects", "What each term does", lambda report: effect_view(report.effects) if report.effects else None),
    ("nested", "Score on held-out rows", lambda report: {} if report.nested or report.no_nested else None),
    ("residuals", "Observed and predicted", lambda report: residual_view(report.residuals)),
    ("survival", "Survival by predicted risk", lambda report: survival_view(report.survival)),
    ("tests", "Tests of the groups", lambda report: _evidence(report.tests, "p_value", 1.0, "{:.2g}")),
    ("stability", "Which groups to believe", lambda report: _evidence(report.stability, "frequency", 0.0, "{:.0%}")),
    ("responses", "Each response", lambda report: {} if report.responses else None),
    ("classes", "Held-out class predictions", _classes),
    ("choice", "How the model was chosen", lambda report: {"plot": report.judged and judged_plot(report.judged)}),
    ("mind", "What to keep in mind", lambda report: {}),
    ("repeat", "How to repeat this", lambda report: {"columns": _membership(report)}),
)


def _readouts(report: FitReport) -> list[str]:
    """The text for each frame."""
    frames, of = report.frames, f"of {report.n_groups + len(report.always)} {report.noun}s"
    readouts = [
        f"Time {time(t)}: {report.unpenalised} on {awake} {of}" if awake else f"Time {time(t)}: no {report.noun}"
        for t, awake in zip(frames.times, frames.awake, strict=True)
    ]
    readouts[-1] = f"The fitted model: {report.model}"
    if report.along is not None:
        readouts = [f"{text}; {report.along.words(i)}" for i, text in enumerate(readouts)]
    return readouts


def _data(report: FitReport, readouts: list[str]) -> dict[str, object]:
    """The numbers and sentences that fit.js reads.

    The series are base64 floats: per group and frame, the group's facts and then its coefficients.
    """
    frames = report.frames
    dtype = frames.groups[0].facts.dtype if frames.groups else np.dtype(np.float32)
    parts = [np.concatenate([group.facts, group.coefs], axis=1).ravel() for group in frames.groups]
    series = np.concatenate([np.empty(0, dtype), *parts]).astype(dtype.newbyteorder("<"))
    return {
        "x": positions(frames, time_axis(frames)).round(5).tolist(),
        "readouts": readouts,
        "noun": report.noun,
        "top": strength_axis(frames).high,
        "limit": MOST_SHOWN,
        "groups": [[group.first, group.size, len(group.columns)] for group in frames.groups],
        "series": base64.b64encode(series.tobytes()).decode(),
        "bytes": dtype.itemsize,
        "outputs": max(len(frames.outputs), 1),
        "effect": report.effect,
        # what the downloaded table says of a group, wherever the slider is
        "fixed": [[g.name, g.size, None if np.isnan(g.woke) else g.woke, g.folds] for g in frames.groups],
        "columns": _membership(report),
    }


def _membership(report: FitReport) -> tuple[tuple[str, ...], ...]:
    """The groups with their columns, unless that would be too large for the page."""
    n_letters = sum(len(name) for names in report.membership for name in names)
    return report.membership if n_letters <= MOST_LETTERS else ()
