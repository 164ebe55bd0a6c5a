"""The tables of a fit: every term or group, and every coefficient along the path."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from covey.estimators.coefficients import column_names
from covey.path import Path
from covey.terms import Expansion


def groups_table(estimator: BaseEstimator) -> pd.DataFrame:
    """All groups: selected ones first, in order of strength."""
    names = list(estimator.groups_.names)
    return _ordered(estimator, range(len(names)), {"group": names})


def terms_table(estimator: BaseEstimator) -> pd.DataFrame:
    """The terms of all variables, and the pairs that woke up: selected ones first, in order of strength."""
    terms, norms, woke = estimator.expansion_.terms, estimator.group_norms_, dict(estimator.path_.entered)
    shown = [l for l, term in enumerate(terms) if len(term.variables) == 1 or l in woke or norms[l] > 0]
    about = {
        "term": [terms[l].name for l in shown],
        "kind": [terms[l].kind for l in shown],
        "variables": [", ".join(terms[l].variables) for l in shown],
        "parents": [", ".join(terms[j].name for j in terms[l].parents) for l in shown],
    }
    return _ordered(estimator, shown, about).drop(columns="norm", errors="ignore")


def _ordered(estimator: BaseEstimator, shown: Sequence[int], about: Mapping[str, Sequence[Hashable]]) -> pd.DataFrame:
    """The facts about some groups or terms: selected ones first, in order of strength."""
    names, always, facts = estimator.groups_.names, set(estimator.always_groups_), estimator._facts(shown)
    size, selected = facts.pop("size"), estimator.group_norms_[list(shown)] > 0
    table = {**about, "size": size, "selected": selected, "always": [names[l] in always for l in shown], **facts}
    return pd.DataFrame(table).sort_values(["selected", "strength"], ascending=False, kind="stable", ignore_index=True)


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
