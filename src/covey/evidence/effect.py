"""The effect of named columns given the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.designs import RepeatedColumns
from covey.estimators.reading import read_weight
from covey.evidence.double_selection import Effects, double_selection
from covey.evidence.reading import odds_in_words, read_matrix, read_problem
from covey.groups import Groups, GroupsLike
from covey.losses import Loss
from covey.progress import Progress, showing
from covey.tables.complaint import near
from covey.terms import Levels, Terms, TermsLike
from covey.terms.guessing import guess
from covey.terms.reading import as_frame, as_labels, as_numbers, level_order, missing_values
from covey.validation import FloatArray, MatrixLike, PerRow, on_host, pandas_frame


def effect(
    X: MatrixLike,
    y: ArrayLike,
    of: Hashable | Iterable[Hashable],
    *,
    groups: GroupsLike = None,
    terms: TermsLike = None,
    always: Iterable[Hashable] = (),
    loss: str | Loss = "squared",
    clusters: PerRow = None,
    confidence: float = 0.95,
    offset: PerRow = None,
    sample_weight: PerRow = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    verbose: int | None = None,
) -> Effects:
    r"""The effect of one or several columns on the response, given all others, with intervals and tests.

    Double selection (Belloni, Chernozhukov and Hansen, 2014): covey's search selects the controls that predict the
    response, and for each of the columns `of` the controls that predict it. The response is then fitted on the columns
    `of` and all of these controls together, without a penalty. A control that matters would have to be missed by two
    searches to bias the effect, so the interval holds although controls were selected. Standard errors are robust to
    noise of unequal variance (HC3), or with `clusters` to any dependence within clusters. Those of survival times are
    Lin and Wei's (1989), which do not assume proportional hazards.

    What is estimated depends on the loss: `what` of the result says it. For squared loss it is the difference in the
    mean of y per unit of the column. For ``loss="binomial"`` it is a log odds ratio given the selected controls, and
    for "poisson" and "gamma" a log ratio of means (Belloni, Chernozhukov and Wei, 2016). For ``loss="cox"`` it is a log
    hazard ratio given the selected controls. For a difference in probabilities, give a response of zeros and ones with
    squared loss.

    An effect is causal only if the other columns contain everything that influences both the column and the response,
    and nothing that either of them causes.

    Parameters
    ----------
    X : array-like or design of shape (n_rows, n_features), or with `terms` a table of variables
    y : array-like of shape (n_rows,)
        Survival times as `covey.survival` makes them.
    of : str, int or list of these
        The columns whose effects are wanted, by name or position. With `terms`, a category has one effect per level,
        compared with the first level.
    groups : None, int, labels, lists, dict or Groups
        Groups of the columns of X; controls are selected by group. The columns `of` are taken out of their groups.
    terms : None, "auto", dict or Terms
        For a table of variables, as in the estimators: the controls are terms of the other variables.
    always : iterable
        Names of groups or terms that are controls in any case.
    loss : {"squared", "huber", "binomial", "poisson", "gamma", "cox"} or Loss
        For one response per row.
    clusters : array-like of shape (n_rows,), optional
        Labels of rows that depend on each other.
    confidence : float
        The coverage of the intervals.
    offset, sample_weight : array-like, optional
        As in `fit`. Weights say how precise rows are: they do not count rows. Controls are selected without them, but
        for rows of weight zero.
    n_jobs : int, optional
        How many searches to run in parallel, with joblib: one for the response, and one for each of the columns `of`.
    progress : callable, optional
        Called after each search with the number of finished searches and their total number.
    verbose : int, optional
        1 shows progress, 0 nothing; by default there is a progress bar where one can be drawn, on a terminal or in
        a notebook.

    Returns
    -------
    Effects
        With `estimates`, `intervals`, `p_values`, `controls`, `to_frame()` and `summary()`.

    References
    ----------
    Belloni, Chernozhukov and Hansen, "Inference on treatment effects after selection among high-dimensional controls",
    2014. Belloni, Chernozhukov and Wei, "Post-selection inference for generalized linear models with many controls",
    2016. Lin and Wei, "The robust inference for the Cox proportional hazards model", 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from covey.evidence import effect
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 100))
    >>> X[:, 0] += X[:, 1] + X[:, 2]  # the treatment depends on other columns
    >>> y = 0.5 * X[:, 0] + 2 * X[:, 1] + rng.standard_normal(300)
    >>> found = effect(X, y, of=0)
    >>> low, high = found.intervals[0]
    >>> bool(low < 0.5 < high), found.controls[:2]
    (True, [1, 2])
    """
    if terms is None:
        names, D, X, groups = _read_columns(X, of, groups)
    else:
        names, D, X, terms = _read_terms(X, of, terms, sample_weight)
        groups = None
    problem = read_problem(
        X, y, groups, always, loss, offset, sample_weight, terms,
        group_weights="noise", standardize="group", fit_intercept=True, factors="auto",
    )  # fmt: skip
    with showing("effect", verbose):
        found = double_selection(problem, names, D, clusters, confidence, n_jobs=n_jobs, progress=progress)
    return replace(found, remarks=(*found.remarks, *odds_in_words(y, problem.loss)))


def _places(of: Hashable | Iterable[Hashable], X: Any, columns: Sequence[Hashable] | None, n: int) -> list[int]:
    """The positions of the columns `of`."""
    if not isinstance(of, str | int | np.integer | Iterable):
        raise ValueError(f"of must be the name or position of a column, or a list of these, not {of!r}.")
    given: list[Hashable] = [of] if isinstance(of, str | int | np.integer) else list(of)
    if not given:
        raise ValueError("of is empty: name at least one column.")
    places = [place_of(one, X, columns, n) for one in given]
    repeated = [one for k, one in enumerate(given) if places[k] in places[:k]]
    if repeated:
        raise ValueError(f"of names {repeated[0]!r} twice.")
    return places


def place_of(one: Hashable, X: Any, columns: Sequence[Hashable] | None, n: int) -> int:
    """The position of a column that is given by name, which in a DataFrame may be a number, or by position."""
    for names in (list(X.columns) if isinstance(X, pd.DataFrame) else None, columns):
        if names is not None and one in names and not isinstance(one, bool):
            return names.index(one)
    if isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 <= one < n:
        return int(one)
    if isinstance(one, str) and columns is not None:
        raise ValueError(f"of: there is no column {one!r}; {near(one, [str(name) for name in columns])}")
    hint = "" if columns is not None else "; X has no column names"
    raise ValueError(f"of: there is no column {one!r}: give names, or positions from 0 to {n - 1}{hint}.")


def _read_columns(
    X: MatrixLike, of: Hashable | Iterable[Hashable], groups: GroupsLike
) -> tuple[list[Hashable], FloatArray, MatrixLike, Groups]:
    """The columns `of` of a matrix, with their names, and the other columns in the groups that they leave."""
    X, design = pandas_frame(X), read_matrix(X)
    names = None if design.columns is None else list(design.columns)
    places = _places(of, X, names, design.shape[1])
    partition = Groups.coerce(groups, design.shape[1], design.columns)
    others = np.setdiff1d(np.arange(design.shape[1]), places)
    if not others.size:
        raise ValueError("of names every column, and none is left as a control: use an ordinary regression.")
    at = np.full(design.shape[1], -1)
    at[others] = np.arange(others.size)
    lists = np.split(at[partition.members], partition.starts[1:-1])
    left = {name: one[one >= 0].tolist() for name, one in zip(partition.names, lists, strict=True) if (one >= 0).any()}
    controls = Groups.from_lists(left.values(), names=list(left), n_columns=others.size, overlap=partition.overlapping)
    D = np.asarray(on_host(design.take(np.array(places))), dtype=float)
    known = list(X.columns) if isinstance(X, pd.DataFrame) else names
    labels: list[Hashable] = [j if known is None else known[j] for j in places]
    return labels, D, RepeatedColumns(design, others), controls


def _read_terms(
    X: MatrixLike, of: Hashable | Iterable[Hashable], terms: TermsLike, sample_weight: PerRow
) -> tuple[list[Hashable], FloatArray, MatrixLike, Terms]:
    """The variables `of` of a table as named columns, the table of the other variables, and their terms.

    A category has the levels of the rows that have a weight.
    """
    frame = as_frame(X)
    counted = read_weight(sample_weight, len(frame)) > 0
    names = list(frame.columns)
    chosen = [names[place] for place in _places(of, X, names, len(names))]
    if len(chosen) == len(names):
        raise ValueError("of names every variable, and none is left as a control: use an ordinary regression.")
    labels, columns, kinds = list[Hashable](), [], Terms.coerce(terms).kinds(names)
    for name in chosen:
        values = frame[name]
        if n_missing := int(missing_values(values).sum()):
            raise ValueError(f"of: {name!r} is missing in {n_missing} rows: drop them, or impute it.")
        holds = "levels" if isinstance(kinds[name], Levels) else guess(values).holds
        if holds == "date":
            raise ValueError(
                f"of: {name!r} holds dates, whose effect is not one number: give the days since some date instead, or "
                "use covey.evidence.band for the curve."
            )
        if holds in ("number", "boolean"):
            labels.append(name)
            columns.append(as_numbers(values))
            continue
        texts = as_labels(values)
        found = set(texts[counted].tolist())
        levels = [level for level in level_order(values, list(found)) if level in found]
        labels += [f"{name}={level}" for level in levels[1:]]
        columns += [(texts == level).astype(float) for level in levels[1:]]
    if not columns:
        raise ValueError(f"of: {chosen[0]!r} has only one level.")
    return labels, np.stack(columns, axis=1), frame.drop(columns=chosen), terms_without(terms, names, chosen)


def terms_without(terms: TermsLike, names: list[str], left_out: list[str]) -> Terms:
    """The terms of a table without some of its variables and their pairs."""
    wanted = Terms.coerce(terms)
    kinds = {name: kind for name, kind in wanted.kinds(names).items() if name not in left_out}
    pairs = wanted.pairs
    if isinstance(pairs, Mapping):
        others = [name for name in pairs["with"] if name not in left_out]
        pairs = {"with": others} if others else None
    elif pairs is not None and pairs != "auto":
        pairs = [pair for pair in pairs if not set(pair) & set(left_out)] or None
    return Terms(kinds, pairs=pairs)
