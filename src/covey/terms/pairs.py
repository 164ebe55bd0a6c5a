"""Which pairs of terms are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import pandas as pd

from covey.tables.complaint import listed, near
from covey.terms.reading import missing_values
from covey.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from covey.terms.encoding import Encoding

__all__ = ["Pairs", "as_pairs", "find_pairs"]

# Rows per occupied cell that two categories need: an effect per cell has this many rows on average.
ROWS_PER_CELL = 5
# Rows per level that a category needs in a pair with a number, on average: fewer do not tell a slope per level.
ROWS_PER_SLOPE = 10
# In tables so wide that more pairs would have to be checked, pairs are not tried anyway.
MOST_CHECKED = 10_000_000
THIN = "too few rows per cell or level, or one within the other"

# What is accepted as ``pairs=``.
PairsLike: TypeAlias = str | Sequence[Sequence[str]] | Mapping[str, str | Sequence[str]] | None


@dataclass(frozen=True)
class Pairs(Sequence[tuple[int, int]]):
    """Pairs of positions of terms, smaller one first: those listed, or all pairs of `members` but those left out.

    A table of thousands of variables has millions of pairs, so all pairs are described rather than stored.
    """

    listed: tuple[tuple[int, int], ...] = ()
    members: tuple[int, ...] = ()
    left_out: frozenset[tuple[int, int]] = frozenset()

    def __len__(self) -> int:
        return len(self.listed) + len(self.members) * (len(self.members) - 1) // 2 - len(self.left_out)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        yield from self.listed
        yield from (pair for pair in combinations(self.members, 2) if pair not in self.left_out)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | list[tuple[int, int]]:
        return list(self)[index]

    def without(self, terms: Collection[int]) -> Pairs:
        """The pairs that none of these terms is in."""

        def free(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
            return [pair for pair in pairs if not {*pair} & {*terms}]

        members = tuple(j for j in self.members if j not in terms)
        return Pairs(tuple(free(self.listed)), members, frozenset(free(self.left_out)))

    def state(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "listed": [list(pair) for pair in self.listed],
            "members": list(self.members),
            "left_out": [list(pair) for pair in sorted(self.left_out)],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Pairs:
        """The inverse of `state`."""
        listed, left_out = ([(int(a), int(b)) for a, b in state[name]] for name in ("listed", "left_out"))
        return cls(tuple(listed), tuple(state["members"]), frozenset(left_out))


def as_pairs(pairs: PairsLike) -> PairsLike:
    """Check the form of `pairs`: None, "auto", a tuple of pairs of names, or {"with": (names, ...)}."""
    if pairs is None or (isinstance(pairs, str) and pairs == "auto"):
        return pairs
    if isinstance(pairs, Mapping) and set(pairs) == {"with"}:
        names = pairs["with"]
        names = (names,) if isinstance(names, str) else tuple(names)
        if names and all(isinstance(name, str) for name in names):
            return {"with": names}
    elif isinstance(pairs, Sequence) and not isinstance(pairs, str):
        every = [tuple(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else () for pair in pairs]
        odd = [pair for pair, names in zip(pairs, every, strict=True) if [type(name) for name in names] != [str, str]]
        if odd:
            raise ValueError(f"pairs: {odd[0]!r} is not a pair of names such as ('age', 'sex').")
        return tuple(every)
    raise ValueError(
        "pairs must be None, 'auto', a list of pairs of names such as [('age', 'sex')], or {'with': 'treatment'}, not "
        f"{pairs!r}."
    )


def find_pairs(
    pairs: PairsLike, encoding: Encoding, frame: pd.DataFrame, weights: FloatArray
) -> tuple[Pairs, list[str]]:
    """The pairs of terms that are wanted, and remarks on pairs that were left out."""
    if pairs is None:
        return Pairs(), []
    useless = _Cells(encoding, frame, weights)
    if isinstance(pairs, str):
        members = tuple(j for name in encoding.variables for j in _mains(encoding, name))
        left_out, remarks = useless.among()
        return Pairs(members=members, left_out=frozenset(left_out)), remarks
    if isinstance(pairs, Mapping):
        fixed = [(name, j) for name in pairs["with"] for j in _named(encoding, name, f"{{'with': {name!r}}}")]
        others = [j for name in encoding.variables for j in _mains(encoding, name)]
        wanted = [
            (min(i, j), max(i, j)) for _, i in fixed for j in others
            if encoding.terms[i].variables != encoding.terms[j].variables
        ]  # fmt: skip
        wanted = [pair for pair in wanted if not useless.apart(*pair)]
        return Pairs(tuple(dict.fromkeys(wanted))), []
    found: list[tuple[int, int]] = []
    for left, right in pairs:
        where = f"({left!r}, {right!r})"
        first, second = (_named(encoding, name, where) for name in (left, right))
        if encoding.terms[first[0]].variables == encoding.terms[second[0]].variables:
            raise ValueError(f"pairs: {where} is a variable with itself; for a curved effect use Curve().")
        both = [(min(i, j), max(i, j)) for i in first for j in second]
        if all(useless.apart(*pair) for pair in both):
            raise ValueError(f"pairs: {where} has no rows in common: where one has a value, the other is missing.")
        found += [pair for pair in both if not useless.apart(*pair)]
    return Pairs(tuple(dict.fromkeys(found))), []


def _mains(encoding: Encoding, name: str) -> list[int]:
    """The terms of a variable that may be in pairs."""
    return [j for j in encoding.terms_of(name) if encoding.terms[j].kind in ("linear", "levels")]


def _named(encoding: Encoding, name: str, where: str) -> list[int]:
    """The terms that may be in pairs of a variable, or the one with a name such as date[week]."""
    if name in encoding.dropped:
        raise ValueError(f"pairs: {where}: the variable {name!r} is left out: {encoding.dropped[name]}.")
    if name in encoding.variables:
        return _mains(encoding, name)
    exact = [j for j, term in enumerate(encoding.terms) if term.name == name and term.kind in ("linear", "levels")]
    if not exact:
        raise ValueError(f"pairs: {where}: there is no variable {name!r}; {near(name, encoding.variables)}")
    return exact


class _Cells:
    """Counts the rows that two terms have in common, by weight."""

    def __init__(self, encoding: Encoding, frame: pd.DataFrame, weights: FloatArray) -> None:
        self.encoding, self.weights = encoding, weights
        levels = {j for j, term in enumerate(encoding.terms) if term.kind == "levels"}
        flagged = [
            j for j, term in enumerate(encoding.terms)
            if term.kind == "linear" and term.columns.stop - term.columns.start > 1
        ]  # fmt: skip
        self.observed = {j: ~missing_values(frame[encoding.terms[j].variables[0]]) for j in flagged}
        self.positions: dict[int, IntArray] = {}
        for j in sorted(levels):
            (name,) = encoding.terms[j].variables
            columns = encoding.terms[j].columns
            start = encoding.terms[encoding.terms_of(name)[0]].columns.start
            block = encoding.encode(name, frame[name])[:, columns.start - start : columns.stop - start]
            self.positions[j] = np.where(block.max(axis=1) > 0, block.argmax(axis=1), -1)

    def apart(self, i: int, j: int) -> bool:
        """Whether two numbers have no rows in common."""
        return i in self.observed and j in self.observed and not (self.observed[i] & self.observed[j]).any()

    def thin(self) -> list[tuple[int, int]]:
        """Pairs of categories with too few rows per cell, or no more cells than the sum of their effects fits."""
        found: list[tuple[int, int]] = []
        terms = sorted(self.positions)
        widths = np.array([int(self.positions[j].max()) + 1 for j in terms])
        starts = np.concatenate([[0], np.cumsum(widths)])
        indicators = np.zeros((len(self.weights), starts[-1]), dtype=np.float32)
        for place, j in enumerate(terms):
            known = np.flatnonzero(self.positions[j] >= 0)
            indicators[known, starts[place] + self.positions[j][known]] = 1.0
        weights = self.weights[:, None].astype(np.float32)
        for place, j in enumerate(terms[:-1]):
            after = starts[place + 1]
            cells = (indicators[:, starts[place] : after] * weights).T @ indicators[:, after:]
            blocks = starts[place + 1 : -1] - after
            occupied = np.add.reduceat((cells > 0).sum(axis=0), blocks)
            n_rows = np.add.reduceat(cells.sum(axis=0), blocks)
            useless = (occupied < widths[place] + widths[place + 1 :]) | (n_rows < ROWS_PER_CELL * occupied)
            found += [(j, terms[place + 1 + k]) for k in np.flatnonzero(useless)]
        return found

    def steep(self) -> list[tuple[int, int]]:
        """Pairs of a number with a category that has too few rows per level for a slope each."""
        numbers = [j for j, term in enumerate(self.encoding.terms) if term.kind == "linear"]
        many = [
            j for j, levels in self.positions.items()
            if self.weights[levels >= 0].sum() < ROWS_PER_SLOPE * np.unique(levels[levels >= 0]).size
        ]  # fmt: skip
        few = len(numbers) * len(many) <= MOST_CHECKED
        return [(min(i, j), max(i, j)) for i in numbers for j in many] if few else []

    def disjoint(self) -> list[tuple[int, int]]:
        """Pairs of numbers that have no rows in common."""
        terms = sorted(self.observed) if len(self.observed) ** 2 <= MOST_CHECKED else []
        observed = np.array([self.observed[j] for j in terms], dtype=np.float32)
        return [(terms[i], terms[j]) for i, j in np.argwhere(observed @ observed.T == 0) if i < j] if terms else []

    def among(self) -> tuple[list[tuple[int, int]], list[str]]:
        """The pairs that are of no use, and remarks on them."""
        terms = self.encoding.terms
        same = [pair for name in self.encoding.variables for pair in combinations(_mains(self.encoding, name), 2)]
        apart = self.disjoint()
        thin = sorted({*self.thin(), *self.steep()} - set(same)) if self.positions else []
        remarks = [
            f"Pairs left out, {reason}: {listed(f'{terms[i].name}:{terms[j].name}' for i, j in pairs)}."
            for pairs, reason in (
                (thin, "too few rows per cell or level, or one within the other"),
                (apart, "no rows in common"),
            )
            if pairs
        ]
        return [*same, *thin, *apart], remarks
