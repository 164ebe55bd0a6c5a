"""Pure noise: how often nothing is selected, and whether a group's size decides its place in the race.

The first table counts default fits (five folds) that select no group, for four kinds of noise at n = 200 and p = 1000;
`--rules predict` does the same for means of models, which nearly always have groups. The second draws groups of 1 to 30
columns and a response of pure noise, and counts how often groups of each size class are among the first ten to wake on
the limit path, relative to their share. Settings are decided on seeds below 1000; results are reported on seeds from
1000 on. On one core:

    OMP_NUM_THREADS=1 PYTHONPATH=src .venv-bench/bin/python benchmarks/noise.py --first-seed 1000
    ... --quick      5 fits of each kind and 40 races
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import scipy.linalg  # noqa: F401 - with a BLAS of its own, whose threads can only be limited once it is loaded
from threadpoolctl import threadpool_limits

N, P = 200, 1000
CLASSES = ((1, 1), (2, 3), (4, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30))
Noise = tuple[np.ndarray, np.ndarray, np.ndarray]


def fives() -> np.ndarray:
    return np.repeat(np.arange(P // 5), 5)


def mixed_sizes(rng: np.random.Generator, p: int = P) -> np.ndarray:
    sizes = rng.integers(1, 31, p)
    sizes = sizes[np.cumsum(sizes) <= p]
    return np.repeat(np.arange(sizes.size), sizes)


def iid(rng: np.random.Generator) -> Noise:
    return rng.standard_normal((N, P)), rng.standard_normal(N), fives()


def heavy_tails(rng: np.random.Generator) -> Noise:
    return rng.standard_t(3, (N, P)), rng.standard_t(2.5, N), fives()


def factors(rng: np.random.Generator) -> Noise:
    X = rng.standard_normal((N, P)) + rng.standard_normal((N, 3)) @ rng.standard_normal((3, P))
    return X, rng.standard_normal(N), fives()


def mixed(rng: np.random.Generator) -> Noise:
    labels = mixed_sizes(rng)
    return rng.standard_normal((N, labels.size)), rng.standard_normal(N), labels


KINDS: dict[str, Callable[[np.random.Generator], Noise]] = {
    "iid": iid,
    "heavy tails": heavy_tails,
    "factors": factors,
    "mixed sizes": mixed,
}


def selected(X: np.ndarray, y: np.ndarray, labels: np.ndarray, rule: str) -> int:
    """The number of groups that a default fit selects."""
    from covey import Groups, GroupSparseRegressor

    model = GroupSparseRegressor(groups=Groups.from_labels(labels), rule=rule).fit(X, y)
    return len(model.selected_groups_)


def empty_fits(kinds: list[str], rules: list[str], seeds: range) -> None:
    """The share of fits without a group, and the mean number of groups of the others."""
    print("| noise | rule | no group selected | groups selected otherwise | fits that failed | s per fit |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in kinds:
        for rule in rules:
            counts, reasons, start = [], [], time.perf_counter()
            for seed in seeds:
                X, y, labels = KINDS[kind](np.random.default_rng([seed, *kind.encode()]))
                try:
                    counts.append(selected(X, y, labels, rule))
                except Exception as failure:  # a fit that fails is counted, and the reason is printed
                    reasons.append(f"{type(failure).__name__}: {failure}")
            seconds = (time.perf_counter() - start) / len(seeds)
            found = np.array(counts)
            share = f"{np.mean(found == 0):.0%}" if counts else "-"
            rest = f"{found[found > 0].mean():.1f}" if (found > 0).any() else "-"
            print(f"| {kind} | {rule} | {share} | {rest} | {len(reasons)} | {seconds:.3f} |", flush=True)
            if reasons:
                print(f"\nfirst failure: {reasons[0]}\n")


def fairness(seeds: range, first: int = 10) -> None:
    """Chances of size classes to be among the first groups to wake, relative to all groups' chance."""
    from covey import Groups, limit_path

    hits, groups = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
    for seed in seeds:
        rng = np.random.default_rng([seed, 30])
        labels = mixed_sizes(rng)
        X, y = rng.standard_normal((N, labels.size)), rng.standard_normal(N)
        sizes = np.bincount(labels)
        path = limit_path(X, y, Groups.from_labels(labels))
        woken = [int(event[0]) for event in path.entered[:first]]
        for i, (low, high) in enumerate(CLASSES):
            inside = (sizes >= low) & (sizes <= high)
            groups[i] += inside.sum()
            hits[i] += inside[woken].sum()
    chance = hits / groups
    relative = chance / (hits.sum() / groups.sum())
    error = relative / np.sqrt(np.maximum(hits, 1))
    print(f"\n| columns of the group | groups drawn | among the first {first}: chance to the mean chance | +- |")
    print("| --- | --- | --- | --- |")
    for (low, high), count, value, spread in zip(CLASSES, groups, relative, error, strict=True):
        print(f"| {low} to {high} | {count:.0f} | {value:.2f} | {spread:.2f} |")
    print(f"\nlargest ratio between size classes: {relative.max() / relative.min():.2f}, {len(seeds)} races")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rules", nargs="+", default=["select"], choices=["select", "predict"])
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--fits", type=int, default=40, help="of each kind under each rule")
    parser.add_argument("--races", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="5 fits of each kind and 40 races")
    parser.add_argument("--only", choices=["empty", "fairness"], help="one of the two tables")
    args = parser.parse_args()
    fits, races = (5, 40) if args.quick else (args.fits, args.races)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.only != "fairness":
            empty_fits(args.kinds, args.rules, range(args.first_seed, args.first_seed + fits))
        if args.only != "empty":
            fairness(range(args.first_seed, args.first_seed + races))


if __name__ == "__main__":
    main()
