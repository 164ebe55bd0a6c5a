"""torch tensors, on the CPU or on a GPU: X stays where it is and is never copied.

Work of the size of X, or of all its columns, is done on the tensor's device. Only small results are copied to the host:
a number per column or group, or Gram rows of the few groups that the engine works on. Means, Gram blocks of groups and
residuals are always float64; products with all of X are in the precision of X.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from covey.designs.protocol import LARGEST_BLOCK, Design, Moments, block_offsets, diagonals
from covey.designs.torch_groups import (
    WIDE,
    SizeClass,
    gram_blocks,
    on_device,
    orthonormal_factors,
    padded,
    product,
    size_classes,
)
from covey.layout import gathered, scatter

__all__ = ["TorchDesign", "checked_tensor", "wrap"]

Array = NDArray[Any]

# Columns are converted to float64 in tiles of about this many bytes, so that X is never duplicated.
TILE_BYTES = {"cuda": 2**31, "cpu": 2**24}


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
        super().__init__(columns=columns, name=name)
        self.X = checked_tensor(X, name=name)
        self._factors: tuple[Array, list[tuple[SizeClass, torch.Tensor]]] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape[0], self.X.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return _numpy_dtype(self.X)

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`.

        As in `DenseDesign`, the row of largest weight is subtracted from every row before summing.
        """
        self.n_passes += 1
        X, p = self.X, members.size
        block_starts = block_offsets(starts)
        total, cross, squares, blocks = np.empty(p), np.empty(p), np.empty(p), np.empty(block_starts[-1])
        # equal weights are applied at the end, which saves a pass over every tile
        equal = bool((q == q[0]).all())
        root = None if equal else self.put(np.sqrt(q))
        sides = torch.stack([self.put(q), self.put(q * y)]) if root is None else torch.stack([root, root * self.put(y)])
        row = X[int(np.argmax(q))].double() if centre else None
        gain = None if bool((scale == 1).all()) else self.put(scale)
        for same in size_classes(members, starts):
            parts = list(self._tiles(same))
            sums, grams = zip(
                *(self._tile_moments(part, row, gain, root, float(q[0]), sides) for part in parts), strict=True
            )
            total[same.positions], cross[same.positions] = torch.cat(sums, dim=1).cpu().numpy()
            made = torch.cat(grams).flatten(1).cpu().numpy()
            if same.size <= LARGEST_BLOCK:
                scatter(blocks, block_starts[same.groups], made)
            else:
                squares[same.positions] = made.ravel()
        if not np.isfinite(total).all():
            # nothing is refused if sums merely overflowed
            self.refuse(np.flatnonzero(~np.isfinite(self.largest())))
        variance = diagonals(blocks, block_starts, starts)
        variance = np.where(np.isnan(variance), squares, variance)
        if row is None:
            return Moments(np.zeros(p), variance, cross, blocks, block_starts)
        mean = row.cpu().numpy()[members] + total / scale
        return Moments(mean, variance, cross - total * float(q @ y), blocks, block_starts)

    def _tile_moments(
        self,
        part: SizeClass,
        row: torch.Tensor | None,
        gain: torch.Tensor | None,
        root: torch.Tensor | None,
        weight: float,
        sides: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums of some groups' columns, without and with y, and their Gram blocks or, for large groups, squares.

        `root` holds the roots of the rows' weights, or is None if all rows have the same `weight`.
        """
        tile = self._read(part, row)
        if root is not None:
            tile *= root[:, None]
        unit = weight if root is None else 1.0
        if gain is not None:
            tile *= gain[self.put(part.positions)]
        sums = sides @ tile
        total = sums[0].view(-1, part.size) if row is not None else torch.zeros_like(sums[0]).view(-1, part.size)
        if part.size > LARGEST_BLOCK:
            return sums, unit * (tile * tile).sum(dim=0).view(-1, part.size) - total * total
        blocks = unit * gram_blocks(tile.view(tile.shape[0], -1, part.size))
        return sums, blocks - total[:, :, None] * total[:, None, :]

    def _read(self, part: SizeClass, row: torch.Tensor | None) -> torch.Tensor:
        """A copy of some groups' columns in float64, minus a row.

        It is made in pieces with 31-bit positions: beyond that, torch would make dozens of small copies.
        """
        n, rows = self.X.shape[0], max(1, 2**31 // max(1, abs(self.X.stride(0))))
        out = torch.empty((n, part.columns.size), dtype=torch.float64, device=self.X.device)
        for a in range(0, n, rows):
            own = part.of(self.X[a : a + rows])
            if row is None:
                out[a : a + rows] = own
            else:
                torch.sub(own, part.of(row), out=out[a : a + rows])
        return out

    def factor_groups(
        self, blocks: Array, block_starts: Array, starts: Array, scale: Array, root: Array, alive: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Orthonormalise every group on the device, as `covey.designs.cholesky.factor_groups` does on the host."""
        n_groups = starts.size - 1
        ranks = np.zeros(n_groups, dtype=np.intp)
        certain = np.diff(block_starts) > 0
        gain = np.divide(scale, root, out=np.zeros_like(root), where=alive)
        made = []
        for part in size_classes(np.arange(starts[-1]), starts):
            if part.size > LARGEST_BLOCK:
                continue
            k, size = part.groups.size, part.size
            inverse = np.divide(1.0, root[part.positions], out=np.zeros(k * size), where=alive[part.positions])
            d = self.put(inverse).view(k, size)
            A = self.put(gathered(blocks, block_starts[part.groups], size * size)).view(k, size, size)
            T, rank, sure = orthonormal_factors(A * d[:, :, None] * d[:, None, :])
            T *= self.put(gain[part.positions]).view(k, size, 1)
            ranks[part.groups], certain[part.groups] = rank.cpu().numpy(), sure.cpu().numpy()
            made.append((part, T.cpu().numpy()))
        ranks[~certain] = 0
        lengths = np.diff(starts) * ranks
        factor_starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        factors = np.empty(factor_starts[-1])
        for part, T in made:
            for rank in np.unique(ranks[part.groups]).tolist():
                own = ranks[part.groups] == rank
                scatter(factors, factor_starts[part.groups[own]], T[own, :, :rank].reshape(int(own.sum()), -1))
        return factors, factor_starts, ranks, np.flatnonzero(~certain)

    def correlate(self, R: Array) -> Array:
        """The product ``R X`` for R of shape (k, n); shape (k, p)."""
        self.n_passes += 1
        return self._product(self.put(R))

    def gram_rows(self, q: Array, columns: Array, loadings: Array, offset: Array) -> Array:
        """``Z' diag(q) X`` with ``Z = X[:, columns] loadings - offset``; shape (k, p)."""
        self.n_passes += 1
        Z = self.combine(columns, loadings, offset) * self.put(q)[:, None]
        return product(Z.T, self.X).cpu().numpy()

    def combine(self, columns: Array, loadings: Array, offset: Array) -> torch.Tensor:
        """``X[:, columns] loadings - offset`` in float64, on the device; shape (n, k)."""
        return self._columns(columns) @ self.put(loadings) - self.put(offset)

    def take(self, columns: Array) -> Array:
        """Some columns as a dense float64 array, shape (n, k)."""
        return self._columns(columns).cpu().numpy()

    def extremes(self, columns: Array, weight: Array) -> Array:
        """The least and the largest value of some columns over the rows of positive weight; shape (2, k)."""
        used, out = self.put(weight > 0), np.empty((2, len(columns)))
        step = max(1, TILE_BYTES[self.X.device.type] // (8 * self.shape[0]))
        for a in range(0, len(columns), step):
            own = self.X[:, self.put(columns[a : a + step])][used]
            out[:, a : a + step] = torch.stack([own.amin(dim=0), own.amax(dim=0)]).double().cpu().numpy()
        return out

    def largest(self) -> Array:
        """The largest absolute value of each column, shape (p,)."""
        return torch.maximum(self.X.amax(dim=0), -self.X.amin(dim=0)).double().cpu().numpy()

    def predict(self, columns: Array, coefs: Array, intercepts: Array) -> Any:
        """``X[:, columns] coefs' + intercepts`` for several models as rows of `coefs`; shape (n, n_models)."""
        return self.combine(columns, np.asarray(coefs).T, -np.asarray(intercepts)).cpu().numpy()

    def residual_products(
        self, y: Array, weights: Sequence[Array], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """``sum_i w_i (y_i - X[i, columns] coefs[j] - intercepts[j]) x_i`` with ``w = weights[which[j]]``; (m, p)."""
        return np.concatenate(
            [G.cpu().numpy() for G in self._residual_products(y, weights, which, columns, coefs, intercepts)]
        )

    def residual_norms(
        self, problem: Any, weights: Sequence[Array], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Array:
        """The group norms of these products in working coordinates; only the norms are copied to the host."""
        made = []
        for G in self._residual_products(problem.response, weights, which, columns, coefs, intercepts):
            norms = np.zeros((G.shape[0], problem.ranks.size))
            for part, T in self.padded_factors(problem):
                g = torch.bmm(part.of(G).reshape(G.shape[0], -1, part.size).transpose(0, 1), T)
                norms[:, part.groups] = g.double().norm(dim=2).T.cpu().numpy()
            made.append(norms)
        return np.concatenate(made)

    def _residual_products(
        self, y: Array, weights: Sequence[Array], which: Array, columns: Array, coefs: Array, intercepts: Array
    ) -> Iterator[torch.Tensor]:
        """The products for some models at a time: as many as are efficient and fit a tile."""
        self.n_passes += 1
        response, q, index = self.put(y), self.put(np.stack(list(weights))), self.put(which)
        coefs, levels = np.asarray(coefs), np.asarray(intercepts)
        step = max(1, min(WIDE, TILE_BYTES[self.X.device.type] // (8 * self.shape[0])))
        for a in range(0, len(coefs), step):
            at = slice(a, a + step)
            residuals = response - self.combine(columns, coefs[at].T, -levels[at]).T
            # contiguous rows, which cuBLAS reads fastest
            yield product((residuals * q[index[at]]).to(self.X.dtype).contiguous(), self.X)

    def gram_parts(self, columns: Array, shift: Array, y: Array, weights: Sequence[Array]) -> Array:
        """``A' diag(w) A`` with ``A = [1, X[:, columns] - shift, y]`` for every w; (n_parts, k + 2, k + 2)."""
        own, response = self._columns(columns) - self.put(shift), self.put(y)[:, None]
        A = torch.cat([torch.ones_like(response), own, response], dim=1)
        return torch.stack([(A.T * self.put(w)) @ A for w in weights]).cpu().numpy()

    def _columns(self, columns: Array) -> torch.Tensor:
        """Some columns in float64, on the device."""
        return self.X[:, self.put(columns)].double()

    def _product(self, R: torch.Tensor) -> Array:
        return product(R, self.X).cpu().numpy()

    def padded_factors(self, problem: Any) -> list[tuple[SizeClass, torch.Tensor]]:
        """The groups' factors as square matrices, with zeros beyond their ranks; cached for the same problem."""
        # the cache must not refer back to the design: X is freed with its last user, not by the garbage collector
        if self._factors is None or self._factors[0] is not problem.factors:
            made = []
            for part in size_classes(problem.layout.members, problem.layout.starts):
                T = padded(problem.factors, problem.factor_starts, problem.ranks, part, part.size)
                made.append((part, self.put(T.reshape(-1, part.size, part.size)).to(self.X.dtype)))
            self._factors = problem.factors, made
        return self._factors[1]

    def put(self, values: Array) -> torch.Tensor:
        """Numbers from the host as a tensor on the device of X."""
        return on_device(values, self.X)

    def _tiles(self, same: SizeClass) -> Iterator[SizeClass]:
        """Groups of equal size, as many at a time as fit a tile."""
        return same.parts(max(1, TILE_BYTES[self.X.device.type] // (8 * self.X.shape[0] * same.size)))


def _numpy_dtype(X: torch.Tensor) -> np.dtype[Any]:
    return np.dtype(np.float32 if X.dtype == torch.float32 else np.float64)
