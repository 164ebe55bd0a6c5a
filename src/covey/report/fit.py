"""The report of a fit: which model was chosen, how well it predicts, its groups, the path, and how to repeat it.

`FitReport.from_model` gathers plain data, `render` makes one self-contained page of it, `write` puts that in a file,
and `fit_report` does all three.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import covey
from covey.files import write_atomically
from covey.report.fit_page import render_page
from covey.report.quality import Score, in_memory, quality
from covey.report.remarks import Remark, remarks
from covey.report.traces import Frames, keep_frames
from covey.selection.judged import Judged, how_chosen, in_words, judged

__all__ = ["FitReport", "fit_report", "render", "write"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")

# A longer value of a setting, such as the list of every column's group, is cut: the page is for people.
LONGEST_SETTING = 300


@dataclass(frozen=True)
class FitReport:
    """What a report of a fit shows, as plain data.

    Attributes
    ----------
    title : str
    estimator : str
        The name of its class.
    target : str
        What is predicted.
    n_rows : int or None
        None where the data were not given.
    n_columns, n_groups : int
    model : str
        What the model is, and whether it is shrunk.
    how_chosen : str
        How it was chosen.
    n_selected, n_selected_columns : int
    scores : tuple of Score
        How well it predicts.
    frames : Frames
        The path; its last frame is the model.
    strength_label : str
        What the strength of a group is.
    n_folds : int
        How many folds judged; 0 where it is not known in which of them groups were selected.
    judged : Judged or None
        What candidates were judged by.
    remarks : tuple of Remark
        What to mind, in words.
    settings, versions : mapping of str to str
        What to repeat it with.
    """

    title: str
    estimator: str
    target: str
    n_rows: int | None
    n_columns: int
    n_groups: int
    model: str
    how_chosen: str
    n_selected: int
    n_selected_columns: int
    scores: tuple[Score, ...]
    frames: Frames
    strength_label: str
    n_folds: int = 0
    judged: Judged | None = None
    remarks: tuple[Remark, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_model(
        cls,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        target: str | None = None,
        test: tuple[Any, Any] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> FitReport:
        """Gather what a report shows.

        Parameters
        ----------
        model : GroupSparseRegressor, or a Pipeline that ends with one
            Fitted.
        X, y : array-like, optional
            The data that it was fitted on. Without them the report has no training R^2 and no word on correlated
            groups.
        title : str, optional
        target : str, optional
            The name of the response; by default that of `y`, where it has one.
        test : (X, y), optional
            Rows that were kept apart throughout: the report then leads with the R^2 on them.
        settings : mapping, optional
            Further lines for the section on how to repeat the fit: the command, the file and its hash, the seed.

        Returns
        -------
        FitReport
        """
        model, X, test = _last_step(model, X, test)
        check_is_fitted(model, "path_")
        if (X is None) != (y is None):
            raise ValueError("X and y go together: give both, or neither.")
        name = target or str(getattr(y, "name", None) or "y")
        chosen_by = judged(model, None if y is None else in_memory(y))
        selected = model.group_norms_ > 0
        folds = model.fold_frequencies_ if model.n_splits_ > 1 else None
        return cls(
            title=title or f"What predicts {name}",
            estimator=type(model).__name__,
            target=name,
            n_rows=None if y is None else len(y),
            n_columns=model.groups_.n_columns,
            n_groups=model.groups_.n_groups,
            model=in_words(model),
            how_chosen=how_chosen(model),
            n_selected=int(selected.sum()),
            n_selected_columns=int(np.count_nonzero(model.coef_)),
            scores=quality(model, chosen_by, X, y, test),
            frames=keep_frames(model.path_, folds),
            strength_label="standard deviation of the group's part of the prediction"
            if model.standardize == "group"
            else "norm of the group's coefficients on the columns as they were scaled for the fit",
            n_folds=0 if folds is None else model.n_splits_,
            judged=chosen_by,
            remarks=remarks(model, chosen_by, X, y),
            settings={**_parameters(model), **{str(k): _shorten(v) for k, v in (settings or {}).items()}},
            versions=_versions(),
        )


def render(report: FitReport) -> str:
    """The report as one HTML page that needs nothing else."""
    return render_page(report)


def write(report: FitReport, path: str | os.PathLike[str]) -> Path:
    """Write the page; the file is whole or not there."""
    file = Path(path)
    write_atomically(file, render(report).encode())
    return file


def fit_report(model: Any, X: Any, y: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write the report of a fitted model to a file.

    Parameters
    ----------
    model, X, y
        As in `FitReport.from_model`.
    path : path
        The HTML file.
    **options
        ``title``, ``target``, ``test``, ``settings`` of `FitReport.from_model`.

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
    return write(FitReport.from_model(model, X, y, **options), path)


def _last_step(model: Any, X: Any, test: tuple[Any, Any] | None) -> tuple[Any, Any, tuple[Any, Any] | None]:
    """The estimator at the end of a pipeline, with the data as it sees them."""
    if not hasattr(model, "steps"):
        return model, X, test
    before, last = model[:-1], model[-1]
    if len(before.steps) == 0:
        return last, X, test
    X = None if X is None else before.transform(X)
    return last, X, None if test is None else (before.transform(test[0]), test[1])


def _parameters(model: Any) -> dict[str, str]:
    """The constructor's parameters, those that were changed and those that were not."""
    return {name: _shorten(repr(value)) for name, value in model.get_params(deep=False).items()}


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]} … ({len(text)} characters)"


def _versions() -> dict[str, str]:
    found = {"covey": covey.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, "system": platform.platform(terse=True)}
