"""torch tensors, on the CPU or on a GPU: X stays where it is and is never copied.

Work of the size of X, or of all its columns, is done on the tensor's device. Only small results are copied to the host:
numbers per column or group, or Gram matrices of some columns. Means, Gram matrices and residuals are always float64;
products with all of X are in the precision of X.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from covey.designs.moments import LARGEST_BLOCK, Moments, block_offsets, diagonals
from covey.designs.protocol import Design
from covey.layout import alike, gathered, joined, run
from covey.validation import Array, on_host

__all__ = ["TorchDesign", "checked_tensor", "wrap"]

# Columns are converted to float64 in tiles of about this many bytes, so that X is never duplicated.
TILE_BYTES = {"cuda": 2**31, "cpu": 2**24}

# Rows in which columns of numbers show that they have more than two values.
FEW_ROWS = 64

# Neighbouring groups are multiplied together, about this many columns at a time: products of fewer columns leave a GPU
# idle, and the unneeded products between groups cost less than that (measured on an H200, in float64).
SPAN = 20

# Numbers of rows in a float32 product on a GPU: up to the first, X is read at full speed; the second is best for more.
NARROW, WIDE = 5, 64


def wrap(X: torch.Tensor, *, name: str = "X") -> TorchDesign:
    """The design of a tensor."""
    return TorchDesign(X, name=name)


def checked_tensor(X: torch.Tensor, *, name: str = "X") -> torch.Tensor:
    """X itself, if it is a matrix that can be read on its device."""
    if X.layout != torch.strided:
        raise ValueError(
            f"{name} is a sparse torch tensor; pass {name}.to_dense(), or a scipy.sparse matrix, which stays sparse."
        )
    if X.device.type not in TILE_BYTES:
        raise ValueError(f"{name} lies on device '{X.device}'; 'cpu' and 'cuda' are supported: pass {name}.cpu().")
    if X.is_cuda and not torch.cuda.is_available():
        raise ValueError(
            f"{name} lies on device '{X.device}', but this torch finds no CUDA device: load it with "
            "map_location='cpu', or install a CUDA build of torch."
        )
    if X.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"{name} is a torch tensor of dtype {X.dtype}; float32 and float64 are supported: pass {name}.float()."
        )
    if X.requires_grad:
        raise ValueError(f"{name} requires grad, and a path cannot be differentiated: pass {name}.detach().")
    if X.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), not shape {tuple(X.shape)}. Reshape your data: "
            f"{name}.reshape(-1, 1) for a single column, {name}.reshape(1, -1) for a single row."
        )
    if 0 in X.shape:
        raise ValueError(f"{name} is empty: shape {tuple(X.shape)}.")
    return X


class TorchDesign(Design):
    """A torch tensor behind the `Design` protocol.

    Parameters
    ----------
    X : torch.Tensor of float32 or float64, shape (n, p)
        On the CPU or on a CUDA device; kept by reference.
    columns : sequence of str or None
        Column names, for messages.
    name : str
        The name of X in messages.
    """

    on_device = True

    def __init__(self, X: torch.Tensor, *, columns: Sequence[str] | None = None, name: str = "X") -> None:
        self.X = checked_tensor(X, name=name)
        dtype = np.float32 if X.dtype == torch.float32 else np.float64
        super().__init__(X.shape, dtype, columns=columns, name=name)
        self._empty = self.X[:0]
        self._factors: tuple[Array, list[tuple[SizeClass, torch.Tensor]]] | None = None

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`.

        As in `DenseDesign`, the row of largest weight is subtracted from every row before summing.
        """
        self.n_passes += 1
        p = members.size
        block_starts = block_offsets(starts)
        total, cross, squares, blocks = np.empty(p), np.empty(p), np.empty(p), []
        # equal weights are applied at the end, which saves a pass over every tile
        root, unit = (None, float(q[0])) if bool((q == q[0]).all()) else (self.put(np.sqrt(q)), 1.0)
        sides = torch.stack([self.put(q), self.put(q * y)]) if root is None else torch.stack([root, root * self.put(y)])
        row = self._row(int(np.argmax(q))).double() if centre else None
        gain = None if bool((scale == 1).all()) else self.put(scale)
        for same in size_classes(members, starts):
            sums, products = [], []
            for part in same.parts(max(1, self._tile_columns // same.size)):
                tile = self._read(part, row)
                if root is not None:
                    tile *= root[:, None]
                if gain is not None:
                    tile *= gain[self.put(part.positions)]
                sums.append(sides @ tile)
                level = (sums[-1][0] if centre else torch.zeros_like(sums[-1][0])).view(-1, part.size)
                if part.size > LARGEST_BLOCK:
                    products.append(unit * (tile * tile).sum(dim=0) - (level * level).ravel())
                else:
                    gram = unit * gram_blocks(tile.view(tile.shape[0], -1, part.size))
                    gram -= level[:, :, None] * level[:, None, :]
                    products.append(gram.flatten(1))
                del tile  # before the next one is read
            # the host waits once, not for every tile
            at = run(same.positions) or same.positions
            total[at], cross[at] = on_host(torch.cat(sums, dim=1))
            if same.size > LARGEST_BLOCK:
                squares[at] = on_host(torch.cat(products))
            else:
                blocks.append((block_starts[same.groups], on_host(torch.cat(products))))
        self.refuse(members[~np.isfinite(total)], overflow=False)
        flat = joined(int(block_starts[-1]), blocks)
        variance = diagonals(flat, block_starts, starts, squares)
        if row is None:
            return Moments(np.zeros(p), variance, cross, flat, block_starts)
        mean = on_host(row)[members] + total / scale
        return Moments(mean, variance, cross - total * float(q @ y), flat, block_starts)

    def _read(self, part: SizeClass, row: torch.Tensor | None) -> torch.Tensor:
        """A copy of some groups' columns in float64, minus a row.

        It is copied in pieces with 31-bit positions: beyond that, torch would split the copy into dozens of small ones.
        """
        n, rows = self.X.shape[0], max(1, 2**31 // max(1, abs(self.X.stride(0))))
        out = torch.empty((n, part.columns.size), dtype=torch.float64, device=self.X.device)
        for a in range(0, n, rows):
            piece = part.of(self.X[a : a + rows])
            if row is None:
                out[a : a + rows] = piece
            else:
                torch.sub(piece, part.of(row), out=out[a : a + rows])
        return out

    def correlate(self, R: Array) -> Array:
        self.n_passes += 1
        return on_host(self._times(self.put(R)))

    def gradient_norms(self, problem: Any, R: Array | torch.Tensor) -> NDArray[np.float64]:
        """The group norms of ``R X`` in working coordinates; only the norms are copied to the host."""
        self.n_passes += 1
        # the cache must not refer back to the design: X is freed with its last user, not by the garbage collector
        if self._factors is None or self._factors[0] is not problem.factors:
            self._factors = problem.factors, padded_factors(problem, self._empty)
        R = self.put(R)
        norms = np.zeros((R.shape[0], problem.ranks.size))
        step = max(1, self._tile_numbers // self.shape[1])
        for a in range(0, R.shape[0], step):
            # contiguous rows, which cuBLAS reads fastest
            G = self._times(R[a : a + step].to(self._empty.dtype).contiguous())
            for part, T in self._factors[1]:
                g = torch.bmm(part.of(G).reshape(G.shape[0], -1, part.size).transpose(0, 1), T)
                norms[a : a + step, run(part.groups) or part.groups] = on_host(g.double().norm(dim=2).T)
        return norms

    def take(self, columns: Array) -> NDArray[np.float64]:
        return on_host(self.device_columns(columns))

    def device_columns(self, columns: Array) -> torch.Tensor:
        """A copy of some columns in float64, on the device."""
        return self._columns(columns).to(torch.float64, copy=True)

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Array:
        fitted = self.device_columns(columns) @ self.put(np.asarray(coefs).T) + self.put(np.asarray(intercepts))
        return on_host(fitted)

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> NDArray[np.float64]:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w, formed on the device."""
        responses = self.put(y.reshape(self.shape[0], -1))
        A = torch.cat(
            [torch.ones_like(responses[:, :1]), self.device_columns(columns) - self.put(shift), responses], dim=1
        )
        return on_host(torch.stack([(A.T * self.put(w)) @ A for w in weights]))

    def extremes(self, columns: Array, weight: Array) -> Array:
        out, used = np.empty((3, len(columns))), slice(None) if (weight > 0).all() else self.put(weight > 0)
        for a in range(0, len(columns), self._tile_columns):
            at = slice(a, a + self._tile_columns)
            some = self._columns(columns[at])[used]
            low, high = torch.aminmax(some, dim=0)
            only = is_extreme(some[:FEW_ROWS], low, high)
            # most columns have other values in the first rows
            which = only.nonzero()[:, 0]
            only[which] = is_extreme(some[:, which], low[which], high[which])
            out[:, at] = on_host(torch.stack([low, high, only.to(low.dtype)]).double())
        return out

    def put(self, values: Array | torch.Tensor) -> torch.Tensor:
        """Numbers as a tensor on the device of X."""
        return on_device(values, self._empty)

    def _row(self, i: int) -> torch.Tensor:
        """A row of X."""
        return self.X[i]

    def _columns(self, columns: Array) -> torch.Tensor:
        """Some columns of X: a view if they are consecutive."""
        return self.X[:, selection(columns, self.X)]

    def _times(self, R: torch.Tensor) -> torch.Tensor:
        """``R X`` in the precision of X."""
        return product(R, self.X)

    @property
    def _tile_numbers(self) -> int:
        """The float64 numbers that fit a tile."""
        return TILE_BYTES[self._empty.device.type] // 8

    @property
    def _tile_columns(self) -> int:
        """The columns that fit a tile."""
        return max(1, self._tile_numbers // self.shape[0])


def is_extreme(some: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Which columns have no values but these two."""
    return ((some == low) | (some == high)).all(dim=0)


@dataclass(frozen=True)
class SizeClass:
    """All groups of one size, which are handled together, as one tensor of shape (..., groups, size)."""

    size: int
    groups: NDArray[np.intp]  # positions of the groups; shape (k,)
    columns: NDArray[np.intp]  # their columns in X, group by group; shape (k * size,)
    positions: NDArray[np.intp]  # positions of these columns in the groups' contiguous layout; shape (k * size,)

    def parts(self, count: int) -> Iterator[SizeClass]:
        """The same in pieces of at most `count` groups."""
        for a, b in pairwise([*range(0, self.groups.size, count), self.groups.size]):
            at = slice(a * self.size, b * self.size)
            yield SizeClass(self.size, self.groups[a:b], self.columns[at], self.positions[at])

    def of(self, X: torch.Tensor) -> torch.Tensor:
        """These columns of X: a view if they are consecutive, a copy otherwise."""
        return X[..., selection(self.columns, X)]


def on_device(values: Array | torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Numbers as a tensor on the device of another: integers unchanged, floats in float64; a tensor as it is."""
    if isinstance(values, torch.Tensor):
        return values.to(like.device)
    array = np.require(values, requirements=["C", "W"])
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
    return torch.as_tensor(array, device=like.device)


def size_classes(members: Array, starts: Array) -> Iterator[SizeClass]:
    """The groups by size, without empty ones."""
    for (size,), groups in alike(np.diff(starts)):
        if size > 0:
            positions = (starts[groups][:, None] + np.arange(size)).ravel()
            yield SizeClass(size, groups, members[positions], positions)


def selection(columns: Array, X: torch.Tensor) -> slice | torch.Tensor:
    """A slice if columns are consecutive, otherwise their positions as a tensor on the device."""
    if not columns.size:
        return slice(0)
    return run(columns) or on_device(columns, X)


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
        if (ranks == size).all():
            T = gathered(problem.factors, problem.factor_starts[part.groups], size * size).reshape(-1, size, size)
        else:
            T = np.zeros((part.groups.size, size, size))
            for (rank,), at in alike(ranks):
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
    if X.is_cuda and X.dtype == torch.float32 and R.shape[0] > WIDE:
        return torch.cat([product(piece, X) for piece in R.split(WIDE)])
    if X.is_cuda and X.dtype == torch.float32 and NARROW < R.shape[0] <= WIDE // 2:
        return (X.T @ R.T).T
    return R @ X
