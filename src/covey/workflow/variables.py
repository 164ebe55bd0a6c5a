"""The options about the variables of a table: which are straight, curved or levels, and which pairs are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from covey.settings import FitSettings, TableSettings
from covey.tables.columns import apart, find_columns
from covey.tables.complaint import TableError, listed
from covey.terms import Curve, Levels, Linear, PairsLike, Terms

# The prefix of a variable all pairs with which are wanted.
WITH = "with:"


def read_terms(settings: TableSettings, frame: pd.DataFrame, elsewhere: Mapping[str, str]) -> Terms:
    """The terms that the options describe, for these variables; other columns are used `elsewhere`, by an option."""
    columns = list(frame.columns)
    kinds: dict[str, object] = {}
    option_of: dict[tuple[str, bool], str] = {}
    for option, given in (("--linear", settings.linear), ("--curve", settings.curve), ("--levels", settings.levels)):
        for name, kind, by_name in _kinds(option, given, columns, elsewhere):
            if option_of.setdefault((name, by_name), option) != option:
                raise TableError(
                    f"Column {name!r} is given to both {option_of[name, by_name]} and {option}; choose one."
                )
            if by_name or (name, True) not in option_of:  # a name wins over a pattern
                kinds[name] = kind
    if not isinstance(settings, FitSettings):
        return Terms(kinds, pairs=None)
    return Terms(kinds, pairs=read_pairs(settings.pairs, columns, elsewhere)) if settings.pairs else Terms(kinds)


def _kinds(
    option: str, given: Sequence[str], columns: list[str], elsewhere: Mapping[str, str]
) -> Iterator[tuple[str, object, bool]]:
    """What an option says of each variable, and whether it names the variable or has a pattern that matches it."""
    commas = {item for item in given if item.rpartition(":")[0] in columns}  # a column may be called a,b
    for item in apart(given, {*columns, *commas}):
        name, curve = _curve(item, columns) if option == "--curve" else (item, None)
        kind = curve or (Linear() if option == "--linear" else Levels())
        _refuse_elsewhere(f"{option} {item}", name, elsewhere)
        for column in find_columns(name, columns, option):
            yield column, kind, column == name


def _curve(item: str, columns: Sequence[str]) -> tuple[str, Curve]:
    name, colon, number = item.rpartition(":")
    if item in columns or not colon or not number.isdigit():
        return item, Curve()
    if int(number) < 3:
        raise TableError(f"--curve {item}: a curve has at least 3 knots, not {number}; --linear {name} has none.")
    return name, Curve(knots=int(number))


def read_pairs(given: Sequence[str], columns: Sequence[str], elsewhere: Mapping[str, str]) -> PairsLike:
    """The pairs of variables for ``--pairs``, in the form that `Terms` takes.

    >>> read_pairs(["age:sex,age:bmi"], ["age", "sex", "bmi"], {})
    [('age', 'sex'), ('age', 'bmi')]
    >>> read_pairs(["with:sex"], ["age", "sex", "bmi"], {})
    {'with': ['sex']}
    """
    if list(given) in (["none"], ["auto"]):
        return None if given[0] == "none" else "auto"
    items = [part.strip() for text in given for part in text.split(",") if part.strip()]
    alone = [item for item in items if item in ("none", "auto")]
    if alone:
        raise TableError(f"--pairs {alone[0]} cannot be combined with {listed([i for i in items if i != alone[0]])}.")
    beside = [item.removeprefix(WITH) for item in items if item.startswith(WITH) and not _split(item, columns)]
    if not beside:
        return [_pair(item, columns, elsewhere) for item in items]
    # in with:a,b the b is another variable that pairs are tried with
    names = [item.removeprefix(WITH) for item in items]
    for name in names:
        _refuse_elsewhere(f"--pairs with:{name}", name, elsewhere)
    return {"with": names}


def _pair(item: str, columns: Sequence[str], elsewhere: Mapping[str, str]) -> tuple[str, str]:
    if split := _split(item, columns):
        return split
    left, colon, right = item.partition(":")
    if not colon:
        raise TableError(
            f"--pairs {item!r} is not a pair such as age:sex; give none, auto, pairs, or with:{item} for all pairs "
            "with one variable."
        )
    for name in (left, right):
        _refuse_elsewhere(f"--pairs {item}", name, elsewhere)
    return left, right


def _split(item: str, columns: Sequence[str]) -> tuple[str, str] | None:
    """The two variables of a pair; names may contain colons."""
    places = [k for k, c in enumerate(item) if c == ":"]
    return next(((item[:k], item[k + 1 :]) for k in places if item[:k] in columns and item[k + 1 :] in columns), None)


def _refuse_elsewhere(where: str, name: str, elsewhere: Mapping[str, str]) -> None:
    """Refuse a column that another option uses, and so is no variable."""
    if name in elsewhere:
        raise TableError(f"{where}: {name!r} is the column of {elsewhere[name]}, so it predicts nothing.")
