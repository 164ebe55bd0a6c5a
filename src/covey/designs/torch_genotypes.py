"""Genotypes of two bits on a device: columns are decoded there, as many at a time as a tile holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from covey.designs.moments import Moments
from covey.designs.torch import SizeClass, TorchDesign, product, selection
from covey.validation import Array

__all__ = ["DeviceGenotypes"]

# The code of a missing genotype; 00, 10 and 11 are the counts 2, 1 and 0 of A1.
MISSING = 1


class DeviceGenotypes(TorchDesign):
    """PLINK genotypes on a device, and columns beside them; `GenotypeDesign.to` makes it.

    Parameters
    ----------
    packed : torch.Tensor of uint8, shape (n_variants, bytes per variant)
        As in a .bed file: two bits a genotype, variant by variant.
    values : ndarray, shape (n_variants, 4)
        The numbers that the codes 00, 01, 10 and 11 stand for; 01 is a missing genotype.
    table : ndarray, shape (n_rows, n_more)
        The columns beside the variants.
    rows : ndarray of int
        The places of the rows in the file; empty if they are the first ones in order.
    dtype, columns, name
        As of `GenotypeDesign`.
    """

    def __init__(
        self,
        packed: torch.Tensor,
        values: NDArray[np.float64],
        table: NDArray[np.float64],
        rows: NDArray[np.int64],
        *,
        dtype: DTypeLike = "float32",
        columns: Sequence[str] | None = None,
        name: str = "X",
    ) -> None:
        kind = torch.float32 if np.dtype(dtype) == np.float32 else torch.float64
        empty = torch.empty((1, 1), dtype=kind, device=packed.device)
        super().__init__(empty, columns=columns, name=name)
        self.shape = (len(table), len(packed) + table.shape[1])
        self.packed, self._values = packed, values
        self._mean, self._swapped = self.put(values[:, MISSING]), values[:, 0] < values[:, 3]
        # a tile holds the first genotypes of all bytes, then the second ones, and so on
        place = rows if rows.size else np.arange(len(table))
        self._place = place % 4 * packed.shape[1] + place // 4
        self._table = self.put(self._spread(table.T))

    @staticmethod
    def copied(
        pieces: Iterable[tuple[NDArray[np.intp], NDArray[np.uint8]]], shape: tuple[int, int], device: str
    ) -> torch.Tensor:
        """Packed genotypes on a device, from pieces of some variants each, given with their places."""
        try:
            packed = torch.empty(shape, dtype=torch.uint8, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            size = shape[0] * shape[1] / 1e9
            raise ValueError(f"{size:.3g} GB of genotypes cannot be put on device {device!r}: {reason}") from None
        for places, piece in pieces:
            packed[places] = torch.from_numpy(piece).to(device)
        return packed

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        """Means, variances, correlations with y and Gram blocks of the groups, of the columns times `scale`."""
        spread = self._spread(np.stack([y, q]))
        return super().moments(spread[0], spread[1], members, starts, centre=centre, scale=scale)

    def largest(self) -> NDArray[np.float64]:
        """The largest absolute value of each column."""
        of_table = self._table.abs().amax(dim=1).cpu().numpy()
        return np.concatenate([np.abs(self._values).max(axis=1), of_table])

    def _spread(self, values: Array) -> Array:
        """Numbers of the rows, along the last axis, in the order of a tile; zero for samples that are not used."""
        out = np.zeros((*values.shape[:-1], 4 * self.packed.shape[1]))
        out[..., self._place] = values
        return out

    def _row(self, i: int) -> torch.Tensor:
        part, byte = divmod(i, self.packed.shape[1])
        codes = ((self.packed[:, byte] >> 2 * part) & 3).cpu().numpy()
        of_variants = self._values[np.arange(len(codes)), codes]
        return torch.cat([self.put(of_variants), self._table[:, i]])

    def _columns(self, columns: Array) -> torch.Tensor:
        return self._decoded(np.asarray(columns), torch.float64)[:, self.put(self._place)].T

    def _read(self, part: SizeClass, row: torch.Tensor | None) -> torch.Tensor:
        tile = self._decoded(part.columns, torch.float64)
        return (tile if row is None else tile - row[self.put(part.columns)][:, None]).T.contiguous()

    def _times(self, R: torch.Tensor) -> torch.Tensor:
        spread = torch.zeros((len(R), 4 * self.packed.shape[1]), dtype=self._empty.dtype, device=R.device)
        spread[:, self.put(self._place)] = R.to(spread.dtype)
        every, step = np.arange(self.shape[1]), self._tile_columns
        tiles = (self._decoded(every[a : a + step], spread.dtype) for a in range(0, every.size, step))
        return torch.cat([product(spread, tile.T) for tile in tiles], dim=1)

    def _decoded(self, columns: Array, dtype: torch.dtype) -> torch.Tensor:
        """Some columns as the rows of a tile."""
        is_variant = columns < len(self.packed)
        if is_variant.all():
            return self._genotypes(columns, dtype)
        out = torch.empty((columns.size, 4 * self.packed.shape[1]), dtype=dtype, device=self.packed.device)
        if is_variant.any():
            out[self.put(is_variant)] = self._genotypes(columns[is_variant], dtype)
        out[self.put(~is_variant)] = self._table[self.put(columns[~is_variant] - len(self.packed))].to(dtype)
        return out

    def _genotypes(self, variants: Array, dtype: torch.dtype) -> torch.Tensor:
        """Some variants as the rows of a tile."""
        at = selection(variants, self.packed)
        packed, mean = self.packed[at], self._mean[at][:, None].to(dtype)
        swapped = self.put(self._swapped[variants])[:, None] if self._swapped[variants].any() else None
        out = torch.empty((len(packed), 4, packed.shape[1]), dtype=dtype, device=packed.device)
        for part in range(4):
            code = (packed >> 2 * part) & 3
            count = 3 - code
            count = count - (count >> 1)
            if swapped is not None:
                count = torch.where(swapped, 2 - count, count)
            out[:, part] = torch.where(code == MISSING, mean, count.to(dtype))
        return out.flatten(1)
