"""The tables of a fit: every group, and every column with its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from covey.workflow.problem import Problem

__all__ = ["coefficients_table", "effect_column", "groups_table", "output_names"]


def output_names(estimator: Any, problem: Problem) -> list[str]:
    """Names of the rows of the coefficients: several responses, or more than two classes; otherwise empty."""
    if estimator.path_.n_outputs == 1:
        return []
    return (
        [str(label) for label in estimator.classes_] if problem.response.has_classes else list(problem.response.targets)
    )


def groups_table(estimator: Any) -> pd.DataFrame:
    """All groups: selected ones first, in order of strength."""
    e = estimator
    woke, always = dict(e.path_.entered), set(e.always_groups_)
    table = pd.DataFrame(
        {
            "group": list(e.groups_.names),
            "size": e.groups_.sizes,
            "selected": e.group_norms_ > 0,
            "always": [name in always for name in e.groups_.names],
            "strength": e.group_strengths_,
            "norm": e.group_norms_,
            "woke_up": [float(woke.get(l, np.nan)) for l in range(e.groups_.n_groups)],
        }
    )
    if e.fold_frequencies_ is not None and e.n_splits_ > 1:
        table["folds"] = np.asarray(e.fold_frequencies_)
    return table.sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)


def coefficients_table(estimator: Any, problem: Problem) -> pd.DataFrame:
    """All columns of the fit with one coefficient per output, after the intercept.

    If the exponential of a coefficient is an odds, rate or hazard ratio, it gets a column too.
    """
    e = estimator
    names = list(e.groups_.names)
    columns = pd.DataFrame(
        {
            "column": ["(intercept)", *problem.X.columns],
            "source": [None, *problem.sources],
            "group": pd.Series([None, *(names[l] for l in e.groups_.labels)], dtype=object),
        }
    )
    values = np.column_stack([np.atleast_1d(e.intercept_), np.atleast_2d(e.coef_)])
    return pd.concat([columns, _effects(values, output_names(e, problem), e.loss_.effect)], axis=1)


def _effects(values: Any, outputs: Sequence[str], effect: str | None) -> pd.DataFrame:
    heads = [f"coefficient_{name}" for name in outputs] or ["coefficient"]
    made = dict(zip(heads, values, strict=True))
    if effect is not None:
        ratio = effect_column(effect)
        with np.errstate(over="ignore"):
            for head, own in zip(heads, values, strict=True):
                # the intercept's exponential is odds or a rate, not a ratio
                made[head.replace("coefficient", ratio, 1)] = np.r_[np.nan, np.exp(own[1:])]
    return pd.DataFrame(made)


def effect_column(effect: str) -> str:
    """The name of the column of ratios.

    >>> effect_column("odds ratio")
    'odds_ratio'
    """
    return effect.replace(" ", "_")
