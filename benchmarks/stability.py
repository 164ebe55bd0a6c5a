"""Stability selection: mistakes beside the bound that is printed, on noise and with a signal.

Designs of 200 rows and 60 groups: independent columns, groups of 1 to 12 columns, an autoregression of 0.9 over all
columns, three common factors; groups of 4 columns but in the second. The response is noise, or has five groups with
an effect, as strong together as the noise or four times as strong. Counted are selected groups without an effect, and
among those the groups that are mistakes in the sense of the bound: half of the rows find them with probability at most
`chance`, which is estimated from the half-samples of all data sets of the same design, where the active groups are the
same. Beside stands the power of a default fit to all rows. Everything default but for 15 pairs. Settings are decided on
seeds below 1000; results are reported on seeds from 1000 on. On one core, six minutes:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/stability.py --first-seed 1000
    ... --quick      5 data sets of each kind
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

N, GROUPS, ACTIVE, PAIRS = 200, 60, 5, 15
DESIGNS = ("independent", "mixed sizes", "AR(0.9)", "factors")
SIGNALS = (0.0, 1.0, 4.0)


def draw(design: str, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, set[int]]:
    """X, y, the group of each column, and the groups with an effect; sizes and effects do not depend on the seed."""
    fixed, rng = np.random.default_rng(list(design.encode())), np.random.default_rng([seed, *design.encode()])
    sizes = fixed.choice([1, 2, 3, 5, 8, 12], GROUPS) if design == "mixed sizes" else np.full(GROUPS, 4)
    p, labels = int(sizes.sum()), np.repeat(np.arange(GROUPS), sizes)
    loadings = fixed.standard_normal((3, p))
    active = fixed.choice(GROUPS, ACTIVE, replace=False)
    coefs = [fixed.standard_normal(sizes[l]) for l in active]
    X = rng.standard_normal((N, p))
    if design == "AR(0.9)":
        for j in range(1, p):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    elif design == "factors":
        X += rng.standard_normal((N, 3)) @ loadings
    y = rng.standard_normal(N)
    if strength == 0:
        return X, y, labels, set()
    parts = [X[:, labels == l] @ coef for l, coef in zip(active, coefs, strict=True)]
    signal = sum(part / part.std() for part in parts)
    return X, y + np.sqrt(strength) * signal / signal.std(), labels, set(active.tolist())


def run(design: str, strength: float, seeds: range) -> None:
    from covey import GroupSparseRegressor, stability_selection

    chosen, shares, chances, bounds, warned, fitted = [], [], [], [], 0, []
    for seed in seeds:
        X, y, labels, active = draw(design, strength, seed)
        found = stability_selection(X, y, labels, n_pairs=PAIRS, random_state=seed)
        chosen.append(found.is_selected)
        shares.append(found.frequencies)
        chances.append(found.chance)
        bounds.append(found.expected_false)
        fitted.append(np.isin(np.arange(GROUPS), GroupSparseRegressor(labels).fit(X, y).selected_groups_))
        warned += any("correlated" in remark for remark in found.remarks)
    selected = np.array(chosen)
    null = np.array([l not in active for l in range(GROUPS)])
    rare = np.mean(shares, axis=0) <= np.mean(chances)
    false, mistakes = selected[:, null].sum(axis=1), selected[:, rare].sum(axis=1)
    power, of_fit = selected[:, ~null].sum(axis=1).mean(), np.array(fitted)[:, ~null].sum(axis=1).mean()
    ratio = f"{power / of_fit:.2f}" if of_fit else ""
    print(
        f"| {design} | {strength:g} | {np.mean(bounds):.2f} | {_mean(mistakes)} | {_mean(false)} | "
        f"{power:.2f} of {len(active)} | {of_fit:.2f} | {ratio} | {warned / len(seeds):.0%} |",
        flush=True,
    )


def _mean(counts: np.ndarray) -> str:
    return f"{counts.mean():.2f} +- {counts.std() / np.sqrt(counts.size):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="5 data sets of each kind")
    args = parser.parse_args()
    print(
        "| design | signal to noise | bound | mistakes in its sense | groups without an effect selected "
        "| with an effect | the default fit's | ratio | warned of correlation |"
    )
    print("| --- " * 9 + "|")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in args.designs:
            for strength in SIGNALS:
                run(design, strength, range(args.first_seed, args.first_seed + (5 if args.quick else args.repeats)))


if __name__ == "__main__":
    main()
