"""The tables of a fit: every term or group, and every model of the path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covey.estimators.coefficients import column_names
from covey.path import Path
from covey.terms import Expansion


def groups_table(estimator: BaseEstimator) -> pd.DataFrame:
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
    if e.loss_.several:
        table = table.drop(columns="norm")  # it would mix the units of the responses
    table = _with_responses(e, table, slice(None))
    if e.fold_frequencies_ is not None and e.n_splits_ > 1:
        table["folds"] = np.asarray(e.fold_frequencies_)
    return table.sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)


def terms_table(estimator: BaseEstimator) -> pd.DataFrame:
    """The terms of all variables, and the pairs that woke up: selected ones first, in order of strength."""
    e = estimator
    terms, woke, always = e.expansion_.terms, dict(e.path_.entered), set(e.always_groups_)
    shown = [l for l, term in enumerate(terms) if len(term.variables) == 1 or l in woke or e.group_norms_[l] > 0]
    table = pd.DataFrame(
        {
            "term": [terms[l].name for l in shown],
            "kind": [terms[l].kind for l in shown],
            "variables": [", ".join(terms[l].variables) for l in shown],
            "parents": [", ".join(terms[j].name for j in terms[l].parents) for l in shown],
            "size": e.groups_.sizes[shown],
            "selected": e.group_norms_[shown] > 0,
            "always": [terms[l].name in always for l in shown],
            "strength": e.group_strengths_[shown],
            "woke_up": [float(woke.get(l, np.nan)) for l in shown],
        }
    )
    table = _with_responses(e, table, shown)
    if e.fold_frequencies_ is not None and e.n_splits_ > 1:
        table["folds"] = np.asarray(e.fold_frequencies_)[shown]
    return table.sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)


def _with_responses(estimator: BaseEstimator, table: pd.DataFrame, shown: slice | Sequence[int]) -> pd.DataFrame:
    """With several responses, how far each group or term moves each of them, in its units, after the strength."""
    for name, strengths in estimator._response_strengths():
        table.insert(list(table.columns).index("woke_up"), name, strengths[shown])
    return table


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


def coefficients_along(path: Path, outputs: Sequence[str] = (), expansion: Expansion | None = None) -> pd.DataFrame:
    """The path in long form: one row per time and awake column, plus one per time for the intercept.

    With several outputs, each has its rows, named by `outputs`. Columns of terms are named by their `expansion`.
    """
    p, n_times, n_outputs = path.groups.n_columns, len(path), path.n_outputs
    coefs = path.coefs.tocoo()
    output, column = np.divmod(coefs.col, p)
    used, place = np.unique(column, return_inverse=True)
    labels = path.groups.labels[used]
    groups = np.array([str(path.groups.names[l]) for l in labels], dtype=object)
    columns = np.array(column_names(path.groups, used.tolist(), expansion), dtype=object)
    no_name = np.full(n_times * n_outputs, None, dtype=object)
    position = np.concatenate([np.repeat(np.arange(n_times), n_outputs), coefs.row])
    which = np.concatenate([np.tile(np.arange(n_outputs), n_times), output])
    table = {
        "time": path.times[position],
        "group" if expansion is None else "term": np.concatenate([no_name, groups[place]]),
        "column": np.concatenate([no_name, columns[place]]),
        "coefficient": np.concatenate([path.intercepts.ravel(), coefs.data]),
    }
    if n_outputs > 1:
        table = {"time": table.pop("time"), "output": np.array(outputs, dtype=object)[which], **table}
    return pd.DataFrame(table).iloc[np.lexsort((which, position))].reset_index(drop=True)
