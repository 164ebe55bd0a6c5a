"""Named groups of columns, stored group by group.

They are frozen and validated once, on construction; internal code can rely on it. They are stored as the concatenation
of the groups' members plus the offsets at which each group starts. This is the *contiguous layout* that the kernels
work in: there, group ``l`` is the slice ``starts[l]:starts[l + 1]``, whatever the order of the user's columns.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from covey.groups.checks import as_positions, check_partition, column_names, group_names, plural
from covey.layout import offsets
from covey.validation import Array, IntArray, as_int_vector, as_numbers, boolean, is_sparse, listed, whole

# The most groups that a message names.
MOST_NAMES = 6


class StoredGroups:
    """The columns of each group, by name and by position, and arrays in the order of the groups."""

    __slots__ = ("_labels", "columns", "members", "names", "starts")

    names: tuple[Hashable, ...]
    columns: tuple[str, ...] | None
    members: IntArray
    starts: IntArray
    _labels: IntArray

    def __init__(
        self, lists: Iterable[Iterable[int | str]], n_columns: int | None = None, *,
        names: Iterable[Hashable] | None = None, columns: Iterable[str] | None = None, overlap: bool = False,
    ) -> None:  # fmt: skip
        given = [listed(members, f"The columns of group {l}") for l, members in enumerate(listed(lists, "lists"))]
        if not given:
            raise ValueError("No groups were given: give at least one list of columns.")
        of_columns = column_names(columns, None if n_columns is None else whole(n_columns, "n_columns"))
        of_groups, overlap = group_names(names, len(given)), boolean(overlap, "overlap")
        members_of = as_positions(given, of_columns, of_groups)
        every, sizes = np.concatenate(members_of), [len(members) for members in members_of]
        if n_columns is None:
            known = every.max() + 1 if overlap else every.size
            n_columns = whole(known if of_columns is None else len(of_columns), "n_columns")
        check_partition(every, np.repeat(np.arange(len(sizes)), sizes), n_columns, of_groups, of_columns, overlap)
        members = np.concatenate([np.sort(members) for members in members_of])
        self._freeze(members, offsets(sizes), of_groups, of_columns, n_columns)

    def _freeze(
        self, members: IntArray, starts: IntArray, names: tuple[Hashable, ...], columns: tuple[str, ...] | None,
        n_columns: int,
    ) -> None:  # fmt: skip
        labels = np.empty(n_columns, dtype=np.intp)
        labels[members] = np.repeat(np.arange(len(names)), np.diff(starts))
        for array in (members, starts, labels):
            array.flags.writeable = False
        values = {"names": names, "columns": columns, "members": members, "starts": starts, "_labels": labels}
        for slot, value in values.items():
            object.__setattr__(self, slot, value)

    @classmethod
    def _trusted(
        cls, members: IntArray, starts: IntArray, names: tuple[Hashable, ...], columns: tuple[str, ...] | None,
        n_columns: int | None = None,
    ) -> Self:  # fmt: skip
        """Groups that are known to hold every column, without checks, which are slow for a million columns.

        They are a partition unless `n_columns` is less than the number of members.
        """
        groups = cls.__new__(cls)
        groups._freeze(members, starts, names, columns, members.size if n_columns is None else n_columns)
        return groups

    @classmethod
    def _united(cls, members: Mapping[Hashable, IntArray], n_columns: int, columns: tuple[str, ...] | None) -> Self:
        """Groups of sorted columns that hold every column, some perhaps several times, by name."""
        starts = offsets([len(some) for some in members.values()])
        return cls._trusted(np.concatenate(list(members.values())), starts, tuple(members), columns, n_columns)

    def with_columns(self, columns: Iterable[str]) -> Self:
        """The same groups, with names for the columns."""
        names = column_names(columns, self.n_columns)
        return self._trusted(self.members, self.starts, self.names, names, self.n_columns)

    def apart(self) -> Self:
        """The groups of a design that repeats shared columns: one copy per group, group by group."""
        return self._trusted(np.arange(self.members.size), self.starts, self.names, None)

    @property
    def n_groups(self) -> int:
        """The number of groups, L in the paper."""
        return len(self.names)

    @property
    def n_columns(self) -> int:
        """The number of columns, p in the paper."""
        return self._labels.size

    @property
    def sizes(self) -> IntArray:
        """The number of columns of each group, p_l in the paper."""
        return np.diff(self.starts)

    @property
    def labels(self) -> IntArray:
        """The position of each column's group, g(i) in the paper; shape (n_columns,)."""
        if self.overlapping:
            raise ValueError(
                "These groups overlap, so a column has no single group. limit_path and the estimators take overlapping "
                "groups; what you called does not."
            )
        return self._labels

    @property
    def overlapping(self) -> bool:
        """Whether any column is in several groups."""
        return self.members.size > self._labels.size

    def lists(self) -> list[IntArray]:
        """The columns of each group, as a list of index arrays."""
        return np.split(self.members, self.starts[1:-1])

    def column_name(self, j: int) -> str:
        """The name of a column, or its position if names are not known."""
        return str(j) if self.columns is None else self.columns[j]

    def __len__(self) -> int:
        return self.n_groups

    def position(self, name: Hashable) -> int:
        """The position of the group with this name.

        >>> from covey import Groups
        >>> Groups.from_labels(["age", "bmi", "age"]).position("bmi")
        1
        """
        try:
            return self.names.index(name)
        except ValueError:
            near = get_close_matches(str(name), list(map(str, self.names)), 3)
            some = ", ".join(map(repr, self.names[:MOST_NAMES])) + (", ..." if len(self.names) > MOST_NAMES else "")
            hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The groups are {some}."
            raise KeyError(f"There is no group named {name!r}. {hint}") from None

    def positions(self, names: object, option: str) -> list[int]:
        """The positions of the groups that an option names, without repeats.

        >>> from covey import Groups
        >>> Groups.from_labels(["age", "bmi", "age"]).positions(["bmi"], "always")
        [1]
        """
        if isinstance(names, str) or not isinstance(names, Iterable) or is_sparse(names):
            raise ValueError(f"{option} must be a list of group names, not {names!r}.")
        try:
            return list(dict.fromkeys(self.position(name) for name in listed(names, option)))
        except KeyError as unknown:
            raise ValueError(f"{option}: {unknown.args[0]}") from None

    def in_order(self, values: Any, what: str) -> Any:
        """One value per group, in the order of the groups: those of a Series with names in its index are found by name.

        >>> import pandas as pd
        >>> from covey import Groups
        >>> Groups.from_labels(["a", "b", "a"]).in_order(pd.Series({"b": 2.0, "a": 1.0}), "group_weights").tolist()
        [1.0, 2.0]
        """
        if not hasattr(values, "reindex") or list(values.index) == list(range(len(values))):
            return values
        if sorted(map(repr, values.index)) != sorted(map(repr, self.names)):
            unknown = [name for name in values.index if name not in set(self.names)]
            wrong = f"{unknown[0]!r} is none" if unknown else f"{len(self.names)} groups need one entry each"
            raise ValueError(f"{what} is a Series, whose index must have the names of the groups: {wrong}.")
        return values.loc[list(self.names)]

    def __getitem__(self, name: Hashable) -> IntArray:
        """The columns of the group with this name."""
        l = self.position(name)
        return self.members[self.starts[l] : self.starts[l + 1]]

    def to_contiguous(self, values: Array) -> Array:
        """Reorder the last axis from the design's columns to the contiguous layout."""
        return self._along(values, self.n_columns)[..., self.members]

    def from_contiguous(self, values: Array) -> Array:
        """Reorder the last axis from the contiguous layout to the design's columns; copies of a column add up."""
        values = self._along(values, self.members.size)
        if self.overlapping:
            total = np.zeros((*values.shape[:-1], self.n_columns), dtype=values.dtype)
            np.add.at(np.moveaxis(total, -1, 0), self.members, np.moveaxis(values, -1, 0))
            return total
        out = np.empty_like(values)
        out[..., self.members] = values
        return out

    def _along(self, values: ArrayLike, width: int) -> Array:
        """Check that the last axis has an entry per column."""
        try:
            array = np.asarray(values)
        except ValueError:  # rows of unequal length
            raise ValueError("The values must be one array, with an entry per column along its last axis.") from None
        if array.ndim == 0 or array.shape[-1] != width:
            raise ValueError(f"The last axis must have {width} entries, one per column, not shape {array.shape}.")
        return array

    def norms(self, w: Array) -> Array:
        """The Euclidean norm of the coefficients ``w`` in each group; the last axis runs over columns.

        >>> from covey import Groups
        >>> Groups.from_sizes([2, 1]).norms([3.0, 4.0, -2.0]).tolist()
        [5.0, 2.0]
        """
        by_group = self.to_contiguous(as_numbers(w, "w", finite=False))
        largest = np.maximum.reduceat(np.abs(by_group), self.starts[:-1], axis=-1)
        # scaled, so that squares of 1e-200 or 1e200 neither underflow nor overflow
        scale = np.where(largest > 0, largest, 1.0)
        scaled = by_group / np.repeat(scale, self.sizes, axis=-1)
        return scale * np.sqrt(np.add.reduceat(scaled * scaled, self.starts[:-1], axis=-1))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Groups is frozen; make a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Groups is frozen; make a new one.")

    def _key(self) -> tuple[object, ...]:
        return self.names, self.columns, self.members.tobytes(), self.starts.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredGroups) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> dict[str, object]:
        # ten thousand names as one string: formats that describe every object take seconds to write them one by one
        plain = all(type(name) in (str, int, bool) for name in self.names)
        return {
            "members": self.members,
            "starts": self.starts,
            "names": json.dumps(self.names) if plain else self.names,
            "columns": None if self.columns is None else json.dumps(self.columns),
            "n_columns": self.n_columns,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a file, with the same checks as for user input."""
        members, starts = (as_int_vector(state[name], f"The {name} of groups") for name in ("members", "starts"))
        names, columns = (json.loads(v) if isinstance(v := state[k], str) else v for k in ("names", "columns"))
        n_columns = state.get("n_columns", members.size)
        lists = np.split(members, starts[1:-1])
        StoredGroups.__init__(self, lists, n_columns, names=names, columns=columns, overlap=n_columns < members.size)

    def __repr__(self) -> str:
        low, high = int(self.sizes.min()), int(self.sizes.max())
        size = plural(low, "column") if low == high else f"{low} to {high} columns"
        shared = ", overlapping" if self.overlapping else ""
        return f"Groups({plural(self.n_groups, 'group')} of {size}, {plural(self.n_columns, 'column')}{shared})"
