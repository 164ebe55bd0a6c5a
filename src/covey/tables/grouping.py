"""Groups of columns from a file, a size, a separator or patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

import pandas as pd

from covey.groups import Groups
from covey.groups.checks import is_separator
from covey.tables.complaint import TableError, listed, near
from covey.tables.marks import are_codes
from covey.tables.reading import read_table

Specs = str | Sequence[str] | None


def read_groups(specs: Specs, columns: Sequence[str]) -> Groups:
    """Read ``--groups``.

    A file of (column, group); a size (1: each column is a group with its name); a separator such as ``_`` or ``sep:__``
    that ends the group's name; ``regex:PATTERN``, whose first parentheses capture the group's name; or name patterns,
    one per group, such as ``gene01_*`` or ``size=h_*``, where each column that matches none is its own group.
    With None each column is its own group.

    >>> read_groups("sep:_", ["gene01_b1", "gene01_b2", "gene02_b1"]).names
    ('gene01', 'gene02')
    >>> read_groups("regex:(g[0-9])", ["g1x", "g2y", "g1z"]).labels.tolist()
    [0, 1, 0]
    >>> read_groups(["a_*", "size=[hw]"], ["a_1", "h", "a_2", "w", "z"]).names
    ('a', 'size', 'z')
    """
    wanted = [specs] if isinstance(specs, str) else list(specs or ())
    if len(wanted) != 1:
        return _by_patterns(wanted, columns)
    (spec,) = wanted
    if Path(spec).is_file():
        return _from_file(Path(spec), columns)
    if spec.startswith("regex:"):
        return _by_expression(spec.removeprefix("regex:"), columns)
    try:
        if spec.isdecimal() and not are_codes([spec]):  # 00731 is a name
            return Groups.coerce(None if int(spec) == 1 else int(spec), len(columns), columns)
    except ValueError as reason:
        raise TableError(f"--groups {int(spec)}: {reason}") from None
    try:
        if is_separator(spec):
            return Groups.from_separator(spec.removeprefix("sep:"), columns)
    except ValueError as reason:
        raise TableError(f"--{reason}") from None
    return _by_patterns(wanted, columns)


def _by_expression(pattern: str, columns: Sequence[str]) -> Groups:
    try:
        expression = re.compile(pattern)
    except re.error as reason:
        raise TableError(f"--groups regex:{pattern} is not a regular expression: {reason}.") from None
    if not expression.groups:
        raise TableError(
            f"--groups regex:{pattern} has no parentheses; put them around the group's name, as in (gene[0-9]+)_."
        )
    labels = []
    for name in columns:
        found = expression.match(name)
        label = found.group(1) if found else None
        if label is None:
            raise TableError(
                f"--groups regex:{pattern} does not match the start of column {name!r}; every column needs a "
                "group. Leave it out with --drop, or make the expression more general."
            )
        labels.append(label)
    return Groups.from_labels(labels, columns=columns)


def _by_patterns(patterns: Sequence[str], columns: Sequence[str]) -> Groups:
    label_of: dict[str, str] = {}
    for item in patterns:
        name, equals, pattern = item.partition("=")
        if not equals:
            name, pattern = _stem(item), item
        if not has_magic(pattern) and pattern not in columns:
            raise TableError(
                f"--groups {item!r} is not a file, size or pattern; give a file of (column, group), a size, a "
                "separator such as _, regex:PATTERN with parentheses, or patterns such as 'gene01_*'."
            )
        members = [column for column in columns if fnmatchcase(column, pattern)]
        if not members:
            raise TableError(f"--groups {item!r} matches no column; the columns are {listed(columns)}.")
        for column in members:
            if label_of.setdefault(column, name) != name:
                raise TableError(
                    f"--groups puts column {column!r} into both {label_of[column]!r} and {name!r}; groups must not "
                    "overlap."
                )
    return Groups.from_labels([label_of.get(column, column) for column in columns], columns=columns)


def _stem(pattern: str) -> str:
    """The name of a pattern's group.

    >>> _stem("gene01_*"), _stem("*")
    ('gene01', '*')
    """
    return pattern.rstrip("*?").rstrip("_.-: ") or pattern


def _from_file(path: Path, columns: Sequence[str]) -> Groups:
    table = read_table(path)
    if table.shape[1] != 2:
        raise TableError(f"{path} must have two columns, column and group, not {table.shape[1]}.")
    if table.columns[0] in columns:  # no header: the first line is data
        first = pd.DataFrame([list(table.columns)], columns=table.columns)
        table = pd.concat([first, table.astype(str)], ignore_index=True)
    names = table.iloc[:, 0].astype(str)
    twice = names[names.duplicated()].unique()
    known = set(names)
    complaints = (
        ("names columns that the data lack", sorted(known - set(columns))),
        ("gives no group to", [name for name in columns if name not in known]),
        ("names columns more than once", sorted(twice)),
        ("has no group beside", sorted(names[table.iloc[:, 1].isna()])),
    )
    for what, which in complaints:
        if which:
            hint = f" For {which[0]!r}, {near(which[0], list(columns))}" if which[0] not in columns else ""
            raise TableError(f"{path} {what}: {listed(which)}.{hint}")
    label_of = dict(zip(names, table.iloc[:, 1], strict=True))
    labels = [label_of[name] for name in columns]
    if not all(isinstance(label, int) for label in labels):
        labels = [str(label) for label in labels]
    return Groups.from_labels(labels, columns=columns)
