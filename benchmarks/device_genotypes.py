"""Simulated genotypes at two bits on a GPU: a default fit with five folds, up to 400 000 x 1 000 000 (100 GB).

    python benchmarks/device_genotypes.py --rows 400000 --variants 1000000      # on a GPU with 130 GB or more
    python benchmarks/device_genotypes.py --rows 2000 --variants 5000           # on whatever there is

As in `genotypes.py`, every chromosome is a mosaic of 32 founders that may change at every block of 20 variants, one
genotype in a hundred is missing, and fifty variants explain half of the variance of y. Everything is made on the
device. The goal at full size: below five minutes, at most 15 passes over X.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

from covey import GroupSparseRegressor
from covey.designs.torch_genotypes import DeviceGenotypes

BLOCK, FOUNDERS, CAUSAL, MISSING = 20, 32, 50, 0.01


def simulate(
    n: int, p: int, device: torch.device, seed: int
) -> tuple[torch.Tensor, np.ndarray, np.ndarray, np.ndarray]:
    """Packed genotypes, what their codes stand for, the response, and the causal variants."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    causal = np.sort(rng.choice(p // BLOCK, CAUSAL, replace=False) * BLOCK + rng.integers(0, BLOCK, CAUSAL))
    effect = dict(zip(causal.tolist(), rng.choice([-1.0, 1.0], CAUSAL).tolist(), strict=True))
    padded = -(-n // 4) * 4
    packed = torch.empty((p, padded // 4), dtype=torch.uint8, device=device)
    means = torch.empty(p, dtype=torch.float64, device=device)
    code = torch.tensor([3, 2, 0], dtype=torch.uint8, device=device)
    place = torch.tensor([1, 4, 16, 64], dtype=torch.uint8, device=device)
    signal = torch.zeros(padded, dtype=torch.float64, device=device)
    founder = torch.randint(FOUNDERS, (2, padded), device=device)
    for a in range(0, p, BLOCK):
        moves = torch.rand((2, padded), device=device) < 0.5
        founder = torch.where(moves, torch.randint(FOUNDERS, (2, padded), device=device), founder)
        share = 0.05 + 0.9 * torch.rand((BLOCK, 1), device=device)
        alleles = (torch.rand((BLOCK, FOUNDERS), device=device) < share).to(torch.uint8)
        alleles[:, 0], alleles[:, 1] = 0, 1  # every variant varies
        count = alleles[:, founder[0]] + alleles[:, founder[1]]
        known = torch.rand((BLOCK, padded), device=device) >= MISSING
        means[a : a + BLOCK] = (count * known)[:, :n].double().sum(dim=1) / known[:, :n].sum(dim=1)
        codes = torch.where(known, code[count.int()], 1)
        packed[a : a + BLOCK] = (codes.view(BLOCK, -1, 4) * place).sum(dim=2, dtype=torch.uint8)
        for j in range(a, a + BLOCK):
            if j in effect:
                column = count[j - a].double()
                signal += effect[j] * (column - column.mean()) / column.std()
    signal = signal[:n] / signal[:n].std()
    y = (signal + torch.randn(n, device=device)).cpu().numpy()
    values = np.tile([2.0, 0.0, 1.0, 0.0], (p, 1))
    values[:, 1] = means.cpu().numpy()
    return packed, values, y, causal


def run(n: int, p: int, seed: int = 0) -> dict[str, Any]:
    """Simulate, fit once for the warm-up on a small part, then on everything."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begin = time.perf_counter()
    packed, values, y, causal = simulate(n, p, device, seed)
    made = time.perf_counter() - begin
    few = min(p, 2000)
    table, rows = np.empty((n, 0)), np.empty(0, dtype=np.int64)
    GroupSparseRegressor().fit(DeviceGenotypes(packed[:few], values[:few], table, rows), y)
    X = DeviceGenotypes(packed, values, table, rows)
    begin = time.perf_counter()
    model = GroupSparseRegressor().fit(X, y)
    seconds = time.perf_counter() - begin
    chosen = np.asarray(model.selected_groups_, dtype=int)
    blocks, true = set((chosen // BLOCK).tolist()), set((causal // BLOCK).tolist())
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU", "rows": n, "variants": p,
        "packed_gb": packed.numel() / 1e9, "seconds_to_simulate": round(made, 1), "seconds": round(seconds, 1),
        "passes": X.n_passes, "deals": model.n_deals_, "selected": chosen.size,
        "causal_blocks_found": len(blocks & true), "other_blocks": len(blocks - true),
        "causal_variants_found": int(np.isin(causal, chosen).sum()),
        "peak_gb": round(torch.cuda.max_memory_allocated(device) / 1e9, 1) if device.type == "cuda" else None,
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--variants", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(json.dumps(run(args.rows, args.variants, args.seed), indent=1))
