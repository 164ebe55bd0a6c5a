"""Positions of pieces that are stored one after another: columns of groups, factors, coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "chain", "offsets", "spans"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """The columns of the groups in a design: group l has columns ``members[starts[l]:starts[l + 1]]``."""

    members: NDArray[np.intp]
    starts: NDArray[np.intp]
    in_order: bool

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of columns of each group."""
        return self.starts[1:] - self.starts[:-1]


def offsets(lengths: Array) -> NDArray[np.intp]:
    """Where consecutive pieces of these lengths start, and where the last one ends."""
    out = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=out[1:])
    return out


def spans(starts: Array, which: Array) -> NDArray[np.intp]:
    """The positions of some pieces, one after another."""
    first = starts[which]
    lengths = starts[1:][which] - first
    ends = np.cumsum(lengths)
    return np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if ends.size else 0)


def chain(first: Array, second: Array) -> NDArray[np.intp]:
    """The offsets of two sequences of pieces, one after the other."""
    return np.concatenate([first, second[1:] + first[-1]])
