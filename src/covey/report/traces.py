"""The part of a path that a report stores: up to 200 times and the groups that woke up, small enough for a page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.path import Path
from covey.validation import FloatArray, IntArray

# Positions of the slider: enough for smooth movement, with several frames per transition.
MOST_FRAMES = 200
FEWEST_FRAMES = 30

# The time of the first frame, relative to the time at which the first group wakes up.
LEAD_IN = 0.85

# The most numbers in a page of 1.5 MB. A number takes 5.3 bytes (4-byte floats in base64), a group's table row about
# 600, a column's row 100 plus its name.
MOST_NUMBERS = 100_000
MOST_GROUPS = 500
MOST_COLUMNS = 2_000
MOST_COLUMNS_OF_A_GROUP = 200

# With more outputs than this, a table of coefficients would be unreadable.
MOST_OUTPUTS = 12

# float32 overflows at 1e38 and loses digits below 1e-38.
SAFE = 1e30

# Numbers per group and frame besides the coefficients: strength, norm, and counts of positive and negative ones.
N_FACTS = 4


@dataclass(frozen=True)
class GroupTrace:
    """One group along the path, from the first frame in which it is awake."""

    name: str
    size: int  # its number of columns
    columns: tuple[str, ...]  # those whose coefficients are stored: all, the largest of a wide group, or none
    woke: float  # the time at which it woke up; NaN for a group of a dense model that never did
    folds: int | None  # the number of folds in which it was selected
    first: int  # the first frame in which it is awake
    facts: FloatArray  # per frame: strength, norm of the coefficients, how many are positive, how many negative
    coefs: FloatArray  # per frame: coefficients in the user's columns and units, column by column, output by output
    always: bool = False  # whether it is in every model

    @property
    def strengths(self) -> FloatArray:
        """The strength at each frame from `first` on."""
        return self.facts[:, 0]

    def at(self, frame: int) -> tuple[FloatArray, FloatArray]:
        """Facts and coefficients at a frame; zeros while the group is asleep."""
        if frame < self.first:
            return np.zeros(N_FACTS), np.zeros(self.coefs.shape[1])
        return self.facts[frame - self.first], self.coefs[frame - self.first]

    def strength(self, frame: int) -> float:
        """The strength at a frame."""
        return float(self.at(frame)[0][0])


@dataclass(frozen=True)
class Frames:
    """The stored times, and the groups in order of their strength in the fitted model.

    Models are constant between the times, and the last one is the fitted model.
    """

    times: NDArray[np.float64]
    groups: tuple[GroupTrace, ...]
    awake: NDArray[np.intp]  # the number of groups awake at each frame, including those left out
    n_left_out: int  # groups that woke up but were left out to keep the page small, weakest first
    outputs: tuple[str, ...] = ()  # the names of responses or classes, if a column has several coefficients

    @property
    def chosen(self) -> int:
        """The frame of the fitted model: the last."""
        return len(self.times) - 1


def keep_frames(
    path: Path, folds: IntArray | None = None, *, always: Collection[int] = (), outputs: Sequence[str] = ()
) -> Frames:
    """Choose the times and groups of a path to store; `folds` says in how many folds each group was selected."""
    strengths = path.strengths.toarray() if path.strengths is not None else path.group_norms
    order = {l: i for i, (l, _) in enumerate(path.entered)}
    ever = np.flatnonzero(strengths.any(axis=0)).tolist()
    # by strength in the fitted model, and then by the order in which they woke up
    ranked = sorted(ever, key=lambda l: (-strengths[-1, l], order.get(l, len(order)), l))
    kept = ranked[:MOST_GROUPS]
    tables = _by_output(path)
    places = _places(path, tables, kept)
    n_numbers = len(tables) * sum(map(len, places)) + N_FACTS * len(kept)
    n_frames = int(np.clip(MOST_NUMBERS / max(n_numbers, 1), FEWEST_FRAMES, MOST_FRAMES))
    index = _positions(path, n_frames)
    largest = [float(np.abs(values).max(initial=0.0)) for values in (path.coefs.data, strengths)]
    in_range = all(size == 0 or 1 / SAFE <= size <= SAFE for size in largest)
    precision = np.float32 if in_range else np.float64
    woke = dict(path.entered)
    traces = []
    for l, listed in zip(kept, places, strict=True):
        awake = np.flatnonzero(strengths[index, l])
        first = int(awake[0]) if awake.size else len(index)
        begin, end = path.groups.starts[l : l + 2]
        coefs = np.stack([table[index[first:], begin:end].toarray() for table in tables], axis=2)
        norms = np.linalg.norm(coefs.reshape(len(coefs), -1), axis=1)
        facts = (strengths[index[first:], l], norms, (coefs > 0).sum(axis=(1, 2)), (coefs < 0).sum(axis=(1, 2)))
        traces.append(
            GroupTrace(
                name=str(path.groups.names[l]),
                size=int(end - begin),
                columns=tuple(path.groups.column_name(int(path.groups.members[j])) for j in listed),
                woke=float(woke.get(l, np.nan)),
                folds=None if folds is None else int(folds[l]),
                first=first,
                facts=np.column_stack(facts).astype(precision),
                coefs=coefs[:, listed - begin].reshape(len(coefs), listed.size * len(tables)).astype(precision),
                always=l in always,
            )
        )
    return Frames(
        times=np.asarray(path.times, dtype=float)[index],
        groups=tuple(traces),
        awake=np.count_nonzero(strengths[index], axis=1),
        n_left_out=len(ranked) - len(kept),
        outputs=tuple(outputs) if len(tables) > 1 else (),
    )


def _by_output(path: Path) -> list[sp.csr_array]:
    """The coefficients of each output, ordered by group."""
    groups, m = path.groups, path.n_outputs
    if path.parts is not None:
        width = groups.members.size
        return [sp.csr_array(path.parts[:, k * width : (k + 1) * width]) for k in range(m)]
    return [sp.csr_array(path.coefs[:, k * groups.n_columns + groups.members]) for k in range(m)]


def _places(path: Path, tables: list[sp.csr_array], kept: list[int]) -> list[NDArray[np.intp]]:
    """The indices of the columns stored for each group: in a wide group, those with the largest coefficients."""
    last = np.max([np.abs(table[[-1]]).toarray().ravel() for table in tables], axis=0)
    largest = np.max([np.abs(table).max(axis=0).toarray().ravel() for table in tables], axis=0)
    found, room = [], MOST_COLUMNS // len(tables) if len(tables) <= MOST_OUTPUTS else 0
    for l in kept:
        begin, end = path.groups.starts[l : l + 2]
        places = np.arange(begin, end)
        if places.size > MOST_COLUMNS_OF_A_GROUP:
            size = last[begin:end] if last[begin:end].any() else largest[begin:end]
            places = begin + np.sort(np.argsort(-size, kind="stable")[:MOST_COLUMNS_OF_A_GROUP])
        if places.size > room:
            places = places[:0]
        room -= places.size
        found.append(places)
    return found


def _positions(path: Path, n_frames: int) -> NDArray[np.intp]:
    """Indices of recorded times from shortly before the first group wakes up to the last.

    If there are too many, half are evenly spaced in time and half among the records, which are densest where most
    happens.
    """
    times = np.asarray(path.times, dtype=float)
    begin = path.index(max(times[0], LEAD_IN * min((t for _, t in path.entered), default=0.0)))
    if len(times) - begin <= n_frames:
        return np.arange(begin, len(times))
    half = n_frames // 2
    even = np.searchsorted(times, np.linspace(times[begin], times[-1], half))
    records = np.linspace(begin, len(times) - 1, half).round()
    return np.unique(np.concatenate([even, records, [len(times) - 2, len(times) - 1]]).astype(np.intp))
