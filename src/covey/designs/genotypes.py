"""Genotypes of two bits, on disk or in memory: columns are decoded a few at a time, when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from covey.designs.dense import DenseDesign
from covey.designs.moments import Moments, block_offsets, dense_moments
from covey.designs.part_products import ROWS, PartProducts
from covey.designs.plink import chosen_samples, kept_variants, name_variants, read_bed_files, same_variants
from covey.designs.protocol import Design, Models, row_slices
from covey.designs.row_blocks import float_type
from covey.groups.genome import GenesLike
from covey.optional import optional
from covey.validation import Array, real

if TYPE_CHECKING:
    from covey.designs.torch_genotypes import DeviceGenotypes

# The columns that are decoded and multiplied at a time: with `ROWS` rows they stay in a core's cache (1 MiB).
WIDTH = 2**7

# Bytes that are copied to a device at a time.
COPIED = 2**28

# The counts of A1 that the codes 00, 01, 10 and 11 stand for; 01 is a missing genotype.
COUNTS = np.array([2.0, np.nan, 1.0, 0.0])
MISSING = 1


class GenotypeDesign(Design):
    """PLINK genotypes behind the `Design` protocol: counts 0, 1, 2 of allele A1, the fifth column of the .bim file.

    A missing genotype counts as the mean of its variant over the samples that were opened. Variants that are constant
    on them are left out. Files are only read; a decoded copy of all genotypes is never made.

    Parameters
    ----------
    source : path, pattern or sequence of paths
        .bed files in variant-major order, each with its .bim and .fam beside it. Several have the same samples and are
        joined in the order of their chromosomes.
    samples : sequence of str, optional
        Ids of the samples to use, in the order of the rows; by default all. The ids are those of the .fam file's second
        column, or ``FAMILY_ID`` if these are not unique.
    min_maf : float
        Variants whose rarer allele has a smaller frequency are left out.
    regions : DataFrame or path of a BED file, optional
        Only variants in these intervals are used: chromosome, start, end and name, as in `Groups.from_intervals`.
    like : GenotypeDesign, optional
        Use its variants, alleles and means, which is what `predict` on other samples needs. Variants are found by name;
        where A1 and A2 are exchanged, the other allele is counted.
    in_memory : bool
        Whether to keep the genotypes in memory, at two bits each, instead of reading them in every pass.
    dtype : dtype
        float64 or float32: the precision of products.
    name : str
        The name of X in messages.

    Attributes
    ----------
    samples : ndarray of str
        The ids of the rows.
    positions : DataFrame
        Of every column: name, chromosome, position, the alleles a1 and a2, and the frequency of a1.
    """

    keeps_products = True
    _values: NDArray[np.float64]
    _variants: pd.DataFrame

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        samples: Sequence[str] | None = None,
        min_maf: float = 0.0,
        regions: GenesLike | None = None,
        like: GenotypeDesign | None = None,
        in_memory: bool = False,
        dtype: DTypeLike = "float64",
        name: str = "X",
    ) -> None:
        if not 0 <= real(min_maf, "min_maf") <= 0.5:
            raise ValueError(f"min_maf is the least frequency of the rarer allele, between 0 and 0.5, not {min_maf}.")
        if like is not None and not isinstance(like, GenotypeDesign):
            raise ValueError(f"like= takes opened genotypes, such as those of the fit, not a {type(like).__name__}.")
        if like is not None and (min_maf or regions is not None):
            raise ValueError("like= uses the variants of other genotypes: leave out min_maf and regions.")
        self.files = read_bed_files(source, in_memory)
        where = str(source)
        self.samples, self._rows = chosen_samples(self.files[0].samples, samples, where)
        variants = pd.concat([file.variants for file in self.files], ignore_index=True)
        variants["name"] = name_variants(variants)
        counts = self._count_codes()
        known = np.delete(counts, MISSING, axis=1)
        n_known = known.sum(axis=1)
        mean = np.divide(known @ np.delete(COUNTS, MISSING), n_known, out=np.zeros(len(known)), where=n_known > 0)
        values = np.tile(COUNTS, (len(counts), 1))
        values[:, MISSING] = mean
        variants["frequency"] = mean / 2
        if like is None:
            columns = kept_variants(variants, known, min_maf, regions, where)
        else:
            columns, swapped = same_variants(variants, like._variants, where)
            values[columns] = np.where(swapped[:, None], 2.0 - values[columns], values[columns])
            values[columns, MISSING] = like._values[:, MISSING]
        self._columns, starts = columns, np.cumsum([0, *(len(file.variants) for file in self.files)])
        self._file = np.searchsorted(starts, columns, side="right") - 1
        self._variant = columns - starts[self._file]
        self._values, self._n_of_code = values[columns], counts[columns]
        self._variants = variants.iloc[columns].reset_index(drop=True)
        self._table = np.empty((self.samples.size, 0))
        self._byte, self._shift = self._places()
        shape, kind = (self.samples.size, columns.size), float_type(np.dtype(float), dtype, where)
        super().__init__(shape, kind, columns=self._variants["name"].tolist(), name=name)
        self.row_names = self.samples

    # ------------------------------------------------------------------ what the columns are

    @property
    def names(self) -> Sequence[str]:
        """The names of the variants, and of the columns beside them."""
        assert self.columns is not None
        return self.columns

    @property
    def positions(self) -> pd.DataFrame:
        """Name, chromosome, position, alleles and frequency of a1 of every column; covariates only have a name."""
        columns = ["name", "chromosome", "position", "a1", "a2", "frequency"]
        return self._variants[columns].reindex(range(self.shape[1])).assign(name=list(self.names))

    def beside(self, table: pd.DataFrame | pd.Series) -> GenotypeDesign:
        """The genotypes with the columns of a table as further columns, matched by sample id, the table's index.

        Rows of the table that are of no sample are not used. To keep the columns in every model, name them in `always`
        of the estimator.
        """
        table = table.to_frame() if isinstance(table, pd.Series) else table
        if not isinstance(table, pd.DataFrame):
            raise ValueError(
                f"Covariates are a pandas DataFrame with the sample ids as its index, not a {type(table).__name__}."
            )
        ids = pd.Index(table.index.map(str))
        if ids.has_duplicates:
            raise ValueError(f"The table has several rows of sample {ids[ids.duplicated()][0]!r}: keep one.")
        if len(unknown := pd.Index(self.samples).difference(ids, sort=False)):
            raise ValueError(
                f"The table has no row of {len(unknown)} samples, the first is {unknown[0]!r}: its index must hold the "
                "sample ids; leave out samples without covariates with samples=."
            )
        matched = table.set_axis(ids, axis=0).loc[list(self.samples)]
        for column in matched.columns:
            if not pd.api.types.is_numeric_dtype(matched[column]):
                raise ValueError(f"Column {column!r} of the table must hold numbers: encode it.")
            if (missing := matched[column].isna()).any():
                raise ValueError(
                    f"Column {column!r} of the table has no value for {missing.sum()} samples, the first is "
                    f"{missing.idxmax()!r}: fill it in, or leave these samples out with samples=."
                )
        values, names = matched.to_numpy(dtype=float), tuple(map(str, table.columns))
        out = copy(self)
        out._table = np.hstack([self._table, values])
        out.columns, out.n_passes = [*self.names, *names], 0
        if len(set(out.columns)) < len(out.columns):
            raise ValueError(f"A column of the table has the name of another column: {', '.join(names[:6])}.")
        out.shape = (self.shape[0], self.shape[1] + len(names))
        return out

    def on_rows(self, which: Array) -> GenotypeDesign:
        """The same columns on some of the rows, given by position; missing genotypes count as they do here."""
        at = np.arange(self.shape[0])[which]
        out = copy(self)
        out.samples = out.row_names = self.samples[at]
        out._table = self._table[at]
        out._rows = np.asarray(self._rows[at] if self._rows.size else at, dtype=np.int64)
        out._byte, out._shift = out._places()
        out._n_of_code = out._count_codes()[self._columns]
        out.shape, out.n_passes = (at.size, self.shape[1]), 0
        return out

    def to(self, device: str) -> DeviceGenotypes:
        """The genotypes and the columns beside them on a device of torch, such as "cuda", at two bits a genotype."""
        with optional("A copy of genotypes on a device"):
            from covey.designs.torch_genotypes import DeviceGenotypes

        packed = DeviceGenotypes.copied(self._packed(), (self._variant.size, self.files[0].width), device)
        out = DeviceGenotypes(
            packed, self._values, self._table, self._rows, dtype=self.dtype, columns=self.names, name=self.name
        )
        out.row_names = self.samples
        return out

    def _packed(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
        """Packed genotypes of some variants at a time, with the places of these variants."""
        for number, file in enumerate(self.files):
            at = np.flatnonzero(self._file == number)
            for places in np.array_split(at, max(1, at.size * file.width // COPIED)):
                yield places, file.read(self._variant[places])

    # ------------------------------------------------------------------ operations

    def moments(self, y: Array, q: Array, members: Array, starts: Array, *, centre: bool, scale: Array) -> Moments:
        if not (q == q[0]).all() or (np.diff(starts) != 1).any():
            return super().moments(y, q, members, starts, centre=centre, scale=scale)
        # equal weights and single columns: all but products with y follows from the numbers of genotypes
        is_variant = members < self._variant.size
        some, unit = members[is_variant], scale[is_variant]
        shares, values = self._n_of_code[some] / self.shape[0], self._values[some] * unit[:, None]
        levels = (shares * values).sum(axis=1) if centre else np.zeros(some.size)
        out = np.empty((3, members.size))
        out[0, is_variant], out[1, is_variant] = levels / unit, (shares * (values - levels[:, None]) ** 2).sum(axis=1)
        out[2] = self._times((q * (y - q @ y if centre else y))[None, :], np.float64)[0, members] * scale
        if not is_variant.all():
            beside, ones = members[~is_variant] - self._variant.size, np.arange((~is_variant).sum() + 1)
            of_table = dense_moments(self._table, y, q, beside, ones, centre=centre, scale=scale[~is_variant])
            out[:, ~is_variant] = of_table.mean, of_table.variance, of_table.correlation
        mean, variance, correlation = out
        return Moments(mean, variance, correlation, variance, block_offsets(starts))

    def correlate(self, R: Array) -> Array:
        return self._times(R, self.dtype)

    def _times(self, R: Array, dtype: DTypeLike) -> Array:
        """The product ``R X`` in some precision. One pass."""
        self.n_passes += 1
        R = np.ascontiguousarray(np.asarray(R).T, dtype=dtype)
        out = np.zeros((R.shape[1], self.shape[1]), dtype=dtype)
        for columns, read in self.tiles(dtype):
            total = np.zeros((columns.stop - columns.start, R.shape[1]))
            for a in range(0, self.shape[0], ROWS):
                rows = slice(a, a + ROWS)
                total += read(rows) @ R[rows]
            out[:, columns] = total.T
        return out

    def residual_products(self, models: Models) -> Array:
        """As in `Design`; products with columns of models are kept, so that only those of new columns read X again."""
        kept = models.kept
        if kept is not None and "products" not in kept:
            kept["products"] = PartProducts.of(self, models)
        products = None if kept is None else kept["products"]
        if products is None or not products.have(models.columns):
            return super().residual_products(models)
        return products.of_residuals(models)

    def take(self, columns: Array) -> NDArray[np.float64]:
        return self._reader(np.asarray(columns))(slice(0, self.shape[0])).T

    def _pieces(self, columns: Array) -> Iterator[tuple[slice, Array]]:
        read = self._reader(columns)
        return ((rows, read(rows).T) for rows in row_slices(self.shape[0], columns.size))

    def extremes(self, columns: Array, weight: Array) -> Array:
        if not (weight > 0).all():
            return super().extremes(columns, weight)
        present = self._n_of_code > 0
        low = np.where(present, self._values, np.inf).min(axis=1)
        high = np.where(present, self._values, -np.inf).max(axis=1)
        ends = (self._values == low[:, None]) | (self._values == high[:, None])
        of_table = DenseDesign(self._table).extremes(np.arange(self._table.shape[1]), weight)
        return np.hstack([[low, high, (ends | ~present).all(axis=1)], of_table])[:, columns]

    # ------------------------------------------------------------------ reading genotypes

    def tiles(self, dtype: DTypeLike, order: Array | None = None) -> Iterator[tuple[slice, Callable[[slice], Array]]]:
        """All columns, some at a time: which, and a function that decodes consecutive rows of them, column by column.

        Rows are numbered in the given `order`. The arrays that the function returns share one buffer.
        """
        buffer = np.empty(WIDTH * ROWS, dtype=dtype)
        for a in range(0, self.shape[1], WIDTH):
            columns = slice(a, min(a + WIDTH, self.shape[1]))
            yield columns, self._reader(np.arange(columns.start, columns.stop), order, buffer)

    def _reader(
        self, columns: Array, order: Array | None = None, buffer: Array | None = None
    ) -> Callable[[slice], Array]:
        """A function that decodes consecutive rows of some columns, in float64 or the type of the buffer."""
        from covey.designs.kernels import decode  # compiled, so imported only for genotypes

        n_variants = self._variant.size
        is_variant = columns < n_variants
        chosen, beside = columns[is_variant], columns[~is_variant] - n_variants
        packed = np.empty((chosen.size, self.files[0].width), np.uint8)
        for number in np.unique(self._file[chosen]):
            at = self._file[chosen] == number
            packed[at] = self.files[number].read(self._variant[chosen[at]])
        values = self._values[chosen]
        byte, shift, table = self._byte, self._shift, self._table[:, beside]
        if order is not None:
            byte, shift, table = byte[order], shift[order], table[order]

        def read(rows: slice) -> Array:
            n_rows = byte[rows].size
            out = np.empty(columns.size * n_rows) if buffer is None else buffer[: columns.size * n_rows]
            out = out.reshape(columns.size, n_rows)
            genotypes = np.empty((chosen.size, n_rows), out.dtype) if beside.size else out
            decode(packed, values, byte[rows], shift[rows], genotypes)
            if beside.size:
                out[is_variant], out[~is_variant] = genotypes, table[rows].T
            return out

        return read

    def _places(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """The byte of every row in a variant, and by how many bits to shift it."""
        place = self._rows if self._rows.size else np.arange(self.samples.size)
        return (place >> 2).astype(np.uint32), (2 * (place & 3)).astype(np.uint8)

    def _count_codes(self) -> NDArray[np.int64]:
        """How many of the rows have each of the four codes, for all variants of all files."""
        from covey.designs.kernels import count_codes

        counts = []
        for file in self.files:
            left = len(file.samples) % 4
            for variants in file.pieces():
                packed = file.read(variants)
                # bits after the last sample are zero; without a line of the .fam file there may be as many bytes
                if left and (packed[:, -1] >> 2 * left).any():
                    raise ValueError(
                        f"{file.path} holds genotypes of more samples than the {len(file.samples):,} of "
                        f"{file.path.with_suffix('.fam').name}: find the .fam file that was written with it, or write "
                        "all three again (plink --make-bed)."
                    )
                counts.append(count_codes(packed, self._rows, self.samples.size))
        return np.concatenate(counts)
