"""The path as a report keeps it: a few hundred times, the groups that woke up, no more bytes than a page carries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from covey.path import Path
from covey.validation import FloatArray

__all__ = ["LEAD_IN", "Frames", "GroupTrace", "keep_frames"]

# Positions of the slider: enough for a smooth move, and every transition shows in several.
MOST_FRAMES = 200
FEWEST_FRAMES = 40

# Where the first frame lies, as a share of the time at which the first group wakes up: nothing happens before.
LEAD_IN = 0.85

# What a page of 3 MB can carry. A number takes 5.3 bytes (4-byte floats in base64), a group's row of the table about
# 600, a column's row 100 and its name.
MOST_NUMBERS = 250_000
MOST_GROUPS = 500
MOST_COLUMNS = 4_000
MOST_COLUMNS_OF_A_GROUP = 200

# float32 ends at 1e38; digits are lost below 1e-38.
SAFE = 1e30

# FloatArray of a group at a time beside its coefficients: strength, norm, how many are positive, how many negative.
N_FACTS = 4


@dataclass(frozen=True)
class GroupTrace:
    """One group along the path.

    Attributes
    ----------
    name : str
    size : int
        Its number of columns.
    columns : tuple of str
        The columns whose coefficients are kept: all of them, or the largest of a wide group, or none of a group that
        is among the weaker ones of very many.
    woke : float
        The time at which it woke up.
    first : int
        The first frame at which it is awake.
    facts : ndarray of float32 (float64 where numbers are too large or too small for it), shape (n_frames - first, 4)
        At each frame from then on: its strength (`covey.Path.strengths`), the norm of its coefficients, how many of
        them are positive and how many negative.
    coefs : ndarray, shape (n_frames - first, n_columns kept)
        Coefficients in the user's columns and units.
    """

    name: str
    size: int
    columns: tuple[str, ...]
    woke: float
    first: int
    facts: FloatArray
    coefs: FloatArray

    @property
    def strengths(self) -> FloatArray:
        """The strength at each frame from `first` on."""
        return self.facts[:, 0]

    def at(self, frame: int) -> tuple[FloatArray, FloatArray]:
        """Facts and coefficients at a frame; zeros while the group sleeps."""
        if frame < self.first:
            return np.zeros(N_FACTS), np.zeros(len(self.columns))
        return self.facts[frame - self.first], self.coefs[frame - self.first]

    def strength(self, frame: int) -> float:
        """The strength at a frame."""
        return float(self.at(frame)[0][0])


@dataclass(frozen=True)
class Frames:
    """The times that are kept, and the groups, strongest at the chosen time first.

    Attributes
    ----------
    times : ndarray, shape (n_frames,)
    chosen : int
        The frame of the fitted model.
    groups : tuple of GroupTrace
    awake : ndarray of int, shape (n_frames,)
        How many groups are awake at each frame, those that were left out included.
    n_left_out : int
        Groups that woke up and were left out to keep the page small: the weakest.
    """

    times: NDArray[np.float64]
    chosen: int
    groups: tuple[GroupTrace, ...]
    awake: NDArray[np.intp]
    n_left_out: int


def keep_frames(path: Path, chosen: float, marks: Iterable[float] = ()) -> Frames:
    """Choose the times and the groups to keep.

    Parameters
    ----------
    path : Path
    chosen : float
        The time of the fitted model; it is kept whatever happens.
    marks : iterable of float
        Further times to keep.
    """
    strengths = path.strengths.toarray() if path.strengths is not None else path.group_norms
    at = path.index(chosen)
    ranked = _ranked(path, strengths, at)
    kept = ranked[:MOST_GROUPS]
    columns = _columns(path, kept, at)
    n_numbers = sum(map(len, columns)) + N_FACTS * len(kept)
    n_frames = int(np.clip(MOST_NUMBERS / max(n_numbers, 1), FEWEST_FRAMES, MOST_FRAMES))
    woke = dict(path.entered)
    index = _positions(path, n_frames, [chosen, *marks])
    precision = _precision(path, strengths)
    traces = (
        _trace(path, l, woke.get(l, 0.0), index, strengths[index, l], listed, precision)
        for l, listed in zip(kept, columns, strict=True)
    )
    return Frames(
        times=np.asarray(path.times, dtype=float)[index],
        chosen=int(np.searchsorted(index, at)),
        groups=tuple(traces),
        awake=np.count_nonzero(strengths[index], axis=1),
        n_left_out=len(ranked) - len(kept),
    )


def _ranked(path: Path, strengths: FloatArray, at: int) -> list[int]:
    """Groups that are ever awake: by strength at the chosen time, then in the order in which they woke up."""
    order = {l: i for i, (l, _) in enumerate(path.entered)}
    ever = np.flatnonzero(strengths.any(axis=0)).tolist()
    return sorted(ever, key=lambda l: (-strengths[at, l], order.get(l, len(order)), l))


def _precision(path: Path, strengths: FloatArray) -> DTypeLike:
    """4 bytes a number, unless the units of the data are beyond what these hold."""
    for values in (path.coefs.data, strengths):
        largest = float(np.abs(values).max(initial=0.0))
        if largest > SAFE or 0 < largest < 1 / SAFE:
            return np.float64
    return np.float32


def _columns(path: Path, kept: list[int], at: int) -> list[NDArray[np.intp]]:
    """The columns to keep of each group: the largest of a wide one, in the order of the design."""
    chosen, last = (path.coefs[[i]].toarray().ravel() for i in (at, -1))
    found, room = [], MOST_COLUMNS
    for l in kept:
        columns = path.groups.members[path.groups.starts[l] : path.groups.starts[l + 1]]
        if columns.size > MOST_COLUMNS_OF_A_GROUP:
            size = np.abs(chosen[columns]) if chosen[columns].any() else np.abs(last[columns])
            columns = columns[np.sort(np.argsort(-size, kind="stable")[:MOST_COLUMNS_OF_A_GROUP])]
        if columns.size > room:
            columns = columns[:0]
        room -= columns.size
        found.append(columns)
    return found


def _positions(path: Path, n_frames: int, marks: list[float]) -> NDArray[np.intp]:
    """Recorded times from shortly before the first group wakes up, and those that are marked.

    Half of them evenly spaced in time, half among the records, which lie closest where most happens.
    """
    times = np.asarray(path.times, dtype=float)
    begin = path.index(max(times[0], LEAD_IN * min((t for _, t in path.entered), default=0.0)))
    half = n_frames // 2
    even = np.searchsorted(times, np.linspace(times[begin], times[-1], half))
    records = np.linspace(begin, len(times) - 1, half).round()
    marked = [path.index(mark) for mark in marks if times[0] <= mark <= times[-1]]
    return np.unique(np.concatenate([even, records, marked]).astype(np.intp))


def _trace(
    path: Path,
    l: int,
    woke: float,
    index: NDArray[np.intp],
    strengths: FloatArray,
    listed: NDArray[np.intp],
    precision: DTypeLike,
) -> GroupTrace:
    groups = path.groups
    columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
    awake = np.flatnonzero(strengths)
    first = int(awake[0]) if awake.size else len(index)
    coefs = path.coefs[index[first:]][:, columns].toarray()
    facts = (strengths[first:], np.linalg.norm(coefs, axis=1), (coefs > 0).sum(axis=1), (coefs < 0).sum(axis=1))
    return GroupTrace(
        name=str(groups.names[l]),
        size=columns.size,
        columns=tuple(groups.column_name(int(j)) for j in listed),
        woke=float(woke),
        first=first,
        facts=np.column_stack(facts).astype(precision),
        coefs=coefs[:, np.searchsorted(columns, listed)].astype(precision),
    )
