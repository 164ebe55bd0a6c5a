"""The arguments of stability selection, knockoffs, tests and effects as a Problem, and parts of its data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from covey.designs import Design, as_design
from covey.estimators import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.estimators.constraints import constraints_on
from covey.estimators.reading import read_always, read_weight, refuse_constant
from covey.groups import Groups, GroupsLike
from covey.layout import spans
from covey.losses import Cox, Loss, get_loss, survival
from covey.losses.base import Response
from covey.losses.classes import read_labels
from covey.losses.cox import FieldNames, read_survival
from covey.losses.risk_sets import EVENT, START, STOP, STRATUM
from covey.search.limit_path import read_rows
from covey.search.observations import Observations
from covey.search.problem import Problem
from covey.tables.columns import named_faults, refuse_missing
from covey.terms import Encoding, Terms, TermsLike, expand
from covey.terms.requirements import Constraints
from covey.validation import FloatArray, MatrixLike, PerRow, on_host, pandas_frame, positive


def read_problem(
    X: Any,
    y: ArrayLike,
    groups: GroupsLike,
    always: Iterable[Hashable],
    loss: str | Loss,
    offset: Any,
    sample_weight: PerRow,
    terms: TermsLike = None,
    constraints: Constraints | None = None,
    **options: Any,
) -> Problem:
    """Validate the data, a matrix of columns or with `terms` a table of variables; `options` are for the search."""
    loss, expansion = get_loss(loss), None
    if terms is None:
        design, structure = read_matrix(X), {}
        groups = Groups.coerce(groups, design.shape[1], design.columns)
        always_in = read_always(groups, always, design.columns)
    else:
        expansion, design = expand(terms, groups, X, sample_weight, constraints)
        if expansion.unlisted:
            raise ValueError(
                "The pairs of all variables are too many for half-samples: name pairs, such as "
                "pairs=[('age', 'sex')] or pairs={'with': 'treatment'}."
            )
        groups, structure, options["factors"] = expansion.groups, expansion.structure, 0
        always_in = expansion.with_ancestors([*read_always(groups, always), *expansion.always])
    weight = read_weight(sample_weight, design.shape[0])
    loss, response, weight, offset = read_rows(design, encode_classes(y, loss), weight, loss, offset)
    if options["fit_intercept"]:
        refuse_constant(Response(loss, response), weight, offset, None)
    if constraints:
        known = constraints_on(constraints, loss, groups, design.columns, always_in, expansion)
        structure = structure | {"constraints": known}
    return Problem(design, response, weight, groups, always_in, options, loss, offset, **structure)


def read_matrix(X: Any) -> Design:
    """A matrix of columns without missing values."""
    X = pandas_frame(X)
    with named_faults(X):
        design = as_design(X)
    if hasattr(X, "isna"):
        refuse_missing(X)
    return design


def read_share(value: object, name: str) -> float:
    """A number between 0 and 1."""
    number = positive(value, name)
    if number >= 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {number:g}.")
    return number


def problem_of(model: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: PerRow, offset: PerRow) -> Problem:
    """The data with the groups or terms, the loss and the options of one of covey's estimators."""
    if not isinstance(model, GroupSparseRegressor | GroupSparseClassifier | GroupSparseCox):
        raise ValueError(
            f"model must be one of covey's estimators, such as GroupSparseRegressor(groups=3), not a "
            f"{type(model).__name__}; of a pipeline, give the last step, and X as it comes from the steps before."
        )
    for name in ("within", "class_weight"):
        if getattr(model, name, None) is not None:
            raise ValueError(f"Groups are tested as they are, on rows as they are: leave out {name}= of the model.")
    loss: Any = getattr(model, "loss", None)
    if isinstance(model, GroupSparseClassifier):
        response = read_labels(y)
        response.loss.check_estimable(response, np.ones(len(response.y)))
        if response.loss.vector and loss != "multinomial":
            raise ValueError("Tests and bands do not know classes with an order: leave out loss= of the model.")
        loss, y = response.loss, response.y
    elif isinstance(model, GroupSparseCox):
        loss = Cox(model.ties)  # type: ignore[arg-type]
        times = read_survival(y, "y", FieldNames.of(model)).rows
        start = times[:, START] if np.isfinite(times[:, START]).all() else None
        y = survival(times[:, STOP], times[:, EVENT], start=start, strata=times[:, STRATUM])
    names = ("group_weights", "standardize", "fit_intercept", "factors")
    options = {name: getattr(model, name) for name in names}
    return read_problem(
        X, y, model.groups, model.always, loss, offset, sample_weight, model.terms, model.constraints, **options
    )


def read_variables(
    X: MatrixLike, terms: TermsLike, groups: GroupsLike, always: Iterable[Hashable], sample_weight: PerRow
) -> tuple[Design, Groups, list[Hashable]]:
    """The encoded columns of a table with one group per variable, and the variables that are in every model."""
    wanted = Terms.coerce(terms)
    if wanted.pairs not in (None, "auto"):
        raise ValueError(
            "Knockoffs copy variables, and a pair of them is no variable of its own: leave out pairs=, or use "
            "covey.stability_selection, which takes pairs."
        )
    expansion, design = expand(replace(wanted, pairs=None), groups, X, sample_weight)
    encoding = expansion.encoding
    named = [always] if isinstance(always, str) else always
    held = [term.variables[0] for term in encoding.terms if term.always]
    return design, variable_groups(encoding), list(dict.fromkeys([*named, *held]))


def variable_groups(encoding: Encoding) -> Groups:
    """One group per variable: all columns of its terms, which are in another order than the columns."""
    columns: dict[str, list[int]] = {}
    for term in encoding.terms:
        columns.setdefault(term.variables[0], []).extend(range(term.columns.start, term.columns.stop))
    return Groups.from_lists(columns.values(), names=list(columns), columns=encoding.column_names)


def encode_classes(y: ArrayLike, loss: Loss) -> ArrayLike:
    """Convert labels to 0 and 1, or to one column per class; other responses are returned unchanged.

    >>> encode_classes(["no", "yes", "no"], get_loss("binomial")).tolist()
    [0.0, 1.0, 0.0]
    >>> encode_classes(["a", "c", "b"], get_loss("multinomial")).argmax(axis=1).tolist()
    [0, 2, 1]
    """
    if not loss.labelled or np.ndim(y) != 1:
        return y
    if loss.coupled:
        return loss.read(y).y
    values = np.asarray(on_host(y))
    if not loss.vector and values.dtype.kind in "fiub" and np.all((values >= 0) & (values <= 1)):
        # proportions between 0 and 1 are valid for this loss too
        return y
    labels = read_labels(y)
    if loss.vector:
        return labels.y if labels.loss.vector else np.eye(2)[labels.y.astype(int)]
    if labels.loss.vector:
        raise ValueError(
            f"y has {labels.y.shape[1]} classes, and the binomial loss takes 2: use loss='multinomial', or one class "
            "against the others."
        )
    return labels.y


def odds_in_words(y: ArrayLike, loss: Loss) -> tuple[str, ...]:
    """Whose odds the coefficients of two classes describe, if these are given as labels.

    >>> odds_in_words(["ill", "well", "ill"], get_loss("binomial"))
    ("The odds are those of 'well' against 'ill'.",)
    """
    if encode_classes(y, loss) is y or loss.vector or loss.coupled:
        return ()
    labels = read_labels(y).labels
    assert labels is not None
    first, second = labels.tolist()
    return (f"The odds are those of {second!r} against {first!r}.",)


def members_of(problem: Problem, groups: list[int]) -> NDArray[np.intp]:
    """The positions of the columns of some groups."""
    return problem.groups.members[spans(problem.groups.starts, np.array(groups, dtype=np.intp))]


def columns_of(problem: Problem, groups: list[int]) -> FloatArray:
    """The columns of some groups, in memory."""
    return np.asarray(on_host(problem.design.take(members_of(problem, groups))), dtype=float)


def observations_on(problem: Problem, rows: NDArray[np.intp]) -> Observations:
    """The observations of some rows, with weights that add up to their number."""
    y, weight = np.asarray(problem.y)[rows], problem.weight[rows]
    m = y.shape[1] if problem.loss.vector else 1
    offset = np.zeros((rows.size, m)) if problem.offset is None else problem.offset[rows].reshape(rows.size, m)
    return Observations(problem.loss, y, weight * (rows.size / weight.sum()), offset, np.ones(rows.size))
