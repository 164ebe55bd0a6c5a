"""Fit a posed table, and say how well."""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from covey.estimators import GroupSparseRegressor, GroupSparseRegressorCV
from covey.tables import TableError
from covey.workflow.problem import Problem, pose
from covey.workflow.settings import FitSettings, Told, silent

__all__ = ["RULES", "Fit", "Scores", "fit_table"]

RULES = ("cv", "holdout", "ebic", "bic", "gcv", "discrepancy")
FOLDS = 5


@dataclass(frozen=True)
class Scores:
    """How well the model predicts.

    Attributes
    ----------
    train_r2 : float
        On the rows that it was fitted to.
    held_out_r2 : float or None
        On rows that were not used at the time: None where the rule holds none out. The time was chosen by these same
        rows, so that it is a little on the bright side.
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
        selected = e.group_norms_ > 0
        table = pd.DataFrame(
            {
                "group": list(e.groups_.names),
                "size": e.groups_.sizes,
                "selected": selected,
                "strength": e.group_strengths_,
                "norm": e.group_norms_,
                "woke_up": pd.array([woke.get(l) for l in range(len(selected))], dtype="Int64"),
            }
        )
        return table.sort_values("strength", ascending=False, kind="stable", ignore_index=True)

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
    make_estimator(settings, None)  # what is asked for is checked before a long table is read
    problem = pose(settings.table, told)
    estimator = make_estimator(settings, problem.groups)
    told("fitting")
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, _paths_told(estimator, told):
        warnings.simplefilter("always")
        estimator.fit(problem.X, problem.y, problem.weight)
    seconds = time.perf_counter() - begin
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in caught)
    notices = tuple(dict.fromkeys(str(w.message) for w in caught))
    if not estimator.path_.entered and estimator.path_.times[-1] >= estimator.max_iter:
        converged = False
        notices += (f"No group had woken up when the path reached max_iter={estimator.max_iter}; increase max_iter.",)
    if estimator.dense_network_:
        notices += (
            f"A dense network was chosen, started from {estimator.init_scale_:g}: all groups take part, which predicts "
            "better here. For few groups use --init-scale 1e-6.",
        )
    model = Pipeline([("columns", problem.transformer), ("model", estimator)])
    return Fit(settings, problem, model, _scores(settings, problem, estimator), converged, notices, seconds)


@contextmanager
def _paths_told(estimator: Any, told: Told) -> Iterator[None]:
    """Tell of every path that the estimator has run: it prints a line for each, which is caught here."""
    if told is silent:
        yield
        return
    estimator.set_params(verbose=1)
    with redirect_stdout(_Lines(told)):
        yield
    estimator.set_params(verbose=0)


class _Lines(io.TextIOBase):
    """A stream that counts lines."""

    def __init__(self, told: Told) -> None:
        self.told, self.count, self.outside = told, 0, sys.stdout

    def write(self, text: str) -> int:
        if "\n" in text:
            self.count += text.count("\n")
            with redirect_stdout(self.outside):  # whoever is told may print
                self.told(f"fitting, path {self.count + 1}")
        return len(text)


def make_estimator(settings: FitSettings, groups: Any) -> Any:
    """The estimator that the settings ask for."""
    options = dict(settings.options)
    if settings.stopping == "cv":
        folds = options.pop("cv", FOLDS)
        if not isinstance(folds, int) or folds < 2:
            raise TableError(f"--cv must be at least 2 folds, not {folds}.")
        cv = KFold(folds, shuffle=True, random_state=settings.seed)
        known, made = GroupSparseRegressorCV().get_params(), GroupSparseRegressorCV(groups, cv=cv)
    else:
        if settings.stopping not in RULES and not settings.stopping.isdigit():
            raise TableError(
                f"--stopping is one of {', '.join(RULES)} or a number of iterations, not {settings.stopping}."
            )
        rule = int(settings.stopping) if settings.stopping.isdigit() else settings.stopping
        known = GroupSparseRegressor().get_params()
        made = GroupSparseRegressor(groups, stopping=rule, random_state=settings.seed)
    idle = [name for name in options if name not in known]
    if idle:
        raise TableError(f"--{idle[0].replace('_', '-')} does nothing with --stopping {settings.stopping}.")
    return made.set_params(**options)


def _scores(settings: FitSettings, problem: Problem, estimator: Any) -> Scores:
    train = r2_score(problem.y, estimator.predict(problem.X), sample_weight=problem.weight)
    if settings.stopping == "cv":
        times, errors = estimator.times_, estimator.mse_path_.mean(axis=1)
        chosen, by = estimator.best_time_, f"{estimator.mse_path_.shape[1]}-fold cross-validation"
    elif settings.stopping == "holdout":
        times, errors = (estimator.scores_[name].to_numpy() for name in ("time", "mse"))
        chosen, by = estimator.n_iter_, f"{estimator.validation_fraction:.0%} of the rows"
    else:
        return Scores(float(train), None, "")
    at = int(np.searchsorted(times, chosen, side="right")) - 1
    return Scores(float(train), float(1 - errors[at] / errors[0]), by)
