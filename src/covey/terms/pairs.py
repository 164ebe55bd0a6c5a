"""Which pairs of terms are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.layout import offsets
from covey.tables.complaint import listed, near
from covey.terms.levels import rare_below
from covey.terms.reading import missing_values
from covey.validation import FloatArray

if TYPE_CHECKING:
    from covey.terms.encoding import Encoding

# Rows per occupied cell that two categories need: an effect per cell has this many rows on average.
ROWS_PER_CELL = 5
# Rows per level that a category needs in a pair with a number, on average: fewer do not tell a slope per level.
ROWS_PER_SLOPE = 10
# In tables so wide that more pairs would have to be checked, pairs are not tried anyway.
MOST_CHECKED = 10_000_000

# What is accepted as ``pairs=``.
PairsLike: TypeAlias = str | Sequence[Sequence[str]] | Mapping[str, str | Sequence[str]] | None
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Pairs:
    """Pairs of positions of terms, smaller one first: those listed, or all pairs of `members` but those left out.

    A table of thousands of variables has millions of pairs, so all pairs are described rather than stored.
    """

    listed: tuple[Pair, ...] = ()
    members: tuple[int, ...] = ()
    left_out: frozenset[Pair] = frozenset()

    def __len__(self) -> int:
        return len(self.listed) + len(self.members) * (len(self.members) - 1) // 2 - len(self.left_out)

    def __iter__(self) -> Iterator[Pair]:
        yield from self.listed
        yield from (pair for pair in combinations(self.members, 2) if pair not in self.left_out)

    def without(self, terms: Collection[int]) -> Pairs:
        """The pairs that none of these terms is in."""
        listed, left_out = ([p for p in some if not {*p} & {*terms}] for some in (self.listed, self.left_out))
        return Pairs(tuple(listed), tuple(j for j in self.members if j not in terms), frozenset(left_out))

    def state(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"left_out": sorted(self.left_out)}

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
            return {"with": tuple(map(str, names))}
    elif isinstance(pairs, Sequence) and not isinstance(pairs, str):
        for pair in pairs:
            several = isinstance(pair, Sequence) and not isinstance(pair, str)
            if not several or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
                raise ValueError(f"pairs: {pair!r} is not a pair of names such as ('age', 'sex').")
        return tuple((str(first), str(second)) for first, second in pairs)  # numpy has a text of its own
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
    mains = [j for name in encoding.variables for j in _mains(encoding, name)]
    disjoint = _disjoint(encoding, frame)
    if isinstance(pairs, str):
        left_out, remarks = _useless(encoding, mains, frame, weights, disjoint)
        return Pairs(members=tuple(mains), left_out=frozenset(left_out)), remarks
    found: list[Pair] = []
    if isinstance(pairs, Mapping):
        for name in pairs["with"]:
            fixed = _named(encoding, name, f"{{'with': {name!r}}}")
            both = [(i, j) for i in fixed for j in mains if encoding.terms[j].variables != encoding.terms[i].variables]
            found += map(_ordered, both)
        usable = [pair for pair in dict.fromkeys(found) if pair not in disjoint]
        return Pairs(tuple(usable)), _left_out(encoding, disjoint.intersection(found), "no rows in common")
    for left, right in pairs:
        where = f"({left!r}, {right!r})"
        first, second = (_named(encoding, name, where) for name in (left, right))
        if encoding.terms[first[0]].variables == encoding.terms[second[0]].variables:
            raise ValueError(f"pairs: {where} is a variable with itself; for a curved effect use Curve().")
        both = [_ordered((i, j)) for i in first for j in second]
        if disjoint.issuperset(both):
            raise ValueError(f"pairs: {where} has no rows in common: where one has a value, the other is missing.")
        found += [pair for pair in both if pair not in disjoint]
    return Pairs(tuple(dict.fromkeys(found))), []


def _ordered(pair: Pair) -> Pair:
    return min(pair), max(pair)


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


def _useless(
    encoding: Encoding, mains: Sequence[int], frame: pd.DataFrame, weights: FloatArray, disjoint: set[Pair]
) -> tuple[list[Pair], list[str]]:
    """The pairs of terms that are of no use, and remarks on them."""
    terms = encoding.terms
    same = [pair for name in encoding.variables for pair in combinations(_mains(encoding, name), 2)]
    numbers = [j for j in mains if terms[j].kind == "linear"]
    levels = {j: _indicators(encoding, j, frame) for j in mains if terms[j].kind == "levels"}
    steep = [
        j for j, one in levels.items() if weights[one.any(axis=1)].sum() < ROWS_PER_SLOPE * one.any(axis=0).sum()
    ]  # fmt: skip
    thin = _thin(levels, weights) if levels else []
    if len(numbers) * len(steep) <= MOST_CHECKED:
        thin += [_ordered((i, j)) for i in numbers for j in steep]
    thin = sorted(set(thin) - set(same))
    remarks = _left_out(encoding, thin, "too few rows per cell or level, or one within the other")
    return [*same, *thin, *disjoint], [*remarks, *_left_out(encoding, disjoint, "no rows in common")]


def _left_out(encoding: Encoding, pairs: Collection[Pair], reason: str) -> list[str]:
    """A remark on pairs that are left out, if there are any."""
    names = listed(f"{encoding.terms[i].name}:{encoding.terms[j].name}" for i, j in sorted(pairs))
    return [f"Pairs left out, {reason}: {names}."] if pairs else []


def _disjoint(encoding: Encoding, frame: pd.DataFrame) -> set[Pair]:
    """Pairs of numbers that have no rows in common; both have a flag for missing values."""
    linear = [(j, term) for j, term in enumerate(encoding.terms) if term.kind == "linear"]
    flagged = [(j, term.variables[0]) for j, term in linear if term.width > 1]
    if not flagged or len(flagged) ** 2 > MOST_CHECKED:
        return set()
    observed = np.array([~missing_values(frame[name]) for _, name in flagged], dtype=np.float32)
    return {(flagged[a][0], flagged[b][0]) for a, b in np.argwhere(observed @ observed.T == 0) if a < b}


def _indicators(encoding: Encoding, term: int, frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Which level each row has; (rows, levels)."""
    (name,) = encoding.terms[term].variables
    columns, start = encoding.terms[term].columns, encoding.terms[encoding.terms_of(name)[0]].columns.start
    return np.asarray(encoding.encode(name, frame[name])[:, columns.start - start : columns.stop - start] > 0)


def _thin(levels: Mapping[int, NDArray[np.bool_]], weights: FloatArray) -> list[Pair]:
    """Pairs of categories with too few rows per cell, or no more cells than the sum of their effects fits.

    A cell with fewer rows than a rare level does not count.
    """
    least = rare_below(weights.sum())
    terms, widths = list(levels), np.array([one.shape[1] for one in levels.values()])
    starts, indicators = offsets(widths), np.hstack(list(levels.values())).astype(np.float32)
    found = []
    for place, term in enumerate(terms[:-1]):
        own, others = indicators[:, starts[place] : starts[place + 1]], starts[place + 1 : -1]
        cells = (own * weights[:, None].astype(np.float32)).T @ indicators[:, others[0] :]
        occupied, common, n_rows = (
            np.add.reduceat(counts.sum(axis=0), others - others[0]) for counts in (cells > 0, cells >= least, cells)
        )
        useless = (common < widths[place] + widths[place + 1 :]) | (n_rows < ROWS_PER_CELL * occupied)
        found += [(term, terms[place + 1 + k]) for k in np.flatnonzero(useless)]
    return found
