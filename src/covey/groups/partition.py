"""Groups: which columns belong together, and the ways to say so."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from covey.groups.checks import check_label, column_names, is_nested, is_separator
from covey.groups.stored import StoredGroups
from covey.layout import offsets
from covey.validation import as_int_vector, is_sparse, listed, name_columns, refuse_odd, whole

if TYPE_CHECKING:
    import pandas as pd

    from covey.groups.genome import GenesLike

# What is accepted as ``groups=``. The keys of a mapping, which are the names of groups, have any one type.
GroupsLike: TypeAlias = Union[
    "Groups", int, str, ArrayLike, Sequence[object], Mapping[Any, object], Callable[[Sequence[str]], object], None
]

NAMES_WANTED = (
    "pass a DataFrame; after a transformer, call its set_output(transform='pandas'), which keeps the names; or, for "
    "arrays and sparse matrices, fit it first and give groups=TermGroups.from_transformer(transformer)"
)


class Groups(StoredGroups):
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

    __slots__ = ()

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
        names = column_names(columns, len(values))
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
        return cls(lists, n_columns, names=names, columns=columns, overlap=overlap)

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
        n_columns = whole(n_columns, "n_columns")
        names = None if columns is None else column_names(columns, n_columns)
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
