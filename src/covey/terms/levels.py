"""Categories: one centred column per level, so that an unseen level is the weighted mean of the known ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.tables.complaint import Column, shortened
from covey.terms.reading import as_labels
from covey.validation import Array, FloatArray, IntArray, some

MISSING = "(missing)"
OTHER = "(other)"
# A level with fewer rows than this is rare: one row in a hundred, within these limits.
RARE_SHARE = 0.01
LEAST_RARE, MOST_RARE = 3, 10
# More levels than this are joined too, the rarest first: each has a column.
MOST_LEVELS = 200


def rare_below(n_rows: float) -> int:
    """Levels with fewer rows than this are rare.

    >>> rare_below(50), rare_below(500), rare_below(50_000)
    (3, 5, 10)
    """
    return int(np.clip(np.ceil(RARE_SHARE * n_rows), LEAST_RARE, MOST_RARE))


@dataclass(frozen=True)
class Category:
    """A fitted category: its levels with their counts and shares of the rows, and the levels that were joined."""

    name: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    shares: tuple[float, ...]
    joined: tuple[str, ...] = ()  # levels that are in the one called other
    other: str | None = None
    missing: str | None = None
    always: bool = False
    n_rows: float = 0.0  # of all levels together, counted by weight

    kind = "levels"

    @property
    def terms(self) -> tuple[tuple[str, str, int | None, tuple[str, ...]], ...]:
        """Name, kind, parent and column names of the term."""
        return ((self.name, "levels", None, tuple(f"{self.name}={text}" for text in self.labels)),)

    def read(self, column: Column) -> IntArray:
        """The position of each value's level, -1 for a level that was not in the data of fit."""
        return self.positions(as_labels(column))

    def positions(self, texts: Array) -> IntArray:
        """The position of each text's level; None is a missing value."""
        places: dict[str | None, int] = {
            text: j for j, text in enumerate(self.labels) if text not in (self.other, self.missing)
        }
        places |= {text: self.labels.index(str(self.other)) for text in self.joined}
        if self.missing is not None:
            places[None] = self.labels.index(self.missing)
        return np.array([places.get(text, -1) for text in texts], dtype=np.intp)

    def encode(self, positions: IntArray) -> FloatArray:
        """The encoded columns; an unseen level is zero in all of them."""
        out = np.zeros((len(positions), len(self.labels)), order="F")
        known = positions >= 0
        out[known] = -np.array(self.shares)
        out[np.flatnonzero(known), positions[known]] += 1.0
        return out

    def grid(self, n: int) -> list[str | None]:
        """One value per level: a joined level stands for the others, None for missing values."""
        special = {self.other: self.joined[0] if self.joined else None, self.missing: None}
        return [special.get(text, text) for text in self.labels]

    def describe(self) -> dict[str, object]:
        """A line of `Encoding.table`."""
        shown = [shortened(text) for text in self.labels if text != self.missing]
        missing = self.counts[self.labels.index(self.missing)] if self.missing is not None else 0
        return {
            "kind": "levels",
            "columns": len(self.labels),
            "values": f"{len(shown)} level{'s' * (len(shown) > 1)}: {some(shown, 4)}",
            "missing": missing,
            "remark": f"{len(self.joined)} rare levels joined" if self.joined else "",
        }

    def state(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Category:
        """The inverse of `state`."""
        values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in state.items()}
        return cls(**values)


def fit_levels(
    name: str,
    texts: Array,
    weights: FloatArray,
    *,
    order: Iterable[str] | None = None,
    rare: int | None = None,
    always: bool = False,
) -> Category:
    """Fit the levels of a category from texts, None for missing values; rare levels are joined if there are several."""
    counts: Counter[str | None] = Counter(texts.tolist())
    rows: dict[str | None, float] = defaultdict(float)
    for text, weight in zip(texts, weights.tolist(), strict=True):
        rows[text] += weight
    n_rows = sum(rows.values())
    least: float = rare_below(n_rows) if rare is None else rare
    sizes = sorted((count for text, count in rows.items() if text is not None), reverse=True)
    if rare is None and len(sizes) > MOST_LEVELS:
        least = max(least, sizes[MOST_LEVELS] + 1)
    order = sorted(text for text in counts if text is not None) if order is None else order
    found = [text for text in order if text in counts]
    joined = [text for text in found if rows[text] < least]
    if len(joined) < 2 or least <= 1:
        joined = []
    members: dict[str, list[Any]] = {text: [text] for text in found if text not in set(joined)}
    other = _free(OTHER, found) if joined else None
    missing = _free(MISSING, found) if None in counts else None
    members |= {label: some for label, some in ((other, joined), (missing, [None])) if label is not None}
    return Category(
        name, tuple(members), tuple(sum(counts[text] for text in group) for group in members.values()),
        tuple(sum(rows[text] for text in group) / n_rows for group in members.values()), tuple(joined), other, missing,
        always, n_rows,
    )  # fmt: skip


def _free(label: str, taken: Sequence[str]) -> str:
    """A label that no level has: parentheses are added until it is free."""
    while label in taken:
        label = f"({label})"
    return label


def spelt_alike(labels: Sequence[str]) -> list[str]:
    """The levels that are the same but for spaces and capitals."""
    spelt: dict[str, list[str]] = defaultdict(list)
    for text in labels:
        spelt[" ".join(text.split()).casefold()].append(text)
    return [text for same in spelt.values() if len(same) > 1 for text in same]
