"""The path as a report keeps it: a few hundred times, the groups that woke up, no more bytes than a page carries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.path import Path

__all__ = ["Float32", "Frames", "GroupTrace", "keep_frames"]

Float32 = NDArray[np.float32]

# Positions of the slider: enough for a smooth move, and every transition shows in several.
MOST_FRAMES = 200
FEWEST_FRAMES = 40

# Numbers kept in all. As base64 of 4-byte floats, 300 000 of them are 1.6 MB of a page that may have 3.
MOST_NUMBERS = 300_000

# Groups in the table, and with them their rows of HTML (about 500 bytes each, and 70 a column).
MOST_GROUPS = 1_000
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class GroupTrace:
    """One group along the path.

    Attributes
    ----------
    name : str
    columns : tuple of str
    woke : float
        The time at which it woke up.
    first : int
        The first frame at which it is awake.
    strengths : ndarray of float32, shape (n_frames - first,)
        How much the group does at each frame from then on (`covey.Path.strengths`).
    coefs : ndarray of float32, shape (n_frames - first, n_columns of the group)
        Coefficients in the user's columns and units.
    """

    name: str
    columns: tuple[str, ...]
    woke: float
    first: int
    strengths: Float32
    coefs: Float32

    def strength(self, frame: int) -> float:
        """The strength at a frame; 0 while the group sleeps."""
        return 0.0 if frame < self.first else float(self.strengths[frame - self.first])

    def coef(self, frame: int) -> Float32:
        """The coefficients at a frame."""
        return np.zeros(len(self.columns), np.float32) if frame < self.first else self.coefs[frame - self.first]


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
    kept = _affordable(path, ranked)
    n_columns = int(path.groups.sizes[kept].sum()) + len(kept)
    n_frames = int(np.clip(MOST_NUMBERS / max(n_columns, 1), FEWEST_FRAMES, MOST_FRAMES))
    index = _positions(path, n_frames, [chosen, *marks])
    woke = dict(path.entered)
    traces = tuple(_trace(path, l, woke.get(l, 0.0), index, strengths[index, l]) for l in kept)
    return Frames(
        times=np.asarray(path.times, dtype=float)[index],
        chosen=int(np.searchsorted(index, at)),
        groups=traces,
        awake=np.count_nonzero(strengths[index], axis=1),
        n_left_out=len(ranked) - len(kept),
    )


def _ranked(path: Path, strengths: NDArray[np.float64], at: int) -> list[int]:
    """Groups that are ever awake: by strength at the chosen time, then in the order in which they woke up."""
    order = {l: i for i, (l, _) in enumerate(path.entered)}
    ever = np.flatnonzero(strengths.any(axis=0)).tolist()
    return sorted(ever, key=lambda l: (-strengths[at, l], order.get(l, len(order)), l))


def _affordable(path: Path, ranked: list[int]) -> list[int]:
    """The strongest groups that fit into a page."""
    few = ranked[:MOST_GROUPS]
    columns = np.cumsum(path.groups.sizes[few])
    limit = min(MOST_COLUMNS, MOST_NUMBERS // FEWEST_FRAMES)
    return few[: max(1, int(np.searchsorted(columns, limit, side="right")))]


def _positions(path: Path, n_frames: int, marks: list[float]) -> NDArray[np.intp]:
    """Recorded times nearest to evenly spaced ones, with those that are marked."""
    times = np.asarray(path.times, dtype=float)
    even = np.searchsorted(times, np.linspace(times[0], times[-1], n_frames))
    marked = [path.index(mark) for mark in marks if times[0] <= mark <= times[-1]]
    return np.unique(np.concatenate([even, marked]).astype(np.intp))


def _trace(path: Path, l: int, woke: float, index: NDArray[np.intp], strengths: NDArray[np.float64]) -> GroupTrace:
    groups = path.groups
    columns = groups.members[groups.starts[l] : groups.starts[l + 1]]
    awake = np.flatnonzero(strengths)
    first = int(awake[0]) if awake.size else len(index)
    return GroupTrace(
        name=str(groups.names[l]),
        columns=tuple(groups.column_name(int(j)) for j in columns),
        woke=float(woke),
        first=first,
        strengths=strengths[first:].astype(np.float32),
        coefs=path.coefs[index[first:]][:, columns].toarray().astype(np.float32),
    )
