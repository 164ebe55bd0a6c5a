"""PLINK's files: genotypes in .bed, variants in .bim, samples in .fam; read, checked and never written to.

The samples and variants that are used are chosen here too, and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.groups.genome import GenesLike, chromosome_name, in_genes
from covey.validation import Array

# The first three bytes of a .bed file: PLINK's mark, and whether variants or samples lie one after another.
MARK, BY_VARIANT, BY_SAMPLE = b"\x6c\x1b", b"\x01", b"\x00"

# Bytes of genotypes that are read at a time where all of a file is read.
AT_A_TIME = 2**22


@dataclass(frozen=True)
class BedFile:
    """Genotypes of two bits, four samples to a byte, and what they are of."""

    path: Path
    variants: pd.DataFrame  # chromosome, position, name, and the alleles a1 and a2
    samples: NDArray[np.object_]
    packed: NDArray[np.uint8] | None  # all genotypes, read-only, if they are in memory

    @property
    def width(self) -> int:
        """The bytes of a variant."""
        return -(-len(self.samples) // 4)

    def read(self, variants: NDArray[np.intp]) -> NDArray[np.uint8]:
        """The genotypes of some variants, shape (n_variants, bytes per variant).

        They are read rather than mapped: pages of a map would count as memory of this process, and reading the map of a
        file that has become shorter would crash it.
        """
        if self.packed is not None:
            return self.packed[variants]
        out = np.empty((variants.size, self.width), np.uint8)
        edges = [0, *(np.flatnonzero(np.diff(variants) != 1) + 1).tolist(), variants.size]
        try:
            with self.path.open("rb") as file:
                for a, b in pairwise(edges):
                    file.seek(3 + int(variants[a]) * self.width)
                    if file.readinto(out[a:b].data) < out[a:b].nbytes:
                        raise EOFError
        except (FileNotFoundError, EOFError):
            raise ValueError(
                f"{self.path} was moved or cut short after it was opened; restore it and open it again."
            ) from None
        return out

    def pieces(self) -> Iterator[NDArray[np.intp]]:
        """All variants, some at a time."""
        step = max(1, AT_A_TIME // self.width)
        return (np.arange(a, min(a + step, len(self.variants))) for a in range(0, len(self.variants), step))


def read_bed_files(source: str | Path | Sequence[str | Path], in_memory: bool) -> list[BedFile]:
    """One file, several, or those that a pattern matches, in the order of their first variants' chromosomes."""
    paths = _paths(source)
    files = [_read(path, in_memory) for path in paths]
    first = files[0]
    for other in files[1:]:
        if len(other.samples) != len(first.samples) or (other.samples != first.samples).any():
            raise ValueError(
                f"{other.path.with_suffix('.fam')} and {first.path.with_suffix('.fam')} list different samples, or in "
                "another order: write all files with the same samples (plink --keep, --indiv-sort)."
            )
    return sorted(files, key=lambda file: (natural(file.variants["chromosome"].iloc[0]), natural(file.path.name)))


def natural(text: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers in a text by their value, and before letters.

    >>> sorted(["chr10", "chrX", "chr2"], key=natural)
    ['chr2', 'chr10', 'chrX']
    """
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", text)]


def _paths(source: str | Path | Sequence[str | Path]) -> list[Path]:
    given = [source] if isinstance(source, str | Path) else list(source)
    paths = []
    for one in map(str, given):
        found = sorted(glob(one)) if has_magic(one) and not Path(one).exists() else [one]
        paths += [Path(path) for path in found if not has_magic(one) or path.endswith(".bed")]
    if not paths:
        raise FileNotFoundError(f"No .bed file matches {', '.join(map(str, given))}.")
    for path in paths:
        if paths.count(path) > 1:
            raise ValueError(f"{path} is given more than once.")
        for suffix in (".bed", ".bim", ".fam"):
            if not (needed := path.with_suffix(suffix)).is_file():
                raise FileNotFoundError(
                    f"There is no file {needed}: genotypes are three files with the same name that end in .bed, .bim "
                    "and .fam."
                )
    return paths


def _read(path: Path, in_memory: bool) -> BedFile:
    bim, fam = path.with_suffix(".bim"), path.with_suffix(".fam")
    variants, samples = _variants(bim), _samples(fam)
    with path.open("rb") as file:
        start = file.read(3)
    if start == MARK + BY_SAMPLE:
        raise ValueError(f"{path} is stored sample by sample: convert it with plink 1.9 (--make-bed).")
    if start != MARK + BY_VARIANT:
        raise ValueError(f"{path} is not a PLINK .bed file: it starts with {start.hex(' ')}, not 6c 1b 01.")
    shape = (len(variants), -(-len(samples) // 4))
    expected, size = 3 + shape[0] * shape[1], path.stat().st_size
    if size != expected:
        fault = "is truncated" if size < expected else "is too long"
        raise ValueError(
            f"{path} {fault}: {len(variants):,} variants ({bim.name}) of {len(samples):,} samples ({fam.name}) take "
            f"{expected:,} bytes, and it has {size:,}. The three files must be of one data set, and complete."
        )
    packed = None
    if in_memory:
        packed = np.fromfile(path, np.uint8, offset=3).reshape(shape)
        packed.flags.writeable = False
    return BedFile(path, variants, samples, packed)


def _variants(path: Path) -> pd.DataFrame:
    """The variants of a .bim file."""
    table = _columns(path, ["chromosome", "name", "cM", "position", "a1", "a2"]).drop(columns="cM")
    position = pd.to_numeric(table["position"], errors="coerce")
    if position.isna().any():
        line = int(np.argmax(position.isna()))
        raise ValueError(f"{path}, line {line + 1}: the position {table['position'].iloc[line]!r} is not a number.")
    known = {name: chromosome_name(name) for name in table["chromosome"].unique()}
    table["position"], table["chromosome"] = position.astype(np.int64), table["chromosome"].map(known)
    return table


def _samples(path: Path) -> NDArray[np.object_]:
    """The samples of a .fam file: their own ids, or FAMILY_ID if only these differ."""
    table = _columns(path, ["family", "id", "father", "mother", "sex", "phenotype"])
    ids = table["id"]
    if ids.duplicated().any():
        ids = table["family"] + "_" + ids
    if ids.duplicated().any():
        raise ValueError(
            f"{path} lists sample {table['id'][ids.duplicated()].iloc[0]!r} twice: give every sample its own id."
        )
    return ids.to_numpy(dtype=object)


def _columns(path: Path, names: list[str]) -> pd.DataFrame:
    """A table without header whose columns are separated by spaces or tabs, as text."""
    try:
        table = pd.read_csv(path, sep=r"\s+", header=None, dtype=str, na_filter=False, quoting=3)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    if table.shape[1] != len(names) or (table.isna() | (table == "")).any(axis=None):
        raise ValueError(f"{path} must have {len(names)} columns in every line: {', '.join(names)}.")
    return table.set_axis(names, axis=1)


def name_variants(variants: pd.DataFrame) -> pd.Series:
    """One name per variant: its id, or its place and alleles if it has none or shares it."""
    position = variants["position"].astype(str)
    place = variants["chromosome"] + ":" + position + ":" + variants["a1"] + ":" + variants["a2"]
    return variants["name"].where(~variants["name"].duplicated(keep=False) & (variants["name"] != "."), place)


def chosen_samples(
    known: NDArray[np.object_], samples: Sequence[str] | None, where: str
) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The ids of the rows, and their places in the file; no places if they are the first ones in order."""
    if samples is None:
        return known, np.empty(0, dtype=np.int64)
    if isinstance(samples, str):
        raise ValueError(f"samples lists ids: give [{samples!r}].")
    wanted = pd.Index([str(one) for one in samples], dtype=object)
    if wanted.empty:
        raise ValueError("samples is empty: give the ids of the samples to use.")
    if wanted.has_duplicates:
        raise ValueError(f"samples names {wanted[wanted.duplicated()][0]!r} more than once.")
    at = pd.Index(known).get_indexer(wanted)
    if (at < 0).any():
        raise ValueError(
            f"{where} has no sample {wanted[at < 0][0]!r} ({(at < 0).sum()} of {len(at)} ids are unknown); its samples "
            f"are named like {known[0]!r}: give ids of the .fam file."
        )
    first_ones = np.array_equal(at, np.arange(at.size))
    return wanted.to_numpy(dtype=object), np.empty(0, dtype=np.int64) if first_ones else at.astype(np.int64)


def kept_variants(
    variants: pd.DataFrame, known: Array, min_maf: float, regions: GenesLike | None, where: str
) -> NDArray[np.intp]:
    """The variants that vary, are frequent enough and are in a region; `known` are counts of the three genotypes."""
    frequency = variants["frequency"].to_numpy()
    kept = (np.count_nonzero(known, axis=1) > 1) & (np.minimum(frequency, 1 - frequency) >= min_maf)
    if regions is not None:
        inside = np.zeros(len(variants), dtype=bool)
        inside[in_genes(regions, variants)] = True
        kept &= inside
    columns = np.flatnonzero(kept)
    if not columns.size:
        among = "" if regions is None else " and lies in a region"
        raise ValueError(
            f"{where}: none of {len(variants):,} variants varies, has min_maf={min_maf:g}{among}: lower min_maf, or "
            "use more samples or regions."
        )
    names = variants["name"].iloc[columns]
    if names.duplicated().any():
        raise ValueError(
            f"{where} has variant {names[names.duplicated()].iloc[0]!r} more than once: remove repeats (plink2 "
            "--rm-dup) or give each a name."
        )
    return columns


def same_variants(
    variants: pd.DataFrame, wanted: pd.DataFrame, where: str
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The variants of other genotypes, in their order, and whether their alleles are exchanged."""
    index = pd.Index(variants["name"])
    repeated = index[index.duplicated()].intersection(wanted["name"])
    columns = np.full(len(wanted), -1) if len(repeated) else index.drop_duplicates().get_indexer(wanted["name"])
    if (columns < 0).any():
        fault = "more than once" if len(repeated) else "not at all"
        name = repeated[0] if len(repeated) else wanted["name"][columns < 0].iloc[0]
        raise ValueError(f"{where} has variant {name!r} of like= {fault}: it needs all {len(wanted):,} variants once.")
    if index.has_duplicates:
        columns = np.flatnonzero(~index.duplicated())[columns]
    found = variants.iloc[columns].reset_index(drop=True)

    def are(own: str, other: str) -> pd.Series:
        # PLINK writes 0 for an allele that no sample has
        return (found[own] == wanted[other]) | (found[own] == "0")

    same, swapped = are("a1", "a1") & are("a2", "a2"), are("a1", "a2") & are("a2", "a1")
    swapped &= ~same
    if not (same | swapped).all():
        j = int(np.argmin(same | swapped))
        raise ValueError(
            f"{where}: variant {wanted['name'][j]!r} has the alleles {found['a1'][j]} and {found['a2'][j]}, but "
            f"{wanted['a1'][j]} and {wanted['a2'][j]} in like=."
        )
    return columns, swapped.to_numpy()
