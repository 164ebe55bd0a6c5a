"""Constraints on the effects of variables: increasing, convex, or with bounded slopes.

The effect of a number is a line plus a curve plus a detail, so that a constraint is on the coefficients of all three.
What is not in a model is zero: a line alone only needs a slope with the right sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from covey.search.constraints.cone import Constraint
from covey.tables.complaint import listed
from covey.terms.dates import Date
from covey.terms.encoding import Encoding
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.pairs import PairsLike
from covey.terms.requirements import Constraints, Requirement, check_bounds, match
from covey.terms.splines import bends, slopes
from covey.validation import FloatArray

__all__ = ["requirements_of", "term_constraints", "without_pairs"]


def requirements_of(constraints: Constraints, encoding: Encoding) -> dict[str, Requirement]:
    """What is required of each variable of a table; patterns pass over variables that are left out."""
    _refuse_pairs(constraints, encoding.variables)
    found = match(constraints, encoding.variables, "variable")
    for name, requirement in found.items():
        if name in encoding.dropped:
            if name in (constraints or ()):
                raise ValueError(f"constraints: the variable {name!r} is left out: {encoding.dropped[str(name)]}.")
        elif isinstance(encoding.variable(str(name)), Category):
            raise ValueError(
                f"constraints: {name!r} is a category without an order, and {requirement.text!r} needs one: make it an "
                f"ordered categorical, such as pd.Categorical(table[{name!r}], categories=[...], ordered=True), or a "
                "number."
            )
    return {str(name): one for name, one in found.items() if name not in encoding.dropped}


def _refuse_pairs(constraints: Constraints, variables: Sequence[str]) -> None:
    """Refuse constraints on pairs by what they are, not as unknown names."""
    for given in constraints if isinstance(constraints, Mapping) else ():
        pair = tuple(given) if isinstance(given, tuple) else tuple(str(given).split(":"))
        if given not in variables and len(pair) == 2 and set(pair) <= set(variables):
            raise ValueError(
                f"constraints: {given!r} is a pair, and pairs take no constraints: give them to {pair[0]!r} or "
                f"{pair[1]!r}, which then are in no pairs."
            )


def without_pairs(encoding: Encoding, names: Sequence[str], wanted: PairsLike) -> Encoding:
    """An encoding without the pairs of variables that have constraints; those that a user wants by name are refused.

    In a pair, the effect of a variable is another one for every value of the other, and a constraint would have to
    hold for all of them.
    """
    constrained = set(names)
    asked = [tuple(wanted["with"])] if isinstance(wanted, Mapping) else wanted if isinstance(wanted, tuple) else []
    for pair in asked:
        if found := [name for name in pair if name in constrained]:
            raise ValueError(
                f"pairs: {found[0]!r} has a constraint, which may not hold in a pair: leave out its pairs, or its "
                "constraint."
            )
    left_out = {l for l, term in enumerate(encoding.terms) if constrained & set(term.variables)}
    pairs = encoding.pairs.without(left_out)
    if len(pairs) == len(encoding.pairs):
        return encoding
    return encoding.with_pairs(pairs, f"Variables with constraints are in no pairs: {listed(names)}.")


def term_constraints(
    requirements: Mapping[str, Requirement], encoding: Encoding, always: Sequence[int]
) -> list[Constraint]:
    """The inequalities that the terms of a table keep."""
    found = []
    for name, requirement in requirements.items():
        fitted = encoding.variable(name)
        assert isinstance(fitted, Number | Date)
        number = fitted.trend if isinstance(fitted, Date) else fitted
        terms = [l for l in encoding.terms_of(name) if encoding.terms[l].kind in ("linear", "curve", "detail")]
        check_bounds(requirement, requirement.slopes, name, terms[0] in set(always))
        A, low = _rows(number, requirement)
        found.append(Constraint(tuple(terms), A, low, name, requirement.text))
    return found


def _rows(number: Number, requirement: Requirement) -> tuple[FloatArray, FloatArray]:
    """The inequalities on the columns of a number: its line and flag, its curve and its detail.

    Beyond the range of fit the line goes on alone. Its slope lies between those of the effect, because the curve is
    orthogonal to it, so that bounding it excludes nothing.
    """
    first = 2 if number.share_missing else 1
    width = first + number.values.shape[1]
    line = np.zeros((1, width))
    line[0, 0] = 1.0
    slope, bend = line, np.empty((0, width))
    if number.values.size:
        inside = slopes(number.knots) @ number.values
        slope = np.vstack([line, np.hstack([np.repeat(line[:, :first], len(inside), axis=0), inside])])
        curved = (bends(number.knots) @ number.values)[1:-1]
        bend = np.hstack([np.zeros((len(curved), first)), curved])
    A: list[FloatArray] = [np.empty((0, width))]
    b: list[FloatArray] = [np.empty(0)]
    low, high = requirement.slopes
    for sign, bound in ((1.0, low), (-1.0, -high)):
        if np.isfinite(bound):
            A.append(sign * slope)
            b.append(np.full(len(slope), bound * number.sd))
    if requirement.convex:
        A.append(requirement.convex * bend)
        b.append(np.zeros(len(bend)))
    return np.concatenate(A), np.concatenate(b)
