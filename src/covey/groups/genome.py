"""Groups of variants by genes, from their positions, and of genes by pathways, from GMT files."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from covey.validation import IntArray

# PLINK's numbers of chromosomes that have names.
NAMED = {"23": "X", "24": "Y", "25": "XY", "26": "MT", "M": "MT"}

NOTHING = np.empty(0, dtype=np.intp)


def chromosome_name(chromosome: object) -> str:
    """A chromosome by the name it has in most files.

    >>> [chromosome_name(c) for c in ("chr7", "07", 23, "chrM", "chrX")]
    ['7', '7', 'X', 'MT', 'X']
    """
    name = re.sub("^chr(omosome)?", "", str(chromosome).strip(), flags=re.IGNORECASE).lstrip("0") or "0"
    return NAMED.get(name.upper(), name.upper())


# A table, or the path of a BED file.
GenesLike: TypeAlias = str | Path | pd.DataFrame | Mapping[str, ArrayLike]


def read_genes(genes: GenesLike, flank: int = 0) -> pd.DataFrame:
    """Genes as a table of chromosome, start, end (both inside, counted from 1, with the flanks) and name.

    The starts in a BED file, which has no header, are counted from 0.
    """
    wanted = ["chromosome", "start", "end", "name"]
    where = "genes"
    if isinstance(genes, str | Path):
        where = str(genes)
        lines = [line.split() for line in Path(genes).read_text().splitlines()]
        lines = [line for line in lines if line and line[0] not in ("track", "browser") and line[0][0] != "#"]
        if short := [line for line in lines if len(line) < 4]:
            raise ValueError(f"{where}: every line must start with {', '.join(wanted)}, not {' '.join(short[0])!r}.")
        table = pd.DataFrame([line[:4] for line in lines], columns=wanted)
    else:
        table = pd.DataFrame(genes)
        if missing := [column for column in wanted if column not in table.columns]:
            raise ValueError(f"genes has no column {missing[0]!r}; it needs {', '.join(wanted)}.")
        table = table[wanted].reset_index(drop=True)
    for column in ("start", "end"):
        numbers = pd.to_numeric(table[column], errors="coerce")
        if numbers.isna().any():
            row = int(np.argmax(numbers.isna()))
            raise ValueError(f"{where}: the {column} of gene {table['name'][row]!r} is {table[column][row]!r}.")
        table[column] = numbers.astype(np.int64)
    if isinstance(genes, str | Path):
        table["start"] += 1
    if (backwards := table["end"] < table["start"]).any():
        raise ValueError(f"{where}: gene {table['name'][backwards].iloc[0]!r} ends before it starts.")
    if table.empty:
        raise ValueError(f"{where} lists no genes.")
    table["chromosome"] = table["chromosome"].map(chromosome_name)
    table["start"], table["end"] = table["start"] - flank, table["end"] + flank
    return table


def genes_of(
    genes: GenesLike, positions: pd.DataFrame, flank: int, overlap: str, empty: str
) -> dict[Hashable, IntArray]:
    """The variants of every gene, and those in no gene, each by its own name; lines of one gene are joined."""
    if overlap not in ("share", "nearest"):
        raise ValueError(f"overlap must be 'share' or 'nearest', not {overlap!r}.")
    table = read_genes(genes, flank)
    found = _inside(table, positions)
    if overlap == "nearest":
        place = positions["position"].to_numpy(dtype=float, na_value=np.nan)
        middle = (table["start"] + table["end"]).to_numpy() / 2
        variants = np.concatenate(found)
        gene = np.repeat(np.arange(len(found)), [len(v) for v in found])
        # sorted by variant, then by distance to the middle of the gene; the first of each variant is kept
        order = np.lexsort((gene, np.abs(place[variants] - middle[gene]), variants))
        order = order[np.unique(variants[order], return_index=True)[1]]
        order = order[np.argsort(gene[order], kind="stable")]
        found = np.split(variants[order], np.cumsum(np.bincount(gene[order], minlength=len(found)))[:-1])
    members: dict[Hashable, IntArray] = {}
    for name, inside in zip(table["name"], found, strict=True):
        members[name] = np.union1d(members.get(name, NOTHING), inside)
    _drop_empty(members, empty, "Genes without variants", "widen them with flank=, or leave them out")
    alone = np.setdiff1d(np.arange(len(positions)), np.concatenate([NOTHING, *members.values()]))
    names = positions["name"].to_numpy()[alone]
    if len(twice := names[pd.Series(names).duplicated()]):
        raise ValueError(f"positions has several variants named {twice[0]!r}: every one needs its own name.")
    return _together(members, dict(zip(names, alone[:, None], strict=True)))


def in_genes(genes: GenesLike, positions: pd.DataFrame) -> IntArray:
    """The variants that are in some gene, in order."""
    return np.unique(np.concatenate(_inside(read_genes(genes), positions)))


def _inside(table: pd.DataFrame, positions: pd.DataFrame) -> list[IntArray]:
    """The variants between start and end of every line."""
    missing = [column for column in ("name", "chromosome", "position") if column not in positions.columns]
    if missing:
        raise ValueError(f"positions has no column {missing[0]!r}; X.positions of opened genotypes has all columns.")
    known = {c: None if pd.isna(c) else chromosome_name(c) for c in positions["chromosome"].unique()}
    chromosome = positions["chromosome"].map(known)
    places = {}
    for name, at in chromosome.reset_index(drop=True).groupby(chromosome.to_numpy()).groups.items():
        index = at.to_numpy()
        place = positions["position"].to_numpy()[index].astype(np.int64)
        order = np.argsort(place, kind="stable")
        places[name] = index[order], place[order]
    found = []
    for name, start, end in zip(table["chromosome"], table["start"], table["end"], strict=True):
        index, place = places.get(name, (NOTHING, NOTHING))
        found.append(index[np.searchsorted(place, start) : np.searchsorted(place, end, side="right")])
    return found


def pathways_of(path: str | Path, genes: dict[Hashable, IntArray], empty: str) -> dict[Hashable, IntArray]:
    """The columns of every pathway of a GMT file and of every gene in no pathway, by name."""
    pathways: dict[Hashable, IntArray] = {}
    alone = dict(genes)
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if not line.strip():
            continue
        name, *rest = line.split("\t")
        if len(rest) < 2:
            raise ValueError(f"{path}, line {number}: a pathway is a name, a description and genes, separated by tabs.")
        if name in pathways:
            raise ValueError(f"{path}, line {number}: pathway {name!r} occurs twice; keep one.")
        inside = [gene for gene in rest[1:] if gene in genes]
        pathways[name] = np.unique(np.concatenate([NOTHING, *(genes[gene] for gene in inside)]))
        for gene in inside:
            alone.pop(gene, None)
    _drop_empty(pathways, empty, f"Pathways of {path} without any of the genes", "check the names, or leave them out")
    return _together(pathways, alone)


def _together(groups: dict[Hashable, IntArray], others: dict[Hashable, IntArray]) -> dict[Hashable, IntArray]:
    """All groups; a name that two of them have is refused."""
    if shared := groups.keys() & others:
        raise ValueError(f"Two groups would have the name {next(iter(shared))!r}: rename one of them.")
    return groups | others


def _drop_empty(members: dict[Hashable, IntArray], empty: str, what: str, remedy: str) -> None:
    """Refuse or drop groups without columns."""
    if empty not in ("raise", "drop"):
        raise ValueError(f"empty must be 'raise' or 'drop', not {empty!r}.")
    without = [name for name, inside in members.items() if not inside.size]
    if without and empty == "raise":
        shown = ", ".join(map(repr, without[:6])) + (", ..." if len(without) > 6 else "")
        raise ValueError(f"{what} ({len(without)} of {len(members)}): {shown}; {remedy} with empty='drop'.")
    for name in without:
        del members[name]
