"""The tables of a fit: every group, every column with its coefficients, and every model of the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from covey.path import Path
from covey.workflow.problem import Problem


def output_names(estimator: Any, problem: Problem) -> list[str]:
    """Names of the rows of the coefficients: several responses, or more than two classes; otherwise empty."""
    if estimator.path_.n_outputs == 1:
        return []
    return [str(label) for label in getattr(estimator, "classes_", problem.response.targets)]


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
    table = {
        "column": ["(intercept)", *problem.X.columns],
        "source": [None, *problem.sources],
        "group": pd.Series([None, *(names[l] for l in e.groups_.labels)], dtype=object),
    }
    values = np.column_stack([np.atleast_1d(e.intercept_), np.atleast_2d(e.coef_)])
    ends = [f"_{name}" for name in output_names(e, problem)] or [""]
    table |= {f"coefficient{end}": row for end, row in zip(ends, values, strict=True)}
    if e.loss_.effect is not None:
        with np.errstate(over="ignore"):
            # the intercept's exponential is odds or a rate, not a ratio
            ratios = np.column_stack([np.full(len(values), np.nan), np.exp(values[:, 1:])])
        head = e.loss_.effect.replace(" ", "_")
        table |= {f"{head}{end}": row for end, row in zip(ends, ratios, strict=True)}
    return pd.DataFrame(table)


def order_table(path: Path) -> pd.DataFrame:
    """The groups in the order in which they woke up, with their strength at the end of the path."""
    assert path.strengths is not None
    last = path.strengths[[len(path) - 1]].toarray().ravel()
    order = [l for l, _ in path.entered]
    return pd.DataFrame(
        {
            "group": [path.groups.names[l] for l in order],
            "size": path.groups.sizes[order],
            "woke_up": [t for _, t in path.entered],
            "strength": last[order],
        }
    )


def coefficients_along(path: Path, outputs: Sequence[str] = ()) -> pd.DataFrame:
    """The path in long form: one row per time and awake column, plus one per time for the intercept.

    With several outputs, each has its rows, named by `outputs`.
    """
    p, n_times, n_outputs = path.groups.n_columns, len(path), path.n_outputs
    coefs = path.coefs.tocoo()
    output, column = np.divmod(coefs.col, p)
    groups = np.array([str(name) for name in path.groups.names], dtype=object)[path.groups.labels]
    columns = np.array([path.groups.column_name(j) for j in range(p)], dtype=object)
    no_name = np.full(n_times * n_outputs, None, dtype=object)
    position = np.concatenate([np.repeat(np.arange(n_times), n_outputs), coefs.row])
    which = np.concatenate([np.tile(np.arange(n_outputs), n_times), output])
    table = {
        "time": path.times[position],
        "group": np.concatenate([no_name, groups[column]]),
        "column": np.concatenate([no_name, columns[column]]),
        "coefficient": np.concatenate([path.intercepts.ravel(), coefs.data]),
    }
    if n_outputs > 1:
        table = {"time": table.pop("time"), "output": np.array(outputs, dtype=object)[which], **table}
    return pd.DataFrame(table).iloc[np.lexsort((which, position))].reset_index(drop=True)
