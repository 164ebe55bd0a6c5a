"""A tensor on a device at full size, 20 000 x 500 000: hold-out, and five folds of squared, logistic and Poisson loss;
and all pairs of 20 000 variables, 2000 rows.

    python benchmarks/scale.py --case torch          # on a GPU with 60 GB or more
    python benchmarks/scale_torch.py --small         # a hundredth of it, on whatever there is

Everything is made on the device. Times are wall-clock with the device synchronised, after a warm-up that compiles and
loads everything; peak memory is torch's own count.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from covey import Groups, GroupSparseClassifier, GroupSparseRegressor, Terms
from covey.designs import as_design
from covey.selection import HoldOut

REPEATS = 3


def timed(call: Callable[[], Any], device: torch.device) -> tuple[float, Any]:
    synchronise(device)
    begin = time.perf_counter()
    out = call()
    synchronise(device)
    return time.perf_counter() - begin, out


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else float("nan")


def problem(n: int, p: int, size: int, active: int, device: torch.device, seed: int) -> tuple[Any, ...]:
    """Independent normal columns; signs as coefficients in the first groups; noise of standard deviation 1."""
    torch.manual_seed(seed)
    X = torch.randn((n, p), device=device)
    k = size * active
    w = torch.sign(torch.randn(k, device=device))
    y = X[:, :k] @ w + torch.randn(n, device=device)
    return X, y, w.double().cpu().numpy()


def one_path(n: int, p: int, n_val: int, device: torch.device, size: int = 10, active: int = 20) -> dict[str, Any]:
    """A fit with preprocessing and a validation set."""
    X, y, w = problem(n + n_val, p, size, active, device, seed=0)
    X_val, y_val, X, y = X[n:], y[n:], X[:n], y[:n]
    groups = Groups.from_size(size, p)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    design = as_design(X)
    product = min(timed(lambda: y @ X, device)[0] for _ in range(REPEATS + 1))

    def fit() -> GroupSparseRegressor:
        return GroupSparseRegressor(groups, selection=HoldOut(validation=(X_val, y_val))).fit(design, y)

    first, _ = timed(fit, device)
    read = design.n_passes
    runs = [timed(fit, device) for _ in range(REPEATS)]
    model = runs[-1][1]
    chosen = set(model.selected_groups_)
    truth = np.zeros(p)
    truth[: w.size] = w
    return {
        "case": "one path", "n": n, "p": p, "n_val": n_val, "group_size": size, "active": active, "noise": 1.0,
        "dtype": "float32", "seconds": [seconds for seconds, _ in runs], "seconds_first": first,
        "seconds_Xty": product, "found": len(chosen & set(range(active))), "selected": len(chosen),
        "error": float(((model.coef_ - truth) ** 2).sum()), "oracle_error": w.size / n,
        "woken": len(model.path_.entered), "passes": (design.n_passes - read) / REPEATS, "X_gb": X.nelement() * 4 / 1e9,
        "X_val_gb": X_val.nelement() * 4 / 1e9, "peak_gb": peak(device),
    }  # fmt: skip


def five_folds(n: int, p: int, device: torch.device, kind: str, size: int = 10, active: int = 20) -> dict[str, Any]:
    """A default fit: numbers, two classes or counts."""
    X, y, w = problem(n, p, size, active, device, seed=1)
    eta = (X[:, : w.size] @ torch.as_tensor(w, dtype=X.dtype, device=device)).double().cpu().numpy()
    rng, unit = np.random.default_rng(2), np.sqrt(w.size)
    responses = {
        "squared": lambda: y.double().cpu().numpy(),
        "logistic": lambda: (rng.random(n) < 1 / (1 + np.exp(-3 * eta / unit))).astype(int),
        "poisson": lambda: rng.poisson(np.exp(0.7 * eta / unit)).astype(float),
    }
    groups, response = Groups.from_size(size, p), responses[kind]()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)

    def fit() -> Any:
        if kind == "logistic":
            return GroupSparseClassifier(groups).fit(X, response)
        return GroupSparseRegressor(groups, loss=kind).fit(X, response)

    first, _ = timed(fit, device)
    seconds, model = timed(fit, device)
    chosen = set(model.selected_groups_)
    return {
        "case": f"five folds, {kind}", "n": n, "p": p, "seconds": seconds, "seconds_first": first,
        "found": len(chosen & set(range(active))), "selected": len(chosen), "recipe": model.recipe_,
        "peak_gb": peak(device),
    }  # fmt: skip


def pairs(n: int, p: int, device: torch.device) -> dict[str, Any]:
    """A default fit of a table of numbers with all of their pairs: four variables and three pairs of them matter."""
    torch.manual_seed(3)
    X = torch.randn((n, p), device=device)
    true = [(0, 1), (1, 2), (2, 3)]
    y = X[:, :4].sum(dim=1) + sum(X[:, i] * X[:, j] for i, j in true) + torch.randn(n, device=device)
    response, terms = y.double().cpu().numpy(), Terms({"*": "linear"})
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds, model = timed(lambda: GroupSparseRegressor(terms=terms).fit(X, response), device)
    found = {name for name in model.selected_groups_ if ":" in name}
    right = {f"x{i}:x{j}" for i, j in true}
    return {
        "case": "pairs", "n": n, "variables": p, "pairs": p * (p - 1) // 2, "seconds_first": seconds,
        "found": len(found & right), "false": len(found - right), "recipe": model.recipe_, "peak_gb": peak(device),
    }  # fmt: skip


def run(small: bool = False) -> dict[str, Any]:
    """All cases, as one table to save."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    one_path(500, 2000, 100, device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    shape = (2000, 50_000) if small else (20_000, 500_000)
    cases = [one_path(*shape, 200 if small else 500, device)]
    cases += [five_folds(*shape, device, kind) for kind in ("squared", "logistic", "poisson")]
    cases.append(pairs(*((500, 2000) if small else (2000, 20_000)), device))
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "CPU"
    return {"device": name, "torch": torch.__version__, "cases": cases}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    print(json.dumps(run(parser.parse_args().small), indent=1))
