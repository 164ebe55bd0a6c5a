"""Expansion: the terms of a table as a design, with products of columns for pairs, and groups with parents.

Main terms are those of the encoding. A pair is the product of its parents' columns. A pair with a curved number has a
child, the surface (a curve per level, if the other one is a category): products that involve the smoothest curve
columns. Its child is the detail, with products of more of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.designs import DenseDesign, Design, ProductColumns
from covey.designs.columns import Within
from covey.designs.rows import repetitions
from covey.groups import Groups
from covey.search.pairs import AllPairs
from covey.search.problem import ancestors
from covey.terms.encoding import Encoding
from covey.terms.kinds import Term, free_name
from covey.terms.reading import as_frame
from covey.terms.requirements import Constraints, requirements_of, without_pairs
from covey.terms.splines import ROWS_PER_KNOT
from covey.terms.terms import Terms, TermsLike
from covey.validation import FloatArray, MatrixLike, PerRow, is_tensor

# A pair, its child and the child of that, with what their names end in; and how many curve columns of a number take
# part in their products, the smoothest first.
CHILDREN = (("pair", ""), ("surface", "~"), ("detail", "~~"))
CURVE_COLUMNS = (0, 2, 5)

# Columns in products are bounded to the range seen in `fit` and so many standard deviations beyond it: the product of
# two numbers far outside would be far from anything seen, but many new rows are a little outside. Beside a category or
# a flag it is the range and the standard deviation within each level, so that a new combination of two levels counts as
# neither of them.
BEYOND = 1.0

# A ridge shrinks the columns of a curve in proportion to their half waves: so many in the first one, which is shrunk
# like a line, and one more in each further one.
FIRST_WAVE = 1.5

# Terms of one family compete with each other for the same chance under noise.
FAMILIES = {"linear": 0, "levels": 0, "season": 0, "curve": 1, "detail": 2, "pair": 3, "surface": 4}

# With products of more columns, pairs are not listed one by one.
LISTED = 50_000

# The most columns of products with details of surfaces: late groups are computed with the others.
DETAILED = 10_000

# The most columns of main terms all of whose pairs are tried: a matrix of all pairs per fold takes 256 MB, or 3.6 GB on
# a device.
MOST_COLUMNS, MOST_ON_DEVICE = 8_000, 30_000


@dataclass(frozen=True)
class Expansion:
    """The terms of a table: those of its variables, then pairs and their children.

    Attributes
    ----------
    encoding : Encoding
    ranges : ndarray, shape (2, n_columns)
        The least and the largest value of each encoded column in products.
    pairs : tuple of pairs of int
        The pairs that are listed, as positions of main terms.
    depth : int
        1 for pairs alone, 2 if they have surfaces where a term has a curve, 3 if surfaces have details.
    unlisted : tuple of int
        Main terms whose pairs are in the race without being listed; those that came near are in `pairs`.
    within : tuple of Within
        The same ranges of columns in products with levels, for each level; in the order of their columns.
    """

    encoding: Encoding
    ranges: FloatArray
    pairs: tuple[tuple[int, int], ...] = ()
    depth: int = len(CHILDREN)
    unlisted: tuple[int, ...] = ()
    within: tuple[Within, ...] = ()

    @classmethod
    def of(cls, encoding: Encoding, columns: FloatArray, weight: PerRow = None, most: int = MOST_COLUMNS) -> Expansion:
        """The terms of an encoding and the pairs that it wants, given the encoded columns of its table.

        If the products of all pairs have too many columns, there are no details, then no surfaces; if they still have
        too many, pairs are not listed. Of variables with more than `most` columns no pairs are tried.
        """
        columns, rows = _counted(columns, weight)
        wanted, ranges = encoding.pairs, np.array([columns.min(axis=0) - BEYOND, columns.max(axis=0) + BEYOND])
        sizes = np.array([_size(encoding.stems(l)) for l in range(len(encoding.terms))], dtype=np.intp)
        of_members = sizes[list(wanted.members)]
        n_columns = (int(of_members.sum()) ** 2 - int((of_members**2).sum())) // 2
        n_columns += sum(int(sizes[i] * sizes[j]) for i, j in wanted.listed)
        if n_columns <= LISTED or not wanted.members:
            limits = zip(CURVE_COLUMNS, (LISTED, LISTED, min(LISTED, DETAILED)), strict=True)
            depth = max(1, sum(n_columns * (1 + n) ** 2 <= limit for n, limit in limits))
            return cls(encoding, ranges, depth=depth)._with(tuple(wanted), columns, rows)
        if of_members.sum() <= most:
            return cls(encoding, ranges, depth=1, unlisted=wanted.members)
        warnings.warn(
            f"All pairs of {len(wanted.members):,} variables are too many to try, and are left out: name those that "
            "may matter, such as pairs=[('age', 'sex')] or pairs={'with': 'treatment'}, or say pairs=None.",
            stacklevel=6,
        )
        return cls(encoding, ranges, depth=1)

    def with_pairs(
        self, met: Sequence[tuple[int, int]], columns: FloatArray | None = None, weight: PerRow = None
    ) -> Expansion:
        """The same with pairs that came near, given as positions among the unlisted terms.

        Without the encoded columns of the table of `fit`, values are not bounded within levels.
        """
        found = tuple((self.unlisted[a], self.unlisted[b]) for a, b in met)
        if columns is None:
            return replace(self, pairs=self.pairs + found)
        return self._with(found, *_counted(columns, weight))

    def _with(self, pairs: tuple[tuple[int, int], ...], columns: FloatArray, rows: FloatArray) -> Expansion:
        """The same with more pairs, bounded within levels, given the encoded columns of the table of `fit`.

        Each of its lines counts as so many rows.
        """
        beside: dict[int, set[int]] = {}
        for term, levels in (*pairs, *((j, i) for i, j in pairs)):
            if self.encoding.rows_per_level(levels) < np.inf:
                beside.setdefault(levels, set()).update(self._factors(term, levels)[self.depth - 1].tolist())
        within = list(self.within)
        for levels, factors in beside.items():
            within += _within(columns, rows, self.encoding.stems(levels), sorted(factors))
        within.sort(key=lambda one: (one.column, one.first))
        return replace(self, pairs=self.pairs + pairs, within=tuple(within))

    def in_use(self, used: NDArray[np.bool_]) -> Expansion:
        """The same with the ranges within levels that the used columns need."""
        p = len(self.encoding.column_names)
        sides = np.concatenate([side[used[p:]] for side in self._bounded_products])
        return replace(self, within=tuple(self.within[k - p] for k in np.unique(sides[sides >= p])))

    def ends_within(self, term: int, other: int) -> FloatArray:
        """Where products of a number with the levels of another term stop, as standardised values; else nothing."""
        place = self.encoding.terms[term].columns.start, self.encoding.terms[other].columns.start
        found = [one for one in self.within if (one.column, one.first) == place]
        # a category has no rows without a level
        return np.concatenate([np.empty(0), *(one.ends[:, one.stop - one.first > 1 :].ravel() for one in found)])

    def is_new_combination(self, columns: FloatArray, pair: Sequence[int]) -> NDArray[np.bool_]:
        """Which rows of encoded columns have levels of two main terms that no row of `fit` has together.

        Levels are those of a category, or the two values of a number; a pair of other terms has no such rows.
        """
        first, second = map(self.encoding.stems, pair)
        if not all(self.encoding.rows_per_level(term) < np.inf for term in pair):
            return np.zeros(len(columns), dtype=bool)
        own, other = columns[:, first], columns[:, second]
        ends = np.full((_size(first), 2, 1 + _size(second)), [[-np.inf], [np.inf]])
        for one in self.within:
            if one.first == second.start and first.start <= one.column < first.stop:
                ends[one.column - first.start] = one.ends
        level, place = (other > 0) @ np.arange(1, 1 + _size(second)), own.argmax(axis=1)
        low, high = ends[place, :, level].T
        value = own[np.arange(len(own)), place]
        known = own.any(axis=1) & other.any(axis=1)  # a new level, or a missing value, is the mean
        return known & np.where(value > 0, high <= 0, low >= 0)  # rounding, as to four bytes, keeps the sign

    @cached_property
    def _products(self) -> tuple[tuple[Term, ...], NDArray[np.intp], NDArray[np.intp]]:
        """The terms of pairs and their children, and the two columns that each of their columns is the product of."""
        encoding, n_columns = self.encoding, len(self.encoding.column_names)
        terms: list[Term] = []
        names = {term.name for term in encoding.terms}
        left, right = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
        for i, j in self.pairs:
            variables = encoding.terms[i].variables + encoding.terms[j].variables
            sides = self._factors(i, j), self._factors(j, i)
            parents: tuple[int, ...] = (i, j)
            for depth, (kind, ending) in enumerate(CHILDREN[: self.depth]):
                first, second = (side[depth] for side in sides)
                before = [side[depth - 1].size if depth else 0 for side in sides]
                a, b = _outside(before[0], before[1], first.size, second.size)
                if not a.size:
                    break
                left.append(first[a])
                right.append(second[b])
                name = free_name(f"{encoding.terms[i].name}:{encoding.terms[j].name}{ending}", names)
                names.add(name)
                terms.append(Term(name, kind, variables, parents, slice(n_columns, n_columns + left[-1].size)))
                parents, n_columns = (len(encoding.terms) + len(terms) - 1,), terms[-1].columns.stop
        return tuple(terms), np.concatenate(left), np.concatenate(right)

    @cached_property
    def _bounded_products(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The two columns of each product, with places in `within` after the encoded columns."""
        _, left, right = self._products
        p = len(self.encoding.column_names)
        first = np.zeros(p, dtype=np.intp)
        for term in self.encoding.terms:
            first[term.columns] = term.columns.start
        keys = np.array([one.column * p + one.first for one in self.within], dtype=np.intp)

        def places(column: NDArray[np.intp], other: NDArray[np.intp]) -> NDArray[np.intp]:
            wanted = column * p + first[other]
            at = np.searchsorted(keys, wanted)
            return np.where(np.append(keys, -1)[at] == wanted, p + at, column)

        return places(left, right), places(right, left)

    def _factors(self, term: int, other: int) -> list[NDArray[np.intp]]:
        """The columns of a main term that are multiplied in a pair with another one, and in each child of it.

        With a category there is a curve per level, which has a column for as many rows of a level as a knot has.
        """
        encoding = self.encoding
        columns, curve = encoding.stems(term), encoding.curve_of(term)
        stem = np.arange(columns.start, columns.stop)
        most = encoding.rows_per_level(other) / ROWS_PER_KNOT - 1  # besides the slope
        bent = stem[:0] if curve is None else encoding.terms[curve].places
        return [np.concatenate([stem, bent[: int(max(0, min(most, n)))]]) for n in CURVE_COLUMNS]

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms; the `columns` of a pair are positions in the expanded design."""
        return self.encoding.terms + self._products[0]

    def state(self) -> dict[str, object]:
        """Plain numbers, texts and lists, for JSON."""
        return {
            "encoding": self.encoding.state(),
            "ranges": self.ranges.tolist(),
            "pairs": [list(pair) for pair in self.pairs],
            "depth": self.depth,
            "unlisted": list(self.unlisted),
            "within": [[one.column, one.first, one.stop, one.ends.tolist()] for one in self.within],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Expansion:
        """The inverse of `state`."""
        pairs = tuple((i, j) for i, j in state["pairs"])
        ranges = np.array(state["ranges"], dtype=np.float64)
        within = tuple(Within(a, b, c, np.array(ends, dtype=np.float64)) for a, b, c, ends in state["within"])
        encoding = Encoding.from_state(state["encoding"])
        return cls(encoding, ranges, pairs, state["depth"], tuple(state["unlisted"]), within)

    def design(self, table: MatrixLike) -> Design:
        """The expanded columns of a table."""
        return self.on(self.encoding.transform(table))

    def on(self, columns: FloatArray) -> Design:
        """The expanded columns, given the encoded ones."""
        left, right = self._bounded_products
        base = DenseDesign(columns, columns=self.encoding.column_names)
        return ProductColumns(base, left, right, self.ranges, self.within) if left.size or self.unlisted else base

    @cached_property
    def groups(self) -> Groups:
        """A group per term."""
        names = [term.name for term in self.terms]
        return Groups.from_lists([range(t.columns.start, t.columns.stop) for t in self.terms], names=names)

    @property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """The parents of the terms that have any."""
        return {l: term.parents for l, term in enumerate(self.terms) if term.parents}

    @property
    def structure(self) -> dict[str, Any]:
        """What a search needs to know about the groups."""
        pairs = None
        if self.unlisted:
            stems, place = map(self.encoding.stems, self.unlisted), {l: k for k, l in enumerate(self.unlisted)}
            first, sizes = np.array([(stem.start, _size(stem)) for stem in stems]).T
            left_out = tuple((place[i], place[j]) for i, j in sorted(self.encoding.pairs.left_out))
            pairs = AllPairs(np.array(self.unlisted), first, sizes, FAMILIES["pair"], left_out)
        return {
            "parents": self.parents,
            "families": np.array([FAMILIES[term.kind] for term in self.terms], dtype=np.intp),
            "n_mains": self.encoding.n_mains,
            "late": [l for l, term in enumerate(self.terms) if term.kind == "detail"],
            "pairs": pairs,
            "groups_with": None if pairs is None else lambda met: self.with_pairs(met).groups,
            "roughness": self.roughness,
        }

    @property
    def roughness(self) -> FloatArray:
        """How much more a ridge shrinks each column than that of a line; for a product, the product of both factors'.

        The columns of a curve are orthonormal and bend more and more often, and most effects are smooth: what a curve
        owes to noise is in its wiggly columns as much as in the others. The detail of a curve, which is there only if
        rows ask for it clearly, is shrunk like a line.
        """
        rough = np.ones(len(self.encoding.column_names))
        for term in self.encoding.terms:
            if term.kind == "curve":
                rough[term.columns] = 1 + np.arange(term.width) / FIRST_WAVE
        left, right = self.factors
        return np.concatenate([rough, rough[left] * rough[right]])

    @property
    def factors(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The two encoded columns that each expanded column after the encoded ones is the product of."""
        return self._products[1:]

    def freedom(self, term: int) -> int:
        """The number of free coefficients of a term: the levels of a category have one less than columns."""
        one = self.terms[term]
        n = one.width
        if one.kind in ("linear", "levels"):
            return n - (one.kind == "levels")
        for j in ancestors(self.parents, term):  # the levels of a category in a pair
            if self.terms[j].kind == "levels":
                n = n * self.freedom(j) // self.terms[j].width
        return n

    def variables_in(self, used: NDArray[np.bool_]) -> list[str]:
        """The variables whose terms have some of the used columns, in the order of the table."""
        names = {name for term in self.terms if used[term.columns].any() for name in term.variables}
        return [name for name in self.encoding.variables if name in names]

    @property
    def always(self) -> list[int]:
        """The terms that are in every model."""
        return [l for l, term in enumerate(self.terms) if term.always]

    def with_ancestors(self, terms: Sequence[int]) -> list[int]:
        """Some terms, their parents, and theirs, in order."""
        return sorted({one for l in terms for one in (*ancestors(self.parents, l), l)})


def expand(
    terms: TermsLike, groups: object, table: MatrixLike, weight: PerRow, constraints: Constraints = None
) -> tuple[Expansion, Design]:
    """Fit the expansion that a user described with ``terms=``, and apply it to the same table.

    Variables with constraints are in no pairs. The columns of a tensor are where it is.
    """
    if groups is not None:
        raise ValueError("Both terms and groups are given: use terms for a table of variables, groups for columns.")
    described, frame = Terms.coerce(terms), as_frame(table)
    encoding = described.fit(frame, weight)
    if constraints:
        encoding = without_pairs(encoding, list(requirements_of(constraints, encoding)), described.pairs)
    columns = encoding.transform(frame)
    design: Design = DenseDesign(columns, columns=encoding.column_names)
    most = MOST_COLUMNS
    if is_tensor(table):
        from covey.designs.torch import TorchDesign, on_device

        design, most = TorchDesign(on_device(columns, table), columns=encoding.column_names), MOST_ON_DEVICE
    expansion = Expansion.of(encoding, columns, weight, most)
    left, right = expansion.factors  # the table of fit is within all bounds
    return expansion, ProductColumns(design, left, right) if left.size or expansion.unlisted else design


@cache
def _outside(*shapes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows and columns of the cells of a grid that are outside a smaller one in its corner."""
    new = np.ones(shapes[2:], dtype=bool)
    new[: shapes[0], : shapes[1]] = False
    a, b = np.nonzero(new)
    return a, b


def _counted(columns: FloatArray, weight: PerRow) -> tuple[FloatArray, FloatArray]:
    """The lines of a table that have weight, and how many rows each counts as."""
    rows = repetitions(weight, len(columns))
    used = rows > 0
    return (columns, rows) if used.all() else (columns[used], rows[used])


def _within(columns: FloatArray, rows: FloatArray, levels: slice, some: Sequence[int]) -> list[Within]:
    """The ranges of some encoded columns within levels; each line of the table counts as so many rows."""
    level = (columns[:, levels] > 0) @ np.arange(1, _size(levels) + 1)
    order = np.argsort(level, kind="stable")
    found, starts, counts = np.unique(level[order], return_index=True, return_counts=True)
    values, rows = columns[order][:, some], rows[order][:, None]
    n_rows = np.add.reduceat(rows, starts)
    mean = np.add.reduceat(rows * values, starts) / n_rows
    variance = np.add.reduceat(rows * (values - np.repeat(mean, counts, axis=0)) ** 2, starts) / n_rows
    beyond = BEYOND * np.sqrt(variance)
    ends = np.zeros((2, 1 + _size(levels), len(some)))
    ends[0, found] = np.minimum.reduceat(values, starts) - beyond
    ends[1, found] = np.maximum.reduceat(values, starts) + beyond
    return [Within(column, levels.start, levels.stop, ends[:, :, k]) for k, column in enumerate(some)]


def _size(which: slice) -> int:
    return which.stop - which.start
