"""The table of a model's coefficients, for Python and for the command line's CSV file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covey.terms.expansion import Expansion
from covey.validation import IntArray

if TYPE_CHECKING:
    from covey.groups import Groups

__all__ = ["coefficients_table", "column_names"]


def coefficients_table(model: BaseEstimator, outputs: Sequence[str]) -> pd.DataFrame:
    """The intercept, then one row per column (of a model of terms, per column of a selected term).

    With several `outputs`, each has its coefficients. If the exponential of a coefficient is an odds, rate or hazard
    ratio, it gets a column too.
    """
    groups, expansion = model.groups_, getattr(model, "expansion_", None)
    coef = np.atleast_2d(model.coef_)
    shown = np.arange(coef.shape[1])
    if expansion is not None:
        shown = np.concatenate([shown[:0], *(groups[name] for name in model.selected_groups_)])
    table: dict[str, object] = {
        "column": ["(intercept)", *column_names(groups, shown, expansion, getattr(model, "feature_names_in_", None))],
        "group" if expansion is None else "term": pd.Series([None, *_group_names(groups, shown)], dtype=object),
    }
    values = np.column_stack([np.atleast_1d(model.intercept_), coef[:, shown]])
    ends = [f"_{name}" for name in outputs] or [""]
    table |= {f"coefficient{end}": row for end, row in zip(ends, values, strict=True)}
    if model.loss_.effect is not None:
        with np.errstate(over="ignore"):
            # the intercept's exponential is odds or a rate, not a ratio
            ratios = np.column_stack([np.full(len(values), np.nan), np.exp(values[:, 1:])])
        head = model.loss_.effect.replace(" ", "_")
        table |= {f"{head}{end}": row for end, row in zip(ends, ratios, strict=True)}
    return pd.DataFrame(table)


def _group_names(groups: Groups, columns: IntArray) -> list[Hashable]:
    """The name of each column's group; of several, all of them in a text."""
    if not groups.overlapping:
        return [groups.names[l] for l in groups.labels[columns]]
    inside: list[list[str]] = [[] for _ in range(groups.n_columns)]
    for name in groups.names:
        for j in groups[name]:
            inside[j].append(str(name))
    return [", ".join(inside[j]) for j in columns]


def column_names(
    groups: Groups, columns: IntArray, expansion: Expansion | None, given: Sequence[str] | None = None
) -> list[str]:
    """The names of columns; those of a pair have its name and a number."""
    if expansion is None:
        return [groups.column_name(j) if given is None else str(given[j]) for j in columns]
    names = expansion.encoding.column_names
    found = []
    for j in columns:
        if j < len(names):
            found.append(names[j])
        else:
            term = expansion.terms[groups.labels[j]]
            found.append(f"{term.name} {j - term.columns.start + 1}")
    return found
