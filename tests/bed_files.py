"""Write small PLINK files from a matrix of counts of A1, with NaN for missing genotypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["write_bed"]


def write_bed(path, counts, *, chromosomes=None, positions=None, names=None, samples=None, alleles=("A", "C")):
    """Write .bed, .bim and .fam; return the path of the .bed file."""
    path, (n, p) = Path(path), counts.shape
    codes = np.select([counts == 2, np.isnan(counts), counts == 1], [0, 1, 2], default=3).astype(np.uint8)
    padded = np.zeros((-(-n // 4) * 4, p), dtype=np.uint8)
    padded[:n] = codes
    shifted = padded.reshape(-1, 4, p) << np.array([0, 2, 4, 6], dtype=np.uint8)[None, :, None]
    packed = np.bitwise_or.reduce(shifted, axis=1)
    path.write_bytes(b"\x6c\x1b\x01" + packed.T.tobytes())
    chromosomes = ["1"] * p if chromosomes is None else chromosomes
    positions = range(100, 100 * p + 1, 100) if positions is None else positions
    names = [f"x{j}" for j in range(p)] if names is None else names
    samples = [f"s{i}" for i in range(n)] if samples is None else samples
    a1, a2 = alleles
    path.with_suffix(".bim").write_text(
        "".join(f"{c}\t{v}\t0\t{at}\t{a1}\t{a2}\n" for c, v, at in zip(chromosomes, names, positions, strict=True))
    )
    path.with_suffix(".fam").write_text("".join(f"0 {s} 0 0 0 -9\n" for s in samples))
    return path
