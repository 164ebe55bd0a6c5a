"""Which samples and variants of PLINK's files are used, and under which names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covey.groups.genome import GenesLike, in_genes
from covey.validation import Array

__all__ = ["chosen_samples", "kept_variants", "name_variants", "same_variants"]


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
