"""The report of a fit: the chosen model, how well it predicts, its groups, the path, and how to repeat it.

`FitReport.from_model` collects plain data, `render` turns it into a self-contained page, `write` writes that to a file,
and `fit_report` does all three.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from covey.files import write_atomically
from covey.losses import Squared
from covey.losses.risk_sets import STOP
from covey.nested import NestedScore, nested_score
from covey.report.along import Along, along_the_path
from covey.report.effects import Effect, term_effects
from covey.report.fit_page import render_page
from covey.report.quality import Score, coded, null_error, quality
from covey.report.remarks import Remark, remarks
from covey.report.repeating import membership as members
from covey.report.repeating import parameters, shorten, versions
from covey.report.residuals import Residuals, residuals
from covey.report.response_section import ResponsePart, response_parts
from covey.report.survival_curves import SurvivalPart, as_records, survival_part
from covey.report.traces import Frames, keep_frames
from covey.search.chosen import Judged, how_chosen, in_words, judged
from covey.stability import StabilitySelection

__all__ = ["FitReport", "fit_report", "render", "write"]

# The definition of a group's strength if groups are comparable.
SPREAD = "standard deviation of the group's part of the prediction"

# The scale of the linear predictor, for effects with a name.
UNITS = {
    "odds ratio": "log odds",
    "rate ratio": "the logarithm of the rate",
    "ratio of means": "the logarithm of the mean",
    "hazard ratio": "the logarithm of the hazard",
}


@dataclass(frozen=True)
class FitReport:
    """The contents of a fit's report, as plain data.

    Attributes
    ----------
    title : str
    estimator : str
        The name of its class.
    target : str
        The name of the response.
    n_rows : int or None
        None if the data were not given.
    n_columns, n_groups : int
    model : str
        The model in words, and whether it is shrunk.
    how_chosen : str
        How it was chosen.
    n_selected, n_selected_columns : int
    scores : tuple of Score
        How well it predicts.
    frames : Frames
        The path; its last frame is the model.
    strength_label : str
        The definition of a group's strength.
    n_folds : int
        The number of folds; 0 if the groups selected in each are unknown.
    judged : Judged or None
        The errors of the candidates.
    remarks : tuple of Remark
        What to keep in mind.
    settings, versions : mapping of str to str
        What is needed to repeat the fit.
    unpenalised : str
        The kind of model on the path.
    effect : str or None
        The name of a coefficient's exponential.
    strength_unit : str
        The unit of the strength.
    classes : tuple of str
        The labels, for classes.
    always : tuple of str
        Groups that are in every model; they are counted neither as selected nor as candidates.
    along : Along or None
        Training errors along the path, for losses other than squared.
    nested : NestedScore or None
        The score on rows that played no part in choosing the model.
    no_nested : str
        Why there is no such score.
    responses : tuple of ResponsePart
        The responses, if there are several.
    survival : SurvivalPart or None
        Curves and hazard ratios of survival times.
    stability : StabilitySelection or None
        How often each group is found in random halves of the rows.
    effects : tuple of Effect
        Effects of expanded columns.
    residuals : Residuals or None
        Observed and predicted values, for a numeric response.
    command : str
        The command line that repeats the fit, if there is one.
    membership : tuple of (str, str)
        All columns with their groups, for a file from which the fit can be repeated.
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
    unpenalised: str = "least squares"
    effect: str | None = None
    strength_unit: str = ""
    classes: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    along: Along | None = None
    nested: NestedScore | None = None
    no_nested: str = ""
    responses: tuple[ResponsePart, ...] = ()
    survival: SurvivalPart | None = None
    stability: StabilitySelection | None = None
    effects: tuple[Effect, ...] = ()
    residuals: Residuals | None = None
    command: str = ""
    membership: tuple[tuple[str, str], ...] = ()

    @property
    def moves(self) -> bool:
        """Whether a group's strength measures how far it moves the prediction."""
        return self.strength_label == SPREAD

    @classmethod
    def from_model(
        cls,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        title: str | None = None,
        target: str | None = None,
        outputs: Sequence[str] | None = None,
        test: tuple[Any, ...] | None = None,
        nested: NestedScore | int = 5,
        stability: StabilitySelection | None = None,
        effects: tuple[Effect, ...] | None = None,
        settings: Mapping[str, object] | None = None,
        command: str = "",
        membership: Sequence[tuple[str, str]] | None = None,
    ) -> FitReport:
        """Collect the contents of a report.

        Parameters
        ----------
        model : GroupSparseRegressor, GroupSparseClassifier or GroupSparseCox, or a Pipeline that ends with one
            Fitted.
        X, y : array-like, optional
            The training data. Without them the report has no training R^2 and no remarks on correlated groups.
        sample_weight, offset : array-like, optional
            As given to `fit`.
        title : str, optional
        target : str, optional
            The name of the response; by default the name of `y`, if it has one.
        outputs : sequence of str, optional
            The names of several responses; by default the column names of `y`, if it has any.
        test : (X, y), or (X, y, offset), optional
            Test rows that were used for nothing else; the report then leads with the R^2 on them.
        nested : int or NestedScore
            The number of outer folds in which to repeat the whole fit, for a score on rows that played no part in
            choosing the model, compared with a lasso and a ridge; for classes also a confusion table and a
            calibration plot. 0 for none. Or a result of `covey.nested_score`.
        stability : StabilitySelection, optional
            The result of `covey.stability_selection` on the same data, shown in its own section.
        effects : tuple of Effect, optional
            Effects of expanded columns; by default computed from a pipeline of a `ColumnTransformer` and an
            estimator.
        settings : mapping, optional
            Further lines for the section on repeating the fit, such as the file, its hash and the seed.
        command : str
            The command line that repeats the fit.
        membership : sequence of (str, str), optional
            All columns of the table with their groups; by default the columns of the fit.

        Returns
        -------
        FitReport
        """
        given = model, X
        model, X, test = _last_step(model, X, test)
        check_is_fitted(model, "path_")
        if (X is None) != (y is None):
            raise ValueError("X and y go together: give both, or neither.")
        if y is not None and model.loss_.coupled:
            y, target = as_records(model, y), target or f"{model.time} to {model.event}"
        known, why_not = _nested(*given, y, sample_weight, offset, nested)
        name = target or str(getattr(y, "name", None) or "y")
        null = None if y is None else null_error(model, y, sample_weight, offset)
        chosen_by = judged(model, null)
        always = {model.groups_.position(group) for group in model.always_groups_}
        n_selected = sum(l not in always for l in np.flatnonzero(model.group_norms_))
        folds = model.fold_frequencies_ if model.n_splits_ > 1 else None
        names = _outputs(model, y, outputs)
        frames = keep_frames(model.path_, folds, always=always, outputs=names)
        along = None if X is None else along_the_path(model, X, y, sample_weight, offset, frames)
        return cls(
            title=title or f"What predicts {name}",
            estimator=type(model).__name__,
            target=name,
            n_rows=None if y is None else len(y),
            n_columns=model.groups_.n_columns,
            n_groups=model.groups_.n_groups - len(always),
            model=in_words(model),
            how_chosen=how_chosen(model),
            n_selected=n_selected,
            n_selected_columns=int(np.count_nonzero(np.atleast_2d(model.coef_).any(axis=0))),
            scores=quality(model, chosen_by, X, y, sample_weight, offset, test, known),
            frames=frames,
            strength_label=SPREAD
            if model.standardize == "group"
            else "norm of the group's coefficients on the scaled columns",
            n_folds=0 if folds is None else model.n_splits_,
            judged=chosen_by,
            remarks=remarks(model, chosen_by, X, _numbers(model, y), known),
            settings={**parameters(model), **{str(k): shorten(v) for k, v in (settings or {}).items()}},
            versions=versions(),
            unpenalised=model.loss_.unpenalised,
            effect=model.loss_.effect,
            strength_unit=UNITS.get(model.loss_.effect or "", "units of the responses" if names else ""),
            classes=tuple(map(str, getattr(model, "classes_", ()))),
            always=tuple(str(group) for group in model.always_groups_),
            along=along,
            nested=known,
            no_nested=why_not,
            responses=response_parts(model, X, y, names),
            survival=survival_part(model, X, y, sample_weight, offset, known),
            stability=stability,
            effects=term_effects(*given, known) if effects is None else effects,
            residuals=residuals(model, X, y, offset, known),
            command=command,
            membership=members(model.groups_) if membership is None else tuple(membership),
        )


def render(report: FitReport) -> str:
    """The report as one self-contained HTML page."""
    return render_page(report)


def write(report: FitReport, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file, completely or not at all."""
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
    return write(FitReport.from_model(model, X, y, **options), path)


def _outputs(model: Any, y: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of several outputs: classes or responses."""
    m = model.path_.n_outputs
    if hasattr(model, "classes_"):
        return tuple(map(str, model.classes_)) if m > 1 else ()
    if np.ndim(model.coef_) == 1:
        return ()
    names = given if given is not None else getattr(y, "columns", None)
    found = tuple(map(str, range(m) if names is None else names))
    if len(found) != m:
        raise ValueError(f"outputs has {len(found)} names, but the model has {m} responses.")
    return found


def _nested(
    model: Any, X: Any, y: Any, weight: Any, offset: Any, given: NestedScore | int
) -> tuple[NestedScore | None, str]:
    """The nested score, or the reason why there is none."""
    if isinstance(given, NestedScore):
        return given, ""
    if X is None or not given:
        return None, ""
    try:
        return nested_score(model, X, y, given, sample_weight=weight, offset=offset, return_estimator=True), ""
    except ValueError as reason:
        return None, str(reason).rstrip(".")


def _numbers(model: Any, y: Any) -> Any:
    """A response with one number per row; its values do not matter when groups are compared."""
    if y is None or isinstance(model.loss_, Squared):
        return y
    response = coded(model, y)
    return response if response.ndim == 1 else response[:, STOP if model.loss_.coupled else 0]


def _last_step(model: Any, X: Any, test: tuple[Any, ...] | None) -> tuple[Any, Any, tuple[Any, ...] | None]:
    """The estimator at the end of a pipeline, with the data after the preceding steps."""
    if not hasattr(model, "steps"):
        return model, X, test
    before, last = model[:-1], model[-1]
    if len(before.steps) == 0:
        return last, X, test
    X = None if X is None else before.transform(X)
    return last, X, None if test is None else (before.transform(test[0]), *test[1:])
