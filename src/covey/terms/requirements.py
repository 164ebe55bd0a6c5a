"""What a user says about coefficients beforehand: signs, bounds and shapes, by name or pattern.

A `Requirement` is what one name must keep. `covey.terms.shapes` turns requirements into linear inequalities on terms,
and `covey.estimators.constraints` into those on groups of columns.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import numpy as np

from covey.tables.complaint import near

__all__ = [
    "SHAPES",
    "Constraints",
    "Requirement",
    "check_bounds",
    "match",
    "opposite",
    "opposite_text",
    "read_requirement",
]

# What is accepted as ``constraints=``. The keys, which are names of groups or patterns, have any one type.
Constraints: TypeAlias = Mapping[Any, object] | None

SHAPES = ("increasing", "decreasing", "convex", "concave")
OPPOSITES = dict(zip(SHAPES, ("decreasing", "increasing", "concave", "convex"), strict=True))
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

    @property
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
        low = max(self.low, 0.0) if self.increasing > 0 else self.low
        return low, min(self.high, 0.0) if self.increasing < 0 else self.high


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
    return OPPOSITES.get(value, value) if isinstance(value, str) else value


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
    low, high, increasing, convex = -np.inf, np.inf, 0, 0
    parts = value if isinstance(value, list) else [value]
    if not parts:
        raise ValueError(f"{whole} must be {HOW}, not an empty list.")
    if parts is value and all(part is None or isinstance(part, int | float) for part in parts):
        raise ValueError(f"{whole}: a list has several requirements, and bounds are a tuple: give {tuple(parts)!r}.")
    for part in parts:
        if isinstance(part, str) and part.strip() in SHAPES:
            word = part.strip()
            sign = 1 if word in ("increasing", "convex") else -1
            if word.endswith("creasing"):
                if increasing == -sign:
                    raise ValueError(f"{whole} cannot be both increasing and decreasing: choose one.")
                increasing = sign
            else:
                if convex == -sign:
                    raise ValueError(f"{whole} cannot be both convex and concave: choose one.")
                convex = sign
            continue
        a, b = _bounds(part, whole)
        low, high = max(low, a), min(high, b)
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
    for given, value in constraints.items():
        requirement = read_requirement(value, given)
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
            f"constraints: {requirement.text} for {name!r} excludes zero, but a model may be without it: add it to "
            f"always=[{name!r}], or give bounds that include zero."
        )
