"""Groups: which columns belong together.

A `Groups` is frozen and validated once, on construction; internal code can rely on it. It is stored as the
concatenation of its groups' members plus the offsets at which each group starts. This is the *contiguous layout* that
the kernels work in: there, group ``l`` is the slice ``starts[l]:starts[l + 1]``, whatever the order of the user's
columns.
"""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from covey.groups.checks import (
    as_indices,
    check_label,
    check_partition,
    is_nested,
    is_separator,
    plural,
    positions,
)
from covey.layout import offsets
from covey.validation import (
    Array,
    IntArray,
    as_int_vector,
    as_numbers,
    boolean,
    is_sparse,
    listed,
    name_columns,
    refuse_odd,
    whole,
)

if TYPE_CHECKING:
    import pandas as pd

    from covey.groups.genome import GenesLike

__all__ = ["Groups", "GroupsLike"]

# What is accepted as ``groups=``. The keys of a mapping, which are the names of groups, have any one type.
GroupsLike: TypeAlias = Union[
    "Groups", int, str, ArrayLike, Sequence[object], Mapping[Any, object], Callable[[Sequence[str]], object], None
]

NAMES_WANTED = (
    "pass a DataFrame; after a transformer, call its set_output(transform='pandas'), which keeps the names; or, for "
    "arrays and sparse matrices, fit it first and give groups=TermGroups.from_transformer(transformer)"
)


class Groups:
    """Which columns belong together: named groups, with every column in exactly one of them unless they may overlap.

    Use the constructor that matches your data: `from_size`, `from_sizes`, `from_labels`, `from_separator`,
    `from_lists`, `from_names`, `from_intervals` or `from_gmt`. Groups keep the order in which they first appear, and
    the columns of a group keep their order in the table. `from_lists` and `from_names` accept ``overlap=True``, which
    lets a column be in several groups: it then has one coefficient per group, and the model's coefficient is their sum.
    `limit_path` and the estimators accept such groups.

    Attributes
    ----------
    names : tuple
        Names of the groups: the labels or the dictionary's keys; ``0, 1, ...`` if none were given.
    columns : tuple of str or None
        The names of the columns, if known. Used only in messages and tables.
    members : ndarray of int, shape (n_columns,), or longer with overlaps
        The columns in the contiguous layout, group by group.
    starts : ndarray of int, shape (n_groups + 1,)
        Group ``l`` holds ``members[starts[l]:starts[l + 1]]``.

    Examples
    --------
    >>> from covey import Groups
    >>> groups = Groups.from_labels(["age", "bmi", "age", "bmi", "sex"])
    >>> groups
    Groups(3 groups of 1 to 2 columns, 5 columns)
    >>> groups.names, groups.sizes.tolist()
    (('age', 'bmi', 'sex'), [2, 2, 1])
    >>> groups["age"].tolist()
    [0, 2]
    """

    __slots__ = ("_labels", "columns", "members", "names", "starts")

    names: tuple[Hashable, ...]
    columns: tuple[str, ...] | None
    members: IntArray
    starts: IntArray
    _labels: IntArray

    def __init__(
        self,
        lists: Iterable[Iterable[int]],
        n_columns: int | None = None,
        *,
        names: Iterable[Hashable] | None = None,
        columns: Iterable[str] | None = None,
        overlap: bool = False,
    ) -> None:
        members_of = [as_indices(members, l) for l, members in enumerate(lists)]
        overlap = boolean(overlap, "overlap")
        column_names = _column_names(columns)
        if n_columns is None and column_names is None:
            n_columns = 1 + max(int(m.max()) for m in members_of) if overlap else sum(map(len, members_of))
        n_columns = whole(len(column_names or ()) if n_columns is None else n_columns, "n_columns")
        _check_count(column_names, n_columns)
        group_names = _group_names(names, len(members_of))
        unusable = [name for name in group_names if not isinstance(name, Hashable)]
        if unusable:
            raise ValueError(f"names must be numbers or text, one per group, not {unusable[0]!r}.")
        if len(set(group_names)) != len(group_names):
            twice = sorted({str(g) for g in group_names if group_names.count(g) > 1})
            raise ValueError(f"Group names must be unique; given more than once: {', '.join(twice)}.")
        check_partition(members_of, n_columns, group_names, column_names, overlap)
        members = np.concatenate([np.sort(m) for m in members_of])
        self._freeze(members, offsets([len(m) for m in members_of]), group_names, column_names, n_columns)

    def _freeze(
        self,
        members: IntArray,
        starts: IntArray,
        names: tuple[Hashable, ...],
        columns: tuple[str, ...] | None,
        n_columns: int,
    ) -> None:
        labels = np.empty(n_columns, dtype=np.intp)
        labels[members] = np.repeat(np.arange(len(names)), np.diff(starts))
        for array in (members, starts, labels):
            array.flags.writeable = False
        values = (("names", names), ("columns", columns), ("members", members), ("starts", starts), ("_labels", labels))
        for slot, value in values:
            object.__setattr__(self, slot, value)

    @classmethod
    def _trusted(
        cls,
        members: IntArray,
        starts: IntArray,
        names: tuple[Hashable, ...],
        columns: tuple[str, ...] | None,
        n_columns: int | None = None,
    ) -> Groups:
        """Groups that are known to hold every column, without checks, which are slow for a million columns.

        They are a partition unless `n_columns` is less than the number of members.
        """
        groups = cls.__new__(cls)
        groups._freeze(members, starts, names, columns, members.size if n_columns is None else n_columns)
        return groups

    @classmethod
    def _united(cls, members: Mapping[Hashable, IntArray], n_columns: int, columns: tuple[str, ...] | None) -> Groups:
        """Groups of sorted columns that hold every column, some perhaps several times, by name."""
        starts = offsets([len(some) for some in members.values()])
        return cls._trusted(np.concatenate(list(members.values())), starts, tuple(members), columns, n_columns)

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_size(cls, size: int, n_columns: int) -> Groups:
        """Consecutive groups of one size.

        >>> Groups.from_size(3, 300)
        Groups(100 groups of 3 columns, 300 columns)
        """
        size, n_columns = whole(size, "size"), whole(n_columns, "n_columns")
        if n_columns % size:
            left = np.arange(n_columns - n_columns % size, n_columns)
            raise ValueError(
                f"Groups of {size} do not divide {n_columns} columns: {name_columns(left)} would be left over. "
                "Give the sizes one by one with Groups.from_sizes."
            )
        starts = np.arange(0, n_columns + 1, size, dtype=np.intp)
        return cls._trusted(np.arange(n_columns), starts, tuple(range(starts.size - 1)), None)

    @classmethod
    def from_sizes(cls, sizes: ArrayLike, n_columns: int | None = None) -> Groups:
        """Consecutive groups of the given sizes, which must add up to the number of columns.

        >>> Groups.from_sizes([1, 4, 2])
        Groups(3 groups of 1 to 4 columns, 7 columns)
        """
        values = as_int_vector(sizes, "sizes")
        if values.size == 0:
            raise ValueError("sizes is empty: give at least one group size.")
        if values.min() < 1:
            l = int(np.argmax(values < 1))
            raise ValueError(f"Group {l} has size {values[l]}; every group needs at least one column.")
        starts = offsets(values)
        total = int(starts[-1])
        if n_columns is not None and total != whole(n_columns, "n_columns"):
            left = f": columns from {total} on belong to no group" if total < n_columns else ""
            raise ValueError(f"Group sizes add up to {total} columns, but there are {n_columns}{left}.")
        return cls._trusted(np.arange(total), starts, tuple(range(values.size)), None)

    @classmethod
    def from_labels(cls, labels: Any, *, columns: Iterable[str] | None = None) -> Groups:
        """One label per column, integers or text, in any order.

        A pandas Series indexed by column name keeps the names.

        >>> Groups.from_labels([7, 7, 3, 7]).names
        (7, 3)
        """
        if columns is None and hasattr(labels, "index") and hasattr(labels, "to_numpy"):
            columns = [str(c) for c in labels.index]
        values = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
        if isinstance(values, str | bytes):
            raise ValueError("labels must be a sequence with one label per column, not a single string.")
        if isinstance(values, np.ndarray):
            refuse_odd(values, "labels")
            values = values.tolist()
        values = listed(values, "labels")
        if not values:
            raise ValueError("labels is empty: give one label per column.")
        names = _column_names(columns)
        if names is not None and len(names) != len(values):
            raise ValueError(f"{len(values)} labels were given for {len(names)} columns.")
        if not set(map(type, values)) <= {int, str, bool}:  # most labels pass this quick check
            values = [check_label(label, j, names) for j, label in enumerate(values)]
        groups: dict[Hashable, int] = {}
        codes = np.array([groups.setdefault(label, len(groups)) for label in values], dtype=np.intp)
        return cls._trusted(np.argsort(codes, kind="stable"), offsets(np.bincount(codes)), tuple(groups), names)

    @classmethod
    def from_lists(
        cls,
        lists: Iterable[Iterable[int | str]],
        n_columns: int | None = None,
        *,
        names: Iterable[Hashable] | None = None,
        columns: Iterable[str] | None = None,
        overlap: bool = False,
    ) -> Groups:
        """One list of columns per group: positions, or names when `columns` is given.

        >>> Groups.from_lists([[0, 3], [1, 2]]).sizes.tolist()
        [2, 2]
        >>> Groups.from_lists([[0, 1, 2], [2, 3]], overlap=True)
        Groups(2 groups of 2 to 3 columns, 4 columns, overlapping)
        """
        groups = [listed(members, f"The columns of group {l}") for l, members in enumerate(listed(lists, "lists"))]
        if not groups:
            raise ValueError("No groups were given: give at least one list of columns.")
        if any(isinstance(c, str) for members in groups for c in members):
            if columns is None:
                raise ValueError("Groups given by column names need the names of all columns: pass columns=.")
            columns, names = tuple(map(str, listed(columns, "columns"))), _group_names(names, len(groups))
            groups = positions(groups, columns, names)
        return cls(groups, n_columns, names=names, columns=columns, overlap=overlap)

    @classmethod
    def from_names(
        cls, groups: Mapping[Hashable, Iterable[int | str]], columns: Iterable[str], *, overlap: bool = False
    ) -> Groups:
        """A dictionary from group names to columns, given by name or by position.

        >>> Groups.from_names({"size": ["h", "w"], "sex": ["s"]}, columns=["h", "s", "w"])["size"].tolist()
        [0, 2]
        """
        if not isinstance(groups, Mapping):
            raise ValueError(f"groups must be a dictionary name -> columns, not {type(groups).__name__}.")
        for name, members in groups.items():
            if isinstance(members, str):
                raise ValueError(f"Group {name!r} is the string {members!r}; write a list of columns: [{members!r}].")
        return cls.from_lists(groups.values(), names=groups.keys(), columns=columns, overlap=overlap)

    @classmethod
    def from_separator(cls, separator: str, columns: Iterable[str]) -> Groups:
        """Group columns by the part of their name before the first separator, or by the full name if it has none.

        >>> Groups.from_separator("_", ["gene1_a", "gene1_b", "gene2_a", "age"]).names
        ('gene1', 'gene2', 'age')
        """
        names = tuple(str(c) for c in columns)
        if not separator or not any(separator in name for name in names):
            shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
            raise ValueError(f"groups: no column's name holds the separator {separator!r}; they are {shown}.")
        return cls.from_labels([name.split(separator, 1)[0] or name for name in names], columns=names)

    @classmethod
    def from_intervals(
        cls, genes: GenesLike, positions: pd.DataFrame, *, flank: int = 0, overlap: str = "share", empty: str = "raise"
    ) -> Groups:
        """Genes as groups of variants, by position; a variant in no gene is a group of its own.

        To leave out variants in no gene, open the genotypes with ``regions=genes``.

        Parameters
        ----------
        genes : DataFrame or path of a BED file
            Chromosome, start, end and name of every gene. In a table, the first position is 1, and start and end are
            inside; in a file, starts are counted from 0, as in all BED files. A gene may have several lines. "chr7" and
            "7" are the same chromosome, and so are "X" and "23".
        positions : DataFrame
            Name, chromosome and position of every column, as in ``X.positions`` of opened genotypes.
        flank : int
            Positions on either side that count as part of a gene.
        overlap : {"share", "nearest"}
            Whether a variant in several genes is in all their groups, which then overlap, or only in that of the gene
            whose middle is nearest.
        empty : {"raise", "drop"}
            What to do with a gene without variants.

        >>> import pandas as pd
        >>> genes = pd.DataFrame({"chromosome": [1, 1], "start": [1, 40], "end": [50, 90], "name": ["A", "B"]})
        >>> variants = pd.DataFrame({"name": ["v", "w", "x", "y"], "chromosome": 1, "position": [10, 45, 60, 99]})
        >>> {name: Groups.from_intervals(genes, variants)[name].tolist() for name in ["A", "B", "y"]}
        {'A': [0, 1], 'B': [1, 2], 'y': [3]}
        """
        from covey.groups.genome import genes_of  # pandas is imported only where it is needed

        members = genes_of(genes, positions, flank, overlap, empty)
        return cls._united(members, len(positions), tuple(map(str, positions["name"])))

    @classmethod
    def from_gmt(cls, path: str | Path, names: Iterable[str] | Groups, *, empty: str = "raise") -> Groups:
        """Pathways of a GMT file as groups, which may overlap; a gene in no pathway is a group of its own.

        Parameters
        ----------
        path : path
            One pathway per line: its name, a description and its genes, separated by tabs. Genes that are not in
            `names` are left out.
        names : sequence of str, or Groups
            The gene of every column, or genes as groups of columns, as `from_intervals` makes them.
        empty : {"raise", "drop"}
            What to do with a pathway without columns.
        """
        from covey.groups.genome import pathways_of

        genes = names if isinstance(names, Groups) else cls.from_labels(list(names), columns=names)
        members = pathways_of(path, dict(zip(genes.names, genes.lists(), strict=True)), empty)
        return cls._united(members, genes.n_columns, genes.columns)

    @classmethod
    def coerce(cls, groups: object, n_columns: int, columns: Iterable[str] | None = None) -> Groups:
        """Convert the ``groups=`` argument.

        ``None`` makes every column a group; an int is a group size; a dictionary maps names to columns; a
        sequence of sequences holds lists of columns; a flat sequence with one entry per column holds labels. A
        separator such as ``"_"``, or ``"sep:_x_"`` if it contains letters, groups columns whose names agree up to it. A
        function is called with the column names and returns any of these. A list of sizes needs `from_sizes`.
        """
        names, n_columns = _column_names(columns), whole(n_columns, "n_columns")
        _check_count(names, n_columns)
        if isinstance(groups, Groups):
            if groups.n_columns != n_columns:
                raise ValueError(f"groups are for {groups.n_columns} columns, but X has {n_columns}.")
            return groups if names is None or groups.columns is not None else groups.with_columns(names)
        if callable(groups):
            names = getattr(groups, "outputs", None) if names is None else names
            if names is not None and len(names) != n_columns:
                raise ValueError(
                    f"groups is for {len(names)} columns, but X has {n_columns}: fit the transformer again."
                )
            if names is None:
                raise ValueError(f"groups is a function of column names, but X has none: {NAMES_WANTED}.")
            return cls.coerce(groups(names), n_columns, names)
        if groups is None:
            each = tuple(range(n_columns)) if names is None else names
            if len(set(each)) == n_columns:
                return cls._trusted(np.arange(n_columns), np.arange(n_columns + 1), each, names)
            return cls(np.arange(n_columns)[:, None], n_columns, names=names, columns=names)
        if isinstance(groups, bool | np.bool_):
            raise ValueError("groups must not be a boolean; give a size, labels, lists of columns or a Groups.")
        if isinstance(groups, str) and is_separator(groups):
            if names is None:
                raise ValueError(f"groups={groups!r} is read from column names, but X has none: {NAMES_WANTED}.")
            return cls.from_separator(groups.removeprefix("sep:"), names)
        if isinstance(groups, numbers.Integral):
            read = cls.from_size(int(groups), n_columns)
        elif isinstance(groups, Mapping):
            read = cls.from_names(groups, range(n_columns) if names is None else names)  # type: ignore[arg-type]
        elif isinstance(groups, str | bytes) or not isinstance(groups, Iterable) or is_sparse(groups):
            raise ValueError(
                f"groups cannot be read from {type(groups).__name__} {groups!r}; a separator of column names is "
                "written like '_' or 'sep:x'. See covey.Groups for the other ways to give groups."
            )
        else:
            one_row = hasattr(groups, "to_numpy") or (isinstance(groups, np.ndarray) and groups.ndim == 1)
            flat: Any = groups if one_row else listed(groups, "groups")
            if is_nested(flat):
                return cls.from_lists(flat, n_columns, columns=names)
            if len(flat) != n_columns:
                raise ValueError(
                    f"groups has {len(flat)} entries, but X has {n_columns} columns: a flat sequence is read as one "
                    "label per column. For group sizes use covey.Groups.from_sizes."
                )
            read = cls.from_labels(flat)
        return read if names is None or read.columns == names else read.with_columns(names)

    def with_columns(self, columns: Iterable[str]) -> Groups:
        """The same groups, with names for the columns."""
        names = tuple(map(str, listed(columns, "columns")))
        _check_count(names, self.n_columns)
        if self.overlapping:
            return Groups(self.lists(), self.n_columns, names=self.names, columns=names, overlap=True)
        return Groups._trusted(self.members.copy(), self.starts.copy(), self.names, names)

    def apart(self) -> Groups:
        """The groups of a design that repeats shared columns: one copy per group, group by group."""
        return Groups._trusted(np.arange(self.members.size), self.starts.copy(), self.names, None)

    # ------------------------------------------------------------------ properties

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

    @property
    def is_contiguous(self) -> bool:
        """Whether the columns are already stored group by group."""
        return bool(np.array_equal(self.members, np.arange(self.members.size)))

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

        >>> Groups.from_labels(["age", "bmi", "age"]).position("bmi")
        1
        """
        try:
            return self.names.index(name)
        except ValueError:
            near = get_close_matches(str(name), list(map(str, self.names)), 3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise KeyError(f"There is no group named {name!r}.{hint}") from None

    def positions(self, names: object, option: str) -> list[int]:
        """The positions of the groups that an option names, without repeats.

        >>> Groups.from_labels(["age", "bmi", "age"]).positions(["bmi"], "always")
        [1]
        """
        if isinstance(names, str) or not isinstance(names, Iterable) or is_sparse(names):
            raise ValueError(f"{option} must be a list of group names, not {names!r}.")
        try:
            return list(dict.fromkeys(self.position(name) for name in listed(names, option)))
        except KeyError as unknown:
            raise ValueError(f"{option}: {unknown.args[0]}") from None

    def __getitem__(self, name: Hashable) -> IntArray:
        """The columns of the group with this name."""
        l = self.position(name)
        return self.members[self.starts[l] : self.starts[l + 1]]

    # ------------------------------------------------------------------ moving between layouts

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

        >>> Groups.from_sizes([2, 1]).norms([3.0, 4.0, -2.0]).tolist()
        [5.0, 2.0]
        """
        by_group = self.to_contiguous(as_numbers(w, "w", finite=False))
        largest = np.maximum.reduceat(np.abs(by_group), self.starts[:-1], axis=-1)
        # scaled, so that squares of 1e-200 or 1e200 neither underflow nor overflow
        scale = np.where(largest > 0, largest, 1.0)
        scaled = by_group / np.repeat(scale, self.sizes, axis=-1)
        return scale * np.sqrt(np.add.reduceat(scaled * scaled, self.starts[:-1], axis=-1))

    # ------------------------------------------------------------------ immutability and pickling

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Groups is frozen; make a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Groups is frozen; make a new one.")

    def _key(self) -> tuple[object, ...]:
        return self.names, self.columns, self.members.tobytes(), self.starts.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._key() == other._key()

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
        Groups.__init__(self, lists, n_columns, names=names, columns=columns, overlap=n_columns < members.size)

    def __repr__(self) -> str:
        low, high = int(self.sizes.min()), int(self.sizes.max())
        size = plural(low, "column") if low == high else f"{low} to {high} columns"
        shared = ", overlapping" if self.overlapping else ""
        return f"Groups({plural(self.n_groups, 'group')} of {size}, {plural(self.n_columns, 'column')}{shared})"


def _column_names(columns: Iterable[object] | None) -> tuple[str, ...] | None:
    return None if columns is None else tuple(map(str, listed(columns, "columns")))


def _check_count(names: tuple[str, ...] | None, n_columns: int) -> None:
    """Check that every column has a name, if any has."""
    if names is not None and len(names) != n_columns:
        raise ValueError(f"{len(names)} column names were given for {n_columns} columns.")


def _group_names(names: Iterable[Hashable] | None, n_groups: int) -> tuple[Hashable, ...]:
    """The names of the groups; 0, 1, ... if none were given."""
    given = tuple(range(n_groups)) if names is None else tuple(listed(names, "names"))
    if len(given) != n_groups:
        raise ValueError(f"{len(given)} group names were given for {n_groups} groups.")
    return given
