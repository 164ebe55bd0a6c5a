"""Checks that groups are a partition of the columns."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Sequence
from glob import has_magic

import numpy as np

from covey.validation import IntArray, as_int_vector, listed, name_columns


def plural(count: int, noun: str) -> str:
    """A count with its noun: '1 column', '2 columns'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def column_names(columns: Iterable[object] | None, n_columns: int | None = None) -> tuple[str, ...] | None:
    """The names of all columns as text; None if they are not known."""
    if columns is None:
        return None
    names = tuple(map(str, listed(columns, "columns")))
    if n_columns is not None and len(names) != n_columns:
        raise ValueError(f"{len(names)} column names were given for {n_columns} columns.")
    return names


def group_names(names: Iterable[Hashable] | None, n_groups: int) -> tuple[Hashable, ...]:
    """The names of the groups, which must differ; 0, 1, ... if none were given."""
    given = tuple(range(n_groups)) if names is None else tuple(listed(names, "names"))
    if len(given) != n_groups:
        raise ValueError(f"{len(given)} group names were given for {n_groups} groups.")
    unusable = [name for name in given if not isinstance(name, Hashable)]
    if unusable:
        raise ValueError(f"names must be numbers or text, one per group, not {unusable[0]!r}.")
    if len(set(given)) != len(given):
        twice = sorted({str(name) for name in given if given.count(name) > 1})
        raise ValueError(f"Group names must be unique; given more than once: {', '.join(twice)}.")
    return given


def check_label(label: object, j: int, columns: Sequence[str] | None) -> Hashable:
    """A label as a Python object; one that is neither an integer nor text, or is missing, is a mistake."""
    if isinstance(label, bool | np.bool_ | str | int | np.integer):
        return label.item() if isinstance(label, np.generic) else label
    where = name_columns([j], columns)
    if _is_missing(label):
        raise ValueError(f"The group label of {where} is missing.")
    kind = f"the float {label!r}" if isinstance(label, numbers.Real) else f"a {type(label).__name__}"
    raise ValueError(f"The group label of {where} is {kind}; labels are integers or text.")


def _is_missing(label: object) -> bool:
    """Whether a label is None, NaN or pandas.NA, whose truth value raises."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def check_partition(
    every: IntArray, group: IntArray, n_columns: int, names: tuple[Hashable, ...], columns: tuple[str, ...] | None,
    overlap: bool = False,
) -> None:  # fmt: skip
    """Check that every column is in exactly one group (with `overlap`, at least one) and in no group twice.

    `every` has the columns of all groups one after another, and `group` the position of each one's group.
    """
    outside = (every < 0) | (every >= n_columns)
    if outside.any():
        l = group[np.argmax(outside)]
        raise ValueError(
            f"Group {names[l]!r} names {name_columns(every[outside & (group == l)])}, "
            f"but there are {n_columns} columns, numbered 0 to {n_columns - 1}."
        )
    if overlap:
        pairs, times = np.unique(group * n_columns + every, return_counts=True)
        if (twice := pairs[times > 1]).size:
            l = twice[0] // n_columns
            repeated = name_columns(twice[twice // n_columns == l] % n_columns, columns)
            raise ValueError(f"Group {names[l]!r} lists {repeated} more than once.")
    counts = np.bincount(every, minlength=n_columns)
    twice = np.flatnonzero(counts > 1)
    if twice.size and not overlap:
        j = int(twice[0])
        where = [repr(names[l]) for l in group[every == j]]
        raise ValueError(
            f"Groups must not overlap: {name_columns(twice, columns)} {'is' if twice.size == 1 else 'are'} listed more "
            f"than once ({columns[j] if columns else j} in groups {', '.join(where)}). If groups should share columns, "
            "use Groups.from_lists(..., overlap=True)."
        )
    missing = np.flatnonzero(counts == 0)
    if missing.size:
        verb = "has" if missing.size == 1 else "have"
        raise ValueError(f"Every column needs a group: {name_columns(missing, columns)} {verb} none.")


def as_positions(
    groups: list[list[int | str]], columns: tuple[str, ...] | None, names: tuple[Hashable, ...]
) -> list[IntArray]:
    """The columns of each group by position; they may be given by name."""
    if any(isinstance(c, str) for members in groups for c in members):
        if columns is None:
            raise ValueError("Groups given by column names need the names of all columns: pass columns=.")
        where: dict[str, int] = {}
        for j, column in enumerate(columns):
            if where.setdefault(column, j) != j:
                raise ValueError(f"Column name {column!r} occurs twice (columns {where[column]} and {j}).")
        for name, members in zip(names, groups, strict=True):
            if unknown := [c for c in members if isinstance(c, str) and c not in where]:
                raise ValueError(f"Group {name!r} names unknown columns: {', '.join(map(repr, unknown[:6]))}.")
        groups = [[where[c] if isinstance(c, str) else c for c in members] for members in groups]
    if [] in groups:
        raise ValueError(f"Group {groups.index([])} is empty; every group needs at least one column.")
    return [as_int_vector(members, f"The columns of group {l}") for l, members in enumerate(groups)]


def is_nested(groups: Iterable[object]) -> bool:
    """Whether a sequence holds lists of columns rather than labels."""
    if hasattr(groups, "to_numpy"):
        return False
    first = next(iter(groups), None)
    return isinstance(first, Iterable) and not isinstance(first, str | bytes)


def is_separator(spec: str) -> bool:
    """Whether a string is a separator between the name of a group and the rest of a column's name.

    >>> [spec for spec in ("_", "__", "sep:x", "x", "*", "") if is_separator(spec)]
    ['_', '__', 'sep:x']
    """
    if spec.startswith("sep:"):
        return len(spec) > 4
    return bool(spec) and not any(c.isalnum() for c in spec) and not has_magic(spec)
