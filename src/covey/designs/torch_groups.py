"""Torch operations on all groups at once: Gram blocks, their factors, products with all columns.

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

from covey.designs.cholesky import DEPENDENT, DOUBTFUL, TIE
from covey.layout import gathered

__all__ = [
    "WIDE",
    "SizeClass",
    "gram_blocks",
    "on_device",
    "orthonormal_factors",
    "padded",
    "product",
    "size_classes",
]

Array = NDArray[Any]

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
            own = slice(a * self.size, b * self.size)
            yield SizeClass(self.size, self.groups[a:b], self.columns[own], self.positions[own])

    def of(self, X: torch.Tensor) -> torch.Tensor:
        """These columns of X: a view if they are consecutive, a copy otherwise."""
        return X[..., _selection(self.columns, X)]


def on_device(values: Any, like: torch.Tensor) -> torch.Tensor:
    """Numbers from the host as a tensor on the device of another: integers unchanged, floats in float64."""
    array = np.require(values, requirements=["C", "W"])
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
    return torch.as_tensor(array, device=like.device)


def size_classes(members: NDArray[Any], starts: NDArray[Any]) -> list[SizeClass]:
    """The groups by size, without empty ones."""
    sizes = np.diff(starts)
    out = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        groups = np.flatnonzero(sizes == size)
        positions = (starts[groups][:, None] + np.arange(size)).ravel()
        out.append(SizeClass(size, groups, members[positions], positions))
    return out


def _selection(columns: NDArray[Any], X: torch.Tensor) -> Any:
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
    own = products.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2).reshape(even, size, size)
    return own if even == count else torch.cat([own, gram_blocks(Z[:, even:])])


def orthonormal_factors(A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cholesky factorisations of correlation matrices, of shape (..., size, size), all at once.

    Returns T with ``T' A T`` the identity on its first `rank` columns and zero in the others; the ranks; and whether
    each rank is certain. The column with the largest pivot is taken next, which reveals the rank. The numpy version is
    in `covey.designs.cholesky`.
    """
    A = A.clone()
    size = A.shape[-1]
    T, C = torch.zeros_like(A), torch.zeros_like(A)
    left = torch.ones_like(A[..., 0], dtype=torch.bool)
    going = torch.ones_like(A[..., 0, 0], dtype=torch.bool)
    ranks = torch.zeros_like(going, dtype=torch.int64)
    certain = torch.ones_like(going)
    for k in range(size):
        diagonal = torch.where(left, A.diagonal(dim1=-2, dim2=-1), -torch.inf)
        # the earlier column wins a tie: round-off error must not decide the order
        near_best = diagonal * (1.0 + TIE) >= diagonal.amax(dim=-1, keepdim=True)
        best = near_best.to(torch.uint8).argmax(dim=-1, keepdim=True)
        pivot = diagonal.gather(-1, best)[..., 0]
        going = going & (pivot > DEPENDENT)
        certain &= ~(going & (pivot <= DOUBTFUL))
        root = torch.where(going, pivot, 1.0).sqrt()
        index = best[..., None].expand(*best.shape[:-1], 1, size)
        row = A.gather(-2, index)[..., 0, :] / root[..., None] * going[..., None]
        unit = torch.zeros_like(row).scatter_(-1, best, 1.0)
        behind = (T[..., :k] @ C.gather(-2, index)[..., 0, :k, None])[..., 0]
        T[..., k] = (unit - behind) / root[..., None] * going[..., None]
        C[..., k] = row
        A -= row[..., :, None] * row[..., None, :]
        left = left & (unit == 0)
        ranks += going
    return T, ranks, certain


def padded(flat: Array, starts: Array, ranks: Array, part: SizeClass, rows: int) -> Array:
    """Matrices with `rows` rows and a column per rank, padded with zeros to the groups' size; (k, rows * size)."""
    out = np.zeros((part.groups.size, rows, part.size))
    own_ranks = ranks[part.groups]
    for rank in np.unique(own_ranks[own_ranks > 0]).tolist():
        own = np.flatnonzero(own_ranks == rank)
        out[own, :, :rank] = gathered(flat, starts[part.groups[own]], rows * rank).reshape(own.size, rows, rank)
    return out.reshape(part.groups.size, rows * part.size)


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
