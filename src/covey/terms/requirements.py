"""What a user says about coefficients beforehand: signs, bounds and shapes, by name or pattern.

A `Requirement` is what one name must keep. Here requirements become linear inequalities on the terms of a table, in
`covey.estimators.constraints` those on groups of columns. The effect of a number is a line plus a curve plus a detail,
so that a constraint is on the coefficients of all three. What is not in a model is zero: a line alone only needs a
slope with the right sign.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from covey.search.constraints.cone import Constraint
from covey.tables.complaint import listed, near
from covey.terms.dates import Date
from covey.terms.encoding import Encoding
from covey.terms.levels import Category
from covey.terms.numbers import Number
from covey.terms.pairs import PairsLike
from covey.terms.splines import bends, slopes
from covey.validation import FloatArray

# What is accepted as ``constraints=``. The keys, which are names of groups or patterns, have any one type.
Constraints: TypeAlias = Mapping[Any, object] | None

# Words for shapes, each with its opposite.
SHAPES = {"increasing": "decreasing", "decreasing": "increasing", "convex": "concave", "concave": "convex"}
SIGN = re.compile(r"\s*(<=|>=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
HOW = (
    "'>=0', '<=0', bounds such as (0, 2), 'increasing', 'decreasing', 'convex' or 'concave', or a list of some of these"
)


@dataclass(frozen=True)
class Requirement:
    """Bounds of a coefficient or slope, and the shape of an effect."""

    # infinite if there is none
    low: float = -np.inf
    high: float = np.inf
    # 1 for increasing or convex, -1 for decreasing or concave, 0 for neither
    increasing: int = 0
    convex: int = 0

    @cached_property
    def text(self) -> str:
        """In words, as a user may write it."""
        parts = [("", "increasing", "decreasing")[self.increasing], ("", "convex", "concave")[self.convex]]
        if np.isfinite(self.low) and np.isfinite(self.high):
            parts.append(f"{self.low:g} to {self.high:g}")
        elif np.isfinite(self.low):
            parts.append(f">={self.low:g}")
        elif np.isfinite(self.high):
            parts.append(f"<={self.high:g}")
        return ", ".join(filter(None, parts))

    @property
    def slopes(self) -> tuple[float, float]:
        """The bounds of a slope, to which the direction of the effect contributes."""
        low, high = one_sided(self.increasing)
        return max(self.low, low), min(self.high, high)


def opposite(value: object) -> object:
    """What a user wants of a name, for the odds of the other of two classes; what is none of it stays.

    >>> opposite([">=0", "convex"]), opposite((0, 2))
    (['<=0', 'concave'], (-2, 0))
    """
    if isinstance(value, list):
        return [opposite(part) for part in value]
    if isinstance(value, tuple):
        return tuple(None if end is None else 0 - end for end in reversed(value))
    if isinstance(value, str) and (sign := SIGN.fullmatch(value)):
        return f"{'<=' if sign[1] == '>=' else '>='}{0 - float(sign[2]):g}"
    return SHAPES.get(value, value) if isinstance(value, str) else value


def opposite_text(text: str) -> str:
    """The text of a requirement, for the odds of the other of two classes.

    >>> opposite_text("increasing, 0 to 2")
    'decreasing, -2 to 0'
    """
    parts = [tuple(map(float, part.split(" to "))) if " to " in part else part for part in text.split(", ")]
    return read_requirement(opposite(parts), "").text


def read_requirement(value: object, name: object) -> Requirement:
    """What a user wants of a name."""
    whole = f"constraints: {name!r}"
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise ValueError(f"{whole} must be {HOW}, not an empty list.")
    if parts is value and all(part is None or isinstance(part, int | float) for part in parts):
        raise ValueError(f"{whole}: a list has several requirements, and bounds are a tuple: give {tuple(parts)!r}.")
    words = [part.strip() for part in parts if isinstance(part, str) and part.strip() in SHAPES]
    for one in ("increasing", "convex"):
        if one in words and SHAPES[one] in words:
            raise ValueError(f"{whole} cannot be both {one} and {SHAPES[one]}: choose one.")
    bounds = [_bounds(part, whole) for part in parts if not (isinstance(part, str) and part.strip() in SHAPES)]
    low, high = max((a for a, _ in bounds), default=-np.inf), min((b for _, b in bounds), default=np.inf)
    increasing, convex = (int(one in words) - int(SHAPES[one] in words) for one in ("increasing", "convex"))
    return Requirement(low, high, increasing, convex)


def _bounds(part: Any, whole: str) -> tuple[float, float]:
    """The bounds that a part of a requirement gives."""
    if isinstance(part, str) and (sign := SIGN.fullmatch(part)):
        number = float(sign[2])
        return (number, np.inf) if sign[1] == ">=" else (-np.inf, number)
    if isinstance(part, tuple) and len(part) == 2:
        try:
            low, high = (
                default if end is None else float(end) for end, default in zip(part, (-np.inf, np.inf), strict=True)
            )
        except (TypeError, ValueError):
            low = high = np.nan
        if not (np.isnan(low) or np.isnan(high)):
            if low > high:
                raise ValueError(f"{whole}: the bounds {part!r} are reversed: give ({high:g}, {low:g}).")
            if low < high:
                return low, high
            raise ValueError(
                f"{whole}: the bounds {part!r} leave one value: give a fixed effect as an offset, or leave it out."
            )
    raise ValueError(f"{whole} must be {HOW}, not {part!r}.")


def match(
    constraints: Constraints, names: Sequence[Hashable], what: str, others: Sequence[str] = ()
) -> dict[Hashable, Requirement]:
    """What is required of each of some names, which are matched exactly or, with ``*``, ``?`` or ``[``, by a pattern.

    A name wins over patterns. Patterns that require different things of a name are refused. A pattern is one for
    `others` if it matches none of the names.
    """
    if not isinstance(constraints, Mapping):
        raise ValueError(f"constraints must be a dict such as {{'price': '<=0'}}, not {constraints!r}.")
    known, exact = {*names, *others}, dict[Hashable, Requirement]()
    by_pattern: dict[Hashable, tuple[str, Requirement]] = {}
    read: dict[str, Requirement] = {}
    for given, value in constraints.items():
        if (key := repr(value)) not in read:  # many names may have the same requirement
            read[key] = read_requirement(value, given)
        requirement = read[key]
        if given in known:
            exact[given] = requirement
            continue
        tried = (names, others) if isinstance(given, str) else ()
        found = next((some for some in ([n for n in one if fnmatchcase(str(n), given)] for one in tried) if some), [])
        if not found:
            kind = f"{what} that matches" if isinstance(given, str) and set(given) & set("*?[") else what
            hint = near(str(given), [*map(str, names), *others])
            raise ValueError(f"constraints: there is no {kind} {given!r}; {hint}")
        for name in found:
            pattern, other = by_pattern.setdefault(name, (str(given), requirement))
            if other != requirement and name not in constraints:
                raise ValueError(
                    f"constraints: the patterns {pattern!r} and {given!r} contradict each other for {name!r} "
                    f"({other.text}; {requirement.text}): name {name!r} itself as well."
                )
    return {name: requirement for name, (_, requirement) in by_pattern.items()} | exact


def check_bounds(requirement: Requirement, bounds: tuple[float, float], name: object, always: bool) -> None:
    """Refuse bounds that leave no choice, and those that exclude zero where a model may be without the name."""
    low, high = bounds
    if low >= high:
        raise ValueError(
            f"constraints: {requirement.text!r} leaves no choice for {name!r}: give one of these, or leave it out."
        )
    if not always and (low > 0 or high < 0):
        raise ValueError(
            f"constraints: {requirement.text} for {name!r} excludes zero, but a model may be without it: give "
            f"always=[{name!r}], or bounds that include zero."
        )


def requirements_of(constraints: Constraints, encoding: Encoding) -> dict[str, Requirement]:
    """What is required of each variable of a table; patterns pass over variables that are left out."""
    variables = encoding.variables
    for given in constraints if isinstance(constraints, Mapping) else ():
        pair = tuple(given) if isinstance(given, tuple) else tuple(str(given).split(":"))
        if given not in variables and len(pair) == 2 and set(pair) <= set(variables):
            raise ValueError(
                f"constraints: {given!r} is a pair, and pairs take no constraints: give them to {pair[0]!r} or "
                f"{pair[1]!r}, which then are in no pairs."
            )
    found = match(constraints, variables, "variable")
    for name, requirement in found.items():
        if name in encoding.dropped:
            if name in (constraints or ()):
                raise ValueError(f"constraints: the variable {name!r} is left out: {encoding.dropped[str(name)]}.")
        elif isinstance(encoding.variable(str(name)), Category):
            raise ValueError(
                f"constraints: {name!r} is a category without an order, and {requirement.text!r} needs one: give "
                f"numbers in place of its levels, such as 1, 2 and 3, or pd.Categorical(table[{name!r}], "
                "categories=[...], ordered=True)."
            )
    return {str(name): one for name, one in found.items() if name not in encoding.dropped}


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
    slope, bend = np.eye(1, width), np.empty((0, width))
    if number.values.size:
        inside = slopes(number.knots) @ number.values
        slope = np.vstack([slope, np.hstack([np.tile(np.eye(1, first), (len(inside), 1)), inside])])
        curved = (bends(number.knots) @ number.values)[1:-1]
        bend = np.hstack([np.zeros((len(curved), first)), curved])
    low, high = requirement.slopes
    return inequalities(width, (slope, low * number.sd, high * number.sd), (bend, *one_sided(requirement.convex)))


def one_sided(direction: int) -> tuple[float, float]:
    """Bounds of what has a sign: 1 for not negative, -1 for not positive, 0 for any."""
    return (0.0 if direction > 0 else -np.inf), (0.0 if direction < 0 else np.inf)


def inequalities(width: int, *parts: tuple[FloatArray, float, float]) -> tuple[FloatArray, FloatArray]:
    """A and b such that ``A w >= b`` keeps the products of some matrices with w between their bounds."""
    A: list[FloatArray] = [np.empty((0, width))]
    b: list[FloatArray] = [np.empty(0)]
    for rows, low, high in parts:
        for sign, bound in ((1.0, low), (-1.0, -high)):
            if np.isfinite(bound):
                A.append(sign * rows)
                b.append(np.full(len(rows), bound))
    return np.concatenate(A), np.concatenate(b)
