"""The option ``--constraint``: what is known of variables, groups and columns beforehand."""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.tables import TableError
from covey.terms.requirements import SHAPES

# A name may hold any of these marks, so that the last one counts.
MARK = re.compile(r"(.*?)(<=|>=|=)((?:(?!<=|>=|=).)*)", re.DOTALL)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
BOUNDS = re.compile(rf"({NUMBER})?:({NUMBER})?")


def read_constraints(given: Sequence[str]) -> dict[str, object] | None:
    """The estimator's `constraints` for the texts of the option; several of one name are joined.

    >>> read_constraints(["price<=0", "dose=0:2", "age=increasing,concave", "age<=3"])
    {'price': '<=0', 'dose': (0.0, 2.0), 'age': ['increasing', 'concave', '<=3']}
    """
    found: dict[str, list[object]] = {}
    for text in given:
        parts = MARK.fullmatch(text)
        if parts is None or not parts[1].strip() or not parts[3].strip():
            raise TableError(f"--constraint {text!r} must be such as 'price<=0', dose=0:2 or age=increasing.")
        name, mark, what = parts[1].strip(), parts[2], parts[3].strip()
        if mark != "=" and not re.fullmatch(NUMBER, what):
            raise TableError(f"--constraint {text!r}: a number such as 0 must follow {mark}.")
        values = [f"{mark}{what}"] if mark != "=" else [_value(word.strip(), text) for word in what.split(",")]
        found.setdefault(name, []).extend(values)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()} or None


def _value(word: str, text: str) -> object:
    """A shape, or bounds such as 0:2, where an end may be left out."""
    if word in SHAPES:
        return word
    bounds = BOUNDS.fullmatch(word)
    if bounds is None or bounds[1] is bounds[2] is None:
        raise TableError(f"--constraint {text!r}: {word!r} is not {', '.join(SHAPES)}, or bounds such as 0:2.")
    return tuple(None if end is None else float(end) for end in bounds.groups())
