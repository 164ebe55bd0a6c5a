"""Constraints on groups of columns: signs, bounds and shapes as linear inequalities on their coefficients."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np

from covey.groups import Groups
from covey.losses.base import Loss
from covey.search.constraints.cone import Constraint
from covey.terms.expansion import Expansion
from covey.terms.requirements import (
    Constraints,
    Requirement,
    check_bounds,
    inequalities,
    match,
    one_sided,
    requirements_of,
    term_constraints,
)
from covey.validation import FloatArray


def constraints_on(
    given: Constraints,
    loss: Loss,
    groups: Groups,
    columns: Sequence[str] | None,
    always: Sequence[int],
    expansion: Expansion | None,
) -> list[Constraint]:
    """The inequalities that a user gives for groups of columns or for the terms of a table.

    With several responses or quantiles, they hold for the coefficients of each; bounds in the units of one response
    mean nothing to the others, so that only signs and shapes are left.
    """
    if loss.vector and loss.labelled:
        raise ValueError(
            "constraints= needs two classes, or ordered ones (loss='ordinal'): with more, every column has several "
            "coefficients, and a sign may be right for some of them only. Fit one class against the others."
        )
    if loss.vector and not loss.quadratic and not loss.apart():
        raise ValueError(
            f"constraints= needs outputs that do not interact, and apart() of the {loss.name} loss returns no losses "
            "of single ones."
        )
    if expansion is None:
        found = group_constraints(given, groups, columns, always)
    else:
        found = term_constraints(requirements_of(given, expansion.encoding), expansion.encoding, always)
    for one in found if loss.several else ():
        if one.low.any():
            raise ValueError(
                f"constraints: {one.text} for {one.name!r} is in the units of a response, and there are several: give "
                "a sign or a shape, or fit the responses one by one."
            )
    return found


def group_constraints(
    constraints: Constraints, groups: Groups, columns: Sequence[str] | None, always: Sequence[int]
) -> list[Constraint]:
    """Inequalities on groups of columns, for names of groups and names of columns.

    Bounds are those of every coefficient of a group. An increasing group has coefficients that do not fall from one
    column to the next, as those of B-splines or of ordered levels, and a convex one increasing differences; a single
    column is increasing if its coefficient is not negative.
    """
    if groups.overlapping:
        raise ValueError("constraints= needs groups without a column in common: give each column to one group.")
    names: list[Hashable] = list(groups.names)
    taken, in_all = set(names), set(always)
    of_column = {str(name): j for j, name in enumerate([] if columns is None else columns)}
    of_column = {name: j for name, j in of_column.items() if name not in taken}
    members = groups.lists()
    place = {int(j): (l, i) for l, some in enumerate(members) for i, j in enumerate(some)}
    found, bounds = list[Constraint](), dict[int, tuple[float, float]]()
    for name, requirement in match(constraints, names, "group or column", list(of_column)).items():
        if name in of_column:
            group, at = place[of_column[str(name)]]
            if requirement.convex:
                raise ValueError(f"constraints: {name!r} is one column: leave out {requirement.text!r}.")
            n = 1
        else:
            group, at = groups.position(name), None
            n = members[group].size
        inside = requirement.slopes if n == 1 else (requirement.low, requirement.high)
        check_bounds(requirement, inside, name, group in in_all)
        if requirement.convex and n < 3:
            raise ValueError(
                f"constraints: {name!r} has {n} column{'s' * (n > 1)}, and {requirement.text!r} needs at least 3: "
                "leave it out."
            )
        A, low = _rows(requirement, members[group].size, at)
        found.append(Constraint((group,), A, low, str(name), requirement.text))
        for j in [of_column[str(name)]] if name in of_column else members[group].tolist():
            before = bounds.get(j, (-np.inf, np.inf))
            bounds[j] = max(before[0], inside[0]), min(before[1], inside[1])
            if bounds[j][0] >= bounds[j][1]:
                raise ValueError(
                    f"constraints: those on the group {groups.names[group]!r} and on its column {name!r} leave no "
                    "choice: give one of them."
                )
    return found


@cache  # many names have the same requirement
def _rows(requirement: Requirement, size: int, at: int | None) -> tuple[FloatArray, FloatArray]:
    """The inequalities of a requirement on the coefficients of a group of some size, or of one of its columns."""
    rows = np.eye(size)[slice(None) if at is None else [at]]
    n = len(rows)
    low, high = requirement.slopes if n == 1 else (requirement.low, requirement.high)
    steps, turns = np.diff(rows, axis=0), np.diff(rows, 2, axis=0)
    return inequalities(
        size, (rows, low, high), (steps, *one_sided(requirement.increasing)), (turns, *one_sided(requirement.convex))
    )
