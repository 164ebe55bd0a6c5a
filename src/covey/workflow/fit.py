"""Fit a posed table, and say how well."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline

from covey.estimators import GroupSparseRegressor
from covey.report.remarks import cut_short
from covey.selection import Size
from covey.selection.judged import judged
from covey.tables import TableError
from covey.tables.complaint import near
from covey.workflow.problem import Problem, pose
from covey.workflow.settings import FitSettings, Told, silent

__all__ = ["SELECTIONS", "Fit", "Scores", "fit_table"]

SELECTIONS = ("holdout", "ebic", "bic", "gcv", "discrepancy")


@dataclass(frozen=True)
class Scores:
    """How well the model predicts.

    Attributes
    ----------
    train_r2 : float
        On the rows that it was fitted to.
    held_out_r2 : float or None
        On rows that the fit did not see: None where none were held out. The model was chosen by these same rows, so
        that it is a little on the bright side.
    held_out_by : str
        Which rows those are.
    """

    train_r2: float
    held_out_r2: float | None
    held_out_by: str


@dataclass(frozen=True)
class Fit:
    """A fitted table.

    Attributes
    ----------
    settings : FitSettings
    problem : Problem
    model : Pipeline
        Predicts from the table as it was read.
    scores : Scores
    converged : bool
    notices : tuple of str
        What the user should know: warnings of the fit, in words.
    seconds : float
        Of the fit alone.
    """

    settings: FitSettings
    problem: Problem
    model: Pipeline
    scores: Scores
    converged: bool
    notices: tuple[str, ...]
    seconds: float

    @property
    def estimator(self) -> Any:
        """The pipeline's last step."""
        return self.model.steps[-1][1]

    def groups_table(self) -> pd.DataFrame:
        """Every group: those selected first, strongest first."""
        e = self.estimator
        woke = dict(e.path_.entered)
        table = pd.DataFrame(
            {
                "group": list(e.groups_.names),
                "size": e.groups_.sizes,
                "selected": e.group_norms_ > 0,
                "strength": e.group_strengths_,
                "norm": e.group_norms_,
                "woke_up": [float(woke.get(l, np.nan)) for l in range(e.groups_.n_groups)],
            }
        )
        if e.fold_frequencies_ is not None and e.n_splits_ > 1:
            table["folds"] = np.asarray(e.fold_frequencies_)
        return table.sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)

    def coefficients_table(self) -> pd.DataFrame:
        """Every column of the fit with its coefficient; the intercept first."""
        e = self.estimator
        names = list(e.groups_.names)
        columns = pd.DataFrame(
            {
                "column": list(self.problem.X.columns),
                "source": list(self.problem.sources),
                "group": [names[l] for l in e.groups_.labels],
                "coefficient": e.coef_,
            }
        )
        intercept = pd.DataFrame({"column": ["(intercept)"], "source": [None], "group": [None]})
        return pd.concat([intercept.assign(coefficient=e.intercept_), columns.astype({"group": object})])


def fit_table(settings: FitSettings, told: Told = silent) -> Fit:
    """Read the table, expand it, fit it, and judge the fit.

    Raises
    ------
    ValueError
        With a reason and a remedy; `TableError` where the table is to blame.
    """
    estimator = make_estimator(settings)  # what is asked for is checked before a long table is read
    problem = pose(settings.table, told)
    estimator.set_params(groups=problem.groups, always=_always(settings.always, problem))
    told("fitting")
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(problem.X, problem.y, problem.weight)
    seconds = time.perf_counter() - begin
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    notices = list(dict.fromkeys(str(w.message) for w in caught))
    if cut_short(estimator):
        converged = False
        notices.append(
            f"The network ran into --max-iter {estimator.network.max_iter} before the best time; give a larger one."
        )
    model = Pipeline([("columns", problem.transformer), ("model", estimator)])
    return Fit(settings, problem, model, _scores(problem, estimator), converged, tuple(notices), seconds)


def make_estimator(settings: FitSettings) -> GroupSparseRegressor:
    """The estimator that the settings ask for, still without groups."""
    selection, network = _selection(settings.selection), None
    given = {*settings.options, *(["always"] if settings.always else [])}
    if settings.network is not None:
        from covey.network import Network

        network = Network(**settings.network)
        _refuse_idle(given & {"always", "average", "factors"}, "--network")
        if isinstance(selection, Size):
            raise TableError(f"--selection {settings.selection} does nothing with --network: choose one of them.")
    if not isinstance(selection, int) and (selection != "holdout" or network is not None):
        _refuse_idle(given & {"rule", "average"}, f"--selection {settings.selection}")
    if settings.options.get("average"):
        _refuse_idle(given & {"rule"}, "--average")
    return GroupSparseRegressor(
        selection=selection, network=network, random_state=settings.seed, **dict(settings.options)
    )


def _refuse_idle(given: set[str], beside: str) -> None:
    for name in sorted(given):
        raise TableError(f"--{name.replace('_', '-')} does nothing with {beside}.")


def _selection(text: str) -> Any:
    """What an estimator takes for what a user has written."""
    kind, _, number = text.partition(":")
    if kind == "size" and number.isdigit():
        return Size(int(number))
    if text.isdigit():
        if int(text) < 2:
            raise TableError(f"--selection must be at least 2 folds, not {text}.")
        return int(text)
    if text not in SELECTIONS:
        raise TableError(
            f"--selection is a number of folds, one of {', '.join(SELECTIONS)}, or size:3 for three groups, not {text}."
        )
    return text


def _always(wanted: tuple[str, ...], problem: Problem) -> list[Any]:
    """The groups of these names; a size makes groups whose names are numbers."""
    names = {str(name): name for name in problem.groups.names}
    for name in wanted:
        if name not in names:
            hint = near(name, list(names)).replace("the columns are", "the groups are")
            raise TableError(f"--always: there is no group {name!r}; {hint}")
    return [names[name] for name in wanted]


def _scores(problem: Problem, estimator: Any) -> Scores:
    train = float(r2_score(problem.y, estimator.predict(problem.X), sample_weight=problem.weight))
    chosen_by = judged(estimator, problem.y)
    if chosen_by is None or chosen_by.r2 is None:
        return Scores(train, None, "")
    n = estimator.n_splits_
    return Scores(train, chosen_by.r2, f"{n}-fold cross-validation" if n > 1 else "rows held out once")
