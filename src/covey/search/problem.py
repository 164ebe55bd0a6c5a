"""The problem in the user's terms, and the parts of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import Design, ProductColumns
from covey.groups import Groups
from covey.losses import Loss, Squared
from covey.search.constraints.cone import Constraint
from covey.search.pairs import AllPairs
from covey.validation import FloatArray

__all__ = ["Parts", "Problem", "Split", "Validation", "ancestors", "in_parts"]


@dataclass(frozen=True)
class Problem:
    """A regression problem in the user's terms.

    Attributes
    ----------
    design, y, weight
        X, the response in the form that the loss takes, and the weights of the rows.
    groups : Groups
    always : list of int
        Groups that are in every model.
    options : dict
        ``group_weights``, ``standardize``, ``fit_intercept`` and ``factors``, as in `covey.limit_path`.
    loss : Loss
    offset : ndarray, shape (n_rows,) or (n_rows, n_outputs), or None
    recipes : sequence of Recipe
        Further candidates; see `covey.search.recipes`.
    parents : mapping
        The parents of groups that have any: such a group is in a model only together with them.
    families : ndarray of int, shape (n_groups,), or None
        Kinds of groups, such as variables and their pairs. Weights "noise" are fair between families, however many
        groups each has.
    n_mains : int, optional
        The number of main groups, which come first. Others join the race after a path of the main groups alone: what
        variables explain by themselves needs no pairs. By default all groups are main groups.
    pieces : mapping
        Groups in whose place others can be selected, such as their single columns, and those others: see
        `covey.search.pieces`.
    pairs : AllPairs, optional
        Pairs that are too many to be groups; the design is then a `ProductColumns`.
    groups_with : callable, optional
        Returns the groups with those of these pairs, as positions in `pairs`, that have become groups.
    late : sequence of int
        Groups that are no main groups and wake only on paths that start with their parents, such as the detail of a
        curve.
    constraints : sequence of Constraint
        What the coefficients of every model keep.
    roughness : ndarray, shape (n_columns,), or None
        How much more a ridge shrinks some columns than others of the same variance, such as the wiggly ones of a curve.
    """

    design: Design
    y: FloatArray
    weight: FloatArray
    groups: Groups
    always: list[int]
    options: dict[str, Any]
    loss: Loss = field(default_factory=Squared)
    offset: FloatArray | None = None
    recipes: Sequence[Any] = ()
    parents: Mapping[int, Sequence[int]] = field(default_factory=dict)
    families: NDArray[np.intp] | None = None
    n_mains: int | None = None
    pieces: Mapping[int, Sequence[int]] = field(default_factory=dict)
    pairs: AllPairs | None = None
    groups_with: Callable[[Sequence[tuple[int, int]]], Groups] | None = None
    late: Sequence[int] = ()
    constraints: Sequence[Constraint] = ()
    roughness: FloatArray | None = None

    def with_pairs(self, met: Sequence[tuple[int, int]]) -> Problem:
        """The same problem with pairs that have become groups."""
        if self.pairs is None or self.groups_with is None or not met:
            return self
        assert isinstance(self.design, ProductColumns)
        design, (left, right, _) = copy(self.design), self.pairs.products(met)
        design.add(left, right)
        return replace(self, design=design, groups=self.groups_with(met))


@dataclass(frozen=True)
class Split:
    """The parts of the rows that a model is fitted on, and the parts that it is scored on, if any.

    Attributes
    ----------
    train, test : tuple of int
    everything : bool
        Whether models are fitted on all rows, and may be returned to the user.
    """

    train: tuple[int, ...]
    test: tuple[int, ...] = ()
    everything: bool = False


def ancestors(parents: Mapping[int, Sequence[int]], group: int) -> list[int]:
    """The parents of a group, and theirs; parents before children.

    >>> ancestors({2: [0, 1], 3: [2]}, 3)
    [0, 1, 2]
    """
    found: dict[int, None] = {}
    for parent in parents.get(group, ()):
        found |= dict.fromkeys([*ancestors(parents, parent), parent])
    return list(found)


def in_parts(labels: NDArray[np.intp], parts: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows are in some parts; rows labelled -1 are in none."""
    chosen = np.zeros(max(int(labels.max(initial=-1)), *parts, 0) + 2, dtype=bool)
    chosen[list(parts)] = True
    return chosen[labels]


@dataclass(frozen=True)
class Validation:
    """Rows of another design on which models are scored."""

    design: Design
    y: FloatArray
    weight: FloatArray
    offset: FloatArray | None = None


@dataclass(frozen=True)
class Parts:
    """Disjoint parts of the rows, and the splits that consist of them.

    Attributes
    ----------
    labels : ndarray of int, shape (n_rows,)
        The part of each row; -1 for rows of weight zero.
    counts : list of float
        The number of rows per part, including the validation part; a row of weight two counts as two rows.
    splits : list of Split
        The last one has all rows, unless the rows are dealt again; with a validation set it is the only one.
    validation : Validation or None
        Rows of another design; they form one more part.
    keys : tuple of ndarray
        The keys of the rows by which they were dealt, if they were needed: another deal uses them again.
    """

    labels: NDArray[np.intp]
    counts: list[float]
    splits: list[Split]
    validation: Validation | None = None
    keys: tuple[NDArray[np.uint64], ...] = ()

    @classmethod
    def everything(cls, weight: FloatArray, n_rows: float, test: tuple[int, ...] = ()) -> Parts:
        """All rows in one part."""
        return cls(np.where(np.asarray(weight) > 0, 0, -1), [n_rows], [Split((0,), test, everything=True)])

    def is_same(self, other: Parts) -> bool:
        """Whether the rows are divided in the same way, whatever the numbers of the parts."""
        pairs = np.unique(self.labels * (other.labels.max() + 2) + other.labels)
        return pairs.size == np.unique(self.labels).size == np.unique(other.labels).size
