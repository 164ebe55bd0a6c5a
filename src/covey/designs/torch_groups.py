"""Torch operations on all groups at once: Gram blocks, factors, products with all columns.

Groups of equal size are handled together, as one tensor of shape (..., groups, size). Everything stays on the device
of the input tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from covey.layout import gathered
from covey.validation import Array

__all__ = ["SizeClass", "gram_blocks", "on_device", "padded_factors", "product", "size_classes"]

# Neighbouring groups are multiplied together, about this many columns at a time: products of fewer columns leave a GPU
# idle, and the unneeded products between groups cost less than that (measured on an H200, in float64).
SPAN = 20

# Numbers of rows in a float32 product on a GPU: up to the first, X is read at full speed; the second is best for more.
NARROW, WIDE = 5, 64


@dataclass(frozen=True)
class SizeClass:
    """All groups of one size.

    Attributes
    ----------
    size : int
    groups : ndarray of int, shape (k,)
        Positions of the groups.
    columns : ndarray of int, shape (k * size,)
        Their columns in X, group by group.
    positions : ndarray of int, shape (k * size,)
        Positions of these columns in the groups' contiguous layout.
    """

    size: int
    groups: NDArray[np.intp]
    columns: NDArray[np.intp]
    positions: NDArray[np.intp]

    def parts(self, count: int) -> Iterator[SizeClass]:
        """The same in pieces of at most `count` groups."""
        for a, b in pairwise([*range(0, self.groups.size, count), self.groups.size]):
            at = slice(a * self.size, b * self.size)
            yield SizeClass(self.size, self.groups[a:b], self.columns[at], self.positions[at])

    def of(self, X: torch.Tensor) -> torch.Tensor:
        """These columns of X: a view if they are consecutive, a copy otherwise."""
        return X[..., _selection(self.columns, X)]


def on_device(values: Array | torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Numbers as a tensor on the device of another: integers unchanged, floats in float64; a tensor as it is."""
    if isinstance(values, torch.Tensor):
        return values.to(like.device)
    array = np.require(values, requirements=["C", "W"])
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
    return torch.as_tensor(array, device=like.device)


def size_classes(members: Array, starts: Array) -> list[SizeClass]:
    """The groups by size, without empty ones."""
    sizes = np.diff(starts)
    out = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        groups = np.flatnonzero(sizes == size)
        positions = (starts[groups][:, None] + np.arange(size)).ravel()
        out.append(SizeClass(size, groups, members[positions], positions))
    return out


def _selection(columns: Array, X: torch.Tensor) -> slice | torch.Tensor:
    """A slice if columns are consecutive, otherwise their positions as a tensor on the device."""
    first = int(columns[0])
    if int(columns[-1]) - first + 1 == columns.size and bool((np.diff(columns) == 1).all()):
        return slice(first, first + columns.size)
    return on_device(columns, X)


def gram_blocks(Z: torch.Tensor) -> torch.Tensor:
    """``Z_l' Z_l`` of every group, for Z of shape (n, groups, size); shape (groups, size, size)."""
    n, count, size = Z.shape
    together = min(count, max(1, SPAN // size))
    even = count // together * together
    wide = Z[:, :even].reshape(n, even // together, together * size).permute(1, 2, 0)
    products = torch.bmm(wide, wide.transpose(1, 2)).view(-1, together, size, together, size)
    blocks = products.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2).reshape(even, size, size)
    return blocks if even == count else torch.cat([blocks, gram_blocks(Z[:, even:])])


def padded_factors(problem: Any, X: torch.Tensor) -> list[tuple[SizeClass, torch.Tensor]]:
    """The factors of a `WorkingProblem` by group size, as square matrices with zeros beyond their ranks."""
    out = []
    for part in size_classes(problem.layout.members, problem.layout.starts):
        size, ranks = part.size, problem.ranks[part.groups]
        T = np.zeros((part.groups.size, size, size))
        for rank in np.unique(ranks[ranks > 0]).tolist():
            at = np.flatnonzero(ranks == rank)
            flat = gathered(problem.factors, problem.factor_starts[part.groups[at]], size * rank)
            T[at, :, :rank] = flat.reshape(at.size, size, rank)
        out.append((part, on_device(T, X).to(X.dtype)))
    return out


def product(R: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """``R X`` in the precision of X, for R of shape (k, n).

    In float32 on a GPU, the speed of cuBLAS depends on the orientation and the number of rows. On an H200, the direct
    product is fastest for up to 5 rows and for about 64, its transpose in between.
    """
    R = R.to(X.dtype)
    if not X.is_cuda or X.dtype == torch.float64 or R.shape[0] <= NARROW:
        return R @ X
    if R.shape[0] <= WIDE // 2:
        return (X.T @ R.T).T
    return torch.cat([piece @ X for piece in R.split(WIDE)])
