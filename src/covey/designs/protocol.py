"""Design: the few operations through which everything above touches X.

The engine reads X once for its moments and then only for the Gram rows of groups that wake up, so a kind of
storage that offers these operations gets the whole method. Nothing here centres, scales or copies X: that is the
business of `covey.preprocess`, which acts on the results through each group's small factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from covey.designs.blocks import GatheredColumns

__all__ = ["LARGEST_BLOCK", "Design", "Moments", "block_offsets"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Moments:
    """First and second moments of a design, from one reading of it, in the groups' contiguous layout.

    Attributes
    ----------
    mean : ndarray, shape (p,)
        Weighted column means; zeros where no centring was asked for.
    correlation : ndarray, shape (p,)
        ``sum_i q_i (x_ij - mean_j) y_i``.
    blocks, block_starts : ndarray
        The centred Gram blocks ``sum_i q_i (x_i - mean)(x_i - mean)'``, flat: that of group l, row after row, is
        ``blocks[block_starts[l]:block_starts[l + 1]]``. Empty for a group larger than `LARGEST_BLOCK`.
    """

    mean: NDArray[np.float64]
    correlation: NDArray[np.float64]
    blocks: NDArray[np.float64]
    block_starts: NDArray[np.intp]


# Beyond this many columns a group's Gram block costs more than a factorisation of the columns themselves, and one
# such group would widen the bands of all its neighbours in the pass.
LARGEST_BLOCK = 64


def block_offsets(starts: Array) -> NDArray[np.intp]:
    """Where each group's Gram block begins in `Moments.blocks`."""
    sizes = np.diff(starts)
    offsets = np.zeros(starts.size, dtype=np.intp)
    np.cumsum(np.where(sizes <= LARGEST_BLOCK, sizes**2, 0), out=offsets[1:])
    return offsets


@runtime_checkable
class Design(Protocol):
    """A matrix X of n rows and p columns, in whatever storage.

    ``q`` below are row weights that add up to one.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the precision in which products are formed."""
        ...

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, correlations with y and Gram blocks of the groups, of the columns times `scale`, in one pass."""
        ...

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p)."""
        ...

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p)."""
        ...

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        ...

    def gather(self, columns: Array) -> GatheredColumns:
        """A copy of some columns, to work on between two looks at all of X."""
        ...

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        ...
