"""Passes over an X that is streamed, for every loss: `python benchmarks/passes.py [--rows 1000] [--columns 5000]`.

Default fits (five folds, dealt again while the verdict is open) of an .npy file and of the same array in memory: the
passes over the file, how often rows were dealt, and how far the two models are apart. Passes depend on the events of
the paths, not on what stores the rows, so Parquet, Zarr and Dask have the same.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor
from covey.designs import MemmapDesign

SIZE, ACTIVE = 5, 12


def fits(eta: np.ndarray, rng: np.random.Generator) -> dict[str, tuple]:
    """An estimator and a response for every loss."""
    n = eta.size
    noise = rng.standard_normal((n, 2))
    return {
        "squared": (GroupSparseRegressor(SIZE), eta + noise[:, 0]),
        "squared, noise of twice the signal": (GroupSparseRegressor(SIZE), eta + 3 * noise[:, 0]),
        "squared, two responses": (GroupSparseRegressor(SIZE), np.column_stack([eta, -2 * eta]) + noise),
        "two classes": (GroupSparseClassifier(SIZE), rng.logistic(size=n) < eta),
        "three classes": (
            GroupSparseClassifier(SIZE),
            np.argmax(np.stack([eta, -eta, 0 * eta]) + rng.gumbel(size=(3, n)), axis=0),
        ),
        "Poisson": (GroupSparseRegressor(SIZE, loss="poisson"), rng.poisson(np.exp(0.7 * eta))),
        "Cox": (GroupSparseCox(SIZE), np.column_stack([rng.exponential(np.exp(-eta)), rng.random(n) < 0.7])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    X = rng.standard_normal((args.rows, args.columns))
    groups = rng.choice(args.columns // SIZE, ACTIVE, replace=False)
    eta = X[:, (groups[:, None] * SIZE + np.arange(SIZE)).ravel()] @ rng.standard_normal(ACTIVE * SIZE)
    print(f"{'':36}{'passes':>8}{'deals':>8}{'selected':>10}{'apart':>10}")
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "x.npy"), X)
        for name, (estimator, y) in fits(1.5 * eta / eta.std(), rng).items():
            design = MemmapDesign(Path(folder, "x.npy"), memory_budget=X.nbytes // 4)
            streamed = estimator.fit(design, y)
            coef, passes = streamed.coef_, design.n_passes
            deals, selected = streamed.n_deals_, len(streamed.selected_groups_)
            apart = np.abs(estimator.fit(X, y).coef_ - coef).max() / np.abs(coef).max()
            print(f"{name:36}{passes:>8}{deals:>8}{selected:>10}{apart:>10.0e}", flush=True)


if __name__ == "__main__":
    main()
